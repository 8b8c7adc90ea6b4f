//! Reads a window's buckets, decides which keys are new, and changes the
//! buckets unless another client has changed them meanwhile.
//!
//! A key goes to the first free slot of its buckets, in the order of the strings. While the newest
//! period stays the same, slots are only ever taken. So two workers that add the same key choose
//! the same slot, or one of them chooses a slot that has been taken since. Either way, one of them
//! is refused and looks again. The same happens to a key whose slot was chosen because an earlier
//! key, which was refused, had taken the slot before it.

use crate::body::foot;
use crate::chunks::{Chunk, FOOT};
use crate::packed::Packed;
use crate::request::Request;
use crate::sliding::{BUCKET, Bucket, HEAD, Head, LATE, Level, Place, Sliding};
use redis::Value;
use std::collections::{BTreeMap, BTreeSet};
use tamis::{Moment, window::Renewal};

/// Changes a chunk unless another client has changed it.
const SCRIPT: &str = include_str!("window.lua");
/// One command reads adjacent buckets, up to this many bytes.
const LONGEST: u64 = 4_096;
/// Keys of a chunk that are decided together: enough to share the cost, few
/// enough not to hold up other clients of the server.
pub(crate) const TOGETHER: usize = 1 << 10;

/// A key and when it was seen, if not now.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Timed {
    /// The index of the caller's key.
    pub(crate) key: usize,
    pub(crate) place: Place,
    pub(crate) at: Option<i64>,
}

/// A look into one chunk.
pub(crate) struct Look {
    pub(crate) chunk: usize,
    pub(crate) keys: Vec<Timed>,
    adding: bool,
    /// The server's time.
    now: i64,
    /// The first string's head, as read.
    pub(crate) head: Head,
    /// The strings, as they will be.
    strings: Vec<Text>,
    /// The number of strings, as read.
    were: usize,
    newest: Option<i64>,
    cells: BTreeMap<(usize, u64), Cell>,
}

/// A string.
struct Text {
    level: Level,
    chunk: Chunk,
    /// The newest period of the keys added to it.
    newest: Option<i64>,
    made: bool,
    changed: bool,
}

/// A bucket, as read and as it will be.
struct Cell {
    seen: Vec<u8>,
    bucket: Bucket,
    sets: Vec<Set>,
    /// Whether its stamps start from a new base.
    moved: bool,
}

impl Cell {
    fn new(level: Level, bytes: Vec<u8>) -> Self {
        Self {
            seen: bytes.clone(),
            bucket: Bucket::new(level, bytes),
            sets: Vec::new(),
            moved: false,
        }
    }
}

/// An entry that is set for a key.
struct Set {
    key: usize,
    place: Place,
    slot: usize,
    from: u64,
    to: u64,
}

/// Why a look failed.
pub(crate) enum Blind {
    /// The chunk has this many strings.
    Strings(usize),
    Missing(String),
    Corrupt,
}

/// The results for keys that were added.
#[derive(Default)]
pub(crate) struct Decided {
    /// Keys that are in the window, with their periods and whether they were
    /// there before.
    pub(crate) keys: Vec<(usize, i64, bool)>,
    /// Keys older than the window.
    pub(crate) old: Vec<usize>,
    /// The number of keys from the future.
    pub(crate) future: u64,
    /// Keys whose buckets must be read first.
    pub(crate) again: Vec<usize>,
    /// The keys that belong to each range and each entry of the request.
    pub(crate) changes: Vec<Vec<usize>>,
    pub(crate) request: Option<Request>,
    /// Bytes of strings to be created.
    pub(crate) made: u64,
}

impl Look {
    /// Prepares a look for keys of one chunk, in their order.
    pub(crate) fn new(window: &Sliding, chunk: usize, keys: Vec<Timed>, adding: bool) -> Self {
        let text = |(number, chunk): (usize, &Chunk)| Text {
            level: window.level(number),
            chunk: chunk.clone(),
            newest: None,
            made: false,
            changed: false,
        };
        let strings: Vec<Text> = window.chunks[chunk].iter().enumerate().map(text).collect();
        Self {
            chunk,
            keys,
            adding,
            now: 0,
            head: Head::default(),
            were: strings.len(),
            strings,
            newest: None,
            cells: BTreeMap::new(),
        }
    }

