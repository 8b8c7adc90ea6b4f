//! The rows of a data frame as keys of a filter: queried first, and added once the caller has the result.

use crate::error::{Failure, Result};
use crate::filter::clock::AHEAD;
use crate::filter::{Filter, USUAL};
use crate::interrupt::Lookout;
use crate::key;
use crate::lock::{Mark, lock};
use crate::mask::Answers;
use crate::redis::{Keys, RedisFilter, Verb};
use crate::source::Held;
use crate::when::{self, Times, When};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::ops::Range;
use std::sync::Mutex;
use tamis::{AnyFilter, Hash, Hasher, KeyRule, Moment, Window, window::Span};
use tamis_python_core::column::{Buffer, KeyColumn, Values};
use tamis_python_core::keys::{Key, NoKeys};

/// Rows that are hashed or queried at once.
const ROWS: usize = 1024;

/// The filter to query and add to.
enum Judge {
    Filter(Py<Filter>),
    Redis(Py<RedisFilter>),
}

/// Keys of rows, and what a filter said of them.
#[pyclass(frozen, module = "tamis._tamis", name = "_Rows")]
pub(crate) struct Rows {
    judge: Judge,
    /// Of the rows that have a key.
    hashes: Vec<Hash>,
    /// The keys themselves, where a server hashes them: where each ends.
    keys: Option<(Vec<usize>, Vec<u8>)>,
    /// Which rows have a key.
    keyed: Vec<bool>,
    looked: Mutex<Looked>,
}

/// The result of querying the filter.
#[derive(Default)]
struct Looked {
    /// Which keys were not in the filter: only the first of equal ones.
    new: Vec<usize>,
    /// The number of keys in the filter at that time.
    counted: Option<u64>,
}

#[pymethods]
impl Rows {
    /// The rows of these columns, which are of equal length. Whatever is no key is
    /// said here.
    #[new]
    fn new(filter: &Bound<'_, PyAny>, columns: &Bound<'_, PyList>, len: usize) -> Result<Self> {
        let py = filter.py();
        let judge = Judge::of(filter)?;
        // Reports errors before looking at the columns.
        judge.counted(py)?;
        let hasher = judge.hasher();
        // With several columns, each holds one of the values.
        let rule = match columns.len() {
            1 => *hasher.rule(),
            _ => hasher.rule().of_values(1).unwrap_or_default(),
        };
        let mut held = Vec::with_capacity(columns.len());
        for column in columns {
            held.push(Held::of(&rule, &column)?);
        }
        let mut parts = Vec::with_capacity(held.len());
        for held in &mut held {
            parts.push(held.columns()?);
        }
        if let Some(wrong) = lengths(&parts).find(|length| *length != len) {
            return Err(Failure::parameter(format!(
                "frame: expected columns of {len} rows, got one of {wrong}"
            )));
        }
        let keys_wanted = judge.wants_keys();
        let (hashes, keys, keyed) =
            py.detach(|| Hashing::new(hasher, len, keys_wanted)?.all(parts))?;
        Ok(Self {
            judge,
            hashes,
            keys,
            keyed,
            looked: Mutex::default(),
        })
    }

    /// Refuses a filter that keys can't be added to.
    #[staticmethod]
    fn check_writable(filter: &Bound<'_, PyAny>) -> Result<()> {
        match Judge::of(filter)? {
            Judge::Filter(judge) => judge.get().check_writable(filter.py()),
            Judge::Redis(_) => Ok(()),
        }
    }

