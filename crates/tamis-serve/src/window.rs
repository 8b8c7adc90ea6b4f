//! What a window remembers, and since when.

use serde_json::{Value, json};
use tamis::{AnyFilter, Generation, Moment, Renewal, Span, Window};

/// `null` for kinds that forget nothing.
pub(crate) fn of(filter: &AnyFilter) -> Value {
    let AnyFilter::Window(window) = filter else {
        return Value::Null;
    };
    let options = window.options();
    let (meaning, seconds, keys) = match (options.span(), options.renewed()) {
        (Span::Time(span), Renewal::Within) => ("within", Some(span.as_secs_f64()), None),
        (Span::Time(span), Renewal::Quiet) => ("quiet", Some(span.as_secs_f64()), None),
        (Span::Keys(keys), _) => ("last", None, Some(keys)),
    };
    json!({
        "meaning": meaning,
        "seconds": seconds,
        "keys": keys,
        "generations": options.generation_count(),
        "latest": window.latest().map(|latest| latest.to_string()),
        "remembered": generations(window),
    })
}

/// The generations that are still asked, newest first. Ages are those of their oldest keys: in
/// seconds, or in keys that were new since.
fn generations(window: &Window) -> Vec<Value> {
    let by_keys = matches!(window.options().span(), Span::Keys(_));
    // A window that nobody adds to forgets as well.
    let now = if by_keys {
        i64::try_from(window.added()).unwrap_or(i64::MAX)
    } else {
        let latest = window.latest().unwrap_or(Moment::MIN);
        Moment::now().max(latest).micros()
    };
    let oldest = |one: &Generation| {
        now.div_euclid((one.end - one.start).max(1))
            - i64::from(window.options().generation_count())
    };
    let mut all = window.generations();
    all.retain(|one| by_keys || one.number >= oldest(one));
    all.iter()
        .map(|one| {
            let age = now.saturating_sub(one.start).max(0);
            let time = |micros| json!(Moment::from_micros(micros).to_string());
            json!({
                "start": if by_keys { json!(one.start) } else { time(one.start) },
                "end": if by_keys { json!(one.end) } else { time(one.end) },
                "age": if by_keys { json!(age) } else { json!(age as f64 / 1e6) },
                "keys": one.keys,
                "capacity": one.capacity,
                "fill": one.fill,
            })
        })
        .collect()
}
