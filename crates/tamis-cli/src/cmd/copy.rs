mod text;

use crate::apart::{Apart, Role};
use crate::bitmap;
use crate::foreign::{self, ForeignArgs, Opened};
use crate::location::{KeyFile, Place, file_bytes, in_redis, warn_of};
use crate::present::{self, Written};
use crate::{Exit, human};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::str::FromStr;
use tamis::{AnyFilter, Kind, internals::file::Existing};
use tamis_formats::{Format, Hint, Wrap};
use tamis_redis::{Layout, Location, RedisFilter};

/// Copy a filter between files and Redis, bit for bit
///
/// Blocked, counting and growing filters and windows of time can live in Redis;
/// with --module, growing and cuckoo filters can live inside a server that has
/// loaded Tamis's module. All other kinds live in files only.
///
/// A filter can't be converted to another system's layout. Another system's
/// filter is copied bit for bit, without gzip; --as writes it in another of
/// that system's own encodings (dump or chunks for RedisBloom, json or binary
/// for bits-and-blooms). `tamis build --format` makes any filter from keys.
///
/// With --as base64, TO is `-` and the filter is printed as text, for places that
/// take nothing else: mail, JSON, environment variables. A file of such text, or of
/// what pybloomfilter's `to_base64` made, is copied back to a filter; `-` is
/// standard input.
///
/// With --as blocked, a counting filter becomes the blocked filter that its
/// keys would have built: a quarter of the size, but keys can't be removed.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis copy seen.tamis redis://10.0.0.7/seen       share a filter built offline
  tamis copy redis://10.0.0.7/seen backup.tamis     and back: the same bits
  tamis copy backup.tamis redis://10.0.0.7/seen --module   for BF.* clients, too
  tamis copy online.tamis list.tamis --as blocked   without counters, for distribution
  tamis copy hashlookup.bloom.gz hashlookup.bloom   another system's, unpacked
  tamis copy seen.tamis - --as base64 > seen.txt    as text, and back: tamis copy seen.txt seen.tamis
  tamis copy --format name=seen dump.rdb seen.dump --as dump")]
pub(crate) struct Args {
    /// The filter: a file, or redis://HOST:PORT/DB/NAME
    from: Place,

    /// Where to copy it
    to: Place,

    /// Convert it: blocked, base64; for other systems' filters dump, chunks, json, binary
    #[arg(long = "as", value_name = "WHAT")]
    as_kind: Option<As>,

    /// Replace the filter that is there; nothing else is replaced
    #[arg(long)]
    force: bool,

    /// Put it into the server's module, where BF.* and CF.* commands can use it
    #[arg(long, help_heading = "Filters in Redis")]
    module: bool,

    #[command(flatten)]
    key: KeyFile,

    #[command(flatten)]
    foreign: ForeignArgs,
}

impl Args {
    /// Saves a Tamis filter to its destination.
    fn save(&self, filter: &AnyFilter) -> Result<()> {
        self.to.save(filter, self.force, || {
            let options = self.key.redis_options()?;
            Ok(if self.module {
                options.in_module()
            } else {
                options
            })
        })?;
        let bytes = match &self.to {
            Place::File(path) => file_bytes(path, filter.bytes()),
            Place::Redis(_) => filter.bytes(),
        };
        say!("{}: {}", self.to, human::size(bytes));
        Ok(())
    }

    /// Refuses an invalid destination before anything is read. The filter's format isn't known yet, unless `--format`
    /// gives it.
    fn check(&self, to: &Path) -> Result<Existing> {
        let written = match self.foreign.format() {
            Some(Format::Bitmap) => Written::Bits,
            format => Written::Foreign(format),
        };
        present::check(to, self.force, written)
    }
}

/// What a filter can become.
#[derive(Clone, Copy)]
enum As {
    /// A counting filter without its counters.
    Blocked,
    /// As text.
    Base64,
    /// Another file format of the same foreign system.
    Wrap(Wrap),
}

/// Why layouts can't be converted.
const LAYOUTS: &str = "a filter can't be converted to another layout; build it from the keys";

impl FromStr for As {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == Kind::Blocked.name() {
            return Ok(Self::Blocked);
        }
        if text == "base64" {
            return Ok(Self::Base64);
        }
        if let Some(wrap) = Wrap::ALL.into_iter().find(|wrap| wrap.name() == text) {
            return Ok(Self::Wrap(wrap));
        }
        let is_kind = Kind::ALL.into_iter().any(|kind| kind.name() == text);
        if is_kind || text.parse::<Format>().is_ok() {
            return Err(LAYOUTS.into());
        }
        let names: Vec<&str> = Wrap::ALL.into_iter().map(Wrap::name).collect();
        Err(format!("expected blocked, base64, {}", names.join(", ")))
    }
}

