//! Sixteen processes add the same keys to one filter, each in a different
//! order: exactly one gets "new".

use crate::witness;
use crate::*;
use std::env;
use std::process::Command;
use tamis::Hash;
use tamis::internals::raw::Shape;

const WORKERS: u64 = 16;

/// Environment variables that configure a worker.
const AT: &str = "TAMIS_TEST_AT";
const KEYS: &str = "TAMIS_TEST_KEYS";
const SEED: &str = "TAMIS_TEST_SEED";
const ANSWERS: &str = "TAMIS_TEST_ANSWERS";

/// When started by the other tests of this file, a worker. When run by itself,
/// one worker after the other: the first gets the answers of a local filter,
/// and the second gets no "new".
#[test]
fn worker() {
    if let Ok(at) = env::var(AT) {
        let told = |name| env::var(name).unwrap_or_else(|_| panic!("{name} is not set"));
        let number = |name| told(name).parse::<u64>().unwrap();
        let answers = add_all(&at, number(KEYS) as usize, number(SEED));
        return std::fs::write(told(ANSWERS), answers).unwrap();
    }
    const NUMBER: usize = 20_000;
    let at = format!("redis://{}/one-worker", server().address());
    let (remote, mut local) = pair(&location(&at), &plan(NUMBER as u64, 0.01));
    let answers = add_all(&at, NUMBER, 1);
    let all = keys(0..NUMBER as u64);
    for i in shuffled(NUMBER, 1) {
        assert_eq!(
            answers[i] == 1,
            local.insert(&all[i]).unwrap(),
            "{}",
            all[i]
        );
    }
    assert_eq!(add_all(&at, NUMBER, 2), vec![0; NUMBER]);
    remote.delete().unwrap();
}

/// Adds keys in the order of a seed; for each, 1 if it was new.
fn add_all(at: &str, number: usize, seed: u64) -> Vec<u8> {
    let all = keys(0..number as u64);
    let mut filter = RedisFilter::open(&location(at), &options()).unwrap();
    let mut answers = vec![0; number];
    // Batches of different sizes, so that workers don't run in lockstep.
    for batch in shuffled(number, seed).chunks(1_000 + 500 * seed as usize) {
        let keys: Vec<&str> = batch.iter().map(|i| all[*i].as_str()).collect();
        let mut new = vec![false; keys.len()];
        filter.insert_many(&keys, &mut new).unwrap();
        for (i, new) in batch.iter().zip(new) {
            answers[*i] = new.into();
        }
    }
    answers
}

fn shuffled(len: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..len).collect();
    for i in (1..len).rev() {
        let random = Hash::from_u128(u128::from(seed) << 64 | i as u128).as_u128();
        order.swap(i, (random % (i as u128 + 1)) as usize);
    }
    order
}

/// Sixteen workers add `number` keys; returns for each key how many got "new".
pub(crate) fn work(at: &str, number: usize) -> Vec<u32> {
    let folder = tempfile::tempdir().unwrap();
    let answers = |seed| folder.path().join(format!("answers-{seed}"));
    let workers: Vec<_> = (0..WORKERS)
        .map(|seed| {
            Command::new(env::current_exe().unwrap())
                .args(["--exact", "workers::worker"])
                .env(AT, at)
                .env(KEYS, number.to_string())
                .env(SEED, seed.to_string())
                .env(ANSWERS, answers(seed))
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap()
        })
        .collect();
    let mut told = vec![0; number];
    for (seed, worker) in (0..).zip(workers) {
        let ran = worker.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&ran.stdout);
        assert!(ran.status.success(), "worker {seed}: {said}");
        let answers = std::fs::read(answers(seed)).unwrap();
        for (told, answer) in told.iter_mut().zip(answers) {
            *told += u32::from(answer);
        }
    }
    told
}

/// Answers and bytes equal those of a local filter.
fn proved(at: &str, plan: &Plan, number: usize) -> usize {
    let (mut remote, mut local) = pair(&location(at), plan);
    let told = work(at, number);
    assert!(
        told.iter().all(|times| *times <= 1),
        "one key was new twice"
    );

    let (Shape::Blocked(shape), hasher) = (plan.shape(), *local.hasher()) else {
        panic!("a blocked plan")
    };
    let keys = keys(0..number as u64);
    let hash = |i: usize| hasher.hash(keys[i].as_bytes());
    let (new, old): (Vec<usize>, Vec<usize>) = (0..number).partition(|i| told[*i] == 1);
    let new: Vec<Hash> = new.into_iter().map(hash).collect();
    let old: Vec<Hash> = old.into_iter().map(hash).collect();
    let order = witness::order(shape, &new).expect("an order that explains the answers");
    let new: Vec<Hash> = order.into_iter().map(|i| new[i]).collect();

    let mut answers = vec![false; new.len()];
    local.insert_many(&new, &mut answers).unwrap();
    assert!(all(&answers), "the local filter calls the same keys new");
    let mut answers = vec![true; old.len()];
    local.insert_many(&old, &mut answers).unwrap();
    assert_eq!(count(&answers), 0, "and the others old");
    assert_eq!(new.len(), number - old.len());
    assert!(
        body(&remote.download().unwrap()) == body(&local),
        "the bytes differ"
    );
    remote.delete().unwrap();
    old.len()
}

/// How many keys look old when they are added in order.
fn false_positives(plan: &Plan, number: usize) -> usize {
    let mut local = AnyFilter::from_plan(plan, Hasher::seeded(7)).unwrap();
    let mut new = vec![false; number];
    local
        .insert_many(&keys(0..number as u64), &mut new)
        .unwrap();
    number - count(&new)
}

#[test]
fn each_key_is_new_once() {
    const NUMBER: usize = 200_000;
    let plan = plan(NUMBER as u64, 0.01);
    let at = format!("redis://{}/each-key-once", server().address());
    let old = proved(&at, &plan, NUMBER);
    // Any order gives about as many false positives.
    let expected = false_positives(&plan, NUMBER);
    assert!(
        expected > 100 && old > expected / 2 && old < expected * 2,
        "{old} of {expected}"
    );
}

/// If no key can look old in any order, the sum is the number of keys.
#[test]
fn the_sum_is_the_number_of_keys() {
    const NUMBER: usize = 20_000;
    let plan = plan(NUMBER as u64, 1e-7);
    let Shape::Blocked(shape) = plan.shape() else {
        panic!("a blocked plan")
    };
    let hasher = Hasher::seeded(7);
    let hashes: Vec<_> = (keys(0..NUMBER as u64).iter())
        .map(|key| hasher.hash(key.as_bytes()))
        .collect();
    assert_eq!(witness::coverable(shape, &hashes), 0);
    let at = format!("redis://{}/sum", server().address());
    assert_eq!(proved(&at, &plan, NUMBER), 0);
}

#[test]
fn each_key_is_new_once_in_a_cluster() {
    const NUMBER: usize = 20_000;
    // Seven chunks, on all masters.
    let plan = plan(23_000_000, 0.01);
    let old = proved(&cluster().location("once-in-a-cluster"), &plan, NUMBER);
    assert_eq!(old, 0, "a filter that is nearly empty calls nothing old");
    let plan = self::plan(NUMBER as u64, 0.01);
    proved(&cluster().location("full-in-a-cluster"), &plan, NUMBER);
}