    /// The rows of a list of keys, with None for a row without one.
    #[staticmethod]
    fn of_objects(filter: &Bound<'_, PyAny>, objects: &Bound<'_, PyList>) -> Result<Self> {
        let judge = Judge::of(filter)?;
        let (mut hashes, mut keyed) = (Vec::new(), Vec::new());
        let mut keys = judge.wants_keys().then(<(Vec<usize>, Vec<u8>)>::default);
        for object in objects {
            keyed.push(!object.is_none());
            if object.is_none() {
                continue;
            }
            hashes.push(judge.hash(&object)?);
            if let Some((ends, bytes)) = &mut keys {
                bytes.extend_from_slice(&key::bytes(&object)?);
                ends.push(bytes.len());
            }
        }
        Ok(Self {
            judge,
            hashes,
            keys,
            keyed,
            looked: Mutex::default(),
        })
    }

    /// Whether each row stays, as an object like the frame: its key is not in the
    /// filter, or it has none. Of rows with equal keys the first one stays, if
    /// keys are to be `distinct`.
    fn unseen<'py>(&self, frame: &Bound<'py, PyAny>, distinct: bool) -> Result<Bound<'py, PyAny>> {
        let py = frame.py();
        let mut looked = Looked {
            counted: self.judge.counted(py)?,
            new: Vec::new(),
        };
        let mut found = vec![false; self.hashes.len()];
        self.ask(py, &mut found)?;
        py.detach(|| {
            let absent = (0..self.hashes.len()).filter(|row| !found[*row]);
            if distinct {
                let mut first = Firsts::of(&self.hashes);
                looked.new = absent.filter(|row| first.is(*row)).collect();
            } else {
                looked.new = absent.collect()
            }
        });
        let mask = self.mask(frame, &looked.new)?;
        *lock(&self.looked) = looked;
        Ok(mask)
    }

    /// Adds the keys that the look has found to be new. Returns None if they still
    /// were; otherwise which rows stay, because others have added some meanwhile.
    fn add<'py>(&self, frame: &Bound<'py, PyAny>) -> Result<Option<Bound<'py, PyAny>>> {
        let py = frame.py();
        let looked = std::mem::take(&mut *lock(&self.looked));
        let new = match &self.judge {
            Judge::Filter(filter) => {
                let hashes: Vec<Hash> = looked.new.iter().map(|key| self.hashes[*key]).collect();
                Filter::add_absent(filter.bind(py), hashes, looked.counted)?
            }
            Judge::Redis(filter) => Some(self.add_to_redis(filter.get(), py, &looked.new)?),
        };
        match new {
            Some(new) if new.contains(&false) => {
                let new = looked.new.iter().zip(new).filter(|(_, new)| *new);
                let new: Vec<usize> = new.map(|(key, _)| *key).collect();
                self.mask(frame, &new).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// Adds the keys of all rows to a window, one after the other, at their times. Returns whether each row
    /// stays, because its key was new or because it has none; how many rows are older than the
    /// window, and how many are of a future that nobody has seen.
    fn add_at<'py>(
        &self,
        frame: &Bound<'py, PyAny>,
        at: &Bound<'_, PyAny>,
    ) -> Result<(Bound<'py, PyAny>, usize, usize)> {
        let py = frame.py();
        let Judge::Filter(filter) = &self.judge else {
            return Err(no_window());
        };
        let mut times = self.times(Times::of(at)?)?;
        let (mut new, mut doubts) = (vec![false; self.hashes.len()], Doubts::default());
        let mark = Mark::on(filter.clone_ref(py), py);
        py.detach(|| {
            let mut lookout = Lookout::new();
            for (number, hashes) in self.hashes.chunks(ROWS).enumerate() {
                lookout.look()?;
                let rows = number * ROWS..number * ROWS + hashes.len();
                let new = &mut new[rows.clone()];
                mark.write(|state| match state.writable()? {
                    AnyFilter::Window(window) => {
                        match &mut times {
                            Times::Now => {
                                let now = when::now(window);
                                window.insert_many_mut(hashes, now, new)
                            }
                            Times::At(moment) => window.insert_many_mut(hashes, *moment, new),
                            Times::Each(moments) => {
                                doubts.begin(window, moments);
                                let moments = &mut moments[rows];
                                doubts.look(window, moments);
                                window.insert_many_mut(hashes, &*moments, new)
                            }
                        }
                        Ok(())
                    }
                    _ => Err(no_window()),
                })?;
            }
            Ok::<_, Failure>(())
        })?;
        let new: Vec<usize> = (0..new.len()).filter(|key| new[*key]).collect();
        Ok((self.mask(frame, &new)?, doubts.old, doubts.ahead))
    }

    /// Adds the keys of all rows, whatever the filter has.
    fn add_all(&self, py: Python<'_>) -> Result<()> {
        match &self.judge {
            Judge::Filter(filter) => {
                let mark = Mark::on(filter.clone_ref(py), py);
                py.detach(|| {
                    let (mut lookout, mut new) = (Lookout::new(), [false; ROWS]);
                    for hashes in self.hashes.chunks(ROWS) {
                        lookout.look()?;
                        let new = &mut new[..hashes.len()];
                        mark.write(|state| state.insert_all(hashes, When::Now, new))?;
                    }
                    Ok(())
                })
            }
            Judge::Redis(filter) => {
                let all: Vec<usize> = (0..self.hashes.len()).collect();
                self.add_to_redis(filter.get(), py, &all).map(drop)
            }
        }
    }
}

