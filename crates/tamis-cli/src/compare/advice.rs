//! Which structure to recommend, by one rule that anybody can check against the table.
//!
//! Among the contenders that meet all needs and were not wrong more often than asked for:
//! 1. a hash set, if it takes at most so much memory for all keys: it is exact, and nothing is simpler;
//! 2. otherwise the fastest among the smallest and those at most a quarter larger. Speed means answering absent keys
//!    one at a time. Speeds that differ by less than a tenth, or by no more than two runs of the same did, are a tie. A
//!    tie goes to the kind that `tamis plan` picks, or to the smallest if that kind isn't tied, or if the smallest is
//!    exact. A database is on disk and far slower, so it is only recommended if nothing but the hash set meets the
//!    needs.
//!
//! So no filter is recommended for dense integers: their bitmap is the smallest, and can do more than filters.

use super::contender::{Contender, Need};
use super::report::{Comparison, Measured};
use crate::human;
use tamis::Kind;

/// How much larger than the smallest a faster contender may be.
const SLACK: f64 = 1.25;
/// Anything less than this much faster is a tie: another run could say the opposite.
const CLEARLY: f64 = 1.1;

/// What the user asks for.
pub(crate) struct Wanted<'a> {
    pub(crate) needs: &'a [Need],
    /// The most memory for an exact set.
    pub(crate) memory: u64,
}

pub(crate) struct Advice {
    pub(crate) pick: Option<Pick>,
    /// The pick if this need were added.
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
    /// Further needs that would change the pick.
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

/// Contenders between which speed decides: measured again, another of them could win.
pub(crate) fn rivals(comparison: &Comparison, wanted: &Wanted) -> Vec<Contender> {
    let candidates = candidates(comparison, wanted.needs);
    let small: Vec<&Candidate> = candidates.iter().filter(|one| one.is_small()).collect();
    match close(&small) {
        close if close.len() > 1 => close.iter().map(|one| one.contender).collect(),
        _ => Vec::new(),
    }
}

struct Candidate<'a> {
    contender: Contender,
    size: u64,
    measured: &'a Measured,
}

/// The contenders that meet the needs.
fn candidates<'a>(comparison: &'a Comparison, needs: &[Need]) -> Vec<Candidate<'a>> {
    let all = comparison.scale();
    comparison
        .measured()
        .filter(|(contender, _)| needs.iter().all(|need| contender.serves(*need)))
        // The cascade has seen the questions, so its error rate on others is unknown; and one hash is never better than
        // several.
        .filter(|(contender, _)| *contender != Contender::Filter(Kind::Cascade))
        .filter(|(contender, _)| *contender != Contender::OneHash)
        .filter(|(_, measured)| !measured.exceeds(comparison.rate))
        .map(|(contender, measured)| Candidate {
            contender,
            size: if contender.is_sized_by_keys() {
                (measured.size as f64 * all) as u64
            } else {
                measured.size
            },
            measured,
        })
        .collect()
}

fn pick(comparison: &Comparison, needs: &[Need], memory: u64) -> Option<Pick> {
    let candidates = candidates(comparison, needs);
    let hash_set = candidates
        .iter()
        .find(|one| one.contender == Contender::HashSet);
    if let Some(set) = hash_set.filter(|set| set.size <= memory) {
        return Some(set.pick(format!(
            "few keys, {}; it is never wrong, and can do whatever else you need",
            set.size_of_all(comparison)
        )));
    }
    let small: Vec<&Candidate> = candidates.iter().filter(|one| one.is_small()).collect();
    if let Some(best) = best(&small, needs) {
        return Some(best.pick(why(comparison, best, &small)));
    }
    let databases: Vec<&Candidate> = candidates
        .iter()
        .filter(|one| one.contender.is_database())
        .collect();
    match (best(&databases, needs), hash_set) {
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

    /// Neither the hash set nor a database.
    fn is_small(&self) -> bool {
        self.contender != Contender::HashSet && !self.contender.is_database()
    }

    /// `192 kB for all 3,535 keys`: the table only has the size for the held keys.
    fn size_of_all(&self, comparison: &Comparison) -> String {
        let size = human::size(self.size);
        if self.size == self.measured.size {
            return size;
        }
        let keys = human::counted(comparison.keys.distinct, "key");
        format!("{size} for all {keys}")
    }

    fn speed(&self) -> f64 {
        self.measured.answers.speed()
    }

    /// Whether it is faster by more than another run could change.
    fn is_clearly_faster(&self, other: &Candidate) -> bool {
        let noise = self.measured.noise.max(other.measured.noise);
        self.speed() > other.speed() * CLEARLY.max(noise)
    }
}

/// The smallest, and those not much larger.
fn close<'a, 'c>(candidates: &[&'c Candidate<'a>]) -> Vec<&'c Candidate<'a>> {
    let smallest = candidates.iter().map(|one| one.size).min().unwrap_or(0) as f64;
    let is_close = |one: &&&Candidate| one.size as f64 <= smallest * SLACK;
    candidates.iter().filter(is_close).copied().collect()
}

/// Among those that none clearly beats, the kind that `tamis plan` picks, or the smallest.
fn best<'a, 'c>(candidates: &[&'c Candidate<'a>], needs: &[Need]) -> Option<&'c Candidate<'a>> {
    let close = close(candidates);
    let fast = close
        .iter()
        .filter(|one| !close.iter().any(|other| other.is_clearly_faster(one)));
    let smallest = *fast.clone().min_by_key(|one| one.size)?;
    let planned = fast
        .copied()
        .find(|one| one.contender == Contender::Filter(planned(needs)));
    Some(
        planned
            .filter(|_| smallest.contender.is_filter())
            .unwrap_or(smallest),
    )
}

/// The kind that `tamis plan` picks for the same needs.
fn planned(needs: &[Need]) -> Kind {
    match needs {
        needs if needs.contains(&Need::Grow) => Kind::Growing,
        needs if needs.contains(&Need::Delete) => Kind::Cuckoo,
        needs if needs.contains(&Need::Add) => Kind::Blocked,
        _ => Kind::Fuse,
    }
}

fn why(comparison: &Comparison, best: &Candidate, all: &[&Candidate]) -> String {
    let size = best.size_of_all(comparison);
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
                Some(other) if other.contender != best.contender => {
                    let more = (best.size as f64 / other.size as f64 - 1.0) * 100.0;
                    let name = other.contender.name();
                    if best.is_clearly_faster(other) {
                        let faster = (best.speed() / other.speed() - 1.0) * 100.0;
                        format!(", {more:.0} % more than {name}, and {faster:.0} % faster")
                    } else {
                        format!(
                            ", {more:.0} % more than {name}; as fast (a tie), and what `tamis plan` picks"
                        )
                    }
                }
                _ => match tied_with(best, all) {
                    ties if ties.is_empty() => ", the smallest".into(),
                    ties => format!(", the smallest; no faster: {} (a tie)", ties.join(", ")),
                },
            };
            format!("{size}, {bits:.2} bits a key{beside}")
        }
    }
}

