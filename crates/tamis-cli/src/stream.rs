//! Shared by the commands that read keys: signals, progress, and the end of a run.

pub(crate) use crate::source::{InputArgs, RuleArgs, Run, threads};

use crate::bar::Bar;
use crate::output::Sink;
use crate::{Exit, human, output};
use anyhow::{Context, Result, anyhow};
use std::fs::{self, File, Metadata};
use std::io::{self, IsTerminal, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tamis::{Hash, Hasher, Moment};
use tamis_records::batch::{Print, Token};
use tamis_records::input::InputError;
use tamis_records::key::{Refused, Wrong};
use tamis_records::pipeline::{self, Deciding, Job};
use tamis_records::progress::Progress;
use tamis_records::reader::CHUNK;

pub(crate) type Halt = pipeline::Halt<anyhow::Error>;
pub(crate) type Checkpoint<'a, S> = pipeline::Checkpoint<'a, S, anyhow::Error>;

/// Chunk size if steps should be small: about a thousand URLs.
const SMALL_CHUNK: usize = 64 << 10;

/// How a run over the records went.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) records: u64,
    /// Records whose answer was yes.
    pub(crate) chosen: u64,
    pub(crate) bytes: u64,
    pub(crate) without_key: u64,
    pub(crate) without_time: u64,
    pub(crate) not_urls: u64,
    pub(crate) elapsed: Duration,
    /// The signal that ended the run early.
    pub(crate) signal: Option<i32>,
    /// Whether the whole output was written. A failure is an error, unless the reader closed the output.
    pub(crate) output: std::io::Result<()>,
    input_errors: usize,
}

impl Report {
    /// Whether decided records have been printed, so that they may be remembered.
    pub(crate) fn is_printed(&self) -> bool {
        self.output.is_ok()
    }

    /// Whether there is anything to summarise: inputs that could not be opened are already reported.
    pub(crate) const fn read_something(&self) -> bool {
        self.records > 0 || self.input_errors == 0
    }

    /// Whether all input was read, decided and printed.
    pub(crate) fn went_well(&self) -> bool {
        self.signal.is_none() && self.input_errors == 0 && self.is_printed()
    }

    /// The exit of the command, after it has saved its results.
    pub(crate) fn finish(self) -> Result<Exit> {
        if self.without_key > 0 {
            output::warn(format_args!(
                "{} without such a key: there the whole record was the key",
                human::counted(self.without_key, "record")
            ));
        }
        if self.not_urls > 0 {
            output::warn(format_args!(
                "compared as they are, since they are not URLs: {}",
                human::counted(self.not_urls, "key")
            ));
        }
        self.output.context("writing the output")?;
        Ok(match (self.signal, self.input_errors, self.chosen) {
            (Some(signal), ..) => Exit::Interrupted(signal),
            (None, 1.., _) => Exit::InputFailed,
            (None, 0, 0) => Exit::NoneFound,
            (None, 0, _) => Exit::Done,
        })
    }
}

/// Turns keys into what the filter is queried with.
pub(crate) trait Keyed: Sync {
    type Token: Token;

    /// The rule that makes keys.
    fn rule(&self) -> &tamis::KeyRule;

    fn token(&self, key: &[u8]) -> Self::Token;

    /// The same for a record with a time.
    #[inline]
    fn token_at(&self, key: &[u8], _: Option<Moment>) -> Self::Token {
        self.token(key)
    }
}

impl Keyed for Hasher {
    type Token = Hash;

    fn rule(&self) -> &tamis::KeyRule {
        Self::rule(self)
    }

    #[inline]
    fn token(&self, key: &[u8]) -> Hash {
        self.hash_exact(key)
    }
}

/// Two hashes per key, made by one rule.
impl Keyed for (Hasher, Hasher) {
    type Token = (Hash, Hash);

    fn rule(&self) -> &tamis::KeyRule {
        self.0.rule()
    }

    #[inline]
    fn token(&self, key: &[u8]) -> (Hash, Hash) {
        (self.0.hash_exact(key), self.1.hash_exact(key))
    }
}

