//! Adding, looking up and removing keys.

use super::{Key, Module};
use crate::Error;
use crate::failure::Failure;
use crate::link::Link;
use crate::packed::Packed;
use crate::request::{Again, Request};
use crate::wire::{Job, Settled, of_failure};
use redis::Value;
use std::ops::Range;
use tamis::{
    Kind, Moment,
    window::{Span, When},
};

/// Keys that are sent before the answers to earlier ones are read.
const WINDOW: usize = 1 << 12;
/// The most that one command contains, so that it doesn't hold up other
/// clients.
const COMMAND_KEYS: usize = 128;
const COMMAND_BYTES: usize = 1 << 20;

/// Adds a copy of each key to a cuckoo filter. Returns for each key 1 if it was
/// new, 0 if not, or the text of an error.
const ADD_COPIES: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= ARGV[1] then return false end
local answers = {}
for i = 2, #ARGV do
  local had = redis.call('CF.EXISTS', KEYS[1], ARGV[i])
  local added = redis.pcall('CF.ADD', KEYS[1], ARGV[i])
  answers[i - 1] = type(added) == 'table' and added.err or 1 - had
end
return answers";

/// Splits a range into commands of limited length and size, each with keys of
/// one generation.
fn spans(
    keys: &[&[u8]],
    range: Range<usize>,
    generation: impl Fn(usize) -> i64,
) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for i in range {
        bytes += keys[i].len();
        match spans.last_mut() {
            Some(span)
                if span.len() < COMMAND_KEYS
                    && bytes <= COMMAND_BYTES
                    && generation(span.start) == generation(i) =>
            {
                span.end += 1;
            }
            _ => {
                spans.push(i..i + 1);
                bytes = keys[i].len();
            }
        }
    }
    spans
}

/// Why a key was not added.
fn refusal(value: Option<&Value>) -> String {
    match value {
        Some(Value::ServerError(error)) => redis::RedisError::from(error.clone()).to_string(),
        Some(Value::BulkString(text)) => String::from_utf8_lossy(text).into_owned(),
        Some(Value::Int(-1)) => "the filter is full".into(),
        _ => "the server did not say what became of them".into(),
    }
}

/// An operation on keys.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Verb {
    Add,
    Remove,
    Contains,
    Count,
}

impl Verb {
    const fn changes(self) -> bool {
        matches!(self, Self::Add | Self::Remove)
    }

    /// Reads a module's answer about one key, in either protocol.
    const fn read(self, value: &Value) -> Option<u64> {
        match (self, value) {
            (Self::Count, Value::Int(count @ 0..)) => Some(*count as u64),
            (_, Value::Boolean(is)) => Some(*is as u64),
            (_, Value::Int(is @ 0..=1)) => Some(*is as u64),
            _ => None,
        }
    }
}

impl Key {
    /// One command with all keys.
    fn together(&self, packed: &mut Packed, words: &[&str], keys: &[&[u8]]) {
        packed.begin(words.len() + 1 + keys.len());
        packed.text(words[0]);
        packed.text(&self.name);
        words[1..].iter().for_each(|word| packed.text(word));
        keys.iter().for_each(|key| packed.text(key));
    }

    /// Never BF.MADD, which would create an empty filter if ours has been
    /// deleted.
    fn add(&self, packed: &mut Packed, keys: &[&[u8]], at: Option<Moment>) {
        if let Some(at) = at {
            let micros = at.micros().to_string();
            let words = ["BF.INSERT", "AT", &micros, "NOCREATE", "ITEMS"];
            return self.together(packed, &words, keys);
        }
        if self.is.kind != Kind::Cuckoo {
            return self.together(packed, &["BF.INSERT", "NOCREATE", "ITEMS"], keys);
        }
        packed.begin(5 + keys.len());
        packed.text("EVAL");
        packed.text(ADD_COPIES);
        packed.number(1);
        packed.text(&self.name);
        packed.text(self.is.name);
        keys.iter().for_each(|key| packed.text(key));
    }
}

/// The moments of keys of a window.
struct Times {
    moments: Vec<Moment>,
    /// The length of a generation, in microseconds.
    step: i64,
}

impl Times {
    fn generation(&self, key: usize) -> i64 {
        self.moments[key].micros().div_euclid(self.step)
    }
}

/// Keys on their way, and their answers.
struct Batch<'a> {
    to: &'a Key,
    verb: Verb,
    keys: &'a [&'a [u8]],
    /// Without times, the server's clock is used.
    times: Option<Times>,
    /// Whether replicas must have the changes.
    replicated: bool,
    answers: Vec<u64>,
    /// Old keys reported as new because an earlier try may have added them.
    ambiguous: u64,
    unconfirmed: Vec<usize>,
    /// The reason: a failure, or the module's error.
    failed: Option<Failure>,
    refused: Option<String>,
    gone: bool,
}

