use crate::apart::{Apart, Role};
use crate::bar::Bar;
use crate::cmd::create::HashArgs;
use crate::foreign::make::{self, Distinct};
use crate::foreign::{self, Encoding, FormatArg};
use crate::location::{file_bytes, save};
use crate::present::{self, Written};
use crate::stream::{Halt, InputArgs, Pass, Report, Run};
use crate::{Exit, human, output};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use tamis::{
    AnyFilter, Error, Hash, Hasher, Kind, ListBuilder,
    internals::{Both, Contradiction, file::Existing},
};
use tamis_formats::{Format, Keys};
use tamis_records::batch::Print;

/// Build a filter from a finished list of keys
///
/// A finished list, such as a block list, a dictionary or the rows of a file,
/// needs a smaller filter than a list that still grows. Keys may come in any
/// order and more than once; the filter depends only on the set of keys.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  tamis build words.tamis words.txt.gz             one false \"yes\" in a hundred
  tamis build -p 1e-6 --smallest hashes.tamis hashes.txt
  tamis build --allow customers.txt blocked.tamis blocked.txt
                                                   never wrong about a key on either list
  tamis build --memory 1GB rows.tamis rows.csv -k csv:id
  tamis build --format guava,keys=utf8 users.txt -o users.bin
                                                   another system's filter")]
pub(crate) struct Args {
    /// The file to create; with -o, another file of keys
    #[arg(required_unless_present = "output")]
    filter: Option<PathBuf>,

    /// The file to create
    #[arg(short, long, value_name = "OUT")]
    output: Option<PathBuf>,

    #[command(flatten)]
    input: InputArgs,

    /// The acceptable rate of false "yes" answers, e.g. 0.01, 1%, 1e-6 [default: 0.01]
    #[arg(short = 'p', long = "rate", value_name = "P", value_parser = human::parse_rate, allow_negative_numbers = true)]
    rate: Option<f64>,

    /// Make the smallest filter (ribbon); look-ups take longer
    #[arg(long)]
    smallest: bool,

    /// A list of keys that must never be found; may be given several times
    ///
    /// The filter (a cascade) is then never wrong about a key on either list.
    /// For all other keys, the rate holds. Keys are read from it as from the
    /// other files.
    #[arg(long, value_name = "FILE")]
    allow: Vec<PathBuf>,

    /// Which list wins if a key is on both; without this, that is an error
    #[arg(long, value_name = "LIST", requires = "allow")]
    both: Option<Winner>,

    /// Use no more than about this much memory, e.g. 1GB [default: half of what is free]
    ///
    /// What exceeds it goes to temporary files next to the filter, 16 bytes per
    /// key. The resulting filter is the same, byte for byte. Room for the filter
    /// itself, and about 400 MB for large lists, is needed in any case.
    #[arg(long, value_name = "S", value_parser = human::parse_size)]
    memory: Option<u64>,

    /// Where temporary files go [default: next to the filter]
    #[arg(long, value_name = "DIR")]
    temp_dir: Option<PathBuf>,

    /// Replace the file if it is a filter already; nothing else is replaced
    #[arg(long)]
    force: bool,

    /// Build a filter even if there are no keys; without this, that is an error
    #[arg(long)]
    allow_empty: bool,

    /// No summary and no progress bar
    #[arg(short, long)]
    quiet: bool,

    /// Make a filter for another system: dcso, guava, spark, ...
    ///
    /// One of bip37, bits-and-blooms, bloom-filters, dcso, guava, parquet,
    /// poppy, pybloomfilter, redisbloom, redisbloom-cuckoo, spark. Its keys are
    /// held in memory while it is built. keys=HOW is how they become bytes:
    /// utf8, utf16, int32, int64, uint64, float32, float64, python-number, upper, lower.
    #[arg(long, value_name = "FORMAT[,keys=HOW]", value_parser = FormatArg::parse_new, conflicts_with_all = [
        "smallest", "allow", "memory", "temp_dir", "keyed", "key_file",
    ])]
    format: Option<FormatArg>,

    #[command(flatten)]
    hash: HashArgs,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
enum Winner {
    /// The key is found
    Block,
    /// The key is not found
    Allow,
}

pub(crate) fn run(mut args: Args) -> Result<Exit> {
    let path = args.place()?;
    let mut apart = Apart::default();
    apart.note(Role::Filter, &path)?;
    args.hash.note(&mut apart)?;
    for list in &args.allow {
        apart.note(Role::AllowList, list)?;
    }
    let mut input = args.input.find(&mut apart)?;
    input.hides_bar = args.quiet;
    args.check(&path)?;
    match &args.format {
        Some(FormatArg {
            format: Some(format),
            keys,
            ..
        }) => build_foreign(*format, *keys, &path, &args, &input),
        _ => build(&path, &args, &input),
    }
}

