//! How many wrong answers per day a rate means.

use crate::advice::Need;
use crate::human;
use serde_json::{Value, json};
use tamis::{Kind, Plan};

/// Queries per day.
#[derive(Clone, Copy, Debug)]
pub(super) struct Load(u64);

const DAYS_OF_A_YEAR: f64 = 365.25;

impl Load {
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        match human::parse_count(text)? {
            0 => Err(format!("expected at least 1 question a day, got {text}")),
            questions => Ok(Self(questions)),
        }
    }

    /// The expected wrong answers per day, if every query is for a key that was never added.
    fn expected(self, rate: f64) -> f64 {
        rate * self.0 as f64
    }

    /// The same in a few words.
    pub(super) fn wrong(self, rate: f64) -> String {
        match self.expected(rate) {
            0.0 => "0".into(),
            wrong if wrong >= 0.5 => human::expectation(three_digits(wrong)),
            wrong => {
                let days = 1.0 / wrong;
                let (time, unit) = match days / DAYS_OF_A_YEAR {
                    ..2.0 => (days, "day"),
                    years => (years, "year"),
                };
                let time = three_digits(time).round() as u64;
                format!("1 in {}", human::counted(time, unit))
            }
        }
    }

    /// `100 a day`, `1 in 10 days`.
    fn in_a_sentence(self, rate: f64) -> String {
        match self.wrong(rate) {
            rare if rare.starts_with("1 in ") => rare,
            wrong => wrong + " a day",
        }
    }

    /// What the column's numbers assume, and what is promised.
    pub(super) fn lines(self, plan: &Plan, need: Need) -> Vec<String> {
        let kind = plan.kind();
        let unknown = match kind {
            Kind::Window => "the window doesn't remember",
            _ => "was never added",
        };
        let mut lines = vec![format!(
            "Wrong a day: rate × {}, if each is about a key that {unknown}; other questions are always answered rightly.",
            self.questions(),
        )];
        // The promised rate may be higher than the expected one.
        let [most, expected] = [plan.promise(), plan.rate()].map(|rate| self.in_a_sentence(rate));
        if most != expected {
            let always = match kind {
                Kind::Growing => ", however many keys come",
                Kind::Window => ", however keys come",
                _ => "",
            };
            lines.push(format!(
                "The promised rate of {} is at most {most}{always}.",
                human::rate(plan.promise()),
            ));
        }
        if need == Need::Finished {
            lines.push(
                "Keys on the list of `tamis build --allow` are never answered wrongly, either: don't count questions about them."
                    .into(),
            );
        }
        lines
    }

    /// The line for filters in Redis, which all have one rate.
    pub(super) fn in_redis(self, rate: f64) -> String {
        format!(
            "Wrong answers: at most {}, the rate of {} × {}, if each is about a key that was never added.",
            self.in_a_sentence(rate),
            human::rate(rate),
            self.questions(),
        )
    }

    fn questions(self) -> String {
        human::counted(self.0, "question")
    }

    /// Adds the number to a row for programs; a kind that was left out has no rate.
    pub(super) fn add_to(self, row: &mut Value) {
        if let Some(rate) = row["rate"].as_f64() {
            row["wrong_per_day"] = json!(self.expected(rate));
        }
    }
}

/// Rounds to three digits, like rates.
fn three_digits(number: f64) -> f64 {
    let step = 10f64.powi(number.log10().floor() as i32 - 2);
    (number / step).round() * step
}
