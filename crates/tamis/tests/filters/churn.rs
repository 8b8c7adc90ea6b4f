//! Kinds with removal, against an exact multiset: random sequences of adding, removing, saving and
//! merging never lose a key that is present, and after heavy churn the rate is still as promised.

use proptest::prelude::*;
use std::collections::HashMap;
use tamis::internals::raw::CountingShape;
use tamis::{
    AnyFilter, Blocked, Counting, Cuckoo, Error, Hasher, KeyCount, Kind, Open, Plan, SecretKey,
};

const KINDS: [Kind; 2] = [Kind::Counting, Kind::Cuckoo];

fn empty(kind: Kind, keys: u64, rate: f64, hasher: Hasher) -> AnyFilter {
    AnyFilter::from_plan(&Plan::for_rate(kind, keys, rate).unwrap(), hasher).unwrap()
}

fn key(number: u64) -> [u8; 8] {
    number.to_le_bytes()
}

/// The true content of a filter.
#[derive(Clone, Default)]
struct Multiset(HashMap<u64, u64>);

impl Multiset {
    fn add(&mut self, key: u64) {
        *self.0.entry(key).or_default() += 1;
    }

    fn remove(&mut self, key: u64) {
        if let Some(count) = self.0.get_mut(&key) {
            *count -= 1;
            if *count == 0 {
                self.0.remove(&key);
            }
        }
    }

    fn len(&self) -> u64 {
        self.0.values().sum()
    }

    /// No false "no", and no count too low.
    fn check(&self, filter: &AnyFilter) {
        for (&number, &count) in &self.0 {
            assert!(filter.contains(key(number)), "a false no");
            let told = filter.count(key(number)).unwrap();
            assert!(told >= count.min(15), "{told} of {count}");
        }
        let numbers: Vec<[u8; 8]> = self.0.keys().map(|number| key(*number)).collect();
        let mut found = vec![false; numbers.len()];
        filter.contains_many(&numbers, &mut found);
        assert!(found.iter().all(|found| *found), "a false no in a batch");
        if filter.kind() == Kind::Cuckoo {
            assert_eq!(filter.keys(), KeyCount::Counted(self.len()));
        }
    }
}

/// Adds to both, except keys that the filter refuses.
fn add(filter: &mut AnyFilter, oracle: &mut Multiset, number: u64) {
    let known = oracle.0.contains_key(&number);
    match filter.insert(key(number)) {
        Ok(new) => {
            assert!(!(new && known), "a present key was called new");
            oracle.add(number);
        }
        Err(Error::Full { .. } | Error::TooManyCopies { .. }) => {}
        Err(error) => panic!("{error}"),
    }
}

#[derive(Clone, Debug)]
enum Step {
    Add(u64),
    AddMany(Vec<u64>),
    /// One of the present keys.
    Remove(usize),
    RemoveMany(usize, usize),
    Save,
    Base64,
    Merge(Vec<u64>),
    Clear,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Few different keys, so that they repeat.
    let key = 0u64..300;
    let keys = prop::collection::vec(0u64..300, 0..80);
    let step = prop_oneof![
        12 => key.prop_map(Step::Add),
        4 => keys.clone().prop_map(Step::AddMany),
        12 => any::<usize>().prop_map(Step::Remove),
        4 => (any::<usize>(), 0usize..80).prop_map(|(at, len)| Step::RemoveMany(at, len)),
        2 => Just(Step::Save),
        1 => Just(Step::Base64),
        2 => keys.prop_map(Step::Merge),
        1 => Just(Step::Clear),
    ];
    prop::collection::vec(step, 0..120)
}

fn hashers() -> impl Strategy<Value = Hasher> {
    prop_oneof![
        any::<u64>().prop_map(Hasher::seeded),
        any::<[u8; 16]>().prop_map(|secret| Hasher::keyed(SecretKey::new(secret))),
    ]
}

