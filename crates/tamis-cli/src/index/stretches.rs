//! Which stretches of a file to search, and their text.

use super::candidates::Candidates;
use super::survey::{Freshness, Surveyed};
use super::table::Known;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use tamis::Moment;
use tamis_records::formats::{FileClass, FileKind};
use tamis_records::grep::Stretch;
use tamis_records::input::{TextReader, text_from};
use tamis_records::progress::Progress;

/// A range of times; both ends are inclusive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Times {
    pub(crate) since: Option<Moment>,
    pub(crate) until: Option<Moment>,
}

impl Times {
    pub(crate) const ALL: Self = Self {
        since: None,
        until: None,
    };

    pub(crate) fn contains(&self, time: Moment) -> bool {
        self.since.is_none_or(|since| since <= time) && self.until.is_none_or(|until| time <= until)
    }

    fn overlaps(&self, first: i64, last: i64) -> bool {
        self.since.is_none_or(|since| since.micros() <= last)
            && self.until.is_none_or(|until| first <= until.micros())
    }
}

/// The criteria for choosing segments.
pub(crate) struct Chosen<'a> {
    /// One per queried spec; a segment must be a candidate of all.
    pub(crate) candidates: &'a [Candidates],
    /// The number of patterns; each has a need.
    pub(crate) patterns: usize,
    pub(crate) times: Times,
    /// Lines of context to print before and after a match.
    pub(crate) context: (usize, usize),
}

/// What to search of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Plan {
    /// Everything: the file isn't in the index, or has changed.
    All,
    /// Stretches of known text, by segment number, and whether to search appended text.
    Segments { runs: Vec<Range<usize>>, tail: bool },
}

impl Plan {
    /// `None` if the file can't match. Also returns the patterns that may match.
    pub(crate) fn of(
        file: &Surveyed,
        known: Option<&Known>,
        chosen: &Chosen,
    ) -> Option<(Self, Vec<usize>)> {
        let all = || (0..chosen.patterns).collect();
        // A file without text may be binary.
        let is_text = |known: &&Known| known.text_bytes() > 0 || file.listed.metadata.len() == 0;
        let known = known.filter(|_| !file.state.is_unknown());
        let Some(known) = known.filter(is_text) else {
            return Some((Self::All, all()));
        };
        let may = |pattern: usize, segment: usize| {
            let at = known.segments[segment].filters;
            chosen
                .candidates
                .iter()
                .all(|candidates| candidates.may(pattern, at))
        };
        let in_time = |segment: usize| match known.segments[segment].times {
            _ if chosen.times == Times::ALL => true,
            // Without a time, it may have any.
            None => true,
            Some((first, last)) => chosen.times.overlaps(first, last),
        };
        let segments = known.segments.len();
        let timely: Vec<usize> = (0..segments).filter(|segment| in_time(*segment)).collect();
        let mut wanted = vec![false; segments];
        let mut patterns = Vec::new();
        for pattern in 0..chosen.patterns {
            let mut any = false;
            for &segment in &timely {
                if may(pattern, segment) {
                    wanted[segment] = true;
                    any = true;
                }
            }
            if any {
                patterns.push(pattern);
            }
        }
        let tail = file.state == Freshness::Grown;
        if tail {
            // Appended text may match any pattern.
            patterns = all();
        }
        widen(known, &mut wanted, tail, chosen.context);
        let runs = runs(known, &wanted);
        if runs.is_empty() && !tail {
            return None;
        }
        Some((Self::Segments { runs, tail }, patterns))
    }
}

