//! The keys of a file.

use crate::formats::{self, FileClass};
use crate::input::{Input, InputError, Packing};
use crate::key::{KeySpec, Keys, Missing, Part, RecordRule, Source};
use crate::pipeline::EndOnPanic;
use crate::progress::Progress;
use crate::reader::CHUNK;
use crate::reader::{Chunk, Reader};
use crate::turn::Turn;
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use tamis::index::EntryKeys;
use tamis::{Hash, Hasher};

/// What is longer is no line, row or word that anybody looks for, and a few bytes of compressed data can become it.
const LONGEST_RECORD: usize = 64 << 20;
/// Compressed data that becomes more than this, and more than `MOST_TIMES` as much as it was, is not read to its end.
const MOST_BYTES: u64 = 256 << 20;
const MOST_TIMES: u64 = 2_000;

/// What there is to say of a file and a spec, though all went well.
#[derive(Debug, Default)]
pub struct Remarks {
    /// Records without the key.
    pub without_key: u64,
    /// Why the file has no such key at all.
    pub no_column: Option<String>,
    /// Why its keys are not all known.
    pub unknown: Option<String>,
}

/// Adds the keys of a file. For each spec, what there is to say.
pub fn scan(
    path: &Path,
    specs: &[KeySpec],
    hasher: &Hasher,
    keys: &mut EntryKeys,
    progress: &Arc<Progress>,
) -> Result<Vec<Remarks>, InputError> {
    let scan = |(number, spec): (usize, &KeySpec)| {
        let mut remarks = Remarks::default();
        let mut recent = Recent::default();
        let mut add = |key: &[u8]| {
            let hash = hasher.hash(key);
            if recent.is_new(hash) {
                keys.add_hash(number, hash);
            }
        };
        match scan_one(path, spec, &mut add, &mut remarks, progress) {
            Err(error) if error.is_no_column() => remarks.no_column = Some(error.cause.to_string()),
            Err(error) if error.is_not_read() => remarks.unknown = Some(error.cause.to_string()),
            scanned => scanned?,
        }
        if let Some(why) = &remarks.unknown {
            remarks.without_key = 0;
            keys.set_unknown(number, why);
        }
        Ok(remarks)
    };
    specs.iter().enumerate().map(scan).collect()
}

/// Remembers some of the last keys: most words of a log are those of the line before, and need not be sorted out later.
struct Recent(Vec<Option<Hash>>);

impl Default for Recent {
    fn default() -> Self {
        Self(vec![None; 1 << 13])
    }
}

impl Recent {
    #[inline]
    fn is_new(&mut self, hash: Hash) -> bool {
        let slot = &mut self.0[hash.as_u128() as usize % (1 << 13)];
        slot.replace(hash) != Some(hash)
    }
}

fn scan_one(
    path: &Path,
    spec: &KeySpec,
    add: &mut impl FnMut(&[u8]),
    remarks: &mut Remarks,
    progress: &Arc<Progress>,
) -> Result<(), InputError> {
    let mut maker = Keys::new(spec);
    match open(path, spec, progress)? {
        Kind::Text(input) => {
            let limits = Limits::of(path, &input);
            let mut number: u64 = 0;
            for_each_chunk(input, spec.rule(), limits, progress, |chunk| {
                let framing = chunk.framing;
                let records = chunk.records();
                let before = number;
                let mut malformed = None;
                framing.for_each(records, |start, end| {
                    number += 1;
                    let content = framing.content(&records[start..end]);
                    match maker.each(content, &chunk.columns, &mut *add) {
                        Ok(()) => {}
                        Err(Missing::Value) => remarks.without_key += 1,
                        Err(Missing::Malformed(what)) => {
                            malformed.get_or_insert_with(|| format!("record {number}: {what}"));
                        }
                    }
                });
                progress.records.fetch_add(number - before, Relaxed);
                malformed.map_or(Ok(()), Err)
            })
        }
        Kind::Parquet(file, columns) => for_each_row(path, file, columns, progress, |_, values| {
            maker.of_values(values).into_iter().for_each(&mut *add);
        }),
    }
}

/// A file, and how the keys of a spec are read from it.
pub enum Kind<'s> {
    /// Lines or rows of text.
    Text(Input),
    /// With the names of the key columns.
    Parquet(File, &'s [String]),
}

