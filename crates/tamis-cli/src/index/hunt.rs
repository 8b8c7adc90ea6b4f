//! Searches indexed files for matching lines: reads only where matches are possible, on all cores, and prints in the
//! order of the files.

mod file;
mod turns;

use self::turns::{Output, Turns};
use super::Index;
use super::candidates::Candidates;
use super::identity::Identity;
use super::positions::Positions;
use super::stretches::{Chosen, Plan, Times};
use super::survey::{Freshness, Survey, Surveyed};
use super::table::Known;
use super::walk::Folder;
use anyhow::Result;
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tamis::index::Stamp;
use tamis_records::grep::{Found, Matcher, Options, Print};
use tamis_records::key::{KeySpec, TextKeys};
use tamis_records::line_time::TimeFormat;
use tamis_records::needs::needs;
use tamis_records::patterns::Patterns;
use tamis_records::progress::Progress;

/// How often to list files again if some were renamed during the search.
const LISTINGS: usize = 20;

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
        let between = self.options.between_files();
        let turns = Turns::new(between, out, tally, &self.progress.stop);
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
        for (number, outcome) in turns.into_outcomes()? {
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
