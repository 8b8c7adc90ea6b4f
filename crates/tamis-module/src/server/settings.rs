//! The module's options: `tamis.*` of CONFIG, or words behind `loadmodule`.
//! They are about new keys; what exists has what it needs in itself.

use super::api::{RawString, api, log, string_bytes};
use crate::words;
use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_void};
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering::Relaxed};
use valkey_module::raw;

/// A whole number, or yes and no.
struct Number {
    name: &'static CStr,
    /// Its name in RedisBloom's options.
    alias: &'static str,
    default: i64,
    range: (i64, i64),
    flags: u32,
    is_bool: bool,
    value: AtomicI64,
}

const fn number(
    name: &'static CStr,
    alias: &'static str,
    default: i64,
    range: (i64, i64),
) -> Number {
    Number {
        name,
        alias,
        default,
        range,
        flags: raw::REDISMODULE_CONFIG_DEFAULT,
        is_bool: false,
        value: AtomicI64::new(default),
    }
}

const fn boolean(name: &'static CStr) -> Number {
    let mut option = number(name, "", 0, (0, 1));
    option.is_bool = true;
    option
}

const MOST_KEYS: i64 = words::MOST_KEYS as i64;

static COMPATIBLE: Number = boolean(c"compatible");
static SECRET: Number = boolean(c"secret");
static BF_SIZE: Number = number(c"bf-initial-size", "INITIAL_SIZE", 100, (1, MOST_KEYS));
static BF_EXPANSION: Number = number(c"bf-expansion-factor", "", 2, (0, 32768));
static CF_SIZE: Number = number(c"cf-initial-size", "", 1024, (2, MOST_KEYS));
/// RedisBloom's own default, 1, is for its layout.
static CF_EXPANSION: Number = number(c"cf-expansion-factor", "", -1, (-1, 32768));
static CF_BUCKET: Number = number(c"cf-bucket-size", "", 2, (1, 255));
static CF_KICKS: Number = number(c"cf-max-iterations", "", 20, (1, 65535));
static MOST_BYTES: Number = {
    let mut option = number(c"max-key-bytes", "", 0, (0, i64::MAX));
    option.flags = raw::REDISMODULE_CONFIG_MEMORY;
    option
};

static NUMBERS: [&Number; 9] = [
    &COMPATIBLE,
    &SECRET,
    &BF_SIZE,
    &BF_EXPANSION,
    &CF_SIZE,
    &CF_EXPANSION,
    &CF_BUCKET,
    &CF_KICKS,
    &MOST_BYTES,
];

/// A rate between 0 and 1.
struct Rate {
    name: &'static CStr,
    alias: &'static str,
    default: &'static str,
    bits: AtomicU64,
    /// As it was written, for CONFIG GET.
    text: AtomicPtr<raw::RedisModuleString>,
}

const fn rate(name: &'static CStr, alias: &'static str) -> Rate {
    Rate {
        name,
        alias,
        default: "0.01",
        bits: AtomicU64::new(0.01f64.to_bits()),
        text: AtomicPtr::new(std::ptr::null_mut()),
    }
}

static BF_RATE: Rate = rate(c"bf-error-rate", "ERROR_RATE");
static CF_RATE: Rate = rate(c"cf-error-rate", "");
static RATES: [&Rate; 2] = [&BF_RATE, &CF_RATE];

pub(super) fn compatible() -> bool {
    COMPATIBLE.value.load(Relaxed) != 0
}

pub(super) fn secret() -> bool {
    SECRET.value.load(Relaxed) != 0
}

pub(super) fn bloom_rate() -> f64 {
    f64::from_bits(BF_RATE.bits.load(Relaxed))
}

pub(super) fn cuckoo_rate() -> f64 {
    f64::from_bits(CF_RATE.bits.load(Relaxed))
}

pub(super) fn bloom_size() -> u64 {
    BF_SIZE.value.load(Relaxed) as u64
}

pub(super) fn bloom_expansion() -> u32 {
    BF_EXPANSION.value.load(Relaxed) as u32
}

pub(super) fn cuckoo_size() -> u64 {
    CF_SIZE.value.load(Relaxed) as u64
}

pub(super) fn cuckoo_expansion() -> Option<u32> {
    u32::try_from(CF_EXPANSION.value.load(Relaxed)).ok()
}

pub(super) fn bucket_size() -> u16 {
    CF_BUCKET.value.load(Relaxed) as u16
}

pub(super) fn most_kicks() -> u16 {
    CF_KICKS.value.load(Relaxed) as u16
}

/// How large a filter may become.
pub(super) fn most_bytes() -> u64 {
    match MOST_BYTES.value.load(Relaxed) {
        0 => u64::MAX,
        bytes => bytes as u64,
    }
}

fn same(word: &[u8], name: &str) -> bool {
    let plain = |byte: &u8| match byte {
        b'_' => b'-',
        byte => byte.to_ascii_lowercase(),
    };
    !name.is_empty() && word.iter().map(plain).eq(name.as_bytes().iter().map(plain))
}

fn name(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or_default()
}

