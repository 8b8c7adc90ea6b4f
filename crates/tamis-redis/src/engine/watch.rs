//! What every batch checks besides its keys: whether this is still the filter
//! that was opened, whether the server has older data, and whether there are
//! layers that we don't know. The check is read together with the answers that
//! depend on it.

use super::Engine;
use super::reading::{number, seconds_now};
use crate::Error;
use crate::link::Link;
use crate::record::{IDENTITY, STATE_AT, Stage, twin};
use crate::request::Request;
use redis::Value;

/// The requests of a watch, one key each: while a slot moves, its keys are
/// split between two nodes.
#[derive(Clone)]
pub(super) struct Watch {
    /// The expected beginning of the record.
    record: Vec<u8>,
    /// Whether what it reads is also on replicas.
    firm: bool,
    layers: bool,
    pub(super) requests: Vec<Request>,
}

/// The results of a watch.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// The record is missing, or is another filter's.
    pub(super) gone: bool,
    /// The hash of the layers is missing, or older than what we know.
    pub(super) layers_lost: bool,
    pub(super) newer_layer: bool,
    /// The lowest and the highest mark.
    pub(super) marks: Option<(u64, u64)>,
    pub(super) firm: bool,
}

impl Seen {
    fn mark(&mut self, mark: u64) {
        let (lowest, highest) = self.marks.unwrap_or((mark, mark));
        self.marks = Some((lowest.min(mark), highest.max(mark)));
    }
}

impl Watch {
    /// Reads the answer to one of the requests.
    pub(super) fn read(&self, request: usize, answer: &[Value], seen: &mut Seen) {
        seen.firm = self.firm;
        match (request, answer) {
            (0, [Value::BulkString(record), ..]) => seen.gone |= *record != self.record,
            (0, _) => seen.gone = true,
            (2, [Value::Array(read), ..]) => {
                if let [mark, rest @ ..] = &read[..] {
                    self.read_layers(rest, seen);
                    // If we incremented the mark, the last answer is the new
                    // value.
                    let mark = answer.get(1).unwrap_or(mark);
                    seen.mark(number(mark).unwrap_or(0));
                }
            }
            _ => {}
        }
    }

    fn read_layers(&self, layers: &[Value], seen: &mut Seen) {
        if self.layers {
            seen.layers_lost |= matches!(layers, [Value::Nil, _]);
            seen.newer_layer |= matches!(layers, [_, Value::BulkString(_)]);
        }
    }
}

impl<L: Link> Engine<L> {
    /// The watch of a batch that adds this many keys. If replicas must have the
    /// keys, they must also have the record and the hash next to it;
    /// incrementing the mark is a write that WAIT can wait for.
    pub(super) fn watch(&self, replicated: bool, adding: usize) -> Watch {
        let identity = self.record.identity();
        let look = command!("GETRANGE", &self.name, 0, STATE_AT);
        let touch = command!("TOUCH", twin(&self.name));
        let mut requests = vec![
            Request::new(self.home, &[look]),
            // The twin is never read, and servers evict keys that aren't read.
            Request::new(self.home, &[touch]),
        ];
        let state = self.state_key();
        let mut read = command!("HMGET", &state, "mark");
        if let Some(growth) = &self.growth {
            let announced = growth.announced();
            read.arg(format!("layer.{}", announced - 1));
            read.arg(format!("layer.{announced}"));
        }
        let mut commands = vec![read];
        if replicated || adding > 0 {
            let count = command!("HINCRBY", &state, "mark", adding.max(1));
            commands.push(count);
        }
        requests.push(Request {
            replicated,
            ..Request::new(self.home, &commands)
        });
        if adding > 0 && self.memory.stamp_is_due() {
            let stamp = command!("HSET", &state, "written", seconds_now());
            requests.push(Request::new(self.home, &[stamp]));
        }
        let mut record = identity.to_vec();
        debug_assert_eq!(record.len(), IDENTITY);
        record.push(Stage::Ready.byte());
        Watch {
            record,
            firm: replicated,
            layers: self.growth.is_some(),
            requests,
        }
    }

    /// The error, if a watch found a problem.
    pub(super) async fn check_seen(&mut self, seen: Seen) -> Result<(), Error> {
        if seen.gone {
            return Err(self.clean_up_gone().await);
        }
        if seen.layers_lost {
            Err(self.why_missing(self.state_key()).await)
        } else {
            Ok(())
        }
    }
}
