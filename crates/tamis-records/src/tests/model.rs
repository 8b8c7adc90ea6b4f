//! Chunks on their way through the pipeline, in every order that threads can take: the real turns,
//! compiled with locks that the model watches, and around them the steps of `Engine` in
//! `pipeline.rs`.

#[path = "../turn.rs"]
#[allow(clippy::duplicate_mod, reason = "with other locks")]
mod turn;

mod sync {
    pub(crate) use loom::sync::{Condvar, Mutex, MutexGuard};
}

use loom::sync::{Arc, Mutex};
use loom::thread;
use turn::{Access, Turn};

const CHUNKS: u64 = 3;

/// `Engine`: each shard and the output note the chunks that they have seen.
struct Engine {
    source: Mutex<u64>,
    shards: [Turn<Vec<u64>>; 2],
    output: Turn<Vec<u64>>,
}

impl Engine {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            source: Mutex::new(0),
            shards: [Turn::new(Vec::new()), Turn::new(Vec::new())],
            output: Turn::new(Vec::new()),
        })
    }

    /// `carry_chunks`, with a checkpoint before the chunk of this number.
    fn carry_chunks(&self, checkpoint: Option<u64>) {
        while let Some(number) = self.read(checkpoint) {
            for shard in &self.shards {
                let mut shard = shard.wait(number);
                shard.push(number);
                shard.pass();
            }
            let mut output = self.output.wait(number);
            output.push(number);
            output.pass();
        }
    }

    fn read(&self, checkpoint: Option<u64>) -> Option<u64> {
        let mut next = self.source.lock().unwrap();
        if checkpoint == Some(*next) {
            let output = self.output.wait(*next);
            let shards = self.shards.iter().map(|shard| shard.wait(*next));
            save(&output, &shards.collect::<Vec<_>>());
        }
        if *next == CHUNKS {
            return None;
        }
        *next += 1;
        Some(*next - 1)
    }

    fn save_if_settled(&self) {
        let output = self.output.as_it_is();
        let printed = output.number();
        let shards: Vec<_> = self.shards.iter().map(Turn::as_it_is).collect();
        if shards.iter().all(|shard| shard.number() == printed) {
            save(&output, &shards);
        }
    }

    fn assert_in_order(this: Arc<Self>) {
        let Ok(engine) = Arc::try_unwrap(this) else {
            unreachable!("all threads have ended");
        };
        let chunks: Vec<u64> = (0..CHUNKS).collect();
        for seen in engine.shards.into_iter().chain([engine.output]) {
            assert_eq!(seen.into_inner(), chunks);
        }
    }
}

/// A checkpoint saves the shards: what they have decided must be printed.
fn save(printed: &Access<Vec<u64>>, shards: &[Access<Vec<u64>>]) {
    for decided in shards {
        assert_eq!(**decided, **printed, "decided, and not printed");
    }
}

/// With at most three switches between threads that have not finished.
fn check(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

#[test]
fn chunks_pass_in_order_whoever_carries_them() {
    check(|| {
        let engine = Engine::new();
        let others = [(); 2].map(|()| {
            let engine = engine.clone();
            thread::spawn(move || engine.carry_chunks(None))
        });
        engine.carry_chunks(None);
        for other in others {
            other.join().unwrap();
        }
        Engine::assert_in_order(engine);
    });
}

#[test]
fn a_checkpoint_between_chunks_finds_all_of_them_printed() {
    check(|| {
        let engine = Engine::new();
        let other = thread::spawn({
            let engine = engine.clone();
            move || engine.carry_chunks(Some(1))
        });
        engine.carry_chunks(Some(1));
        other.join().unwrap();
        Engine::assert_in_order(engine);
    });
}

#[test]
fn a_checkpoint_in_silence_waits_for_chunks_on_their_way() {
    check(|| {
        let engine = Engine::new();
        let saver = thread::spawn({
            let engine = engine.clone();
            move || engine.save_if_settled()
        });
        engine.carry_chunks(None);
        saver.join().unwrap();
        Engine::assert_in_order(engine);
    });
}
