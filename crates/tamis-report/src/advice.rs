//! Advice on which filter to use and what it costs, for `tamis plan` and the page of `tamis serve`.

use crate::about::lines_of;
use crate::human;
use serde_json::{Value, json};
use tamis::internals::raw::Shape;
use tamis::{
    Kind, Plan,
    window::{Span, WindowOptions},
};

/// Two of three numbers, and what else the filter must do.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The numbers; they determine the third.
    pub given: Given,
    /// What else the filter must do.
    pub need: Need,
}

/// The rate if none is given.
pub const USUAL_RATE: f64 = 0.01;

/// Two of the number of keys, the rate and the size in bytes; or all three, where the size is a limit.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)]
pub enum Given {
    KeysAndRate { keys: u64, rate: f64 },
    KeysAndSize { keys: u64, size: u64 },
    RateAndSize { rate: f64, size: u64 },
    All { keys: u64, rate: f64, size: u64 },
}

impl Given {
    /// From the numbers given: two of them, all, or only the keys, with the usual rate of 1 %. `None` if there are too
    /// few.
    pub fn new(keys: Option<u64>, rate: Option<f64>, size: Option<u64>) -> Option<Self> {
        match (keys, rate, size) {
            (Some(keys), Some(rate), None) => Some(Self::KeysAndRate { keys, rate }),
            (Some(keys), None, None) => Some(Self::KeysAndRate {
                keys,
                rate: USUAL_RATE,
            }),
            (Some(keys), Some(rate), Some(size)) => Some(Self::All { keys, rate, size }),
            (Some(keys), None, Some(size)) => Some(Self::KeysAndSize { keys, size }),
            (None, Some(rate), Some(size)) => Some(Self::RateAndSize { rate, size }),
            _ => None,
        }
    }

    /// The plan for a kind, or why it isn't possible.
    fn plan(self, kind: Kind, need: Need) -> Result<Plan, String> {
        let for_rate = |keys, rate| match (kind, need) {
            (Kind::Window, Need::Forget { generations }) => {
                // The size is the same for any span.
                let options = WindowOptions::new(Span::Keys(keys)).generations(generations);
                Plan::window(&options, keys, rate)
            }
            _ => Plan::for_rate(kind, keys, rate),
        };
        let plan = match self {
            Self::All { keys, rate, size } => {
                let plan = for_rate(keys, rate).map_err(|error| error.to_string())?;
                if plan.bytes() > size {
                    let (takes, size) = (human::size(plan.bytes()), human::size(size));
                    return Err(format!("takes {takes} at this rate, more than {size}"));
                }
                return Ok(plan);
            }
            Self::KeysAndRate { keys, rate } => for_rate(keys, rate),
            Self::KeysAndSize { keys, size } => Plan::for_size(kind, keys, size),
            Self::RateAndSize { rate, size } => Plan::for_rate_in_size(kind, rate, size),
        };
        plan.map_err(|error| error.to_string())
    }
}

/// What else the filter must do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Need {
    /// Nothing else.
    #[default]
    Nothing,
    /// The list is complete: no keys will be added.
    Finished,
    /// Keys must be removable.
    Delete,
    /// The number of keys isn't known in advance.
    Grow,
    /// Keys expire: a window with this many generations. If a size is given, there are [`USUAL_GENERATIONS`].
    Forget {
        /// The number of generations.
        generations: u32,
    },
}

/// The generations of a window by default.
pub const USUAL_GENERATIONS: u32 = 8;

impl Need {
    /// The kinds that meet the need; the first is preferred if sizes are equal.
    const fn kinds(self) -> &'static [Kind] {
        match self {
            Self::Finished => &[Kind::Fuse, Kind::Ribbon, Kind::Blocked],
            Self::Delete => &[Kind::Cuckoo, Kind::Counting],
            Self::Grow => &[Kind::Growing, Kind::Blocked],
            Self::Forget { .. } => &[Kind::Window, Kind::Blocked],
            Self::Nothing => &[
                Kind::Blocked,
                Kind::Bloom,
                Kind::Fuse,
                Kind::Ribbon,
                Kind::Cuckoo,
                Kind::Counting,
                Kind::Growing,
            ],
        }
    }
}

/// The possible filters, and the recommended one.
pub struct Advice {
    asked: Question,
    plans: Vec<Plan>,
    left_out: Vec<(Kind, String)>,
    pick: usize,
    why: String,
}

