use super::*;
use std::collections::HashMap;

fn key(i: u64) -> Vec<u8> {
    format!("key:{i}").into_bytes()
}

fn new(rate: f64, expansion: u32) -> Tables {
    Tables::new(1, rate, expansion, Hasher::default()).unwrap()
}

/// The share of keys never added that seem present.
fn measured(tables: &Tables) -> f64 {
    let wrong = (0..200_000u64).filter(|i| tables.contains(&key(1 << 40 | i)));
    wrong.count() as f64 / 200_000.0
}

#[test]
fn the_rate_is_kept_through_growth_and_churn() {
    for (rate, expansion) in [(0.01, 2), (0.001, 2), (0.01, 1), (0.01, 5)] {
        let mut tables = new(rate, expansion);
        let keys = 20_000;
        for i in 0..keys {
            tables.insert(&key(i), &u64::MAX).unwrap();
        }
        assert!((0..keys).all(|i| tables.contains(&key(i))));
        for i in 0..10 * keys {
            assert!(tables.remove(&key(i)), "{i}");
            tables.insert(&key(i + keys), &u64::MAX).unwrap();
        }
        assert!((10 * keys..11 * keys).all(|i| tables.contains(&key(i))));
        assert_eq!(tables.keys(), keys);
        let measured = measured(&tables);
        println!(
            "{rate} {expansion}: {measured} in {} layers, {} bits",
            tables.layers.len(),
            tables.bytes() * 8 / keys
        );
        // Three standard deviations for 200,000 answers at that rate.
        let noise = 3.0 * (rate / 200_000.0).sqrt();
        assert!(measured <= rate + noise, "{rate} {expansion}: {measured}");
    }
}

#[test]
fn removing_is_never_a_false_no() {
    // At this rate, layers often confuse keys.
    for expansion in [1, 2, 3] {
        let mut tables = new(0.25, expansion);
        let mut truth: HashMap<u64, u32> = HashMap::new();
        let mut random = 1u64;
        for step in 0..60_000u64 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(step | 1);
            let i = (random >> 33) % 12_000;
            if random >> 62 == 0 || step < 12_000 {
                if tables.insert(&key(i), &u64::MAX).is_ok() {
                    *truth.entry(i).or_default() += 1;
                }
            } else if let Some(count) = truth.get_mut(&i) {
                assert!(tables.remove(&key(i)));
                *count -= 1;
                if *count == 0 {
                    truth.remove(&i);
                }
            }
            if step % 20_000 == 19_999 {
                if step > 30_000 {
                    tables.compact().unwrap();
                }
                for (i, count) in &truth {
                    assert!(
                        tables.count(&key(*i)) >= u64::from(*count),
                        "{i} after {step}"
                    );
                }
            }
        }
        let entries: u64 = truth.values().map(|count| u64::from(*count)).sum();
        assert!(tables.layers.len() > 1 && tables.keys() == entries);
    }
}

#[test]
fn compacting_lets_layers_go() {
    let mut tables = new(0.01, 2);
    for i in 0..10_000 {
        tables.insert(&key(i), &u64::MAX).unwrap();
    }
    let layers = tables.layers.len();
    for i in 500..10_000 {
        assert!(tables.remove(&key(i)));
    }
    tables.compact().unwrap();
    assert!(tables.layers.len() < layers && tables.deletes == 0);
    assert!((0..500).all(|i| tables.contains(&key(i))));
}

#[test]
fn limits_and_copies() {
    let mut tables = new(0.01, 0);
    let error = (0..3_000).find_map(|i| tables.insert(&key(i), &u64::MAX).err());
    assert_eq!(error.unwrap().0, "Filter is full");
    let mut tables = new(0.01, 2);
    let error = (0..3_000).find_map(|i| tables.insert(&key(i), &4_000).err());
    assert_eq!(error, Some(Error::LIMIT));
    let mut tables = new(0.01, 2);
    let error = (0..20).find_map(|_| tables.insert(b"same", &u64::MAX).err());
    assert!(error.unwrap().0.contains("no more copies fit"));
    assert_eq!(tables.layers.len(), 1);
    assert!(tables.count(b"same") >= 4);
}

#[test]
fn dumps_are_read_and_grow_on() {
    let mut tables = new(0.01, 2);
    for i in 0..5_000 {
        tables.insert(&key(i), &u64::MAX).unwrap();
    }
    let (header, mut bytes) = (tables.dump_header(), Vec::new());
    loop {
        let more = tables.dump(bytes.len() as u64, 1000);
        if more.is_empty() {
            break;
        }
        bytes.extend(more);
    }
    assert_eq!(Tables::expected(&header).unwrap(), bytes.len() as u64);
    let mut copy = Tables::decode(&header, &bytes).unwrap();
    for i in 5_000..9_000 {
        copy.insert(&key(i), &u64::MAX).unwrap();
        tables.insert(&key(i), &u64::MAX).unwrap();
    }
    assert_eq!(copy.dump(0, usize::MAX), tables.dump(0, usize::MAX));
    assert_eq!(copy.dump_header(), tables.dump_header());
    assert!(Tables::decode(&header, &bytes[..bytes.len() - 1]).is_err());
    for at in [8, 12, 16] {
        let mut forged = header.clone();
        forged[at] ^= 1;
        assert!(Tables::decode(&forged, &bytes).is_err(), "{at}");
    }
}

#[test]
fn merging_needs_the_same_shape_and_room() {
    let (mut a, mut b) = (new(0.01, 2), new(0.01, 2));
    for i in 0..400 {
        a.insert(&key(i), &u64::MAX).unwrap();
        b.insert(&key(i + 300), &u64::MAX).unwrap();
    }
    a.union_with(&b).unwrap();
    assert_eq!(a.keys(), 800);
    assert!((0..700).all(|i| a.contains(&key(i))));
    assert!(a.union_with(&b).is_err() && a.keys() == 800);
    assert!(a.union_with(&new(0.02, 2)).is_err() && a.union_with(&new(0.01, 3)).is_err());
}
