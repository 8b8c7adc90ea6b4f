//! All commands, with their descriptions for COMMAND and COMMAND DOCS.

use super::api::{Context, RawString, api, entry};
use super::{bf, cf};
use std::ffi::{CString, c_char, c_int};
use std::ptr::{null, null_mut};
use valkey_module::raw;

type Entry = unsafe extern "C" fn(*mut raw::RedisModuleCtx, *mut RawString, c_int) -> c_int;

struct Command {
    name: &'static str,
    entry: Entry,
    flags: &'static str,
    /// The position of the last key; negative if all arguments are keys.
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
        command("bf.reserve", entry!(bf::reserve), "write deny-oom", -4,
            "key error_rate capacity [EXPANSION expansion] [NONSCALING] [COUNTING] [WINDOW span] [GENERATIONS generations] [QUIET] [NX] [EX seconds]", "O(1)",
            "Creates a Bloom filter for a number of items and a rate of false answers."),
        command("bf.add", entry!(bf::add), "write deny-oom fast", 3, "key item", ADD,
            "Adds an item to a Bloom filter, which is created if there is none."),
        command("bf.madd", entry!(bf::madd), "write deny-oom", -3, "key item...", ADD,
            "Adds items to a Bloom filter, which is created if there is none."),
        command("bf.insert", entry!(bf::insert), "write deny-oom", -4,
            "key [CAPACITY capacity] [ERROR error_rate] [EXPANSION expansion] [NOCREATE] [NONSCALING] [SEED seed] [TIGHTENING ratio] [VALIDATESCALETO capacity] [WINDOW span] [GENERATIONS generations] [QUIET] [AT microseconds] ITEMS item...", ADD,
            "Adds items to a Bloom filter, and says how it is created if there is none."),
        command("bf.exists", entry!(bf::exists), "readonly fast", -3, "key item [AT microseconds]", ADD,
            "Reports whether an item may be in a Bloom filter; 0 is always right."),
        command("bf.mexists", entry!(bf::mexists), "readonly", -3, "key item...", ADD,
            "Reports for each item whether it may be in a Bloom filter."),
        command("bf.count", entry!(bf::count), "readonly fast", 3, "key item", "O(1)",
            "Reports how often an item was added to a Bloom filter that counts, at most."),
        command("bf.remove", entry!(bf::remove), "write fast", 3, "key item", "O(1)",
            "Takes back one addition of an item to a Bloom filter that counts."),
        command("bf.info", entry!(bf::info), "readonly fast", -2,
            "key [CAPACITY] [SIZE] [FILTERS] [ITEMS] [EXPANSION] [ERROR] [TIGHTENING] [MAXSCALEDCAPACITY] [WINDOW]", "O(layers)",
            "Describes a Bloom filter."),
        command("bf.debug", entry!(bf::debug), "readonly", 2, "key", "O(layers), of a window O(bytes)",
            "Describes a Bloom filter and its layers, for people."),
        command("bf.card", entry!(bf::card), "readonly fast", 2, "key", "O(layers)",
            "Reports how many items were new to a Bloom filter, or are in its window."),
        merge(command("bf.merge", entry!(bf::merge), "write deny-oom", -3, "destination source...", "O(bytes)",
            "Adds all items of Bloom filters to another, where it has room for them.")),
        command("bf.clear", entry!(bf::clear), "write", 2, "key", "O(1)",
            "Removes all items from a Bloom filter."),
        command("bf.scandump", entry!(bf::scandump), "readonly", 3, "key iterator", "O(bytes)",
            "Returns a Bloom filter in chunks."),
        command("bf.loadchunk", entry!(bf::loadchunk), "write deny-oom", 4, "key iterator data", "O(bytes)",
            "Restores a Bloom filter from the chunks of BF.SCANDUMP."),
        command("bf.load", entry!(bf::load), "write deny-oom", 3, "key data", "O(bytes)",
            "Restores a Bloom filter from an append-only file of valkey-bloom."),

