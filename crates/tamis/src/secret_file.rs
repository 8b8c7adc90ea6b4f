//! Small files that hold secrets.

use crate::error::Error;
use std::fs::{self, File, Metadata};
use std::io::{self, Read as _};
use std::path::Path;

/// Reads a small file completely, such as one that holds a secret. A pipe is fine, because shells
/// pass secrets that way; other special files, and files above the limit, are errors, because they
/// may never end.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("password");
/// use tamis::internals::file::read_small;
/// std::fs::write(&path, "secret\n").unwrap();
/// assert_eq!(read_small(&path, 100)?, b"secret\n");
/// assert!(read_small(&path, 6).is_err());
/// # #[cfg(unix)]
/// assert!(read_small("/dev/zero", 100).is_err());
/// # Ok::<(), tamis::Error>(())
/// ```
pub fn read_small(path: impl AsRef<Path>, limit: u64) -> Result<Vec<u8>, Error> {
    let path = path.as_ref();
    let read = || {
        // Opening a device may have side effects. Check again afterwards: the name may now belong
        // to another file.
        check_ends(&fs::metadata(path)?)?;
        let file = File::open(path)?;
        check_ends(&file.metadata()?)?;
        let mut bytes = Vec::new();
        file.take(limit + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            let text = format!("expected at most {limit} bytes, got more");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
        }
        Ok(bytes)
    };
    read().map_err(Error::io("reading", path))
}

fn check_ends(metadata: &Metadata) -> io::Result<()> {
    let file = metadata.file_type();
    #[cfg(unix)]
    let is_pipe = std::os::unix::fs::FileTypeExt::is_fifo(&file);
    #[cfg(not(unix))]
    let is_pipe = false;
    if file.is_file() || is_pipe {
        return Ok(());
    }
    if file.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "expected a regular file or a pipe, got a device or a socket",
    ))
}

/// The mode of a file that every user of this machine can read or change; `None` for other files.
///
/// ```
/// # let dir = tempfile::tempdir().unwrap();
/// # let path = dir.path().join("secret.key");
/// use tamis::internals::file::mode_for_everyone;
/// tamis::SecretKey::load_or_create(&path)?;
/// assert_eq!(mode_for_everyone(&path), None);
/// # Ok::<(), tamis::Error>(())
/// ```
#[cfg(unix)]
pub fn mode_for_everyone(path: impl AsRef<Path>) -> Option<u32> {
    use std::os::unix::fs::PermissionsExt as _;
    const OTHERS: u32 = 0o006;
    let file = fs::metadata(path).ok().filter(Metadata::is_file)?;
    let mode = file.permissions().mode() & 0o777;
    (mode & OTHERS != 0).then_some(mode)
}

/// Unknown on this platform.
#[cfg(not(unix))]
pub fn mode_for_everyone(_: impl AsRef<Path>) -> Option<u32> {
    None
}
