//! Updates an index: reads new text, keeps known results, and writes both.

mod file;

use self::file::{How, Outcome, compare, failed, keep, read};
use super::parts::{DAMAGED, WAITING, Writer};
use super::survey::{Freshness, Name, Survey, Surveyed};
use super::table::{At, Known, Table};
use crate::bar::Bar;
use anyhow::Result;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::PathBuf;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use tamis::index::{EntryFilters, IndexOptions};
use tamis_records::key::KeySpec;
use tamis_records::ordered::for_each_in_order;
use tamis_records::progress::Progress;
use tamis_records::scan::{self, Buffers};

/// What to do, and how.
pub(crate) struct Job<'a> {
    pub(crate) specs: &'a [KeySpec],
    pub(crate) options: &'a IndexOptions,
    pub(crate) threads: usize,
    /// Compares everything with its checksums, even files that look unchanged.
    pub(crate) verify: bool,
    pub(crate) progress: &'a Arc<Progress>,
    pub(crate) with_bar: bool,
    /// Shared by the threads.
    pub(crate) buffers: Pool,
}

/// Unused buffers.
#[derive(Default)]
pub(crate) struct Pool(Mutex<Vec<Buffers>>);

impl Pool {
    fn take(&self) -> Buffers {
        let unused = self.0.lock().ok().and_then(|mut all| all.pop());
        unused.unwrap_or_default()
    }

    fn give_back(&self, buffers: Buffers) {
        if let Ok(mut all) = self.0.lock() {
            all.push(buffers);
        }
    }
}

/// What happened to the files.
#[derive(Default)]
pub(crate) struct Report {
    /// Read from the beginning.
    pub(crate) read: usize,
    /// Read from their previous end.
    pub(crate) grown: usize,
    /// Known under another name that is gone.
    pub(crate) renamed: usize,
    /// Known under another name that they still have.
    pub(crate) linked: usize,
    /// Read, and found unchanged.
    pub(crate) compared: usize,
    pub(crate) gone: usize,
    /// Damaged filters that are rebuilt.
    pub(crate) damaged: usize,
    /// Could not be read.
    pub(crate) unread: usize,
    /// The number of files that were being written, and an example.
    pub(crate) busy: (usize, Option<PathBuf>),
    /// One per spec.
    pub(crate) remarks: Vec<Total>,
    /// Bytes of text, or of the file if it was not unpacked.
    pub(crate) bytes_read: u64,
    /// Whether it was stopped before everything was read.
    pub(crate) is_stopped: bool,
    /// Whether some files have more text than is read at once, so that another update must follow.
    pub(crate) has_more: bool,
}

/// The remarks on one spec, over all files.
#[derive(Default)]
pub(crate) struct Total {
    pub(crate) without_key: u64,
    pub(crate) no_column: Told,
    pub(crate) unknown: Told,
}

/// The number of files with a remark, and one example.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) files: usize,
    pub(crate) example: Option<(PathBuf, String)>,
}

impl Told {
    fn tell(&mut self, path: &std::path::Path, why: String) {
        self.files += 1;
        self.example.get_or_insert((path.to_owned(), why));
    }
}

/// What to do with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The known results hold.
    Keep(usize),
    /// Read the appended text.
    Continue(usize),
    /// Compare with the known checksums, and read again if they differ.
    Compare(usize),
    Read,
    /// Another name of the file with this number.
    Link(usize),
}

enum Done {
    File(Box<Outcome>),
    Link(usize),
    Stopped,
}

