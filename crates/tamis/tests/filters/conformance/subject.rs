//! The kinds under test, their abilities, and the test cases.

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use tamis::internals::raw::BlockedShape;
use tamis::{
    AnyFilter, Hash, Hasher, Kind, ListBuilder, Moment, Open, Plan, SecretKey,
    body::Body,
    internals::plan,
    window::{Span, WindowOptions},
};

pub(crate) type Key = Vec<u8>;

/// Abilities that only some kinds have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ability {
    /// Keys can be added one after the other, and all removed.
    Add,
    /// Accepts more keys than it is made for, at a rising rate.
    Overfill,
    /// Adding needs no `&mut`.
    AddShared,
    /// Threads can add at once.
    Threads,
    /// Processes can add to one mapped file at once.
    Share,
    /// Union and intersection.
    Combine,
    /// The documented positions are bits, which the oracle sets one by one.
    Bits,
}
use Ability::*;

/// A kind of filter, or a layout within a kind.
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    made: Made,
    abilities: &'static [Ability],
}

/// How to build a filter.
enum Made {
    /// Empty, from the plan for this many keys at this rate; then keys are added.
    Planned(fn(u64, f64) -> Plan),
    /// From all its keys at once.
    Listed(Kind),
}
use Made::*;

pub(crate) const SUBJECTS: &[Subject] = &[
    Subject {
        name: "bloom",
        made: Planned(|n, p| Plan::for_rate(Kind::Bloom, n, p).unwrap()),
        abilities: &[Add, Overfill, AddShared, Threads, Share, Combine, Bits],
    },
    Subject {
        name: "blocked, one line a key",
        made: Planned(|n, p| blocked(n, p, 1)),
        abilities: &[Add, Overfill, AddShared, Threads, Share, Combine, Bits],
    },
    Subject {
        name: "blocked, two lines a key",
        made: Planned(|n, p| blocked(n, p, 2)),
        abilities: &[Add, Overfill, AddShared, Threads, Share, Combine, Bits],
    },
    Subject {
        name: "blocked, four lines a key",
        made: Planned(|n, p| blocked(n, p, 4)),
        abilities: &[Add, Overfill, AddShared, Threads, Share, Combine, Bits],
    },
    Subject {
        name: "counting",
        made: Planned(|n, p| Plan::for_rate(Kind::Counting, n, p).unwrap()),
        abilities: &[Add, Overfill, AddShared, Combine],
    },
    // Refuses keys beyond its capacity and more than a few copies, so it is only built here;
    // churn.rs adds and removes.
    Subject {
        name: "cuckoo",
        made: Planned(|n, p| Plan::for_rate(Kind::Cuckoo, n.max(400), p.max(1e-8)).unwrap()),
        abilities: &[],
    },
    // The cases here fill no layer; growing.rs tests that, and its single writer.
    Subject {
        name: "growing",
        made: Planned(|n, p| Plan::for_rate(Kind::Growing, n, p).unwrap()),
        abilities: &[Add],
    },
    Subject {
        name: "fuse",
        made: Listed(Kind::Fuse),
        abilities: &[],
    },
    Subject {
        name: "ribbon",
        made: Listed(Kind::Ribbon),
        abilities: &[],
    },
    Subject {
        name: "cascade",
        made: Listed(Kind::Cascade),
        abilities: &[],
    },
    // For more keys than any case has, so that none is forgotten; window.rs tests the rest.
    Subject {
        name: "window",
        made: Planned(|n, p| {
            let options = WindowOptions::new(Span::Keys(1 << 20));
            Plan::window(&options, n, p).unwrap()
        }),
        abilities: &[Add, AddShared],
    },
];

/// The textbook's size with this many lines per key, instead of the exact plan. Far cheaper to
/// compute, and rates are tested elsewhere.
fn blocked(n: u64, p: f64, lines_per_key: u32) -> Plan {
    let hashes = (-libm::log2(p) / f64::from(lines_per_key))
        .round()
        .clamp(1.0, 8.0);
    let lines = (plan::classic::bits(n, p) / 512.0).ceil().max(1.0) as u64;
    let lines = lines.next_multiple_of(lines_per_key.into());
    let shape = BlockedShape::new(lines, hashes as u32, lines_per_key).unwrap();
    Plan::of(shape, n)
}

/// The subjects with this ability.
pub(crate) fn subjects(ability: Ability) -> impl Iterator<Item = &'static Subject> {
    SUBJECTS
        .iter()
        .filter(move |s| s.abilities.contains(&ability))
}