    /// Reads the heads of all strings and the buckets of the first. Each string
    /// has its own request: while a slot moves, its keys are split between two
    /// nodes.
    pub(crate) fn requests(&self) -> Vec<Request> {
        let request = |text: &Text| {
            let Text { level, chunk, .. } = text;
            let mut commands = Packed::default();
            let starts = match level.number {
                0 => self.starts(0),
                _ => Vec::new(),
            };
            get(&mut commands, chunk, 0, HEAD);
            get(&mut commands, chunk, chunk.len, FOOT + 1);
            commands.begin(1);
            commands.text("TIME");
            let bytes = read(&mut commands, chunk, level, &starts);
            Request::packed(chunk.slot, commands).answered_with(bytes)
        };
        self.strings.iter().map(request).collect()
    }

    /// The keys' buckets in a string, in order.
    fn starts(&self, level: usize) -> Vec<u64> {
        let level = self.strings[level].level;
        let starts = self.keys.iter().map(|timed| level.start(&timed.place));
        starts.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Reads the answers.
    pub(crate) fn see(&mut self, window: &Sliding, answers: &[Vec<Value>]) -> Result<(), Blind> {
        for (number, answer) in answers.iter().enumerate() {
            let key = self.strings[number].chunk.key.clone();
            let missing = || Blind::Missing(key.clone());
            let [Value::BulkString(head), end, time, buckets @ ..] = &answer[..] else {
                return Err(Blind::Corrupt);
            };
            foot(end).ok_or_else(missing)?;
            let head = Head::decode(head).ok_or_else(missing)?;
            self.strings[number].newest = head.newest;
            if number > 0 {
                continue;
            }
            if head.further + 1 != self.were {
                return Err(Blind::Strings(head.further + 1));
            }
            (self.head, self.newest) = (head, head.newest);
            let (seconds, micros): (i64, i64) =
                redis::from_redis_value(time.clone()).map_err(|_| Blind::Corrupt)?;
            let now = seconds.saturating_mul(1_000_000).saturating_add(micros);
            self.now = window.period_of(Moment::from_micros(now));
            self.keep(0, &self.starts(0), buckets).ok_or_else(missing)?;
        }
        Ok(())
    }

    /// Keeps buckets that were read; `None` if some are missing.
    fn keep(&mut self, number: usize, starts: &[u64], answers: &[Value]) -> Option<()> {
        let level = self.strings[number].level;
        let mut answers = answers.iter();
        for run in runs(&level, starts) {
            let Some(Value::BulkString(bytes)) = answers.next() else {
                return None;
            };
            for (start, bytes) in run.iter().zip(bytes.chunks(level.bucket as usize)) {
                if bytes.len() as u64 != level.bucket {
                    return None;
                }
                (self.cells).insert((number, *start), Cell::new(level, bytes.to_vec()));
            }
        }
        Some(())
    }

    /// The buckets of a further string that may be needed: those of keys whose
    /// previous bucket is or was full.
    fn wanted(&self, window: &Sliding, number: usize) -> Vec<u64> {
        let (before, level) = (self.strings[number - 1].level, self.strings[number].level);
        let kept = self.head.newest.map(|newest| kept(window, newest));
        let mut hits = BTreeMap::<u64, usize>::new();
        for timed in &self.keys {
            *hits.entry(before.start(&timed.place)).or_default() += 1;
        }
        let needs = |start: u64| {
            let bucket = &self.cells.get(&(number - 1, start))?.bucket;
            let full = self.adding && bucket.free(kept.unwrap_or(i64::MAX)).1 < hits[&start];
            Some(bucket.over() > 0 || full)
        };
        let places = self.keys.iter().map(|timed| &timed.place);
        let needed = places.filter(|place| needs(before.start(place)) == Some(true));
        let starts: BTreeSet<u64> = needed.map(|place| level.start(place)).collect();
        starts.into_iter().collect()
    }

    /// Reads buckets of a further string, if any may be needed.
    pub(crate) fn next(&self, window: &Sliding, number: usize) -> Option<Request> {
        let text = self.strings.get(number)?;
        let starts = self.wanted(window, number);
        let mut commands = Packed::default();
        let bytes = read(&mut commands, &text.chunk, &text.level, &starts);
        (bytes > 0).then(|| Request::packed(text.chunk.slot, commands).answered_with(bytes))
    }

    /// Reads the answers.
    pub(crate) fn see_next(
        &mut self,
        window: &Sliding,
        number: usize,
        answer: &[Value],
    ) -> Result<(), Blind> {
        let starts = self.wanted(window, number);
        let key = self.strings[number].chunk.key.clone();
        (self.keep(number, &starts, answer)).ok_or(Blind::Missing(key))
    }

    /// Whether each key was seen in the window that ends at its time.
    pub(crate) fn ask(&self, window: &Sliding) -> impl Iterator<Item = (usize, bool)> {
        self.keys.iter().map(|timed| {
            let oldest = timed.at.unwrap_or(self.now) - window.generations();
            let found = self.find(&timed.place, oldest, i64::MIN);
            (timed.key, matches!(found, Some(Some(_))))
        })
    }

    /// The string and the slot of a key that was seen in this period or later;
    /// the outer `None` if a bucket wasn't read. Entries older than `kept`
    /// count as free.
    fn find(&self, place: &Place, oldest: i64, kept: i64) -> Option<Option<(usize, usize)>> {
        for (number, text) in self.strings.iter().enumerate() {
            let Some(bucket) = self.bucket(number, place) else {
                // The string is new, so its buckets are empty.
                return text.made.then_some(None);
            };
            if let Some(slot) = bucket.find(text.level.entry(place), oldest) {
                return Some(Some((number, slot)));
            }
            // From a full bucket, the key goes further, so the next bucket must
            // have been read.
            let full = || self.adding && bucket.free(kept).0.is_none();
            if bucket.over_at().is_none_or(|over| over < oldest) && !full() {
                break;
            }
        }
        Some(None)
    }

    fn bucket(&self, number: usize, place: &Place) -> Option<&Bucket> {
        let start = self.strings[number].level.start(place);
        self.cells.get(&(number, start)).map(|cell| &cell.bucket)
    }

    /// The bucket of a key, with stamps that reach the newest period.
    fn ready(&mut self, number: usize, place: &Place, newest: i64, kept: i64) -> Option<&mut Cell> {
        let text = &self.strings[number];
        let (level, start) = (text.level, text.level.start(place));
        if text.made {
            let empty = || Cell::new(level, vec![0; level.bucket as usize]);
            self.cells.entry((number, start)).or_insert_with(empty);
        }
        let cell = self.cells.get_mut(&(number, start))?;
        if cell.bucket.is_fresh() {
            cell.bucket.set_base(kept);
        } else if cell.bucket.is_outgrown(newest) {
            cell.bucket.move_to(kept);
            cell.moved = true;
        }
        Some(cell)
    }

    /// Decides in order which keys are new. A key from the future gets the
    /// newest period; if there is none, the time of the first key that isn't
    /// from the future, `instead`, or now.
    pub(crate) fn decide(&mut self, window: &Sliding, instead: Option<i64>) -> Decided {
        let mut decided = Decided::default();
        let believed = |at: &i64| *at <= self.now + 1;
        let first = self.keys.iter().filter_map(|timed| timed.at).find(believed);
        let instead = first.or(instead).unwrap_or(self.now);
        for (i, timed) in self.keys.clone().iter().enumerate() {
            let future = timed.at.is_some_and(|at| at > self.now + 1);
            let at = match timed.at {
                Some(_) if future => self.newest.unwrap_or(instead),
                Some(at) => at,
                // If the clock goes back, the window doesn't.
                None => self.newest.unwrap_or(self.now).max(self.now),
            };
            if self
                .newest
                .is_some_and(|newest| at < newest - window.generations())
            {
                decided.old.push(timed.key);
                continue;
            }
            self.advance(window, at);
            let Some(found) = self.add(window, timed, at) else {
                // Order matters, so all later keys wait, too.
                decided.again = self.keys[i..].iter().map(|timed| timed.key).collect();
                break;
            };
            decided.future += u64::from(future);
            decided.keys.push((timed.key, at, found));
        }
        decided
    }

    /// Moves the window forward to a period. Drops strings whose entries have
    /// all expired.
    fn advance(&mut self, window: &Sliding, at: i64) {
        if self.newest.is_some_and(|newest| at <= newest) {
            return;
        }
        self.newest = Some(at);
        let kept = kept(window, at);
        let over = |text: &Text| text.newest.is_none_or(|newest| newest < kept);
        while self.strings.len() > 1 && self.strings.last().is_some_and(over) {
            self.strings.pop();
        }
        let left = self.strings.len();
        self.cells.retain(|(number, _), _| *number < left);
    }

    /// Adds or renews a key; whether it was there. `None` if a bucket wasn't
    /// read.
    fn add(&mut self, window: &Sliding, timed: &Timed, at: i64) -> Option<bool> {
        let (oldest, place) = (at - window.generations(), &timed.place);
        let newest = self.newest.unwrap_or(at);
        let kept = kept(window, newest);
        let found = self.find(place, oldest, kept)?;
        if let Some((number, slot)) = found {
            let bucket = self.bucket(number, place)?;
            let quiet = window.options().renewed() == Renewal::Quiet;
            if !quiet || bucket.period_of(bucket.entry(slot)) >= Some(at) {
                return Some(true);
            }
            for before in 0..=number {
                self.ready(before, place, newest, kept)?;
            }
            let entry = self.strings[number].level.entry(place);
            // The entry may have expired; only late keys find such entries.
            if let Some(slot) = self.bucket(number, place)?.find(entry, oldest) {
                self.set(number, slot, timed, at)?;
                return Some(true);
            }
        }
        for number in 0.. {
            if number == self.strings.len() {
                self.strings.push(Text {
                    level: window.level(number),
                    chunk: window.string(self.chunk, number),
                    newest: None,
                    made: true,
                    changed: true,
                });
            }
            let bucket = &self.ready(number, place, newest, kept)?.bucket;
            if let (Some(slot), _) = bucket.free(kept) {
                self.set(number, slot, timed, at)?;
                break;
            }
        }
        Some(found.is_some())
    }

    /// Sets a key's entry, and marks the buckets before it as overfull.
    fn set(&mut self, number: usize, slot: usize, timed: &Timed, at: i64) -> Option<()> {
        for before in 0..=number {
            let level = self.strings[before].level;
            self.strings[before].changed = true;
            let cell = self.cells.get_mut(&(before, level.start(&timed.place)))?;
            let stamp = cell.bucket.stamp_of(at);
            if before < number {
                cell.bucket.raise_over(stamp as u8);
                continue;
            }
            let (from, to) = (cell.bucket.entry(slot), level.entry(&timed.place) | stamp);
            cell.bucket.set(slot, to);
            let (key, place) = (timed.key, timed.place);
            cell.sets.push(Set {
                key,
                place,
                slot,
                from,
                to,
            });
        }
        self.strings[number].newest = self.newest;
        Some(())
    }

    /// The request that applies the decisions unless another client has changed
    /// something; none if there is nothing to change.
    pub(crate) fn request(&self, window: &Sliding, decided: &mut Decided, replicated: bool) {
        let after = Head {
            newest: self.newest,
            further: self.strings.len() - 1,
            ..Head::default()
        };
        let still = after.encode() == self.head.encode();
        if still && !replicated && !self.strings.iter().any(|text| text.changed) {
            return;
        }
        let count = self.strings.len().max(self.were);
        let mut arguments = Arguments::default();
        arguments.add(self.head.encode());
        arguments.add(after.encode());
        for number in 0..count {
            let chunk = window.string(self.chunk, number);
            arguments.number(chunk.stored());
            arguments.add(match self.strings.get(number) {
                None => "drop",
                Some(text) if text.made => {
                    decided.made += chunk.stored();
                    "make"
                }
                Some(_) => "keep",
            });
        }
        for number in 0..count {
            self.write_changes(number, &mut arguments, &mut decided.changes);
        }
        let first = &self.strings[0].chunk;
        let mut command = Packed::default();
        command.begin(3 + count + arguments.count);
        command.text("EVAL");
        command.text(SCRIPT);
        command.number(count as u64);
        for number in 0..count {
            command.text(&window.string(self.chunk, number).key);
        }
        command.raw(&arguments.packed.bytes);
        decided.request = Some(Request {
            replicated,
            ..Request::packed(first.slot, command)
        });
    }

    /// The changes to one string.
    fn write_changes(&self, number: usize, to: &mut Arguments, changes: &mut Vec<Vec<usize>>) {
        let own = Head {
            newest: self.newest,
            ..Head::default()
        };
        let text = self.strings.get(number);
        let level = text.map(|text| text.level);
        match text {
            Some(text) if text.changed && number > 0 => to.add(own.encode()),
            _ => to.add(""),
        }
        to.add(format!("u{}", level.map_or(8, |level| 8 * level.entry)));
        let cells = || self.cells.range((number, 0)..(number + 1, 0));
        let moved: Vec<_> = cells().filter(|(_, cell)| cell.moved).collect();
        let kept: Vec<_> = cells().filter(|(_, cell)| !cell.moved).collect();
        to.number(moved.len() as u64);
        for ((_, start), cell) in moved {
            to.add(name(number, *start));
            to.number(*start);
            to.add(&cell.seen);
            to.add(&cell.bucket.bytes);
            changes.push(cell.sets.iter().map(|set| set.key).collect());
        }
        let differs = |from: usize, until: usize| {
            move |((_, start), cell): &(&(usize, u64), &Cell)| {
                let differs = cell.seen[from..until] != cell.bucket.bytes[from..until];
                differs.then(|| (*start, cell.bucket.clone()))
            }
        };
        let raised: Vec<_> = kept
            .iter()
            .filter_map(differs(BUCKET - 1, BUCKET))
            .collect();
        to.number(raised.len() as u64);
        for (start, bucket) in raised {
            to.number(start + BUCKET as u64 - 1);
            to.add([bucket.over()]);
        }
        let begun: Vec<_> = kept.iter().filter_map(differs(0, BUCKET - 1)).collect();
        to.number(begun.len() as u64);
        for (start, bucket) in begun {
            to.add("i48");
            to.number(start * 8);
            to.add(bucket.base().to_string());
        }
        to.number(kept.iter().map(|(_, cell)| cell.sets.len() as u64).sum());
        for ((_, start), cell) in kept {
            for set in &cell.sets {
                let entry = level.map_or(1, |level| level.entry);
                let passed = self.strings.iter().take(number + 1);
                let names = passed.map(|t| name(t.level.number, t.level.start(&set.place)));
                to.add(names.collect::<Vec<_>>().join(" "));
                to.number((start + (BUCKET + set.slot * entry) as u64) * 8);
                to.add((set.to.cast_signed() - set.from.cast_signed()).to_string());
                to.number(set.to);
                changes.push(vec![set.key]);
            }
        }
    }
}

/// A command's arguments, with their count.
#[derive(Default)]
struct Arguments {
    packed: Packed,
    count: usize,
}

impl Arguments {
    fn add(&mut self, text: impl AsRef<[u8]>) {
        self.count += 1;
        self.packed.text(text);
    }