/// Reads and writes what is needed to match the survey. `reuses` if known results were made with the same options;
/// `is_current` if nothing needs writing unless a file has changed.
pub(crate) fn update(
    table: &mut Table,
    survey: &Survey,
    reuses: bool,
    is_current: bool,
    writer: &mut Writer,
    job: &Job,
) -> Result<Report> {
    let old = std::mem::take(&mut table.files);
    let (steps, damaged) = steps(&old, survey, reuses, writer, job);
    let mut report = Report {
        damaged,
        gone: survey.gone.len(),
        remarks: job.specs.iter().map(|_| Total::default()).collect(),
        ..Report::default()
    };
    let is_kept =
        |(file, step): (&Surveyed, &Step)| matches!(step, Step::Keep(_)) && file.is_in_table;
    if is_current && report.gone == 0 && survey.files.iter().zip(&steps).all(is_kept) {
        table.files = old;
        return Ok(report);
    }
    let to_read = survey.files.iter().zip(&steps);
    let to_read = to_read.filter(|(_, step)| !matches!(step, Step::Keep(_) | Step::Link(_)));
    let to_read: Vec<PathBuf> = to_read.map(|(file, _)| file.listed.place.clone()).collect();
    let bar = job.with_bar.then(|| Bar::of_input(&to_read, job.progress));
    let mut pending = Pending {
        current: old.clone(),
        claims: claims(&steps, old.len()),
        done: Vec::new(),
        waiting: Vec::new(),
        waiting_bytes: 0,
        table,
        writer,
    };
    let mut written = Ok(());
    for_each_in_order(
        steps.len(),
        job.threads,
        &job.progress.stop,
        |number| look(&survey.files[number], steps[number], &old, job),
        |number, done| {
            if written.is_ok() {
                written = pending.take(&survey.files[number], steps[number], done, &mut report);
            }
            if written.is_err() {
                job.progress.stop.store(true, Relaxed);
            }
        },
    );
    drop(bar);
    written?;
    report.is_stopped = job.progress.stop.load(Relaxed) && pending.done.len() < steps.len();
    // A stopped run keeps its results, and the next run continues from there.
    pending.commit()?;
    pending.writer.merge(pending.table)?;
    Ok(report)
}

/// The step for each file, and the number of damaged filters to rebuild.
fn steps(
    old: &[Known],
    survey: &Survey,
    reuses: bool,
    writer: &Writer,
    job: &Job,
) -> (Vec<Step>, usize) {
    let is_damaged = |at: At| match writer.parts.entry(at) {
        None => true,
        Some(entry) => {
            let looked_at = at.part == 0 || job.verify;
            entry.unindexed() == Some(DAMAGED) || looked_at && entry.verify().is_err()
        }
    };
    let mut first = HashMap::new();
    let mut damaged = 0;
    let mut step = |(number, file): (usize, &Surveyed)| {
        let mut is_sound = |known: &usize| {
            let segments = old[*known].segments.iter();
            let broken = segments
                .filter(|segment| is_damaged(segment.filters))
                .count();
            damaged += broken;
            broken == 0
        };
        let known = file.known.filter(|known| reuses && is_sound(known));
        let step = match (known, &file.state) {
            (Some(known), Freshness::Fresh) if !job.verify => return Step::Keep(known),
            (Some(known), Freshness::Unread(_)) if !old[known].stamp.is_racy() => {
                return Step::Keep(known);
            }
            (Some(known), Freshness::Grown) if scan::can_be_continued(job.specs) => {
                Step::Continue(known)
            }
            (Some(known), Freshness::Fresh | Freshness::Stale(_))
                if old[known].stamp.size() == file.listed.metadata.len() =>
            {
                Step::Compare(known)
            }
            _ => Step::Read,
        };
        // Each file is read once, however many names it has.
        match first.entry(file.identity()) {
            Entry::Occupied(first) if cfg!(unix) => Step::Link(*first.get()),
            Entry::Occupied(_) => step,
            Entry::Vacant(place) => {
                place.insert(number);
                step
            }
        }
    };
    let steps = survey.files.iter().enumerate().map(&mut step).collect();
    (steps, damaged)
}

/// How many steps still need each known file.
fn claims(steps: &[Step], known: usize) -> Vec<usize> {
    let mut claims = vec![0; known];
    for step in steps {
        if let Step::Keep(known) | Step::Continue(known) | Step::Compare(known) = step {
            claims[*known] += 1;
        }
    }
    claims
}

/// Processes a file.
fn look(file: &Surveyed, step: Step, old: &[Known], job: &Job) -> Done {
    let listed = &file.listed;
    let looked = match step {
        Step::Link(first) => return Done::Link(first),
        Step::Keep(known) => Ok(Some(keep(listed, &old[known]))),
        Step::Read => read(listed, None, job),
        Step::Continue(known) => read(listed, Some(&old[known]), job),
        Step::Compare(known) => compare(listed, &old[known], job).and_then(|same| match same {
            None => read(listed, None, job),
            same => Ok(same),
        }),
    };
    match looked {
        Ok(Some(outcome)) => Done::File(Box::new(outcome)),
        Ok(None) => Done::Stopped,
        Err(cause) => Done::File(Box::new(failed(listed, &cause))),
    }
}

