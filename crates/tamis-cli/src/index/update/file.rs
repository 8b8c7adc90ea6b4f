//! The result for one file: its known one, kept or compared, or a new one from reading it.

use super::Job;
use crate::index::identity::generation;
use crate::index::parts::NOT_WRITTEN;
use crate::index::survey::{ends, is_still, links};
use crate::index::table::{At, Known, Segment};
use crate::index::walk::Listed;
use crate::index::{is_gone, quiet};
use std::fs::{self, File};
use std::io;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tamis::Moment;
use tamis::index::{EntryFilters, Stamp};
use tamis_records::input::{InputError, TextKind};
use tamis_records::line_time::LineTimes;
use tamis_records::scan::{self, Remarks, Scanned, Task, Text};

/// Text read from one file before its filters are written; they wait in memory until then.
const AT_ONCE: u64 = 1 << 30;

/// The result for a file.
pub(super) struct Outcome {
    /// Everything but its segments.
    pub(super) known: Known,
    /// How many known segments are kept.
    pub(super) kept: usize,
    /// The new segments after these, with their filters.
    pub(super) segments: Vec<Segment>,
    pub(super) filters: Vec<EntryFilters>,
    pub(super) remarks: Vec<Remarks>,
    pub(super) how: How,
    /// Whether the file has more text, for the next update.
    pub(super) is_part: bool,
}

/// How the result was obtained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Kept,
    Compared,
    Continued,
    Read,
    Failed,
}

/// Keeps the known results, maybe under another name.
pub(super) fn keep(listed: &Listed, known: &Known) -> Outcome {
    let now = Stamp::of(&listed.metadata);
    let stamp = if known.stamp.is_like(&now) {
        known.stamp
    } else {
        // A write in the same clock tick as the renaming leaves no other trace.
        now.after_reading(&now, SystemTime::now())
    };
    Outcome {
        known: Known {
            root: listed.root,
            inside: listed.inside.clone(),
            is_link: listed.is_link,
            stamp,
            links: links(&listed.metadata),
            segments: Vec::new(),
            ..known.clone()
        },
        kept: known.segments.len(),
        segments: Vec::new(),
        filters: Vec::new(),
        remarks: Vec::new(),
        how: How::Kept,
        is_part: false,
    }
}

/// An unreadable file may hold any key. The next run tries again.
pub(super) fn failed(listed: &Listed, cause: &io::Error) -> Outcome {
    Outcome {
        known: Known {
            unread: Some(cause.to_string()),
            stamp: Stamp::of(&listed.metadata).racy(),
            ..unknown(listed)
        },
        kept: 0,
        segments: Vec::new(),
        filters: Vec::new(),
        remarks: Vec::new(),
        how: How::Failed,
        is_part: false,
    }
}

fn unknown(listed: &Listed) -> Known {
    Known {
        root: listed.root,
        inside: listed.inside.clone(),
        is_link: listed.is_link,
        stamp: Stamp::of(&listed.metadata),
        links: links(&listed.metadata),
        generation: None,
        grows: false,
        kind: TextKind::PLAIN,
        whole: 0,
        ends: 0,
        unread: None,
        entrances: Vec::new(),
        segments: Vec::new(),
    }
}

/// A file being read, with its state before.
struct Reading {
    file: File,
    stamp: Stamp,
    links: u64,
    generation: Option<u64>,
    began: SystemTime,
    quiet: bool,
}

impl Reading {
    fn begin(listed: &Listed) -> io::Result<Self> {
        let file = File::open(&listed.place)?;
        let mut began = SystemTime::now();
        let mut metadata = file.metadata()?;
        if wait_until_settled(&Stamp::of(&metadata), began) {
            began = SystemTime::now();
            metadata = file.metadata()?;
        }
        let stamp = Stamp::of(&metadata);
        // Checked after the stamp and before reading: any earlier unseen write is read, and any later one will show.
        let quiet = quiet::is_quiet(&file, age(&stamp, began).unwrap_or_default());
        Ok(Self {
            links: links(&metadata),
            generation: generation(&file),
            file,
            stamp,
            began,
            quiet,
        })
    }

    /// The stamp to store, now that everything is read.
    fn end(&self, listed: &Listed) -> io::Result<Stamp> {
        // By path: another file may have replaced it.
        let after = match fs::metadata(&listed.place) {
            Ok(after) => Stamp::of(&after),
            Err(error) if is_gone(&error) => Stamp::of(&self.file.metadata()?),
            Err(error) => return Err(error),
        };
        Ok(match self.stamp.after_reading(&after, self.began) {
            stamp if self.quiet => stamp,
            stamp => stamp.racy(),
        })
    }
}

