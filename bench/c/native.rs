//! The loops of bench.c in Rust.

use std::time::Instant;
use tamis::Blocked;

const KEYS: usize = 10_000;
const ROUNDS: usize = 100;
const TRIES: usize = 9;

/// Of one of the two methods, on new keys.
fn inserting(
    keys: &[[u8; 16]],
    insert: impl Fn(&mut Blocked, &[u8; 16]) -> bool,
) -> Result<f64, tamis::Error> {
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        let mut took = 0;
        for _ in 0..ROUNDS {
            let mut filter = Blocked::new(KEYS as u64, 0.01)?;
            let start = Instant::now();
            let new = keys.iter().filter(|key| insert(&mut filter, key)).count();
            took += start.elapsed().as_nanos();
            assert!(new >= KEYS * 99 / 100);
        }
        best = best.min(took as f64 / (KEYS * ROUNDS) as f64);
    }
    Ok(best)
}

fn main() -> Result<(), tamis::Error> {
    let keys: Vec<[u8; 16]> = (0..2 * KEYS)
        .map(|i| *format!("user-{i:011}").as_bytes().first_chunk().unwrap())
        .collect();
    let present = &keys[..KEYS];
    let shared = inserting(present, |filter, key| filter.insert(key))?;
    println!("rust insert\t{shared:.2}");
    let alone = inserting(present, |filter, key| filter.insert_mut(key))?;
    println!("rust insert alone\t{alone:.2}");

    let filter = Blocked::new(KEYS as u64, 0.01)?;
    present.iter().for_each(|key| {
        filter.insert(key);
    });
    let mut best = f64::INFINITY;
    for _ in 0..TRIES {
        let start = Instant::now();
        let mut yes = 0;
        for _ in 0..ROUNDS {
            yes += keys.iter().filter(|key| filter.contains(key)).count();
        }
        best = best.min(start.elapsed().as_nanos() as f64 / (2 * KEYS * ROUNDS) as f64);
        assert!(yes >= KEYS * ROUNDS);
    }
    println!("rust contains\t{best:.2}");
    Ok(())
}