/// Finished results, not all of them written yet.
struct Pending<'a> {
    /// The known files, with the current places of their filters.
    current: Vec<Known>,
    claims: Vec<usize>,
    done: Vec<Known>,
    waiting: Vec<EntryFilters>,
    waiting_bytes: u64,
    table: &'a mut Table,
    writer: &'a mut Writer,
}

impl Pending<'_> {
    fn take(&mut self, file: &Surveyed, step: Step, done: Done, report: &mut Report) -> Result<()> {
        let outcome = match done {
            Done::Stopped => return Ok(()),
            Done::Link(first) => {
                let first = self.done[first].clone();
                self.done.push(Known {
                    root: file.listed.root,
                    inside: file.listed.inside.clone(),
                    is_link: file.listed.is_link,
                    ..first
                });
                return Ok(());
            }
            Done::File(outcome) => *outcome,
        };
        report.add(file, &outcome);
        let mut known = outcome.known;
        if let Step::Keep(number) | Step::Continue(number) | Step::Compare(number) = step {
            known.segments = self.current[number].segments[..outcome.kept].to_vec();
            self.claims[number] -= 1;
        }
        for mut segment in outcome.segments {
            segment.filters.entry += self.waiting.len();
            known.segments.push(segment);
        }
        let bytes: u64 = outcome
            .filters
            .iter()
            .map(|filters| self.writer.bytes_of(filters))
            .sum();
        self.waiting_bytes += bytes;
        self.waiting.extend(outcome.filters);
        self.done.push(known);
        if self.waiting_bytes >= WAITING {
            self.commit()?;
        }
        Ok(())
    }

    /// Writes the results, and keeps the known state of files still to come.
    fn commit(&mut self) -> Result<()> {
        let done = self.done.len();
        let mut files = std::mem::take(&mut self.done);
        let claimed = (0..self.current.len()).filter(|number| self.claims[*number] > 0);
        let claimed: Vec<usize> = claimed.collect();
        files.extend(claimed.iter().map(|number| self.current[*number].clone()));
        self.table.files = files;
        self.writer.commit(self.table, &self.waiting)?;
        self.waiting.clear();
        self.waiting_bytes = 0;
        let mut files = self.table.files.clone();
        for (number, known) in claimed.into_iter().zip(files.split_off(done)) {
            self.current[number] = known;
        }
        self.done = files;
        Ok(())
    }
}

impl Report {
    fn add(&mut self, file: &Surveyed, outcome: &Outcome) {
        let path = &file.shown;
        let text: u64 = outcome.segments.iter().map(|segment| segment.bytes).sum();
        self.bytes_read += text;
        self.has_more |= outcome.is_part;
        match outcome.how {
            How::Kept => {
                self.renamed += usize::from(file.name == Name::Renamed);
                self.linked += usize::from(file.name == Name::Linked);
            }
            How::Compared => self.compared += 1,
            How::Continued => self.grown += 1,
            How::Read => self.read += 1,
            How::Failed => {
                self.read += 1;
                self.unread += 1;
                let why = outcome.known.unread.as_deref().unwrap_or_default();
                say!("tamis: {}: {why}", path.display());
            }
        }
        for (total, remarks) in self.remarks.iter_mut().zip(&outcome.remarks) {
            total.without_key += remarks.without_key;
            if let Some(why) = &remarks.no_column {
                total.no_column.tell(path, why.clone());
            }
            if let Some(why) = &remarks.unknown {
                total.unknown.tell(path, why.clone());
            }
        }
        let is_read = matches!(outcome.how, How::Read | How::Compared);
        if is_read && outcome.known.stamp.is_racy() && outcome.known.unread.is_none() {
            self.busy.0 += 1;
            self.busy.1.get_or_insert_with(|| path.clone());
        }
    }

    /// Whether there was nothing to do.
    pub(crate) const fn is_idle(&self) -> bool {
        self.read == 0
            && self.grown == 0
            && self.renamed == 0
            && self.linked == 0
            && self.compared == 0
            && self.gone == 0
    }
}