/// Registers all options; words of `loadmodule` are their defaults.
pub(super) fn register(context: *mut raw::RedisModuleCtx, words: &[&[u8]]) -> Result<(), String> {
    let mut numbers = NUMBERS.map(|option| option.default);
    let mut rates = RATES.map(|option| option.default.to_owned());
    for pair in words.chunks(2) {
        let [word, value] = pair else {
            return Err(format!("option {} has no value", pair[0].escape_ascii()));
        };
        let bad = || {
            format!(
                "option {} can't be {}",
                word.escape_ascii(),
                value.escape_ascii()
            )
        };
        let text = std::str::from_utf8(value).map_err(|_| bad())?;
        let mut known = false;
        for (option, default) in NUMBERS.iter().zip(&mut numbers) {
            if same(word, name(option.name)) || same(word, option.alias) {
                let parsed = match (option.is_bool, text.to_ascii_lowercase().as_str()) {
                    (true, "yes") => Some(1),
                    (true, "no") => Some(0),
                    (true, _) => None,
                    (false, text) => text.parse().ok(),
                };
                let range = option.range.0..=option.range.1;
                *default = parsed
                    .filter(|value| range.contains(value))
                    .ok_or_else(bad)?;
                known = true;
            }
        }
        for (option, default) in RATES.iter().zip(&mut rates) {
            if same(word, name(option.name)) || same(word, option.alias) {
                words::rate(value, "").map_err(|_| bad())?;
                *default = text.to_owned();
                known = true;
            }
        }
        if !known {
            return Err(format!("unknown option {}", word.escape_ascii()));
        }
    }
    for (option, default) in NUMBERS.iter().zip(numbers) {
        option.value.store(default, Relaxed);
        let data = std::ptr::from_ref::<Number>(option).cast_mut().cast();
        let result = match option.is_bool {
            true => api!(RedisModule_RegisterBoolConfig(
                context,
                option.name.as_ptr(),
                default as c_int,
                option.flags,
                Some(get_bool),
                Some(set_bool),
                None,
                data,
            )),
            false => api!(RedisModule_RegisterNumericConfig(
                context,
                option.name.as_ptr(),
                default,
                option.flags,
                option.range.0,
                option.range.1,
                Some(get_number),
                Some(set_number),
                None,
                data,
            )),
        };
        check(result, option.name)?;
    }
    for (option, default) in RATES.iter().zip(rates) {
        let data = std::ptr::from_ref::<Rate>(option).cast_mut().cast();
        let default = CString::new(default).unwrap_or_default();
        let result = api!(RedisModule_RegisterStringConfig(
            context,
            option.name.as_ptr(),
            default.as_ptr(),
            raw::REDISMODULE_CONFIG_DEFAULT,
            Some(get_rate),
            Some(set_rate),
            None,
            data,
        ));
        check(result, option.name)?;
    }
    check(api!(RedisModule_LoadConfigs(context)), c"tamis.*")
        .inspect_err(|error| log(context, error))
}

fn check(result: c_int, name: &CStr) -> Result<(), String> {
    match result {
        0 => Ok(()),
        _ => Err(format!("option {} can't be set up", name.to_string_lossy())),
    }
}

/// The option that a callback is about.
///
/// # Safety
/// `data` is what was registered with it: a static of that type.
unsafe fn option<T>(data: *mut c_void) -> &'static T {
    // SAFETY: as the caller promises.
    unsafe { &*data.cast::<T>() }
}

unsafe extern "C" fn get_bool(_: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: registered with a number.
    unsafe { option::<Number>(data) }.value.load(Relaxed) as c_int
}

unsafe extern "C" fn set_bool(
    _: *const c_char,
    value: c_int,
    data: *mut c_void,
    _: *mut RawString,
) -> c_int {
    // SAFETY: registered with a number.
    unsafe { option::<Number>(data) }
        .value
        .store(value.into(), Relaxed);
    0
}

unsafe extern "C" fn get_number(_: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: registered with a number.
    unsafe { option::<Number>(data) }.value.load(Relaxed)
}

unsafe extern "C" fn set_number(
    _: *const c_char,
    value: c_longlong,
    data: *mut c_void,
    _: *mut RawString,
) -> c_int {
    // SAFETY: registered with a number.
    unsafe { option::<Number>(data) }
        .value
        .store(value, Relaxed);
    0
}

unsafe extern "C" fn get_rate(_: *const c_char, data: *mut c_void) -> RawString {
    // SAFETY: registered with a rate.
    unsafe { option::<Rate>(data) }.text.load(Relaxed)
}

unsafe extern "C" fn set_rate(
    _: *const c_char,
    value: RawString,
    data: *mut c_void,
    error: *mut RawString,
) -> c_int {
    // SAFETY: registered with a rate.
    let option = unsafe { option::<Rate>(data) };
    match words::rate(string_bytes(value), "bad error rate") {
        Ok(rate) => {
            option.bits.store(rate.to_bits(), Relaxed);
            api!(RedisModule_RetainString(std::ptr::null_mut(), value));
            let old = option.text.swap(value, Relaxed);
            if !old.is_null() {
                api!(RedisModule_FreeString(std::ptr::null_mut(), old));
            }
            0
        }
        Err(text) => {
            let text = api!(RedisModule_CreateString(
                std::ptr::null_mut(),
                text.0.as_ptr().cast(),
                text.0.len(),
            ));
            // SAFETY: the server takes the string from there.
            unsafe { *error = text };
            1
        }
    }
}