/// Builds a filter for another system.
fn build_foreign(
    format: Format,
    keys: Option<Keys>,
    path: &Path,
    args: &Args,
    input: &Run,
) -> Result<Exit> {
    if format == Format::RedisCuckoo && args.rate.is_some() {
        bail!(
            "-p can't be set for {format}: its fingerprints always have 8 bits, which fixes the rate"
        );
    }
    let rate = args.rate();
    let seed = args.hash.seed();
    // Refuses impossible filters before any key is read.
    make::create(format, 1, rate, seed)?;
    let encoding = Encoding::of(format, format.keys(), keys)?;
    foreign::check_rule(input)?;
    let (keys, report) = Distinct::read(input, &encoding)?;
    let records = report.records;
    match whole(report)? {
        Exit::Done => {}
        exit => return Ok(exit),
    }
    args.refuse_empty(records)?;
    let mut filter = make::create(format, keys.len(), rate, seed)?;
    for key in keys.iter() {
        filter.insert(key)?;
    }
    let bytes = filter.to_bytes();
    foreign::write(path, &bytes, args.check(path)?)?;
    if !args.quiet {
        let summary = make::summary(path, &filter, keys.len(), bytes.len());
        let more = match records - keys.len() {
            0 => String::new(),
            more => format!("; {}", repeats(more)),
        };
        say!("{summary}{more}");
    }
    make::warn_if_wanting(&filter, keys.len(), rate);
    Ok(Exit::Done)
}

fn build(path: &Path, args: &Args, input: &Run) -> Result<Exit> {
    let hasher = input.hasher(args.hash.hasher()?);
    let kind = match args {
        Args { allow, .. } if !allow.is_empty() => Kind::Cascade,
        Args { smallest: true, .. } => Kind::Ribbon,
        _ => Kind::Fuse,
    };
    let mut list = ListBuilder::with_hasher(kind, args.rate(), hasher)?
        .threads(input.threads)
        .memory(args.memory.unwrap_or_else(half_of_free_memory))
        .temp_dir(args.temp_dir.clone().unwrap_or_else(|| beside(path)));
    list = list.both(match args.both {
        None => Both::Refuse,
        Some(Winner::Block) => Both::Block,
        Some(Winner::Allow) => Both::Allow,
    });

    let report = collect(input, &hasher, &mut list, List::Block)?;
    let records = report.records;
    // A list that was cut short would make a filter that denies some of its keys.
    match whole(report)? {
        Exit::Done => {}
        exit => return Ok(exit),
    }
    args.refuse_empty(records)?;
    if let Some(input) = args.allow_input(input) {
        let report = collect(&input, &hasher, &mut list, List::Allow)?;
        match whole(report)? {
            Exit::Done => {}
            exit => return Ok(exit),
        }
    }

    let total = records * if kind == Kind::Cascade { 2 } else { 1 };
    let bar = (!args.quiet).then(|| Bar::of_building(total, list.progress()));
    let built = list.build_telling();
    drop(bar);
    let filter = match built {
        Ok((filter, contradiction)) => {
            if let Some(contradiction) = contradiction {
                output::warn(args.describe(contradiction, input, &hasher)?);
            }
            filter
        }
        Err(Error::Contradiction { count, example }) => bail!(
            "{}\nhint: --both block or --both allow says which list wins",
            args.describe(Contradiction { count, example }, input, &hasher)?
        ),
        Err(Error::Collision { example }) => {
            bail!(args.describe_collision(example, input, &hasher)?)
        }
        Err(error) => return Err(error.into()),
    };
    save(&filter, path, args.force)?;
    if !args.quiet {
        summarise(path, &filter, records);
    }
    Ok(Exit::Done)
}

impl Args {
    /// The file to create. With -o, the positional filter argument is an input.
    fn place(&mut self) -> Result<PathBuf> {
        match (self.output.take(), self.filter.take()) {
            (Some(output), first) => {
                self.input.begin_with(first);
                Ok(output)
            }
            (None, filter) => filter.context("no file to create"),
        }
    }

    /// Refuses a path that the filter can't be written to.
    fn check(&self, path: &Path) -> Result<Existing> {
        let written = match &self.format {
            Some(other) => Written::Foreign(other.format),
            None => Written::Filter,
        };
        present::check(path, self.force, written)
    }

    /// An empty list is most often a mistake, and its filter would let everything through.
    fn refuse_empty(&self, records: u64) -> Result<()> {
        if records == 0 && !self.allow_empty {
            bail!(
                "no key was read, so no filter was built\n\
                 hint: the filter comes first, then files of keys (or keys on standard input); \
                 --allow-empty builds a filter without keys"
            );
        }
        Ok(())
    }

    fn rate(&self) -> f64 {
        self.rate.unwrap_or(0.01)
    }

    /// The allow lists, read with the block list's settings.
    fn allow_input(&self, input: &Run) -> Option<Run> {
        let files = self.allow.clone();
        (!files.is_empty()).then(|| input.with_files(files))
    }

