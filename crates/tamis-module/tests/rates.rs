//! The promised rate is the measured one, at a million keys. (On a server, with
//! fewer, in test_rates.py.)

use tamis::Hasher;
use tamis_module::bloom::NewBloom;
use tamis_module::cuckoo::NewCuckoo;
use tamis_module::filter::Filter as _;
use tamis_module::words::FilterLayout;

const KEYS: u32 = 1_000_000;
const ASKED: u32 = 1_000_000;
const LIMIT: u64 = u64::MAX;

/// Keys of unlike lengths; what is odd comes in stretches.
fn key(i: u32) -> Vec<u8> {
    let mut key = match i / 1_000 % 3 {
        0 => i.to_le_bytes().to_vec(),
        1 => format!("https://example.org/{i}").into_bytes(),
        _ => vec![b'a'; 1 + i as usize % 60],
    };
    key.extend(i.to_be_bytes());
    key
}

/// 1.05 times what was asked, and three standard deviations of what is measured.
fn bound(rate: f64) -> f64 {
    1.05 * rate + 3.0 * (rate / f64::from(ASKED)).sqrt()
}

fn measured(contains: impl Fn(&[u8]) -> bool) -> f64 {
    let wrong = (0..ASKED).filter(|i| contains(&key(1 << 30 | i)));
    wrong.count() as f64 / f64::from(ASKED)
}

#[test]
fn bloom_reserved_and_grown_from_a_hundred() {
    for rate in [1e-2, 1e-3, 1e-4] {
        for capacity in [u64::from(KEYS), 100] {
            let new = NewBloom {
                rate,
                capacity,
                ..NewBloom::default()
            };
            let mut filter = new.make().unwrap();
            for i in 0..KEYS {
                filter.insert(&key(i), &LIMIT).unwrap();
            }
            assert!((0..KEYS).all(|i| filter.contains(&key(i)).unwrap()));
            let got = measured(|key| filter.contains(key).unwrap());
            let bits = filter.info().unwrap().bytes as f64 * 8.0 / f64::from(KEYS);
            println!("BF for {capacity} at {rate}: {got}, {bits:.2} bits an item");
            assert!(got <= bound(rate), "for {capacity} at {rate}: {got}");
        }
    }
}

#[test]
fn cuckoo_grown_and_churned_ten_times() {
    const HELD: u32 = 50_000;
    for rate in [1e-2, 1e-3] {
        let new = NewCuckoo {
            rate,
            capacity: 1_000,
            expansion: 2,
            bucket_size: 2,
            most_kicks: 20,
            layout: FilterLayout::Tamis,
            hasher: Hasher::default(),
        };
        let mut filter = new.make().unwrap();
        for i in 0..HELD {
            filter.insert(&key(i), &LIMIT).unwrap();
        }
        for i in 0..10 * HELD {
            assert!(filter.remove(&key(i)).unwrap());
            filter.insert(&key(i + HELD), &LIMIT).unwrap();
        }
        assert!((10 * HELD..11 * HELD).all(|i| filter.contains(&key(i)).unwrap()));
        let got = measured(|key| filter.contains(key).unwrap());
        println!("CF at {rate}, churned: {got}");
        assert!(got <= bound(rate), "at {rate}: {got}");
    }
}