impl Batch<'_> {
    fn request(&self, span: &Range<usize>) -> Request {
        let (to, keys) = (self.to, &self.keys[span.clone()]);
        let mut packed = Packed::default();
        match (self.verb, &self.times) {
            (Verb::Add, times) => {
                // All keys have the same generation, so the latest moment
                // serves for all.
                let moments = times.iter().flat_map(|times| &times.moments[span.clone()]);
                to.add(&mut packed, keys, moments.max().copied());
            }
            (Verb::Contains, Some(times)) => {
                for (key, at) in keys.iter().zip(&times.moments[span.clone()]) {
                    let micros = at.micros().to_string();
                    to.together(
                        &mut packed,
                        &["BF.EXISTS"],
                        &[key, b"AT", micros.as_bytes()],
                    );
                }
            }
            (Verb::Contains, None) => {
                let command = to.choose("BF.MEXISTS", "CF.MEXISTS");
                to.together(&mut packed, &[command], keys);
            }
            (Verb::Remove | Verb::Count, _) => {
                let count = self.verb == Verb::Count;
                let command = if count { "CF.COUNT" } else { "CF.DEL" };
                keys.iter()
                    .for_each(|key| to.together(&mut packed, &[command], &[key]));
            }
        }
        if !self.verb.changes() {
            // For a filter that no longer exists, a module answers "no"; TYPE
            // tells the cases apart.
            to.together(&mut packed, &["TYPE"], &[]);
        } else if self.replicated {
            to.pulse(&mut packed);
        }
        let twice_is_once = self.verb != Verb::Remove && to.is.kind != Kind::Cuckoo;
        Request {
            again: if twice_is_once || !self.verb.changes() {
                Again::Harmless
            } else {
                Again::Never
            },
            replicated: self.replicated && self.verb.changes(),
            ..Request::packed(to.home, packed)
        }
    }

    /// Reads the answers for some keys; `None` if the filter no longer exists.
    fn read(&mut self, span: Range<usize>, answers: &[Value], ambiguous: bool) -> Option<()> {
        let list = match (self.verb, answers) {
            (Verb::Contains, answers) if self.times.is_some() => answers.get(..span.len())?,
            (Verb::Add | Verb::Contains, [Value::Array(list), ..]) => list,
            (Verb::Remove | Verb::Count, answers) => answers.get(..span.len())?,
            _ => return None,
        };
        let asked = !self.verb.changes();
        if asked && (list.len() != span.len() || !self.to.is_same(answers.last())) {
            return None;
        }
        for (i, key) in span.enumerate() {
            match list.get(i).and_then(|value| self.verb.read(value)) {
                None if asked => return None,
                None => {
                    self.unconfirmed.push(key);
                    self.refused.get_or_insert_with(|| refusal(list.get(i)));
                }
                // An unanswered try may have added the key: better to report it
                // twice than never.
                Some(0) if ambiguous && self.verb == Verb::Add => {
                    self.answers[key] = 1;
                    self.ambiguous += 1;
                }
                Some(answer) => self.answers[key] = answer,
            }
        }
        Some(())
    }
}

impl Job for Batch<'_> {
    type Window = Vec<Range<usize>>;

    fn begin(&mut self, range: Range<usize>) -> (Vec<Request>, Self::Window) {
        let times = self.times.as_ref();
        let generation = |key| times.map_or(0, |times| times.generation(key));
        let spans = spans(self.keys, range, generation);
        (spans.iter().map(|span| self.request(span)).collect(), spans)
    }

    fn finish(&mut self, spans: Self::Window, settled: Vec<Settled>) -> bool {
        for (span, Settled { outcome, ambiguous }) in spans.into_iter().zip(settled) {
            match outcome {
                Ok(answers) => self.gone |= self.read(span, &answers, ambiguous).is_none(),
                Err(failure) => {
                    self.unconfirmed.extend(span);
                    self.failed.get_or_insert(failure);
                }
            }
        }
        self.failed.is_none() && self.refused.is_none() && !self.gone
    }
}

impl<L: Link> Module<L> {
    /// Adds keys; `new[i]` is the answer for `keys[i]`.
    pub(crate) async fn insert_many(
        &mut self,
        keys: &[&[u8]],
        new: &mut [bool],
    ) -> Result<(), Error> {
        self.run(Verb::Add, keys, None, new, |answer| answer > 0)
            .await
    }

    /// Adds keys at their moments, which only windows use.
    pub(crate) async fn insert_many_at(
        &mut self,
        keys: &[&[u8]],
        at: When<'_>,
        new: &mut [bool],
    ) -> Result<(), Error> {
        at.check(keys.len());
        let times = self.believed(keys.len(), at);
        self.run(Verb::Add, keys, times, new, |answer| answer > 0)
            .await
    }

    /// Looks up keys at their moments, which only windows use.
    pub(crate) async fn contains_many_at(
        &mut self,
        keys: &[&[u8]],
        at: When<'_>,
        found: &mut [bool],
    ) -> Result<(), Error> {
        at.check(keys.len());
        let times = self.step().map(|step| Times {
            moments: (0..keys.len()).map(|key| at.of(key)).collect(),
            step,
        });
        self.run(Verb::Contains, keys, times, found, |answer| answer > 0)
            .await
    }

