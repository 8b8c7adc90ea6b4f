//! Shared by the tests: misbehaving inputs, random bytes, the naive oracle, and the engine on an exact set.
#![allow(dead_code)]

use crate::batch::Print;
use crate::exact::ExactSet;
use crate::input::{Input, Packing};
use crate::key::RecordRule;
use crate::pipeline::{self, Deciding, Job, run};
use crate::progress::Progress;
use crate::reader::{Inputs, Reader};
use std::collections::HashSet;
use std::io::{self, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tamis::Hash;

pub(crate) type Halt = pipeline::Halt<anyhow::Error>;
pub(crate) type Outcome = pipeline::Outcome<anyhow::Error>;

pub(crate) struct Random(pub u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    /// Up to `longest` bytes from `alphabet`.
    pub(crate) fn bytes(&mut self, alphabet: &[u8], longest: usize) -> Vec<u8> {
        (0..self.below(longest + 1))
            .map(|_| alphabet[self.below(alphabet.len())])
            .collect()
    }
}

/// Returns at most `step` bytes per read and, if requested, an error instead of the end.
pub(crate) struct Trickle {
    pub bytes: Cursor<Vec<u8>>,
    pub step: usize,
    pub fails: bool,
}

impl Trickle {
    pub(crate) fn new(bytes: &[u8], step: usize) -> Self {
        Self {
            bytes: Cursor::new(bytes.to_vec()),
            step,
            fails: false,
        }
    }
}

impl Read for Trickle {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let limit = into.len().min(self.step);
        match self.bytes.read(&mut into[..limit])? {
            0 if self.fails => Err(io::Error::other("the disk is on fire")),
            count => Ok(count),
        }
    }
}

/// Inputs named `input 1`, `input 2`, …
pub(crate) fn inputs(sources: Vec<Trickle>) -> Inputs {
    let open = |(i, source)| {
        Input::from_read(
            &format!("input {}", i + 1),
            source,
            Packing::Recognised,
            &Arc::default(),
        )
    };
    Box::new(sources.into_iter().enumerate().map(open))
}

pub(crate) struct Run {
    pub printed: Vec<u8>,
    pub records: u64,
    pub new: u64,
    pub without_key: u64,
    pub outcome: Outcome,
}

/// Decides with an exact set.
pub(crate) fn insert(set: &mut ExactSet, hashes: &[Hash], new: &mut [bool]) -> Result<(), Halt> {
    set.insert_many(hashes, new)
        .map_err(|error| Halt::Failed(error.into()))
}

pub(crate) fn dedup(
    sources: Vec<Trickle>,
    rule: &RecordRule,
    print: Print,
    threads: usize,
    chunk: usize,
) -> Run {
    let mut shards: Vec<ExactSet> = (0..5).map(|_| ExactSet::default()).collect();
    let mut printed = Vec::new();
    let progress = Progress::default();
    let outcome = run(Job {
        reader: Reader::new(inputs(sources), rule, chunk),
        rule,
        hash: |key: &[u8], _| tamis::Hasher::default().hash(key),
        shards: &mut shards,
        deciding: Deciding::ByShards,
        decide: insert,
        print,
        output: &mut printed,
        output_file: None,
        threads,
        progress: &progress,
        checkpoint: None,
    });
    let count = |counter: &std::sync::atomic::AtomicU64| counter.load(Ordering::Relaxed);
    Run {
        printed,
        records: count(&progress.records),
        new: count(&progress.chosen),
        without_key: count(&progress.without_key),
        outcome,
    }
}

/// The records to print, with the counts of all and of new ones, computed naively.
pub(crate) fn oracle(inputs: &[&[u8]], delimiter: u8, print: Print) -> (Vec<u8>, u64, u64) {
    let mut seen = HashSet::new();
    let (mut printed, mut records, mut new) = (Vec::new(), 0, 0);
    for input in inputs {
        // The mark is not text.
        let input = input.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(input);
        let mut lines: Vec<&[u8]> = input.split(|&byte| byte == delimiter).collect();
        if lines.last().is_some_and(|last| last.is_empty()) {
            lines.pop();
        }
        for line in lines {
            let key = if delimiter == b'\n' {
                line.strip_suffix(b"\r").unwrap_or(line)
            } else {
                line
            };
            let is_new = seen.insert(key.to_vec());
            records += 1;
            new += u64::from(is_new);
            if (print == Print::Chosen && is_new) || (print == Print::Others && !is_new) {
                printed.extend_from_slice(line);
                printed.push(delimiter);
            }
        }
    }
    (printed, records, new)
}