impl Rows {
    /// The times of the rows that have a key.
    fn times(&self, times: Times) -> Result<Times> {
        let Times::Each(moments) = times else {
            return Ok(times);
        };
        if moments.len() != self.keyed.len() {
            let (rows, times) = (self.keyed.len(), moments.len());
            return Err(Failure::parameter(format!(
                "at: expected a time for each of {rows} rows, got {times}"
            )));
        }
        let keyed = moments
            .into_iter()
            .zip(&self.keyed)
            .filter(|(_, keyed)| **keyed);
        Ok(Times::Each(keyed.map(|(moment, _)| moment).collect()))
    }

    fn ask(&self, py: Python<'_>, found: &mut [bool]) -> Result<()> {
        let mut lookout = Lookout::new();
        match &self.judge {
            Judge::Filter(filter) => {
                let mark = Mark::on(filter.clone_ref(py), py);
                py.detach(|| {
                    for (hashes, found) in self.hashes.chunks(ROWS).zip(found.chunks_mut(ROWS)) {
                        lookout.look()?;
                        mark.read(|state| state.contains_all(hashes, When::Now, found))?;
                    }
                    Ok(())
                })
            }
            Judge::Redis(filter) => {
                let rows: Vec<usize> = (0..self.hashes.len()).collect();
                for (rows, found) in rows.chunks(8 * ROWS).zip(found.chunks_mut(8 * ROWS)) {
                    filter
                        .get()
                        .call(py, Verb::Ask, &self.keys_of(rows), found)?;
                    py.check_signals()?;
                }
                Ok(())
            }
        }
    }

    fn add_to_redis(
        &self,
        filter: &RedisFilter,
        py: Python<'_>,
        rows: &[usize],
    ) -> Result<Vec<bool>> {
        let mut new = vec![false; rows.len()];
        for (rows, new) in rows.chunks(8 * ROWS).zip(new.chunks_mut(8 * ROWS)) {
            filter.call(py, Verb::Add, &self.keys_of(rows), new)?;
        }
        Ok(new)
    }

    fn keys_of(&self, rows: &[usize]) -> Keys<'_> {
        match &self.keys {
            Some((ends, bytes)) => Keys::Bytes(
                rows.iter()
                    .map(|row| &bytes[row.checked_sub(1).map_or(0, |r| ends[r])..ends[*row]])
                    .collect(),
            ),
            None => Keys::Hashes(rows.iter().map(|row| self.hashes[*row]).collect()),
        }
    }

    /// A mask of rows without a key, and rows with one of these keys.
    fn mask<'py>(&self, frame: &Bound<'py, PyAny>, keys: &[usize]) -> Result<Bound<'py, PyAny>> {
        let mut chosen = keys.iter().peekable();
        let mut key = 0..;
        let stays: Vec<bool> = (self.keyed.iter())
            .map(|keyed| {
                !keyed || {
                    let key = key.next();
                    chosen.next_if(|chosen| Some(**chosen) == key).is_some()
                }
            })
            .collect();
        let mut answers = Answers::wanted(frame)?;
        answers.reserve(stays.len())?;
        answers.extend(&stays);
        Ok(answers.like(frame)?)
    }
}

