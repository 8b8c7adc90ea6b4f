//! Other systems' filters in their own files: opened, queried, added to and replaced like ours.

mod columns;
mod format_arg;
pub(crate) mod make;
pub(crate) mod tell;

pub(crate) use format_arg::{FormatArg, HashArg};

use crate::output;
use crate::present;
use crate::stream::{Keyed, Run};
use anyhow::{Context, Result, anyhow, bail};
use std::fs::File;
use std::io::{Read as _, Seek as _, Write as _};
use std::path::{Path, PathBuf};
use tamis::index::FileIndex;
use tamis::internals::file::{Existing, Replacement, open_regular};
use tamis_formats::pybloomfilter::Hash;
use tamis_formats::{Bytes, Error, Foreign, Format, Hint, Keys};
use tamis_records::batch::Token;

/// How a filter of another system is to be read, where its file does not say.
#[derive(clap::Args, Clone, Debug, Default)]
#[command(next_help_heading = "Filters of other systems")]
pub(crate) struct ForeignArgs {
    /// What another system's filter doesn't say of itself: guava,keys=utf8, keys=upper, ...
    ///
    /// Its format, if it can't be recognised, is one of abloom, bip37, bitmap (bits of SETBIT), bits-and-blooms,
    /// bloom-filters, bloomfilter, cassandra, dcso, fastbloom, fastbloom-rs, fastfilter, guava, leveldb, orc, parquet,
    /// poppy, pybloom-live, pybloomfilter, pyprobables, rbloom, redisbloom, redisbloom-cuckoo, redisson (in Redis),
    /// rocksdb, spark, valkey-bloom. None of them hashes with a secret: against keys that others choose, use a filter
    /// of Tamis with --secret.
    ///
    /// keys=HOW is how its keys became bytes: utf8, utf16, int32, int64, uint64, float32, float64, upper, lower,
    /// python-number (hash() of int, float and bool), python-pickle (pickle.dumps of str, protocol 4), rust-str (Hash
    /// of str), kryo5 and json (Redisson's default codec, and its JsonJacksonCodec).
    ///
    /// unpacked=SIZE is the most that a gzipped filter may unpack to (256 MiB if not given). name=NAME is which filter
    /// of the file: the column of Parquet or ORC, the key of an RDB file; it comes last, and may have commas.
    ///
    /// pybloomfilter,hash=HASH by the version that made the file: murmur
    /// (pybloomfiltermmap3, and pybloomfiltermmap 0.3.15), murmur32 (0.3.12 to
    /// 0.3.14), sha512 (0.3.6 to 0.3.11), superfast (0.3.1 and 0.3.2), djb (up to
    /// 0.2.0). bitmap,hash=HASH,hashes=K,bits=M,order=ORDER by the class that sets
    /// the bits: hash=guava (murmur3_128 as Guava has it) or guava32 (its older way,
    /// `hash1 + i * hash2` of 32 bits) with the number of hashes, java-seeds:5,7,11
    /// (`seed * hash + char`, masked by size - 1), java-spread:1,6,16 (`i * (size - 1)
    /// & (h ^ h >>> 16)`); the bits it was made for; order=low-first for bits of
    /// BitSet.toByteArray and C's arrays, not of SETBIT.
    #[arg(long = "format", value_name = "FORMAT[,PARAMETER=VALUE...]", value_parser = FormatArg::parse)]
    pub(crate) given: Option<FormatArg>,
}

/// Another system's filter from a file.
#[derive(Clone)]
pub(crate) struct Opened {
    pub(crate) filter: Foreign<'static>,
    pub(crate) path: PathBuf,
    /// Its name, if the file holds several.
    pub(crate) name: Option<String>,
}

impl ForeignArgs {
    /// The format that the user gave.
    pub(crate) fn format(&self) -> Option<Format> {
        self.given.as_ref()?.format
    }

    /// How its keys became bytes.
    pub(crate) fn keys(&self) -> Option<Keys> {
        self.given.as_ref()?.keys
    }

    /// Which filter of the file.
    pub(crate) fn name(&self) -> Option<&str> {
        self.given.as_ref()?.name.as_deref()
    }

    /// The most bytes that it may unpack to.
    pub(crate) fn most_unpacked(&self) -> Option<u64> {
        self.given.as_ref()?.most_unpacked
    }