impl Question {
    /// Plans every suitable kind; an error if none is possible.
    pub fn answer(self) -> Result<Advice, String> {
        let mut plans = Vec::new();
        let mut left_out = Vec::new();
        for &kind in self.need.kinds() {
            match self.given.plan(kind, self.need) {
                Ok(plan) => plans.push(plan),
                Err(why) => left_out.push((kind, why)),
            }
        }
        // Next to growing filters and windows, a blocked filter is listed only for comparison.
        let is_first = |kind| plans.first().is_some_and(|plan| plan.kind() == kind);
        let serves = match self.need {
            Need::Grow => is_first(Kind::Growing),
            Need::Forget { .. } => is_first(Kind::Window),
            _ => !plans.is_empty(),
        };
        if !serves {
            let (kind, why) = left_out.swap_remove(0);
            return Err(match self.given {
                Given::All { .. } => format!("no kind can do it: {kind} {why}"),
                _ => why,
            });
        }
        let (pick, why) = pick(&plans, self.need);
        Ok(Advice {
            asked: self,
            plans,
            left_out,
            pick,
            why,
        })
    }
}

impl Advice {
    /// The plans of all suitable kinds.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Suitable kinds that are impossible with these numbers, and why.
    pub fn left_out(&self) -> &[(Kind, String)] {
        &self.left_out
    }

    /// The kinds left out, as JSON.
    pub fn left_out_json(&self) -> Vec<Value> {
        let one = |(kind, why): &(Kind, String)| json!({ "kind": kind.name(), "left_out": why });
        self.left_out.iter().map(one).collect()
    }

    /// The recommended plan.
    pub fn pick(&self) -> &Plan {
        &self.plans[self.pick]
    }

    /// Why this one is recommended, when something simpler suffices, and what happens if it is overfilled; one line
    /// each.
    pub fn lines(&self) -> Vec<String> {
        let pick = self.pick();
        let mut lines = vec![format!("Pick {}: {}", pick.kind(), self.why)];
        lines.extend(when_not(pick));
        let may_overfill = !pick.kind().is_static() && pick.kind() != Kind::Growing;
        if matches!(
            self.asked.given,
            Given::KeysAndRate { .. } | Given::All { .. }
        ) && may_overfill
        {
            lines.push(match pick.kind() {
                Kind::Cuckoo => "It takes few more keys than that; then adding is refused.".into(),
                _ => format!(
                    "Twice the keys in the same filter would raise the rate to {}.",
                    human::rate(pick.rate_at(pick.keys().saturating_mul(2)))
                ),
            });
        }
        lines
    }

    /// The numbers of all plans, as JSON.
    pub fn json(&self) -> Vec<Value> {
        self.plans.iter().map(plan_json).collect()
    }

    /// The command that creates such a filter.
    pub fn command(&self, plan: &Plan) -> String {
        let kind = plan.kind();
        if kind.is_static() {
            let smallest = if kind == Kind::Ribbon {
                " --smallest"
            } else {
                ""
            };
            let rate = match self.asked.given {
                Given::KeysAndRate { .. } | Given::All { .. } => plan.promise(),
                _ => plan.rate(),
            };
            return format!("tamis build list.tamis keys.txt -p {rate}{smallest}");
        }
        let mut command = format!("tamis create seen.tamis --capacity {}", plan.keys());
        if let (
            Kind::Window,
            Need::Forget { generations },
            Given::KeysAndRate { .. } | Given::All { .. },
        ) = (kind, self.asked.need, self.asked.given)
        {
            command += &format!(" -p {} --within 24h", plan.promise());
            if generations != USUAL_GENERATIONS {
                command += &format!(" --generations {generations}");
            }
            return command;
        }
        match self.asked.given {
            Given::KeysAndSize { size, .. } => command += &format!(" --size {size}"),
            _ => command += &format!(" -p {}", plan.promise()),
        }
        if kind != Kind::Blocked {
            command += &format!(" --kind {kind}");
        }
        command
    }
}

