//! Keys that come, are asked for, and go.

use super::{Key, Module};
use crate::Error;
use crate::failure::Failure;
use crate::link::Link;
use crate::packed::Packed;
use crate::request::{Again, Request};
use crate::wire::{Settled, Work, of_failure};
use redis::Value;
use std::ops::Range;
use std::sync::Arc;
use tamis::Kind;

/// Keys that are sent before the answers to the last are read.
const WINDOW: usize = 1 << 12;
/// What one command has at most: it must not hold up the server's others.
const COMMAND_KEYS: usize = 128;
const COMMAND_BYTES: usize = 1 << 20;

/// Adds a copy of each key to a cuckoo filter, and tells which were not there:
/// 1, else 0, or in words why one was not added.
const ADD_COPIES: &str = "
if redis.call('TYPE', KEYS[1]).ok ~= ARGV[1] then return false end
local answers = {}
for i = 2, #ARGV do
  local had = redis.call('CF.EXISTS', KEYS[1], ARGV[i])
  local added = redis.pcall('CF.ADD', KEYS[1], ARGV[i])
  answers[i - 1] = type(added) == 'table' and added.err or 1 - had
end
return answers";

/// Some keys on their way: which of them each request is about.
struct Batch {
    requests: Vec<Request>,
    spans: Vec<Range<usize>>,
}

impl Work for Batch {
    fn requests(&mut self) -> &mut Vec<Request> {
        &mut self.requests
    }
}

/// What went wrong with some of the keys.
#[derive(Default)]
struct Trouble {
    unconfirmed: Vec<usize>,
    reason: Option<String>,
    /// The server has said no, perhaps because the filter has gone.
    refused: bool,
    gone: bool,
}

impl Trouble {
    fn with(&mut self, keys: Range<usize>, reason: String) {
        self.unconfirmed.extend(keys);
        self.reason.get_or_insert(reason);
    }
}

/// The keys of a range in commands that are neither long nor large.
fn spans(keys: &[&[u8]], range: Range<usize>) -> Vec<Range<usize>> {
    let mut spans: Vec<Range<usize>> = Vec::new();
    let mut bytes = 0;
    for i in range {
        bytes += keys[i].len();
        match spans.last_mut() {
            Some(span) if span.len() < COMMAND_KEYS && bytes <= COMMAND_BYTES => span.end += 1,
            _ => {
                spans.push(i..i + 1);
                bytes = keys[i].len();
            }
        }
    }
    spans
}

/// A module's yes or no, in either protocol.
const fn truth(value: &Value) -> Option<bool> {
    match value {
        Value::Boolean(is) => Some(*is),
        Value::Int(0) => Some(false),
        Value::Int(1) => Some(true),
        _ => None,
    }
}

/// Why an item was not added.
fn refusal(value: Option<&Value>) -> String {
    match value {
        Some(Value::ServerError(error)) => redis::RedisError::from(error.clone()).to_string(),
        Some(Value::BulkString(text)) => String::from_utf8_lossy(text).into_owned(),
        Some(Value::Int(-1)) => "the filter is full".into(),
        _ => "the server did not say what became of them".into(),
    }
}

/// How keys become commands, and where in the answers theirs are.
#[derive(Clone, Copy)]
enum Form {
    /// One command for all, whose answer is a list.
    Together,
    /// A command for each.
    Apart,
}

impl Form {
    fn answers(self, keys: usize, answers: &[Value]) -> Option<&[Value]> {
        match (self, answers) {
            (Self::Together, [Value::Array(list), ..]) => Some(list),
            (Self::Apart, answers) => answers.get(..keys),
            _ => None,
        }
    }
}

impl Key {
    fn batch(
        &self,
        keys: &[&[u8]],
        range: Range<usize>,
        pack: impl Fn(&Self, &mut Packed, &[&[u8]]),
    ) -> Batch {
        let spans = spans(keys, range);
        let request = |span: &Range<usize>| {
            let mut packed = Packed::default();
            pack(self, &mut packed, &keys[span.clone()]);
            Request::packed(self.home, packed)
        };
        Batch {
            requests: spans.iter().map(request).collect(),
            spans,
        }
    }