/// Contenders that are slightly larger and slightly faster.
fn tied_with(best: &Candidate, all: &[&Candidate]) -> Vec<&'static str> {
    close(all)
        .iter()
        .filter(|one| one.contender != best.contender && one.speed() >= best.speed())
        .map(|one| one.contender.name())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::keys::Keys;
    use super::super::report::{Answers, Asked, Refusal, Row};
    use super::*;

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
                noise: 1.0,
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
            for_keys: 100_000_000,
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
    fn what_is_said_agrees_with_the_table() {
        let why = |rows| {
            let wanted = Wanted {
                needs: &[],
                memory: 0,
            };
            let pick = give(&comparison(rows), &wanted).pick.unwrap();
            (pick.contender.name(), pick.size, pick.why)
        };
        // Clearly faster; sizes are for all keys, of which half are held.
        let (name, size, text) = why(vec![
            row("fuse", 1100, 12.0, 8),
            row("ribbon", 1000, 10.0, 8),
        ]);
        assert_eq!((name, size), ("fuse", 2200));
        assert_eq!(
            text,
            "2.20 kB for all 2,000 keys, 8.80 bits a key, 10 % more than ribbon, and 20 % faster"
        );
        // A tie: the next run may say the opposite, so the advice follows `tamis plan`.
        for speed in [9.5, 10.5] {
            let (name, _, text) = why(vec![
                row("fuse", 1100, speed, 8),
                row("ribbon", 1000, 10.0, 8),
            ]);
            assert_eq!(name, "fuse");
            assert!(
                text.contains("10 % more than ribbon; as fast (a tie)"),
                "{text}"
            );
        }
        // Without that kind, the smallest.
        let (name, _, text) = why(vec![
            row("bloom", 1200, 10.5, 8),
            row("ribbon", 1000, 10.0, 8),
        ]);
        assert_eq!(name, "ribbon");
        assert!(text.contains("no faster: bloom (a tie)"), "{text}");
        // A difference no larger than between two runs of the same is a tie, too.
        for (noise, best) in [(1.1, "ribbon"), (1.6, "fuse")] {
            let mut ribbon = row("ribbon", 1000, 15.0, 8);
            ribbon.result.as_mut().unwrap().noise = noise;
            let (name, _, text) = why(vec![row("fuse", 1100, 10.0, 8), ribbon]);
            assert_eq!(name, best, "{text}");
        }
        let rivals = |comparison: &Comparison| {
            let wanted = Wanted {
                needs: &[],
                memory: 0,
            };
            rivals(comparison, &wanted)
        };
        assert_eq!(rivals(&urls()).len(), 2); // fuse and ribbon
        assert!(rivals(&comparison(vec![row("ribbon", 1000, 10.0, 8)])).is_empty());
    }

    /// For more keys, filters get the size from `tamis plan`; others scale in proportion.
    #[test]
    fn sizes_for_more_keys() {
        let mut all = urls();
        all.rows.push(row("one-hash", 12_440, 9.0, 10));
        all.rows.push(row("bitmap", 250, 9.0, 0));
        for (name, bytes) in [
            ("hash-set", 6_000_000_000),
            ("digests", 1_600_000_000),
            ("one-hash", 1_243_739_520),
            ("bloom", 119_813_248),
            // Its range covers all keys, half of which are held.
            ("bitmap", 12_500_000),
        ] {
            let contender = Contender::parse(name).unwrap();
            let mut rows = all.measured();
            let (_, measured) = rows.find(|(one, _)| *one == contender).unwrap();
            let size = all.size_for(contender, measured, 100_000_000);
            assert!(size.abs_diff(bytes) < 1000, "{name}: {size}");
        }
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
        // A bitmap is already sized for all keys; the filters hold half.
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
