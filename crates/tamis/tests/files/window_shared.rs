//! Windows that threads and processes add to at once, unions, pauses, and stamps that wrap around.

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::Duration;
use tamis::{
    AnyFilter, Error, Hash, Hasher, Moment, Open, Window,
    window::{Renewal, Span, WindowOptions},
};

const FILE: &str = "TAMIS_TEST_FILE";
const NAME: &str = "TAMIS_TEST_NAME";
const SPAN: i64 = 80_000;
const STEP: i64 = SPAN / 8;

fn window(keys: u64, rate: f64) -> Window {
    Window::within(Duration::from_micros(SPAN as u64), keys, rate).unwrap()
}

fn at(micros: i64) -> Moment {
    Moment::from_micros(micros)
}

/// Threads at different moments of one stream, up to a generation apart, across many generations:
/// every thread finds every key that is in the window.
#[test]
fn threads_never_miss_what_is_in_the_window() {
    let (generations, step) = match () {
        () if cfg!(miri) => (3, 20),
        () if cfg!(debug_assertions) => (60, 1),
        () => (400, 1),
    };
    let seen = window(40_000 / step as u64, 0.001);
    let start = Barrier::new(4);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (seen, start) = (&seen, &start);
            scope.spawn(move || {
                start.wait();
                // In step by generations, so that no thread is more than one behind.
                let mut mine: Vec<(u64, i64)> = Vec::new();
                for generation in 0..generations {
                    start.wait();
                    for i in (0..200).step_by(step) {
                        let key = thread << 48 | (generation as u64) << 16 | i;
                        let moment = generation * STEP + i as i64 * 40 + thread as i64;
                        // A key that seems present is only remembered as long as the key it is mistaken
                        // for.
                        if seen.insert(Hash::from(key), at(moment)) {
                            mine.push((key, moment));
                        }
                        if i % 8 == 0 {
                            let now = moment;
                            mine.retain(|(_, added)| now - added <= SPAN);
                            for (key, added) in mine.iter().step_by(7) {
                                let hash = Hash::from(*key);
                                assert!(
                                    seen.contains(hash, at(now)),
                                    "{key:x} of {added} at {now}"
                                );
                            }
                        }
                    }
                }
            });
        }
    });
}

#[test]
fn of_threads_that_add_the_same_keys_one_is_told() {
    let keys = if cfg!(miri) { 50 } else { 20_000u64 };
    let seen = window(keys, 1e-6);
    let start = Barrier::new(4);
    let told: Vec<Vec<bool>> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let hashes: Vec<Hash> = (0..keys).map(Hash::from).collect();
                    let times: Vec<Moment> = (0..keys as i64).map(|i| at(3 * i)).collect();
                    let mut new = vec![false; hashes.len()];
                    start.wait();
                    seen.insert_many(&hashes, &times[..], &mut new);
                    new
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let times_told = |i: &usize| told.iter().filter(|new| new[*i]).count();
    let told_to = |several: fn(usize) -> bool| {
        let keys = (0..keys as usize).filter(|i| several(times_told(i)));
        keys.count()
    };
    let (nobody, several) = (told_to(|times| times == 0), told_to(|times| times > 1));
    assert!(nobody <= 2, "{nobody} keys were new to nobody");
    assert_eq!(several, 0, "keys that were new to several threads");
    assert!((0..keys).all(|i| seen.contains(Hash::from(i), at(3 * i as i64))));
}

/// Not really a test: the body of the child processes.
#[test]
fn child() {
    let Ok(path) = std::env::var(FILE) else {
        return;
    };
    let name = std::env::var(NAME).unwrap();
    let seen = Window::share(PathBuf::from(path)).unwrap();
    let mut out = std::io::stdout().lock();
    for i in 0i64.. {
        let key = format!("{name}-{i}");
        // Print only new keys whose insertion has returned.
        if seen.insert(&key, at(i * 10)) {
            writeln!(out, "key {} {key}", i * 10).unwrap();
        }
    }
}

fn spawn(path: &Path, name: &str) -> std::process::Child {
    Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "window_shared::child",
            "--nocapture",
            "--test-threads=1",
        ])
        .env(FILE, path)
        .env(NAME, name)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Two processes add to one file, each at its own pace, and are killed again and again: every key
