//! Threads that ask, or add to a filter, at the same time: answers in the order of the input.

use crate::batch::Print;
use crate::key::{Part, RecordRule};
use crate::pipeline::{self, Deciding, Job, run};
use crate::progress::Progress;
use crate::reader::Reader;
use crate::records::Framing;
use crate::tests::common::{Halt, Outcome, Random, Trickle, inputs};
use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tamis::Hash;

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