/// Adds the segments that hold context lines of the wanted ones or of appended text.
fn widen(known: &Known, wanted: &mut [bool], tail: bool, (before, after): (usize, usize)) {
    let segments = &known.segments;
    let found: Vec<usize> = (0..wanted.len())
        .filter(|segment| wanted[*segment])
        .collect();
    let tail = tail.then_some(segments.len());
    for start in found.iter().copied().chain(tail) {
        let mut lines = before as u64;
        for segment in (0..start).rev() {
            if lines == 0 {
                break;
            }
            wanted[segment] = true;
            lines = lines.saturating_sub(segments[segment].lines);
        }
    }
    for end in found {
        let mut lines = after as u64;
        for segment in end + 1..segments.len() {
            if lines == 0 {
                break;
            }
            wanted[segment] = true;
            lines = lines.saturating_sub(segments[segment].lines);
        }
    }
}

/// Joins neighbours, and segments between which reading can't start anew.
fn runs(known: &Known, wanted: &[bool]) -> Vec<Range<usize>> {
    let mut starts = vec![0];
    for segment in &known.segments {
        starts.push(starts[starts.len() - 1] + segment.bytes);
    }
    let mut runs: Vec<Range<usize>> = Vec::new();
    for segment in (0..wanted.len()).filter(|segment| wanted[*segment]) {
        match runs.last_mut() {
            Some(run)
                if run.end == segment || !can_skip(known, starts[run.end], starts[segment]) =>
            {
                run.end = segment + 1;
            }
            _ => runs.push(segment..segment + 1),
        }
    }
    runs
}

/// Whether the text between two offsets can be skipped.
fn can_skip(known: &Known, from: u64, to: u64) -> bool {
    let mut entrances = known.entrances.iter();
    known.kind.is_plain() || entrances.any(|entrance| (from + 1..=to).contains(&entrance.text))
}

/// The text of a file's stretches, opened one at a time.
pub(crate) struct Stretches<'a> {
    file: File,
    known: Option<&'a Known>,
    /// Text offset, length, and number of lines before it.
    ranges: std::vec::IntoIter<(u64, Option<u64>, u64)>,
    progress: &'a Arc<Progress>,
}

impl<'a> Stretches<'a> {
    /// Reads up to `end`, if given: later text was written since.
    pub(crate) fn new(
        file: File,
        known: Option<&'a Known>,
        plan: &Plan,
        end: Option<u64>,
        progress: &'a Arc<Progress>,
    ) -> Self {
        let mut ranges = match (plan, known) {
            (Plan::Segments { runs, tail }, Some(known)) => ranges(known, runs, *tail),
            _ => vec![(0, None, 0)],
        };
        if let (Some(end), Some((offset, length @ None, _))) = (end, ranges.last_mut()) {
            *length = Some(end.saturating_sub(*offset));
        }
        Self {
            file,
            known: known.filter(|_| *plan != Plan::All),
            ranges: ranges.into_iter(),
            progress,
        }
    }

    /// One stretch of a file that isn't in the index; `line` is the number of lines before it.
    pub(crate) fn between(
        file: File,
        range: Range<u64>,
        line: u64,
        progress: &'a Arc<Progress>,
    ) -> Self {
        Self {
            file,
            known: None,
            ranges: vec![(range.start, Some(range.end - range.start), line)].into_iter(),
            progress,
        }
    }

    fn open(&self, offset: u64) -> io::Result<TextReader> {
        let file = self.file.try_clone()?;
        let Some(known) = self.known else {
            let text = TextReader::new(file, self.progress)?;
            if let Some(kind) = text.file_kind() {
                return Err(io::Error::other(NotText(kind)));
            }
            if offset == 0 {
                return Ok(text);
            }
            return text_from(self.file.try_clone()?, text.kind(), None, offset);
        };
        let mut entrances = known.entrances.iter();
        let entrance = entrances.rfind(|entrance| entrance.text <= offset);
        text_from(file, known.kind, entrance, offset)
    }
}

