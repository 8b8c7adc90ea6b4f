mod args;
mod inputs;
mod report;

pub(crate) use self::args::Args;

use self::args::{By, Of};
use self::inputs::Inputs;
use crate::bar::Bar;
use crate::location::named;
use crate::lock::LockArgs;
use crate::present::{self, Written};
use crate::stream::{complain, stop_on_signals, threads};
use crate::{Exit, output};
use anyhow::{Context, Result, anyhow, bail};
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use tamis::internals::file::FileLock;
use tamis_corpus::engine::{self, Job, Outcome};
use tamis_corpus::json::Fields;
use tamis_corpus::output::{Asked, Folder, Outputs, Refused, Stream, UNFINISHED};
use tamis_corpus::rule::{TextUnit, UnitRule};
use tamis_corpus::seen::{Seen, Unusable};
use tamis_corpus::settings::{Output, Settings, Use};
use tamis_records::progress::Progress;

pub(crate) fn run(args: Args) -> Result<Exit> {
    let inputs = Inputs::find(&args)?;
    if let Some(report) = &args.report {
        check_report(report)?;
    }
    let kept = Kept::open(&args, inputs.text)?;
    let settings = args.settings(kept.seen.rule())?;
    if inputs.has_text() && matches!(settings.output, Output::Annotated | Output::Attributes) {
        bail!(
            "plain text has no records to annotate\n\
             hint: --as json reads records from files whatever their names"
        );
    }
    match args.output.as_deref().or(args.attributes.as_deref()) {
        Some(folder) => into_folder(folder, &args, &settings, &inputs, kept),
        None => into_stream(&args, &settings, &inputs, kept),
    }
}

/// The filter, and its file if it has one.
struct Kept {
    seen: Seen,
    lock: Option<FileLock>,
    /// The state of its file when the run began.
    stamp: String,
}

impl Kept {
    fn open(args: &Args, text: u64) -> Result<Self> {
        if let Some(path) = &args.against {
            let seen = load(path)?;
            args.check_rule(path, seen.rule())?;
            args.check_rate(path, seen.rate())?;
            return Ok(Self {
                stamp: stamp(path),
                seen,
                lock: None,
            });
        }
        let rule = args.rule();
        let rate = args.rate.unwrap_or(rule.usual_rate());
        let Some(path) = args.filter.as_ref().or(args.learn.as_ref()) else {
            return Ok(Self {
                seen: Seen::sized(rule, text, rate)?,
                lock: None,
                stamp: String::new(),
            });
        };
        let is_new = !path.exists();
        if is_new && args.dry_run {
            return Ok(Self {
                seen: Seen::sized(rule, text, rate)?,
                lock: None,
                stamp: String::new(),
            });
        }
        if is_new {
            match Seen::sized(rule, text, rate)?.save_new(path) {
                // Another run has just created it, which is fine.
                Err(tamis::Error::Io { source, .. })
                    if source.kind() == std::io::ErrorKind::AlreadyExists => {}
                saved => saved.map_err(named(path))?,
            }
        }
        let lock = if args.dry_run {
            None
        } else {
            Some(LockArgs::default().acquire(path)?)
        };
        let seen = load(path)?;
        args.check_rule(path, seen.rule())?;
        args.check_rate(path, seen.rate())?;
        Ok(Self {
            stamp: stamp(path),
            seen,
            lock,
        })
    }

    /// Saves the updated filter to its own file.
    fn save(&mut self) -> Result<()> {
        match &mut self.lock {
            Some(lock) => self.seen.save_under(lock).map_err(named(lock.path())),
            None => Ok(()),
        }
    }
}

fn load(path: &Path) -> Result<Seen> {
    Seen::load(path).map_err(|why| match why {
        Unusable::Failed(error) => named(path)(error),
        Unusable::OtherKeys(keys) => anyhow!(
            "{} holds no units of text (its keys: {keys})\n\
             hint: --filter and --learn make a filter that does",
            path.display()
        ),
    })
}

/// Distinguishes a replaced file from the one before.
fn stamp(path: &Path) -> String {
    let metadata = std::fs::metadata(path);
    let written = metadata
        .as_ref()
        .ok()
        .and_then(|metadata| metadata.modified().ok());
    let bytes = metadata.map_or(0, |metadata| metadata.len());
    format!("{bytes} bytes of {written:?}")
}

impl Args {
    /// The units that a new filter holds.
    fn rule(&self) -> UnitRule {
        let unit = match (self.near, self.by) {
            (Some(percent), _) => TextUnit::Alike(percent),
            (None, Some(by)) => by.unit,
            (None, None) => TextUnit::Document,
        };
        UnitRule::new(unit, self.fold.unwrap_or_default())
    }