        command("cf.reserve", entry!(cf::reserve), "write deny-oom", -3,
            "key capacity [BUCKETSIZE bucketsize] [MAXITERATIONS maxiterations] [EXPANSION expansion] [ERROR error_rate] [NX] [EX seconds]", "O(1)",
            "Creates a cuckoo filter for a number of items and a rate of false answers."),
        command("cf.add", entry!(cf::add), "write deny-oom fast", 3, "key item", ADD,
            "Adds an item to a cuckoo filter, again if it is already there."),
        command("cf.addnx", entry!(cf::addnx), "write deny-oom fast", 3, "key item", ADD,
            "Adds an item to a cuckoo filter unless it seems to be there."),
        command("cf.insert", entry!(cf::insert), "write deny-oom", -4,
            "key [CAPACITY capacity] [NOCREATE] ITEMS item...", ADD,
            "Adds items to a cuckoo filter, and says how it is created if there is none."),
        command("cf.insertnx", entry!(cf::insertnx), "write deny-oom", -4,
            "key [CAPACITY capacity] [NOCREATE] ITEMS item...", ADD,
            "Adds to a cuckoo filter the items that don't seem to be there."),
        command("cf.exists", entry!(cf::exists), "readonly fast", 3, "key item", ADD,
            "Reports whether an item may be in a cuckoo filter; 0 is always right."),
        command("cf.mexists", entry!(cf::mexists), "readonly", -3, "key item...", ADD,
            "Reports for each item whether it may be in a cuckoo filter."),
        command("cf.count", entry!(cf::count), "readonly fast", 3, "key item", ADD,
            "Reports how often an item is in a cuckoo filter, at most."),
        command("cf.del", entry!(cf::del), "write fast", 3, "key item", ADD,
            "Removes one copy of an item from a cuckoo filter."),
        command("cf.info", entry!(cf::info), "readonly fast", -2, "key [CAPACITY] [ERROR]", "O(tables)",
            "Describes a cuckoo filter."),
        command("cf.debug", entry!(cf::debug), "readonly", 2, "key", "O(tables)",
            "Describes a cuckoo filter, for people."),
        command("cf.compact", entry!(cf::compact), "write", 2, "key", "O(bytes)",
            "Moves items of a cuckoo filter to its older layers, and frees those that become empty."),
        merge(command("cf.merge", entry!(cf::merge), "write deny-oom", -3, "destination source...", "O(bytes)",
            "Adds all items of cuckoo filters to another, where it has room for them.")),
        command("cf.scandump", entry!(cf::scandump), "readonly", 3, "key iterator", "O(bytes)",
            "Returns a cuckoo filter in chunks."),
        command("cf.loadchunk", entry!(cf::loadchunk), "write deny-oom", 4, "key iterator data", "O(bytes)",
            "Restores a cuckoo filter from the chunks of CF.SCANDUMP."),
    ]
}

fn c_string(text: &str) -> CString {
    CString::new(text).unwrap_or_default()
}

/// Strings that the server may keep pointers to.
fn leaked(text: &str) -> *const c_char {
    c_string(text).into_raw()
}

pub(super) fn register(context: Context) -> Result<(), String> {
    let context = context.as_ptr();
    // Modules can have categories since Redis 7.4 and Valkey 8.
    // SAFETY: functions of the server, set when it loaded the module.
    let (add, categorise) = unsafe {
        (
            raw::RedisModule_AddACLCategory,
            raw::RedisModule_SetCommandACLCategories,
        )
    };
    if let Some(add) = add {
        // We have no commands for RedisBloom's other categories, but ACL rules that name them must still load.
        for category in [c"bloom", c"cuckoo", c"topk", c"cms", c"tdigest"] {
            // SAFETY: called as documented. The category may exist already.
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
            // SAFETY: called as documented.
            unsafe { categorise(known, category.as_ptr()) };
        }
        describe(known, &command);
    }
    Ok(())
}

fn categories(command: &Command) -> String {
    let either = |is_first, first, second| if is_first { first } else { second };
    let kind = either(command.name.starts_with("bf"), "bloom", "cuckoo");
    let access = either(command.flags.contains("write"), "write", "read");
    let speed = either(command.flags.contains("fast"), "fast", "slow");
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
    arguments.push(no_argument());
    let mut keys = key_specs(command);
    let (summary, complexity) = (c_string(command.summary), c_string(command.complexity));
    let info = raw::RedisModuleCommandInfo {
        version: &version,
        summary: summary.as_ptr(),
        complexity: complexity.as_ptr(),
        since: c"1.0.0".as_ptr(),
        history: null_mut(),
        tips: null(),
        arity: command.arity,
        key_specs: keys.as_mut_ptr(),
        args: arguments.as_mut_ptr(),
    };
    // The server copies everything.
    api!(RedisModule_SetCommandInfo(known, &info));
}

