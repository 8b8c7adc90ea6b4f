use crate::apart::{Apart, Role};
use crate::foreign;
use crate::location::{
    Place, file_bytes, in_redis, redis_options, refuse_waiting, saving, warn_if_public, warn_of,
    warn_of_secret,
};
use crate::present::{self, Written};
use crate::stream::RuleArgs;
use crate::window::WindowArgs;
use crate::{Exit, human, output, redisson};
use anyhow::{Context as _, Result, anyhow, bail};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tamis::internals::raw::{BloomShape, Shape};
use tamis::{
    AnyFilter, Hasher, Kind, Plan, SecretKey,
    internals::file::Existing,
    window::{Span, WindowOptions},
};
use tamis_formats::Format;
use tamis_redis::{Location, RedisFilter};
use tamis_report::window::last_keys;

/// Create an empty filter
///
/// Say how many keys you expect and which rate of false "yes" answers is
/// acceptable; the size follows. You can add more keys than expected, but that
/// raises the rate; `tamis info` shows it.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis create seen.tamis --capacity 10M               one false \"yes\" in a hundred, 12.4 MB
  tamis create seen.tamis --capacity 10M -p 1e-6       one in a million, 38.7 MB
  tamis create seen.tamis --capacity 10M --size 20MB   the best rate within 20 MB
  tamis create toy.tamis --kind bloom --bits 16 --hashes 3    a picture's: `tamis explain` draws it
  tamis create seen.tamis --capacity 10M --secret      for keys that an attacker may choose
  tamis create seen.tamis --within 24h --capacity 10M  forgets keys a day after they were first seen
  tamis create redis://10.0.0.7/seen --capacity 10M    for many workers
  tamis create redis://10.0.0.7/seen --capacity 10M --module     inside the server, for BF.* clients, too
  tamis create --format dcso seen.bloom --capacity 10M -p 1e-4   another system's filter")]
pub(crate) struct Args {
    /// The filter to create: a file, or redis://HOST:PORT/DB/NAME
    filter: Place,

    #[command(flatten)]
    shape: ShapeArgs,

    #[command(flatten)]
    rule: RuleArgs,

    /// Create a filter for another system: dcso, guava, spark, ...
    ///
    /// One of bip37, bits-and-blooms, bloom-filters, dcso, guava, parquet,
    /// poppy, pybloomfilter, redisbloom, redisbloom-cuckoo, redisson (in
    /// Redis), spark. Its size is what that system would make it.
    #[arg(long, value_name = "FORMAT", conflicts_with_all = [
        "size", "bits", "hashes", "kind", "keyed", "key_file", "url", "ignore_case", "values", "ttl",
    ])]
    format: Option<Format>,

    /// Create it in the server's module, where BF.* and CF.* commands can use it
    ///
    /// The server must have loaded Tamis's module or, for a growing filter, any
    /// module with BF.* commands. The module hashes the keys itself. Kinds:
    /// growing (the default), cuckoo and, with --within, window.
    #[arg(long, help_heading = "Filters in Redis", conflicts_with_all = [
        "size", "bits", "hashes", "format", "keyed", "key_file", "seed", "url", "ignore_case", "values",
    ])]
    module: bool,

    /// A key consists of this many values; for `tamis add -k csv:a,b` it is 2
    #[arg(long, value_name = "N", default_value_t = 1)]
    values: usize,

    /// Replace it if it exists and is a filter; in Redis, the new filter keeps the old one's time to live
    #[arg(long)]
    force: bool,

    /// Let the filter expire after this time, e.g. 12h, 7d
    #[arg(long, value_name = "TIME", value_parser = human::parse_duration, help_heading = "Filters in Redis")]
    ttl: Option<Duration>,
}

/// What is asked of a new filter.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct ShapeArgs {
    /// How many keys to expect, e.g. 1000000, 1e6, 10M
    #[arg(long = "capacity", value_name = "N", value_parser = human::parse_count, allow_negative_numbers = true)]
    keys: Option<u64>,

    /// The acceptable rate of false "yes" answers, e.g. 0.01, 1%, 1e-6 [default: 0.01]
    #[arg(short = 'p', long = "rate", value_name = "P", value_parser = human::parse_rate, allow_negative_numbers = true)]
    rate: Option<f64>,

    /// Get the best rate within this size instead, e.g. 500MB, 2GiB
    #[arg(long, value_name = "S", value_parser = human::parse_size, conflicts_with = "rate")]
    size: Option<u64>,

    #[command(flatten)]
    bloom: BloomArgs,

    /// The kind of filter: blocked, bloom, counting, cuckoo, growing or window
    ///
    ///   blocked   the default: one cache miss per key
    ///   bloom     the textbook filter: smaller, but several cache misses
    ///   counting  keys can be removed and counted
    ///   cuckoo    keys can be removed; smaller than counting
    ///   growing   for an unknown number of keys
    ///   window    for a stream: forgets (--within, --last; without them, the last N keys)
    ///
    /// `tamis build` makes the kinds for finished lists: fuse, ribbon, cascade.
    /// With --force in Redis, the default is the kind of the filter replaced.
    #[arg(long, value_name = "KIND", value_parser = parse_kind, verbatim_doc_comment)]
    kind: Option<Kind>,

    #[command(flatten)]
    window: WindowArgs,

    #[command(flatten)]
    hash: HashArgs,
}

