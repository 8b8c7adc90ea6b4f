//! Bits in slices, with one bit of a key in each, whose positions are pieces of long digests (pybloom_live).

use crate::hash::{md, sha2};

/// The hash of pybloom_live; shorter if it needs fewer bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Digest {
    /// Up to version 3.
    Md5,
    /// From version 4 on, instead.
    Xxh128,
    Sha1,
    Sha256,
    Sha384,
    Sha512,
}

impl Digest {
    fn of(self, bytes: &[u8]) -> Vec<u8> {
        match self {
            Self::Md5 => md::md5(bytes).to_vec(),
            Self::Xxh128 => xxhash_rust::xxh3::xxh3_128(bytes).to_be_bytes().to_vec(),
            Self::Sha1 => md::sha1(bytes).to_vec(),
            Self::Sha256 => sha2::sha256(bytes).to_vec(),
            Self::Sha384 => sha2::sha384(bytes).to_vec(),
            Self::Sha512 => sha2::sha512(bytes).to_vec(),
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "md5",
            Self::Xxh128 => "xxh3-128",
            Self::Sha1 => "sha1",
            Self::Sha256 => "sha256",
            Self::Sha384 => "sha384",
            Self::Sha512 => "sha512",
        }
    }
}

/// The number and length of slices, and how a key's bits are found in them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Slices {
    pub(crate) count: u64,
    /// Bits per slice.
    pub(crate) long: u64,
    pub(crate) digest: Digest,
    /// Bytes per position.
    piece: usize,
    /// Hashed before the key: as many as needed for the positions in all slices.
    salts: Vec<Vec<u8>>,
}

impl Slices {
    /// As pybloom_live chooses; `is_old` means up to version 3, where that makes a difference.
    pub(crate) fn new(count: u64, long: u64, is_old: bool) -> Self {
        let piece = match long {
            0x8000_0000.. => 8,
            0x8000.. => 4,
            _ => 2,
        };
        let digest = match 8 * count * piece as u64 {
            385.. => Digest::Sha512,
            257.. => Digest::Sha384,
            161.. => Digest::Sha256,
            129.. => Digest::Sha1,
            _ if is_old => Digest::Md5,
            _ => Digest::Xxh128,
        };
        let each = (digest.of(&[]).len() / piece) as u64;
        let salts = (0..count.div_ceil(each) as u32)
            .map(|i| digest.of(&i.to_le_bytes()))
            .collect();
        Self {
            count,
            long,
            digest,
            piece,
            salts,
        }
    }

    /// Calls `each` with the key's bit positions for as long as it returns true; returns whether it always did.
    pub(crate) fn all(&self, key: &[u8], mut each: impl FnMut(u64) -> bool) -> bool {
        let mut slice = 0;
        self.salts.iter().all(|salt| {
            let digest = self.digest.of(&[salt, key].concat());
            let mut pieces = digest.chunks_exact(self.piece);
            pieces.all(|piece| {
                if slice == self.count {
                    return true;
                }
                let number = piece
                    .iter()
                    .rev()
                    .fold(0, |n, byte| n << 8 | u64::from(*byte));
                let bit = slice * self.long + number % self.long;
                slice += 1;
                each(bit)
            })
        })
    }
}