    /// Refuses units that differ from those the filter holds.
    fn check_rule(&self, path: &Path, held: UnitRule) -> Result<()> {
        let asked = self.rule();
        let names_unit = self.near.is_some() || self.by.is_some();
        let differs = names_unit && asked.unit() != held.unit()
            || self.fold.is_some() && UnitRule::new(held.unit(), asked.fold()) != held;
        if differs {
            let asked = UnitRule::new(
                if names_unit {
                    asked.unit()
                } else {
                    held.unit()
                },
                self.fold.unwrap_or_default(),
            );
            bail!(
                "{} holds {}, but you ask for {}\n\
                 hint: omit --by, --near and --fold to use what it holds, or name another filter",
                path.display(),
                held.key_rule(),
                asked.key_rule(),
            );
        }
        Ok(())
    }

    fn check_rate(&self, path: &Path, rate: f64) -> Result<()> {
        match self.rate {
            Some(asked) if (asked / rate - 1.0).abs() > 0.005 => bail!(
                "{} has a rate of {}, but you asked for {} (-p)\nhint: omit -p, or use another filter",
                path.display(),
                crate::human::rate(rate),
                crate::human::rate(asked)
            ),
            _ => Ok(()),
        }
    }

    fn settings(&self, rule: UnitRule) -> Result<Settings> {
        let by_words = matches!(rule.unit(), TextUnit::Words(_));
        if !by_words && (self.threshold.is_some() || self.of.is_some()) {
            bail!(
                "--threshold and --of are for n-grams, and {} are compared as a whole\n\
                 hint: --by ngram:13 compares n-grams",
                rule.key_rule()
            );
        }
        let fields = Fields::new(&self.text, &self.id).map_err(|error| anyhow!(error))?;
        let mut settings = Settings::new(rule);
        settings.fields = fields;
        settings.of = match self.of {
            Some(Of::Paragraph) => TextUnit::Paragraph,
            _ => TextUnit::Document,
        };
        settings.stride = self.by.map_or(1, |by: By| by.stride);
        settings.threshold = self.threshold.unwrap_or(settings.threshold);
        settings.min_words = self.min_words;
        settings.min_bytes = self.min_bytes;
        settings.drop_empty = self.drop_empty;
        settings.output = match (self.annotate, &self.attributes) {
            _ if self.learn.is_some() => Output::Nothing,
            (true, _) => Output::Annotated,
            (_, Some(_)) => Output::Attributes,
            _ => Output::Cleaned,
        };
        settings.use_of_filter = match (&self.learn, &self.against) {
            (Some(_), _) => Use::Learn,
            (_, Some(_)) => Use::Ask,
            _ => Use::Judge,
        };
        settings.finds_most_repeated = self.dry_run || self.report.is_some();
        Ok(settings)
    }

    /// The settings that a resumed run must share.
    fn describe(&self, settings: &Settings, kept: &Kept) -> String {
        format!(
            "{:?} {} every {}, of {:?} at {}, from {} words and {} bytes, {:?}, empty dropped: {}, text {}, id {}, rate {}",
            settings.use_of_filter,
            settings.rule.key_rule(),
            settings.stride,
            settings.of,
            settings.threshold,
            settings.min_words,
            settings.min_bytes,
            settings.output,
            settings.drop_empty,
            self.text,
            self.id,
            kept.seen.rate(),
        )
    }
}

/// Checks, before the work starts, that the report can be written there. Changes nothing.
fn check_report(path: &Path) -> Result<()> {
    present::refuse_others(path, Written::Report)?;
    let is_new = path.symlink_metadata().is_err();
    let opened = OpenOptions::new().append(true).create(true).open(path);
    let checked = opened.and_then(|_| {
        if is_new {
            std::fs::remove_file(path)?;
        }
        Ok(())
    });
    checked.with_context(|| format!("writing {}", path.display()))
}

fn into_folder(
    path: &Path,
    args: &Args,
    settings: &Settings,
    inputs: &Inputs,
    mut kept: Kept,
) -> Result<Exit> {
    let asked = Asked {
        options: args.describe(settings, &kept),
        filter: kept.stamp.clone(),
        force: args.force,
    };
    let paths = inputs.paths();
    let folder = Folder::begin(path, inputs.names.clone(), &paths, &asked);
    let mut folder = folder.map_err(|why| refused(path, why))?;
    let first = folder.finished();
    if let Some(filter) = folder.filter() {
        if let Some(own) = args.filter.as_deref().filter(|_| folder.is_saved()) {
            refuse_changed(own, &filter, path)?;
        }
        kept.seen = load(&filter)?;
        if !args.quiet {
            say!("tamis: going on behind {first} finished inputs of an earlier run");
        }
    }
    let units_before = kept.seen.expected_wrong();
    let (outcome, signal) = carry(args, settings, inputs, first, &mut kept.seen, &mut folder)?;
    let went_well = outcome.result.is_ok();
    if went_well {
        let changed = (settings.use_of_filter == Use::Judge).then_some(&kept.seen);
        folder.save(changed)?;
        if !folder.is_saved() {
            kept.save()?;
        }
        folder.finish()?;
    } else if !args.quiet {
        say!(
            "tamis: {} of {} outputs are finished; the same command goes on behind them",
            folder.finished(),
            inputs.sources.len()
        );
    }
    report::finish(args, settings, inputs, &kept.seen, units_before, &outcome)?;
    end(outcome, signal)
}

