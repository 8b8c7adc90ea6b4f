//! What to take, by one rule that anybody can check against the table.
//!
//! Of those that can do all that is needed, and were not wrong more often than asked for:
//! 1. a hash set, if it takes at most so much memory for all keys: it is exact, and nothing is simpler;
//! 2. else the smallest, but of those at most a quarter larger the one that answers absent keys fastest, asked one at a
//!    time. A database is on disk and slower by far: it is taken if nothing else but the hash set can do it.
//!
//! So no filter is taken where integers are dense: their bitmap is the smallest, and can do what filters can't.

use super::contender::{Contender, Need};
use super::report::{Comparison, Measured};
use crate::human;
use std::cmp::Ordering;

/// How much larger than the smallest something may be, to be taken because it is faster.
const SLACK: f64 = 1.25;

/// What the user says.
pub(crate) struct Wanted<'a> {
    pub(crate) needs: &'a [Need],
    /// What an exact set may take.
    pub(crate) memory: u64,
}

pub(crate) struct Advice {
    pub(crate) pick: Option<Pick>,
    /// What it would be if this were needed, too.
    pub(crate) others: Vec<(Need, Option<Pick>)>,
}

pub(crate) struct Pick {
    pub(crate) contender: Contender,
    /// Bytes for all keys.
    pub(crate) size: u64,
    pub(crate) why: String,
}

pub(crate) fn give(comparison: &Comparison, wanted: &Wanted) -> Advice {
    let more = |need: &Need| !wanted.needs.contains(need);
    let with = |need: Need| {
        let needs = [wanted.needs, &[need]].concat();
        (need, pick(comparison, &needs, wanted.memory))
    };
    Advice {
        pick: pick(comparison, wanted.needs, wanted.memory),
        others: Need::ALL.into_iter().filter(more).map(with).collect(),
    }
}

impl Advice {
    /// Needs for which something else is to be taken.
    pub(crate) fn others(&self) -> Vec<(Need, Option<&Pick>)> {
        let name = |pick: Option<&Pick>| pick.map(|pick| pick.contender);
        let others = self
            .others
            .iter()
            .map(|(need, pick)| (*need, pick.as_ref()));
        others
            .filter(|(_, pick)| name(*pick) != name(self.pick.as_ref()))
            .collect()
    }
}

struct Candidate<'a> {
    contender: Contender,
    size: u64,
    measured: &'a Measured,
}

fn pick(comparison: &Comparison, needs: &[Need], memory: u64) -> Option<Pick> {
    let keys = &comparison.keys;
    let all = keys.distinct as f64 / keys.held.max(1) as f64;
    let candidates: Vec<Candidate> = comparison
        .measured()
        .filter(|(contender, _)| needs.iter().all(|need| contender.serves(*need)))
        // It has seen the questions, so how often it is wrong on others is not known.
        .filter(|(contender, _)| *contender != Contender::Filter(tamis::Kind::Cascade))
        .filter(|(_, measured)| !measured.exceeds(comparison.rate))
        .map(|(contender, measured)| Candidate {
            contender,
            size: match contender.is_sized_by_keys() {
                true => (measured.size as f64 * all) as u64,
                false => measured.size,
            },
            measured,
        })
        .collect();
    let hash_set = candidates
        .iter()
        .find(|one| one.contender == Contender::HashSet);
    if let Some(set) = hash_set.filter(|set| set.size <= memory) {
        return Some(set.pick(format!(
            "few keys, {} in all; it is never wrong, and can do whatever else you need",
            human::size(set.size)
        )));
    }
    let small: Vec<&Candidate> = candidates
        .iter()
        .filter(|one| one.contender != Contender::HashSet && !one.contender.is_database())
        .collect();
    if let Some(best) = best(&small) {
        return Some(best.pick(why(comparison, best, &small)));
    }
    let databases: Vec<&Candidate> = candidates
        .iter()
        .filter(|one| one.contender.is_database())
        .collect();
    match (best(&databases), hash_set) {
        (Some(database), set) => Some(database.pick(match set {
            Some(set) => format!(
                "on disk, since a hash set would take {} of memory",
                human::size(set.size)
            ),
            None => "on disk, the only one that can".into(),
        })),
        (None, Some(set)) => Some(set.pick("the only one that can".into())),
        (None, None) => None,
    }
}

impl Candidate<'_> {
    fn pick(&self, why: String) -> Pick {
        Pick {
            contender: self.contender,
            size: self.size,
            why,
        }
    }

    /// Of absent keys if there are any, else of present ones.
    fn speed(&self) -> f64 {
        let answers = &self.measured.answers;
        answers.absent.unwrap_or(answers.present).per_second
    }
}

/// The fastest of those that are not much larger than the smallest.
fn best<'a, 'c>(candidates: &[&'c Candidate<'a>]) -> Option<&'c Candidate<'a>> {
    let smallest = candidates.iter().map(|one| one.size).min()? as f64;
    let by_speed = |a: &&&Candidate, b: &&&Candidate| {
        a.speed().partial_cmp(&b.speed()).unwrap_or(Ordering::Equal)
    };
    let small = candidates
        .iter()
        .filter(|one| one.size as f64 <= smallest * SLACK);
    small.max_by(by_speed).copied()
}

