//! Filters as named on the command line, and the secret of keyed filters.

use crate::apart::{Apart, Role};
use crate::output;
use crate::present::{self, Found, Written};
use crate::source::{InputArgs, Run};
use anyhow::{Context, Result, anyhow};
use clap::builder::{TypedValueParser, ValueParserFactory};
use clap::error::ErrorKind;
use std::env;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, Once, PoisonError};
use tamis::index::FileIndex;
use tamis::internals::file::{mode_for_everyone, read_small};
use tamis::internals::raw::HEADER_LEN;
use tamis::{AnyFilter, Hasher, Open, SecretKey, internals::file::Existing};
use tamis_formats::Format;
use tamis_redis::{BitString, Location, Options, RedisFilter, Servers, Warning};

/// The most bytes in a password file.
const LARGEST_SECRET: u64 = 4096;

/// Where a filter is: in a file, or in Redis, shared by many workers.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    File(PathBuf),
    Redis(Location),
}

impl ValueParserFactory for Place {
    type Parser = PlaceParser;

    fn value_parser() -> PlaceParser {
        PlaceParser
    }
}

/// Parses a [`Place`]. Paths need not be UTF-8; Redis addresses must be.
#[derive(Clone)]
pub(crate) struct PlaceParser;

impl TypedValueParser for PlaceParser {
    type Value = Place;

    /// We make the error here: clap's would repeat the argument, with any password in it.
    fn parse_ref(
        &self,
        command: &clap::Command,
        _: Option<&clap::Arg>,
        text: &OsStr,
    ) -> Result<Place, clap::Error> {
        let refuse = |error: anyhow::Error| {
            let text = format!("{error:#}\n");
            clap::Error::raw(ErrorKind::ValueValidation, text).with_cmd(command)
        };
        match text.to_str() {
            // A mistyped scheme isn't a file, either.
            Some(text) if text.contains("://") || Location::looks_like(text) => {
                let at: Location = text.parse().map_err(|error| refuse(no_tls(text, error)))?;
                warn_if_insecure(at.is_insecure());
                let password = redis_password().map_err(refuse)?;
                Ok(Place::Redis(match password {
                    Some(password) => at.with_password(&password),
                    None => at,
                }))
            }
            _ => Ok(Place::File(text.into())),
        }
    }
}

/// Warns once that the server's identity isn't checked.
pub(crate) fn warn_if_insecure(insecure: bool) {
    static ONCE: Once = Once::new();
    if !insecure {
        return;
    }
    // Arguments may be parsed more than once.
    ONCE.call_once(|| {
        output::warn(format_args!(
            "tls=insecure accepts any certificate: whoever is between you and the server can read \
             and change everything, the password included\n\
             hint: ca=FILE in its place names the authority that signed the server's certificate"
        ));
    });
}

/// The Redis password from the environment, or from the file that the environment names.
fn redis_password() -> Result<Option<String>> {
    if let Ok(password) = env::var("TAMIS_REDIS_PASSWORD") {
        return Ok(Some(password));
    }
    let Some(path) = env::var_os("TAMIS_REDIS_PASSWORD_FILE") else {
        return Ok(None);
    };
    let path = Path::new(&path);
    let text = read_small(path, LARGEST_SECRET).context("TAMIS_REDIS_PASSWORD_FILE")?;
    let text = String::from_utf8(text)
        .with_context(|| format!("TAMIS_REDIS_PASSWORD_FILE, {}", path.display()))?;
    warn_if_public(path);
    Ok(Some(text.trim_end_matches(['\r', '\n']).to_owned()))
}

/// Warns once about a secret that every user of this machine can read.
pub(crate) fn warn_if_public(path: &Path) {
    static TOLD: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(mode) = mode_for_everyone(path)
        && !told.iter().any(|other| other == path)
    {
        told.push(path.to_owned());
        let path = path.display();
        output::warn(format_args!(
            "{path}: every user of this machine can read or change this secret (mode {mode:03o})\n\
             hint: chmod 600 {path}"
        ));
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Redis(at) => at.fmt(f),
        }
    }
}

impl Place {
    /// Notes the file, if it is one.
    pub(crate) fn note(&self, role: Role, apart: &mut Apart) -> Result<()> {
        match self {
            Self::File(path) => apart.note(role, path),
            Self::Redis(at) => {
                note_certificates(at.files(), apart)?;
                note_environment(apart)
            }
        }
    }

