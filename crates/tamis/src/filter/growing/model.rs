//! A model of a growing file's writer and a reader that opens it, in every order. The writer is the
//! real code, on a file that the model watches.
//!
//! One write replaces the header, but readers may see it as two halves. A system call acts as a
//! fence: a process that reads a header also sees what its writer stored in the mapping before.

use super::*;
use crate::hash::Hash;
use crate::raw::header::HEADER_LEN;
use crate::store::body::Growable;
use crate::store::body::sealed::Sealed;
use crate::store::shared::settled;
use loom::sync::Arc;
use loom::sync::atomic::{
    AtomicU64, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};
use std::sync::Mutex;

/// A header, then the words of as many layers as there will be.
struct File {
    /// Every header written; `halves` has how many of them each half shows.
    headers: Mutex<Vec<[u8; HEADER_LEN]>>,
    halves: [AtomicUsize; 2],
    len: AtomicU64,
    words: Vec<AtomicU64>,
}

impl File {
    fn new(filter: &Growing, room: usize) -> Self {
        let mut header = filter.header();
        // Readers open the file while it is open for writing.
        header.state.open_under = Some([1; 16]);
        let bytes = filter.to_bytes();
        let body = bytes[HEADER_LEN..].as_chunks().0.iter();
        let body = body.map(|word| u64::from_le_bytes(*word));
        Self {
            headers: Mutex::new(vec![header.encode()]),
            halves: [AtomicUsize::new(0), AtomicUsize::new(0)],
            len: AtomicU64::new(bytes.len() as u64),
            words: body
                .chain(std::iter::repeat(0))
                .take(room)
                .map(AtomicU64::new)
                .collect(),
        }
    }

    fn write(&self, header: &Header) {
        let mut header = *header;
        header.state.open_under = Some([1; 16]);
        let mut headers = self.headers.lock().unwrap();
        headers.push(header.encode());
        let version = headers.len() - 1;
        drop(headers);
        fence(Release);
        for half in &self.halves {
            half.store(version, Relaxed);
        }
    }

    fn read(&self) -> Vec<u8> {
        let versions = [0, 1].map(|half| self.halves[half].load(Relaxed));
        fence(Acquire);
        let headers = self.headers.lock().unwrap();
        let [first, second] = versions.map(|version| headers[version]);
        let half = HEADER_LEN / 2;
        [&first[..half], &second[half..]].concat()
    }
}

/// A part of the file, mapped.
struct Part {
    file: Arc<File>,
    at: usize,
    len: usize,
}

impl Sealed for Part {}

impl Body for Part {
    type Word = AtomicU64;

    fn words(&self) -> &[AtomicU64] {
        &self.file.words[self.at..][..self.len]
    }
}

impl Growable for Part {
    fn exclusive(&mut self) -> Option<&mut [u64]> {
        None
    }

    fn append(&self, len: u64, more: u64) -> Result<Self, Error> {
        self.file.len.store(HEADER_LEN as u64 + len + more, Release);
        Ok(Self {
            file: self.file.clone(),
            at: len as usize / 8,
            len: more as usize / 8,
        })
    }

    fn commit(&self, header: &Header) -> Result<(), Error> {
        self.file.write(header);
        Ok(())
    }
}

fn open(file: &Arc<File>) -> Result<Growing<Part>, Error> {
    let read = || Ok(file.read());
    let header = settled(
        read,
        |bytes| Header::decode(bytes, None),
        loom::thread::yield_now,
    )?;
    header.check_file_len(file.len.load(Acquire))?;
    let body = Part {
        file: file.clone(),
        at: 0,
        len: header.body_len() as usize / 8,
    };
    Growing::assemble((header, body))
}

fn hash(key: u64) -> Hash {
    Hasher::default().hash(&key.to_le_bytes())
}

/// Starts with a filter that is full, so that the next key adds a layer.
#[test]
fn who_opens_a_file_that_grows_finds_all_that_was_acknowledged() {
    let times = Expansion::Times(1);
    let mut full = Growing::reserve(1, 0.5, times, Hasher::default()).unwrap();
    full.insert(hash(1)).unwrap();
    assert!(full.room() == 0 && !full.contains(hash(2)));
    let room = (full.bytes() + full.growth_bytes()) as usize / 8;

    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(2);
    builder.check(move || {
        let file = Arc::new(File::new(&full, room));
        let acknowledged = Arc::new(AtomicU64::new(1));
        let mut writer = open(&file).unwrap();
        writer.expansion = times;
        let reader = loom::thread::spawn({
            let (file, acknowledged) = (file.clone(), acknowledged.clone());
            move || {
                let added = acknowledged.load(Acquire);
                let seen = open(&file).unwrap();
                assert!((1..=added).all(|key| seen.contains(hash(key))));
            }
        });
        assert!(writer.add(hash(2)).unwrap());
        acknowledged.store(2, Release);
        reader.join().unwrap();
        assert_eq!(open(&file).unwrap().layers.len(), 2);
    });
}