fn why(comparison: &Comparison, best: &Candidate, all: &[&Candidate]) -> String {
    let size = human::size(best.size);
    let filters = all.iter().filter(|one| one.contender.is_filter());
    let next = filters.min_by_key(|one| one.size);
    let bits = comparison.bytes_per_key(best.measured.size) * 8.0;
    match (best.contender, next) {
        (Contender::Bitmap, Some(filter)) => format!(
            "dense integers, {size} of bits; it is never wrong, and a filter ({}) would take {}",
            filter.contender.name(),
            human::size(filter.size)
        ),
        (Contender::Bitmap, None) => format!("dense integers, {size} of bits; it is never wrong"),
        (Contender::Digests, _) => {
            format!(
                "{size}, 16 bytes per key; two keys sharing a 128-bit digest is not a realistic concern"
            )
        }
        _ => {
            let smallest = all.iter().min_by_key(|one| one.size);
            let beside = match smallest {
                Some(other) if other.contender != best.contender => format!(
                    ", {:.0} % more than {}, and faster",
                    (best.size as f64 / other.size as f64 - 1.0) * 100.0,
                    other.contender.name()
                ),
                _ => ", the smallest".into(),
            };
            format!("{size}, {bits:.2} bits a key{beside}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::keys::Keys;
    use super::super::report::{Answers, Asked, Refusal, Row};
    use super::*;
    use tamis::Kind;

    fn row(name: &str, size: u64, per_second: f64, yes: u64) -> Row {
        let asked = |yes| Asked {
            keys: 1000,
            yes,
            per_second,
        };
        Row {
            contender: Contender::parse(name).unwrap(),
            result: Ok(Measured {
                size,
                memory: None,
                build_memory: None,
                process_memory: None,
                baseline_memory: None,
                build_seconds: 1.0,
                answers: Answers {
                    present: asked(1000),
                    absent: Some(asked(yes)),
                    ..Answers::default()
                },
            }),
            commands: Vec::new(),
        }
    }

    fn comparison(rows: Vec<Row>) -> Comparison {
        Comparison {
            keys: Keys {
                records: 2000,
                distinct: 2000,
                is_sample: false,
                held: 1000,
                held_bytes: 10_000,
                absent: 1000,
                absent_is_given: false,
                overlapping: 0,
                range: None,
            },
            rate: 0.01,
            rows,
        }
    }

    fn urls() -> Comparison {
        comparison(vec![
            row("hash-set", 60_000, 9.0, 0),
            row("digests", 16_000, 3.0, 0),
            row("sqlite", 40_000, 1.0, 0),
            row("redb", 45_000, 2.0, 0),
            row("bloom", 1200, 5.0, 10),
            row("blocked", 1240, 9.0, 10),
            row("counting", 4960, 8.0, 10),
            row("cuckoo", 1270, 7.0, 10),
            row("growing", 2400, 4.0, 10),
            row("fuse", 950, 8.0, 8),
            row("ribbon", 880, 5.0, 8),
            row("cascade", 800, 99.0, 0),
        ])
    }

    fn picked(comparison: &Comparison, needs: &[Need], memory: u64) -> Option<Contender> {
        let wanted = Wanted { needs, memory };
        give(comparison, &wanted).pick.map(|pick| pick.contender)
    }

    #[test]
    fn the_need_decides() {
        let urls = urls();
        for (needs, kind) in [
            (&[][..], Kind::Fuse),
            (&[Need::Add], Kind::Blocked),
            (&[Need::Delete], Kind::Cuckoo),
            (&[Need::Grow], Kind::Growing),
        ] {
            assert_eq!(picked(&urls, needs, 0), Some(Contender::Filter(kind)));
        }
        assert_eq!(picked(&urls, &[Need::Exact], 0), Some(Contender::Digests));
        // SQLite is smaller, redb not much larger and faster.
        assert_eq!(picked(&urls, &[Need::List], 0), Some(Contender::Redb));
        let all = [Need::Exact, Need::Delete];
        assert_eq!(picked(&urls, &all, 0), Some(Contender::Redb));
    }

    #[test]
    fn a_small_hash_set_is_enough_for_anything() {
        // It holds half of the keys.
        assert_eq!(picked(&urls(), &[], 120_000), Some(Contender::HashSet));
        assert_ne!(picked(&urls(), &[], 119_999), Some(Contender::HashSet));
        let list = picked(&urls(), &[Need::List], 120_000);
        assert_eq!(list, Some(Contender::HashSet));
        let wanted = Wanted {
            needs: &[],
            memory: 120_000,
        };
        assert!(give(&urls(), &wanted).others().is_empty());
    }

    #[test]
    fn dense_integers_take_a_bitmap_and_sparse_ones_a_filter() {
        let with_bitmap = |size| {
            let mut all = urls();
            all.rows.push(row("bitmap", size, 20.0, 0));
            all
        };
        // A bitmap is as large for all keys; the filters hold half.
        for needs in [&[][..], &[Need::Delete], &[Need::List], &[Need::Exact]] {
            assert_eq!(
                picked(&with_bitmap(1700), needs, 0),
                Some(Contender::Bitmap)
            );
        }
        let sparse = with_bitmap(40_000);
        assert_eq!(picked(&sparse, &[], 0), Some(Contender::Filter(Kind::Fuse)));
    }

    #[test]
    fn what_failed_or_is_wrong_too_often_is_not_taken() {
        let mut all = urls();
        for row in &mut all.rows {
            match row.contender.name() {
                "fuse" => row.result = Err(Refusal::Failed("full disk".into())),
                "ribbon" => {
                    if let Ok(measured) = &mut row.result {
                        measured.answers.absent.as_mut().unwrap().yes = 90;
                    }
                }
                _ => {}
            }
        }
        assert_eq!(picked(&all, &[], 0), Some(Contender::Filter(Kind::Blocked)));
        all.rows.clear();
        assert_eq!(picked(&all, &[], 0), None);
    }
}