    fn number(&mut self, number: u64) {
        self.count += 1;
        self.packed.number(number);
    }
}

/// The script's name for a bucket.
fn name(number: usize, start: u64) -> String {
    format!("{number}.{start}")
}

/// The oldest period whose entries are kept.
fn kept(window: &Sliding, newest: i64) -> i64 {
    newest - window.generations() - LATE
}

fn get(commands: &mut Packed, chunk: &Chunk, first: u64, bytes: u64) {
    commands.begin(4);
    commands.text("GETRANGE");
    commands.text(&chunk.key);
    commands.number(first);
    commands.number(first + bytes - 1);
}

/// Groups buckets into runs that one command reads.
fn runs<'a>(level: &Level, starts: &'a [u64]) -> impl Iterator<Item = &'a [u64]> {
    let bucket = level.bucket;
    (starts.chunk_by(move |a, b| a + bucket == *b))
        .flat_map(move |run| run.chunks((LONGEST / bucket).max(1) as usize))
}

/// Adds commands that read buckets; returns how many bytes they read.
fn read(commands: &mut Packed, chunk: &Chunk, level: &Level, starts: &[u64]) -> u64 {
    for run in runs(level, starts) {
        get(commands, chunk, run[0], level.bucket * run.len() as u64);
    }
    level.bucket * starts.len() as u64
}

/// The chunk's new version and the changes that were refused because other
/// clients came first; `None` if the chunk wasn't changed.
pub(crate) fn changed(answer: &[Value]) -> Option<(u64, Vec<usize>)> {
    let value = answer.first()?.clone();
    redis::from_redis_value(value).ok()
}

#[cfg(test)]
mod tests;
