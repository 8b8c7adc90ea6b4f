//! What a filter shall be: said in a few calls, and then planned, created or built.

use crate::memory::{given, reply, reply_error};
use std::cell::Cell;
use std::time::Duration;
use tamis::{
    Error, Hasher, KeyRule, Kind, Plan, SecretKey,
    window::{Renewal, Span, WindowOptions},
};

/// A number that was not given is NaN.
#[derive(Clone, Copy)]
struct Wish {
    kind: u32,
    keys: f64,
    rate: f64,
    bytes: f64,
    window: Option<WindowOptions>,
    hasher: Hasher,
}

thread_local! {
    static WISH: Cell<Wish> = const {
        Cell::new(Wish {
            kind: 0,
            keys: f64::NAN,
            rate: f64::NAN,
            bytes: f64::NAN,
            window: None,
            hasher: Hasher::seeded(0),
        })
    };
}

fn change(change: impl FnOnce(&mut Wish)) {
    WISH.with(|cell| {
        let mut wish = cell.get();
        change(&mut wish);
        cell.set(wish);
    });
}

/// The kind and the size: two of keys, rate and bytes.
#[unsafe(no_mangle)]
pub extern "C" fn wish_size(kind: u32, keys: f64, rate: f64, bytes: f64) {
    change(|wish| {
        *wish = Wish {
            kind,
            keys,
            rate,
            bytes,
            window: None,
            hasher: Hasher::seeded(0),
        };
    });
}

/// A window of milliseconds, or of keys.
#[unsafe(no_mangle)]
pub extern "C" fn wish_window(span: f64, by_keys: bool, generations: u32, quiet: bool) {
    let span = if by_keys {
        Span::Keys(span as u64)
    } else {
        Span::Time(Duration::from_micros((span * 1000.0).round() as u64))
    };
    let mut options = WindowOptions::new(span).generations(generations);
    if quiet {
        options = options.renewal(Renewal::Quiet);
    }
    change(|wish| wish.window = Some(options));
}

/// The seed, or the secret at an address that is not 0.
///
/// # Safety
/// At the address are 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wish_hash(seed: u64, secret: *const u8, apart: bool) {
    // SAFETY: the caller's promise.
    let hasher = match unsafe { secret_at(secret) } {
        Some(secret) if apart => Hasher::keyed_apart(secret),
        Some(secret) => Hasher::keyed(secret),
        None => Hasher::seeded(seed),
    };
    change(|wish| wish.hasher = hasher.with_rule(*wish.hasher.rule()));
}

/// Puts a random secret at an address; whether there is one.
///
/// # Safety
/// At the address are 16 bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn random_secret(at: *mut [u8; 16]) -> bool {
    let Some(secret) = reply_error(SecretKey::random()) else {
        return false;
    };
    // SAFETY: the caller's promise.
    unsafe { *at = *secret.as_bytes() };
    true
}

/// How keys are made.
#[unsafe(no_mangle)]
pub extern "C" fn wish_rule(ignore_case: bool, url: bool, values: u32) -> bool {
    let mut rule = KeyRule::EXACT;
    if ignore_case {
        rule = rule.ignore_case();
    }
    if url {
        rule = rule.url();
    }
    let Some(rule) = rule.of_values(values as usize) else {
        reply(format!("values of a key: expected 1 to 255, got {values}"));
        return false;
    };
    change(|wish| wish.hasher = wish.hasher.with_rule(rule));
    true
}

/// The secret at an address, unless that is 0.
///
/// # Safety
/// There are 16 bytes.
pub(crate) unsafe fn secret_at(secret: *const u8) -> Option<SecretKey> {
    if secret.is_null() {
        return None;
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { given(secret, 16) };
    bytes.try_into().ok().map(SecretKey::new)
}

pub(crate) fn kind_of(number: u32) -> Kind {
    let known = Kind::ALL.into_iter().find(|kind| *kind as u32 == number);
    known.unwrap_or(Kind::Blocked)
}

/// What was wished for, planned, and its hasher.
pub(crate) fn planned() -> Result<(Plan, Hasher), Error> {
    let wish = WISH.get();
    let kind = kind_of(wish.kind);
    let (keys, rate, bytes) = (wish.keys, wish.rate, wish.bytes);
    let plan = match wish.window {
        Some(window) => Plan::window(&window, keys as u64, rate),
        _ if bytes.is_nan() => Plan::for_rate(kind, keys as u64, rate),
        _ if rate.is_nan() => Plan::for_size(kind, keys as u64, bytes as u64),
        _ => Plan::for_rate_in_size(kind, rate, bytes as u64),
    };
    Ok((plan?, wish.hasher))
}

/// The kind, rate and hasher of a finished list.
pub(crate) fn finished() -> (Kind, f64, Hasher) {
    let wish = WISH.get();
    (kind_of(wish.kind), wish.rate, wish.hasher)
}

/// Leaves as JSON what was wished for, planned.
#[unsafe(no_mangle)]
pub extern "C" fn plan() -> bool {
    let Some((plan, _)) = reply_error(planned()) else {
        return false;
    };
    reply(format!(
        r#"{{"kind":"{}","keys":{},"rate":{:e},"promise":{:e},"bytes":{},"bitsPerKey":{},"hashes":{}}}"#,
        plan.kind(),
        plan.keys(),
        plan.rate(),
        plan.promise(),
        plan.bytes(),
        plan.bits_per_key(),
        plan.hashes(),
    ));
    true
}
