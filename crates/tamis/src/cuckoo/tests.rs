//! The table, cell by cell.

use super::table::Full;
use super::*;
use crate::hash::{mix, reduce};
use std::collections::HashMap;

fn hash(key: u64) -> Hash {
    let hi = mix(mix(key));
    Hash { hi, lo: mix(mix(hi ^ 0x5851_F42D_4C95_7F2D)) }
}

struct Table {
    shape: CuckooShape,
    words: Vec<u64>,
    len: u64,
}

impl Table {
    fn new(shape: CuckooShape) -> Table {
        Table { shape, words: vec![0; shape.words() as usize], len: 0 }
    }
    fn planned(n: u64, p: f64) -> Table {
        Table::new(CuckooShape::for_rate(n, p).unwrap())
    }
    fn insert(&mut self, key: u64) -> Result<(), Full> {
        insert(&self.shape, &mut self.words, &mut self.len, hash(key))
    }
    fn remove(&mut self, key: u64) -> bool {
        remove(&self.shape, &mut self.words, &mut self.len, hash(key))
    }
    fn count(&self, key: u64) -> u64 {
        count(&self.shape, &self.words, hash(key))
    }
    fn contains(&self, key: u64) -> bool {
        contains(&self.shape, &self.words, hash(key))
    }
    /// The false positive rate, of keys that no test adds.
    fn rate(&self, probes: u64) -> f64 {
        (0..probes).filter(|key| self.contains(key | 1 << 50)).count() as f64 / probes as f64
    }
    /// Inserts a key that must be refused, and the table must not change.
    fn refuse(&mut self, key: u64) -> Full {
        let (words, len) = (self.words.clone(), self.len);
        let full = self.insert(key).unwrap_err();
        assert!(words == self.words && len == self.len, "a refused insert changed the table");
        full
    }
}

fn shapes() -> impl Iterator<Item = (u64, u64)> {
    (2..=4).flat_map(|window| (4..=64 / window).map(move |width| (window, width))).filter(|&(_, width)| width <= 32)
}

#[test]
fn other_place_of_the_other_place_is_the_place() {
    for slots in [2, 3, 4, 7, 64, 1000, 1_000_003] {
        let shape = CuckooShape::new(slots, 2, 12).unwrap();
        for entry in (0..1000).map(|key| shape.entry(hash(key))) {
            assert!(entry.other < shape.places);
            assert_eq!(shape.other(entry.other, entry.fingerprint), entry.place);
        }
    }
}

#[test]
fn slots_are_packed_and_read_back_as_written() {
    for (window, width) in shapes() {
        let mut table = Table::new(CuckooShape::new(100, window, width).unwrap());
        let shape = table.shape;
        let mut model = [0; 100];
        for i in 0..2000 {
            let (slot, value) = (reduce(mix(mix(i)), 100), mix(mix(!i)) >> (64 - width));
            shape.set(&mut table.words, slot, value);
            model[slot as usize] = value;
        }
        assert!((0..100).all(|slot| shape.get(&table.words, slot) == model[slot as usize]));
        for (place, position) in (0..shape.places).flat_map(|place| (0..window).map(move |i| (place, i))) {
            shape.write(&mut table.words, place + position, place, shape.fingerprints);
            let entry = shape.resident(place + position, shape.get(&table.words, place + position));
            assert_eq!((entry.place, entry.fingerprint), (place, shape.fingerprints));
            let marks = shape.matches(&table.words, place, shape.fingerprints);
            assert_eq!(shape.first(place, marks & 1 << (position * width + width - 1)), Some(place + position));
        }
    }
}

#[test]
fn churn_against_an_exact_multiset() {
    let sizes = [(1, 0.01), (30, 0.1), (3000, 0.001), (20_000, 0.01)];
    for ((n, p), copies) in sizes.into_iter().flat_map(|size| [(size, false), (size, true)]) {
        let mut table = Table::planned(n, p);
        let mut model = HashMap::<u64, u64>::new();
        let (mut keys, mut refused) = (Vec::new(), 0);
        for i in 0..20 * n {
            let random = mix(mix(i));
            // Up to n, down to half of it, and up again; with copies, one key in eight is there already.
            if (keys.len() as u64) < n && (i / n % 2 == 0 || random.is_multiple_of(3)) {
                let copy = copies && random.is_multiple_of(8) && !keys.is_empty();
                let key = if copy { keys[reduce(random, keys.len() as u64) as usize] } else { i };
                match table.insert(key) {
                    Ok(()) => {
                        keys.push(key);
                        *model.entry(key).or_default() += 1;
                    }
                    // Copies of a key can't make room for each other, so now and then there is none.
                    Err(_) => refused += 1,
                }
            } else if !keys.is_empty() {
                let key = keys.swap_remove(reduce(random, keys.len() as u64) as usize);
                assert!(table.remove(key));
                *model.get_mut(&key).unwrap() -= 1;
            }
            if i % n == 0 {
                assert!(model.iter().all(|(&key, &copies)| table.count(key) >= copies), "a false no");
            }
        }
        assert_eq!(table.len, keys.len() as u64);
        assert!(refused <= if copies { n / 100 } else { 0 }, "{refused} refused of {n}");
        let different = model.values().filter(|&&copies| copies > 0).count() as u64;
        let (rate, expected) = (table.rate(400_000), table.shape.rate_at(different));
        assert!(
            (rate - expected).abs() <= 4.0 * (expected / 400_000.0).sqrt() + 0.05 * expected,
            "{rate} {expected}"
        );
        assert!(keys.iter().all(|&key| table.remove(key)));
        assert!(table.len == 0 && table.words.iter().all(|&word| word == 0), "not empty at the end");
    }
}

