//! The keys of a file.

use crate::engine::input::{Input, InputError, NoColumn, Stopped};
use crate::engine::key::{KeyRule, KeySpec, Keys, Part, Source};
use crate::engine::progress::Progress;
use crate::engine::reader::{Chunk, Reader};
use crate::stream::CHUNK;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tamis::index::EntryKeys;
use tamis::{Hash, Hasher};

/// What there is to say of a file and a spec, though all went well.
#[derive(Debug, Default)]
pub(crate) struct Remarks {
    /// Records without the key.
    pub(crate) without_key: u64,
    /// Why the file has no such key at all.
    pub(crate) no_column: Option<String>,
}

/// Adds the keys of a file. For each spec, what there is to say.
pub(crate) fn scan(
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
            scanned => scanned?,
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
    match open(path, spec)? {
        Kind::Text(file) => for_each_chunk(path, file, spec.rule(), progress, |chunk| {
            let layout = spec.rule().layout();
            let records = chunk.records();
            let mut count = 0;
            layout.for_each(records, |start, end| {
                let content = layout.content(&records[start..end]);
                let made = maker.each(content, &chunk.columns, &mut *add);
                remarks.without_key += u64::from(made.is_err());
                count += 1;
            });
            progress.records.fetch_add(count, Relaxed);
        }),
        Kind::Parquet(file, columns) => for_each_row(path, file, columns, progress, |_, values| {
            maker.of_values(values).into_iter().for_each(&mut *add);
        }),
    }
}

/// A file, and how the keys of a spec are read from it.
pub(crate) enum Kind<'s> {
    Text(File),
    /// With the names of the key columns.
    Parquet(File, &'s [String]),
}

/// Opens a file for the keys of a spec. Columns of CSV or Parquet are not to be looked for in the other.
pub(crate) fn open<'s>(path: &Path, spec: &'s KeySpec) -> Result<Kind<'s>, InputError> {
    let failed = |cause| InputError {
        name: path.display().to_string(),
        cause,
    };
    let mut file = File::open(path).map_err(failed)?;
    let lines = matches!(spec.rule().part, Part::Whole(_));
    if lines && !matches!(spec.source(), Source::Parquet(_)) {
        return Ok(Kind::Text(file));
    }
    let no = |what: &str| {
        let cause = NoColumn(what.to_owned());
        failed(io::Error::new(io::ErrorKind::InvalidData, cause))
    };
    match (spec.source(), is_parquet(&mut file).map_err(failed)?) {
        (Source::Parquet(columns), true) => Ok(Kind::Parquet(file, columns)),
        (Source::Parquet(_), false) => Err(no("not a Parquet file")),
        (_, true) => Err(no("a Parquet file")),
        (_, false) => Ok(Kind::Text(file)),
    }
}

/// Whether a file says that it is Parquet.
fn is_parquet(file: &mut File) -> io::Result<bool> {
    let mut start = Vec::new();
    Read::take(&mut *file, 4).read_to_end(&mut start)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(start == b"PAR1")
}

/// Reads a file to its end, or to the first error.
pub(crate) fn for_each_chunk(
    path: &Path,
    file: File,
    rule: &KeyRule,
    progress: &Arc<Progress>,
    mut each: impl FnMut(&Chunk),
) -> Result<(), InputError> {
    let name = path.display().to_string();
    let input = Input::from_file(&name, file, progress);
    let mut reader = Reader::new(Box::new(std::iter::once(input)), rule, CHUNK);
    let mut chunk = Chunk::default();
    while reader.read(&mut chunk) {
        if progress.stop.load(Relaxed) {
            return Err(stopped(name));
        }
        each(&chunk);
    }
    match reader.into_errors().pop() {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

fn stopped(name: String) -> InputError {
    InputError {
        name,
        cause: io::Error::other(Stopped),
    }
}

/// Reads the rows of a Parquet file in which none of the columns is null.
pub(crate) fn for_each_row(
    path: &Path,
    file: File,
    columns: &[String],
    progress: &Arc<Progress>,
    mut each: impl FnMut(u64, &[&[u8]]),
) -> Result<(), InputError> {
    use crate::engine::key::parquet::{self, Failure};
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
        Ok(Ok(())) if is_stopped => return Err(stopped(name)),
        Ok(Ok(())) => return Ok(()),
        Ok(Err(Failure::Read(cause))) => cause,
        Ok(Err(Failure::NoColumn(what))) => {
            io::Error::new(io::ErrorKind::InvalidData, NoColumn(what))
        }
        Err(_) => io::Error::new(io::ErrorKind::InvalidData, "the Parquet data is damaged"),
    };
    Err(InputError { name, cause })
}
