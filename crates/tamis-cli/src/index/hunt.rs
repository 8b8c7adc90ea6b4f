//! Searches indexed files for matching lines: reads only where matches are possible, on all cores, and prints in the
//! order of the files.

use super::candidates::Candidates;
use super::identity::{Identity, identity};
use super::positions::Positions;
use super::stretches::{Chosen, Plan, Stretches, Times, is_not_text, is_packed};
use super::survey::{Freshness, Survey, Surveyed};
use super::table::Known;
use super::walk::Folder;
use super::{Index, is_gone};
use crate::output;
use anyhow::Result;
use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use tamis::Moment;
use tamis::index::Stamp;
use tamis_records::grep::{Failure, Found, LineFilter, Matcher, Options, Print, Search, Stretch};
use tamis_records::key::{KeySpec, TextKeys};
use tamis_records::line_time::{LineTimes, TimeFormat};
use tamis_records::needs::needs;
use tamis_records::patterns::Patterns;
use tamis_records::progress::Progress;

/// How often to list files again if some were renamed during the search.
const LISTINGS: usize = 20;
/// The most output that may wait for earlier files.
const MOST_WAITING: usize = 64 << 20;
/// The size of the pieces in which a file's output is passed on.
const PIECE: usize = 1 << 20;
/// Smaller files are searched for all patterns, even if only some can match: compiling a subset would take longer.
const LARGE: u64 = 256 << 10;

/// An index that supports text search.
pub(crate) struct TextIndex {
    pub(crate) index: Index,
    /// The specs that narrow a search, with their numbers.
    specs: Vec<(usize, TextKeys)>,
}

impl TextIndex {
    /// Returns the index if its keys aren't text, or if other keys are asked for.
    pub(crate) fn new(index: Index, asked: Option<&KeySpec>) -> Result<Result<Self, Index>> {
        if let Some(asked) = asked {
            index.spec(Some(asked))?;
        }
        let specs = index.specs.iter().enumerate();
        let specs = specs.filter(|(_, spec)| asked.is_none_or(|asked| asked == *spec));
        let specs: Vec<_> = specs
            .filter_map(|(number, spec)| Some((number, spec.text_keys()?)))
            .collect();
        Ok(if specs.is_empty() {
            Err(index)
        } else {
            Ok(Self { index, specs })
        })
    }
}

/// A search: what to look for, where, and how to print it.
pub(crate) struct Hunt<'a> {
    pub(crate) indexes: &'a [TextIndex],
    pub(crate) patterns: &'a Patterns,
    pub(crate) matcher: &'a Matcher,
    pub(crate) options: &'a Options,
    pub(crate) times: Times,
    pub(crate) time_format: Option<&'a TimeFormat>,
    pub(crate) threads: usize,
    /// Whether to search a file, by its name.
    pub(crate) is_wanted: &'a (dyn Fn(&Path) -> bool + Sync),
    pub(crate) order: Order,
    /// Whether files that aren't text are reported.
    pub(crate) is_strict: bool,
    /// The current ends of files, if appended text is searched later.
    pub(crate) ends: Option<&'a Positions>,
    pub(crate) progress: &'a Arc<Progress>,
}

/// The order in which files are printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Order {
    /// By modification time instead of by name.
    pub(crate) by_time: bool,
    pub(crate) reversed: bool,
}

impl Order {
    fn compare(self, one: &Surveyed, other: &Surveyed) -> Ordering {
        let modified = |file: &Surveyed| Stamp::of(&file.listed.metadata).modified();
        let order = if self.by_time {
            modified(one).cmp(&modified(other))
        } else {
            one.shown.cmp(&other.shown)
        };
        if self.reversed {
            order.reverse()
        } else {
            order
        }
    }
}

/// A file to search.
struct Work<'a> {
    file: Surveyed,
    known: Option<&'a Known>,
    /// `None` if the file can't match and the search prints such files.
    plan: Option<Plan>,
    /// The numbers of the patterns that may match.
    patterns: Vec<usize>,
}

/// The outcome of searching a file.
enum Searched {
    /// The file that was opened, which may differ from the listed one; and its size, if the index didn't know it.
    Done(Identity, Found, Option<u64>),
    /// The file was moved, and another search covers the one now in its place.
    Moved,
    /// The file could not be read, or not as text. What was found before counts.
    Failed(Option<Identity>, Found, Option<String>),
    /// The output can't be written.
    Unwritten(io::Error),
}