fn run(filter: &mut AnyFilter, oracle: &mut Multiset, step: &Step) {
    let present = || {
        let mut present: Vec<u64> = oracle.0.keys().copied().collect();
        present.sort_unstable();
        present
    };
    match step {
        Step::Add(number) => add(filter, oracle, *number),
        Step::AddMany(numbers) => {
            let keys: Vec<[u8; 8]> = numbers.iter().map(|number| key(*number)).collect();
            let before = filter.keys().get();
            match filter.insert_many(&keys, &mut vec![false; keys.len()]) {
                Ok(()) => numbers.iter().for_each(|number| oracle.add(*number)),
                // Keys before the refused one were added.
                Err(Error::Full { .. } | Error::TooManyCopies { .. }) => {
                    let added = (filter.keys().get() - before) as usize;
                    numbers[..added]
                        .iter()
                        .for_each(|number| oracle.add(*number));
                }
                Err(error) => panic!("{error}"),
            }
        }
        Step::Remove(at) => {
            let present = present();
            if !present.is_empty() {
                let number = present[at % present.len()];
                assert!(filter.remove(key(number)).unwrap());
                oracle.remove(number);
            }
        }
        Step::RemoveMany(at, len) => {
            let present = present();
            let start = at % (present.len() + 1);
            let gone = &present[start..(start + len).min(present.len())];
            let hashes: Vec<_> = gone
                .iter()
                .map(|number| filter.hasher().hash(&key(*number)))
                .collect();
            let mut removed = vec![false; hashes.len()];
            filter.remove_many(&hashes, &mut removed).unwrap();
            assert!(removed.iter().all(|removed| *removed));
            gone.iter().for_each(|number| oracle.remove(*number));
        }
        Step::Save => {
            let dir = tempfile::tempdir().unwrap();
            let path = dir.path().join("f.tamis");
            filter.save(&path).unwrap();
            *filter = AnyFilter::load(&path).unwrap();
        }
        Step::Base64 => *filter = Open::new().from_base64(&filter.to_base64()).unwrap(),
        Step::Merge(numbers) => {
            let mut other = Open::new().from_bytes(&filter.to_bytes()).unwrap();
            other.clear().unwrap();
            let mut others = Multiset::default();
            for number in numbers {
                add(&mut other, &mut others, *number);
            }
            let before = filter.to_bytes();
            match filter.union_with(&other) {
                Ok(()) => {
                    for (number, count) in others.0 {
                        (0..count).for_each(|_| oracle.add(number));
                    }
                }
                Err(Error::Full { .. } | Error::TooManyCopies { .. }) => {
                    assert_eq!(filter.to_bytes(), before, "a refused union left a trace");
                }
                Err(error) => panic!("{error}"),
            }
        }
        Step::Clear => {
            filter.clear().unwrap();
            *oracle = Multiset::default();
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_sequence_loses_a_key(
        steps in steps(),
        capacity in 1u64..500,
        bits in 1.0f64..24.0,
        hasher in hashers(),
    ) {
        for kind in KINDS {
            let mut filter = empty(kind, capacity, libm::exp2(-bits), hasher);
            let mut oracle = Multiset::default();
            for step in &steps {
                run(&mut filter, &mut oracle, step);
                oracle.check(&filter);
            }
        }
    }

    /// The common keys of an intersection are there, and removing one doesn't lose others.
    #[test]
    fn an_intersection_keeps_the_common_keys(
        ours in prop::collection::vec(0u64..200, 0..150),
        theirs in prop::collection::vec(0u64..200, 0..150),
    ) {
        for kind in KINDS {
            let filled = |numbers: &[u64]| {
                let mut filter = empty(kind, 400, 0.01, Hasher::default());
                let mut oracle = Multiset::default();
                numbers.iter().for_each(|number| add(&mut filter, &mut oracle, *number));
                (filter, oracle)
            };
            let ((mut filter, a), (other, b)) = (filled(&ours), filled(&theirs));
            filter.intersect_with(&other).unwrap();
            let mut common: Vec<(u64, u64)> = a
                .0
                .iter()
                .filter_map(|(number, count)| Some((*number, *count.min(b.0.get(number)?))))
                .collect();
            while let Some((number, count)) = common.pop() {
                prop_assert!(filter.count(key(number)).unwrap() >= count);
                (0..count).for_each(|_| assert!(filter.remove(key(number)).unwrap()));
                prop_assert!(common.iter().all(|(number, _)| filter.contains(key(*number))));
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// A counting filter has a counter where the blocked filter of the same keys has a bit, so
    /// conversion gives that filter, byte for byte.
    #[test]
    fn counting_becomes_the_blocked_filter_of_its_keys(
        lines in 1u64..20,
        hashes_per_line in 1u32..=8,
        lines_per_key in 1u32..=4,
        kept in prop::collection::vec(0u64..1_000_000, 0..200),
        removed in prop::collection::vec(1_000_000u64..2_000_000, 0..100),
    ) {
        let lines = lines * u64::from(lines_per_key);
        let counters = CountingShape::new(lines, hashes_per_line, lines_per_key).unwrap();
        let hasher = Hasher::seeded(lines);
        let mut counting = Counting::from_plan(&Plan::of(counters, 200), hasher).unwrap();
        let bits = Plan::of(counters.bits(), 200);
        let mut blocked = Blocked::from_plan(&bits, hasher).unwrap();
        prop_assert_eq!(counting.bytes(), 4 * blocked.bytes());
        prop_assert_eq!(counting.rate(), blocked.rate());

        // One by one, and all at once.
        let (one_by_one, batch) = kept.split_at(kept.len() / 2);
        let batch: Vec<[u8; 8]> = batch.iter().map(|n| key(*n)).collect();
        for number in one_by_one {
            prop_assert_eq!(counting.insert(key(*number)), blocked.insert(key(*number)));
        }
        let (mut ours, mut theirs) = (vec![false; batch.len()], vec![false; batch.len()]);
        counting.insert_many_mut(&batch, &mut ours);
        blocked.insert_many_mut(&batch, &mut theirs);
        prop_assert_eq!(ours, theirs);
        prop_assert_eq!(counting.to_blocked().unwrap().to_bytes(), blocked.to_bytes());
        prop_assert!((counting.rate_now() - blocked.rate_now()).abs() < 1e-12);
        prop_assert_eq!(counting.estimated_keys(), blocked.estimated_keys());

        // Removed keys leave no trace, unless a counter was full.
        for number in &removed {
            counting.insert(key(*number));
        }
        for number in &removed {
            counting.remove(key(*number));
        }
        let came_back = counting.to_blocked().unwrap();
        let full = AnyFilter::Counting(counting).body()[0].iter().any(|word| {
            let word = tamis::internals::raw::Word::get(word);
            (0..64).step_by(4).any(|shift| word >> shift & 15 == 15)
        });
        if !full {
            let body = |filter: &Blocked| filter.to_bytes()[128..].to_vec();
            prop_assert_eq!(body(&came_back), body(&blocked));
        }
    }
}

/// Adds and removes ten times the capacity, then measures the rate.
#[test]
fn the_promise_holds_after_heavy_churn() {
    const ASKED: u64 = 2_000_000;
    for kind in KINDS {
        for (capacity, rate) in [
            (20_000, 0.1),
            (50_000, 0.01),
            (50_000, 1e-3),
            (20_000, 1e-4),
        ] {
            let mut filter = empty(kind, capacity, rate, Hasher::seeded(3));
            let mut random = 1u64;
            let mut present: Vec<u64> = Vec::new();
            let mut next = 0;
            while next < 10 * capacity {
                // Fill it, then replace half of it.
                while (present.len() as u64) < capacity {
                    filter.insert(key(next)).unwrap();
                    present.push(next);
                    next += 1;
                }
                for _ in 0..capacity / 2 {
                    random = random
                        .wrapping_mul(0x5851_F42D_4C95_7F2D)
                        .wrapping_add(0x1405_7B7E_F767_814F);
                    let at = (u128::from(random) * present.len() as u128) >> 64;
                    let gone = present.swap_remove(at as usize);
                    assert!(filter.remove(key(gone)).unwrap());
                }
            }
            while (present.len() as u64) < capacity {
                filter.insert(key(next)).unwrap();
                present.push(next);
                next += 1;
            }
            assert!(present.iter().all(|number| filter.contains(key(*number))));
            let foreign: Vec<[u8; 8]> = (0..ASKED).map(|i| key(1 << 40 | i)).collect();
            let mut found = vec![false; foreign.len()];
            filter.contains_many(&foreign, &mut found);
            let wrong = found.iter().filter(|found| **found).count() as f64;
            let error = 4.0 * (rate / ASKED as f64).sqrt();
            let measured = wrong / ASKED as f64;
            println!(
                "{kind} {capacity} {rate}: {measured}, now {}",
                filter.rate_now()
            );
            assert!(measured <= 1.05 * rate + error, "{kind} {rate}: {measured}");
            let now = filter.rate_now();
            assert!(
                (measured - now).abs() <= 0.03 * now + error,
                "{kind} {rate}: {measured}, {now} expected"
            );
            let keys = filter.keys().get() as f64 / capacity as f64;
            // A key that seemed present was not counted.
            assert!((keys - 1.0).abs() < 0.01 + rate, "{kind} {rate}: {keys}");

            for number in present {
                assert!(filter.remove(key(number)).unwrap());
            }
            let body = &filter.to_bytes()[128..];
            if kind == Kind::Cuckoo {
                assert!(body.iter().all(|byte| *byte == 0), "not empty at the end");
            } else {
                // Counters that reached 15 stay set; there are few.
                let stuck = body.iter().filter(|byte| **byte != 0).count();
                assert!(stuck < 20, "{rate}: {stuck} counters are stuck");
            }
        }
    }
}

#[test]
fn a_counter_that_is_full_stays() {
    let mut filter = Counting::new(1_000, 0.001).unwrap();
    for times in 1..=40 {
        assert_eq!(filter.insert("often"), times == 1);
        assert_eq!(filter.count("often"), times.min(15));
    }
    // Copies beyond the 15th aren't counted, so they can't be removed.
    for _ in 0..40 {
        assert!(filter.remove("often"));
    }
    assert_eq!(filter.count("often"), 15);
}

#[test]
fn threads_add_to_one_counting_filter() {
    let filter = Counting::new(20_000, 0.01).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let filter = &filter;
            // Two threads add every key.
            scope.spawn(move || {
                for i in 0..5_000 {
                    filter.insert(key(thread / 2 * 5_000 + i));
                }
            });
        }
    });
    let mut filter = filter;
    for number in 0..10_000 {
        assert!(filter.count(key(number)) >= 2);
    }
    for number in (0..10_000).chain(0..10_000) {
        assert!(filter.remove(key(number)));
    }
    assert!(filter.to_bytes()[128..].iter().all(|byte| *byte == 0));
    assert_eq!(filter.estimated_keys(), 0);
}

#[test]
fn processes_share_a_counting_file_but_not_a_cuckoo_one() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("f.tamis");
    Counting::new(1_000, 0.01).unwrap().save_new(&path).unwrap();
    let (one, mut other) = (
        Counting::share(&path).unwrap(),
        Counting::share(&path).unwrap(),
    );
    one.insert("key");
    assert!(other.contains("key") && other.remove("key") && !one.contains("key"));
    assert_eq!(one.keys(), KeyCount::Counted(0));
    drop((one, other));

    Cuckoo::new(1_000, 0.01).unwrap().save(&path).unwrap();
    assert!(matches!(
        Open::new().share(&path),
        Err(Error::Unable { .. })
    ));
}

#[test]
fn capacity_one_and_none() {
    for kind in KINDS {
        assert!(Plan::for_rate(kind, 0, 0.01).is_err());
        for rate in [0.5, 0.01, 1e-9] {
            let mut filter = empty(kind, 1, rate, Hasher::default());
            assert!(!filter.remove("never added").unwrap());
            assert_eq!(filter.count("never added").unwrap(), 0);
            assert!(filter.insert("key").unwrap());
            assert!(!filter.insert("key").unwrap());
            assert_eq!(filter.count("key").unwrap(), 2);
            assert!(filter.remove("key").unwrap() && filter.contains("key"));
            assert!(filter.remove("key").unwrap() && !filter.contains("key"));
            assert!(filter.to_bytes()[128..].iter().all(|byte| *byte == 0));
            assert_eq!(filter.keys(), KeyCount::Counted(0));
        }
    }
}

#[test]
fn kinds_without_counts_say_what_to_use_instead() {
    for kind in [Kind::Bloom, Kind::Blocked] {
        let mut filter = empty(kind, 100, 0.01, Hasher::default());
        filter.insert("key").unwrap();
        let remove = filter.remove("key").unwrap_err().to_string();
        assert!(
            remove.starts_with(&format!("{kind} filters can't be removed from: ")),
            "{remove}"
        );
        let count = filter.count("key").unwrap_err().to_string();
        assert!(
            count.contains("use a cuckoo or a counting filter"),
            "{count}"
        );
        assert!(filter.contains("key"));
    }
}