/// Copies another system's filter.
fn copy_foreign(mut opened: Opened, args: &Args) -> Result<Exit> {
    let from = opened.path.display().to_string();
    let format = opened.filter.format();
    if let Place::Redis(at) = &args.to
        && matches!(format, Format::RedisBloom | Format::RedisCuckoo)
    {
        return restore(opened, at, args);
    }
    let to = match &args.to {
        Place::File(path) if path.extension().is_none_or(|end| end != "tamis") => path,
        to => bail!("{from} is a {format} filter, and {to} would be a Tamis filter: {LAYOUTS}"),
    };
    opened.filter.unpack();
    match args.as_kind {
        None => {}
        Some(As::Blocked) => bail!("{from} is a {format} filter: {LAYOUTS}"),
        Some(As::Base64) => {
            bail!("{from} is a {format} filter, and --as base64 is for Tamis filters")
        }
        Some(As::Wrap(wrap)) => opened.filter.rewrap(wrap).context(from)?,
    }
    let bytes = opened.filter.to_bytes();
    let existing = present::check(to, args.force, Written::Foreign(Some(format)))?;
    foreign::write(to, &bytes, existing)?;
    say!("{}: {}", args.to, human::size(bytes.len() as u64));
    Ok(Exit::Done)
}

/// Copies a bit string from Redis or a file to a file.
fn copy_bitmap(args: &Args) -> Result<Exit> {
    let Place::File(to) = &args.to else {
        bail!(
            "{}: a bitmap is copied to a file; `redis-cli -x SET NAME <FILE` puts it back",
            args.to
        );
    };
    if args.as_kind.is_some() || to.extension().is_some_and(|end| end == "tamis") {
        bail!("{} is a bitmap: {LAYOUTS}", args.from);
    }
    let bytes = bitmap::read(&args.from, &args.key)?;
    let existing = present::check(to, args.force, Written::Bits)?;
    foreign::write(to, &bytes, existing)?;
    say!("{}: {}", args.to, human::size(bytes.len() as u64));
    Ok(Exit::Done)
}

/// Copies a RedisBloom filter to a server that has the module.
fn restore(mut opened: Opened, at: &Location, args: &Args) -> Result<Exit> {
    opened.filter.unpack();
    opened.filter.rewrap(Wrap::Dump)?;
    let options = args.key.redis_options()?;
    let dump = opened.filter.to_bytes();
    let restored = RedisFilter::restore(at, &dump, args.force, &options).map_err(in_redis(at))?;
    warn_of(&restored);
    say!("{at}: {}", human::size(restored.bytes()));
    Ok(Exit::Done)
}

/// A filter of another system's layout that a module keeps, as that system's file.
fn dumped(at: &Location, filter: &mut RedisFilter) -> Result<Opened> {
    // Leaked: mapped files live as long as the process, too.
    let dump: &'static [u8] = filter.dump().map_err(in_redis(at))?.leak();
    Ok(Opened {
        filter: tamis_formats::open(dump, Hint::default()).with_context(|| at.to_string())?,
        path: at.to_string().into(),
        name: None,
    })
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let mut apart = Apart::default();
    args.to.note(Role::Output, &mut apart)?;
    args.key.note(&mut apart)?;
    args.from.note(Role::Input, &mut apart)?;
    if matches!(args.as_kind, Some(As::Base64)) {
        return text::print(&args);
    }
    if let Place::File(path) = &args.to {
        if path == Path::new("-") {
            bail!("standard output takes a filter as text only: --as base64");
        }
        args.check(path)?;
        if args.module {
            bail!("{}: --module is for a filter in Redis", path.display());
        }
    }
    if args.foreign.is_bitmap() {
        return copy_bitmap(&args);
    }
    if let Place::File(path) = &args.from
        && let Some(text) = text::read(path)?
    {
        return text::copy(path, &text, &args);
    }
    if let Place::File(path) = &args.from
        && let Some(opened) = args.foreign.open(path)?
    {
        return copy_foreign(opened, &args);
    }
    args.foreign.refuse_in_redis()?;
    let mut filter = match &args.from {
        Place::File(_) => args.from.load(&args.key)?,
        Place::Redis(at) => {
            let mut filter = args.key.open_redis(at)?;
            if let Some(Layout::RedisBloom | Layout::ValkeyBloom) = filter.module_layout() {
                return copy_foreign(dumped(at, &mut filter)?, &args);
            }
            filter.download().map_err(in_redis(at))?
        }
    };
    match args.as_kind {
        None => {}
        Some(As::Blocked) => filter = filter.to_blocked()?.into(),
        Some(As::Base64 | As::Wrap(_)) => bail!("{} is a Tamis filter: {LAYOUTS}", args.from),
    }
    args.save(&filter)?;
    Ok(Exit::Done)
}