/// that either has printed is there while it is in the window.
#[test]
fn killed_processes_lose_nothing_in_the_window() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("seen.tamis");
    for round in 0..6 {
        window(60_000, 0.001).save(&path).unwrap();
        let names = [format!("a{round}"), format!("b{round}")];
        let mut children = names.each_ref().map(|name| spawn(&path, name));
        let mut told: Vec<(i64, String)> = Vec::new();
        let mut readers = children
            .each_mut()
            .map(|child| BufReader::new(child.stdout.take().unwrap()));
        for _ in 0..2_000 + 700 * round {
            for reader in &mut readers {
                let mut line = String::new();
                reader.read_line(&mut line).unwrap();
                if let Some((moment, key)) = line
                    .strip_prefix("key ")
                    .and_then(|l| l.trim().split_once(' '))
                {
                    told.push((moment.parse().unwrap(), key.to_string()));
                }
            }
        }
        for child in &mut children {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        // Read the remaining output.
        for reader in readers {
            for line in reader.lines().map_while(Result::ok) {
                if let Some((moment, key)) = line
                    .strip_prefix("key ")
                    .and_then(|l| l.trim().split_once(' '))
                    && line.ends_with(char::is_numeric)
                    && let Ok(moment) = moment.parse()
                {
                    told.push((moment, key.to_string()));
                }
            }
        }
        let seen = Window::share(&path).unwrap();
        let latest = seen.latest().unwrap().micros();
        let now = told.iter().map(|(moment, _)| *moment).max().unwrap();
        assert!(latest >= now);
        let inside: Vec<_> = told
            .iter()
            .filter(|(moment, _)| latest - moment <= SPAN)
            .collect();
        assert!(inside.len() > 1_000);
        for (moment, key) in inside {
            // The last line may be cut, which changes its key.
            assert!(
                seen.contains(key, at(latest)) || *moment == now,
                "{key} of {moment}, at {latest}"
            );
        }
        seen.close().unwrap();
        assert!(AnyFilter::verify(&path, &Open::new()).is_ok());
    }
}

#[test]
fn a_union_remembers_each_key_as_long_as_it_would_have() {
    for shift in [0, 3 * STEP, 9 * STEP, 30 * STEP, -4 * STEP] {
        let (mut a, b) = (window(20_000, 1e-5), window(20_000, 1e-5));
        for i in 0..2_000 {
            a.insert(Hash::from(i as u64), at(i * 40));
            b.insert(Hash::from(1_000_000 + i as u64), at(i * 40 + shift));
        }
        let before = AnyFilter::from(Window::from_bytes(&a.to_bytes()).unwrap());
        a.union_with(&b).unwrap();
        let now = a.latest().unwrap().micros();
        assert_eq!(now, (80_000 - 40).max(80_000 - 40 + shift));
        for i in 0..2_000 {
            for (key, added) in [(i, i * 40), (1_000_000 + i, i * 40 + shift)] {
                let found = a.contains(Hash::from(key as u64), at(now));
                if now - added <= SPAN {
                    assert!(found, "{shift}: {key}");
                } else if now - added > SPAN + STEP {
                    assert!(!found, "{shift}: {key}");
                }
            }
        }
        drop(before);
    }
    let mut a = window(20_000, 0.01);
    let other = Window::within(Duration::from_micros(SPAN as u64 * 2), 20_000, 0.01).unwrap();
    assert!(matches!(a.union_with(&other), Err(Error::Unlike { .. })));
    let mut last = Window::new(1_000, 0.01).unwrap();
    let text = last
        .union_with(&last.template().unwrap())
        .unwrap_err()
        .to_string();
    assert!(text.contains("count keys"), "{text}");
}

