//! What a window remembers, and since when.

use serde_json::{Value, json};
use tamis::{AnyFilter, Moment, Renewal, Span, Window};

/// `null` for kinds that forget nothing.
pub(crate) fn of(filter: &AnyFilter) -> Value {
    let AnyFilter::Window(window) = filter else {
        return Value::Null;
    };
    let options = window.options();
    let number = |span| match span {
        Span::Time(time) => json!(time.as_secs_f64()),
        Span::Keys(keys) => json!(keys),
    };
    json!({
        "by": match options.span() {
            Span::Time(_) => "time",
            Span::Keys(_) => "keys",
        },
        "renewal": match options.renewed() {
            Renewal::Within => "within",
            Renewal::Quiet => "quiet",
        },
        "span": number(options.span()),
        "band": number(options.band()),
        "generation_count": options.generation_count(),
        "latest": window.latest().map(|latest| latest.to_string()),
        "added": window.added(),
        "generations": generations(window),
    })
}

/// All generations that a question reaches now, newest first, also those without keys. Ages are
/// those of the oldest keys: in seconds, or in keys that were new since.
fn generations(window: &Window) -> Vec<Value> {
    let told = window.generations();
    let options = window.options();
    let (now, step, is_time) = match options.band() {
        Span::Keys(step) => (window.added() as i64, step as i64, false),
        // A window that nobody adds to forgets as well.
        Span::Time(step) => {
            let now = Moment::now().max(window.latest().unwrap_or(Moment::MIN));
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
    let one = |number: i64| {
        let start = number * step;
        let found = told.iter().find(|one| one.number == number);
        json!({
            "number": number,
            "start": edge(start),
            "end": edge(start + step),
            "age": (now - start) as f64 / if is_time { 1e6 } else { 1.0 },
            "keys": found.map_or(0, |one| one.keys),
            "capacity": window.capacity().div_ceil(count.into()),
            "fill": found.map_or(0.0, |one| one.fill),
        })
    };
    let newest = now.div_euclid(step);
    let all = (newest - i64::from(count)..=newest).rev();
    all.filter(|number| is_time || *number >= 0)
        .map(one)
        .collect()
}