/// Opens a file for the keys of a spec. Columns of CSV or Parquet are not to be looked for in the other; what is neither
/// text nor Parquet is not read.
pub fn open<'s>(
    path: &Path,
    spec: &'s KeySpec,
    progress: &Arc<Progress>,
) -> Result<Kind<'s>, InputError> {
    let name = path.display().to_string();
    let failed = |cause| InputError {
        name: path.display().to_string(),
        cause,
    };
    let open = || File::open(path).map_err(failed);
    let mut input = Input::from_file(&name, open()?, Packing::Recognised, progress)?;
    let kind = formats::not_text(input.peek(formats::HEAD));
    let lines = matches!(spec.rule().part, Part::Whole(_));
    match (spec.source(), kind.map(|kind| (kind.class, kind.name))) {
        (Source::Parquet(columns), Some((FileClass::Parquet, _))) if !input.is_compressed() => {
            Ok(Kind::Parquet(open()?, columns))
        }
        (Source::Parquet(_), Some((FileClass::Parquet | FileClass::EncryptedParquet, what))) => {
            Err(InputError::not_read(&name, what))
        }
        (Source::Parquet(_), _) => Err(InputError::no_column(&name, "not a Parquet file")),
        (_, Some((FileClass::Parquet, what))) if !lines => Err(InputError::no_column(&name, what)),
        (_, Some((_, what))) => Err(InputError::not_read(&name, what)),
        (_, None) => Ok(Kind::Text(input)),
    }
}

/// How much of a file is read.
#[derive(Clone, Copy)]
struct Limits {
    record: usize,
    bytes: u64,
}

impl Limits {
    /// As much as a file of that size holds, unless somebody made it to be unpacked for ever.
    fn of(path: &Path, input: &Input) -> Self {
        let size = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        Self {
            record: LONGEST_RECORD,
            bytes: match input.is_compressed() {
                true => MOST_BYTES.max(size.saturating_mul(MOST_TIMES)),
                false => u64::MAX,
            },
        }
    }
}

/// Reads a file to its end, or to the first error.
fn for_each_chunk(
    input: Input,
    rule: &RecordRule,
    limits: Limits,
    progress: &Arc<Progress>,
    mut each: impl FnMut(&Chunk) -> Result<(), String>,
) -> Result<(), InputError> {
    let name = input.name().to_owned();
    let failed = |why: String| InputError::not_read(&name, why);
    let mut reader = Reader::new(Box::new(std::iter::once(Ok(input))), rule, CHUNK)
        .longest_record(limits.record);
    let mut chunk = Chunk::default();
    let mut bytes = 0;
    while reader.read(&mut chunk) {
        if progress.stop.load(Relaxed) {
            return Err(InputError::stopped(&name));
        }
        bytes += chunk.length as u64;
        if bytes > limits.bytes {
            let why = format!("it becomes more than {MOST_TIMES} times as large when unpacked");
            return Err(failed(why));
        }
        each(&chunk).map_err(failed)?;
    }
    match reader.into_errors().pop() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Reads a file to its end, or to the first error, on several threads: they take turns to read, `work`
/// freely, and `take` gets what they made of the chunks, in order.
pub fn map_chunks<R: Send>(
    input: Input,
    rule: &RecordRule,
    threads: usize,
    progress: &Arc<Progress>,
    work: impl Fn(&Chunk) -> R + Sync,
    take: impl FnMut(R) + Send,
) -> Result<(), InputError> {
    let name = input.name().to_owned();
    let reader = Reader::new(Box::new(std::iter::once(Ok(input))), rule, CHUNK);
    let reader = Mutex::new((reader, 0));
    let results = Turn::new(take);
    let run = || {
        let _guard = EndOnPanic;
        let mut chunk = Chunk::default();
        loop {
            let number = {
                let mut reader = reader.lock().expect("no thread panics while it reads");
                if progress.stop.load(Relaxed) || !reader.0.read(&mut chunk) {
                    return;
                }
                reader.1 += 1;
                reader.1 - 1
            };
            let made = work(&chunk);
            let mut take = results.wait(number);
            take(made);
            take.pass();
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
    let (reader, _) = reader.into_inner().expect("threads have ended well");
    match reader.into_errors().pop() {
        Some(error) => Err(error),
        None if progress.stop.load(Relaxed) => Err(InputError::stopped(&name)),
        None => Ok(()),
    }
}

/// Reads the rows of a Parquet file in which none of the columns is null.
pub fn for_each_row(
    path: &Path,
    file: File,
    columns: &[String],
    progress: &Arc<Progress>,
    mut each: impl FnMut(u64, &[&[u8]]),
) -> Result<(), InputError> {
    use crate::key::parquet::{self, Failure};
    use std::panic::{AssertUnwindSafe, catch_unwind};
    let name = path.display().to_string();
    let mut is_stopped = false;
    let read = || {
        parquet::for_each_row(file, columns, |row, values| {
            each(row, values);
            is_stopped = row % 1024 == 0 && progress.stop.load(Relaxed);
            !is_stopped
        })
    };
    // A damaged file must not end the run, and the decoder makes no promise. What it leaves behind is not used again.
    let cause = match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(())) if is_stopped => return Err(InputError::stopped(&name)),
        Ok(Ok(())) => return Ok(()),
        Ok(Err(Failure::Read(cause))) => cause,
        Ok(Err(Failure::NoColumn(what))) => return Err(InputError::no_column(&name, what)),
        Err(_) => io::Error::new(io::ErrorKind::InvalidData, "the Parquet data is damaged"),
    };
    Err(InputError { name, cause })
}