impl Subject {
    pub(crate) fn can(&self, ability: Ability) -> bool {
        self.abilities.contains(&ability)
    }

    /// An empty filter; needs [`Ability::Add`].
    pub(crate) fn empty(&self, capacity: u64, rate: f64, hasher: Hasher) -> AnyFilter {
        match self.made {
            Planned(plan) => AnyFilter::from_plan(&plan(capacity, rate), hasher).unwrap(),
            Listed(kind) => panic!("{kind}: is never empty"),
        }
    }

    /// A filter that holds the keys of a case, however its kind is built.
    pub(crate) fn build(&self, case: &Case) -> AnyFilter {
        if let Listed(kind) = self.made {
            let list = ListBuilder::with_hasher(kind, case.rate, case.hasher).unwrap();
            let mut list = list.threads(1);
            list.add_all(&case.keys).unwrap();
            if kind == Kind::Cascade {
                list.allow_all(numbered("allowed", usual_or(100, 10)))
                    .unwrap();
            }
            return list.build().unwrap();
        }
        let mut filter = self.empty(case.capacity, case.rate, case.hasher);
        let mut keys = case.keys.clone();
        if !self.can(Add) {
            keys.sort_unstable();
            keys.dedup();
        }
        let mut new = vec![false; keys.len()];
        filter.insert_many(&keys, &mut new).unwrap();
        filter
    }

    /// Whether keys can be added this way.
    pub(crate) fn takes(&self, way: Way) -> bool {
        self.can(Add) && (self.can(AddShared) || matches!(way, Way::One | Way::Many | Way::Hashes))
    }
}

/// Runs the same expression for every kind, for methods that [`AnyFilter`] doesn't offer.
macro_rules! of_kind {
    ($any:expr, $filter:ident => $run:expr) => {
        match $any {
            AnyFilter::Bloom($filter) => $run,
            AnyFilter::Blocked($filter) => $run,
            AnyFilter::Counting($filter) => $run,
            other => panic!("{}: has no such method", other.kind()),
        }
    };
}

/// Adds a key through the shared path.
pub(crate) fn insert_shared(filter: &AnyFilter, key: impl AsRef<[u8]>) -> bool {
    if let AnyFilter::Window(window) = filter {
        return window.insert(key, Moment::default());
    }
    of_kind!(filter, f => f.insert(key))
}

pub(crate) fn insert_hash(filter: &AnyFilter, hash: Hash) -> bool {
    if let AnyFilter::Window(window) = filter {
        return window.insert(hash, Moment::default());
    }
    of_kind!(filter, f => f.insert(hash))
}

pub(crate) fn contains_hash<B: Body>(filter: &AnyFilter<B>, hash: Hash) -> bool {
    filter.contains(hash)
}

pub(crate) fn insert_many_shared(filter: &AnyFilter, keys: &[Key], new: &mut [bool]) {
    if let AnyFilter::Window(window) = filter {
        let hashes: Vec<Hash> = keys.iter().map(|key| window.hasher().hash(key)).collect();
        return window.insert_many(&hashes, Moment::default(), new);
    }
    of_kind!(filter, f => f.insert_many(keys, new))
}

pub(crate) fn template(filter: &AnyFilter) -> AnyFilter {
    match filter {
        AnyFilter::Bloom(f) => AnyFilter::Bloom(f.template().unwrap()),
        AnyFilter::Blocked(f) => AnyFilter::Blocked(f.template().unwrap()),
        AnyFilter::Counting(f) => AnyFilter::Counting(f.template().unwrap()),
        AnyFilter::Growing(f) => AnyFilter::Growing(f.template().unwrap()),
        AnyFilter::Window(f) => AnyFilter::Window(f.template().unwrap()),
        other => panic!("{}: has no template", other.kind()),
    }
}

pub(crate) fn same_shape(a: &AnyFilter, b: &AnyFilter) -> bool {
    match (a, b) {
        (AnyFilter::Bloom(a), AnyFilter::Bloom(b)) => a.same_shape(b),
        (AnyFilter::Blocked(a), AnyFilter::Blocked(b)) => a.same_shape(b),
        (AnyFilter::Counting(a), AnyFilter::Counting(b)) => a.same_shape(b),
        (AnyFilter::Window(a), AnyFilter::Window(b)) => a.same_shape(b),
        (AnyFilter::Growing(_), AnyFilter::Growing(_)) => {
            a.shape() == b.shape() && a.hasher() == b.hasher()
        }
        _ => false,
    }
}

