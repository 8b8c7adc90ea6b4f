//! Checks on opening a filter: the body's checksum, and what the caller accepts.

use crate::error::Error;
use crate::hasher::SecretKey;
use crate::raw::header::{Header, UNSEALED};
use crate::raw::word::{Word, for_each_piece};
use std::convert::Infallible;
use xxhash_rust::xxh3::{Xxh3, xxh3_64_with_seed};

/// The caller's options for opening a filter.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Terms<'a> {
    /// The secret of a keyed filter.
    pub(crate) key: Option<&'a SecretKey>,
    /// Whether to accept a file that may have lost keys.
    pub(crate) accept_loss: bool,
    /// Whether to compare the body with its checksum. By default this happens if all of it is read
    /// anyway, or the checksum would be lost.
    #[cfg(feature = "files")]
    pub(crate) verify: Option<bool>,
}

/// The checksum of a body in parts; seeded with the count to protect both.
fn checksum<W: Word>(parts: &[&[W]], keys: u64) -> u64 {
    let mut sum = Xxh3::with_seed(keys);
    for words in parts {
        let Ok(()) = for_each_piece(words, |piece| {
            sum.update(piece);
            Ok::<(), Infallible>(())
        });
    }
    sum.digest()
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

/// The header, with the body's checksum added.
pub(crate) fn sealed<W: Word>(header: &Header, parts: &[&[W]]) -> Header {
    let mut header = *header;
    header.state.body_checksum = checksum(parts, header.state.keys);
    header
}

/// Compares the body with the header's checksum, if there is one.
pub(crate) fn verify<W: Word>(header: &Header, words: &[W]) -> Result<(), Error> {
    compare(header, || checksum(&[words], header.state.keys))
}

/// [`verify`] for a body without concurrent writers.
pub(crate) fn verify_bytes(header: &Header, body: &[u8]) -> Result<(), Error> {
    compare(header, || xxh3_64_with_seed(body, header.state.keys))
}

fn compare(header: &Header, got: impl FnOnce() -> u64) -> Result<(), Error> {
    let expected = header.state.body_checksum;
    if expected == UNSEALED {
        return Ok(());
    }
    let got = got();
    if expected == got {
        return Ok(());
    }
    Err(Error::corrupt(
        "body checksum",
        format_args!("{expected:016x}"),
        format_args!("{got:016x}"),
    ))
}