/// What was found and searched so far.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) found: Found,
    pub(crate) statistics: Statistics,
    /// Files that are done, whatever their current names.
    handled: HashSet<Identity>,
    /// Sizes of files unknown to the index, when they were opened. A file that has grown since may be a copy,
    /// compressed or not, of a file that was then deleted or truncated.
    sizes: HashMap<Identity, u64>,
    /// Whether anything was printed, so that the next file's lines need a separator.
    printed: bool,
}

impl Tally {
    fn is_done(&self, file: &Surveyed) -> bool {
        let identity = file.identity();
        let has_grown = |size: &u64| *size < file.listed.metadata.len();
        self.handled.contains(&identity) && !self.sizes.get(&identity).is_some_and(has_grown)
    }
}

impl<'a> Hunt<'a> {
    /// Searches all files. Files renamed meanwhile are found under their new names. So are new files: their content may
    /// have been moved there from a file that was deleted or truncated before it was read.
    pub(crate) fn run(&self, tally: &mut Tally, out: &mut (dyn Write + Send)) -> Result<()> {
        for listing in 0..LISTINGS {
            let (work, folders) = self.plan(tally, listing == 0)?;
            let moved = self.search(&work, tally, out)?;
            let settled = !moved && folders.iter().all(Folder::is_unchanged);
            if settled || self.progress.stop.load(Relaxed) {
                break;
            }
        }
        Ok(())
    }

    /// The files that may match and aren't done yet, in order. Files that can't match count as done.
    fn plan(&self, tally: &mut Tally, is_first: bool) -> Result<(Vec<Work<'a>>, Vec<Folder>)> {
        let mut work = Vec::new();
        let mut folders = Vec::new();
        let mut places = HashSet::new();
        let mut without_match = HashSet::new();
        for TextIndex { index, specs } in self.indexes {
            let survey = Survey::of(index)?;
            if is_first {
                for (path, cause) in &survey.unlisted {
                    say!("tamis: {}: {cause}", path.display());
                }
                tally.statistics.unlisted += survey.unlisted.len();
            }
            folders.extend(survey.folders);
            let candidates = self.candidates(index, specs);
            let chosen = Chosen {
                candidates: &candidates,
                patterns: self.patterns.texts.len(),
                // The index holds the times that are recognised without a format.
                times: if self.options.invert || self.time_format.is_some() {
                    Times::ALL
                } else {
                    self.times
                },
                context: (self.options.before, self.options.after),
            };
            for file in survey.files {
                let is_new = places.insert(file.listed.place.clone());
                let is_done = tally.is_done(&file);
                if !is_new || is_done || !(self.is_wanted)(&file.shown) {
                    continue;
                }
                let known = file.known.map(|number| &index.table.files[number]);
                let plan = Plan::of(&file, known, &chosen);
                tally
                    .statistics
                    .count(&file, known, plan.as_ref().map(|(plan, _)| plan));
                if plan.is_none() {
                    without_match.insert(file.identity());
                    if self.options.print != Print::PathWithoutMatch {
                        continue;
                    }
                }
                let (plan, patterns) = plan.map_or((None, Vec::new()), |(plan, patterns)| {
                    (Some(plan), patterns)
                });
                work.push(Work {
                    file,
                    known,
                    plan,
                    patterns,
                });
            }
        }
        tally.handled.extend(without_match);
        work.sort_by(|a, b| self.order.compare(&a.file, &b.file));
        Ok((work, folders))
    }

    /// The candidates for each spec that narrows the search.
    fn candidates(&self, index: &Index, specs: &[(usize, TextKeys)]) -> Vec<Candidates> {
        if self.options.invert {
            return Vec::new();
        }
        let ask = |(spec, keys): &(usize, TextKeys)| {
            Candidates::of(index, *spec, &needs(self.patterns, *keys))
        };
        specs.iter().map(ask).collect()
    }