/// The numbers of a textbook filter, for those who want to set them.
#[derive(clap::Args, Clone, Copy, Debug)]
pub(crate) struct BloomArgs {
    /// With --kind bloom: how many bits a key sets (k), 1 to 64; then --capacity may be omitted
    ///
    /// Without --capacity, the filter is made for as many keys as set half of its bits.
    #[arg(long, value_name = "K", conflicts_with = "rate")]
    hashes: Option<u32>,

    /// With --kind bloom: how many bits the filter has (m), e.g. 16
    #[arg(long, value_name = "M", value_parser = human::parse_count)]
    #[arg(conflicts_with_all = ["rate", "size"])]
    bits: Option<u64>,
}

impl BloomArgs {
    /// A filter of exactly the given numbers, if there are any.
    pub(crate) fn plan(
        self,
        kind: Option<Kind>,
        keys: Option<u64>,
        size: Option<u64>,
    ) -> Result<Option<Plan>> {
        let option = match self {
            Self { bits: Some(_), .. } => "--bits",
            Self {
                hashes: Some(_), ..
            } => "--hashes",
            _ => return Ok(None),
        };
        match kind {
            Some(Kind::Bloom) => {}
            Some(kind) => bail!(
                "{option} is for --kind bloom; the numbers of a {kind} filter follow from --capacity and -p"
            ),
            None => {
                bail!("{option} needs --kind bloom: only the textbook filter has any number of it")
            }
        }
        let bits = match (self.bits, size) {
            (Some(bits), _) => bits,
            (None, Some(bytes)) => BloomShape::bits_within(bytes),
            (None, None) => bail!("--hashes needs a size: --bits M or --size S"),
        };
        if self.hashes.is_none() && keys.is_none() {
            bail!(
                "--bits needs a second number: --hashes K, or --capacity N, from which K follows"
            );
        }
        Ok(Some(Plan::of_bits(bits, self.hashes, keys)?))
    }
}

/// How keys are hashed.
#[derive(clap::Args, Clone, Debug)]
#[group(multiple = false)]
pub(crate) struct HashArgs {
    /// Hash under this seed; filters combine only if their seeds are equal
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    seed: u64,

    /// Hash under a random secret, against keys chosen by an attacker
    ///
    /// The secret is stored in the filter: anyone who can read the file can
    /// still construct collisions.
    #[arg(long = "secret")]
    keyed: bool,

    /// Like --secret, with the secret in FILE instead of in the filter
    ///
    /// If FILE does not exist, it is created, readable by you alone.
    #[arg(long = "secret-file", value_name = "FILE")]
    key_file: Option<PathBuf>,
}

impl ShapeArgs {
    pub(crate) fn plan(&self) -> Result<Plan> {
        if let Some(plan) = self.bloom.plan(self.kind, self.keys, self.size)? {
            return Ok(plan);
        }
        if let Some(plan) = plan_window(&self.window, self.kind, self.keys, self.rate, self.size)? {
            return Ok(plan);
        }
        let keys = self.keys()?;
        Ok(match self.size {
            Some(bytes) => Plan::for_size(self.kind(), keys, bytes)?,
            None => Plan::for_rate(self.kind(), keys, self.rate.unwrap_or(0.01))?,
        })
    }

    fn kind(&self) -> Kind {
        self.kind.unwrap_or(Kind::Blocked)
    }

    fn keys(&self) -> Result<u64> {
        self.keys.context(
            "say how many keys to expect: --capacity N, e.g. --capacity 10M; a guess will do",
        )
    }

