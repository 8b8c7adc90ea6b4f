//! What a window remembers, as text and as JSON.

use crate::human;
use serde_json::{Value, json};
use tamis::{
    Moment, Window,
    body::Body,
    window::{Generation, Renewal, Span, WindowOptions},
};

/// `1d since first seen, in 8 generations`.
///
/// ```
/// use tamis::window::{Span, WindowOptions};
/// let options = WindowOptions::new(Span::Keys(10_000_000));
/// let text = tamis_report::window::describe(&options);
/// assert_eq!(text, "the last 10,000,000 keys, in 8 generations");
/// ```
pub fn describe(options: &WindowOptions) -> String {
    format!(
        "{}, in {}",
        remembered(options),
        human::counted(options.generation_count().into(), "generation")
    )
}

/// `1d since first seen`.
pub fn remembered(options: &WindowOptions) -> String {
    let since = match options.renewed() {
        Renewal::Within => "first",
        Renewal::Quiet => "last",
    };
    match (options.span(), options.renewed()) {
        (Span::Time(span), _) => format!("{} since {since} seen", human::span(span)),
        (Span::Keys(keys), Renewal::Within) => format!("the last {}", human::counted(keys, "key")),
        (Span::Keys(keys), Renewal::Quiet) => {
            format!(
                "the last {}, renewed when seen",
                human::counted(keys, "key")
            )
        }
    }
}

/// How precisely it forgets: `at most 3h later`.
pub fn band(options: &WindowOptions) -> String {
    let later = match (options.span(), options.band()) {
        (Span::Keys(keys), Span::Keys(step)) => match most_keys(keys, step) - keys {
            0 => return "exactly then".to_owned(),
            later => human::counted(later, "key"),
        },
        (_, Span::Time(time)) => human::span(time),
        (_, Span::Keys(step)) => human::counted(step, "key"),
    };
    format!("at most {later} later")
}

/// The number of keys that a window of keys remembers, which depends on how full its newest generation is: `the last 33
/// to 39 keys`. `None` for a window of time.
///
/// ```
/// use std::time::Duration;
/// use tamis::window::{Span, WindowOptions};
/// use tamis_report::window::last_keys;
/// let last = |keys| last_keys(&WindowOptions::new(Span::Keys(keys)));
/// assert_eq!(last(33).unwrap(), "the last 33 to 39 keys");
/// assert_eq!(last(8).unwrap(), "the last 8 keys");
/// let day = Span::Time(Duration::from_secs(86_400));
/// assert_eq!(last_keys(&WindowOptions::new(day)), None);
/// ```
pub fn last_keys(options: &WindowOptions) -> Option<String> {
    let (Span::Keys(keys), Span::Keys(step)) = (options.span(), options.band()) else {
        return None;
    };
    let most = human::counted(most_keys(keys, step), "key");
    Some(match most_keys(keys, step) {
        all if all == keys => format!("the last {most}"),
        _ => format!("the last {} to {most}", human::count(keys)),
    })
}

/// The most keys that a window remembers, with generations of `step` keys: those of the span, and all but one of the
/// newest generation.
fn most_keys(keys: u64, step: u64) -> u64 {
    (keys.div_ceil(step) + 1).saturating_mul(step) - 1
}

/// Whether a rate exceeds the promised one by more than the noise of counting bits.
pub fn is_over(rate_now: f64, promised: f64) -> bool {
    rate_now > 1.1 * promised
}

/// The lines of `tamis info` about the window.
pub(crate) fn lines<B: Body>(window: &Window<B>) -> Vec<(String, String)> {
    let latest = window.latest().map(|latest| latest.to_string());
    let latest = latest.map(|latest| ("latest".to_owned(), latest));
    lines_of(&window.options(), latest, &window.generations())
}

/// The same for a window elsewhere.
pub(crate) fn lines_of(
    options: &WindowOptions,
    latest: Option<(String, String)>,
    generations: &[Generation],
) -> Vec<(String, String)> {
    let mut lines = vec![
        ("remembers".to_owned(), describe(options)),
        ("forgets".to_owned(), band(options)),
    ];
    lines.extend(latest);
    for generation in generations {
        let start = match options.span() {
            Span::Time(_) => Moment::from_micros(generation.start).to_string(),
            Span::Keys(_) => format!("key {}", human::count(generation.start.unsigned_abs())),
        };
        let keys = human::counted(generation.keys, "key");
        lines.push(("generation".to_owned(), format!("from {start}: {keys}")));
    }
    lines
}

/// The options of a window as JSON: spans are in seconds or keys.
pub fn options_json(options: &WindowOptions) -> Value {
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
    })
}

/// The window as JSON.
pub(crate) fn json<B: Body>(window: &Window<B>) -> Value {
    let mut all = json_of(&window.options(), &window.generations());
    all["latest"] = window.latest().map(|latest| latest.to_string()).into();
    all["added"] = window.added().into();
    all
}

/// The same for a window elsewhere.
pub(crate) fn json_of(options: &WindowOptions, generations: &[Generation]) -> Value {
    let moment = |at: i64| match options.span() {
        Span::Time(_) => json!(Moment::from_micros(at).to_string()),
        Span::Keys(_) => json!(at),
    };
    let generations = generations.iter().map(|generation| {
        json!({
            "number": generation.number,
            "start": moment(generation.start),
            "end": moment(generation.end),
            "keys": generation.keys,
        })
    });
    let mut all = options_json(options);
    all["generations"] = generations.collect();
    all
}
