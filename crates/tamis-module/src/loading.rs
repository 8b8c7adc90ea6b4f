//! A filter that arrives in chunks. Until the last one it answers nothing, and takes no more memory than the chunks
//! received.

use crate::error::Error;

/// The chunks so far. Each chunk names its end position, as SCANDUMP gave it: 1 plus all bytes so far.
#[derive(Clone, Debug)]
pub struct Loading {
    header: Vec<u8>,
    expected: u64,
    received: Vec<u8>,
}

impl Loading {
    /// Starts with a header, which this many bytes will follow.
    pub fn new(header: &[u8], expected: u64) -> Self {
        Self {
            header: header.to_vec(),
            expected,
            received: Vec::new(),
        }
    }

    pub fn header(&self) -> &[u8] {
        &self.header
    }

    pub fn received(&self) -> &[u8] {
        &self.received
    }

    pub const fn expected(&self) -> u64 {
        self.expected
    }

    pub fn is_whole(&self) -> bool {
        self.received.len() as u64 == self.expected
    }

    pub fn bytes(&self) -> usize {
        self.header.capacity() + self.received.capacity()
    }

    /// Takes the next chunk, or a repeat of the last one.
    pub fn push(&mut self, end: u64, chunk: &[u8]) -> Result<(), Error> {
        let received = self.received.len() as u64;
        let start = (end.checked_sub(1)).and_then(|end| end.checked_sub(chunk.len() as u64));
        let start = start.ok_or(Error::NO_LINK)?;
        if start < received {
            // Sent again because the answer was lost.
            let place = self.received.get(start as usize..(end - 1) as usize);
            return (place == Some(chunk)).then_some(()).ok_or(Error::NO_LINK);
        }
        if start > received {
            return Err(Error::NO_LINK);
        }
        if received + chunk.len() as u64 > self.expected {
            return Err(Error::TOO_BIG);
        }
        let more = self.received.try_reserve(chunk.len());
        more.map_err(|_| Error::new("ERR Insufficient memory"))?;
        self.received.extend_from_slice(chunk);
        Ok(())
    }

    /// The error for commands other than LOADCHUNK.
    pub fn refusal(&self) -> Error {
        let (have, of) = (self.received.len(), self.expected);
        Error(format!("ERR the filter is being loaded: {have} of {of} bytes have come").into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_come_in_order() {
        let mut loading = Loading::new(b"head", 10);
        assert!(loading.push(11, b"678").is_err()); // a gap
        loading.push(6, b"01234").unwrap();
        loading.push(6, b"01234").unwrap(); // once more
        assert!(loading.push(6, b"01235").is_err());
        assert!(loading.push(0, b"").is_err() && loading.push(3, b"abcdef").is_err());
        assert!(loading.push(13, b"5678901").is_err()); // too long
        assert!(!loading.is_whole());
        loading.push(11, b"56789").unwrap();
        assert!(loading.is_whole());
        assert_eq!(loading.received(), b"0123456789");
    }
}