/// Reads a file, or the text appended to it. `None` if stopped.
pub(super) fn read(
    listed: &Listed,
    before: Option<&Known>,
    job: &Job,
) -> io::Result<Option<Outcome>> {
    let reading = Reading::begin(listed)?;
    // Checked again: another file may have replaced it.
    let before = before.filter(|known| {
        known.stamp.size() <= reading.stamp.size() && is_still(known, &reading.file)
    });
    let (kept, from) = before.map_or((0, 0), |known| resume(known, reading.stamp.size()));
    let all = reading.stamp.size();
    // A file that can't be recognised again is read to its end.
    let size = match reading.generation {
        Some(_) => all.min(from.saturating_add(AT_ONCE)),
        None => all,
    };
    let file = reading.file.try_clone()?;
    let text = match before {
        // Read from its beginning, the file may turn out to be of another kind.
        Some(known) if from > 0 => Text::from(&listed.place, file, known.kind, from, size),
        _ => Text::of(&listed.place, file, size, job.progress),
    }?;
    let kind = text.kind();
    let modified = Moment::from_micros(reading.stamp.modified() / 1000);
    let mut times = LineTimes::new(None, modified);
    let last = kept
        .checked_sub(1)
        .and_then(|last| before?.segments[last].last_time);
    times.set_last(last.map(Moment::from_micros));
    let (scanned, segments, filters) = match scan_text(text, &mut times, job) {
        Ok(scanned) => scanned,
        Err(error) if error.is_stop() => return Ok(None),
        Err(error) if error.is_not_read() => {
            return not_read(listed, &reading, &error.cause, job).map(Some);
        }
        Err(error) => return Err(error.cause),
    };
    let Scanned {
        remarks,
        whole,
        entrances,
    } = scanned;
    let (whole, is_part) = if kind.is_plain() {
        (kind.offset_in_file(from + whole), size < all)
    } else {
        (all, false)
    };
    let stamp = reading.end(listed)?;
    let known = Known {
        // As if the rest had been appended later.
        stamp: if is_part {
            Stamp::new(size, stamp.modified(), stamp.changed(), stamp.inode()).racy()
        } else {
            stamp
        },
        links: reading.links,
        generation: reading.generation,
        grows: before.is_some() || is_part,
        kind,
        whole,
        ends: ends(&reading.file, size)?,
        entrances,
        ..unknown(listed)
    };
    Ok(Some(Outcome {
        known,
        kept,
        segments,
        filters,
        remarks,
        how: if before.is_some() {
            How::Continued
        } else {
            How::Read
        },
        is_part,
    }))
}

/// Reads the text, and makes the filters of its segments.
fn scan_text(
    text: Text,
    times: &mut LineTimes,
    job: &Job,
) -> Result<(Scanned, Vec<Segment>, Vec<EntryFilters>), InputError> {
    let task = Task {
        specs: job.specs,
        options: job.options,
        progress: job.progress,
    };
    let (mut segments, mut filters) = (Vec::new(), Vec::new());
    let mut buffers = job.buffers.take();
    let scanned = scan::scan(text, task, times, &mut buffers, |segment| {
        segments.push(Segment {
            bytes: segment.bytes,
            lines: segment.lines,
            sum: segment.sum,
            times: segment.times.map(|(a, b)| (a.micros(), b.micros())),
            last_time: segment.last_time.map(Moment::micros),
            filters: At {
                part: NOT_WRITTEN,
                entry: filters.len(),
            },
        });
        filters.push(segment.filters);
    })?;
    // After a failure, the buffers may still hold keys.
    job.buffers.give_back(buffers);
    Ok((scanned, segments, filters))
}

/// The file is fine, but its content can't be read.
fn not_read(
    listed: &Listed,
    reading: &Reading,
    cause: &io::Error,
    job: &Job,
) -> io::Result<Outcome> {
    let why = cause.to_string();
    let mut outcome = failed(listed, cause);
    outcome.how = How::Read;
    outcome.known.stamp = reading.end(listed)?;
    outcome.remarks = job
        .specs
        .iter()
        .map(|_| Remarks {
            unknown: Some(why.clone()),
            ..Remarks::default()
        })
        .collect();
    Ok(outcome)
}

/// Which segments of a grown file to keep, and where to continue reading. Small segments are merged with new text, so
/// that a file that grows by single lines doesn't get a segment for each.
fn resume(known: &Known, size: u64) -> (usize, u64) {
    let mut kept = known.segments.len();
    let mut from = known.text_bytes();
    while let Some(last) = kept.checked_sub(1).map(|last| &known.segments[last]) {
        // The segment ends with an unfinished line, which may have been continued.
        let is_cut = known.kind.offset_in_file(from) > known.whole;
        let is_small = last.bytes < scan::SEGMENT / 2 && last.bytes <= size - from;
        if !is_cut && !is_small {
            break;
        }
        kept -= 1;
        from -= last.bytes;
    }
    (kept, from)
}

/// Whether a file still has the same text. `None` if not.
pub(super) fn compare(listed: &Listed, known: &Known, job: &Job) -> io::Result<Option<Outcome>> {
    let reading = Reading::begin(listed)?;
    if known.unread.is_some() || reading.stamp.size() != known.stamp.size() {
        return Ok(None);
    }
    let file = reading.file.try_clone()?;
    let text = Text::of(&listed.place, file, reading.stamp.size(), job.progress)?;
    let sums: Vec<(u64, u64)> = known
        .segments
        .iter()
        .map(|segment| (segment.bytes, segment.sum))
        .collect();
    let same =
        text.kind() == known.kind && scan::has_sums(text, &sums, job.progress).unwrap_or(false);
    if !same || known.segments.iter().all(|segment| segment.bytes == 0) {
        return Ok(None);
    }
    let mut outcome = keep(listed, known);
    outcome.known.stamp = reading.end(listed)?;
    outcome.known.links = reading.links;
    outcome.known.generation = reading.generation;
    outcome.known.ends = ends(&reading.file, reading.stamp.size())?;
    outcome.how = How::Compared;
    Ok(Some(outcome))
}

/// A file written just now could be written again without its times changing, so it would count as stale. Waits a
/// moment first. Returns whether it had to wait.
fn wait_until_settled(stamp: &Stamp, now: SystemTime) -> bool {
    const MOMENT: Duration = Duration::from_millis(25);
    let left = age(stamp, now).map_or(Duration::ZERO, |age| MOMENT.saturating_sub(age));
    std::thread::sleep(left);
    !left.is_zero()
}

/// How long ago a file last changed; `None` if in the future.
fn age(stamp: &Stamp, now: SystemTime) -> Option<Duration> {
    let changed = UNIX_EPOCH + Duration::from_nanos(u64::try_from(stamp.changed()).unwrap_or(0));
    now.duration_since(changed).ok()
}