    /// Opens another system's file; `None` if it is one of ours or unknown.
    pub(crate) fn open(&self, path: &Path) -> Result<Option<Opened>> {
        let bytes = self.bytes(path)?;
        let opened = bytes.map(|bytes| self.read(path, bytes, self.name()));
        Ok(opened.transpose()?.flatten())
    }

    /// Opens every filter in a file, or the named one.
    pub(crate) fn open_all(&self, path: &Path) -> Result<Option<Vec<Opened>>> {
        let Some(bytes) = self.bytes(path)? else {
            return Ok(None);
        };
        let named = self.name();
        let names = match tamis_formats::open(bytes.clone(), self.hint(named)) {
            Err(Error::Several { names }) if named.is_none() && !names.is_empty() => names,
            opened => return Ok(opened_at(path, named, opened)?.map(|opened| vec![opened])),
        };
        let open = |name: String| self.read(path, bytes.clone(), Some(&name)).transpose();
        names
            .into_iter()
            .filter_map(open)
            .collect::<Result<_>>()
            .map(Some)
    }

    /// Refuses options about keys that would have no effect on our own filters.
    pub(crate) fn refuse_for_ours(&self, filter: impl std::fmt::Display) -> Result<()> {
        let given = [
            ("--format keys=", self.keys().is_some()),
            ("--format name=", self.name().is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((option, _)) => {
                bail!("{filter}: {option} is for other systems' filters, not for Tamis filters")
            }
        }
    }

    /// For commands that don't take other systems' filters from Redis.
    pub(crate) fn refuse_in_redis(&self) -> Result<()> {
        match self.format() {
            None => self.refuse_for_ours("in Redis"),
            Some(format) => bail!(
                "--format {format}: of the other systems' filters in Redis, only redisson's are \
                 supported, by check, add, info and create, and bitmaps, by check and copy"
            ),
        }
    }

    /// A Parquet file without a named column: the command applies to all columns.
    fn parquet_file(&self, path: &Path) -> Result<Option<Bytes<'static>>> {
        let is_meant =
            self.name().is_none() && matches!(self.format(), None | Some(Format::Parquet));
        let bytes = self.bytes(path)?;
        Ok(bytes.filter(|bytes| is_meant && bytes.starts_with(b"PAR1")))
    }

    /// The whole file, if it may be another system's.
    fn bytes(&self, path: &Path) -> Result<Option<Bytes<'static>>> {
        let file = self.file(path)?;
        file.map(|file| map(path, &file)).transpose()
    }

    /// The file, at its start, if it may be another system's.
    fn file(&self, path: &Path) -> Result<Option<File>> {
        if self.is_bitmap() {
            bail!("--format bitmap is for check and copy: such bits say nothing of themselves");
        }
        if self.format() == Some(Format::Redisson) {
            bail!(
                "{}: a redisson filter lives in Redis: redis://HOST:PORT/NAME",
                path.display()
            );
        }
        // A pipe would block, so only regular files are opened.
        if self.format().is_none() && !path.is_file() {
            return Ok(None);
        }
        let mut file = regular(path)?;
        let mut start = Vec::new();
        (&mut file)
            .take(16)
            .read_to_end(&mut start)
            .and_then(|_| file.rewind())
            .with_context(|| format!("reading {}", path.display()))?;
        let is_ours = start.starts_with(present::FILTER) || FileIndex::is_index(&start);
        if !is_ours {
            return Ok(Some(file));
        }
        if let Some(format) = self.format() {
            bail!(
                "{}: expected a {format} filter, got a Tamis filter or index\nhint: omit --format",
                path.display()
            );
        }
        self.refuse_for_ours(path.display()).map(|()| None)
    }

    /// The hash of a pybloomfilter file, if one was named.
    pub(crate) fn file_hash(&self) -> Option<Hash> {
        match self.given.as_ref()?.hash {
            Some(HashArg::File(hash)) => Some(hash),
            _ => None,
        }
    }

    fn hint<'h>(&self, name: Option<&'h str>) -> Hint<'h> {
        Hint {
            format: self.format(),
            name: name.map(str::as_bytes),
            hash: self.file_hash(),
            most_unpacked: self.most_unpacked(),
        }
    }

    fn read(
        &self,
        path: &Path,
        bytes: Bytes<'static>,
        name: Option<&str>,
    ) -> Result<Option<Opened>> {
        opened_at(path, name, tamis_formats::open(bytes, self.hint(name)))
    }

    /// How keys become bytes for the filter.
    pub(crate) fn encoding(&self, filter: &Foreign<'_>) -> Result<Encoding> {
        Encoding::of(filter.format(), filter.keys(), self.keys())
    }

    /// The same for the keys that a command reads.
    pub(crate) fn encoding_of(&self, input: &Run, opened: &Opened) -> Result<Encoding> {
        let encoding = self.encoding(&opened.filter);
        let encoding = encoding.with_context(|| opened.path.display().to_string())?;
        check_rule(input)?;
        Ok(encoding)
    }
}