    /// One line per key, so that adding one is one command to the server.
    fn plan_in_redis(&self, in_module: bool) -> Result<Plan> {
        if self.size.is_some() {
            bail!("--size is for files; for a filter in Redis, give the rate (-p)");
        }
        if self.bloom.hashes.is_some() || self.bloom.bits.is_some() {
            bail!(
                "--hashes and --bits are for files: a filter in Redis has all bits of a key in one line"
            );
        }
        if let Some(plan) = plan_window(&self.window, self.kind, self.keys, self.rate, self.size)? {
            return Ok(plan);
        }
        let keys = self.keys()?;
        let rate = self.rate.unwrap_or(0.01);
        Ok(match self.kind() {
            Kind::Cuckoo => Plan::in_module(Kind::Cuckoo, keys, rate)?,
            Kind::Growing if in_module => Plan::in_module(Kind::Growing, keys, rate)?,
            kind @ (Kind::Blocked | Kind::Counting | Kind::Growing) => {
                Plan::one_line(kind, keys, rate)?
            }
            kind => bail!(
                "{} filters can't be kept in Redis: use a blocked, a counting or a growing filter or a window there",
                kind.name()
            ),
        })
    }

    pub(crate) fn hasher(&self) -> Result<Hasher> {
        self.hash.hasher()
    }
}

/// A window, if asked for.
pub(crate) fn plan_window(
    window: &WindowArgs,
    kind: Option<Kind>,
    keys: Option<u64>,
    rate: Option<f64>,
    size: Option<u64>,
) -> Result<Option<Plan>> {
    let (options, by_kind) = match (window.options()?, kind, keys) {
        (Some(options), None | Some(Kind::Window), _) => (options, false),
        (Some(_), Some(kind), _) => {
            bail!("a {kind} filter forgets nothing: omit --kind, or --within and --last")
        }
        (None, Some(Kind::Window), Some(keys)) => (WindowOptions::new(Span::Keys(keys)), true),
        (None, Some(Kind::Window), None) => {
            bail!("say what a window remembers: --within TIME or --last N")
        }
        _ => return Ok(None),
    };
    let keys = WindowArgs::keys(&options, keys.filter(|_| !by_kind), || None)?;
    Ok(Some(match size {
        Some(_) if !by_kind => {
            bail!(
                "--size is for a window of the last N keys (--kind window --capacity N): give the rate, -p"
            )
        }
        Some(bytes) => Plan::for_size(Kind::Window, keys, bytes)?,
        None => Plan::window(&options, keys, rate.unwrap_or(0.01))?,
    }))
}

impl HashArgs {
    pub(crate) fn note(&self, apart: &mut Apart) -> Result<()> {
        let mut files = self.key_file.iter();
        files.try_for_each(|path| apart.note(Role::KeyFile, path))
    }

    pub(crate) const fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn hasher(&self) -> Result<Hasher> {
        Ok(match self {
            Self {
                key_file: Some(path),
                ..
            } => {
                let key = SecretKey::load_or_create(path)?;
                warn_if_public(path);
                Hasher::keyed_apart(key)
            }
            Self { keyed: true, .. } => Hasher::keyed(SecretKey::random()?),
            Self { seed, .. } => Hasher::seeded(*seed),
        })
    }
}

pub(crate) fn parse_kind(name: &str) -> Result<Kind, String> {
    let creatable = || Kind::ALL.into_iter().filter(|kind| !kind.is_static());
    let names = || creatable().map(Kind::name).collect::<Vec<_>>().join(", ");
    match Kind::ALL.into_iter().find(|kind| kind.name() == name) {
        Some(kind) if kind.is_static() => Err(format!(
            "keys can't be added to a {kind} filter later; `tamis build` makes one from all its keys"
        )),
        Some(kind) => Ok(kind),
        None => Err(format!("unknown kind, expected one of {}", names())),
    }
}

/// Creates a filter for another system.
fn create_foreign(format: Format, path: &Path, args: &Args) -> Result<Exit> {
    let (keys, rate) = (args.shape.keys()?, args.shape.rate);
    if format == Format::RedisCuckoo && rate.is_some() {
        bail!(
            "-p can't be set for {format}: its fingerprints always have 8 bits, which fixes the rate"
        );
    }
    let rate = rate.unwrap_or(0.01);
    let filter = foreign::make::create(format, keys, rate, args.shape.hash.seed())?;
    let bytes = filter.to_bytes();
    let existing = present::check(path, args.force, Written::Foreign(Some(format)))?;
    foreign::write(path, &bytes, existing)?;
    say!(
        "{}",
        foreign::make::summary(path, &filter, keys, bytes.len())
    );
    foreign::make::warn_if_wanting(&filter, keys, rate);
    Ok(Exit::Done)
}

/// Why a filter could not be made; if it is too large, with the size it needs.
fn unmade(path: &Path, plan: &Plan, error: tamis::Error) -> anyhow::Error {
    use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
    match &error {
        tamis::Error::Io { source, .. }
            if matches!(source.kind(), FileTooLarge | QuotaExceeded | StorageFull) =>
        {
            anyhow!(
                "{}: {} at a rate of {} take {}: {source}",
                path.display(),
                human::counted(plan.keys(), "key"),
                human::rate(plan.promise()),
                human::size(plan.bytes()),
            )
        }
        _ => saving(path)(error),
    }
}

