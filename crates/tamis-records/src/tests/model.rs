//! Chunks in the pipeline, in every order that threads can take: the real turns, flow and output, compiled with locks
//! that the model controls, and the steps of `Engine` in `pipeline/engine.rs`.

#[path = "../flow.rs"]
#[allow(clippy::duplicate_mod, reason = "with other locks")]
mod flow;
#[allow(unreachable_pub)] // tamis-corpus uses it
#[path = "../turn.rs"]
#[allow(clippy::duplicate_mod, reason = "with other locks")]
mod turn;
#[path = "../written.rs"]
#[allow(clippy::duplicate_mod, reason = "with other locks")]
mod written;

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}

use flow::Flow;
use loom::sync::{Arc, Mutex};
use loom::thread;
use turn::Turn;
use written::InOrder;

const CHUNKS: u64 = 3;

/// `Engine`: each shard and the output record the chunks they have seen.
struct Engine {
    source: Mutex<u64>,
    flow: Flow,
    shards: [Turn<Vec<u64>>; 2],
    order: InOrder<u64>,
    output: Mutex<Vec<u64>>,
}

impl Engine {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            source: Mutex::new(0),
            flow: Flow::default(),
            shards: [Turn::new(Vec::new()), Turn::new(Vec::new())],
            order: InOrder::new(1, true),
            output: Mutex::new(Vec::new()),
        })
    }

    /// `carry_chunks`, with a checkpoint before this chunk.
    fn carry_chunks(&self, checkpoint: Option<u64>) {
        while let Some(number) = self.read(checkpoint) {
            for shard in &self.shards {
                let mut shard = shard.wait(number);
                shard.push(number);
                shard.pass();
            }
            self.order.write(number, number, 10, |number, at| {
                assert_eq!(at, number * 10);
                self.output.lock().unwrap().push(number);
                self.flow.leave();
            });
        }
    }

    fn read(&self, checkpoint: Option<u64>) -> Option<u64> {
        let mut next = self.source.lock().unwrap();
        if checkpoint == Some(*next) {
            let ebb = self.flow.wait_for_ebb();
            self.save();
            drop(ebb);
        }
        if *next == CHUNKS {
            return None;
        }
        self.flow.enter();
        *next += 1;
        Some(*next - 1)
    }

    fn save_in_silence(&self) {
        if let Some(_ebb) = self.flow.ebb() {
            self.save();
        }
    }

    /// When a checkpoint saves the shards, everything they have decided must be
    /// printed.
    fn save(&self) {
        let printed = self.output.lock().unwrap();
        for shard in &self.shards {
            assert_eq!(**shard.as_it_is(), **printed, "decided, and not printed");
        }
    }

    fn assert_in_order(&self) {
        let chunks: Vec<u64> = (0..CHUNKS).collect();
        for shard in &self.shards {
            assert_eq!(**shard.as_it_is(), chunks);
        }
        assert_eq!(*self.output.lock().unwrap(), chunks);
    }
}

/// Limits the switches between threads that have not finished.
fn check(switches: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(switches);
    builder.check(model);
}

#[test]
fn chunks_pass_in_order_whoever_carries_them() {
    check(2, || {
        let engine = Engine::new();
        let others = [(); 2].map(|()| {
            let engine = engine.clone();
            thread::spawn(move || engine.carry_chunks(None))
        });
        engine.carry_chunks(None);
        for other in others {
            other.join().unwrap();
        }
        engine.assert_in_order();
    });
}

#[test]
fn a_checkpoint_between_chunks_finds_all_of_them_printed() {
    check(3, || {
        let engine = Engine::new();
        let other = thread::spawn({
            let engine = engine.clone();
            move || engine.carry_chunks(Some(1))
        });
        engine.carry_chunks(Some(1));
        other.join().unwrap();
        engine.assert_in_order();
    });
}

#[test]
fn a_checkpoint_in_silence_waits_for_chunks_on_their_way() {
    check(3, || {
        let engine = Engine::new();
        let saver = thread::spawn({
            let engine = engine.clone();
            move || engine.save_in_silence()
        });
        engine.carry_chunks(None);
        saver.join().unwrap();
        engine.assert_in_order();
    });
}