/// The filter's file was replaced since this run began. If it isn't what this run saved, another run replaced it.
fn refuse_changed(own: &Path, saved: &Path, folder: &Path) -> Result<()> {
    let is_same = is_same(own, saved).with_context(|| format!("reading {}", own.display()))?;
    if !is_same {
        let (own, folder) = (own.display(), folder.display());
        bail!(
            "{own} was changed by another run before this one was finished: the outputs in {folder} are whole, but it \
             lacks their units\n\
             hint: remove {folder}/{UNFINISHED}, then `tamis clean --learn {own} {folder}` adds them"
        );
    }
    Ok(())
}

fn is_same(a: &Path, b: &Path) -> io::Result<bool> {
    let (mut a, mut b) = (
        BufReader::new(File::open(a)?),
        BufReader::new(File::open(b)?),
    );
    loop {
        let (left, right) = (a.fill_buf()?, b.fill_buf()?);
        let count = left.len().min(right.len());
        if left[..count] != right[..count] {
            return Ok(false);
        }
        if count == 0 {
            return Ok(left.len() == right.len());
        }
        a.consume(count);
        b.consume(count);
    }
}

fn into_stream(args: &Args, settings: &Settings, inputs: &Inputs, mut kept: Kept) -> Result<Exit> {
    let mut outputs: Stream<Box<dyn Write + Send>> = if args.dry_run {
        Stream::new(Box::new(io::sink()))
    } else {
        Stream::new(Box::new(output::stdout()?))
    };
    let before = kept.seen.expected_wrong();
    let (outcome, signal) = carry(args, settings, inputs, 0, &mut kept.seen, &mut outputs)?;
    // Records are printed before the filter is saved, so none is lost; after a failure some may be printed twice.
    if outcome.result.is_ok() && !args.dry_run {
        kept.save()?;
    }
    report::finish(args, settings, inputs, &kept.seen, before, &outcome)?;
    end(outcome, signal)
}

fn carry(
    args: &Args,
    settings: &Settings,
    inputs: &Inputs,
    first: usize,
    seen: &mut Seen,
    outputs: &mut dyn Outputs,
) -> Result<(Outcome, usize)> {
    let progress = Arc::new(Progress::default());
    let signal = stop_on_signals(&progress.stop)?;
    let hides_bar = args.quiet || args.dry_run || args.output.is_none() && is_terminal();
    let bar = (!hides_bar).then(|| Bar::of_input(&inputs.paths()[first..], &progress));
    let outcome = engine::run(Job {
        settings,
        sources: &inputs.sources,
        first,
        seen,
        outputs,
        threads: threads(args.threads),
        progress: &progress,
    });
    drop(bar);
    Ok((outcome, signal.load(Relaxed)))
}

fn is_terminal() -> bool {
    std::io::IsTerminal::is_terminal(&std::io::stdout())
}

fn end(outcome: Outcome, signal: usize) -> Result<Exit> {
    match outcome.result {
        Ok(()) => Ok(Exit::Done),
        Err(_) if signal != 0 => Ok(Exit::Interrupted(signal as i32)),
        Err(engine::Error::Input(error)) => {
            complain(&error);
            say!("hint: nothing was read behind it; repair it or leave it out, and start again");
            Ok(Exit::InputFailed)
        }
        Err(engine::Error::Output(error)) => {
            Err(error.cause).with_context(|| format!("writing {}", error.path.display()))
        }
        Err(error) => Err(error.into()),
    }
}

fn refused(folder: &Path, why: Refused) -> anyhow::Error {
    let name = folder.display();
    match why {
        Refused::Failed(error) => error.into(),
        Refused::Exists(path) => anyhow!(
            "{} already exists\nhint: --force replaces the outputs in {name}",
            path.display()
        ),
        Refused::OneName(path) => anyhow!(
            "two inputs would be {}\nhint: name the folder that both are in, or clean them one after the other with one --filter",
            folder.join(path).display()
        ),
        Refused::AnotherRun(what) => anyhow!(
            "{name} has an unfinished run that was another one: {what}\n\
             hint: start it as it was to finish it; --force begins anew"
        ),
    }
}