impl Judge {
    fn of(filter: &Bound<'_, PyAny>) -> Result<Self> {
        if let Ok(filter) = filter.cast::<Filter>() {
            return Ok(Self::Filter(filter.clone().unbind()));
        }
        match filter.cast::<RedisFilter>() {
            Ok(filter) => Ok(Self::Redis(filter.clone().unbind())),
            Err(_) => Err(Failure::argument(format!(
                "filter: expected a Filter or a RedisFilter, got {}",
                key::type_name(filter)
            ))),
        }
    }

    /// The filter's hasher, or one to compare rows with.
    fn hasher(&self) -> Hasher {
        match self {
            Self::Filter(filter) => filter.get().hasher,
            Self::Redis(filter) => filter.get().hasher.unwrap_or(USUAL),
        }
    }

    fn wants_keys(&self) -> bool {
        matches!(self, Self::Redis(filter) if filter.get().hasher.is_none())
    }

    fn hash(&self, key: &Bound<'_, PyAny>) -> Result<Hash> {
        match self {
            Self::Filter(filter) => filter.get().hash(key),
            Self::Redis(_) => key::hash(&self.hasher(), key),
        }
    }

    fn counted(&self, py: Python<'_>) -> Result<Option<u64>> {
        match self {
            Self::Filter(filter) => filter.get().counted(py),
            Self::Redis(_) => Ok(None),
        }
    }
}

fn no_window() -> Failure {
    Failure::parameter("filter: expected a Window beside at, got another filter")
}

/// Times of records that are too old or in the future.
#[derive(Default)]
struct Doubts {
    /// Older than the window: new, and not remembered.
    old: usize,
    /// In the future. Such a time would make the window forget everything, so it is replaced by the latest time so far.
    ahead: usize,
    /// The start of a window without keys: the first plausible time.
    first: Option<Moment>,
}

impl Doubts {
    fn begin(&mut self, window: &Window, moments: &[Moment]) {
        if let (Span::Time(band), None) = (window.options().band(), window.latest()) {
            let last = Moment::now() + band + AHEAD;
            self.first = moments.iter().copied().find(|moment| *moment <= last);
        }
    }

    /// Checks times before they are added, and corrects those in the future.
    fn look(&mut self, window: &Window, moments: &mut [Moment]) {
        let Span::Time(band) = window.options().band() else {
            return;
        };
        let (now, step) = (Moment::now(), band.as_micros() as i64);
        let generations = i64::from(window.options().generation_count());
        let mut latest = window.latest();
        for moment in moments {
            if *moment > now + band + AHEAD {
                self.ahead += 1;
                *moment = latest.or(self.first).unwrap_or(now);
            }
            let number = |moment: Moment| moment.micros().div_euclid(step);
            let old = |latest| number(*moment) < number(latest) - generations;
            self.old += usize::from(latest.is_some_and(old));
            latest = latest.max(Some(*moment));
        }
    }
}

