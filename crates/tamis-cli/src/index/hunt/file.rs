//! Searches one file: where its plan says, for the patterns that it may hold, and in the times asked for.

use super::{Claims, Hunt, Searched, Tally, Work};
use crate::index::identity::{Identity, identity};
use crate::index::is_gone;
use crate::index::stretches::{Plan, Stretches, Times, is_not_text, is_packed};
use crate::index::survey::Surveyed;
use crate::index::table::Known;
use crate::output;
use anyhow::Result;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Mutex;
use tamis::Moment;
use tamis::index::Stamp;
use tamis_records::grep::{Failure, Found, LineFilter, Matcher, Search, Stretch};
use tamis_records::line_time::LineTimes;

/// Smaller files are searched for all patterns, even if only some can match: compiling a subset would take longer.
const LARGE: u64 = 256 << 10;

impl<'a> Hunt<'a> {
    pub(super) fn search_file(
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