impl Encoding {
    /// The encoding that was `asked` for, or the only one possible.
    pub(crate) fn of(
        format: Format,
        choices: &'static [Keys],
        asked: Option<Keys>,
    ) -> Result<Self> {
        let keys = format
            .encoding(choices, asked)
            .map_err(|error| match error {
                // A column's type is known.
                Error::KeysUnfit {
                    asked,
                    choices: [only],
                    format: Format::Parquet | Format::Orc,
                } => anyhow!("--format keys={asked}, but the column's values are {only}"),
                error => with_hint(&error),
            })?;
        Ok(Self(keys))
    }
}

/// A filter and its path; `None` if no known format matches, since opening it as ours reports a better error.
fn opened_at(
    path: &Path,
    name: Option<&str>,
    opened: Result<Foreign<'static>, Error>,
) -> Result<Option<Opened>> {
    match opened {
        Ok(filter) => {
            warn_of_hash(path, &filter);
            Ok(Some(Opened {
                filter,
                path: path.to_owned(),
                name: name.map(str::to_owned),
            }))
        }
        Err(Error::Unknown) => Ok(None),
        Err(error) => Err(named(path)(error)),
    }
}

/// Warns that a file may use another hash than assumed, which would make every answer unreliable.
fn warn_of_hash(path: &Path, filter: &Foreign<'_>) {
    if let Some(doubt) = filter.facts().doubt() {
        output::warn(format_args!(
            "{}: {doubt}\n\
             hint: --format pybloomfilter,hash=HASH, by the version of pybloomfiltermmap that made the file",
            path.display(),
        ));
    }
}

/// Opens a regular file for reading.
pub(crate) fn regular(path: &Path) -> Result<File> {
    if path.is_dir() {
        bail!("opening {}: expected a regular file", path.display());
    }
    Ok(open_regular(path, false)?)
}

pub(crate) fn map(path: &Path, file: &File) -> Result<Bytes<'static>> {
    Bytes::map(file).with_context(|| format!("mapping {}", path.display()))
}

fn keys_hint(format: Format) -> String {
    let example = match format {
        Format::Guava => "utf8 for stringFunnel(UTF_8) and bytes, utf16 for unencodedCharsFunnel",
        Format::Dcso | Format::Poppy => {
            "utf8 for keys as they are, upper for the SHA-1 of CIRCL's hashlookup"
        }
        Format::Pybloomfilter => {
            "utf8 for str and bytes, python-number for int, float and bool, which are Python's hash()"
        }
        Format::Rbloom => {
            "python-pickle for sha256(pickle.dumps(text)), as rbloom documents it, utf8 for sha256(text)"
        }
        Format::Fastbloom => "rust-str for str and String, uint64 and int64 for u64 and i64",
        Format::FastbloomRs => "utf8 for text and bytes, int64 for whole numbers",
        Format::FastFilter => "uint64 or int64: its keys are numbers, or hashes that you make",
        Format::Bitmap => {
            "utf8 for text under hash=guava and guava32; java-seeds and java-spread need none"
        }
        Format::Redisson => {
            "utf8 for StringCodec, kryo5 for the default one, Kryo5Codec, json for JsonJacksonCodec"
        }
        Format::Spark => "utf8 for strings and binary, int64 for all whole numbers",
        _ => "utf8 for text and bytes",
    };
    format!("say which with --format {format},keys=HOW: {example}")
}

/// Other systems fix how keys are made. Users may choose which part of a record is the key, but not treat different
/// keys as equal.
pub(crate) fn check_rule(input: &Run) -> Result<()> {
    let made = input.rule.made;
    if made.ignores_case() {
        bail!(
            "--ignore-case is for Tamis filters, which remember it\n\
             hint: use --format keys=lower or keys=upper if the filter's keys were made that way"
        );
    }
    if made.normalises_urls() {
        bail!("--url is for Tamis filters, which remember it");
    }
    if made.values() > 1 {
        bail!("another system's filter has keys of one value: name only one column");
    }
    Ok(())
}