fn ranges(known: &Known, runs: &[Range<usize>], tail: bool) -> Vec<(u64, Option<u64>, u64)> {
    let segments = &known.segments;
    let before = |segment: usize| {
        let before = segments[..segment].iter();
        before.fold((0, 0), |(bytes, lines), segment| {
            (bytes + segment.bytes, lines + segment.lines)
        })
    };
    // The unfinished last line may have been continued.
    let whole = known.whole.saturating_sub(known.kind.offset_in_file(0));
    let mut ranges: Vec<_> = runs
        .iter()
        .map(|run| {
            let (start, line) = before(run.start);
            let (end, _) = before(run.end);
            let end = if tail { end.min(whole) } else { end };
            (start, Some(end - start), line)
        })
        .collect();
    if tail {
        ranges.push((whole, None, known.lines()));
    }
    ranges
}

impl<'a> Iterator for Stretches<'a> {
    type Item = io::Result<Stretch<'static>>;

    fn next(&mut self) -> Option<Self::Item> {
        let (offset, length, line) = self.ranges.next()?;
        let opened = self.open(offset).map(|text| {
            let text: Box<dyn Read> = match length {
                None => Box::new(text),
                Some(length) => Box::new(text.take(length)),
            };
            Stretch { offset, line, text }
        });
        Some(opened)
    }
}

/// The error for files that aren't text.
#[derive(Debug)]
struct NotText(FileKind);

impl std::fmt::Display for NotText {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.0.name)
    }
}

impl std::error::Error for NotText {}

/// Whether the only problem is that the file isn't text.
pub(crate) fn is_not_text(error: &io::Error) -> bool {
    error.get_ref().is_some_and(|cause| cause.is::<NotText>())
}

/// Whether that is due to an unsupported compression.
pub(crate) fn is_packed(error: &io::Error) -> bool {
    let cause = error.get_ref();
    let cause = cause.and_then(|cause| cause.downcast_ref::<NotText>());
    cause.is_some_and(|cause| cause.0.class == FileClass::Unread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::index::table::{At, Segment};
    use std::path::PathBuf;
    use tamis::index::Stamp;
    use tamis_records::input::TextKind;

    fn known(lines: &[u64]) -> Known {
        let segment = |lines: &u64| Segment {
            bytes: lines * 10,
            lines: *lines,
            sum: 0,
            times: None,
            last_time: None,
            filters: At { part: 0, entry: 0 },
        };
        Known {
            root: 0,
            inside: PathBuf::new(),
            is_link: false,
            stamp: Stamp::new(0, 0, 0, 0),
            links: 1,
            generation: None,
            grows: false,
            kind: TextKind::PLAIN,
            whole: lines.iter().sum::<u64>() * 10,
            ends: 0,
            unread: None,
            entrances: Vec::new(),
            segments: lines.iter().map(segment).collect(),
        }
    }

    #[test]
    fn context_reaches_over_small_segments() {
        let known = known(&[100, 2, 3, 1, 100, 1]);
        let widened = |found: usize, tail, context| -> Vec<usize> {
            let mut wanted = vec![false; 6];
            if found < 6 {
                wanted[found] = true;
            }
            widen(&known, &mut wanted, tail, context);
            (0..6).filter(|segment| wanted[*segment]).collect()
        };
        assert_eq!(widened(3, false, (0, 0)), [3]);
        assert_eq!(widened(3, false, (3, 0)), [2, 3]);
        assert_eq!(widened(3, false, (4, 0)), [1, 2, 3]);
        assert_eq!(widened(3, false, (6, 2)), [0, 1, 2, 3, 4]);
        assert_eq!(widened(1, false, (0, 5)), [1, 2, 3, 4]);
        assert_eq!(widened(6, true, (2, 0)), [4, 5]);
        assert!(widened(6, true, (0, 9)).is_empty());
    }

    #[test]
    fn ranges_follow_each_other() {
        let known = known(&[4, 2, 3]);
        assert_eq!(
            ranges(&known, &[0..1, 2..3], false),
            [(0, Some(40), 0), (60, Some(30), 6)]
        );
        assert_eq!(
            ranges(&known, &[1..2, 2..3], true),
            [(40, Some(20), 4), (60, Some(30), 6), (90, None, 9)]
        );
    }
}
