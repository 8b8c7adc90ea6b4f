//! Whether a file could change without its times changing.
//!
//! Systems update a file's times when a write begins, and when a page of a mapping is first written to. Anything after
//! that, until the write ends or the page is flushed to disk, leaves the times unchanged. A reader may see a
//! half-finished write, and a stamp taken then would wrongly prove that the file didn't change. In-memory file systems
//! never flush pages.

use std::collections::HashMap;
use std::fs::{File, Metadata};
use std::path::Path;
use std::time::Duration;

/// A write that began this long ago has ended.
#[cfg(target_os = "linux")]
const LONGEST_WRITE: Duration = Duration::from_secs(60);

/// Who has a file open, or mapped, for writing.
#[cfg(target_os = "linux")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Writers {
    Nobody,
    Somebody,
    /// Unknown: the file is another user's, or the file system has no leases.
    Untold,
}

/// Whether every change from now on will show in the file's times. It last changed `age` ago.
#[cfg(target_os = "linux")]
pub(crate) fn is_quiet(file: &File, age: Duration) -> bool {
    match writers(file) {
        Writers::Nobody => true,
        Writers::Somebody | Writers::Untold => age >= LONGEST_WRITE && protect_pages(file),
    }
}

/// Other systems don't report writers.
#[cfg(not(target_os = "linux"))]
pub(crate) fn is_quiet(file: &File, _: Duration) -> bool {
    file.sync_data().is_ok()
}

/// The file systems of files, each checked once.
#[derive(Default)]
pub(crate) struct FileSystems(HashMap<u64, bool>);

impl FileSystems {
    /// Whether a file may be changing without its times changing, though it was quiet when indexed. On in-memory file
    /// systems, writing to a mapped page that was read before leaves no trace.
    #[cfg(target_os = "linux")]
    pub(crate) fn hide_writes(&mut self, place: &Path, metadata: &Metadata) -> bool {
        let device = std::os::unix::fs::MetadataExt::dev(metadata);
        let open = || File::open(place);
        let lives_in_memory = self.0.entry(device).or_insert_with(|| {
            open().is_ok_and(|file| system(&file).is_some_and(|system| MEMORY.contains(&system)))
        });
        *lives_in_memory && open().is_ok_and(|file| writers(&file) == Writers::Somebody)
    }

    #[cfg(not(target_os = "linux"))]
    pub(crate) fn hide_writes(&mut self, _: &Path, _: &Metadata) -> bool {
        false
    }
}

/// The system grants a read lease only if nobody has the file open or mapped for writing. We return it at once; a
/// process that opens the file meanwhile waits no longer than that.
#[cfg(target_os = "linux")]
fn writers(file: &File) -> Writers {
    use std::os::fd::AsRawFd;
    static IGNORED: std::sync::Once = std::sync::Once::new();
    IGNORED.call_once(|| {
        // SAFETY: installs no handler. Without this, the signal that recalls the lease would end the process.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
    });
    // SAFETY: the file is open, and the lease is a number.
    let set =
        |lease: libc::c_int| unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLEASE, lease) };
    if set(libc::F_RDLCK) == 0 {
        set(libc::F_UNLCK);
        return Writers::Nobody;
    }
    match std::io::Error::last_os_error().raw_os_error() {
        Some(libc::EAGAIN) => Writers::Somebody,
        _ => Writers::Untold,
    }
}

/// Flushes every page written through a mapping, so that the next write to it sets the times again.
#[cfg(target_os = "linux")]
fn protect_pages(file: &File) -> bool {
    use std::os::fd::AsRawFd;
    const ALL: libc::c_uint = libc::SYNC_FILE_RANGE_WAIT_BEFORE
        | libc::SYNC_FILE_RANGE_WRITE
        | libc::SYNC_FILE_RANGE_WAIT_AFTER;
    match system(file) {
        // SAFETY: the file is open; no length means to its end.
        Some(EXT4 | XFS | BTRFS) => unsafe {
            // Unlike `sync_data`, this doesn't flush the disk's cache for every file.
            libc::sync_file_range(file.as_raw_fd(), 0, 0, ALL) == 0
        },
        Some(system) if !MEMORY.contains(&system) => file.sync_data().is_ok(),
        _ => false,
    }
}

// The numbers from statfs(2).
#[cfg(target_os = "linux")]
const EXT4: u32 = 0xEF53;
#[cfg(target_os = "linux")]
const XFS: u32 = 0x5846_5342;
#[cfg(target_os = "linux")]
const BTRFS: u32 = 0x9123_683E;
/// tmpfs, ramfs and hugetlbfs.
#[cfg(target_os = "linux")]
const MEMORY: [u32; 3] = [0x0102_1994, 0x8584_58F6, 0x9584_58F6];

/// The file system of a file.
#[cfg(target_os = "linux")]
fn system(file: &File) -> Option<u32> {
    use std::os::fd::AsRawFd;
    let mut told = std::mem::MaybeUninit::<libc::statfs>::uninit();
    // SAFETY: the file is open, and the answer has room.
    let failed = unsafe { libc::fstatfs(file.as_raw_fd(), told.as_mut_ptr()) };
    // SAFETY: the system has filled it in.
    (failed == 0).then(|| unsafe { told.assume_init() }.f_type as u32)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// A mapped file is quiet once its pages are on disk: after that every change shows. In memory that never happens.
    #[test]
    fn what_is_on_the_disk_shows_when_it_changes() {
        let named = [std::env::temp_dir(), "/dev/shm".into()];
        for folder in named {
            let path = tempfile::NamedTempFile::new_in(&folder).unwrap();
            let path = path.into_temp_path();
            std::fs::write(&path, " ".repeat(100)).unwrap();
            let file = File::open(&path).unwrap();
            assert!(
                is_quiet(&file, Duration::ZERO),
                "nobody writes to it: {folder:?}"
            );
            let changed = || {
                let metadata = file.metadata().unwrap();
                (metadata.ctime(), metadata.ctime_nsec())
            };
            let opened = File::options().read(true).write(true).open(&path).unwrap();
            // SAFETY: nobody truncates the file.
            let mut map = unsafe { memmap2::MmapMut::map_mut(&opened).unwrap() };
            drop(opened);
            // The system may flush the page meanwhile, and then the change would show.
            let before = (0..20).find_map(|_| {
                map[0] = b'1';
                let before = changed();
                std::thread::sleep(Duration::from_millis(30));
                map[0] = b'2';
                (changed() == before).then_some(before)
            });
            let before = before.expect("this test's case");
            assert!(
                !is_quiet(&file, Duration::from_secs(1)),
                "it may be half written"
            );
            let in_memory = MEMORY.contains(&system(&file).unwrap());
            assert_eq!(is_quiet(&file, LONGEST_WRITE), !in_memory, "{folder:?}");
            map[0] = b'3';
            assert_eq!(changed() == before, in_memory, "{folder:?}");
        }
    }
}