/// The index of the recommended plan, and the reason.
fn pick(plans: &[Plan], need: Need) -> (usize, String) {
    let of = |kind| plans.iter().find(|plan| plan.kind() == kind);
    let first = &plans[0];
    match need {
        Need::Finished => {
            let ribbon = of(Kind::Ribbon).map(|ribbon| {
                format!(
                    " Ribbon: {}, and slower to build and to query; it pays where memory or \
                     transfer is expensive.",
                    compared(ribbon, first)
                )
            });
            let why = match first.kind() {
                Kind::Fuse => {
                    let why = "built by `tamis build`; two cache misses a key.".to_string();
                    why + &ribbon.unwrap_or_default()
                }
                Kind::Ribbon => "built by `tamis build --smallest`.".into(),
                _ => "the kinds for finished lists can't serve these numbers.".into(),
            };
            (0, why)
        }
        Need::Delete => match plans {
            [cuckoo, counting] => match better(counting, cuckoo) {
                // For very low rates, a cuckoo filter's widest slots are too small.
                Some(why) => (1, why),
                None => (
                    0,
                    format!(
                        "{} Take counting if a key is added more than a few times, or if several \
                         processes write the filter at the same time.\n\
                         Remove only keys that were added: removing any other key can remove one that was.",
                        better(cuckoo, counting).unwrap_or("the two cost the same.".into())
                    ),
                ),
            },
            _ => (
                0,
                "no other kind that can remove keys serves these numbers.".into(),
            ),
        },
        Need::Grow => (
            0,
            "it keeps the rate at any number of keys. A good guess saves memory and time: \
             each time it grows, a key costs one more probe."
                .into(),
        ),
        Need::Forget { generations } => (0, forgets(first, of(Kind::Blocked), generations)),
        Need::Nothing if first.kind().is_static() => (
            0,
            "of finished lists only; no kind that keys can be added to serves these numbers."
                .into(),
        ),
        Need::Nothing => (0, costs(first, of(Kind::Bloom))),
    }
}

/// How a window forgets, and what that costs.
fn forgets(window: &Plan, blocked: Option<&Plan>, generations: u32) -> String {
    let why = format!(
        "a key is remembered for the window, be it a minute or a year, and for up to \
         1/{generations} of it more."
    );
    let costs = blocked.map(|blocked| {
        format!(
            " What it costs to forget, next to a filter that forgets nothing: {}.",
            compared(window, blocked)
        )
    });
    why + &costs.unwrap_or_default()
}

/// The cost per key, compared with the textbook's filter.
fn costs(first: &Plan, bloom: Option<&Plan>) -> String {
    let misses = match cache_misses(first).as_str() {
        "1" => "one cache miss".into(),
        n => format!("{n} cache misses"),
    };
    let bloom = bloom.filter(|_| first.kind() != Kind::Bloom);
    let more = bloom.map(|bloom| {
        format!(
            " instead of up to {}, for {}",
            bloom.hashes(),
            compared(first, bloom)
        )
    });
    let layout = match first.shape() {
        Shape::Blocked(shape) => {
            let bits = human::counted(shape.hashes_per_line().into(), "bit");
            match shape.lines_per_key() {
                1 => format!(" Each key sets {bits} in one line of 64 bytes."),
                n => format!(" Each key sets {bits} in each of {n} lines of 64 bytes."),
            }
        }
        _ => String::new(),
    };
    format!("a key costs {misses}{}.{layout}", more.unwrap_or_default())
}

/// The differences from another plan, in memory per key and in rate.
fn compared(plan: &Plan, other: &Plan) -> String {
    let more = memory_over(plan, other) * 100.0;
    let memory = match more {
        more if more.abs() < 0.05 => None,
        more if more > 0.0 => Some(format!("{more:.1} % more memory than {}", other.kind())),
        less => Some(format!("{:.1} % less memory than {}", -less, other.kind())),
    };
    let rate = differs(plan.rate(), other.rate()).then(|| {
        let (rate, others) = (human::rate(plan.rate()), human::rate(other.rate()));
        format!("a rate of {rate} instead of {}'s {others}", other.kind())
    });
    match (memory, rate) {
        (Some(memory), Some(rate)) => format!("{memory} and {rate}"),
        (Some(memory), None) => memory,
        (None, Some(rate)) => format!("{rate} in the same memory"),
        (None, None) => format!("the memory and the rate of {}", other.kind()),
    }
}

/// How much more memory per key one plan takes, as a share of the other's.
fn memory_over(plan: &Plan, other: &Plan) -> f64 {
    plan.bits_per_key() / other.bits_per_key() - 1.0
}

/// Whether users would notice the difference: more than 1 %.
fn differs(a: f64, b: f64) -> bool {
    (a / b - 1.0).abs() > 0.01
}