    /// A command about all keys.
    fn together(&self, packed: &mut Packed, words: &[&str], keys: &[&[u8]]) {
        packed.begin(words.len() + 1 + keys.len());
        packed.text(words[0]);
        packed.text(&self.name);
        words[1..].iter().for_each(|word| packed.text(word));
        keys.iter().for_each(|key| packed.text(key));
    }

    /// A command about each.
    fn apart(&self, packed: &mut Packed, name: &str, keys: &[&[u8]]) {
        for key in keys {
            self.together(packed, &[name], &[key]);
        }
    }

    /// Never BF.MADD, which would begin an empty filter where there is none
    /// any more.
    fn add(&self, packed: &mut Packed, keys: &[&[u8]]) {
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

impl<L: Link> Module<L> {
    /// Adds keys; `new[i]` answers for `keys[i]`.
    pub(crate) async fn insert_many(
        &mut self,
        keys: &[&[u8]],
        new: &mut [bool],
    ) -> Result<(), Error> {
        assert_eq!(keys.len(), new.len(), "one answer for each key");
        new.fill(false);
        let again = match self.key.is.kind {
            // Twice is two copies.
            Kind::Cuckoo => Again::Never,
            _ => Again::Harmless,
        };
        let counters = Arc::clone(self.wire.counters());
        let told = |key: usize, was_new, ambiguous| {
            // A try whose answer was lost may have added it: better told twice
            // than never.
            new[key] = was_new || ambiguous;
            counters.ambiguous((ambiguous && !was_new).into());
        };
        self.change(keys, again, Form::Together, Key::add, told)
            .await
    }

    /// Takes out one copy of each key; `removed[i]` answers for `keys[i]`.
    pub(crate) async fn remove_many(
        &mut self,
        keys: &[&[u8]],
        removed: &mut [bool],
    ) -> Result<(), Error> {
        assert_eq!(keys.len(), removed.len(), "one answer for each key");
        self.check_cuckoo("removed from")?;
        removed.fill(false);
        let remove = |to: &Key, packed: &mut Packed, keys: &[&[u8]]| {
            to.apart(packed, "CF.DEL", keys);
        };
        let told = |key: usize, was, _| removed[key] = was;
        self.change(keys, Again::Never, Form::Apart, remove, told)
            .await
    }

    async fn change(
        &mut self,
        keys: &[&[u8]],
        again: Again,
        form: Form,
        pack: impl Fn(&Key, &mut Packed, &[&[u8]]) + Send + Sync,
        mut told: impl FnMut(usize, bool, bool) + Send,
    ) -> Result<(), Error> {
        let to = self.key.clone();
        let replicated = self.wire.wait.is_some();
        let make = |range| {
            let mut batch = to.batch(keys, range, |to, packed, keys| {
                pack(to, packed, keys);
                if replicated {
                    to.pulse(packed);
                }
            });
            for request in &mut batch.requests {
                request.again = again;
                request.replicated = replicated;
            }
            batch
        };
        let mut trouble = Trouble::default();
        let done = |batch: Batch, settled: Vec<Settled>| {
            for (span, Settled { outcome, ambiguous }) in batch.spans.into_iter().zip(settled) {
                let answers = match &outcome {
                    Ok(answers) => form.answers(span.len(), answers),
                    Err(failure) => {
                        trouble.refused |= matches!(failure, Failure::Refused(_));
                        trouble.with(span, failure.to_string());
                        continue;
                    }
                };
                let Some(answers) = answers else {
                    trouble.gone = true;
                    continue;
                };
                for (i, key) in span.enumerate() {
                    match answers.get(i).and_then(truth) {
                        Some(answer) => told(key, answer, ambiguous),
                        None => trouble.with(key..key + 1, refusal(answers.get(i))),
                    }
                }
            }
            trouble.reason.is_none() && !trouble.gone
        };
        let sent = self.wire.run(keys.len(), WINDOW, make, done).await;
        if trouble.gone || trouble.refused && matches!(self.is_there().await, Ok(false)) {
            return Err(self.gone());
        }
        let Some(reason) = trouble.reason else {
            return Ok(());
        };
        trouble.unconfirmed.extend(sent..keys.len());
        Err(Error::Unconfirmed {
            keys: trouble.unconfirmed,
            of: keys.len(),
            reason,
        })
    }

    /// Asks keys; `found[i]` answers for `keys[i]`.
    pub(crate) async fn contains_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut [bool],
    ) -> Result<(), Error> {
        assert_eq!(keys.len(), found.len(), "one answer for each key");
        let ask = |to: &Key, packed: &mut Packed, keys: &[&[u8]]| {
            let command = to.choose("BF.MEXISTS", "CF.MEXISTS");
            to.together(packed, &[command], keys);
        };
        self.ask_keys(keys, Form::Together, ask, |key, answer| {
            found[key] = truth(answer)?;
            Some(())
        })
        .await
    }

    /// How many copies of each key there are, at most.
    pub(crate) async fn count_many(
        &mut self,
        keys: &[&[u8]],
        counts: &mut [u64],
    ) -> Result<(), Error> {
        assert_eq!(keys.len(), counts.len(), "one answer for each key");
        self.check_cuckoo("asked how often")?;
        let ask = |to: &Key, packed: &mut Packed, keys: &[&[u8]]| {
            to.apart(packed, "CF.COUNT", keys);
        };
        self.ask_keys(keys, Form::Apart, ask, |key, answer| match answer {
            Value::Int(count @ 0..) => {
                counts[key] = *count as u64;
                Some(())
            }
            _ => None,
        })
        .await
    }

    /// Each request ends with the question whether the filter is still there:
    /// of one that is not, a module says that it has no key.
    async fn ask_keys(
        &mut self,
        keys: &[&[u8]],
        form: Form,
        pack: impl Fn(&Key, &mut Packed, &[&[u8]]) + Send + Sync,
        mut told: impl FnMut(usize, &Value) -> Option<()> + Send,
    ) -> Result<(), Error> {
        let to = self.key.clone();
        let make = |range| {
            to.batch(keys, range, |to, packed, keys| {
                pack(to, packed, keys);
                packed.begin(2);
                packed.text("TYPE");
                packed.text(&to.name);
            })
        };
        let mut failed: Option<Failure> = None;
        let mut gone = false;
        let done = |batch: Batch, settled: Vec<Settled>| {
            for (span, settled) in batch.spans.into_iter().zip(settled) {
                let answers = match settled.outcome {
                    Ok(answers) => answers,
                    Err(failure) => {
                        failed = Some(failure);
                        continue;
                    }
                };
                let told_all = form.answers(span.len(), &answers).and_then(|list| {
                    let is_all = list.len() == span.len() && to.is_same(answers.last());
                    let mut told = list.iter().zip(span).map(|(value, key)| told(key, value));
                    (is_all && told.all(|told| told.is_some())).then_some(())
                });
                gone |= told_all.is_none();
            }
            failed.is_none() && !gone
        };
        self.wire.run(keys.len(), WINDOW, make, done).await;
        match failed {
            Some(failure) => Err(self.or_gone(of_failure("asking the filter", failure)).await),
            None if gone => Err(self.gone()),
            None => Ok(()),
        }
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
        let found = spans(&keys, 0..keys.len());
        assert_eq!(found, [0..1, 1..2, 2..130, 130..258, 258..302, 302..303]);
        assert_eq!(spans(&keys, 2..132), [2..130, 130..132]);
        assert!(spans(&keys, 0..0).is_empty());
    }
}