    /// Searches files, and returns whether some have moved.
    fn search(
        &self,
        work: &[Work],
        tally: &mut Tally,
        out: &mut (dyn Write + Send),
    ) -> Result<bool> {
        let searches = Mutex::new(Vec::new());
        let claims = Claims {
            planned: work
                .iter()
                .map(|work| (work.file.identity(), work))
                .collect(),
            taken: Mutex::new(tally.handled.clone()),
        };
        let next = AtomicUsize::new(0);
        let turns = Turns {
            state: Mutex::new(State {
                next: 0,
                finished: BTreeMap::new(),
                waiting: 0,
                started: None,
                between: self.options.between_files(),
                out,
                outcomes: Vec::new(),
                tally: &mut *tally,
                unwritten: None,
            }),
            moved: Condvar::new(),
            stop: &self.progress.stop,
        };
        let run = || {
            loop {
                let number = next.fetch_add(1, Relaxed);
                if number >= work.len() || self.progress.stop.load(Relaxed) {
                    return;
                }
                let mut output = Output {
                    turns: &turns,
                    number,
                    waiting: Vec::new(),
                };
                let searched = self.search_file(&work[number], &claims, &searches, &mut output);
                let waiting = std::mem::take(&mut output.waiting);
                turns.finish(number, waiting, searched);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads.min(work.len()) {
                scope.spawn(run);
            }
            run();
        });
        let state = turns
            .state
            .into_inner()
            .expect("no thread panics while it prints");
        if let Some(error) = state.unwritten {
            return Err(error.into());
        }
        for (number, outcome) in state.outcomes {
            match outcome {
                Searched::Done(identity, found, size) => {
                    tally.found += found;
                    tally.handled.insert(identity);
                    tally.sizes.extend(size.map(|size| (identity, size)));
                }
                Searched::Moved => {}
                Searched::Failed(identity, found, why) => {
                    tally.found += found;
                    tally.statistics.failed += 1;
                    match why {
                        // Another process is writing the file and may have removed its source, so it isn't done yet.
                        Some(why) => say!("tamis: {}: {why}", work[number].file.shown.display()),
                        None => tally.handled.extend(identity),
                    }
                }
                Searched::Unwritten(error) => return Err(error.into()),
            }
        }
        let is_missing = |work: &Work| !claims.is_taken(work.file.identity());
        Ok(work.iter().any(is_missing))
    }

    fn search_file(
        &self,
        work: &Work,
        claims: &Claims,
        searches: &Mutex<Vec<Search<'a>>>,
        output: &mut dyn Write,
    ) -> Searched {
        let name = &work.file.shown;
        if work.plan.is_none() {
            let identity = work.file.identity();
            claims.take(identity);
            let nothing = std::iter::empty::<io::Result<Stretch>>();
            let mut search = Search::new(self.matcher, self.options);
            return self.outcome(name, identity, search.file(name, nothing, None, output));
        }
        let (opened, identity) = match open(&work.file) {
            Ok(Some(opened)) => opened,
            Ok(None) => return Searched::Moved,
            Err(error) => return Searched::Failed(None, Found::default(), Some(error.to_string())),
        };
        // A file with several names is searched under each. A file that replaced another is only searched once.
        let is_same = identity == work.file.identity();
        if !claims.take(identity) && !is_same {
            return Searched::Moved;
        }
        let planned = if is_same {
            Some(work)
        } else {
            claims.planned.get(&identity).copied()
        };
        let all = Plan::All;
        let plan = planned
            .and_then(|planned| planned.plan.as_ref())
            .unwrap_or(&all);
        let known = planned.and_then(|planned| planned.known);
        let file = &planned.unwrap_or(work).file;
        let mut filter = self.filter(file, known.filter(|_| *plan != Plan::All));
        let filter = filter.as_mut().map(|filter| filter as &mut dyn LineFilter);
        // The file it replaced may have had other patterns.
        let work = planned.unwrap_or(work);
        let some = || {
            let texts = work
                .patterns
                .iter()
                .map(|pattern| &self.patterns.texts[*pattern]);
            Matcher::of(self.patterns, &texts.collect::<Vec<_>>()).ok()
        };
        let few = *plan != Plan::All
            && work.patterns.len() < self.patterns.texts.len()
            && file.listed.metadata.len() > LARGE;
        let few = if few { some() } else { None };
        let mut search = match &few {
            Some(matcher) => Search::new(matcher, self.options),
            None => {
                let used = searches.lock().ok().and_then(|mut searches| searches.pop());
                used.unwrap_or_else(|| Search::new(self.matcher, self.options))
            }
        };
        let size = match plan {
            Plan::All => opened.metadata().map(|metadata| metadata.len()).ok(),
            Plan::Segments { .. } => None,
        };
        let end = self.ends.and_then(|ends| ends.end(file));
        let stretches = Stretches::new(opened, known, plan, end, self.progress);
        let found = search.file(name, stretches, filter, output);
        if few.is_none()
            && let Ok(mut searches) = searches.lock()
        {
            searches.push(search);
        }
        match self.outcome(name, identity, found) {
            Searched::Done(identity, found, _) => Searched::Done(identity, found, size),
            other => other,
        }
    }