    /// Loads the whole filter into memory.
    pub(crate) fn load(&self, key: &KeyFile) -> Result<AnyFilter> {
        match self {
            Self::File(path) => key.open()?.load(path).map_err(named(path)),
            Self::Redis(at) => key.open_redis(at)?.download().map_err(in_redis(at)),
        }
    }

    /// Saves a new filter, or with `force` replaces an existing one.
    pub(crate) fn save(
        &self,
        filter: &AnyFilter,
        force: bool,
        options: impl FnOnce() -> Result<Options>,
    ) -> Result<()> {
        match self {
            Self::File(path) => save(filter, path, force),
            Self::Redis(at) => {
                warn_of_secret(filter.hasher(), format_args!("the copy at {at}"));
                let options = options()?;
                let saved = if force {
                    RedisFilter::upload_over(at, filter, &options)
                } else {
                    RedisFilter::upload(at, filter, &options)
                };
                warn_of(&saved.map_err(in_redis(at))?);
                Ok(())
            }
        }
    }
}

/// Saves a filter to a file: a new one, or with `force` in place of an existing filter.
pub(crate) fn save(filter: &AnyFilter, path: &Path, force: bool) -> Result<()> {
    match present::check(path, force, Written::Filter)? {
        Existing::Replace => filter.save(path),
        Existing::Keep => filter.save_new(path),
    }
    .map_err(saving(path))
}

/// The size of a filter's file, including the header, which is most of a small file.
pub(crate) fn file_bytes(path: &Path, filter_bytes: u64) -> u64 {
    match fs::metadata(path) {
        Ok(file) => file.len(),
        // The file may already be gone.
        Err(_) => HEADER_LEN as u64 + filter_bytes,
    }
}

/// Explains why a filter could not be saved.
pub(crate) fn saving(path: &Path) -> impl FnOnce(tamis::Error) -> anyhow::Error {
    move |error| match (&error, missing_folder(path)) {
        (tamis::Error::Io { .. }, None) => present::creating(path, error),
        _ => named(path)(error),
    }
}

/// Warns that something others may read holds a keyed filter's secret.
pub(crate) fn warn_of_secret(hasher: &Hasher, what: impl fmt::Display) {
    if matches!(hasher, Hasher::Keyed { in_file: true, .. }) {
        output::warn(format_args!(
            "{what} contains the filter's secret: anyone who reads it can construct colliding keys\n\
             hint: a filter created with --secret-file keeps its secret in a separate file"
        ));
    }
}

/// For commands that open a filter.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct KeyFile {
    /// The secret key of a filter created with --secret-file
    #[arg(long = "secret-file", value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Don't check a filter file's checksum; a damaged file may then give wrong answers
    #[arg(long)]
    no_verify: bool,
}

impl KeyFile {
    pub(crate) fn note(&self, apart: &mut Apart) -> Result<()> {
        let mut files = self.key_file.iter();
        files.try_for_each(|path| apart.note(Role::KeyFile, path))
    }

    /// Options for opening a filter with this key.
    pub(crate) fn open(&self) -> Result<Open> {
        let open = Open::new().verify(!self.no_verify);
        Ok(match self.key()? {
            Some(key) => open.key(key),
            None => open,
        })
    }

    /// The hash of a new filter: with the secret in the file, which is created if needed.
    pub(crate) fn hasher(&self) -> Result<Hasher> {
        Ok(match &self.key_file {
            Some(path) => {
                let key = SecretKey::load_or_create(path)?;
                warn_if_public(path);
                Hasher::keyed_apart(key)
            }
            None => Hasher::default(),
        })
    }

    fn key(&self) -> Result<Option<SecretKey>> {
        let key = self.key_file.as_ref().map(SecretKey::load).transpose()?;
        self.key_file.iter().for_each(|path| warn_if_public(path));
        Ok(key)
    }
}

/// Options for Redis, for commands that open no filter.
pub(crate) fn redis_options() -> Result<Options> {
    KeyFile::default().redis_options()
}

