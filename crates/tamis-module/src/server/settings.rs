//! The module's options: `tamis.*` in CONFIG, or arguments of `loadmodule`. They only affect new keys; existing filters
//! carry their own parameters. Options that RedisBloom also has are registered under its names, too, where the server
//! allows that.

use super::api::{Context, RawString, ServerString, api, function, log};
use crate::words;
use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_void};
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, Ordering::Relaxed};
use valkey_module::raw;

/// An integer, or yes and no.
pub(super) struct Number {
    name: &'static CStr,
    /// Alternative names for `loadmodule`: RedisBloom's and valkey-bloom's.
    aliases: &'static [&'static str],
    default: i64,
    range: (i64, i64),
    flags: u32,
    is_bool: bool,
    value: AtomicI64,
}

const fn number(
    name: &'static CStr,
    aliases: &'static [&'static str],
    default: i64,
    range: (i64, i64),
) -> Number {
    Number {
        name,
        aliases,
        default,
        range,
        flags: raw::REDISMODULE_CONFIG_DEFAULT,
        is_bool: false,
        value: AtomicI64::new(default),
    }
}

const fn boolean(name: &'static CStr) -> Number {
    let mut option = number(name, &[], 0, (0, 1));
    option.is_bool = true;
    option
}

const MOST_KEYS: i64 = words::MOST_KEYS as i64;

pub(super) static COMPATIBLE: Number = boolean(c"compatible");
pub(super) static SECRET: Number = boolean(c"secret");
pub(super) static BF_SIZE: Number = number(
    c"bf-initial-size",
    &["INITIAL_SIZE", "bloom-capacity"],
    100,
    (1, MOST_KEYS),
);
pub(super) static BF_EXPANSION: Number =
    number(c"bf-expansion-factor", &["bloom-expansion"], 2, (0, 32768));
pub(super) static CF_SIZE: Number = number(c"cf-initial-size", &[], 1024, (2, MOST_KEYS));
/// RedisBloom's default, 1, is for its own layout.
pub(super) static CF_EXPANSION: Number = number(c"cf-expansion-factor", &[], -1, (-1, 32768));
pub(super) static CF_BUCKET: Number = number(c"cf-bucket-size", &[], 2, (1, 255));
pub(super) static CF_KICKS: Number = number(c"cf-max-iterations", &[], 20, (1, 65535));
pub(super) static CF_TABLES: Number =
    number(c"cf-max-expansions", &["CF_MAX_EXPANSIONS"], 32, (1, 65536));
static MOST_BYTES: Number = {
    let mut option = number(
        c"max-key-bytes",
        &["bloom-memory-usage-limit"],
        0,
        (0, i64::MAX),
    );
    option.flags = raw::REDISMODULE_CONFIG_MEMORY;
    option
};

static NUMBERS: [&Number; 10] = [
    &COMPATIBLE,
    &SECRET,
    &BF_SIZE,
    &BF_EXPANSION,
    &CF_SIZE,
    &CF_EXPANSION,
    &CF_BUCKET,
    &CF_KICKS,
    &CF_TABLES,
    &MOST_BYTES,
];

/// A rate between 0 and 1.
pub(super) struct Rate {
    name: &'static CStr,
    aliases: &'static [&'static str],
    default: &'static str,
    bits: AtomicU64,
    /// The text as given, for CONFIG GET.
    text: AtomicPtr<raw::RedisModuleString>,
}