/// What the user can do about an error.
pub(crate) fn hint(error: &Error) -> Option<String> {
    let hint = match error {
        Error::Ambiguous { .. } => "name it with --format",
        Error::Several { names } if !names.is_empty() => "choose one with --format name=NAME",
        Error::Several { .. } => "`tamis info` lists them",
        Error::Gzip { .. } => "is the file complete?",
        Error::Unpacked { .. } => "allow more with --format unpacked=SIZE",
        Error::KeysNeeded { format, .. } | Error::KeysUnfit { format, .. } => {
            return Some(keys_hint(*format));
        }
        _ => return None,
    };
    Some(hint.into())
}

fn with_hint(error: &Error) -> anyhow::Error {
    let hint = hint(error).map(|hint| format!("\nhint: {hint}"));
    anyhow!("{error}{}", hint.unwrap_or_default())
}

/// Adds the file's name and a hint to an error.
pub(crate) fn named(path: &Path) -> impl Fn(Error) -> anyhow::Error {
    let path = path.display().to_string();
    move |error| anyhow!("{path}: {}", with_hint(&error))
}

impl Opened {
    /// Checks that keys can be added, before any is read.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.filter.check_writable().map_err(named(&self.path))?;
        if self.filter.is_packed() {
            let how = if self.filter.is_gzipped() {
                "gzipped"
            } else {
                "packed as text"
            };
            bail!(
                "{}: the file is {how}, so it is read-only here\n\
                 hint: `tamis copy {} NEW` unpacks it",
                self.path.display(),
                self.path.display()
            );
        }
        Ok(())
    }

    /// Replaces the filter's file atomically.
    pub(crate) fn save(&self) -> Result<()> {
        write(&self.path, &self.filter.to_bytes(), Existing::Replace)
    }
}

/// Writes a file atomically and durably.
pub(crate) fn write(path: &Path, bytes: &[u8], existing: Existing) -> Result<()> {
    write_with(path, existing, |file| file.write_all(bytes))
}

/// The same, with a function that writes.
pub(crate) fn write_with(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut File) -> std::io::Result<()>,
) -> Result<()> {
    let mut file = Replacement::begin(path, existing).map_err(|e| present::creating(path, e))?;
    write(file.file()).with_context(|| format!("writing {}", path.display()))?;
    file.place().map_err(|e| present::creating(path, e))?;
    Ok(())
}

/// Encodes keys as the other system does before hashing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Encoding(pub(crate) Keys);

/// The bytes of a key, or why it can't be encoded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct KeyBytes(Result<Box<[u8]>, String>);

impl Token for KeyBytes {
    /// Other systems' filters aren't sharded.
    fn shard(&self, _: usize) -> usize {
        0
    }
}

impl Keyed for Encoding {
    type Token = KeyBytes;

    fn rule(&self) -> &tamis::KeyRule {
        &tamis::KeyRule::EXACT
    }

    fn token(&self, key: &[u8]) -> KeyBytes {
        let bytes = self.0.encode(key);
        KeyBytes(
            bytes
                .map(|bytes| (*bytes).into())
                .map_err(|e| e.to_string()),
        )
    }
}

impl KeyBytes {
    /// The bytes, or an error. Reporting the key as absent could be a false "no", since the filter may hold it in
    /// another encoding.
    pub(crate) fn get(&self) -> Result<&[u8]> {
        match &self.0 {
            Ok(bytes) => Ok(bytes),
            Err(error) => {
                bail!(
                    "{error}\nhint: say how the filter's keys became bytes with --format keys=HOW"
                )
            }
        }
    }
}

/// Queries keys.
pub(crate) fn ask(filter: &Foreign<'_>, keys: &[KeyBytes], found: &mut [bool]) -> Result<()> {
    let keys = keys.iter().map(KeyBytes::get).collect::<Result<Vec<_>>>()?;
    filter.contains_many(&keys, found);
    Ok(())
}

/// Adds keys and marks those that were new.
pub(crate) fn add(filter: &mut Foreign<'_>, keys: &[KeyBytes], new: &mut [bool]) -> Result<()> {
    for (key, new) in keys.iter().zip(new) {
        *new = filter.insert(key.get()?)?;
    }
    Ok(())
}

/// Removes keys and marks those that were present.
pub(crate) fn remove(filter: &mut Foreign<'_>, keys: &[KeyBytes], had: &mut [bool]) -> Result<()> {
    for (key, had) in keys.iter().zip(had) {
        *had = filter.remove(key.get()?)?;
    }
    Ok(())
}
