//! Files and pipes: read in blocks or as they flow, written by position.

use crate::batch::Print;
use crate::exact::ExactSet;
use crate::key::RecordRule;
use crate::pipeline::{Deciding, Job, run};
use crate::progress::Progress;
use crate::reader::Reader;
use crate::tests::common::{Random, Trickle, inputs, insert, oracle};
use std::io::{self, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

#[test]
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

/// Files are read by position, in blocks of any size, even if records are longer.
#[test]
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

/// Several threads write to a file, each to its position; after a failure, nothing remains after the gap.
#[test]
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
