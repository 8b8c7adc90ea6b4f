//! All commands, with what COMMAND and COMMAND DOCS tell of them.

use super::api::{RawString, api, entry};
use super::{bf, cf};
use std::ffi::{CString, c_char, c_int};
use std::ptr::{null, null_mut};
use valkey_module::raw;

type Entry = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut RawString, c_int) -> c_int;

struct Command {
    name: &'static str,
    entry: Entry,
    flags: &'static str,
    /// The last key: that of the first argument, or all arguments.
    last_key: c_int,
    arity: c_int,
    summary: &'static str,
    complexity: &'static str,
    /// In the notation of the server's documentation: `key`, `NAME value`,
    /// `[optional]`, `repeated ...`.
    arguments: &'static str,
}

const ADD: &str = "O(layers), for each item";

#[rustfmt::skip]
fn commands() -> Vec<Command> {
    let command = |name, entry, flags, arity, arguments, complexity, summary| Command {
        name, entry, flags, last_key: 1, arity, summary, complexity, arguments,
    };
    let merge = |command: Command| Command { last_key: -1, ..command };
    vec![
        command("BF.RESERVE", entry!(bf::reserve), "write deny-oom", -4,
            "key error_rate capacity [EXPANSION expansion] [NONSCALING] [NX]", "O(capacity)",
            "Creates a Bloom filter for a number of items and a rate of false answers."),
        command("BF.ADD", entry!(bf::add), "write deny-oom fast", 3, "key item", ADD,
            "Adds an item to a Bloom filter, which is created if there is none."),
        command("BF.MADD", entry!(bf::madd), "write deny-oom", -3, "key item...", ADD,
            "Adds items to a Bloom filter, which is created if there is none."),
        command("BF.INSERT", entry!(bf::insert), "write deny-oom", -4,
            "key [CAPACITY capacity] [ERROR error_rate] [EXPANSION expansion] [NOCREATE] [NONSCALING] ITEMS item...", ADD,
            "Adds items to a Bloom filter, and says how it is created if there is none."),
        command("BF.EXISTS", entry!(bf::exists), "readonly fast", 3, "key item", ADD,
            "Reports whether an item may be in a Bloom filter; 0 is always right."),
        command("BF.MEXISTS", entry!(bf::mexists), "readonly", -3, "key item...", ADD,
            "Reports for each item whether it may be in a Bloom filter."),
        command("BF.INFO", entry!(bf::info), "readonly fast", -2,
            "key [CAPACITY] [SIZE] [FILTERS] [ITEMS] [EXPANSION] [ERROR]", "O(layers)", "Describes a Bloom filter."),
        command("BF.CARD", entry!(bf::card), "readonly fast", 2, "key", "O(layers)",
            "Reports how many items were new to a Bloom filter."),
        merge(command("BF.MERGE", entry!(bf::merge), "write deny-oom", -3, "destination source...", "O(bytes)",
            "Adds all items of Bloom filters to another, where it has room for them.")),
        command("BF.CLEAR", entry!(bf::clear), "write", 2, "key", "O(bytes)",
            "Removes all items from a Bloom filter."),
        command("BF.SCANDUMP", entry!(bf::scandump), "readonly", 3, "key iterator", "O(bytes)",
            "Returns a Bloom filter in chunks."),
        command("BF.LOADCHUNK", entry!(bf::loadchunk), "write deny-oom", 4, "key iterator data", "O(bytes)",
            "Restores a Bloom filter from the chunks of BF.SCANDUMP."),

        command("CF.RESERVE", entry!(cf::reserve), "write deny-oom", -3,
            "key capacity [BUCKETSIZE bucketsize] [MAXITERATIONS maxiterations] [EXPANSION expansion] [ERROR error_rate] [NX]", "O(capacity)",
            "Creates a cuckoo filter for a number of items and a rate of false answers."),
        command("CF.ADD", entry!(cf::add), "write deny-oom fast", 3, "key item", ADD,
            "Adds an item to a cuckoo filter, again if it is already there."),
        command("CF.ADDNX", entry!(cf::addnx), "write deny-oom fast", 3, "key item", ADD,
            "Adds an item to a cuckoo filter unless it seems to be there."),
        command("CF.INSERT", entry!(cf::insert), "write deny-oom", -4,
            "key [CAPACITY capacity] [NOCREATE] ITEMS item...", ADD,
            "Adds items to a cuckoo filter, and says how it is created if there is none."),
        command("CF.INSERTNX", entry!(cf::insertnx), "write deny-oom", -4,
            "key [CAPACITY capacity] [NOCREATE] ITEMS item...", ADD,
            "Adds to a cuckoo filter the items that don't seem to be there."),
        command("CF.EXISTS", entry!(cf::exists), "readonly fast", 3, "key item", ADD,
            "Reports whether an item may be in a cuckoo filter; 0 is always right."),
        command("CF.MEXISTS", entry!(cf::mexists), "readonly", -3, "key item...", ADD,
            "Reports for each item whether it may be in a cuckoo filter."),
        command("CF.COUNT", entry!(cf::count), "readonly fast", 3, "key item", ADD,
            "Reports how often an item is in a cuckoo filter, at most."),
        command("CF.DEL", entry!(cf::del), "write fast", 3, "key item", ADD,
            "Removes one copy of an item from a cuckoo filter."),
        command("CF.INFO", entry!(cf::info), "readonly fast", -2, "key [CAPACITY] [ERROR]", "O(tables)",
            "Describes a cuckoo filter."),
        command("CF.COMPACT", entry!(cf::compact), "write", 2, "key", "O(bytes)",
            "Moves items of a cuckoo filter to its older layers, and frees those that become empty."),
        merge(command("CF.MERGE", entry!(cf::merge), "write deny-oom", -3, "destination source...", "O(bytes)",
            "Adds all items of cuckoo filters to another, where it has room for them.")),
        command("CF.SCANDUMP", entry!(cf::scandump), "readonly", 3, "key iterator", "O(bytes)",
            "Returns a cuckoo filter in chunks."),
        command("CF.LOADCHUNK", entry!(cf::loadchunk), "write deny-oom", 4, "key iterator data", "O(bytes)",
            "Restores a cuckoo filter from the chunks of CF.SCANDUMP."),
    ]
}

fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// Texts that the server may keep pointers to.
fn leaked(text: &str) -> *const c_char {
    c_string(text).into_raw()
}

pub(super) fn register(context: *mut raw::RedisModuleCtx) -> Result<(), String> {
    // Categories of a module's own came with Redis 7.4 and Valkey 8.
    // SAFETY: functions of the server, set when it loaded the module.
    let (add, categorise) = unsafe {
        (
            raw::RedisModule_AddACLCategory,
            raw::RedisModule_SetCommandACLCategories,
        )
    };
    if let Some(add) = add {
        for category in [c"bloom", c"cuckoo"] {
            // SAFETY: as its documentation says. Where it exists already, that is as well.
            unsafe { add(context, category.as_ptr()) };
        }
    }
    for command in commands() {
        let (name, flags) = (c_string(command.name), c_string(command.flags));
        let made = api!(RedisModule_CreateCommand(
            context,
            name.as_ptr(),
            Some(command.entry),
            flags.as_ptr(),
            1,
            command.last_key,
            1,
        ));
        if made != 0 {
            return Err(format!(
                "the command {} exists already: is another module for BF.* and CF.* loaded?",
                command.name
            ));
        }
        let known = api!(RedisModule_GetCommand(context, name.as_ptr()));
        if let Some(categorise) = categorise {
            let category = c_string(&categories(&command));
            // SAFETY: as its documentation says.
            unsafe { categorise(known, category.as_ptr()) };
        }
        describe(known, &command);
    }
    Ok(())
}

fn categories(command: &Command) -> String {
    let kind = if command.name.starts_with("BF") {
        "bloom"
    } else {
        "cuckoo"
    };
    let access = if command.flags.contains("write") {
        "write"
    } else {
        "read"
    };
    let speed = if command.flags.contains("fast") {
        "fast"
    } else {
        "slow"
    };
    format!("{kind} {access} {speed}")
}

fn describe(known: *mut raw::RedisModuleCommand, command: &Command) {
    let version = raw::RedisModuleCommandInfoVersion {
        version: 1,
        sizeof_historyentry: size_of::<raw::RedisModuleCommandHistoryEntry>(),
        sizeof_keyspec: size_of::<raw::RedisModuleCommandKeySpec>(),
        sizeof_arg: size_of::<raw::RedisModuleCommandArg>(),
    };
    let mut arguments = arguments(command.arguments);
    // SAFETY: numbers and pointers, for which zero is none.
    let end: raw::RedisModuleCommandArg = unsafe { std::mem::zeroed() };
    arguments.push(end);
    let (summary, complexity) = (c_string(command.summary), c_string(command.complexity));
    let info = raw::RedisModuleCommandInfo {
        version: &version,
        summary: summary.as_ptr(),
        complexity: complexity.as_ptr(),
        since: c"1.0.0".as_ptr(),
        history: null_mut(),
        tips: null(),
        arity: command.arity,
        key_specs: null_mut(),
        args: arguments.as_mut_ptr(),
    };
    // The server copies all of it.
    api!(RedisModule_SetCommandInfo(known, &info));
}

/// Reads the notation above.
fn arguments(text: &str) -> Vec<raw::RedisModuleCommandArg> {
    let mut all = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (part, optional);
        if let Some(inner) = rest.strip_prefix('[') {
            let end = inner.find(']').unwrap_or(inner.len());
            (part, optional) = (&inner[..end], true);
            rest = inner[end..].trim_start_matches(']').trim_start();
        } else {
            // A word in capitals belongs to the next one.
            let mut words = rest.splitn(3, ' ');
            let first = words.next().unwrap_or_default();
            let len = match first.chars().all(|c| c.is_ascii_uppercase()) {
                true => first.len() + 1 + words.next().unwrap_or_default().len(),
                false => first.len(),
            };
            (part, optional) = (&rest[..len.min(rest.len())], false);
            rest = rest[part.len()..].trim_start();
        }
        all.push(argument(part, optional));
    }
    all
}

fn argument(part: &str, optional: bool) -> raw::RedisModuleCommandArg {
    let (token, name) = match part.split_once(' ') {
        Some((token, name)) => (Some(token), name),
        None if part.chars().all(|c| c.is_ascii_uppercase()) => (Some(part), part),
        None => (None, part),
    };
    let repeated = name.ends_with("...");
    let name = name.trim_end_matches('.');
    let kind = match (token, name) {
        (Some(token), name) if token == name => {
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN
        }
        (_, "key" | "destination" | "source") => {
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY
        }
        (_, "error_rate") => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE,
        (_, "item" | "data") => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
        _ => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
    };
    // SAFETY: numbers and pointers, for which zero is none.
    let mut argument: raw::RedisModuleCommandArg = unsafe { std::mem::zeroed() };
    argument.name = leaked(&name.to_lowercase());
    argument.type_ = kind;
    argument.token = token.map_or(null(), leaked);
    argument.flags = 0;
    if optional {
        argument.flags |= raw::REDISMODULE_CMD_ARG_OPTIONAL as c_int;
    }
    if repeated {
        argument.flags |= raw::REDISMODULE_CMD_ARG_MULTIPLE as c_int;
    }
    argument
}