/// Notes the certificate files, and warns about a private key that everyone can read.
fn note_certificates(files: [Option<&Path>; 3], apart: &mut Apart) -> Result<()> {
    let [.., key] = files;
    key.iter().for_each(|path| warn_if_public(path));
    let mut files = files.into_iter().flatten();
    files.try_for_each(|path| apart.note(Role::Certificate, path))
}

/// The same for the files named in the environment.
pub(crate) fn note_environment(apart: &mut Apart) -> Result<()> {
    let file = |name| env::var_os(name).filter(|path| !path.is_empty());
    let files = ["TAMIS_REDIS_CA", "TAMIS_REDIS_CERT", "TAMIS_REDIS_KEY"].map(file);
    note_certificates(
        files.each_ref().map(|file| file.as_ref().map(Path::new)),
        apart,
    )
}

/// Refuses `replicas=N` for filters whose writes don't wait for replicas.
pub(crate) fn refuse_waiting(at: &Location) -> Result<()> {
    let by_all = || env::var("TAMIS_REDIS_REPLICAS").ok()?.parse().ok();
    match at.replicas().or_else(by_all) {
        None | Some(0) => Ok(()),
        Some(_) => Err(anyhow!("{at}: replicas=N is for Tamis filters")),
    }
}

impl KeyFile {
    /// Options for Redis from the environment; the location takes precedence.
    pub(crate) fn redis_options(&self) -> Result<Options> {
        let options = Options::from_env()?;
        Ok(match self.key()? {
            Some(key) => options.key(key),
            None => options,
        })
    }

    pub(crate) fn open_redis(&self, at: &Location) -> Result<RedisFilter> {
        let options = self.redis_options()?;
        let filter = RedisFilter::open(at, &options).map_err(|error| {
            use tamis_redis::Error::{Corrupt, NotFound};
            match error {
                NotFound { .. } | Corrupt { .. } if is_redisson(at, &options) => {
                    anyhow!(
                        "{at}: this is a redisson filter\n\
                     hint: check, add and info open it with --format redisson,keys=HOW; kryo5 is \
                     redisson's default codec, utf8 its StringCodec"
                    )
                }
                error => in_redis(at)(error),
            }
        })?;
        warn_of(&filter);
        Ok(filter)
    }
}

impl InputArgs {
    /// The input of a command that queries or changes a filter and prints to standard output. `lists` are read, too.
    pub(crate) fn find_for(&self, filter: &Place, key: &KeyFile, lists: &[PathBuf]) -> Result<Run> {
        let mut apart = Apart::default();
        filter.note(Role::Filter, &mut apart)?;
        key.note(&mut apart)?;
        for list in lists {
            apart.note(Role::Input, list)?;
        }
        apart.note_output(None)?;
        self.find(&mut apart)
    }
}

/// Prints warnings about a filter in Redis.
pub(crate) fn warn_of(filter: &RedisFilter) {
    for warning in filter.warnings() {
        say!("warning: {warning}");
    }
}

/// Warns that a filter in Redis exceeds its capacity, if adding has shown it.
pub(crate) fn warn_if_overfull(filter: &RedisFilter) {
    for warning in filter.warnings() {
        if matches!(warning, Warning::Overfull { .. }) {
            output::warn(warning);
        }
    }
}

/// Whether a file is an index of files rather than a filter.
pub(crate) fn is_index(path: &Path) -> bool {
    // Opening a pipe would block.
    if !path.is_file() {
        return false;
    }
    let mut start = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(16).read_to_end(&mut start));
    read.is_ok() && FileIndex::is_index(&start)
}

/// Whether a Redisson configuration exists there.
fn is_redisson(at: &Location, options: &Options) -> bool {
    BitString::open(at, &["size", "hashIterations"], options).is_ok()
}

/// Adds the filter's location and a hint to an error.
pub(crate) fn in_redis(at: &Location) -> impl FnOnce(tamis_redis::Error) -> anyhow::Error {
    let hint = |error: &tamis_redis::Error| match error {
        tamis_redis::Error::NotFound { .. } => "\nhint: `tamis create` creates a filter",
        tamis_redis::Error::Exists { .. } => "\nhint: --force replaces it",
        tamis_redis::Error::Remains { .. } => "\nhint: `tamis drop` removes what is left",
        tamis_redis::Error::RolledBack { .. } => {
            "\nhint: `tamis verify --seal` accepts the loss, so that the filter can be opened again"
        }
        tamis_redis::Error::Filter(tamis::Error::KeyNeeded) => "\nhint: pass --secret-file",
        _ => "",
    };
    move |error| {
        let text = error.to_string();
        let name = format!("{}: ", at.name());
        let text = text.strip_prefix(&name).unwrap_or(&text);
        anyhow!("{at}: {text}{}", hint(&error))
    }
}

