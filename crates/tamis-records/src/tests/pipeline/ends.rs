//! Runs that end before their input does, and checkpoints.

use crate::batch::Print;
use crate::exact::ExactSet;
use crate::key::RecordRule;
use crate::pipeline::{Checkpoint, Deciding, Job, run};
use crate::progress::Progress;
use crate::reader::Reader;
use crate::tests::common::{Halt, Outcome, Trickle, inputs, insert};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tamis::Hash;

/// Accepts some bytes, then fails.
struct Full {
    room: usize,
    error: io::ErrorKind,
}

impl Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.room == 0 {
            return Err(self.error.into());
        }
        let count = bytes.len().min(self.room);
        self.room -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn run_into(
    output: &mut (dyn Write + Send),
    threads: usize,
    checkpoint: Option<Checkpoint<ExactSet, anyhow::Error>>,
) -> Outcome {
    let lines: String = (0..50_000).map(|i| format!("{}\n", i / 2)).collect();
    let mut shards: Vec<ExactSet> = (0..3).map(|_| ExactSet::default()).collect();
    let progress = Progress::default();
    let outcome = run(Job {
        reader: Reader::new(
            inputs(vec![Trickle::new(lines.as_bytes(), 1 << 20)]),
            &RecordRule::LINE,
            1000,
        ),
        rule: &RecordRule::LINE,
        hash: |key: &[u8], _| tamis::Hasher::default().hash(key),
        shards: &mut shards,
        deciding: Deciding::ByShards,
        decide: insert,
        print: Print::Chosen,
        output,
        output_file: None,
        threads,
        progress: &progress,
        checkpoint,
    });
    assert!(
        (outcome.output.is_ok() && outcome.decided.is_ok())
            || progress.records.load(Ordering::Relaxed) < 50_000,
        "stops early"
    );
    outcome
}

#[test]
fn a_closed_output_ends_the_run_quietly_and_a_full_one_with_its_error() {
    for threads in 1..=4 {
        let outcome = run_into(
            &mut Full {
                room: 5000,
                error: io::ErrorKind::BrokenPipe,
            },
            threads,
            None,
        );
        assert!(outcome.output_closed());
        let outcome = run_into(
            &mut Full {
                room: 5000,
                error: io::ErrorKind::StorageFull,
            },
            threads,
            None,
        );
        assert!(!outcome.output_closed());
        assert_eq!(
            outcome.output.unwrap_err().kind(),
            io::ErrorKind::StorageFull
        );
    }
}

#[test]
fn a_checkpoint_never_claims_what_is_not_printed() {
    use std::sync::{Arc, Mutex};
    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);
    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    for threads in 1..=4 {
        let mut output = Shared::default();
        let printed = output.clone();
        let checkpoints = AtomicU64::new(0);
        let save = |shards: &mut [&mut ExactSet]| {
            let keys: usize = shards.iter().map(|shard| shard.len()).sum();
            let lines = printed
                .0
                .lock()
                .unwrap()
                .iter()
                .filter(|&&byte| byte == b'\n')
                .count();
            assert_eq!(keys, lines);
            checkpoints.fetch_add(1, Ordering::Relaxed);
            Ok(())
        };
        let outcome = run_into(
            &mut output,
            threads,
            Some(Checkpoint {
                every: Duration::ZERO,
                save: Box::new(save),
            }),
        );
        assert!(outcome.output.is_ok());
        assert!(checkpoints.into_inner() > 100);
    }
}

/// One record per chunk; the fifth is decided as `halt` says.
fn halted(print: Print, threads: usize, halt: fn() -> Halt) -> (Vec<u8>, Outcome) {
    let lines: String = (0..1000).map(|i| format!("{i}\n")).collect();
    let mut printed = Vec::new();
    let outcome = run(Job {
        reader: Reader::new(
            inputs(vec![Trickle::new(lines.as_bytes(), 2)]),
            &RecordRule::LINE,
            2,
        ),
        rule: &RecordRule::LINE,
        hash: |key: &[u8], _| tamis::Hasher::default().hash(key),
        shards: &mut [0u32],
        deciding: Deciding::ByShards,
        decide: |decided: &mut u32, _: &[Hash], chosen: &mut [bool]| {
            *decided += 1;
            chosen.fill(true);
            match *decided {
                5 => Err(halt()),
                6.. => unreachable!("nothing is decided after a halt"),
                _ => Ok(()),
            }
        },
        print,
        output: &mut printed,
        output_file: None,
        threads,
        progress: &Progress::default(),
        checkpoint: None,
    });
    (printed, outcome)
}

#[test]
fn a_halt_ends_the_output_where_the_answers_end() {
    let failed = || Halt::Failed(anyhow::anyhow!("no more"));
    let failed_after = || Halt::FailedAfter(anyhow::anyhow!("no more"));
    for threads in 1..=4 {
        let (printed, outcome) = halted(Print::Chosen, threads, || Halt::Enough);
        assert_eq!(printed, b"0\n1\n2\n3\n4\n");
        assert!(outcome.decided.is_ok());
        let (printed, outcome) = halted(Print::Chosen, threads, failed_after);
        assert_eq!(printed, b"0\n1\n2\n3\n4\n");
        assert_eq!(outcome.decided.unwrap_err().to_string(), "no more");
        let (printed, outcome) = halted(Print::Chosen, threads, failed);
        assert_eq!(printed, b"0\n1\n2\n3\n");
        assert_eq!(outcome.decided.unwrap_err().to_string(), "no more");
        // Undecided records count neither as chosen nor as "others".
        let (printed, _) = halted(Print::Others, threads, failed);
        assert_eq!(printed, b"");
    }
}

#[test]
fn a_checkpoint_that_fails_ends_the_run() {
    let save = |_: &mut [&mut ExactSet]| Err(anyhow::anyhow!("nowhere to save"));
    let mut output = Vec::new();
    let outcome = run_into(
        &mut output,
        2,
        Some(Checkpoint {
            every: Duration::ZERO,
            save: Box::new(save),
        }),
    );
    assert_eq!(outcome.decided.unwrap_err().to_string(), "nowhere to save");
    assert!(output.len() < 5000);
}

#[test]
fn a_stop_is_heeded() {
    let progress = Progress::default();
    progress.stop.store(true, Ordering::Relaxed);
    let mut printed = Vec::new();
    run(Job {
        reader: Reader::new(
            inputs(vec![Trickle::new(b"a\nb\n", 2)]),
            &RecordRule::LINE,
            2,
        ),
        rule: &RecordRule::LINE,
        hash: |key: &[u8], _| tamis::Hasher::default().hash(key),
        shards: &mut [ExactSet::default()],
        deciding: Deciding::ByShards,
        decide: insert,
        print: Print::Chosen,
        output: &mut printed,
        output_file: None,
        threads: 2,
        progress: &progress,
        checkpoint: None,
    });
    assert!(printed.is_empty());
}