    fn outcome(&self, name: &Path, identity: Identity, found: Result<Found, Failure>) -> Searched {
        match found {
            Ok(found) => Searched::Done(identity, found, None),
            // Already reported when indexed, or will be.
            Err(Failure::Reading { found, error }) if is_not_text(&error) && !self.is_strict => {
                // Users expect a search that decompresses files to see inside all of them.
                if is_packed(&error) {
                    output::warn(format_args!(
                        "{}: {error}, which is not unpacked",
                        name.display()
                    ));
                }
                Searched::Failed(Some(identity), found, None)
            }
            Err(Failure::Reading { found, error }) => {
                Searched::Failed(Some(identity), found, Some(error.to_string()))
            }
            Err(Failure::Writing(error)) => Searched::Unwritten(error),
        }
    }

    /// Searches stretches of a file and prints immediately.
    pub(crate) fn search_stretches(
        &self,
        file: &Surveyed,
        stretches: Stretches,
        tally: &mut Tally,
        out: &mut (dyn Write + Send),
    ) -> Result<()> {
        let mut filter = self.filter(file, None);
        let filter = filter.as_mut().map(|filter| filter as &mut dyn LineFilter);
        let mut search = Search::new(self.matcher, self.options);
        let mut text = Vec::new();
        let found = search.file(&file.shown, stretches, filter, &mut text);
        match self.outcome(&file.shown, file.identity(), found) {
            Searched::Done(_, found, _) | Searched::Failed(_, found, _) => tally.found += found,
            Searched::Moved => {}
            Searched::Unwritten(error) => return Err(error.into()),
        }
        if !text.is_empty() {
            if tally.printed {
                out.write_all(self.options.between_files())?;
            }
            tally.printed = true;
            out.write_all(&text)?;
        }
        Ok(())
    }

    /// A filter of lines by time, if asked for.
    fn filter(&self, file: &Surveyed, known: Option<&Known>) -> Option<TimeFilter> {
        if self.times == Times::ALL {
            return None;
        }
        let modified = Stamp::of(&file.listed.metadata).modified();
        let times = LineTimes::new(self.time_format, Moment::from_micros(modified / 1000));
        let mut before = BTreeMap::new();
        let mut offset = 0;
        for segment in known
            .filter(|_| self.time_format.is_none())
            .into_iter()
            .flat_map(|known| &known.segments)
        {
            offset += segment.bytes;
            before.insert(offset, segment.last_time.map(Moment::from_micros));
        }
        Some(TimeFilter {
            range: self.times,
            times,
            before,
        })
    }
}

/// Which files are already taken. If names keep changing, the opened file may not be the listed one. It is then another
/// listed file or a new one, and is searched here and nowhere else.
struct Claims<'w, 'a> {
    planned: HashMap<Identity, &'w Work<'a>>,
    taken: Mutex<HashSet<Identity>>,
}

impl Claims<'_, '_> {
    /// Whether the file wasn't taken before.
    fn take(&self, identity: Identity) -> bool {
        self.taken
            .lock()
            .is_ok_and(|mut taken| taken.insert(identity))
    }

    fn is_taken(&self, identity: Identity) -> bool {
        self.taken
            .lock()
            .is_ok_and(|taken| taken.contains(&identity))
    }
}

/// Opens whatever has the file's name now.
fn open(file: &Surveyed) -> io::Result<Option<(File, Identity)>> {
    let opened = match File::open(&file.listed.place) {
        Err(error) if is_gone(&error) => return Ok(None),
        opened => opened?,
    };
    let identity = identity(&opened.metadata()?);
    Ok(Some((opened, identity)))
}

/// Selects lines in a range of times. A line without a time has the time of the line before it.
struct TimeFilter {
    range: Times,
    times: LineTimes,
    /// The time before an offset, if known.
    before: BTreeMap<u64, Option<Moment>>,
}