/// The number of rows in each column.
fn lengths(parts: &[Vec<KeyColumn<'_>>]) -> impl Iterator<Item = usize> {
    let lengths = parts
        .iter()
        .map(|parts| parts.iter().map(|part| part.len).sum());
    lengths.collect::<Vec<usize>>().into_iter()
}

/// The result for rows: their hashes, the keys if wanted, and which rows have one.
type Made = (Vec<Hash>, Option<(Vec<usize>, Vec<u8>)>, Vec<bool>);

struct Hashing {
    hasher: Hasher,
    hashes: Vec<Hash>,
    keys: Option<(Vec<usize>, Vec<u8>)>,
    keyed: Vec<bool>,
    lookout: Lookout,
}

impl Hashing {
    fn new(hasher: Hasher, len: usize, keys: bool) -> Result<Self> {
        let (mut hashes, mut keyed) = (Vec::new(), Vec::new());
        let room = hashes
            .try_reserve_exact(len)
            .and(keyed.try_reserve_exact(len));
        room.map_err(|_| {
            let text = format!("there is no memory for the hashes of {len} rows");
            Failure::Own("OutOfMemoryError", text)
        })?;
        Ok(Self {
            hasher,
            hashes,
            keys: keys.then(Default::default),
            keyed,
            lookout: Lookout::new(),
        })
    }

    /// Hashes all rows of columns, each of which has several parts.
    fn all(mut self, mut columns: Vec<Vec<KeyColumn<'_>>>) -> Result<Made> {
        if columns.len() == 1 {
            for mut part in columns.remove(0) {
                part.hash_dictionary(&self.hasher)?;
                self.rows(&part)?;
            }
        } else {
            let columns: Vec<_> = columns.into_iter().map(KeyColumn::joined).collect();
            let len = columns.first().map_or(0, |column| column.len);
            self.rows(&KeyColumn {
                len,
                values: Values::Tuple(columns),
                valid: None,
            })?;
        }
        Ok((self.hashes, self.keys, self.keyed))
    }

    fn rows(&mut self, column: &KeyColumn<'_>) -> Result<()> {
        let (mut hashes, mut rows) = (Vec::new(), Vec::new());
        for start in (0..column.len).step_by(ROWS) {
            self.lookout.look()?;
            let range = start..column.len.min(start + ROWS);
            if self.keys.is_some() {
                self.keys_of(column, range)?;
                continue;
            }
            column.hash(&self.hasher, range.clone(), &mut hashes, &mut rows)?;
            self.hashes.extend_from_slice(&hashes);
            let before = self.keyed.len();
            let all = hashes.len() == range.len();
            self.keyed.resize(before + range.len(), all);
            if !all {
                for row in &rows {
                    self.keyed[before + row] = true;
                }
            }
        }
        Ok(())
    }

    /// Collects the keys themselves; their hashes distinguish them.
    fn keys_of(&mut self, column: &KeyColumn<'_>, range: Range<usize>) -> Result<(), NoKeys> {
        let Some((ends, bytes)) = &mut self.keys else {
            return Ok(());
        };
        let mut buffer = Buffer::default();
        for row in range {
            let key = column.key(&KeyRule::EXACT, row, &mut buffer)?;
            self.keyed.push(key.is_some());
            if let Some(Key::Text(key) | Key::Exact(key)) = key {
                self.hashes.push(self.hasher.hash_exact(key));
                bytes.extend_from_slice(key);
                ends.push(bytes.len());
            }
        }
        Ok(())
    }
}

/// Which keys are the first with their hash.
struct Firsts<'a> {
    hashes: &'a [Hash],
    /// A hash table of key numbers, with a marker for free slots.
    table: Vec<usize>,
}

impl<'a> Firsts<'a> {
    const NOBODY: usize = usize::MAX;

    fn of(hashes: &'a [Hash]) -> Self {
        let places = (2 * hashes.len()).next_power_of_two();
        Self {
            hashes,
            table: vec![Self::NOBODY; places],
        }
    }

    /// Whether no equal key came before.
    fn is(&mut self, key: usize) -> bool {
        let hash = self.hashes[key].as_u128();
        let mut place = (hash >> 64) as usize;
        loop {
            place &= self.table.len() - 1;
            match self.table[place] {
                Self::NOBODY => {
                    self.table[place] = key;
                    return true;
                }
                other if self.hashes[other].as_u128() == hash => return false,
                _ => place += 1,
            }
        }
    }
}
