//! Who may read a file that takes a name: its owner alone while it is written, and once it is
//! complete, those who may read the file that it replaces.
//!
//! A file that others may open is never restricted afterwards: whoever opened it before goes on
//! reading.

use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Who may read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Readers {
    /// Those who may read the file that it replaces; a new file follows the user's umask.
    AsUsual,
    /// Its owner alone: it holds a secret.
    Owner,
}

/// Gives a complete file the owner and the mode of the one that it replaces.
#[cfg(unix)]
pub(super) fn keep(new: &File, old: &Metadata, readers: Readers) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let made = new.metadata()?;
    let mut mode = match readers {
        Readers::AsUsual => old.mode() & 0o7777,
        Readers::Owner => 0o600,
    };
    if made.gid() != old.gid() && fchown(new, None, Some(old.gid())).is_err() {
        // Another group does not inherit what the old one was allowed.
        mode &= 0o707;
    }
    // Only root can give a file away. Who may replace somebody else's file, as
    // in a folder that a group shares, becomes its owner.
    if made.uid() != old.uid() && fchown(new, Some(old.uid()), None).is_err() {
        mode &= 0o777;
    }
    new.set_permissions(PermissionsExt::from_mode(mode))
}

/// Gives a complete file the mode that other new files in the folder have. The umask decides it, or
/// the folder's access list. An empty file, made by `example`, shows it; reading the umask would
/// change it for a moment, for all threads.
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
