//! Commands on filters that forget, with the server's clock.
//!
//! Like for expiring keys, the clock is read once per command, and once for a whole script or transaction, which thus
//! has a single time. Changes go to replicas and append-only files with their time
//! (`BF.INSERT key AT microseconds NOCREATE ITEMS …`), so that they forget the same keys at the same time, whatever
//! their clocks say and whenever they replay it.

use super::api::{Call, clock};
use super::both;
use super::counters::{self, Counter};
use crate::error::Error;
use crate::window;
use std::sync::atomic::{AtomicI64, Ordering::Relaxed};
use tamis::{
    Moment, Window,
    window::{Renewal, Span, WindowOptions},
};

/// The shortest interval between warnings about a clock that is behind.
const WARN_EVERY: i64 = 60_000_000;

/// The time of a command that names none.
pub(super) fn now(call: &Call<'_>, window: &Window) -> Moment {
    static WARNED: AtomicI64 = AtomicI64::new(i64::MIN);
    let clock = clock();
    let at = window::moment(window, clock);
    let since = clock.micros().saturating_sub(WARNED.load(Relaxed));
    if at != clock && !(0..WARN_EVERY).contains(&since) {
        WARNED.store(clock.micros(), Relaxed);
        call.warn(&format!(
            "the clock is {:?} behind the latest addition to a window, whose time stands still until then: \
             nothing is lost, items stay that much longer",
            window::behind(window, clock)
        ));
    }
    at
}

/// Refuses a time in the future: the window would forget keys too early. Up to one generation is allowed, because
/// clocks differ.
pub(super) fn not_ahead(
    call: &Call<'_>,
    options: &WindowOptions,
    told: Option<Moment>,
) -> Result<(), Error> {
    let (most, clock) = (window::generation(options), clock());
    match told {
        Some(at) if at > clock + most && !call.must_obey() => Err(Error(
            format!(
                "ERR AT is {at}, more than a generation ({most:?}) ahead of the server's clock, \
                 {clock}: microseconds since 1970 are expected"
            )
            .into(),
        )),
        _ => Ok(()),
    }
}

/// Adds the items from an argument on; returns whether each was new.
pub(super) fn add(
    call: &Call<'_>,
    window: &mut Window,
    told: Option<Moment>,
    from: usize,
) -> Result<Vec<bool>, Error> {
    not_ahead(call, &window.options(), told)?;
    let at = told.unwrap_or_else(|| now(call, window));
    if window.is_late(at) {
        counters::count(Counter::BloomLate, (call.len() - from) as u64);
    }
    let added = window::insert_many(window, &call.all_bytes(from), at);
    counters::count(Counter::BloomAdds, added.new.len() as u64);
    if added.changed.contains(&true) {
        let micros = at.micros().to_string();
        let words = ["AT", &micros, "NOCREATE", "ITEMS"];
        let words = words.map(|word| call.string(word.as_bytes()));
        let mut all = vec![call.arguments()[1]];
        all.extend(words.iter().map(|word| word.get()));
        let items = call.arguments()[from..].iter().zip(&added.changed);
        all.extend(items.filter_map(|(item, changed)| changed.then_some(*item)));
        call.replicate(c"BF.INSERT", &all);
        call.notify(c"bloom.add");
    }
    Ok(added.new)
}

/// The RESERVE arguments that create the same kind of window.
pub(super) fn words(options: &WindowOptions) -> Vec<Vec<u8>> {
    let mut words = vec!["WINDOW".to_owned(), seconds(options)];
    words.push("GENERATIONS".to_owned());
    words.push(options.generation_count().to_string());
    if options.renewed() == Renewal::Quiet {
        words.push("QUIET".to_owned());
    }
    words.into_iter().map(String::into_bytes).collect()
}

/// Exact to the microsecond.
fn seconds(options: &WindowOptions) -> String {
    let Span::Time(span) = options.span() else {
        return String::new();
    };
    match span.subsec_micros() {
        0 => span.as_secs().to_string(),
        micros => {
            let text = format!("{}.{micros:06}", span.as_secs());
            text.trim_end_matches('0').to_owned()
        }
    }
}

/// BF.INFO key WINDOW.
pub(super) fn info(call: &Call<'_>, window: &Window) {
    let options = window.options();
    let quiet = options.renewed() == Renewal::Quiet;
    call.reply_map(6);
    let name = |name: &str| call.reply_bytes(name.as_bytes());
    name("Seconds");
    name(&seconds(&options));
    name("Generations");
    call.reply_count(options.generation_count().into());
    name("Quiet");
    call.reply_count(quiet.into());
    name("Latest");
    match window.latest() {
        Some(latest) => call.reply_integer(latest.micros()),
        None => call.reply_null(),
    }
    name("Clock behind");
    call.reply_count(window::behind(window, clock()).as_micros() as u64);
    name("Tables");
    call.reply_count(window.shape().table_count().into());
}

/// The lines of BF.DEBUG: one for the window, and one per generation with keys, the newest first.
pub(super) fn debug(call: &Call<'_>, window: &Window) -> Vec<String> {
    let (keys, rate) = (window.keys_at(now(call, window)), window.rate_now());
    let mut lines = vec![format!("size:{keys} rate:{}", both::shortest(rate))];
    let clock = clock().micros();
    lines.extend(window.generations().iter().map(|of| {
        let age = clock.saturating_sub(of.start) as f64 / 1e6;
        format!("generation:{} age:{age:.3} size:{}", of.number, of.keys)
    }));
    lines
}
