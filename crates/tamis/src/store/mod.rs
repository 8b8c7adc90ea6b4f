//! Header and body as one run of bytes: in a file, in memory, as base64.

pub(crate) mod body;
pub(crate) mod file;
pub(crate) mod replace;
pub(crate) mod update;

use crate::error::Error;
use crate::hasher::SecretKey;
use crate::raw::header::{HEADER_LEN, Header, UNSEALED};
use crate::raw::word::{Word, for_each_piece};
use crate::store::body::{Body, Bytes, Map};
use crate::store::file::{FileLock, SharedMap};
use crate::store::replace::{Existing, Readers, open_regular, write_atomically};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use memmap2::MmapOptions;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// The checksum of a body; seeded with the count, so that it guards both.
fn checksum<W: Word>(words: &[W], keys: u64) -> u64 {
    let mut sum = Xxh3::with_seed(keys);
    let never: Result<(), std::convert::Infallible> = for_each_piece(words, |piece| {
        sum.update(piece);
        Ok(())
    });
    match never {
        Ok(()) => sum.digest(),
    }
}

/// The header with the body's checksum.
pub(crate) fn sealed<W: Word>(header: &Header, parts: &[&[W]]) -> Header {
    let mut header = *header;
    let mut sum = Xxh3::with_seed(header.state.keys);
    for words in parts {
        let never: Result<(), std::convert::Infallible> = for_each_piece(words, |piece| {
            sum.update(piece);
            Ok(())
        });
        let Ok(()) = never;
    }
    header.state.body_checksum = sum.digest();
    header
}

/// Compares the body with the header's checksum, where there is one.
pub(crate) fn verify<W: Word>(header: &Header, words: &[W]) -> Result<(), Error> {
    match header.state.body_checksum {
        UNSEALED => Ok(()),
        expected => compare(expected, checksum(words, header.state.keys)),
    }
}

/// [`verify`] for a body that nobody else can be writing.
fn verify_bytes(header: &Header, body: &[u8]) -> Result<(), Error> {
    match header.state.body_checksum {
        UNSEALED => Ok(()),
        expected => compare(expected, xxh3_64_with_seed(body, header.state.keys)),
    }
}

fn compare(expected: u64, got: u64) -> Result<(), Error> {
    match expected == got {
        true => Ok(()),
        false => Err(Error::corrupt(
            "body checksum",
            format_args!("{expected:016x}"),
            format_args!("{got:016x}"),
        )),
    }
}

/// Writes a snapshot, the parts of the body one after the other. What is summed up is what was
/// written, even while other threads add keys.
fn write<W: Word>(file: &mut File, header: &Header, parts: &[&[W]]) -> io::Result<()> {
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

/// A file that holds this very filter already is left alone.
pub(crate) fn save_under<W: Word>(
    lock: &mut FileLock,
    header: &Header,
    parts: &[&[W]],
) -> Result<(), Error> {
    let old = lock.header();
    if old == Some(sealed(header, parts).encode()) {
        return Ok(());
    }
    lock.replace(readers(header, old.as_ref()), |file| {
        write(file, header, parts)
    })
}

/// A file that contains its secret is readable by its owner alone, unless it
/// replaces another such file, whose permissions its owner has chosen.
fn readers(header: &Header, old: Option<&[u8; HEADER_LEN]>) -> Readers {
    let decided =
        || old.is_some_and(|old| Header::decode(old, None).is_ok_and(|old| old.holds_secret()));
    match header.holds_secret() && !decided() {
        true => Readers::Owner,
        false => Readers::AsUsual,
    }
}

pub(crate) fn checksum_of_zeros(len: u64, keys: u64) -> u64 {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let mut sum = Xxh3::with_seed(keys);
    for _ in 0..len / ZEROS.len() as u64 {
        sum.update(&ZEROS);
    }
    sum.update(&ZEROS[..(len % ZEROS.len() as u64) as usize]);
    sum.digest()
}

/// A file of zeros with a header, ready to be shared.
pub(crate) fn save_empty(path: &Path, header: &Header, existing: Existing) -> Result<(), Error> {
    let create = |file: &mut File| {
        file::reserve(file, HEADER_LEN as u64 + header.body_len())?;
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

pub(crate) fn encode<W: Word>(header: &Header, parts: &[&[W]]) -> Vec<u8> {
    let mut out = vec![0; HEADER_LEN];
    out.reserve_exact(parts.iter().map(|words| size_of_val(*words)).sum());
    for words in parts {
        let never: Result<(), std::convert::Infallible> = for_each_piece(words, |piece| {
            out.extend_from_slice(piece);
            Ok(())
        });
        let Ok(()) = never;
    }
    let mut header = *header;
    header.state.body_checksum = xxh3_64_with_seed(&out[HEADER_LEN..], header.state.keys);
    out[..HEADER_LEN].copy_from_slice(&header.encode());
    out
}

/// Up to `len` bytes from `at` on, of a body that lies in parts.
pub(crate) fn read<W: Word>(parts: &[&[W]], at: u64, len: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut skip, mut left) = (at, len);
    for words in parts {
        let size = size_of_val(*words) as u64;
        if skip >= size {
            skip -= size;
            continue;
        }
        // `at` and `len` may be no multiples of a word.
        let start = skip as usize;
        let end = start.saturating_add(left).min(size as usize);
        out.reserve_exact(end - start);
        let run = &words[start / 8..end.div_ceil(8)];
        let bytes = run.iter().flat_map(|word| word.get().to_le_bytes());
        out.extend(bytes.skip(start % 8).take(end - start));
        left -= end - start;
        skip = 0;
        if left == 0 {
            break;
        }
    }
    out
}

/// What the caller says when opening: the secret of a keyed filter, and whether
/// to accept a file that may have lost keys.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms<'a> {
    pub(crate) key: Option<&'a SecretKey>,
    pub(crate) accept_loss: bool,
    /// Whether to compare the body with its checksum. By default that happens
    /// where all of it is read anyway, and where the checksum would be lost.
    pub(crate) verify: Option<bool>,
}

impl Terms<'_> {
    fn check_clean(&self, header: &Header, path: &Path) -> Result<(), Error> {
        match self.accept_loss {
            true => Ok(()),
            false => file::check_clean(header, path),
        }
    }
}

