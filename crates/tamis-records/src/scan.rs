//! The keys of a file: one reading for all specs.

use crate::formats::{self, FileClass, FileKind};
use crate::input::{Input, InputError, Packing};
use crate::key::parquet::{Failure, Table};
use crate::key::{KeySpec, Keys, KeysOfText, Missing, Part, RecordRule, Source};
use crate::pipeline::EndOnPanic;
use crate::progress::Progress;
use crate::reader::{CHUNK, Chunk, Reader};
use crate::records::{Framing, LastBorder, newlines};
use crate::turn::Turn;
use std::fs::{File, Metadata};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
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

/// A file, opened and looked at once for all keys that are read from it.
pub struct Opened {
    name: String,
    input: Input,
    /// The same file, for who reads it in no order.
    file: File,
    /// Its size, maybe compressed.
    size: u64,
    /// What it is, if not text.
    kind: Option<FileKind>,
}

/// How the keys of a spec are read from a file.
pub enum Way<'s> {
    /// From lines or rows of text.
    Text,
    /// From columns of Parquet, with these names.
    Parquet(&'s [String]),
}

impl Opened {
    /// Opens a file. What is taken from it is added to `progress`.
    pub fn open(path: &Path, progress: &Arc<Progress>) -> Result<Self, InputError> {
        let failed = |cause| InputError {
            name: path.display().to_string(),
            cause,
        };
        let file = File::open(path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        Self::new(path, file, &metadata, progress)
    }

    /// Looks at an open file.
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
        // It shares its position with the other: who seeks, seeks before each reading.
        let again = file.try_clone().map_err(failed)?;
        let mut input = if metadata.is_file() {
            Input::from_read(&name, file, Packing::Recognised, progress)?
        } else {
            Input::from_file(&name, file, Packing::Recognised, progress)?
        };
        let kind = formats::not_text(input.peek(formats::HEAD));
        Ok(Self {
            name,
            input,
            file: again,
            size: metadata.len(),
            kind,
        })
    }

