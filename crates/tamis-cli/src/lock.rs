//! Waits for other writers of a file.

use crate::human;
use crate::location::named;
use anyhow::{Result, anyhow};
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};
use tamis::{Error, file::FileLock};

/// For commands that change a file which others may be changing.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct LockArgs {
    /// How long to wait while another process writes to the file, e.g. 500ms, 1m; 0 is not at all
    /// [default: as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = parse_timeout)]
    lock_timeout: Option<Duration>,
}

fn parse_timeout(text: &str) -> Result<Duration, String> {
    match text.parse::<f64>() {
        Ok(0.0) => Ok(Duration::ZERO),
        _ => human::parse_duration(text),
    }
}

impl LockArgs {
    /// Locks the file. If it has to wait, says for whom.
    pub(crate) fn acquire(&self, path: &Path) -> Result<FileLock> {
        match FileLock::try_acquire(path) {
            Err(Error::Busy { .. }) => {}
            locked => return locked.map_err(named(path)),
        }
        let holder = holder(path).unwrap_or_else(|| "another process".to_owned());
        let file = path.display();
        if self.lock_timeout != Some(Duration::ZERO) {
            say!("tamis: waiting for {file}, which {holder} is writing to");
        }
        let Some(timeout) = self.lock_timeout else {
            return FileLock::acquire(path).map_err(named(path));
        };
        let start = Instant::now();
        loop {
            match FileLock::try_acquire(path) {
                Err(Error::Busy { .. }) => {}
                locked => return locked.map_err(named(path)),
            }
            let left = timeout.saturating_sub(start.elapsed());
            if left.is_zero() {
                return Err(anyhow!(
                    "{file}: {holder} is still writing to it\n\
                     hint: wait until that ends, or longer (--lock-timeout)"
                ));
            }
            std::thread::sleep(left.min(Duration::from_millis(50)));
        }
    }
}

/// Who has locked the file, if the system knows.
fn holder(path: &Path) -> Option<String> {
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid = find_holder(&locks, inode(path)?)?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(format!(
        "process {pid} ({})",
        name.trim_end().escape_debug()
    ))
}

#[cfg(unix)]
fn inode(path: &Path) -> Option<u64> {
    use std::os::unix::fs::MetadataExt;
    fs::metadata(path).ok().map(|metadata| metadata.ino())
}

#[cfg(not(unix))]
fn inode(_: &Path) -> Option<u64> {
    None
}

/// The one process that has locked a file with this inode number. The device number next to it doesn't always match the
/// file's, so if several files match, the answer is unknown.
///
/// ```text
/// 1: FLOCK  ADVISORY  WRITE 31752 fd:01:1835111 0 EOF
/// ```
fn find_holder(locks: &str, inode: u64) -> Option<u32> {
    let holders = locks.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(1);
        // Waiting processes have an arrow here.
        (words.next()? == "FLOCK").then_some(())?;
        let pid = words.nth(2)?.parse().ok()?;
        let file = words.next()?.rsplit(':').next()?;
        (file.parse() == Ok(inode) && pid > 0).then_some(pid)
    });
    let mut holders: Vec<u32> = holders.collect();
    holders.dedup();
    match holders[..] {
        [holder] => Some(holder),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_found_among_locks() {
        let locks = "\
1: POSIX  ADVISORY  WRITE 11 fd:01:1835111 0 EOF
2: FLOCK  ADVISORY  WRITE 22 fd:01:1835111 0 EOF
2: -> FLOCK  ADVISORY  WRITE 33 fd:01:1835111 0 EOF
3: FLOCK  ADVISORY  WRITE 44 fd:01:7 0 EOF
4: FLOCK  ADVISORY  WRITE 55 fd:02:7 0 EOF
5: FLOCK  ADVISORY  WRITE 0 fd:02:8 0 EOF
";
        assert_eq!(find_holder(locks, 1_835_111), Some(22));
        for unknown in [7, 8, 9] {
            assert_eq!(find_holder(locks, unknown), None);
        }
    }
}
