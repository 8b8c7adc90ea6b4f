//! The output of `tamis plan` with a curve of rates, for the page's calculator. All numbers come from the library.

use crate::advice::{self, Advice, Given, Need, Question};
use crate::human;
use crate::server::Ways;
use serde_json::{Value, json};
use tamis::Plan;
use tamis::internals::raw::BloomShape;

/// The curve goes from a 16th of the keys to 16 times as many, in steps of a sixth of a doubling.
const STEPS: i32 = 24;
const STEPS_OF_A_DOUBLING: f64 = 6.0;

/// The answer of `GET /v1/plan` to a query: `keys=10M&rate=0.001`, `keys=10M&bits=96M&hashes=7`.
///
/// ```
/// let told = tamis_report::page::plan("keys=10M&rate=1%25")?;
/// assert_eq!(told["pick"], "blocked");
/// # Ok::<(), String>(())
/// ```
pub fn plan(query: &str) -> Result<Value, String> {
    if let Some(answer) = own_shape(query)? {
        return Ok(answer);
    }
    let asked = Asked::read(query)?;
    let advice = asked.question()?.answer()?;
    Ok(asked.tell(&advice))
}

/// The textbook's filter with the given m and k: `keys=10M&bits=96M&hashes=7`.
fn own_shape(query: &str) -> Result<Option<Value>, String> {
    let (mut keys, mut bits, mut hashes) = (None, None, None);
    for (name, value) in form_urlencoded::parse(query.as_bytes()) {
        let number = match &*name {
            "keys" => &mut keys,
            "bits" => &mut bits,
            "hashes" => &mut hashes,
            _ => return Ok(None),
        };
        let wrong = |error| format!("{name}: {error}");
        *number = Some(human::parse_count(&value).map_err(wrong)?);
    }
    let (Some(keys), Some(bits), Some(hashes)) = (keys, bits, hashes) else {
        return Ok(None);
    };
    let shape = u32::try_from(hashes)
        .map_err(|_| format!("hashes: expected at most {}, got {hashes}", u32::MAX))
        .and_then(|hashes| BloomShape::new(bits, hashes).map_err(|error| error.to_string()))?;
    let plan = Plan::of(shape, keys.max(1));
    Ok(Some(json!({
        "keys": human::count(plan.keys()),
        "size": human::size(plan.bytes()),
        "rate": human::rate(plan.rate()),
    })))
}

/// A query such as `keys=10M&rate=1%25&need=delete` or `keys=10M&need=forget&generations=8`; numbers are written as in
/// the command.
#[derive(Clone, Copy, Default)]
struct Asked {
    keys: Option<u64>,
    rate: Option<f64>,
    size: Option<u64>,
    need: Need,
}

impl Asked {
    fn read(query: &str) -> Result<Self, String> {
        let mut question = Self::default();
        let mut seen = Vec::new();
        let mut generations = None;
        for (name, value) in form_urlencoded::parse(query.as_bytes()) {
            let wrong = |error| format!("{name}: {error}");
            match &*name {
                "keys" => question.keys = Some(human::parse_count(&value).map_err(wrong)?),
                "rate" => question.rate = Some(human::parse_rate(&value).map_err(wrong)?),
                "size" => question.size = Some(human::parse_size(&value).map_err(wrong)?),
                "need" => {
                    question.need = match &*value {
                        "" => Need::Nothing,
                        "finished" => Need::Finished,
                        "delete" => Need::Delete,
                        "grow" => Need::Grow,
                        "forget" => Need::Forget {
                            generations: advice::USUAL_GENERATIONS,
                        },
                        _ => {
                            let text =
                                format!("expected finished, delete, grow or forget, got '{value}'");
                            return Err(wrong(text));
                        }
                    }
                }
                "generations" => {
                    let number = human::parse_count(&value).map_err(wrong)?;
                    generations = Some(u32::try_from(number).unwrap_or(u32::MAX));
                }
                _ => {
                    let text = "expected keys, rate, size, need or generations";
                    return Err(wrong(text.into()));
                }
            }
            if seen.contains(&name) {
                return Err(format!("{name}: given twice"));
            }
            seen.push(name);
        }
        if let Some(generations) = generations {
            question.divide(generations)?;
        }
        Ok(question)
    }

    /// Sets the number of generations of a window.
    fn divide(&mut self, generations: u32) -> Result<(), String> {
        let usual = advice::USUAL_GENERATIONS;
        let text = match self.need {
            Need::Forget { .. } if self.size.is_none() || generations == usual => {
                self.need = Need::Forget { generations };
                return Ok(());
            }
            Need::Forget { .. } => {
                format!(
                    "expected {usual} where a size is given, got {generations}; give keys and a rate for others"
                )
            }
            _ => "expected need=forget: only a window has generations".into(),
        };
        Err(format!("generations: {text}"))
    }

    fn question(&self) -> Result<Question, String> {
        match Given::new(self.keys, self.rate, self.size) {
            Some(given) => Ok(Question {
                given,
                need: self.need,
            }),
            None => Err("expected keys, or a rate and a size, or two of the three".into()),
        }
    }

    const fn forgets(&self) -> bool {
        matches!(self.need, Need::Forget { .. })
    }

    fn in_redis(&self) -> Option<Value> {
        let (Some(keys), None, false) = (self.keys, self.size, self.forgets()) else {
            return None;
        };
        let ways = Ways::new(keys, self.rate.unwrap_or(advice::USUAL_RATE));
        Some(json!({ "rows": ways.json(), "left_out": ways.left_out_json() }))
    }

    fn tell(&self, advice: &Advice) -> Value {
        let plans = advice.plans();
        let middle = advice.pick().keys() as f64;
        let keys: Vec<u64> = (-STEPS..=STEPS)
            .map(|step| (middle * (f64::from(step) / STEPS_OF_A_DOUBLING).exp2()).round() as u64)
            .filter(|keys| *keys > 0)
            .collect();
        let rates = |plan: &Plan| -> Vec<Option<f64>> { plan.rates_after(&keys).collect() };
        json!({
            // The numbers as understood.
            "asked": { "keys": self.keys, "rate": self.rate, "size": self.size },
            // As in `tamis plan --json`.
            "plans": advice.json(),
            // As in `tamis plan`.
            "rows": plans.iter().map(|plan| json!({
                "kind": plan.kind().name(),
                "keys": human::count(plan.keys()),
                "size": human::size(plan.bytes()),
                "bits_per_key": format!("{:.2}", plan.bits_per_key()),
                "cache_misses": advice::cache_misses(plan),
                "rate": human::rate(plan.rate()),
                "bits": human::count(advice::bits(plan)),
                "hashes": advice::hashes(plan),
                "for": advice::purpose(plan.kind()),
                "command": advice.command(plan),
            })).collect::<Vec<_>>(),
            // Suitable kinds that are impossible with these numbers, and why.
            "left_out": advice.left_out_json(),
            "pick": advice.pick().kind().name(),
            "advice": advice.lines(),
            // As in `tamis plan --redis --json`, if keys and a rate are given.
            "redis": self.in_redis(),
            "curve": {
                "keys": keys,
                "rates": plans.iter().map(|plan| json!({
                    "kind": plan.kind().name(),
                    "rates": rates(plan),
                })).collect::<Vec<_>>(),
            },
        })
    }
}