    /// How the keys of a spec are read. Columns of CSV or Parquet are not looked for in the other; what is neither text
    /// nor Parquet is not read.
    pub fn way<'s>(&self, spec: &'s KeySpec) -> Result<Way<'s>, InputError> {
        use FileClass::{EncryptedParquet, Parquet};
        let name = &self.name;
        let lines = matches!(spec.rule().part, Part::Whole(_));
        match (spec.source(), self.kind.map(|kind| (kind.class, kind.name))) {
            (Source::Parquet(columns), Some((Parquet, _))) if !self.input.is_compressed() => {
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

    /// The file itself.
    pub fn into_file(self) -> File {
        self.file
    }

    /// Reads the text to its end, or to the first error, on several threads: they take turns to read, `work` freely,
    /// and `take` gets what they made of the chunks, in order.
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

    /// Reads the rows of a Parquet file in which none of the columns is null.
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

/// Has a table read. A damaged file must not end the run, and the decoder makes no promise; what it leaves behind is not
/// used again.
fn read_table(
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

/// Adds the keys of a file, all from one reading. For each spec, what there is to say.
pub fn scan(
    opened: Opened,
    specs: &[KeySpec],
    hasher: &Hasher,
    keys: &mut EntryKeys,
    progress: &Arc<Progress>,
) -> Result<Vec<Remarks>, InputError> {
    let mut scans: Vec<Scan> = specs.iter().enumerate().map(Scan::new).collect();
    let (mut cuts, mut tables) = (Vec::<Cut>::new(), Vec::new());
    for scan in &mut scans {
        match opened.way(scan.spec) {
            Err(error) => scan.end(error)?,
            Ok(Way::Parquet(columns)) => tables.push((scan, columns)),
            Ok(Way::Text) => {
                let framing = scan.spec.rule().framing();
                match cuts.iter_mut().find(|cut| cut.framing == framing) {
                    Some(cut) => cut.scans.push(scan),
                    None => cuts.push(Cut::new(framing, scan)),
                }
            }
        }
    }
    let mut sink = Sink { hasher, keys };
    let name = opened.name.clone();
    let read = if !cuts.is_empty() {
        scan_text(opened, &mut cuts, &mut sink, progress)
    } else if !tables.is_empty() {
        read_table(&name, opened.file, progress, |table, stopped| {
            scan_table(table, &mut tables, &mut sink, stopped)
        })
    } else {
        Ok(())
    };
    match read {
        Err(error) if error.is_not_read() => {
            let why = error.cause.to_string();
            scans.iter_mut().for_each(|scan| scan.leave(&why));
        }
        read => read?,
    }
    Ok(scans.into_iter().map(|scan| scan.finish(keys)).collect())
}

/// Where keys go.
struct Sink<'a> {
    hasher: &'a Hasher,
    keys: &'a mut EntryKeys,
}

/// One spec's part of a reading.
struct Scan<'s> {
    number: usize,
    spec: &'s KeySpec,
    maker: Keys<'s>,
    /// Finds them, if they are keys of text.
    of_text: Option<KeysOfText>,
    recent: Recent,
    /// Where the key columns are.
    columns: Vec<usize>,
    records: u64,
    remarks: Remarks,
}

impl<'s> Scan<'s> {
    fn new((number, spec): (usize, &'s KeySpec)) -> Self {
        Self {
            number,
            spec,
            maker: Keys::new(spec),
            of_text: spec.text_keys().map(KeysOfText::new),
            recent: Recent::default(),
            columns: Vec::new(),
            records: 0,
            remarks: Remarks::default(),
        }
    }

    /// Whether no more of the file matters.
    fn has_ended(&self) -> bool {
        self.remarks.no_column.is_some() || self.remarks.unknown.is_some()
    }

    /// The keys are not all known.
    fn leave(&mut self, why: &str) {
        if !self.has_ended() {
            self.remarks.unknown = Some(why.to_owned());
        }
    }

    /// Ends with an error that is this spec's alone, if it is.
    fn end(&mut self, error: InputError) -> Result<(), InputError> {
        if error.is_no_column() {
            self.remarks.no_column = Some(error.cause.to_string());
        } else if error.is_not_read() {
            self.leave(&error.cause.to_string());
        } else {
            return Err(error);
        }
        Ok(())
    }

    /// Finds the key columns by the first row; gives the length of a header row.
    fn begin(&mut self, framing: Framing, bytes: &[u8]) -> usize {
        let Part::Columns { separator, columns } = &self.spec.rule().part else {
            return 0;
        };
        let header = framing.first_end(bytes).unwrap_or(bytes.len());
        match columns.positions(framing.content(&bytes[..header]), *separator) {
            Ok(positions) => self.columns = positions,
            Err(what) => self.remarks.no_column = Some(what),
        }
        if columns.header { header } else { 0 }
    }

    /// Adds the keys of whole records.
    fn add(&mut self, framing: Framing, records: &[u8], sink: &mut Sink) {
        if let Some(of_text) = &mut self.of_text {
            of_text.add(records);
            self.records += newlines(records);
            return;
        }
        let mut malformed = None;
        framing.for_each(records, |start, end| {
            self.records += 1;
            let content = framing.content(&records[start..end]);
            let add = |key: &[u8]| sink.add(self.number, &mut self.recent, key);
            match self.maker.each(content, &self.columns, add) {
                Ok(()) => {}
                Err(Missing::Value) => self.remarks.without_key += 1,
                Err(Missing::Malformed(what)) => {
                    malformed.get_or_insert_with(|| format!("record {}: {what}", self.records));
                }
            }
        });
        if let Some(why) = malformed {
            self.leave(&why);
        }
    }

    fn finish(mut self, keys: &mut EntryKeys) -> Remarks {
        if let Some(why) = &self.remarks.unknown {
            self.remarks.without_key = 0;
            keys.set_unknown(self.number, why);
        } else if let Some(of_text) = &mut self.of_text {
            keys.add_all(self.number, of_text.take());
        }
        self.remarks
    }
}

impl Sink<'_> {
    #[inline]
    fn add(&mut self, spec: usize, recent: &mut Recent, key: &[u8]) {
        let hash = self.hasher.hash(key);
        if recent.is_new(hash) {
            self.keys.add_hash(spec, hash);
        }
    }
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

/// The specs whose records end at the same places.
struct Cut<'a, 's> {
    framing: Framing,
    scans: Vec<&'a mut Scan<'s>>,
    /// From the first record that has not been cut off.
    buffer: Vec<u8>,
    border: LastBorder,
    started: bool,
}

impl<'a, 's> Cut<'a, 's> {
    fn new(framing: Framing, scan: &'a mut Scan<'s>) -> Self {
        Self {
            framing,
            scans: vec![scan],
            buffer: Vec::new(),
            border: LastBorder::new(framing, false),
            started: false,
        }
    }

    /// Adds the keys of the records that end in these bytes. Gives how many records there were.
    fn feed(&mut self, bytes: &[u8], sink: &mut Sink) -> u64 {
        self.buffer.extend_from_slice(bytes);
        self.border.update(&self.buffer);
        let end = self.border.at;
        if end > 0 {
            return self.cut(end, sink);
        }
        if self.buffer.len() >= LONGEST_RECORD {
            let why = self.framing.too_long(LONGEST_RECORD);
            self.scans.iter_mut().for_each(|scan| scan.leave(&why));
        }
        0
    }

    /// Adds the keys of the last record, which may lack its delimiter.
    fn finish(&mut self, sink: &mut Sink) -> u64 {
        let delimiter = self.framing.delimiter();
        if self.buffer.last().is_some_and(|last| *last != delimiter) {
            self.buffer.push(delimiter);
        }
        self.cut(self.buffer.len(), sink)
    }

    fn cut(&mut self, end: usize, sink: &mut Sink) -> u64 {
        let records = &self.buffer[..end];
        let first = !std::mem::replace(&mut self.started, true);
        let before = self.scans[0].records;
        for scan in &mut self.scans {
            let header = if first && !records.is_empty() {
                scan.begin(self.framing, records)
            } else {
                0
            };
            if !scan.has_ended() {
                scan.add(self.framing, &records[header..], sink);
            }
        }
        self.buffer.drain(..end);
        self.border = LastBorder::new(self.framing, false);
        self.scans[0].records - before
    }

    fn has_ended(&self) -> bool {
        self.scans.iter().all(|scan| scan.has_ended())
    }
}

/// Reads text to its end, to the first error, or until nothing more matters.
fn scan_text(
    opened: Opened,
    cuts: &mut Vec<Cut>,
    sink: &mut Sink,
    progress: &Progress,
) -> Result<(), InputError> {
    let Opened {
        name,
        mut input,
        size,
        ..
    } = opened;
    // As much as a file of that size holds, unless somebody made it to be unpacked for ever.
    let most = if input.is_compressed() {
        MOST_BYTES.max(size.saturating_mul(MOST_TIMES))
    } else {
        u64::MAX
    };
    let mut block = vec![0; CHUNK];
    let mut bytes = 0;
    while !cuts.is_empty() {
        if progress.stop.load(Relaxed) {
            return Err(InputError::stopped(&name));
        }
        let filled = fill(&mut input, &mut block)?;
        bytes += filled as u64;
        if bytes > most {
            let why = format!("it becomes more than {MOST_TIMES} times as large when unpacked");
            return Err(InputError::not_read(&name, why));
        }
        let records = cuts.iter_mut().map(|cut| match filled {
            0 => cut.finish(sink),
            _ => cut.feed(&block[..filled], sink),
        });
        let records = records.fold(0, u64::max);
        progress.records.fetch_add(records, Relaxed);
        if filled == 0 {
            break;
        }
        cuts.retain(|cut| !cut.has_ended());
    }
    Ok(())
}

/// Reads until the buffer is full or the input ends.
fn fill(input: &mut Input, buffer: &mut [u8]) -> Result<usize, InputError> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..])? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

fn scan_table(
    table: &Table,
    scans: &mut Vec<(&mut Scan, &[String])>,
    sink: &mut Sink,
    stopped: &mut dyn FnMut(u64) -> bool,
) -> Result<(), Failure> {
    // Each column is read once, and each spec has its places among them.
    let mut columns = Vec::new();
    for (scan, names) in &mut *scans {
        let found = names.iter().map(|name| table.find(name));
        match found.collect::<Result<Vec<_>, _>>() {
            Err(Failure::NoColumn(what)) => scan.remarks.no_column = Some(what),
            found => {
                for column in found? {
                    let at = columns.iter().position(|known| *known == column);
                    scan.columns.push(at.unwrap_or(columns.len()));
                    if at.is_none() {
                        columns.push(column);
                    }
                }
            }
        }
    }
    scans.retain(|(scan, _)| !scan.has_ended());
    if scans.is_empty() {
        return Ok(());
    }
    table.for_each_row(&columns, |row, found| {
        for (scan, _) in &mut *scans {
            let values = scan.columns.iter().map_while(|at| found[*at]);
            if let Some(key) = scan.maker.of_values(values, scan.columns.len()) {
                sink.add(scan.number, &mut scan.recent, key);
            }
        }
        !stopped(row)
    })
}