/// One pass over the records.
pub(crate) struct Pass<'a, S, H = Hasher> {
    input: &'a Run,
    hasher: &'a H,
    shards: &'a mut [S],
    print: Print,
    output: Option<&'a mut (dyn Write + Send)>,
    output_file: Option<File>,
    checkpoint: Option<Checkpoint<'a, S>>,
    hides_bar: bool,
    small_steps: bool,
}

impl<'a, S: Send, H: Keyed> Pass<'a, S, H> {
    /// A pass that prints nothing. The hash of a key chooses the shard that decides it.
    pub(crate) fn new(input: &'a Run, hasher: &'a H, shards: &'a mut [S]) -> Self {
        Self {
            input,
            hasher,
            shards,
            print: Print::Nothing,
            output: None,
            output_file: None,
            checkpoint: None,
            hides_bar: input.hides_bar,
            small_steps: false,
        }
    }

    /// Prints these records.
    pub(crate) fn print(mut self, print: Print, output: &'a mut (dyn Write + Send)) -> Self {
        (self.print, self.output) = (print, Some(output));
        self
    }

    /// Prints these records to a sink, on several threads if possible.
    pub(crate) fn print_to(mut self, print: Print, sink: &'a mut Sink) -> Self {
        self.output_file = sink.own_file();
        self.print(print, sink)
    }

    /// Hides the progress bar if `so`.
    pub(crate) fn hide_bar_if(mut self, so: bool) -> Self {
        self.hides_bar = so;
        self
    }

    /// Uses one thread and small steps: the records of a step are printed before the next step is decided.
    pub(crate) fn in_small_steps(mut self) -> Self {
        self.small_steps = true;
        self
    }

    /// Saves the shards from time to time.
    pub(crate) fn checkpoint(mut self, checkpoint: Option<Checkpoint<'a, S>>) -> Self {
        self.checkpoint = checkpoint;
        self
    }

    /// `decide` answers for the keys of one shard, in input order. If it fails, the run fails, after printing what was
    /// chosen before.
    pub(crate) fn run(
        self,
        decide: impl Fn(&mut S, &[H::Token], &mut [bool]) -> Result<(), Halt> + Sync,
    ) -> Result<Report> {
        self.carry(Deciding::ByShards, decide)
    }

    /// The same, with answers from `ask`, which runs on all threads at once; `decide` gets them in input order.
    pub(crate) fn run_asking(
        self,
        ask: impl Fn(&[H::Token], &mut [bool]) -> Result<(), Halt> + Sync,
        decide: impl Fn(&mut S, &[H::Token], &mut [bool]) -> Result<(), Halt> + Sync,
    ) -> Result<Report> {
        self.carry(Deciding::Asking(&ask), decide)
    }

    /// Decides without shards, with an adder that keeps chunks in order itself.
    pub(crate) fn run_in_order(
        self,
        decide: impl Fn(u64, &[H::Token], &mut [bool], &dyn Fn() -> bool) -> Result<bool> + Sync,
    ) -> Result<Report> {
        self.carry(Deciding::InOrder(&decide), |_, _, _| Ok(()))
    }

