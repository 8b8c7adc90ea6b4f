//! The module: its commands, types and options, behind the server's interface.

mod alloc;
mod api;
mod bf;
mod both;
mod catalogue;
mod cf;
mod chunks;
mod counters;
mod settings;
mod stats;
mod types;
mod window;

use crate::error::Error;
use crate::filter::Room;
use crate::words::{FilterLayout, Wish};
use api::{Call, Context, NewString, RawString, ServerString, api, log};
use std::ffi::{c_char, c_int};
use tamis::{Hasher, SecretKey};
use valkey_module::raw;

/// Where new filters are made for RedisBloom, refuses a filter that RedisBloom can't read, unless the layout is named
/// as well.
fn refuse_unreadable(call: &Call<'_>, wish: &Wish, word: &str) -> Result<(), Error> {
    if !settings::COMPATIBLE.is_set() || wish.layout.is_some() || call.must_obey() {
        return Ok(());
    }
    Err(Error(
        format!(
            "ERR new filters are RedisBloom's (COMPATIBLE yes), and RedisBloom can't read one with {word}: \
             add LAYOUT tamis to have one all the same"
        )
        .into(),
    ))
}

/// The layout of a filter if the command names none. Commands from a primary or an append-only file always name it,
/// except for RedisBloom's layout: those commands contain nothing that RedisBloom doesn't know.
fn default_layout(call: &Call<'_>) -> FilterLayout {
    if settings::COMPATIBLE.is_set() || call.must_obey() {
        FilterLayout::RedisBloom
    } else {
        FilterLayout::Tamis
    }
}

/// How a new filter hashes its keys. RedisBloom's layout has only one hash.
fn hasher(wish: &Wish, layout: FilterLayout) -> Result<Hasher, Error> {
    let secret = match (wish.secret, layout) {
        (_, FilterLayout::RedisBloom | FilterLayout::Valkey) | (Some(None), _) => None,
        (Some(secret), _) => secret.map(SecretKey::new),
        (None, FilterLayout::Tamis) if settings::SECRET.is_set() => Some(SecretKey::random()?),
        (None, FilterLayout::Tamis) => None,
    };
    Ok(secret.map_or_else(Hasher::default, Hasher::keyed))
}

/// The arguments that make a replica's filter the same, whatever its options. None for RedisBloom's layout: see
/// `default_layout`.
fn made(call: &Call<'_>, layout: FilterLayout, hasher: &Hasher) -> Vec<NewString> {
    if layout != FilterLayout::Tamis {
        return Vec::new();
    }
    let secret = match hasher {
        Hasher::Keyed { key, .. } => call.string(key.as_bytes()),
        _ => call.string(b"NONE"),
    };
    vec![
        call.string(b"LAYOUT"),
        call.string(b"tamis"),
        call.string(b"SECRET"),
        secret,
    ]
}

/// Smaller filters aren't compared with `maxmemory`: querying that costs more than such a filter.
const SMALL: u64 = 1 << 20;

impl Room for Call<'_> {
    fn allows(&self, bytes: u64) -> Result<(), Error> {
        if self.must_obey() {
            return Ok(());
        }
        if bytes > settings::most_bytes() {
            return Err(Error::LIMIT);
        }
        if bytes > SMALL && self.maxmemory().is_some_and(|most| bytes > most) {
            return Err(Error::MAXMEMORY);
        }
        Ok(())
    }
}

const NAME: &std::ffi::CStr = c"tamis";
const VERSION: c_int = 1;

/// The entry point that the server calls when it loads the module.
///
/// # Safety
/// - Only the server calls it, once, on its main thread.
/// - `argv` points to `argc` strings, which live as long as the call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn RedisModule_OnLoad(
    context: *mut raw::RedisModuleCtx,
    argv: *mut RawString,
    argc: c_int,
) -> c_int {
    // Nothing may be allocated before this.
    // SAFETY: called as documented.
    let ready = unsafe {
        raw::Export_RedisModule_Init(
            context,
            NAME.as_ptr().cast::<c_char>(),
            VERSION,
            raw::REDISMODULE_APIVER_1 as c_int,
        )
    };
    if ready != raw::REDISMODULE_OK as c_int {
        return raw::REDISMODULE_ERR as c_int;
    }
    // SAFETY: as the caller promises.
    let (context, words) = unsafe { (Context::new(context), ServerString::list(argv, argc)) };
    // SAFETY: a function of the server, set above.
    if unsafe { raw::RedisModule_RegisterNumericConfig }.is_none() {
        log(
            context,
            "the module tamis needs Redis 7.0 or newer, or Valkey: this server is older",
        );
        return raw::REDISMODULE_ERR as c_int;
    }
    let loaded = std::panic::catch_unwind(|| load(context, words));
    let bug = || Err("internal error: please report it".to_owned());
    match loaded.unwrap_or_else(|_| bug()) {
        Ok(()) => raw::REDISMODULE_OK as c_int,
        Err(error) => {
            log(context, &error);
            raw::REDISMODULE_ERR as c_int
        }
    }
}

fn load(context: Context, words: &[ServerString<'_>]) -> Result<(), String> {
    alloc::prepare();
    // A command that changes nothing must not break a WATCH, so changes are signalled explicitly, along with
    // replication.
    let options = raw::REDISMODULE_OPTIONS_HANDLE_IO_ERRORS
        | raw::REDISMODULE_OPTIONS_HANDLE_REPL_ASYNC_LOAD
        | raw::REDISMODULE_OPTION_NO_IMPLICIT_SIGNAL_MODIFIED;
    let server = context.as_ptr();
    api!(RedisModule_SetModuleOptions(server, options as c_int));
    types::register(context)?;
    catalogue::register(context)?;
    api!(RedisModule_RegisterInfoFunc(server, Some(stats::report)));
    let words: Vec<&[u8]> = words.iter().map(|word| word.bytes()).collect();
    settings::register(context, &words)
}
