//! How often each record occurs. That is only known at the end, so the first of each is kept until then.

use super::{Memory, Task};
use crate::output::Sink;
use crate::stream::{Pass, Report};
use anyhow::{Context, Result};
use std::collections::HashMap;
use std::io::{self, Write};
use tamis::{Hash, Hasher, SecretKey};
use tamis_records::batch::Print;

/// How often each key occurred, in order of first occurrence.
#[derive(Default)]
struct Tally {
    places: HashMap<Hash, usize>,
    counts: Vec<u64>,
}

impl Tally {
    fn count(&mut self, keys: &[Hash], new: &mut [bool]) -> Result<()> {
        let reserved = self.places.try_reserve(keys.len());
        let reserved = reserved.and_then(|()| self.counts.try_reserve(keys.len()));
        reserved.context("out of memory: there are too many different records to count them")?;
        for (key, new) in keys.iter().zip(new) {
            let next = self.counts.len();
            let place = *self.places.entry(*key).or_insert(next);
            *new = place == next;
            if *new {
                self.counts.push(0);
            }
            self.counts[place] += 1;
        }
        Ok(())
    }

    fn once(&self) -> u64 {
        self.counts.iter().filter(|count| **count == 1).count() as u64
    }

    fn bytes(&self) -> usize {
        // A key, its place, and one byte of the table's overhead.
        let place = size_of::<(Hash, usize)>() + 1;
        self.places.capacity() * place + self.counts.capacity() * size_of::<u64>()
    }
}

/// Records as [`Print::Measured`] writes them, in memory. Running out of memory is an error.
#[derive(Default)]
struct Kept(Vec<u8>);

impl Write for Kept {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let reserved = self.0.try_reserve(bytes.len());
        reserved.map_err(|_| io::ErrorKind::OutOfMemory)?;
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Kept {
    fn records(&self) -> impl Iterator<Item = &[u8]> {
        let mut rest = &self.0[..];
        std::iter::from_fn(move || {
            let (length, behind) = rest.split_first_chunk()?;
            let (record, more) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
            rest = more;
            Some(record)
        })
    }
}

/// Counts by digests of all keys, as with `--exact`.
pub(super) fn with_counts(task: &Task, sink: &mut Sink) -> Result<(Report, Memory)> {
    let hasher = task.input.hasher(Hasher::keyed(SecretKey::random()?));
    let (mut tally, mut kept) = (Tally::default(), Kept::default());
    let print = match task.args.count {
        true => Print::Nothing,
        false => Print::Measured,
    };
    let report = Pass::new(&task.input, &hasher, &mut [&mut tally])
        .print(print, &mut kept)
        .run(|tally, keys, new| Ok(tally.count(keys, new)?))?;
    if report.is_printed() {
        print_counted(task, &tally, &kept, sink).context("writing the output")?;
    }
    let bytes = tally.bytes() + kept.0.capacity();
    let memory = Memory {
        once: Some(tally.once()),
        ..Memory::local(bytes as u64, 0.0)
    };
    Ok((report, memory))
}

fn print_counted(task: &Task, tally: &Tally, kept: &Kept, sink: &mut Sink) -> io::Result<()> {
    let (has_counts, only_once) = (task.args.tally, task.args.unique);
    let mut out = io::BufWriter::with_capacity(1 << 16, sink);
    // Rows beyond the counted ones are the header.
    let header = kept.records().count().saturating_sub(tally.counts.len());
    for row in kept.records().take(header) {
        out.write_all(row)?;
    }
    for (record, count) in kept.records().skip(header).zip(&tally.counts) {
        if only_once && *count > 1 {
            continue;
        }
        if has_counts {
            // The format of `uniq -c`.
            write!(out, "{count:>7} ")?;
        }
        out.write_all(record)?;
    }
    out.flush()
}
