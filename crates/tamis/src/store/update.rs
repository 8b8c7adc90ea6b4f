//! Saving a filter by writing only the changed blocks, if they are few.
//!
//! Only for kinds whose bits are never cleared: with any part of the changed blocks, the file still
//! holds all its old keys. So a process that dies in the middle leaves a valid file, which lacks
//! only its checksum and some keys of this save.

use crate::error::Error;
use crate::hasher::Hasher;
use crate::kind::Kind;
use crate::raw::header::{HEADER_LEN, Header, UNSEALED};
use crate::raw::word::{Word, for_each_piece};
use crate::store::check::sealed;
use crate::store::disk::{readers, write};
use crate::store::lock::FileLock;
use crate::store::replace::{is_at, open_regular};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

/// The unit of writing, as in file systems.
const BLOCK: usize = 4096;
/// The unit of reading.
const PIECE: usize = 1 << 20;
/// Smaller bodies are replaced as a whole, which takes no longer.
const LARGE: u64 = 256 << 10;

pub(crate) fn update_under<W: Word>(
    lock: &mut FileLock,
    header: &Header,
    parts: &[&[W]],
) -> Result<(), Error> {
    let old = lock.header();
    let new = sealed(header, parts);
    let is_there = is_at(lock.file(), lock.path()).map_err(Error::io("reading", lock.path()))?;
    if is_there && lock.holds(old.as_ref(), &new) {
        return Ok(());
    }
    if let Some(file) = changeable(lock, old.as_ref(), header)
        && let Some(changed) =
            changed_blocks(&file, parts).map_err(Error::io("reading", lock.path()))?
    {
        return put(&file, &new, parts, &changed).map_err(Error::io("writing", lock.path()));
    }
    lock.replace(readers(header, old.as_ref()), |file| {
        write(file, header, parts)
    })
}

/// The locked file, if this filter can be its content with keys added, and nothing else depends on
/// its bytes.
fn changeable(lock: &FileLock, old: Option<&[u8; HEADER_LEN]>, header: &Header) -> Option<File> {
    let key = match &header.hasher {
        Hasher::Keyed { key, .. } => Some(key),
        Hasher::Fast { .. } => None,
    };
    let mut old = Header::decode(old?, key).ok()?;
    let is_open = old.state.open_under.is_some();
    (old.state, old.capacity) = (header.state, header.capacity);
    let adds = matches!(
        header.shape.kind(),
        Kind::Bloom | Kind::Blocked | Kind::Growing
    );
    if !lock.is_synced || !adds || is_open || old != *header || header.body_len() < LARGE {
        return None;
    }
    let file = open_regular(lock.path(), true).ok()?;
    let is_locked = is_at(lock.file(), lock.path()).ok()? && is_at(&file, lock.path()).ok()?;
    (is_locked && has_one_name(&file)).then_some(file)
}

/// A second name (a hard link) means that someone expects its content to stay.
#[cfg(unix)]
fn has_one_name(file: &File) -> bool {
    use std::os::unix::fs::MetadataExt;
    file.metadata().is_ok_and(|metadata| metadata.nlink() == 1)
}

#[cfg(not(unix))]
const fn has_one_name(_: &File) -> bool {
    true
}

/// The numbers of the file's blocks in which the body differs, unless there are so many that
/// replacing the file is better.
fn changed_blocks<W: Word>(mut file: &File, parts: &[&[W]]) -> io::Result<Option<Vec<usize>>> {
    let all: usize = parts.iter().map(|words| size_of_val(*words)).sum();
    let most = all / BLOCK / 4;
    let mut changed = Vec::new();
    let mut there = Vec::new();
    file.seek(SeekFrom::Start(HEADER_LEN as u64))?;
    for_each_block(parts, |number, block| {
        there.clear();
        (&mut file)
            .take(block.len() as u64)
            .read_to_end(&mut there)?;
        if there != block {
            changed.push(number);
        }
        Ok(())
    })?;
    Ok((changed.len() <= most).then_some(changed))
}

