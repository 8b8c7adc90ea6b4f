//! What a window remembers at a moment, and how old that is.

use serde_json::{Value, json};
use tamis::{Moment, Window, body::Body, window::Span};

/// Updates the generations in a window's description to those that a query covers now, newest first, including empty
/// ones. Each gets the age of its oldest keys: in seconds, or in keys that were new since. A window forgets even if no
/// keys are added; if it has keys later than `now`, the latest key counts.
pub fn bring_up_to_date<B: Body>(told: &mut Value, window: &Window<B>, now: Moment) {
    let options = window.options();
    let (now, step, is_time) = match options.band() {
        Span::Keys(step) => (window.added() as i64, step as i64, false),
        Span::Time(step) => {
            let now = now.max(window.latest().unwrap_or(Moment::MIN));
            (now.micros(), step.as_micros() as i64, true)
        }
    };
    let edge = |at| {
        if is_time {
            json!(Moment::from_micros(at).to_string())
        } else {
            json!(at)
        }
    };
    let count = options.generation_count();
    let known = told["generations"].take();
    let one = |number: i64| {
        let start = number.saturating_mul(step);
        let found = known.as_array().into_iter().flatten();
        let found = found.into_iter().find(|one| one["number"] == number);
        let mut one = found.cloned().unwrap_or_else(|| {
            json!({
                "number": number,
                "start": edge(start),
                "end": edge(start.saturating_add(step)),
                "keys": 0,
            })
        });
        one["age"] = json!(now.saturating_sub(start) as f64 / if is_time { 1e6 } else { 1.0 });
        one
    };
    let newest = now.div_euclid(step);
    let oldest = newest.saturating_sub(i64::from(count));
    let all = (oldest..=newest).rev();
    let all = all.filter(|number| is_time || *number >= 0);
    told["generations"] = all.map(one).collect();
}
