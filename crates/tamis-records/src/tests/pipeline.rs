use super::common::{Halt, Outcome, Random, Run, Trickle, dedup, inputs, insert, oracle};
use crate::batch::Print;
use crate::exact::ExactSet;
use crate::key::{Part, RecordRule};
use crate::pipeline::{self, Checkpoint, Deciding, Job, run};
use crate::progress::Progress;
use crate::reader::Reader;
use crate::records::Framing;
use std::collections::HashSet;
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tamis::Hash;

const CHUNKS: [usize; 7] = [1, 2, 3, 7, 64, 1000, 1 << 18];

fn delimited(delimiter: u8) -> RecordRule {
    RecordRule {
        part: Part::Whole(Framing::Delimited(delimiter)),
        ..RecordRule::LINE
    }
}

fn assert_as_oracle(files: &[&[u8]], delimiter: u8, chunks: &[usize], step: usize) {
    for print in [Print::Chosen, Print::Others, Print::Nothing] {
        let (printed, records, new) = oracle(files, delimiter, print);
        for &chunk in chunks {
            for threads in 1..=4 {
                let sources = files.iter().map(|file| Trickle::new(file, step)).collect();
                let got = dedup(sources, &delimited(delimiter), print, threads, chunk);
                let case =
                    format!("{print:?}, {threads} threads, chunks of {chunk}, steps of {step}");
                assert!(
                    got.printed == printed,
                    "{case}: other bytes than the oracle"
                );
                assert_eq!(
                    (got.records, got.new, got.without_key),
                    (records, new, 0),
                    "{case}"
                );
                assert!(
                    got.outcome.output.is_ok() && got.outcome.input_errors.is_empty(),
                    "{case}"
                );
            }
        }
    }
}

#[test]
fn awkward_inputs() {
    let cases: [&[u8]; 18] = [
        b"",
        b"\n",
        b"\n\n\n\n",
        b"a",
        b"a\nb\na",
        b"a\nb\na\n",
        b"a\r\na\nb\r\r\nb\r\n\r\n\n\r",
        b"\r",
        b"a\0b\nc\0\na\0b\n\0\n\0",
        b"\xFF\xFE\n\xC3\n\xFF\xFE\n\xC3\x28",
        b"a\nA\na \n a\n",
        b"\xEF\xBB\xBFa\na\n",
        b"\xEF\xBB\xBF\xEF\xBB\xBFa\na\n\xEF\xBB\xBFa\n",
        b"\xEF\xBB\xBF",
        b"\xEF\xBB",
        b"\xEF\xBBa\n\xEF\n",
        b"x\n\nx\n\ny",
        "é\ne\u{301}\né\n".as_bytes(),
    ];
    for case in cases {
        for step in [1, 3, 1 << 20] {
            assert_as_oracle(&[case], b'\n', &CHUNKS, step);
        }
        assert_as_oracle(&[case], 0, &CHUNKS, 2);
        assert_as_oracle(&[case], b'a', &CHUNKS, 2);
    }
}

#[test]
fn several_files_are_one_stream_of_records() {
    assert_as_oracle(
        &[b"a\nb", b"", b"b\nc", b"\n", b"a\n\n"],
        b'\n',
        &CHUNKS,
        1 << 20,
    );
}

#[test]
fn random_lines() {
    let mut random = Random(1);
    for round in 0..60 {
        let files: Vec<_> = (0..1 + round % 3)
            .map(|_| random.bytes(b"ab\n\r\0\xFF", 400))
            .collect();
        let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
        assert_as_oracle(
            &files,
            [b'\n', 0][round % 2],
            &[1, 5, 100, 1 << 16],
            1 + random.below(50),
        );
    }
}

#[test]
fn many_one_byte_lines() {
    let mut random = Random(2);
    let bytes: Vec<u8> = (0..200_000)
        .flat_map(|_| [random.next() as u8, b'\n'])
        .collect();
    assert_as_oracle(&[&bytes], b'\n', &[4096, 1 << 18], 1 << 20);
}

#[test]
fn lines_far_longer_than_a_chunk() {
    let long = vec![b'x'; 10_000_000];
    let mut other = long.clone();
    other[9_999_999] = b'y';
    let bytes = [
        &long[..],
        b"\nshort\n",
        &other,
        b"\r\n",
        &long,
        b"\n\nshort\n",
        &other,
    ]
    .concat();
    assert_as_oracle(&[&bytes], b'\n', &[1000, 1 << 18], 1 << 16);
}

#[test]
fn many_lines_with_each_number_of_threads() {
    let mut random = Random(3);
    let lines = |random: &mut Random| {
        (0..60_000)
            .map(|_| format!("line {}\n", random.below(40_000)))
            .collect::<String>()
    };
    let (first, second) = (lines(&mut random), lines(&mut random));
    assert_as_oracle(
        &[first.as_bytes(), second.as_bytes()],
        b'\n',
        &[300, 10_000],
        1 << 20,
    );
}