/// Calls `each` with the body's bytes in every block of the file, without the header, which starts
/// the first block.
fn for_each_block<W: Word>(
    parts: &[&[W]],
    mut each: impl FnMut(usize, &[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let mut waiting: Vec<u8> = Vec::with_capacity(PIECE + BLOCK);
    let mut number = 0;
    let size = |number| match number {
        0 => BLOCK - HEADER_LEN,
        _ => BLOCK,
    };
    for words in parts {
        for_each_piece(words, |piece| {
            waiting.extend_from_slice(piece);
            let mut rest = &waiting[..];
            while let Some((block, others)) = rest.split_at_checked(size(number)) {
                each(number, block)?;
                (number, rest) = (number + 1, others);
            }
            let done = waiting.len() - rest.len();
            waiting.drain(..done);
            io::Result::Ok(())
        })?;
    }
    if waiting.is_empty() {
        return Ok(());
    }
    each(number, &waiting)
}

/// Writes these blocks. Clears the checksum first, and writes it last.
fn put<W: Word>(
    mut file: &File,
    new: &Header,
    parts: &[&[W]],
    changed: &[usize],
) -> io::Result<()> {
    let mut unsealed = *new;
    unsealed.state.body_checksum = UNSEALED;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&unsealed.encode())?;
    file.sync_data()?;
    let mut changed = changed.iter().peekable();
    for_each_block(parts, |number, block| {
        if changed.next_if_eq(&&number).is_some() {
            let at = (number * BLOCK).max(HEADER_LEN);
            file.seek(SeekFrom::Start(at as u64))?;
            file.write_all(block)?;
        }
        Ok(())
    })?;
    file.sync_data()?;
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&new.encode())?;
    file.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AnyFilter, Blocked, Growing};

    /// How many blocks the next save would write, or `None` for a new file.
    fn changed(filter: &Growing, path: &std::path::Path) -> Option<usize> {
        let file = File::open(path).unwrap();
        let changed = changed_blocks(&file, &filter.all_words()).unwrap();
        changed.map(|blocks| blocks.len())
    }

    #[test]
    fn a_few_keys_change_a_few_blocks_of_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.tamis");
        let mut filter = Growing::new(1_000_000, 1e-6).unwrap();
        filter.save_new(&path).unwrap();
        let mut lock = FileLock::acquire(&path).unwrap();
        let opened = File::open(&path).unwrap();
        for round in 0..5u64 {
            for i in 0..10u64 {
                filter.insert((round * 100 + i).to_le_bytes()).unwrap();
            }
            let blocks = changed(&filter, &path).unwrap();
            assert!((1..=10 * 4 + 1).contains(&blocks), "{blocks}");
            filter.update_under(&mut lock).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), filter.to_bytes());
            assert_eq!(changed(&filter, &path), Some(0));
        }
        assert!(is_at(&opened, &path).unwrap(), "changed in place");
        // Many keys and a new layer make a new file.
        for i in 0..600_000u64 {
            filter.insert((i << 20).to_le_bytes()).unwrap();
        }
        assert_eq!(changed(&filter, &path), None);
        filter.update_under(&mut lock).unwrap();
        assert!(!is_at(&opened, &path).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), filter.to_bytes());
        assert!(AnyFilter::load(&path).unwrap().contains(3u64.to_le_bytes()));
    }

    #[test]
    fn a_save_that_breaks_off_loses_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f.tamis");
        let filter = Blocked::new(500_000, 0.001).unwrap();
        let key = |i: u64| i.to_le_bytes();
        (0..1000).for_each(|i| _ = filter.insert(key(i)));
        filter.save_new(&path).unwrap();
        (1000..1040).for_each(|i| _ = filter.insert(key(i)));
        let words = filter.all_words();
        let blocks = changed_blocks(&File::open(&path).unwrap(), &words)
            .unwrap()
            .unwrap();
        for some in 0..blocks.len() {
            // Some blocks written before the process died, and no checksum.
            let file = File::options().read(true).write(true).open(&path).unwrap();
            put(&file, &filter.header(), &words, &blocks[..some]).unwrap();
            let torn = Blocked::load(&path).unwrap();
            assert!((0..1000).all(|i| torn.contains(key(i))), "{some}");
        }
        let mut lock = FileLock::acquire(&path).unwrap();
        filter.update_under(&mut lock).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), filter.to_bytes());
    }

    #[cfg(unix)]
    #[test]
    fn a_second_name_keeps_what_it_had() {
        let dir = tempfile::tempdir().unwrap();
        let (path, copy) = (dir.path().join("f"), dir.path().join("copy"));
        let filter = Blocked::new(500_000, 0.001).unwrap();
        filter.save_new(&path).unwrap();
        std::fs::hard_link(&path, &copy).unwrap();
        let mut lock = FileLock::acquire(&path).unwrap();
        filter.insert("key");
        filter.update_under(&mut lock).unwrap();
        assert!(Blocked::load(&path).unwrap().contains("key"));
        assert!(!Blocked::load(&copy).unwrap().contains("key"));
        // A file that someone put in its place is replaced, too.
        std::fs::rename(&copy, &path).unwrap();
        filter.update_under(&mut lock).unwrap();
        assert!(Blocked::load(&path).unwrap().contains("key"));
    }
}