impl LineFilter for TimeFilter {
    fn begin(&mut self, offset: u64) {
        let before = self.before.range(..=offset).next_back();
        self.times.set_last(before.and_then(|(_, time)| *time));
    }

    fn pass(&mut self, lines: &[u8]) {
        self.times.range(lines, &mut None);
    }

    fn accept(&mut self, line: &[u8]) -> bool {
        // Lines whose time is unknown are kept.
        self.times
            .of_next_line(line)
            .is_none_or(|time| self.range.contains(time))
    }
}

/// Makes files print in order while they are searched concurrently.
struct Turns<'t> {
    state: Mutex<State<'t>>,
    moved: Condvar,
    stop: &'t AtomicBool,
}

struct State<'t> {
    /// The file whose turn it is.
    next: usize,
    /// Output and outcomes of later files.
    finished: BTreeMap<usize, (Vec<u8>, Searched)>,
    /// The size of that output, plus what running searches hold.
    waiting: usize,
    /// The last file that printed something.
    started: Option<usize>,
    /// The separator between the lines of two files.
    between: &'static [u8],
    out: &'t mut (dyn Write + Send),
    outcomes: Vec<(usize, Searched)>,
    tally: &'t mut Tally,
    unwritten: Option<io::Error>,
}

impl State<'_> {
    fn print(&mut self, number: usize, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() || self.unwritten.is_some() {
            return Ok(());
        }
        if self.started.replace(number) != Some(number) && self.tally.printed {
            self.out.write_all(self.between)?;
        }
        self.tally.printed = true;
        self.out.write_all(bytes)
    }
}

impl<'t> Turns<'t> {
    fn lock(&self) -> MutexGuard<'_, State<'t>> {
        self.state.lock().expect("no thread panics while it prints")
    }

    /// Finishes a file, and prints every file whose turn has come.
    fn finish(&self, number: usize, waiting: Vec<u8>, searched: Searched) {
        let mut state = self.lock();
        state.waiting += waiting.len();
        state.finished.insert(number, (waiting, searched));
        loop {
            let next = state.next;
            let Some((bytes, searched)) = state.finished.remove(&next) else {
                break;
            };
            state.waiting -= bytes.len();
            if let Err(error) = state.print(next, &bytes) {
                state.unwritten.get_or_insert(error);
                self.stop.store(true, Relaxed);
            }
            state.outcomes.push((next, searched));
            state.next += 1;
        }
        self.moved.notify_all();
    }

    /// Prints a piece of a file if it is the file's turn. If too much output waits already, blocks until then.
    fn pass_on(&self, number: usize, bytes: &mut Vec<u8>) -> io::Result<()> {
        let mut state = self.lock();
        while state.next != number {
            if state.waiting + bytes.len() < MOST_WAITING || self.stop.load(Relaxed) {
                return Ok(());
            }
            state = self
                .moved
                .wait(state)
                .expect("no thread panics while it prints");
        }
        let printed = state.print(number, bytes);
        bytes.clear();
        printed
    }
}

/// The output of one file.
struct Output<'o, 't> {
    turns: &'o Turns<'t>,
    number: usize,
    waiting: Vec<u8>,
}

impl Write for Output<'_, '_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() >= PIECE {
            self.turns.pass_on(self.number, &mut self.waiting)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How much was searched and skipped.
#[derive(Default)]
pub(crate) struct Statistics {
    pub(crate) files: usize,
    pub(crate) files_searched: usize,
    pub(crate) segments: usize,
    pub(crate) segments_searched: usize,
    /// Files searched because the index doesn't know their current state.
    pub(crate) not_indexed: usize,
    /// Files that could not be read, or not as text.
    pub(crate) failed: usize,
    /// Folders that could not be listed.
    pub(crate) unlisted: usize,
}

impl Statistics {
    fn count(&mut self, file: &Surveyed, known: Option<&Known>, plan: Option<&Plan>) {
        self.files += 1;
        self.segments += known.map_or(0, |known| known.segments.len());
        if let Some(plan) = plan {
            self.files_searched += 1;
            self.not_indexed += usize::from(file.state != Freshness::Fresh);
            self.segments_searched += match plan {
                Plan::All => known.map_or(0, |known| known.segments.len()),
                Plan::Segments { runs, .. } => runs.iter().map(ExactSizeIterator::len).sum(),
            };
        }
    }
}