const fn rate(name: &'static CStr, aliases: &'static [&'static str]) -> Rate {
    Rate {
        name,
        aliases,
        default: "0.01",
        bits: AtomicU64::new(0.01f64.to_bits()),
        text: AtomicPtr::new(std::ptr::null_mut()),
    }
}

pub(super) static BF_RATE: Rate = rate(c"bf-error-rate", &["ERROR_RATE", "bloom-fp-rate"]);
pub(super) static CF_RATE: Rate = rate(c"cf-error-rate", &[]);

/// Options of valkey-bloom that have no meaning here.
const WITHOUT_MEANING: [&str; 3] = [
    "bloom-tightening-ratio",
    "bloom-use-random-seed",
    "bloom-defrag-enabled",
];

/// Options that only apply to RedisBloom's layout.
const OF_THEIR_LAYOUT: [&str; 4] = [
    "cf-bucket-size",
    "cf-max-iterations",
    "cf-max-expansions",
    "CF_MAX_EXPANSIONS",
];

/// Tells the server not to prefix an option with the module's name; since Redis 8.
const UNPREFIXED: u32 = 1 << 9;

static RATES: [&Rate; 2] = [&BF_RATE, &CF_RATE];

impl Number {
    pub(super) fn get(&self) -> i64 {
        self.value.load(Relaxed)
    }

    /// The value of a yes-or-no option.
    pub(super) fn is_set(&self) -> bool {
        self.get() != 0
    }

    /// Refuses a number in RedisBloom's words.
    fn check(&self, value: i64) -> Result<(), String> {
        let (mut least, most) = self.range;
        if COMPATIBLE.is_set() && self.get() >= 0 {
            // -1 means the layout's own default, which RedisBloom doesn't offer.
            least = least.max(0);
        }
        if (least..=most).contains(&value) {
            return Ok(());
        }
        let name = name(self.name);
        Err(format!(
            "Value for `{name}` must be in the range [{least}, {most}]"
        ))
    }
}

impl Rate {
    pub(super) fn get(&self) -> f64 {
        f64::from_bits(self.bits.load(Relaxed))
    }
}

/// How large a filter may become.
pub(super) fn most_bytes() -> u64 {
    match MOST_BYTES.get() {
        0 => u64::MAX,
        bytes => bytes as u64,
    }
}

fn same(word: &[u8], name: &str) -> bool {
    let plain = |byte: &u8| match byte {
        b'_' => b'-',
        byte => byte.to_ascii_lowercase(),
    };
    word.iter().map(plain).eq(name.as_bytes().iter().map(plain))
}

fn name(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or_default()
}

fn is_named(word: &[u8], own: &'static CStr, aliases: &[&str]) -> bool {
    same(word, name(own)) || aliases.iter().any(|alias| same(word, alias))
}

/// The name and flags to register an option with: RedisBloom's name where the server allows it, with ours as an alias.
fn registered(own: &'static CStr, flags: u32) -> (CString, u32) {
    let theirs = ["bf-", "cf-"]
        .iter()
        .any(|kind| name(own).starts_with(kind));
    let allowed = || {
        let version = api!(RedisModule_GetServerVersion());
        version >= 0x0008_0000 && function(c"ValkeyModule_Alloc").is_null()
    };
    if !theirs || own == CF_RATE.name || !allowed() {
        return (own.to_owned(), flags);
    }
    let both = format!("{0}|tamis.{0}", name(own));
    (CString::new(both).unwrap_or_default(), flags | UNPREFIXED)
}

/// Defaults from the arguments of `loadmodule`: numbers and rates.
type Defaults = ([i64; NUMBERS.len()], [String; RATES.len()]);

fn read(context: Context, words: &[&[u8]]) -> Result<Defaults, String> {
    let mut numbers = NUMBERS.map(|option| option.default);
    let mut rates = RATES.map(|option| option.default.to_owned());
    let mut of_their_layout = Vec::new();
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
            if is_named(word, option.name, option.aliases) {
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
            if is_named(word, option.name, option.aliases) {
                words::rate(value, "", "").map_err(|_| bad())?;
                *default = text.to_owned();
                known = true;
            }
        }
        if OF_THEIR_LAYOUT.iter().any(|name| same(word, name)) {
            of_their_layout.push(word.escape_ascii().to_string());
        }
        if WITHOUT_MEANING.iter().any(|name| same(word, name)) {
            let word = word.escape_ascii();
            log(context, &format!("option {word} has no meaning here"));
            known = true;
        }
        if !known {
            return Err(format!("unknown option {}", word.escape_ascii()));
        }
    }
    let value = |option: &Number| NUMBERS.iter().position(|other| other.name == option.name);
    let compatible = value(&COMPATIBLE).is_some_and(|at| numbers[at] != 0);
    if let Some(at) = value(&CF_EXPANSION).filter(|at| compatible && numbers[*at] == -1) {
        numbers[at] = 1;
    }
    if !of_their_layout.is_empty() && !compatible {
        let names = of_their_layout.join(", ");
        log(
            context,
            &format!("{names}: for filters of RedisBloom's layout (COMPATIBLE yes) alone"),
        );
    }
    Ok((numbers, rates))
}