    /// The length of a window's generation.
    fn step(&self) -> Option<i64> {
        match self.window()?.band() {
            Span::Time(step) => i64::try_from(step.as_micros()).ok(),
            Span::Keys(_) => None,
        }
    }

    /// The moments of keys to add. The server refuses moments more than a generation ahead. So moments more than half a
    /// generation ahead of our clock are replaced by the latest one so far, and counted.
    fn believed(&mut self, keys: usize, at: When<'_>) -> Option<Times> {
        let step = self.step()?;
        let forgets = self.about.window.as_mut()?;
        let generations = i64::from(forgets.options.generation_count());
        let now = Moment::now();
        let last = Moment::from_micros(now.micros() + step / 2);
        let (mut too_old, mut future) = (0, 0);
        let moment = |key| {
            let mut moment = at.of(key);
            if moment > last {
                future += 1;
                moment = forgets.latest.unwrap_or(now);
            }
            let latest = forgets.latest.map_or(moment, |latest| latest.max(moment));
            forgets.latest = Some(latest);
            let age = latest.micros().div_euclid(step) - moment.micros().div_euclid(step);
            too_old += u64::from(age > generations);
            moment
        };
        let moments = (0..keys).map(moment).collect();
        self.wire.counters().out_of_window(too_old, future);
        Some(Times { moments, step })
    }

    /// Removes one copy of each key; `removed[i]` is the answer for `keys[i]`.
    pub(crate) async fn remove_many(
        &mut self,
        keys: &[&[u8]],
        removed: &mut [bool],
    ) -> Result<(), Error> {
        self.check_cuckoo("removed from")?;
        self.run(Verb::Remove, keys, None, removed, |answer| answer > 0)
            .await
    }

    /// Looks up keys; `found[i]` is the answer for `keys[i]`.
    pub(crate) async fn contains_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut [bool],
    ) -> Result<(), Error> {
        self.run(Verb::Contains, keys, None, found, |answer| answer > 0)
            .await
    }

    /// An upper bound on the number of copies of each key.
    pub(crate) async fn count_many(
        &mut self,
        keys: &[&[u8]],
        counts: &mut [u64],
    ) -> Result<(), Error> {
        self.check_cuckoo("asked how often")?;
        self.run(Verb::Count, keys, None, counts, |answer| answer)
            .await
    }

    async fn run<T>(
        &mut self,
        verb: Verb,
        keys: &[&[u8]],
        times: Option<Times>,
        out: &mut [T],
        convert: impl Fn(u64) -> T,
    ) -> Result<(), Error> {
        assert_eq!(keys.len(), out.len(), "one answer for each key");
        let mut batch = Batch {
            to: &self.key,
            verb,
            keys,
            times,
            replicated: self.wire.wait.is_some(),
            answers: vec![0; keys.len()],
            ambiguous: 0,
            unconfirmed: Vec::new(),
            failed: None,
            refused: None,
            gone: false,
        };
        let sent = self.wire.run(&mut batch, keys.len(), WINDOW).await;
        let Batch {
            answers,
            ambiguous,
            mut unconfirmed,
            failed,
            refused,
            gone,
            ..
        } = batch;
        self.wire.counters().ambiguous(ambiguous);
        for (out, answer) in out.iter_mut().zip(answers) {
            *out = convert(answer);
        }
        if gone {
            return Err(self.gone());
        }
        let reason = match (failed, refused) {
            (None, None) => return Ok(()),
            (Some(failure), _) if !verb.changes() => {
                return Err(self.or_gone(of_failure("asking the filter", failure)).await);
            }
            // The server refused, perhaps because the filter no longer exists.
            (Some(Failure::Refused(_)), _) if matches!(self.is_there().await, Ok(false)) => {
                return Err(self.gone());
            }
            (Some(failure), _) => failure.to_string(),
            (None, Some(words)) => words,
        };
        unconfirmed.extend(sent..keys.len());
        Err(Error::Unconfirmed {
            keys: unconfirmed,
            of: keys.len(),
            reason,
        })
    }

    fn check_cuckoo(&self, what: &'static str) -> Result<(), Error> {
        match self.key.is.kind {
            Kind::Cuckoo => Ok(()),
            _ => Err(self.unable(what, "create a cuckoo filter in the module (CF.*)")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_neither_long_nor_large() {
        let large = vec![0; COMMAND_BYTES];
        let keys: Vec<&[u8]> = [&large[..]; 2]
            .into_iter()
            .chain([&b"key"[..]; 300])
            .chain([&large[..]])
            .collect();
        let found = spans(&keys, 0..keys.len(), |_| 0);
        assert_eq!(found, [0..1, 1..2, 2..130, 130..258, 258..302, 302..303]);
        assert_eq!(spans(&keys, 2..132, |_| 0), [2..130, 130..132]);
        assert!(spans(&keys, 0..0, |_| 0).is_empty());
        let generations = [1, 1, 2, 1, 1];
        let found = spans(&keys, 2..7, |key| generations[key - 2]);
        assert_eq!(found, [2..4, 4..5, 5..7]);
    }
}
