//! The identity of a file. The inode number alone isn't enough: a deleted file's number is reused.

use std::fs::{File, Metadata};
use std::time::{SystemTime, UNIX_EPOCH};

/// The device and inode of a file, and its creation time if the file system knows it.
pub(crate) type Identity = (u64, u64, Option<SystemTime>);

#[cfg(unix)]
pub(crate) fn identity(metadata: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (metadata.dev(), metadata.ino(), metadata.created().ok())
}

#[cfg(not(unix))]
pub(crate) fn identity(metadata: &Metadata) -> Identity {
    (0, 0, metadata.created().ok())
}

/// A number that distinguishes a file from earlier ones with the same inode: its creation time in nanoseconds, or a
/// checksum of its handle. `None` if the file system has neither.
pub(crate) fn generation(file: &File) -> Option<u64> {
    born(file).or_else(|| handle(file))
}

/// Programs can't set this time. Some file systems report 1970 if they don't know it.
fn born(file: &File) -> Option<u64> {
    let born = file.metadata().ok()?.created().ok()?;
    let born = born.duration_since(UNIX_EPOCH).ok()?;
    u64::try_from(born.as_nanos()).ok().filter(|born| *born > 0)
}

/// File servers use handles to find files after a restart, so a handle includes the inode's generation.
#[cfg(target_os = "linux")]
fn handle(file: &File) -> Option<u64> {
    use std::os::fd::AsRawFd;
    // The kernel's maximum.
    const MOST: usize = 128;
    /// The layout from open_by_handle_at(2).
    #[repr(C)]
    struct Handle {
        bytes: libc::c_uint,
        kind: libc::c_int,
        handle: [u8; MOST],
    }
    let mut told = Handle {
        bytes: MOST as libc::c_uint,
        kind: 0,
        handle: [0; MOST],
    };
    let mut mount: libc::c_int = 0;
    // SAFETY: the file is open, the path is an empty C string, and both outputs have room.
    let failed = unsafe {
        libc::syscall(
            libc::SYS_name_to_handle_at,
            file.as_raw_fd(),
            c"".as_ptr(),
            &raw mut told,
            &raw mut mount,
            libc::AT_EMPTY_PATH,
        )
    };
    let handle = told.handle.get(..told.bytes as usize)?;
    (failed == 0).then(|| xxhash_rust::xxh3::xxh3_64(handle))
}

#[cfg(not(target_os = "linux"))]
fn handle(_: &File) -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    /// ext4 reuses the inode of a deleted file for the next one. On any file system, the generation tells them apart.
    #[test]
    fn a_file_is_told_from_the_one_that_had_its_inode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let make = || {
            std::fs::write(&path, "text").unwrap();
            File::open(&path).unwrap()
        };
        let was = |file: &File| (file.metadata().unwrap().ino(), born(file), handle(file));
        let first = make();
        let modified = first.metadata().unwrap().modified().unwrap();
        let first = was(&first);
        assert_eq!(
            first,
            was(&File::open(&path).unwrap()),
            "as long as it lives"
        );
        std::fs::rename(&path, folder.path().join("aside")).unwrap();
        let aside = File::open(folder.path().join("aside")).unwrap();
        assert_eq!(first, was(&aside), "whatever its name");
        drop(aside);
        std::fs::remove_file(folder.path().join("aside")).unwrap();
        // Repeats until the file system's clock has ticked.
        let second = loop {
            let file = make();
            if file.metadata().unwrap().modified().unwrap() != modified {
                break was(&file);
            }
            std::fs::remove_file(&path).unwrap();
        };
        assert!(
            first.1.is_none() || first.1 != second.1,
            "{first:?} {second:?}"
        );
        assert!(
            first.2.is_none() || first.2 != second.2,
            "{first:?} {second:?}"
        );
        assert_ne!(
            (first.0, first.1.or(first.2)),
            (second.0, second.1.or(second.2))
        );
    }
}
