//! Header and body as consecutive bytes, and as base64.

use crate::error::Error;
use crate::raw::header::{HEADER_LEN, Header};
use crate::raw::word::{Word, for_each_piece};
use crate::store::body::Bytes;
use crate::store::check::{Terms, verify_bytes};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use std::convert::Infallible;
use xxhash_rust::xxh3::xxh3_64_with_seed;

pub(crate) fn encode<W: Word>(header: &Header, parts: &[&[W]]) -> Vec<u8> {
    let mut out = vec![0; HEADER_LEN];
    out.reserve_exact(parts.iter().map(|words| size_of_val(*words)).sum());
    for words in parts {
        let Ok(()) = for_each_piece(words, |piece| {
            out.extend_from_slice(piece);
            Ok::<(), Infallible>(())
        });
    }
    let mut header = *header;
    header.state.body_checksum = xxh3_64_with_seed(&out[HEADER_LEN..], header.state.keys);
    out[..HEADER_LEN].copy_from_slice(&header.encode());
    out
}

/// Up to `len` bytes from `at` on, of a body in several parts.
pub(crate) fn read<W: Word>(parts: &[&[W]], at: u64, len: usize) -> Vec<u8> {
    let all: u64 = parts.iter().map(|words| size_of_val(*words) as u64).sum();
    let mut out = Vec::with_capacity(all.saturating_sub(at).min(len as u64) as usize);
    let mut skip = (at / 8) as usize;
    for words in parts {
        let run = words.get(skip..).unwrap_or_default();
        skip = skip.saturating_sub(words.len());
        // `at` and `len` needn't be multiples of a word.
        let bytes = run.iter().flat_map(|word| word.get().to_le_bytes());
        let before = if out.is_empty() { (at % 8) as usize } else { 0 };
        out.extend(bytes.skip(before).take(len - out.len()));
    }
    out
}

/// The header and the body in `bytes`, both checked.
pub(crate) fn view<'a>(bytes: &'a [u8], terms: Terms<'_>) -> Result<(Header, &'a [u8]), Error> {
    let header = Header::decode(bytes, terms.key)?;
    header.check_file_len(bytes.len() as u64)?;
    let body = &bytes[HEADER_LEN..][..header.body_len() as usize];
    header.check_clean(terms.accept_loss)?;
    verify_bytes(&header, body)?;
    Ok((header, body))
}

/// Copies the filter in `bytes` to the heap.
pub(crate) fn decode(bytes: &[u8], terms: Terms<'_>) -> Result<(Header, Bytes), Error> {
    let (header, body) = view(bytes, terms)?;
    Ok((header, Bytes::copied(header.body_len(), body)?))
}

pub(crate) fn to_base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Ignores white space: base64 in mails and files is split into lines.
pub(crate) fn from_base64(text: &str) -> Result<Vec<u8>, Error> {
    let compact: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    BASE64_STANDARD
        .decode(&compact)
        .map_err(|e| Error::corrupt("base64", "the text of `to_base64`", e))
}
