//! Saving, loading, mapping and sharing filters in files.

use crate::error::Error;
use crate::raw::header::{HEADER_LEN, Header};
use crate::raw::word::{Word, for_each_piece};
use crate::store::body::{Body, Bytes, Map};
use crate::store::check::{Terms, checksum_of_zeros, sealed, verify, verify_bytes};
use crate::store::lock::FileLock;
use crate::store::mode::Readers;
use crate::store::replace::{Existing, open_regular, reserve, write_atomically};
use crate::store::shared::{SharedMap, check_clean, read_header};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use xxhash_rust::xxh3::Xxh3;

/// Writes a snapshot, the parts of the body one after the other. The checksum covers the bytes
/// written, even while other threads add keys.
pub(super) fn write<W: Word>(file: &mut File, header: &Header, parts: &[&[W]]) -> io::Result<()> {
    let mut header = *header;
    let mut sum = Xxh3::with_seed(header.state.keys);
    file.seek(SeekFrom::Start(HEADER_LEN as u64))?;
    for words in parts {
        for_each_piece(words, |piece| {
            sum.update(piece);
            file.write_all(piece)
        })?;
    }
    header.state.body_checksum = sum.digest();
    file.seek(SeekFrom::Start(0))?;
    file.write_all(&header.encode())
}

pub(crate) fn save<W: Word>(path: &Path, header: &Header, parts: &[&[W]]) -> Result<(), Error> {
    match FileLock::try_acquire(path) {
        Ok(mut lock) => save_under(&mut lock, header, parts),
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            create(path, Existing::Replace, header, parts)
        }
        Err(e) => Err(e),
    }
}

pub(crate) fn save_new<W: Word>(path: &Path, header: &Header, parts: &[&[W]]) -> Result<(), Error> {
    create(path, Existing::Keep, header, parts)
}

fn create<W: Word>(
    path: &Path,
    existing: Existing,
    header: &Header,
    parts: &[&[W]],
) -> Result<(), Error> {
    let write = |file: &mut File| write(file, header, parts);
    write_atomically(path, existing, readers(header, None), write).map(drop)
}

/// Skips writing if the file already holds this very filter.
pub(crate) fn save_under<W: Word>(
    lock: &mut FileLock,
    header: &Header,
    parts: &[&[W]],
) -> Result<(), Error> {
    let old = lock.header();
    if lock.holds(old.as_ref(), &sealed(header, parts)) {
        return Ok(());
    }
    lock.replace(readers(header, old.as_ref()), |file| {
        write(file, header, parts)
    })
}

/// A file that contains its secret is readable only by its owner, unless it replaces another such
/// file, whose owner has chosen its permissions.
pub(super) fn readers(header: &Header, old: Option<&[u8; HEADER_LEN]>) -> Readers {
    let decided =
        || old.is_some_and(|old| Header::decode(old, None).is_ok_and(|old| old.holds_secret()));
    if header.holds_secret() && !decided() {
        Readers::Owner
    } else {
        Readers::AsUsual
    }
}

/// Creates a file of zeros with a header, ready to be shared.
pub(crate) fn save_empty(path: &Path, header: &Header, existing: Existing) -> Result<(), Error> {
    let create = |file: &mut File| {
        reserve(file, HEADER_LEN as u64 + header.body_len())?;
        let mut header = *header;
        header.state.body_checksum = checksum_of_zeros(header.body_len(), header.state.keys);
        file.write_all(&header.encode())
    };
    match existing {
        Existing::Replace if path.exists() => {
            let mut lock = FileLock::try_acquire(path)?;
            let readers = readers(header, lock.header().as_ref());
            lock.replace(readers, create)
        }
        _ => write_atomically(path, existing, readers(header, None), create).map(drop),
    }
}

/// The header of a file that may have concurrent writers.
fn reader_header(file: &File, path: &Path, terms: Terms<'_>) -> Result<Header, Error> {
    read_header(file, path, |bytes| {
        let header = Header::decode(bytes, terms.key)?;
        if !terms.accept_loss {
            check_clean(&header, path)?;
        }
        Ok(header)
    })
}

/// Reads a whole file to the heap.
pub(crate) fn load(path: &Path, terms: Terms<'_>) -> Result<(Header, Bytes), Error> {
    loop {
        let mut file = open_regular(path, false)?;
        let header = reader_header(&file, path, terms)?;
        let mut body = Bytes::zeroed(header.body_len())?;
        let bytes = body.exclusive_bytes().unwrap_or_default();
        file.read_exact(bytes).map_err(Error::io("reading", path))?;
        match verify_bytes(&header, bytes) {
            Err(_) if terms.verify == Some(false) => return Ok((header, body)),
            Err(_) if has_changed(&file, &header, path, terms) => {}
            sound => return sound.map(|()| (header, body)),
        }
    }
}

/// Maps a file for reading.
pub(crate) fn map(path: &Path, terms: Terms<'_>) -> Result<(Header, Map), Error> {
    loop {
        let file = open_regular(path, false)?;
        let header = reader_header(&file, path, terms)?;
        let map = Map::of_file(&file, path, HEADER_LEN as u64, header.body_len())?;
        if terms.verify == Some(true)
            && let Err(damaged) = verify(&header, map.words())
        {
            if has_changed(&file, &header, path, terms) {
                continue;
            }
            return Err(damaged);
        }
        map.advise_random();
        return Ok((header, map));
    }
}

/// Whether a writer has opened the file since its header was read; the checksum then belongs to an
/// older body.
fn has_changed(file: &File, header: &Header, path: &Path, terms: Terms<'_>) -> bool {
    let again = reader_header(file, path, terms);
    // A half-written header counts as changed.
    !again.is_ok_and(|again| again == *header)
}

/// Maps a file for writing, shared with other processes.
pub(crate) fn share(path: &Path, terms: Terms<'_>) -> Result<(Header, Bytes), Error> {
    let (header, map) = SharedMap::open(path, terms)?;
    Ok((header, Bytes::shared(map)))
}