    fn carry(
        self,
        deciding: Deciding<H::Token, anyhow::Error>,
        decide: impl Fn(&mut S, &[H::Token], &mut [bool]) -> Result<(), Halt> + Sync,
    ) -> Result<Report> {
        let rule = self.input.rule_for(self.hasher.rule())?;
        let paths = &self.input.files;
        if paths.iter().any(|path| path == Path::new("-")) && std::io::stdin().is_terminal() {
            say!("reading standard input; Ctrl-D ends it, Ctrl-C stops");
        }
        let progress = Arc::new(Progress::default());
        let signal = stop_on_signals(&progress.stop)?;
        let bar = (!self.hides_bar).then(|| Bar::of_input(paths, &progress));
        let start = Instant::now();
        let (chunk, threads) = match &self.checkpoint {
            _ if self.small_steps => (SMALL_CHUNK, 1),
            // A checkpoint waits for all chunks in flight, and after a crash they are read again.
            Some(_) => (CHUNK / 2, self.input.threads),
            None => (CHUNK, self.input.threads),
        };
        let mut nowhere = std::io::sink();
        // The file of a record, and its modification time, only matter in these cases.
        let tells_names = matches!(self.print, Print::Located(_)) || rule.hex || rule.has_time();
        let joins_files = !tells_names && !paths.iter().any(|path| is_stream(path));
        let reader = self.input.reader(&rule, chunk, &progress);
        let outcome = pipeline::run(Job {
            reader: reader.joining_files(joins_files),
            rule: &rule,
            hash: |key: &[u8], time| self.hasher.token_at(key, time),
            shards: self.shards,
            deciding,
            decide,
            print: self.print,
            output: match self.output {
                Some(output) => output,
                None => &mut nowhere,
            },
            output_file: self.output_file.as_ref(),
            threads,
            progress: &progress,
            checkpoint: self.checkpoint,
        });
        drop(bar);
        for error in &outcome.input_errors {
            complain(error);
        }
        outcome
            .decided
            .or_else(|error| Err(refused(error.downcast()?)))?;
        Ok(Report {
            records: progress.records.load(Relaxed),
            chosen: progress.chosen.load(Relaxed),
            bytes: progress.bytes.load(Relaxed),
            without_key: progress.without_key.load(Relaxed),
            without_time: progress.without_time.load(Relaxed),
            not_urls: progress.not_urls.load(Relaxed),
            elapsed: start.elapsed(),
            signal: match signal.load(Relaxed) {
                0 => None,
                signal => Some(signal as i32),
            },
            output: outcome.output,
            input_errors: outcome.input_errors.len(),
        })
    }
}

/// The error for a record that doesn't match the options.
pub(crate) fn refused(record: Refused) -> anyhow::Error {
    let (input, number) = (&record.input, record.number);
    match &record.why {
        Wrong::NotHex(start) => anyhow!(
            "{input}:{number}: --hex expects hexadecimal digits, two per byte, got '{start}'"
        ),
        Wrong::Time(two) if two.is_in_seconds() => anyhow!(
            "{record}\nhint: --time-format {} reads dates, --time-format %s seconds since 1970",
            two.format
        ),
        Wrong::Time(two) => anyhow!("{record}\nhint: --time-format {} reads dates", two.format),
    }
}

/// Reports an input that failed.
pub(crate) fn complain(error: &InputError) {
    let hint = if error.is_folder() {
        "\nhint: name the files in it"
    } else if error.cause.kind() == io::ErrorKind::NotFound {
        "\nhint: keys are read from files or, without any, from standard input: echo KEY | tamis ..."
    } else {
        ""
    };
    output::complain(format_args!("{error}{hint}"));
}

/// Whether opening or reading it may block.
fn is_stream(path: &Path) -> bool {
    let is_other = |metadata: Metadata| !metadata.is_file() && !metadata.is_dir();
    path == Path::new("-") || fs::metadata(path).is_ok_and(is_other)
}

/// The first SIGINT, SIGTERM or SIGHUP ends the run after what was read so far; a second one ends it at once. Returns
/// where the signal's number will be stored.
pub(crate) fn stop_on_signals(stop: &Arc<AtomicBool>) -> Result<Arc<AtomicUsize>> {
    use signal_hook::consts::{SIGINT, SIGTERM};
    let mut signals = vec![SIGINT, SIGTERM];
    #[cfg(unix)]
    if !hangup_is_ignored() {
        signals.push(signal_hook::consts::SIGHUP);
    }
    use signal_hook::flag;
    let got = Arc::new(AtomicUsize::new(0));
    for signal in signals {
        flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(stop))
            .and_then(|_| flag::register(signal, Arc::clone(stop)))
            .and_then(|_| flag::register_usize(signal, Arc::clone(&got), signal as usize))
            .context("watching for signals")?;
    }
    Ok(got)
}

/// Whether we run under `nohup`.
#[cfg(unix)]
fn hangup_is_ignored() -> bool {
    // SAFETY: all-zero is a valid action, and querying the current one changes nothing.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        libc::sigaction(libc::SIGHUP, std::ptr::null(), &raw mut action) == 0
            && action.sa_sigaction == libc::SIG_IGN
    }
}