/// Why one plan is better than the other, if it is: less memory per key, or the same memory and a lower rate.
fn better(plan: &Plan, other: &Plan) -> Option<String> {
    match memory_over(plan, other) {
        more if more < -0.01 => Some("it is the smaller one.".into()),
        more if more > 0.01 || plan.rate() >= other.rate() => None,
        _ => Some(format!(
            "it has the lower rate in the same memory, {} instead of {}.",
            human::rate(plan.rate()),
            human::rate(other.rate())
        )),
    }
}

/// The purpose of a kind in a few words.
pub const fn purpose(kind: Kind) -> &'static str {
    match kind {
        Kind::Blocked => "the default",
        Kind::Bloom => "the textbook",
        Kind::Fuse => "finished lists",
        Kind::Ribbon => "finished lists, smallest",
        Kind::Cuckoo => "removing keys",
        Kind::Counting => "removing, repeated keys",
        Kind::Growing => "an unknown number of keys",
        Kind::Window => "streams",
        _ => "",
    }
}

/// The number of cache lines that a key touches.
pub fn cache_misses(plan: &Plan) -> String {
    match plan.shape() {
        Shape::Blocked(shape) => shape.lines_per_key().to_string(),
        // A line has four cache lines, each with the counters of two words.
        Shape::Counting(shape) => {
            let of_a_line = (shape.hashes_per_line() / 2 + 1).min(4);
            format!("up to {}", shape.lines_per_key() * of_a_line)
        }
        Shape::Growing(shape) => human::counted(shape.layers().into(), "layer"),
        Shape::Fuse(_) | Shape::Cuckoo(_) | Shape::Window(_) => "2".into(),
        // Two groups of words, accessed one after the other.
        Shape::Ribbon(shape) => match shape.width() {
            ..=4 => "1 to 2".into(),
            width => format!("{} in a row", (width * 16).div_ceil(64) + 1),
        },
        _ => format!("up to {}", plan.hashes()),
    }
}

/// The number of bits, `m` in formulas.
pub fn bits(plan: &Plan) -> u64 {
    match plan.shape() {
        Shape::Bloom(shape) => shape.bits(),
        _ => plan.bytes().saturating_mul(8),
    }
}

/// The length of a key's fingerprint in bits, for kinds with fingerprints.
fn fingerprint(plan: &Plan) -> Option<u32> {
    match plan.shape() {
        Shape::Fuse(shape) => Some(shape.width()),
        Shape::Ribbon(shape) => Some(shape.width()),
        Shape::Cuckoo(shape) => Some(shape.width()),
        _ => None,
    }
}

/// The number of bits that a key sets, `k` in formulas, or the length of its fingerprint.
pub fn hashes(plan: &Plan) -> String {
    match fingerprint(plan) {
        Some(bits) => format!("{bits}-bit"),
        None => plan.hashes().to_string(),
    }
}

/// Cases where something simpler does the job exactly.
fn when_not(plan: &Plan) -> Vec<String> {
    let mut out = Vec::new();
    if plan.keys() <= 100_000 {
        out.push(format!(
            "Do you need a filter? An exact hash set of {} takes about {}; a filter pays when that is too much.",
            human::counted(plan.keys(), "key"),
            human::size(plan.keys().saturating_mul(64)),
        ));
    } else if plan.bits_per_key() > 60.0 {
        out.push(
            "Do you need a filter? At this rate 128-bit digests of the keys cost about 160 bits a \
             key and are exact in practice."
                .into(),
        );
    }
    // A bitmap doesn't forget.
    if plan.kind() != Kind::Window {
        out.push(format!(
            "Integers below {}? A plain bitmap is no larger, and exact.",
            human::count(plan.bytes().saturating_mul(8)),
        ));
    }
    out
}

fn plan_json(plan: &Plan) -> Value {
    let lines = lines_of(plan.shape());
    json!({
        "kind": plan.kind().name(),
        "keys": plan.keys(),
        "bytes": plan.bytes(),
        "bits": bits(plan),
        "bits_per_key": plan.bits_per_key(),
        "hashes": plan.hashes(),
        "fingerprint_bits": fingerprint(plan),
        "lines_per_key": lines.map(|(_, per_key, _)| per_key),
        "hashes_per_line": lines.map(|(_, _, per_line)| per_line),
        "rate": plan.rate(),
    })
}

#[cfg(test)]
mod tests;
