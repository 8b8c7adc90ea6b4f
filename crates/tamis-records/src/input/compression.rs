//! Formats of compressed data: how they are recognised, and what their decoders may do.

use super::{Left, is_trailing, left};
use std::io;

/// The longest signature: bzip2's `BZh9` and the first 6 bytes of a block.
pub(super) const SIGNATURE: usize = 10;
/// A decoder's limit for the window that back-references reach: that of zstd's default, and twice that of `xz -9`.
/// Without a limit, a file of a few bytes can ask for gigabytes.
pub(super) const WINDOW_LOG: u32 = 27;
/// On damaged data, most decoders lose what the failing call has decoded, so calls are small.
const DECODED_READ: usize = 16 << 10;

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not compressed.
    None,
    /// Members of gzip; includes BGZF.
    Gzip,
    /// Frames of zstd.
    Zstd,
    /// Streams of bzip2.
    Bzip2,
    /// Streams of xz.
    Xz,
}

/// The first bytes of a format.
struct Signature {
    compression: Compression,
    bytes: &'static [u8],
    /// A byte of which only the upper half counts.
    loose: Option<usize>,
}

const SIGNATURES: [Signature; 6] = [
    Signature {
        compression: Compression::Gzip,
        bytes: &[0x1F, 0x8B, 8],
        loose: None,
    },
    Signature {
        compression: Compression::Zstd,
        bytes: &[0x28, 0xB5, 0x2F, 0xFD],
        loose: None,
    },
    // Skippable frames, which parallel compressors put first.
    Signature {
        compression: Compression::Zstd,
        bytes: &[0x50, 0x2A, 0x4D, 0x18],
        loose: Some(0),
    },
    // A text may start with "BZh9", but not followed by the first block or the end of an empty stream.
    Signature {
        compression: Compression::Bzip2,
        bytes: b"BZh0\x31\x41\x59\x26\x53\x59",
        loose: Some(3),
    },
    Signature {
        compression: Compression::Bzip2,
        bytes: b"BZh0\x17\x72\x45\x38\x50\x90",
        loose: Some(3),
    },
    Signature {
        compression: Compression::Xz,
        bytes: b"\xFD7zXZ\0",
        loose: None,
    },
];

impl Signature {
    /// Whether `bytes` and this signature agree up to the end of the shorter one.
    fn fits(&self, bytes: &[u8]) -> bool {
        let mask = |at| if self.loose == Some(at) { 0xF0 } else { 0xFF };
        self.bytes
            .iter()
            .zip(bytes)
            .enumerate()
            .all(|(at, (a, b))| (a ^ b) & mask(at) == 0)
    }
}

impl Compression {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let found = SIGNATURES
            .iter()
            .find(|s| bytes.len() >= s.bytes.len() && s.fits(bytes));
        found.map_or(Self::None, |s| s.compression)
    }

    /// Whether `bytes` could still become a signature. Only then may we wait for more: a terminal or a slow pipe must
    /// not hang on a first line of two bytes.
    pub(super) fn undecided(bytes: &[u8]) -> bool {
        SIGNATURES
            .iter()
            .any(|s| bytes.len() < s.bytes.len() && s.fits(bytes))
    }

    /// Whether `bytes` agree with a signature of this format, up to the end of the shorter one.
    pub(super) fn may_begin(self, bytes: &[u8]) -> bool {
        let mut own = SIGNATURES.iter().filter(|s| s.compression == self);
        own.any(|s| s.fits(bytes))
    }

    /// Bytes to decode at once.
    pub(super) fn read_limit(self) -> usize {
        match self {
            Self::None | Self::Gzip => usize::MAX,
            Self::Zstd | Self::Bzip2 | Self::Xz => DECODED_READ,
        }
    }

    /// Translates a decoder's error into one about the file.
    pub(super) fn explain(self, cause: io::Error) -> io::Error {
        let of_the_system = cause.raw_os_error().is_some()
            || left(&cause).is_some()
            || is_trailing(&cause)
            || self == Self::None;
        if of_the_system {
            return cause;
        }
        let packing = self.name();
        if asks_for_too_much(&cause) {
            let most = 1 << (WINDOW_LOG - 20);
            let why = format!("unpacking the {packing} data needs more than {most} MiB");
            return Left::NotRead(why).into();
        }
        let what = match cause.kind() {
            io::ErrorKind::UnexpectedEof => "cut short".to_owned(),
            _ => format!("damaged: {cause}"),
        };
        io::Error::new(cause.kind(), format!("the {packing} data is {what}"))
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "plain",
            Self::Gzip => "gzip",
            Self::Zstd => "zstd",
            Self::Bzip2 => "bzip2",
            Self::Xz => "xz",
        }
    }
}

/// Whether a decoder needs more memory than allowed. Only the texts of the errors show it.
fn asks_for_too_much(error: &io::Error) -> bool {
    let text = error.to_string();
    text.contains("too much memory") || text.contains("memory limit")
}
