//! A file that was opened for the keys in it, and how they are read from it.

use crate::formats::{self, FileClass, FileKind};
use crate::input::{Input, InputError, Packing, TextReader};
use crate::key::parquet::{Failure, Table};
use crate::key::{KeySpec, Part, RecordRule, Source};
use crate::pipeline::EndOnPanic;
use crate::progress::Progress;
use crate::reader::{CHUNK, Chunk, Reader};
use crate::turn::Turn;
use std::fs::{File, Metadata};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};

/// A file that was opened and inspected once, for all keys that are read from it.
pub struct Opened {
    name: String,
    input: Input,
    /// The same file, for reading in any order.
    file: File,
    is_packed: bool,
    /// The kind of file, if it isn't text.
    kind: Option<FileKind>,
}

/// How to read the keys of a spec from a file.
pub enum Way<'s> {
    /// From lines or rows of text.
    Text,
    /// From these columns of Parquet.
    Parquet(&'s [String]),
}

impl Opened {
    /// Opens a file. Counts bytes read in `progress`.
    pub fn open(path: &Path, progress: &Arc<Progress>) -> Result<Self, InputError> {
        let failed = |cause| InputError {
            name: path.display().to_string(),
            cause,
        };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        Self::new(path, file, &metadata, progress)
    }

    /// Inspects an open file.
    pub fn new(
        path: &Path,
        file: File,
        metadata: &Metadata,
        progress: &Arc<Progress>,
    ) -> Result<Self, InputError> {
        let name = path.display().to_string();
        let failed = |cause| InputError {
            name: name.clone(),
            cause,
        };
        // It shares its position with the original, so seek before each read.
        let again = file.try_clone().map_err(failed)?;
        let (input, kind, is_packed) = if metadata.is_file() {
            let text = TextReader::new(file, progress).map_err(failed)?;
            let (kind, is_packed) = (text.file_kind(), text.kind().is_packed());
            // `TextReader` already counts the bytes.
            let input = Input::from_read(&name, text, Packing::Ignored, &Arc::default())?;
            (input, kind, is_packed)
        } else {
            let mut input = Input::from_file(&name, file, Packing::Recognised, progress)?;
            let kind = formats::not_text(input.peek(formats::HEAD));
            let is_packed = input.is_compressed();
            (input, kind, is_packed)
        };
        Ok(Self {
            name,
            input,
            is_packed,
            file: again,
            kind,
        })
    }

    /// How to read the keys of a spec. Columns of CSV aren't searched in Parquet, nor the other way round; files that
    /// are neither text nor Parquet aren't read.
    pub fn way<'s>(&self, spec: &'s KeySpec) -> Result<Way<'s>, InputError> {
        way(&self.name, self.kind, self.is_packed, spec)
    }

    /// The file itself.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Reads the text to its end or the first error, on several threads: they take turns reading, `work` runs in any
    /// order, and `take` gets its results in order.
    pub fn map_chunks<R: Send>(
        self,
        rule: &RecordRule,
        threads: usize,
        progress: &Arc<Progress>,
        work: impl Fn(&Chunk) -> R + Sync,
        take: impl FnMut(R) + Send,
    ) -> Result<(), InputError> {
        let reader = Reader::new(Box::new(std::iter::once(Ok(self.input))), rule, CHUNK);
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
            None if progress.stop.load(Relaxed) => Err(InputError::stopped(&self.name)),
            None => Ok(()),
        }
    }

    /// Reads the rows of a Parquet file where none of the columns is null.
    pub fn for_each_row(
        self,
        columns: &[String],
        progress: &Arc<Progress>,
        mut each: impl FnMut(u64, &[&[u8]]),
    ) -> Result<(), InputError> {
        read_table(&self.name, self.file, progress, |table, stopped| {
            let columns = columns.iter().map(|name| table.find(name));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            table.for_each_row(&columns, |row, found| {
                let values: Vec<&[u8]> = found.iter().map_while(|value| *value).collect();
                if values.len() == found.len() {
                    each(row, &values);
                }
                !stopped(row)
            })
        })
    }
}

pub(super) fn way<'s>(
    name: &str,
    kind: Option<FileKind>,
    is_compressed: bool,
    spec: &'s KeySpec,
) -> Result<Way<'s>, InputError> {
    use FileClass::{EncryptedParquet, Parquet};
    let lines = matches!(spec.rule().part, Part::Whole(_));
    match (spec.source(), kind.map(|kind| (kind.class, kind.name))) {
        (Source::Parquet(columns), Some((Parquet, _))) if !is_compressed => {
            Ok(Way::Parquet(columns))
        }
        (Source::Parquet(_), Some((Parquet | EncryptedParquet, what))) => {
            Err(InputError::not_read(name, what))
        }
        (Source::Parquet(_), _) => Err(InputError::no_column(name, "not a Parquet file")),
        (_, Some((Parquet, what))) if !lines => Err(InputError::no_column(name, what)),
        (_, Some((_, what))) => Err(InputError::not_read(name, what)),
        (_, None) => Ok(Way::Text),
    }
}

/// Reads a table. The decoder may panic on a damaged file, which must not end the run; its state isn't used again.
pub(super) fn read_table(
    name: &str,
    file: File,
    progress: &Progress,
    read: impl FnOnce(&Table, &mut dyn FnMut(u64) -> bool) -> Result<(), Failure>,
) -> Result<(), InputError> {
    let mut is_stopped = false;
    let mut stopped = |row: u64| {
        is_stopped = row.is_multiple_of(1024) && progress.stop.load(Relaxed);
        is_stopped
    };
    let read = || read(&Table::open(file)?, &mut stopped);
    let cause = match catch_unwind(AssertUnwindSafe(read)) {
        Ok(Ok(())) if is_stopped => return Err(InputError::stopped(name)),
        Ok(Ok(())) => return Ok(()),
        Ok(Err(Failure::Read(cause))) => cause,
        Ok(Err(Failure::NoColumn(what))) => return Err(InputError::no_column(name, what)),
        Err(_) => io::Error::new(io::ErrorKind::InvalidData, "the Parquet data is damaged"),
    };
    Err(InputError {
        name: name.to_owned(),
        cause,
    })
}