    fn describe(
        &self,
        contradiction: Contradiction,
        input: &Run,
        hasher: &Hasher,
    ) -> Result<String> {
        let Contradiction { count, example } = contradiction;
        let are = if count == 1 { "is" } else { "are" };
        let wins = match self.both {
            None => "",
            Some(Winner::Block) => "; the block list wins",
            Some(Winner::Allow) => "; the allow list wins",
        };
        let record = self.find_allowed(input, hasher, example)?;
        Ok(format!(
            "{} {are} on both lists, for example {record}{wins}",
            human::counted(count, "key")
        ))
    }

    /// The first record of the allow lists with this hash.
    fn find_allowed(&self, input: &Run, hasher: &Hasher, wanted: Hash) -> Result<String> {
        match self.allow_input(input) {
            Some(input) => find(&input, hasher, wanted),
            None => Ok(String::new()),
        }
    }

    fn describe_collision(&self, example: Hash, input: &Run, hasher: &Hasher) -> Result<String> {
        let blocked = find(input, hasher, example)?;
        let allowed = self.find_allowed(input, hasher, example)?;
        Ok(format!(
            "collision: {blocked:?} on the block list and {allowed:?} on the allow list are \
             different keys with the same hash, so no filter could tell them apart\n\
             hint: somebody chose them so: use --secret"
        ))
    }
}

/// A cascade has both lists; other kinds only the first.
#[derive(Clone, Copy)]
enum List {
    Block,
    Allow,
}

/// Collects the hashes of all keys into the list, with their checks if it uses them.
fn collect(input: &Run, hasher: &Hasher, list: &mut ListBuilder, which: List) -> Result<Report> {
    if let Some(checker) = list.checker() {
        return Pass::new(input, &(*hasher, checker), &mut [list]).run(
            |list: &mut &mut ListBuilder, keys: &[(Hash, Hash)], _: &mut [bool]| {
                let (hashes, checks): (Vec<_>, Vec<_>) = keys.iter().copied().unzip();
                let added = match which {
                    List::Block => list.add_checked(&hashes, &checks),
                    List::Allow => list.allow_checked(&hashes, &checks),
                };
                Ok(added.map_err(anyhow::Error::from)?)
            },
        );
    }
    Pass::new(input, hasher, &mut [list]).run(
        |list: &mut &mut ListBuilder, hashes: &[Hash], _: &mut [bool]| {
            let added = match which {
                List::Block => list.add_hashes(hashes),
                List::Allow => list.allow_hashes(hashes),
            };
            Ok(added.map_err(anyhow::Error::from)?)
        },
    )
}

/// Whether everything was read. An empty list counts as read.
fn whole(report: Report) -> Result<Exit> {
    Ok(match report.finish()? {
        Exit::Done | Exit::NoneFound => Exit::Done,
        Exit::InputFailed => bail!("not all keys could be read, so no filter was built"),
        exit => exit,
    })
}

/// The first record with this hash, as written in the file.
fn find(input: &Run, hasher: &Hasher, wanted: Hash) -> Result<String> {
    let mut found = Vec::new();
    Pass::new(input, hasher, &mut [()])
        .print(Print::Chosen, &mut found)
        .run(|(): &mut (), hashes: &[Hash], chosen: &mut [bool]| {
            let first = hashes.iter().position(|hash| *hash == wanted);
            chosen.fill(false);
            match first {
                Some(at) => {
                    chosen[at] = true;
                    Err(Halt::Enough)
                }
                None => Ok(()),
            }
        })?;
    let text = String::from_utf8_lossy(&found);
    // The header row is printed before the first record; it isn't a key.
    let line = text
        .lines()
        .last()
        .unwrap_or_default()
        .trim_end_matches('\0');
    Ok(line.to_owned())
}

fn summarise(path: &Path, filter: &AnyFilter, records: u64) {
    let keys = filter.keys().get();
    let bits_per_key = match keys {
        0 => String::new(),
        keys => format!(
            " ({:.2} bits a key)",
            filter.bytes() as f64 * 8.0 / keys as f64
        ),
    };
    say!(
        "{}: {} of {}{} at a rate of {}, {}{bits_per_key}",
        path.display(),
        filter.kind(),
        human::counted(keys, "key"),
        match records.saturating_sub(keys) {
            0 => String::new(),
            more => format!(" ({})", repeats(more)),
        },
        human::rate(filter.rate_now()),
        human::size(file_bytes(path, filter.bytes())),
    );
}

fn repeats(records: u64) -> String {
    format!("{} repeated a key", human::counted(records, "record"))
}

/// Half, to leave memory for other processes.
fn half_of_free_memory() -> u64 {
    const UNKNOWN: u64 = 2 << 30;
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let kilobytes = text.lines().find_map(|line| {
        let value = line.strip_prefix("MemAvailable:")?.trim();
        value.strip_suffix("kB")?.trim().parse::<u64>().ok()
    });
    kilobytes.map_or(UNKNOWN, |kilobytes| kilobytes * 1024 / 2)
}

fn beside(path: &Path) -> PathBuf {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir.into(),
        _ => PathBuf::from("."),
    }
}
