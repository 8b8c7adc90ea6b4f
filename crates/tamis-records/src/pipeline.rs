//! The parallel engine: decides which records are chosen, in the order of the input, for any number of threads.
//!
//! Every thread carries one chunk of records through all stages:
//!
//! ```text
//! read (one thread at a time, or by position) → hash, ask (freely) → decide (in chunk order) → print (in chunk order)
//! ```
//!
//! A key's hash determines its shard, and a shard sees the chunks in input order; a filter that several threads add to
//! keeps the order itself ([`Deciding`]). So every answer depends only on the input. Queues are bounded: at most one
//! decided chunk per thread waits for earlier chunks to be printed.

mod engine;
mod output;

pub use self::engine::run;

use crate::batch::Print;
use crate::input::InputError;
use crate::key::RecordRule;
use crate::progress::Progress;
use crate::reader::Reader;
use std::fs::File;
use std::io::{self, Write};
use std::time::Duration;

/// The settings of a run.
pub struct Job<'a, S, K, H, D, E> {
    /// The inputs.
    pub reader: Reader,
    /// Which part of a record is its key.
    pub rule: &'a RecordRule,
    /// Represents a key when it is decided; gets its time, too, if the rule asks for it.
    pub hash: H,
    /// Shard `hash.shard(shards.len())` decides a key.
    pub shards: &'a mut [S],
    /// What answers for a key before `decide` does, or instead of it.
    pub deciding: Deciding<'a, K, E>,
    /// Answers for the keys of a shard, in the order of the input. The answers start as those from
    /// [`Deciding::Asking`], or as ones that print nothing.
    pub decide: D,
    /// Which records go to the output.
    pub print: Print,
    /// Gets large writes, so it needs no buffer.
    pub output: &'a mut (dyn Write + Send),
    /// The file behind the output, if it is empty and has no other writer: then several threads write at once, each to
    /// its position.
    pub output_file: Option<&'a File>,
    /// How many threads carry chunks.
    pub threads: usize,
    /// Counts what has been done so far.
    pub progress: &'a Progress,
    /// Saves the shards during the run.
    pub checkpoint: Option<Checkpoint<'a, S, E>>,
}

/// Runs from time to time, between two chunks and while the input is silent: when `save` runs, everything decided so
/// far has been printed and flushed.
pub struct Checkpoint<'a, S, E> {
    /// The time between two checkpoints.
    pub every: Duration,
    /// Saves all shards.
    pub save: Save<'a, S, E>,
}

/// How answers are found.
pub enum Deciding<'a, K, E> {
    /// By the shards only.
    ByShards,
    /// For answers that depend only on the keys: every thread finds them independently, in any order, before the shards
    /// decide.
    Asking(&'a Ask<'a, K, E>),
    /// Without shards, by a function that keeps the order itself.
    InOrder(&'a DecideInOrder<'a, K, E>),
}

/// Answers for the keys of the chunk with this number, as if it came after all chunks with lower numbers and before all
/// others. It is called once for each number, by several threads at once. When the chunk's turn has come, it calls the
/// function that it is given; if that returns false, it decides nothing. Returns whether it decided.
pub type DecideInOrder<'a, K, E> =
    dyn Fn(u64, &[K], &mut [bool], &dyn Fn() -> bool) -> Result<bool, E> + Sync + 'a;

/// Answers for keys.
pub type Ask<'a, K, E> = dyn Fn(&[K], &mut [bool]) -> Result<(), Halt<E>> + Sync + 'a;

/// Saves shards.
pub type Save<'a, S, E> = Box<dyn FnMut(&mut [&mut S]) -> Result<(), E> + Send + 'a>;

/// Why deciding ends before the input does. Chunks in flight are then neither decided nor printed.
pub enum Halt<E> {
    /// The answers given are valid, and no more are wanted.
    Enough,
    /// No answer was given, so nothing of the chunk is printed.
    Failed(E),
    /// The answers given are valid, but there can't be more.
    FailedAfter(E),
}

impl<E> From<E> for Halt<E> {
    fn from(error: E) -> Self {
        Self::Failed(error)
    }
}

/// The end of a run, apart from its [`Progress`].
#[derive(Debug)]
pub struct Outcome<E> {
    /// Inputs that could not be read, or not to their end. All records read before the error are decided and printed.
    pub input_errors: Vec<InputError>,
    /// If this failed, the shards hold keys of records that were *not* printed, and must not be saved.
    pub output: io::Result<()>,
    /// Why a decision or a checkpoint failed; the shards may then also hold keys of records that were not printed.
    pub decided: Result<(), E>,
}

#[cfg(test)]
impl<E> Outcome<E> {
    /// Whether the reader of the output has closed it, as in `| head`; this isn't an error.
    pub fn output_closed(&self) -> bool {
        self.output
            .as_ref()
            .is_err_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
    }
}

/// Ends the program if its thread panics: such a thread never passes its turns on, so the others would wait forever.
///
/// ```
/// let _guard = tamis_records::pipeline::EndOnPanic;
/// ```
pub struct EndOnPanic;

impl Drop for EndOnPanic {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::abort();
        }
    }
}
