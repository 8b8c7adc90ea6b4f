//! Compresses output files according to their names.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

/// A file and its compressor.
pub(crate) enum Encoder {
    Plain(File),
    Gzip(flate2::write::GzEncoder<File>),
    Zstd(zstd::Encoder<'static, File>),
    Bzip2(bzip2::write::BzEncoder<File>),
    Xz(liblzma::write::XzEncoder<File>),
}

impl Encoder {
    pub(crate) fn by_name(name: &Path, file: File) -> io::Result<Self> {
        let end = name.extension().and_then(|end| end.to_str());
        Ok(match end {
            Some("gz") => Self::Gzip(flate2::write::GzEncoder::new(
                file,
                flate2::Compression::default(),
            )),
            Some("zst") => Self::Zstd(zstd::Encoder::new(file, 0)?),
            Some("bz2") => Self::Bzip2(bzip2::write::BzEncoder::new(
                file,
                bzip2::Compression::default(),
            )),
            Some("xz") => Self::Xz(liblzma::write::XzEncoder::new(file, 6)),
            _ => Self::Plain(file),
        })
    }

    pub(crate) fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(to) => to.write_all(bytes),
            Self::Gzip(to) => to.write_all(bytes),
            Self::Zstd(to) => to.write_all(bytes),
            Self::Bzip2(to) => to.write_all(bytes),
            Self::Xz(to) => to.write_all(bytes),
        }
    }

    pub(crate) fn finish(self) -> io::Result<File> {
        match self {
            Self::Plain(to) => Ok(to),
            Self::Gzip(to) => to.finish(),
            Self::Zstd(to) => to.finish(),
            Self::Bzip2(to) => to.finish(),
            Self::Xz(to) => to.finish(),
        }
    }
}
