//! What every batch asks beside what it is about: whether this is still the
//! filter that was opened, and whether it has layers that we don't know. What
//! proves that nothing is missing is read together with what is asked.

use super::Engine;
use crate::Error;
use crate::link::{Link, Request};
use crate::record::{IDENTITY, PULSE_AT, STATE_AT, State, twin};
use redis::{Value, cmd};

/// Counts the pulse of the record up, if it is still ours.
const PULSE: &str = "if redis.call('GETRANGE', KEYS[1], 0, 23) ~= ARGV[1] then return 0 end \
                     return redis.call('BITFIELD', KEYS[1], 'INCRBY', 'u8', ARGV[2], 1)";

/// The requests of a watch, one key each: while a slot moves, its keys are not
/// all at one node.
#[derive(Clone)]
pub(super) struct Watch {
    /// The record begins like this while all is well.
    record: Vec<u8>,
    pub(super) requests: Vec<Request>,
}

/// What a watch has seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// The record is not there, or another filter's.
    pub(super) gone: bool,
    /// The hash of the layers is not there, or older than what we know.
    pub(super) layers_lost: bool,
    pub(super) newer_layer: bool,
}

impl Watch {
    /// Takes in the answer to one of the requests.
    pub(super) fn read(&self, request: usize, answer: &[Value], seen: &mut Seen) {
        match (request, answer) {
            (0, [Value::BulkString(record), ..]) => seen.gone |= *record != self.record,
            (0, _) => seen.gone = true,
            (2, [Value::Array(layers)]) => {
                seen.layers_lost |= matches!(layers[..], [Value::Nil, _]);
                seen.newer_layer |= matches!(layers[..], [_, Value::BulkString(_)]);
            }
            _ => {}
        }
    }
}

impl<L: Link> Engine<L> {
    /// If replicas must have what the batch adds, they must have what leads to
    /// it as well: the record, and the layers in the hash beside it.
    pub(super) fn watch(&self, replicated: bool) -> Watch {
        let identity = self.record.identity();
        let mut look = vec![cmd("GETRANGE").arg(&self.name).arg(0).arg(STATE_AT).take()];
        if replicated {
            let mut pulse = cmd("EVAL");
            pulse.arg(PULSE).arg(1).arg(&self.name);
            pulse.arg(&identity[..]).arg(PULSE_AT * 8);
            look.push(pulse);
        }
        let look = Request::new(self.home, &look);
        let touch = cmd("TOUCH").arg(twin(&self.name)).take();
        let mut requests = vec![
            if replicated { look.replicated() } else { look },
            // Nobody reads it, and servers evict what nobody reads.
            Request::new(self.home, &[touch]),
        ];
        if let Some(growth) = &self.growth {
            let announced = growth.announced();
            let mut layers = cmd("HMGET");
            layers.arg(self.state_key());
            layers.arg(format!("layer.{}", announced - 1));
            layers.arg(format!("layer.{announced}"));
            requests.push(Request::new(self.home, &[layers]));
        }
        let mut record = identity.to_vec();
        debug_assert_eq!(record.len(), IDENTITY);
        record.push(State::Ready.byte());
        Watch { record, requests }
    }

    /// The error, if a watch has seen what must not be.
    pub(super) async fn check_seen(&mut self, seen: Seen) -> Result<(), Error> {
        if seen.gone {
            return Err(self.clean_up_gone().await);
        }
        match seen.layers_lost {
            true => Err(self.why_missing(self.state_key()).await),
            false => Ok(()),
        }
    }
}