/// Warns that a filter of the given numbers would be useless for that many keys.
fn warn_if_hopeless(plan: &Plan) {
    if let (Shape::Bloom(shape), rate @ 0.5..) = (plan.shape(), plan.rate()) {
        output::warn(format_args!(
            "{} set {} of {}: {} of all keys will seem present\n\
             hint: fewer keys (--capacity), or more bits",
            human::counted(plan.keys(), "key"),
            if rate > 0.999 { "nearly all" } else { "most" },
            human::counted(shape.bits(), "bit"),
            human::rate(rate),
        ));
    }
}

pub(crate) fn run(args: Args) -> Result<Exit> {
    let mut apart = Apart::default();
    args.filter.note(Role::Filter, &mut apart)?;
    args.shape.hash.note(&mut apart)?;
    if let (Some(format), Place::File(path)) = (args.format, &args.filter) {
        return create_foreign(format, path, &args);
    }
    if let (Some(format), Place::Redis(at)) = (args.format, &args.filter) {
        return create_redisson(format, at, &args);
    }
    if args.module && matches!(args.filter, Place::File(_)) {
        bail!("{}: --module is for a filter in Redis", args.filter);
    }
    let rule = args.rule.of_values(args.values)?;
    let hasher = args.shape.hasher()?.with_rule(rule);
    let (plan, bytes, bits_per_key) = match &args.filter {
        Place::File(path) => create_file(path, &args, hasher)?,
        Place::Redis(at) => create_redis(at, &args, hasher)?,
    };
    let keys = match plan.shape() {
        Shape::Window(shape) => last_keys(&shape.options()),
        _ => None,
    };
    say!(
        "{}: {} for {} at a rate of {}, {} ({bits_per_key:.2} bits a key)",
        args.filter,
        plan.kind(),
        keys.unwrap_or_else(|| human::counted(plan.keys(), "key")),
        human::rate(plan.promise()),
        human::size(bytes),
    );
    warn_if_hopeless(&plan);
    Ok(Exit::Done)
}

/// A plan that was carried out, its bytes there, and its bits a key.
type Created = (Plan, u64, f64);

fn create_file(path: &Path, args: &Args, hasher: Hasher) -> Result<Created> {
    let plan = args.shape.plan()?;
    match present::check(path, args.force, Written::Filter)? {
        Existing::Replace => AnyFilter::create_over(path, &plan, hasher),
        Existing::Keep => AnyFilter::create(path, &plan, hasher),
    }
    .map_err(|error| unmade(path, &plan, error))?;
    Ok((plan, file_bytes(path, plan.bytes()), plan.bits_per_key()))
}

fn create_redis(at: &Location, args: &Args, hasher: Hasher) -> Result<Created> {
    let mut options = redis_options()?;
    let mut shape = args.shape.clone();
    let is_window = shape.window.options()?.is_some();
    if args.force && shape.kind.is_none() && !is_window {
        shape.kind = RedisFilter::kind_at(at, &options).map_err(in_redis(at))?;
    }
    if args.module {
        if !is_window {
            shape.kind = shape.kind.or(Some(Kind::Growing));
        }
        options = options.in_module();
    }
    let plan = shape.plan_in_redis(args.module)?;
    let created = if args.force {
        RedisFilter::create_over(at, &plan, hasher, &options)
    } else {
        RedisFilter::create(at, &plan, hasher, &options)
    };
    let mut filter = created.map_err(in_redis(at))?;
    warn_of(&filter);
    warn_of_secret(&hasher, at);
    if let Some(time) = args.ttl {
        filter.expire_in(time).map_err(in_redis(at))?;
    }
    let own = filter.module_layout().is_some() || plan.kind() == Kind::Window;
    if own {
        let bytes = filter.bytes();
        Ok((plan, bytes, bytes as f64 * 8.0 / plan.keys() as f64))
    } else {
        Ok((plan, plan.bytes(), plan.bits_per_key()))
    }
}

fn create_redisson(format: Format, at: &Location, args: &Args) -> Result<Exit> {
    if format != Format::Redisson {
        bail!("{at}: of the other systems, only redisson's filters can be created in Redis");
    }
    if args.shape.hash.seed() != 0 {
        bail!("--seed: redisson has no seed");
    }
    refuse_waiting(at)?;
    let options = redis_options()?;
    let (keys, rate) = (args.shape.keys()?, args.shape.rate.unwrap_or(0.01));
    redisson::create(at, keys, rate, args.force, &options)?;
    Ok(Exit::Done)
}
