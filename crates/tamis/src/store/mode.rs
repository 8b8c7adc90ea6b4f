//! Permissions of a file that takes a name: its owner only while it is written, and once complete,
//! those of the file that it replaces.
//!
//! A file that others may open is never restricted afterwards, because those who have it open could
//! read on.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Those of the file that it replaces; a new file follows the user's umask.
    AsUsual,
    /// Only its owner, because it holds a secret.
    Owner,
}

/// Gives a complete file the owner and mode of the file that it replaces.
#[cfg(unix)]
pub(super) fn keep(new: &File, old: &Metadata, readers: Readers) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let made = new.metadata()?;
    let mut mode = match readers {
        Readers::AsUsual => old.mode() & 0o7777,
        Readers::Owner => 0o600,
    };
    if made.gid() != old.gid() && fchown(new, None, Some(old.gid())).is_err() {
        // A different group doesn't inherit the old group's permissions.
        mode &= 0o707;
    }
    // Only root can give a file away. Anyone else who may replace the file, as in a folder that a
    // group shares, becomes its owner.
    if made.uid() != old.uid() && fchown(new, Some(old.uid()), None).is_err() {
        mode &= 0o777;
    }
    new.set_permissions(PermissionsExt::from_mode(mode))
}

/// Gives a complete file the default mode of new files in the folder, which the umask or the
/// folder's access list decides. We find it with an empty file made by `example`, because reading
/// the umask would briefly change it for all threads.
#[cfg(unix)]
pub(super) fn as_usual(
    new: &File,
    folder: &Path,
    mut example: tempfile::Builder<'_, '_>,
    readers: Readers,
) -> io::Result<()> {
    if readers == Readers::Owner {
        return Ok(());
    }
    let example = example
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))
        .tempfile_in(folder)?;
    new.set_permissions(example.as_file().metadata()?.permissions())
}

#[cfg(not(unix))]
pub(super) fn keep(new: &File, old: &Metadata, _: Readers) -> io::Result<()> {
    new.set_permissions(old.permissions())
}

#[cfg(not(unix))]
pub(super) fn as_usual(
    _: &File,
    _: &Path,
    _: tempfile::Builder<'_, '_>,
    _: Readers,
) -> io::Result<()> {
    Ok(())
}