/// Stamps wrap around many times, and only a few keys are added per generation: nothing forgotten
/// comes back.
#[test]
fn what_is_forgotten_never_comes_back() {
    for (renewal, sparse) in [
        (Renewal::Within, 40),
        (Renewal::Within, 1),
        (Renewal::Quiet, 3),
    ] {
        let options =
            WindowOptions::new(Span::Time(Duration::from_micros(SPAN as u64))).renewal(renewal);
        let mut seen = Window::with_options(&options, 50_000, 1e-6, Hasher::default()).unwrap();
        let old: Vec<Hash> = (0..5_000).map(Hash::from).collect();
        seen.insert_many_mut(&old, at(0), &mut vec![false; old.len()]);
        // Many rounds of stamps.
        for generation in 20..500i64 {
            for i in 0..sparse {
                let key = 1 << 40 | generation << 8 | i;
                seen.insert_mut(Hash::from(key as u64), at(generation * STEP + i));
            }
            let mut found = vec![false; old.len()];
            seen.contains_many(&old, at(generation * STEP + 500), &mut found);
            let back = found.iter().filter(|found| **found).count();
            assert!(back <= 1, "{back} keys are back in generation {generation}");
        }
    }
}

#[test]
fn a_pause_longer_than_the_window_empties_it_at_once() {
    let mut seen = window(100_000, 0.001);
    let hashes: Vec<Hash> = (0..100_000).map(Hash::from).collect();
    seen.insert_many_mut(&hashes, at(0), &mut vec![false; hashes.len()]);
    let later = at(1_000 * SPAN);
    assert!(!hashes.iter().any(|hash| seen.contains(*hash, later)));
    assert!(seen.insert(hashes[0], later));
    assert_eq!(seen.keys().get(), 1);
    // If a clock jumps back before that, the key is new, and nothing is lost.
    assert!(!seen.remembers(at(0)) && seen.insert(hashes[1], at(0)));
    assert!(seen.contains(hashes[0], later));
}

#[test]
fn odd_windows() {
    let time = |span| Window::within(span, 1_000, 0.01);
    let text = |result: Result<Window, Error>| result.err().map(|e| e.to_string());
    for (span, says) in [
        (Duration::ZERO, "millisecond"),
        (Duration::from_micros(7_999 - 999), "millisecond"),
        (Duration::MAX, "20,000 years"),
    ] {
        let error = text(time(span)).unwrap_or_else(|| panic!("{span:?}"));
        assert!(error.contains(says), "{error}");
    }
    let century = Duration::from_secs(100 * 366 * 86_400);
    for span in [Duration::from_millis(8), Duration::from_secs(1), century] {
        let seen = time(span).unwrap();
        for moment in [Moment::MIN, at(-1), at(0), Moment::MAX] {
            assert!(seen.insert(moment.to_string(), moment));
            assert!(seen.contains(moment.to_string(), moment));
        }
    }
    for (generations, fine) in [
        (0, false),
        (1, true),
        (62, true),
        (63, false),
        (10_000, false),
    ] {
        let options = WindowOptions::new(Span::Keys(1_000)).generations(generations);
        let made = Window::with_options(&options, 1_000, 0.01, Hasher::default());
        assert_eq!(made.is_ok(), fine, "{generations}");
    }
    let none = WindowOptions::new(Span::Keys(0));
    assert!(Window::with_options(&none, 1_000, 0.01, Hasher::default()).is_err());
}

/// Whatever a body without a checksum holds: an error or answers, no panic.
#[test]
fn damaged_heads_are_survived() {
    let mut seen = window(2_000, 0.01);
    let hashes: Vec<Hash> = (0..2_000).map(Hash::from).collect();
    seen.insert_many_mut(&hashes, at(5), &mut vec![false; 2_000]);
    let sound = seen.to_bytes();
    for word in 0..40 {
        for value in [0, 1, 15, u64::MAX, u64::MAX - 15, 1 << 63, 1 << 62 | 7] {
            let mut bytes = sound.clone();
            bytes[104..112].fill(0); // no checksum
            bytes[128 + word * 8..][..8].copy_from_slice(&value.to_le_bytes());
            let Ok(mut damaged) = Window::from_bytes(&bytes) else {
                continue;
            };
            let _ = (
                damaged.generations(),
                damaged.keys(),
                damaged.rate_now(),
                damaged.latest(),
            );
            for moment in [Moment::MIN, at(0), at(SPAN * 3), Moment::MAX] {
                let _ = damaged.contains(hashes[7], moment);
                damaged.insert(hashes[8], moment);
                damaged.insert_many_mut(&hashes[..50], moment, &mut [false; 50]);
                let _ = damaged.explain(hashes[9]);
            }
        }
    }
}