/// Looks up keys one by one and in a batch, which must agree.
pub(crate) fn ask<B: Body, K: AsRef<[u8]>>(filter: &AnyFilter<B>, keys: &[K]) -> Vec<bool> {
    let mut batch = vec![false; keys.len()];
    filter.contains_many(keys, &mut batch);
    for (key, found) in keys.iter().zip(&batch) {
        assert_eq!(filter.contains(key), *found, "single differs from batch");
    }
    batch
}

/// Whether all keys are found, one by one and in a batch.
pub(crate) fn has_all<B: Body, K: AsRef<[u8]>>(filter: &AnyFilter<B>, keys: &[K]) -> bool {
    ask(filter, keys).into_iter().all(|found| found)
}

/// How to add keys to a filter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Way {
    One,
    OneShared,
    Hash,
    Many,
    Hashes,
    ManyShared,
}

pub(crate) const WAYS: [Way; 6] = [
    Way::One,
    Way::OneShared,
    Way::Hash,
    Way::Many,
    Way::Hashes,
    Way::ManyShared,
];

impl Way {
    /// Adds the keys and returns the answers.
    pub(crate) fn insert(self, filter: &mut AnyFilter, keys: &[Key]) -> Vec<bool> {
        let mut new = vec![false; keys.len()];
        let hashes: Vec<Hash> = keys.iter().map(|k| filter.hasher().hash(k)).collect();
        match self {
            Self::One => return keys.iter().map(|k| filter.insert(k).unwrap()).collect(),
            Self::OneShared => return keys.iter().map(|k| insert_shared(filter, k)).collect(),
            Self::Hash => return hashes.iter().map(|h| insert_hash(filter, *h)).collect(),
            Self::Many => filter.insert_many(keys, &mut new).unwrap(),
            Self::Hashes => filter.insert_many(&hashes, &mut new).unwrap(),
            Self::ManyShared => insert_many_shared(filter, keys, &mut new),
        }
        new
    }
}

/// The parameters of a filter, and its keys: more or fewer than its capacity, because "never a
/// false no" holds at any number.
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) keys: Vec<Key>,
    pub(crate) capacity: u64,
    pub(crate) rate: f64,
    pub(crate) hasher: Hasher,
}

impl Case {
    /// How to open a saved filter of this case.
    pub(crate) fn open(&self) -> Open {
        match self.hasher {
            Hasher::Keyed {
                key,
                in_file: false,
                ..
            } => Open::new().key(key),
            _ => Open::new(),
        }
    }
}

/// Cases of any keys. Lengths around 128 matter: batches work in blocks.
pub(crate) fn cases() -> impl Strategy<Value = Case> {
    (keys(0..300), 1u64..400, 0.3f64..30.0, hashers()).prop_map(|(keys, capacity, bits, hasher)| {
        Case {
            keys,
            capacity,
            rate: libm::exp2(-bits),
            hasher,
        }
    })
}

/// Short keys repeat, long ones cover every path of the hash.
pub(crate) fn keys(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<Key>> {
    let key = prop_oneof![
        2 => prop::collection::vec(any::<u8>(), 0..2),
        6 => prop::collection::vec(any::<u8>(), 2..24),
        1 => prop::collection::vec(any::<u8>(), 24..300),
    ];
    prop::collection::vec(key, len.start..usual_or(len.end, len.end / 25))
}

/// A number: `usual`, or `few` under Miri, which is several hundred times slower.
pub(crate) fn usual_or<T>(usual: T, few: T) -> T {
    if cfg!(miri) { few } else { usual }
}

fn hashers() -> impl Strategy<Value = Hasher> {
    prop_oneof![
        any::<u64>().prop_map(Hasher::seeded),
        any::<[u8; 16]>().prop_map(|k| Hasher::keyed(SecretKey::new(k))),
        any::<[u8; 16]>().prop_map(|k| Hasher::keyed_apart(SecretKey::new(k))),
    ]
}

/// This many cases per property. Saves failures next to this file.
pub(crate) fn config(cases: u32) -> ProptestConfig {
    let kept = || FileFailurePersistence::WithSource("regressions");
    ProptestConfig {
        cases: usual_or(cases, 1),
        failure_persistence: (!cfg!(miri)).then(|| Box::new(kept()) as _),
        ..ProptestConfig::default()
    }
}

/// `count` keys that no other `salt` has.
pub(crate) fn numbered(salt: &str, count: usize) -> Vec<Key> {
    (0..count)
        .map(|i| format!("{salt}-{i}").into_bytes())
        .collect()
}