/// Reads a whole file to the heap.
pub(crate) fn load(path: &Path, terms: Terms<'_>) -> Result<(Header, Bytes), Error> {
    loop {
        let mut file = open_regular(path, false)?;
        let header = file::read_header(&file, path, terms.key)?;
        terms.check_clean(&header, path)?;
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
        let header = file::read_header(&file, path, terms.key)?;
        terms.check_clean(&header, path)?;
        // SAFETY: the words are only loaded atomically, so other processes may
        // write the file meanwhile; that it must not shrink is documented.
        let map = unsafe {
            MmapOptions::new()
                .len(file::len_here(&header, path)?)
                .map(&file)
        }
        .map_err(Error::io("mapping", path))?;
        let map = Map::new(map, HEADER_LEN);
        if terms.verify == Some(true)
            && let Err(damaged) = verify(&header, map.words())
        {
            match has_changed(&file, &header, path, terms) {
                true => continue,
                false => return Err(damaged),
            }
        }
        map.advise_random();
        return Ok((header, map));
    }
}

/// Whether a writer has opened the file since its header was read; the checksum
/// then belongs to a body that no longer exists.
fn has_changed(mut file: &File, header: &Header, path: &Path, terms: Terms<'_>) -> bool {
    let again = file
        .seek(SeekFrom::Start(0))
        .map_err(Error::io("reading", path))
        .and_then(|_| file::read_header(file, path, terms.key));
    again.is_ok_and(|again| again != *header)
}

/// Maps a file for writing beside other processes.
pub(crate) fn share(path: &Path, terms: Terms<'_>) -> Result<(Header, Bytes), Error> {
    let (header, map) = SharedMap::open(path, terms)?;
    Ok((header, Bytes::shared(map)))
}

/// The header and the body within `bytes`, both checked.
pub(crate) fn view<'a>(bytes: &'a [u8], terms: Terms<'_>) -> Result<(Header, &'a [u8]), Error> {
    let header = Header::decode(bytes, terms.key)?;
    header.check_file_len(bytes.len() as u64)?;
    let body = &bytes[HEADER_LEN..][..header.body_len() as usize];
    if header.state.open_under.is_some() && !terms.accept_loss {
        // A copy of a file that was being written: whether it is whole, nobody
        // can tell.
        return Err(Error::Unclean { path: None });
    }
    verify_bytes(&header, body)?;
    Ok((header, body))
}

/// Copies the filter in `bytes` to the heap.
pub(crate) fn decode(bytes: &[u8], terms: Terms<'_>) -> Result<(Header, Bytes), Error> {
    let (header, body) = view(bytes, terms)?;
    let mut owned = Bytes::zeroed(header.body_len())?;
    owned
        .exclusive_bytes()
        .unwrap_or_default()
        .copy_from_slice(body);
    Ok((header, owned))
}

pub(crate) fn to_base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// White space is ignored: base64 in mails and files comes in lines.
pub(crate) fn from_base64(text: &str) -> Result<Vec<u8>, Error> {
    let compact: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    BASE64_STANDARD
        .decode(&compact)
        .map_err(|e| Error::corrupt("base64", "the text of `to_base64`", e))
}