#[test]
fn fills_to_95_percent_and_a_refused_insert_changes_nothing() {
    for (window, width) in [(2, 12), (2, 17), (2, 32), (3, 13), (3, 21), (4, 10), (4, 16)] {
        let mut table = Table::new(CuckooShape::new(20_011, window, width).unwrap());
        let key = (0..).find(|&key| table.insert(key).is_err()).unwrap();
        assert!(table.shape.load(table.len) >= 0.95, "{window} {width} {}", table.shape.load(table.len));
        assert!(matches!(table.refuse(key), Full::Table { load } if load == table.shape.load(table.len)));
        assert!((0..key).all(|key| table.contains(key)));
        assert!((0..key).all(|key| table.remove(key)));
        assert!(table.words.iter().all(|&word| word == 0));
    }
}

#[test]
fn kicks_that_go_in_circles_end() {
    for (window, width) in shapes() {
        // One place, or two that overlap: everybody displaces everybody.
        for slots in [window, window + 1] {
            let mut table = Table::new(CuckooShape::new(slots, window, width).unwrap());
            let keys: Vec<_> = (0..200).filter(|&key| table.len < slots && table.insert(key).is_ok()).collect();
            assert_eq!(keys.len() as u64, slots);
            table.refuse(999);
            assert!(keys.iter().all(|&key| table.remove(key)));
        }
    }
}

#[test]
fn a_repeated_key_is_kept_as_often_as_documented() {
    for (window, width) in shapes() {
        let mut table = Table::new(CuckooShape::new(1000, window, width).unwrap());
        (0..100).for_each(|key| _ = table.insert(key));
        let before = table.count(7777);
        while table.insert(7777).is_ok() {}
        assert!(matches!(table.refuse(7777), Full::Key { load } if load > 0.1));
        assert_eq!(table.count(7777), table.shape.max_copies());
        assert!((0..100).all(|key| table.contains(key)));
        (before..table.shape.max_copies()).for_each(|_| assert!(table.remove(7777)));
        assert_eq!(table.count(7777), before);
    }
}

#[test]
fn batches_answer_like_single_keys() {
    let hashes: Vec<_> = (0..30_000).map(hash).collect();
    let mut many = Table::planned(20_000, 0.01);
    let mut one = Table::planned(20_000, 0.01);
    let full = insert_many(&many.shape, &mut many.words, &mut many.len, &hashes).unwrap_err();
    let taken = many.len;
    assert!(matches!(full, Full::Table { load } if load == many.shape.load(taken) && load > 0.95));
    many.refuse(taken);
    let (extra, kept) = (many.len - 20_000, 20_000);
    assert!((kept..kept + extra).all(|key| many.remove(key)));
    (0..kept).for_each(|key| one.insert(key).unwrap());
    let mut out = vec![false; hashes.len()];
    contains_many(&many.shape, &many.words, &hashes, &mut out);
    assert!((0..).zip(out).all(|(key, answer)| answer == one.contains(key) && answer == many.contains(key)));
}

#[test]
fn planned_tables_take_their_keys_and_keep_the_rate() {
    for (n, p) in
        [(0, 0.5), (1, 1e-6), (2, 0.01), (3, 0.3), (10, 0.001), (1000, 0.03), (100_000, 0.2), (200_000, 0.001)]
    {
        let mut table = Table::planned(n, p);
        (0..n).for_each(|key| table.insert(key).unwrap());
        assert!((0..n).all(|key| table.contains(key)));
        let (rate, expected) = (table.rate(1_000_000), table.shape.rate_at(n));
        assert!(expected <= p);
        assert!(
            (rate - expected).abs() <= 4.0 * (expected / 1e6).sqrt() + 0.05 * expected,
            "{n} {p} {rate} {expected}"
        );
    }
    for n in [1_000_003, 10_000_000] {
        assert!(CuckooShape::for_rate(n, 0.001).unwrap().words() as f64 * 64.0 / n as f64 <= 13.2);
    }
    assert!([0.0, 1.0, -1.0, f64::NAN].iter().all(|&p| CuckooShape::for_rate(10, p).is_none()));
    assert!(CuckooShape::for_rate(u64::MAX, 0.001).is_none() && CuckooShape::for_rate(1, 1e-300).is_none());
}

#[test]
fn damaged_tables_and_impossible_shapes_do_not_panic() {
    for (slots, window, width) in
        [(1, 2, 12), (9, 5, 12), (9, 1, 8), (9, 2, 33), (9, 3, 22), (9, 2, 3), (u64::MAX, 2, 4)]
    {
        assert_eq!(CuckooShape::new(slots, window, width).ok(), None);
    }
    for (window, width) in shapes() {
        let mut table = Table::new(CuckooShape::new(50, window, width).unwrap());
        table.words.iter_mut().zip(0..).for_each(|(word, i)| *word = mix(mix(i)) | mix(mix(!i)));
        let bytes: Vec<[u8; 8]> = table.words.iter().map(|word| word.to_ne_bytes()).collect();
        for key in 0..200 {
            assert_eq!(contains(&table.shape, &bytes, hash(key)), table.contains(key));
        }
        for key in 0..5 {
            _ = (table.insert(key), table.remove(key + 1), table.count(key));
        }
        _ = insert_many(&table.shape, &mut table.words, &mut 0, &[hash(1); 100]);
    }
}
