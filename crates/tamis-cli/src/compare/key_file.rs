//! A file of keys, each stored as its length in 4 bytes and its bytes.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// The most bytes and keys per read, unless one key is larger.
const CHUNK_BYTES: usize = 128 << 10;
const CHUNK_KEYS: usize = 1024;

pub(crate) struct KeyWriter(BufWriter<File>);

impl KeyWriter {
    pub(crate) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self(BufWriter::with_capacity(
            CHUNK_BYTES,
            File::create_new(path)?,
        )))
    }

    pub(crate) fn write(&mut self, key: &[u8]) -> io::Result<()> {
        let length = u32::try_from(key.len()).map_err(io::Error::other)?;
        self.0.write_all(&length.to_le_bytes())?;
        self.0.write_all(key)
    }

    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// How often these keys fit in a chunk; at least 1.
pub(crate) fn fit(keys: &[&[u8]]) -> usize {
    let bytes: usize = keys.iter().map(|key| key.len()).sum();
    let times = (CHUNK_KEYS / keys.len().max(1)).min(CHUNK_BYTES / bytes.max(1));
    times.max(1)
}

/// Reads keys in chunks, so that few are in memory and reading can be left out of measured times.
pub(crate) struct KeyReader {
    file: BufReader<File>,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyReader {
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        Ok(Self {
            file: BufReader::with_capacity(CHUNK_BYTES, File::open(path)?),
            bytes: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// The next keys; empty at the end.
    pub(crate) fn chunk(&mut self) -> io::Result<Vec<&[u8]>> {
        self.bytes.clear();
        self.ends.clear();
        while self.bytes.len() < CHUNK_BYTES && self.ends.len() < CHUNK_KEYS {
            let mut length = [0; 4];
            match self.file.read_exact(&mut length) {
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => break,
                read => read?,
            }
            let start = self.bytes.len();
            self.bytes
                .resize(start + u32::from_le_bytes(length) as usize, 0);
            self.file.read_exact(&mut self.bytes[start..])?;
            self.ends.push(self.bytes.len());
        }
        let mut start = 0;
        let key = |&end: &usize| &self.bytes[std::mem::replace(&mut start, end)..end];
        Ok(self.ends.iter().map(key).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_all_sizes_come_back_in_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys");
        let keys: Vec<Vec<u8>> = (0..5000_usize)
            .map(|i| {
                let length = match i % 1000 {
                    0 => 0,
                    500 => 1 << 20,
                    other => other % 60,
                };
                vec![i as u8; length]
            })
            .collect();
        let mut writer = KeyWriter::create(&path).unwrap();
        keys.iter().for_each(|key| writer.write(key).unwrap());
        writer.finish().unwrap();
        let mut reader = KeyReader::open(&path).unwrap();
        let mut read: Vec<Vec<u8>> = Vec::new();
        loop {
            let chunk = reader.chunk().unwrap();
            if chunk.is_empty() {
                break;
            }
            read.extend(chunk.iter().map(|key| key.to_vec()));
        }
        assert!(read == keys);
    }
}