/// A hint for users who gave keys where a filter is expected.
const FILTER_FIRST: &str =
    "where files of keys are named, too, the filter comes first: tamis check FILTER KEYS";

/// A hint naming the commands that take other systems' filters.
const FOREIGN: &str = "this command needs a Tamis filter\n\
                       hint: check, add, info, verify, merge and copy can open it";

/// The folder of a file, if the folder doesn't exist.
fn missing_folder(file: &Path) -> Option<&Path> {
    let folder = file.parent()?;
    (!folder.as_os_str().is_empty() && !folder.exists()).then_some(folder)
}

/// The format of a file, if it is another system's filter.
pub(crate) fn recognised(path: &Path) -> Option<Format> {
    present::recognise(
        &tamis::internals::file::open_regular(path, false).ok()?,
        None,
    )
}

/// Adds the filter's name to an error, unless it has one.
pub(crate) fn named(path: &Path) -> impl FnOnce(tamis::Error) -> anyhow::Error {
    let file = path.to_owned();
    move |error| {
        let path = file.display().to_string();
        let text = error.to_string();
        let hint = match &error {
            tamis::Error::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => {
                match missing_folder(&file) {
                    Some(folder) => {
                        return anyhow!("{path}: there is no folder {}", folder.display());
                    }
                    None => "\nhint: `tamis create` creates a filter",
                }
            }
            tamis::Error::KeyNeeded => "\nhint: pass --secret-file",
            tamis::Error::Unclean { .. } => "\nhint: `tamis verify --seal` accepts the loss",
            tamis::Error::Corrupt { .. } if is_index(&file) => {
                "\nhint: `tamis grep --candidates` and `tamis grep` ask an index of files"
            }
            tamis::Error::Corrupt {
                what: "magic" | "length",
                ..
            } => match present::describe(&file) {
                Some((Found::Foreign(format), _)) => {
                    return anyhow!("{path} is a {format} filter: {FOREIGN}");
                }
                Some((Found::Unknown | Found::Known(_) | Found::Data(_), what)) => {
                    let known: Vec<&str> = Format::ALL.iter().map(|format| format.name()).collect();
                    return anyhow!(
                        "{path} is {what}, not a Tamis filter\nhint: if it is another system's filter, \
                         name the system with --format: {}",
                        known.join(", ")
                    );
                }
                Some((found, what)) if found != Found::Filter => {
                    return anyhow!("{path} is {what}, not a filter\nhint: {FILTER_FIRST}");
                }
                _ => "",
            },
            _ => "",
        };
        // Don't search the text for the name: a file may be called `f`.
        match &error {
            tamis::Error::Io { path: Some(_), .. }
            | tamis::Error::Unclean { path: Some(_) }
            | tamis::Error::Busy { .. } => anyhow!("{text}{hint}"),
            _ => anyhow!("{path}: {text}{hint}"),
        }
    }
}

/// Servers without a filter's name, as an argument.
pub(crate) fn parse_servers(text: &str) -> Result<Servers> {
    if !text.contains("://") {
        // Anything before the host may contain a password.
        let host = text.rsplit('@').next().unwrap_or_default();
        let host = if host.is_empty() { "HOST" } else { host };
        return Err(anyhow!(
            "expected an address with its scheme: redis://{host}"
        ));
    }
    let servers: Servers = text.parse().map_err(|error| no_tls(text, error))?;
    warn_if_insecure(servers.is_insecure());
    Ok(match redis_password()? {
        Some(password) => servers.with_password(&password),
        None => servers,
    })
}

/// The error of a location, with a hint for builds without TLS.
fn no_tls(text: &str, error: tamis_redis::Error) -> anyhow::Error {
    match error {
        tamis_redis::Error::NoTls => anyhow!(
            "{}: this build has no TLS\n{}",
            text.split("://").next().unwrap_or_default(),
            crate::FULL_BUILD
        ),
        error => anyhow::Error::new(error),
    }
}