#[test]
fn an_input_that_fails_is_named_and_what_was_read_counts() {
    for threads in 1..=4 {
        for chunk in CHUNKS {
            let mut broken = Trickle::new(b"a\nb\na\nhalf a rec", 2);
            broken.fails = true;
            let sources = vec![Trickle::new(b"a\nx", 5), broken, Trickle::new(b"b\nz\n", 5)];
            let Run {
                printed,
                records,
                outcome,
                ..
            } = dedup(sources, &RecordRule::LINE, Print::Chosen, threads, chunk);
            assert_eq!(printed, b"a\nx\nb\nz\n", "chunks of {chunk}");
            assert_eq!(records, 7);
            assert!(outcome.output.is_ok());
            let errors: Vec<_> = outcome
                .input_errors
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(errors, ["input 2: the disk is on fire"]);
        }
    }
}

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

#[test]
#[cfg(unix)]
fn a_pipe_is_served_as_it_flows_and_stops_while_it_is_silent() {
    use crate::input::{Input, Packing};
    use std::fs::File;
    use std::os::fd::OwnedFd;
    use std::sync::{Arc, mpsc};

    struct Sender(mpsc::Sender<Vec<u8>>);
    impl Write for Sender {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if !bytes.is_empty() {
                self.0.send(bytes.to_vec()).unwrap();
            }
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let (from, mut to) = io::pipe().unwrap();
    let (printed, seen) = mpsc::channel();
    let progress = Arc::new(Progress::default());
    let shared = Arc::clone(&progress);
    let engine = std::thread::spawn(move || {
        let opened = Arc::clone(&shared);
        let open = move || {
            Input::from_file(
                "pipe",
                File::from(OwnedFd::from(from)),
                Packing::Recognised,
                &opened,
            )
        };
        run(Job {
            reader: Reader::new(
                Box::new(std::iter::once_with(open)),
                &RecordRule::LINE,
                1 << 18,
            ),
            rule: &RecordRule::LINE,
            hash: |key: &[u8], _| tamis::Hasher::default().hash(key),
            shards: &mut [ExactSet::default(), ExactSet::default()],
            deciding: Deciding::ByShards,
            decide: insert,
            print: Print::Chosen,
            output: &mut Sender(printed),
            output_file: None,
            threads: 3,
            progress: &shared,
            checkpoint: None,
        })
    });
    for (line, answer) in [
        ("a\n", "a\n"),
        ("a\nb\nhal", "b\n"),
        ("f\n", "half\n"),
        ("c\nrest", "c\n"),
    ] {
        to.write_all(line.as_bytes()).unwrap();
        assert_eq!(
            seen.recv_timeout(Duration::from_secs(60)).unwrap(),
            answer.as_bytes()
        );
    }
    progress.stop.store(true, Ordering::Relaxed);
    let outcome = engine.join().unwrap();
    assert!(outcome.input_errors.is_empty() && outcome.output.is_ok());
    assert!(seen.recv().is_err(), "half a record is none");
    drop(to);
}

/// A thread's lookup waits for another's, so both must run at once.
#[test]
fn every_thread_asks_at_once() {
    let lines: String = (0..1000).map(|i| format!("{i}\n")).collect();
    let (asking, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let start = Instant::now();
    let ask = |_: &[Hash], chosen: &mut [bool]| {
        most.fetch_max(
            asking.fetch_add(1, Ordering::Relaxed) + 1,
            Ordering::Relaxed,
        );
        while most.load(Ordering::Relaxed) < 2 && start.elapsed() < Duration::from_secs(60) {
            std::thread::yield_now();
        }
        asking.fetch_sub(1, Ordering::Relaxed);
        chosen.fill(true);
        Ok(())
    };
    let (printed, outcome) = asked(&lines, 2, &ask, |_, _, _| Ok(()));
    assert_eq!(most.into_inner(), 2);
    assert_eq!(printed, lines.as_bytes());
    assert!(outcome.decided.is_ok());
}

/// Chunks of one or a few records, with answers in any order.
fn asked(
    lines: &str,
    threads: usize,
    ask: &pipeline::Ask<Hash, anyhow::Error>,
    decide: impl Fn(&mut u64, &[Hash], &mut [bool]) -> Result<(), Halt> + Sync,
) -> (Vec<u8>, Outcome) {
    let mut printed = Vec::new();
    let outcome = run(Job {
        reader: Reader::new(
            inputs(vec![Trickle::new(lines.as_bytes(), 5)]),
            &RecordRule::LINE,
            5,
        ),
        rule: &RecordRule::LINE,
        hash: |key: &[u8], _| tamis::Hasher::default().hash(key),
        shards: &mut [0],
        deciding: Deciding::Asking(ask),
        decide,
        print: Print::Chosen,
        output: &mut printed,
        output_file: None,
        threads,
        progress: &Progress::default(),
        checkpoint: None,
    });
    (printed, outcome)
}

/// Answers, a limit on them, and a failure come in the order of the input, whichever thread asks first.
#[test]
fn answers_of_all_threads_keep_the_order_of_the_input() {
    let lines: String = (0..500).map(|i| format!("{i}\n")).collect();
    let hash = |line: usize| tamis::Hasher::default().hash(line.to_string().as_bytes());
    let even: HashSet<Hash> = (0..500).step_by(2).map(hash).collect();
    let fails = hash(301);
    for threads in 1..=4 {
        let ask = |keys: &[Hash], chosen: &mut [bool]| {
            // Later chunks finish sooner.
            let key = keys.first().map_or(0, |key| key.as_u128() as u64);
            std::thread::sleep(Duration::from_micros(key % 300));
            for (key, chosen) in keys.iter().zip(chosen) {
                *chosen = even.contains(key);
            }
            match keys.contains(&fails) {
                true => Err(Halt::Failed(anyhow::anyhow!("no answer"))),
                false => Ok(()),
            }
        };
        let limited = |left: &mut u64, _: &[Hash], chosen: &mut [bool]| {
            for chosen in chosen {
                *chosen &= *left < 100;
                *left += u64::from(*chosen);
            }
            match *left {
                100 => Err(Halt::Enough),
                _ => Ok(()),
            }
        };
        let expected: String = (0..200).step_by(2).map(|i| format!("{i}\n")).collect();
        let (printed, outcome) = asked(&lines, threads, &ask, limited);
        assert_eq!(String::from_utf8(printed).unwrap(), expected);
        assert!(outcome.decided.is_ok());
        let (printed, outcome) = asked(&lines, threads, &ask, |_, _, _| Ok(()));
        let printed = String::from_utf8(printed).unwrap();
        let all: String = (0..301).step_by(2).map(|i| format!("{i}\n")).collect();
        assert!(all.starts_with(&printed) && printed.lines().count() > 145);
        assert_eq!(outcome.decided.unwrap_err().to_string(), "no answer");
    }
}

/// Files are read by position, in blocks of any size, even if records are longer.
#[test]
#[cfg(unix)]
fn files_in_blocks_are_what_they_are_in_one_piece() {
    use crate::input::{Input, Packing};
    let folder = tempfile::tempdir().unwrap();
    let mut random = Random(7);
    for round in 0..40 {
        let files: Vec<Vec<u8>> = (0..1 + round % 3)
            .map(|_| match random.below(3) {
                0 => random.bytes(b"ab\n", 3000),
                1 => random.bytes(b"abcdefghijklmnopqrstuvwxyz\r\n", 3000),
                _ => (0..random.below(300))
                    .flat_map(|_| format!("{}\n", random.below(100)).into_bytes())
                    .collect(),
            })
            .collect();
        let paths: Vec<_> = (0..files.len())
            .map(|at| folder.path().join(at.to_string()))
            .collect();
        for (path, bytes) in paths.iter().zip(&files) {
            std::fs::write(path, bytes).unwrap();
        }
        let files: Vec<&[u8]> = files.iter().map(Vec::as_slice).collect();
        let (printed, records, new) = oracle(&files, b'\n', Print::Chosen);
        for chunk in [1, 2, 5, 16, 100, 700] {
            for threads in [1, 3, 8] {
                let progress = Progress::default();
                let paths = paths.clone();
                let open = |path: std::path::PathBuf| {
                    Input::open(&path, Packing::Recognised, &<_>::default())
                };
                let inputs = Box::new(paths.into_iter().map(open));
                let mut shards: Vec<ExactSet> = (0..5).map(|_| ExactSet::default()).collect();
                let mut output = Vec::new();
                let outcome = run(Job {
                    reader: Reader::new(inputs, &RecordRule::LINE, chunk)
                        .joining_files(round % 2 == 0),
                    rule: &RecordRule::LINE,
                    hash: |key: &[u8], _| tamis::Hasher::default().hash(key),
                    shards: &mut shards,
                    deciding: Deciding::ByShards,
                    decide: insert,
                    print: Print::Chosen,
                    output: &mut output,
                    output_file: None,
                    threads,
                    progress: &progress,
                    checkpoint: None,
                });
                assert!(outcome.output.is_ok() && outcome.input_errors.is_empty());
                assert!(output == printed, "{threads} threads, blocks of {chunk}");
                let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
                let counted = (count(&progress.records), count(&progress.chosen));
                assert_eq!(counted, (records, new));
            }
        }
    }
}

/// The output for lines that several threads add to a filter.
fn added_in_order(
    filter: &mut tamis::AnyFilter,
    lines: &str,
    rule: &RecordRule,
    threads: usize,
    chunk: usize,
) -> (Vec<u8>, Outcome) {
    let adding = filter.in_order(threads, |_| ());
    let decide = |number, hashes: &[Hash], new: &mut [bool], wanted: &dyn Fn() -> bool| {
        Ok(adding.insert_hashes(number, hashes, new, wanted)?)
    };
    let mut printed = Vec::new();
    let source = vec![Trickle::new(lines.as_bytes(), 1 << 20)];
    let outcome = run(Job {
        reader: Reader::new(inputs(source), rule, chunk),
        rule,
        hash: |key: &[u8], _| tamis::Hasher::default().hash(key),
        shards: &mut [] as &mut [()],
        deciding: Deciding::InOrder(&decide),
        decide: |(): &mut (), _: &[Hash], _: &mut [bool]| unreachable!("there are no shards"),
        print: Print::Chosen,
        output: &mut printed,
        output_file: None,
        threads,
        progress: &Progress::default(),
        checkpoint: None,
    });
    (printed, outcome)
}

/// A growing filter and its layers, with any number of threads: output and filter equal those of one thread.
#[test]
fn a_filter_that_many_add_to_grows_as_for_one() {
    let mut random = Random(11);
    let lines: String = (0..60_000)
        .map(|_| format!("{}\n", random.below(50_000)))
        .collect();
    let dedup = |threads, chunk| {
        let filter = tamis::Growing::new(1_000, 0.01).unwrap();
        let mut filter = tamis::AnyFilter::from(filter);
        let (printed, outcome) =
            added_in_order(&mut filter, &lines, &RecordRule::LINE, threads, chunk);
        assert!(outcome.output.is_ok() && outcome.decided.is_ok());
        (printed, filter.to_bytes())
    };
    let one = dedup(1, 1 << 20);
    assert!(one.0.len() > 200_000);
    for (threads, chunk) in [(2, 5_000), (3, 100), (4, 20_000), (16, 2_500), (5, 30_000)] {
        assert!(
            dedup(threads, chunk) == one,
            "{threads} threads, chunks of {chunk}"
        );
    }
}

/// Several threads write to a file, each to its position; after a failure, nothing remains after the gap.
#[test]
#[cfg(unix)]
fn a_file_that_many_write_to_is_what_one_writes() {
    let mut random = Random(13);
    let lines: String = (0..30_000)
        .map(|_| format!("{}\n", random.below(20_000)))
        .collect();
    let (expected, ..) = oracle(&[lines.as_bytes()], b'\n', Print::Chosen);
    let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
    for threads in [1, 2, 6] {
        let file = std::fs::File::create(&path).unwrap();
        let read_only = std::fs::File::open(&path).unwrap();
        for (file, well) in [(&file, true), (&read_only, false)] {
            let source = vec![Trickle::new(lines.as_bytes(), 1 << 20)];
            let outcome = run(Job {
                reader: Reader::new(inputs(source), &RecordRule::LINE, 1000),
                rule: &RecordRule::LINE,
                hash: |key: &[u8], _| tamis::Hasher::default().hash(key),
                shards: &mut [ExactSet::default()],
                deciding: Deciding::ByShards,
                decide: insert,
                print: Print::Chosen,
                output: &mut io::sink(),
                output_file: Some(file),
                threads,
                progress: &Progress::default(),
                checkpoint: None,
            });
            assert_eq!(outcome.output.is_ok(), well);
            assert!(std::fs::read(&path).unwrap() == expected);
        }
    }
}

/// An invalid record ends the run at its position, however records are decided.
#[test]
fn a_refused_record_ends_a_run_in_order() {
    let mut lines: String = (0..20_000).map(|i| format!("{i:08x}\n")).collect();
    lines.push_str("not hex\n");
    lines.extend((0..20_000).map(|i| format!("{i:08x}\n")));
    let rule = RecordRule::of(Part::Whole(Framing::LINES), true, tamis::KeyRule::EXACT);
    for threads in [1, 2, 7] {
        let filter = tamis::Growing::new(30_000, 0.0001).unwrap();
        let mut filter = tamis::AnyFilter::from(filter);
        let (printed, outcome) = added_in_order(&mut filter, &lines, &rule, threads, 9_000);
        let error = outcome.decided.unwrap_err().to_string();
        assert!(error.contains("input 1:20001"), "{error}");
        // Nothing of its chunk is printed.
        assert!(lines.as_bytes().starts_with(&printed));
        assert!((171_000..=180_000).contains(&printed.len()));
    }
}