/// What a command does with its keys: ACL rules (`%R~`) depend on it.
fn key_specs(command: &Command) -> Vec<raw::RedisModuleCommandKeySpec> {
    use raw::{REDISMODULE_CMD_KEY_ACCESS as ACCESS, REDISMODULE_CMD_KEY_DELETE as DELETE};
    use raw::{REDISMODULE_CMD_KEY_INSERT as INSERT, REDISMODULE_CMD_KEY_OW as OVERWRITE};
    use raw::{REDISMODULE_CMD_KEY_RO as READ, REDISMODULE_CMD_KEY_RW as CHANGE};
    let (_, verb) = command.name.split_once('.').unwrap_or_default();
    let flags = match verb {
        _ if command.flags.contains("readonly") => READ | ACCESS,
        "reserve" | "load" => OVERWRITE | INSERT,
        "del" | "remove" | "clear" => CHANGE | DELETE,
        "compact" | "loadchunk" => CHANGE | raw::REDISMODULE_CMD_KEY_UPDATE,
        _ => CHANGE | INSERT,
    };
    let mut all = vec![key_spec(1, 0, flags)];
    if command.last_key < 0 {
        all.push(key_spec(2, command.last_key, READ | ACCESS));
    }
    // SAFETY: numbers and pointers, for which zero is valid. A zero entry ends the list.
    all.push(unsafe { std::mem::zeroed() });
    all
}

/// Keys from one argument to another, which counts from the first; negative numbers count from the end.
fn key_spec(first: c_int, last: c_int, flags: u32) -> raw::RedisModuleCommandKeySpec {
    // SAFETY: numbers and pointers, for which zero is valid.
    let mut spec: raw::RedisModuleCommandKeySpec = unsafe { std::mem::zeroed() };
    spec.flags = flags.into();
    spec.begin_search_type = raw::RedisModuleKeySpecBeginSearchType_REDISMODULE_KSPEC_BS_INDEX;
    spec.bs.index.pos = first;
    spec.find_keys_type = raw::RedisModuleKeySpecFindKeysType_REDISMODULE_KSPEC_FK_RANGE;
    spec.fk.range.lastkey = last;
    spec.fk.range.keystep = 1;
    spec
}

fn no_argument() -> raw::RedisModuleCommandArg {
    // SAFETY: numbers and pointers, for which zero is valid.
    unsafe { std::mem::zeroed() }
}

/// Parses the notation above.
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
            let mut len = first.len();
            if first.chars().all(|c| c.is_ascii_uppercase()) {
                len += 1 + words.next().unwrap_or_default().len();
            }
            (part, optional) = (&rest[..len.min(rest.len())], false);
            rest = rest[part.len()..].trim_start();
        }
        all.push(argument(part, optional));
    }
    all
}

fn argument(part: &str, optional: bool) -> raw::RedisModuleCommandArg {
    let is_token = |word: &str| word.chars().all(|c| c.is_ascii_uppercase());
    let mut argument = match part.split_once(' ') {
        // A word and its value form a block of two.
        Some((token, name)) => {
            let block = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_BLOCK;
            let mut argument = plain(token, block);
            let inner = vec![token_argument(token), value(name), no_argument()];
            // The server copies it; the leak is small and happens once.
            argument.subargs = inner.leak().as_mut_ptr();
            argument
        }
        None if is_token(part) => token_argument(part),
        None => value(part),
    };
    if optional {
        argument.flags |= raw::REDISMODULE_CMD_ARG_OPTIONAL as c_int;
    }
    argument
}

fn plain(name: &str, kind: raw::RedisModuleCommandArgType) -> raw::RedisModuleCommandArg {
    let mut argument = no_argument();
    argument.name = leaked(&name.to_lowercase());
    argument.type_ = kind;
    argument
}

fn token_argument(token: &str) -> raw::RedisModuleCommandArg {
    let kind = raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_PURE_TOKEN;
    let mut argument = plain(token, kind);
    argument.token = leaked(token);
    argument
}

fn value(name: &str) -> raw::RedisModuleCommandArg {
    let repeated = name.ends_with("...");
    let name = name.trim_end_matches('.');
    let kind = match name {
        "key" | "destination" | "source" => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_KEY,
        "error_rate" | "ratio" | "span" => {
            raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_DOUBLE
        }
        "item" | "data" | "seed" => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_STRING,
        _ => raw::RedisModuleCommandArgType_REDISMODULE_ARG_TYPE_INTEGER,
    };
    let mut argument = plain(name, kind);
    if repeated {
        argument.flags |= raw::REDISMODULE_CMD_ARG_MULTIPLE as c_int;
    }
    argument
}