/// Registers all options, with defaults from `loadmodule`.
pub(super) fn register(context: Context, words: &[&[u8]]) -> Result<(), String> {
    let (numbers, rates) = read(context, words)?;
    let server = context.as_ptr();
    for (option, default) in NUMBERS.iter().zip(numbers) {
        option.value.store(default, Relaxed);
        let data = std::ptr::from_ref::<Number>(option).cast_mut().cast();
        let (name, flags) = registered(option.name, option.flags);
        let (least, most) = match option.flags {
            raw::REDISMODULE_CONFIG_MEMORY => option.range,
            // `set_number` checks the range.
            _ => (i64::MIN, i64::MAX),
        };
        let result = if option.is_bool {
            api!(RedisModule_RegisterBoolConfig(
                server,
                name.as_ptr(),
                default as c_int,
                flags,
                Some(get_bool),
                Some(set_bool),
                None,
                data,
            ))
        } else {
            api!(RedisModule_RegisterNumericConfig(
                server,
                name.as_ptr(),
                default,
                flags,
                least,
                most,
                Some(get_number),
                Some(set_number),
                None,
                data,
            ))
        };
        check(result, option.name)?;
    }
    for (option, default) in RATES.iter().zip(rates) {
        let data = std::ptr::from_ref::<Rate>(option).cast_mut().cast();
        let default = CString::new(default).unwrap_or_default();
        let (name, flags) = registered(option.name, raw::REDISMODULE_CONFIG_DEFAULT);
        let result = api!(RedisModule_RegisterStringConfig(
            server,
            name.as_ptr(),
            default.as_ptr(),
            flags,
            Some(get_rate),
            Some(set_rate),
            None,
            data,
        ));
        check(result, option.name)?;
    }
    check(api!(RedisModule_LoadConfigs(server)), c"tamis.*")
        .inspect_err(|error| log(context, error))
}

fn check(result: c_int, name: &CStr) -> Result<(), String> {
    match result {
        0 => Ok(()),
        _ => Err(format!("option {} can't be set up", name.to_string_lossy())),
    }
}

/// The option that a callback refers to.
///
/// # Safety
/// `data` was registered with it: a static of that type.
unsafe fn option<T>(data: *mut c_void) -> &'static T {
    // SAFETY: as the caller promises.
    unsafe { &*data.cast::<T>() }
}

unsafe extern "C" fn get_bool(_: *const c_char, data: *mut c_void) -> c_int {
    // SAFETY: registered with a `Number`.
    unsafe { option::<Number>(data) }.get() as c_int
}

unsafe extern "C" fn set_bool(
    _: *const c_char,
    value: c_int,
    data: *mut c_void,
    _: *mut RawString,
) -> c_int {
    // SAFETY: registered with a `Number`.
    unsafe { option::<Number>(data) }
        .value
        .store(value.into(), Relaxed);
    0
}

unsafe extern "C" fn get_number(_: *const c_char, data: *mut c_void) -> c_longlong {
    // SAFETY: registered with a `Number`.
    unsafe { option::<Number>(data) }.get()
}

unsafe extern "C" fn set_number(
    _: *const c_char,
    value: c_longlong,
    data: *mut c_void,
    error: *mut RawString,
) -> c_int {
    // SAFETY: registered with a `Number`.
    let option = unsafe { option::<Number>(data) };
    match option.check(value) {
        Ok(()) => {
            option.value.store(value, Relaxed);
            0
        }
        // SAFETY: `error` is where the server expects the text.
        Err(text) => unsafe { refuse(error, &text) },
    }
}

/// Tells the server why a value is refused.
///
/// # Safety
/// `error` is where the server expects a string, which it then owns.
unsafe fn refuse(error: *mut RawString, text: &str) -> c_int {
    let text = api!(RedisModule_CreateString(
        std::ptr::null_mut(),
        text.as_ptr().cast(),
        text.len(),
    ));
    // SAFETY: as the caller promises.
    unsafe { *error = text };
    1
}

unsafe extern "C" fn get_rate(_: *const c_char, data: *mut c_void) -> RawString {
    // SAFETY: registered with a `Rate`.
    unsafe { option::<Rate>(data) }.text.load(Relaxed)
}

unsafe extern "C" fn set_rate(
    _: *const c_char,
    value: RawString,
    data: *mut c_void,
    error: *mut RawString,
) -> c_int {
    // SAFETY: registered with a `Rate`; the server passes a string for this call.
    let (option, text) = unsafe { (option::<Rate>(data), ServerString::new(value)) };
    match words::rate(text.bytes(), "bad error rate", words::RATES) {
        Ok(rate) => {
            option.bits.store(rate.to_bits(), Relaxed);
            api!(RedisModule_RetainString(std::ptr::null_mut(), value));
            let old = option.text.swap(value, Relaxed);
            if !old.is_null() {
                api!(RedisModule_FreeString(std::ptr::null_mut(), old));
            }
            0
        }
        // SAFETY: `error` is where the server expects the text.
        Err(text) => unsafe { refuse(error, &text.0) },
    }
}
