//! The server functions that we need, with lifetimes.

use crate::error::Error;
use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_void};
use std::marker::PhantomData;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::NonNull;
use tamis::Moment;
use valkey_module::raw;

/// Calls a function of the server. All of these exist since Redis 7.0.
macro_rules! api {
    ($name:ident($($argument:expr),* $(,)?)) => {
        // SAFETY: a function of the server, set when it loaded the module, and called as documented, on the server's
        // thread.
        unsafe { (valkey_module::raw::$name.expect("a function of Redis 7.0"))($($argument),*) }
    };
}
pub(super) use api;

pub(super) type RawString = *mut raw::RedisModuleString;

/// A string owned by the server, which lives for `'s`.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(super) struct ServerString<'s> {
    string: RawString,
    lives: PhantomData<&'s [u8]>,
}

impl<'s> ServerString<'s> {
    /// # Safety
    /// - The string is the server's.
    /// - It lives for `'s`, and is not changed meanwhile.
    pub(super) const unsafe fn new(string: RawString) -> Self {
        let lives = PhantomData;
        Self { string, lives }
    }

    /// The arguments that the server passes to a function.
    ///
    /// # Safety
    /// - `argv` points to `argc` strings, if that is more than 0.
    /// - The list lives for `'s`, and every string as for [`new`](Self::new).
    pub(super) const unsafe fn list(argv: *const RawString, argc: c_int) -> &'s [Self] {
        if argc <= 0 {
            return &[];
        }
        // SAFETY: the caller promises this many strings; `Self` is a transparent wrapper.
        unsafe { std::slice::from_raw_parts(argv.cast(), argc as usize) }
    }

    pub(super) fn bytes(self) -> &'s [u8] {
        let mut len = 0;
        let data = api!(RedisModule_StringPtrLen(self.string, &mut len));
        // SAFETY: the server's string has this many bytes, and lives for `'s`: the promise to `new`.
        unsafe { std::slice::from_raw_parts(data.cast(), len) }
    }
}

/// The server's context of a call, for its functions.
#[derive(Clone, Copy)]
pub(super) struct Context(*mut raw::RedisModuleCtx);

impl Context {
    /// # Safety
    /// The server gave it to a function that is running, and it is not used after
    /// that function.
    pub(super) const unsafe fn new(context: *mut raw::RedisModuleCtx) -> Self {
        Self(context)
    }

    pub(super) const fn as_ptr(self) -> *mut raw::RedisModuleCtx {
        self.0
    }
}

/// A command that is being executed.
pub(super) struct Call<'c> {
    context: *mut raw::RedisModuleCtx,
    arguments: &'c [ServerString<'c>],
}

/// Runs a command. It replies itself, unless it returns an error, which is sent here. A panic must not reach the
/// server.
///
/// # Safety
/// - `context` is the server's, for this call.
/// - `argv` points to `argc` strings, which live as long as the call.
pub(super) unsafe fn run(
    context: *mut raw::RedisModuleCtx,
    argv: *mut RawString,
    argc: c_int,
    command: fn(&Call<'_>) -> Result<(), Error>,
) -> c_int {
    // SAFETY: as the caller promises.
    let arguments = unsafe { ServerString::list(argv, argc) };
    let call = Call { context, arguments };
    let done = catch_unwind(AssertUnwindSafe(|| command(&call)));
    let bug = || {
        Err(Error::new(
            "ERR internal error of the module tamis: please report it",
        ))
    };
    if let Err(error) = done.unwrap_or_else(|_| bug()) {
        call.reply_error(&error);
    }
    raw::REDISMODULE_OK as c_int
}

/// The function that the server calls for one of our commands.
macro_rules! entry {
    ($command:path) => {{
        unsafe extern "C" fn entry(
            context: *mut valkey_module::raw::RedisModuleCtx,
            argv: *mut $crate::server::api::RawString,
            argc: std::ffi::c_int,
        ) -> std::ffi::c_int {
            // SAFETY: the server calls this as documented.
            unsafe { $crate::server::api::run(context, argv, argc, $command) }
        }
        entry
    }};
}
pub(super) use entry;

fn c_string(text: &str) -> CString {
    // A client's word quoted in an error may contain any bytes.
    CString::new(text.replace(['\0', '\r', '\n'], " ")).unwrap_or_default()
}

impl<'c> Call<'c> {
    pub(super) fn len(&self) -> usize {
        self.arguments.len()
    }

    /// An argument; 0 is the command's name.
    pub(super) fn bytes(&self, at: usize) -> &'c [u8] {
        self.arguments[at].bytes()
    }

    pub(super) fn all_bytes(&self, from: usize) -> Vec<&'c [u8]> {
        let arguments = self.arguments[from..].iter();
        arguments.map(|argument| argument.bytes()).collect()
    }

    pub(super) fn arguments(&self) -> &'c [ServerString<'c>] {
        self.arguments
    }

    /// Refuses a number of arguments outside this range, which includes the command's name.
    pub(super) fn expect(&self, count: std::ops::RangeInclusive<usize>) -> Result<(), Error> {
        if count.contains(&self.len()) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(self.bytes(0)).to_lowercase();
        Err(Error(
            format!("ERR wrong number of arguments for '{name}' command").into(),
        ))
    }

    /// Whether the command repeats what another server has already done, so that this server's limits must not make a
    /// difference.
    pub(super) fn must_obey(&self) -> bool {
        let obeyed = raw::REDISMODULE_CTX_FLAGS_REPLICATED | raw::REDISMODULE_CTX_FLAGS_LOADING;
        self.flags() & obeyed as c_int != 0
    }

    pub(super) fn is_resp3(&self) -> bool {
        self.flags() & raw::REDISMODULE_CTX_FLAGS_RESP3 as c_int != 0
    }

    fn flags(&self) -> c_int {
        api!(RedisModule_GetContextFlags(self.context))
    }

    // Replies.

    pub(super) fn reply_error(&self, error: &Error) {
        let text = c_string(&error.0);
        api!(RedisModule_ReplyWithError(self.context, text.as_ptr()));
    }

    pub(super) fn reply_ok(&self) {
        api!(RedisModule_ReplyWithSimpleString(
            self.context,
            c"OK".as_ptr()
        ));
    }

    pub(super) fn reply_integer(&self, number: i64) {
        api!(RedisModule_ReplyWithLongLong(
            self.context,
            number as c_longlong
        ));
    }

    pub(super) fn reply_count(&self, number: u64) {
        self.reply_integer(i64::try_from(number).unwrap_or(i64::MAX));
    }

    /// 0 or 1 in RESP2.
    pub(super) fn reply_bool(&self, value: bool) {
        api!(RedisModule_ReplyWithBool(self.context, value.into()));
    }

    pub(super) fn reply_bytes(&self, bytes: &[u8]) {
        api!(RedisModule_ReplyWithStringBuffer(
            self.context,
            bytes.as_ptr().cast(),
            bytes.len(),
        ));
    }

    /// The name of a field.
    pub(super) fn reply_name(&self, name: &CStr) {
        api!(RedisModule_ReplyWithSimpleString(
            self.context,
            name.as_ptr()
        ));
    }

    pub(super) fn reply_null(&self) {
        api!(RedisModule_ReplyWithNull(self.context));
    }

    pub(super) fn reply_array(&self, len: usize) {
        api!(RedisModule_ReplyWithArray(self.context, len as _));
    }

    /// An array of names and values in RESP2.
    pub(super) fn reply_map(&self, len: usize) {
        api!(RedisModule_ReplyWithMap(self.context, len as _));
    }

    // Replication to replicas and the append-only file.

    pub(super) fn replicate_as_is(&self) {
        self.signal();
        api!(RedisModule_ReplicateVerbatim(self.context));
    }

    /// Tells clients that watch or cache the key that it has changed.
    fn signal(&self) {
        api!(RedisModule_SignalModifiedKey(
            self.context,
            self.arguments[1].string
        ));
    }

    pub(super) fn replicate(&self, command: &CStr, arguments: &[ServerString<'_>]) {
        self.signal();
        api!(RedisModule_Replicate(
            self.context,
            command.as_ptr(),
            c"v".as_ptr(),
            arguments.as_ptr(),
            arguments.len(),
        ));
    }

    pub(super) fn string(&self, bytes: &[u8]) -> NewString {
        let string = api!(RedisModule_CreateString(
            std::ptr::null_mut(),
            bytes.as_ptr().cast(),
            bytes.len(),
        ));
        NewString(string)
    }

    /// Notifies subscribers of keyspace events.
    pub(super) fn notify(&self, event: &CStr) {
        api!(RedisModule_NotifyKeyspaceEvent(
            self.context,
            raw::REDISMODULE_NOTIFY_MODULE,
            event.as_ptr(),
            self.arguments[1].string,
        ));
    }

    /// Writes a line to the server's log.
    pub(super) fn warn(&self, text: &str) {
        log(Context(self.context), text);
    }

    /// The server's `maxmemory`; `None` without a limit.
    pub(super) fn maxmemory(&self) -> Option<u64> {
        let info = api!(RedisModule_GetServerInfo(self.context, c"memory".as_ptr()));
        let mut failed = 0;
        let most = api!(RedisModule_ServerInfoGetFieldUnsigned(
            info,
            c"maxmemory".as_ptr(),
            &mut failed
        ));
        api!(RedisModule_FreeServerInfo(self.context, info));
        (failed == 0 && most > 0).then_some(most)
    }

    pub(super) fn open(&self, at: usize, write: bool) -> Key<'_> {
        let mode = if write {
            raw::REDISMODULE_READ | raw::REDISMODULE_WRITE
        } else {
            raw::REDISMODULE_READ
        };
        let key = api!(RedisModule_OpenKey(
            self.context,
            self.arguments[at].string,
            mode as c_int
        ));
        Key {
            key: key.cast(),
            call: PhantomData,
        }
    }
}

/// A string that we created.
pub(super) struct NewString(RawString);

impl NewString {
    pub(super) const fn get(&self) -> ServerString<'_> {
        // SAFETY: the string lives as long as `self`, and nothing changes it.
        unsafe { ServerString::new(self.0) }
    }
}

impl Drop for NewString {
    fn drop(&mut self) {
        api!(RedisModule_FreeString(std::ptr::null_mut(), self.0));
    }
}

/// An open key.
pub(super) struct Key<'c> {
    key: *mut raw::RedisModuleKey,
    call: PhantomData<&'c ()>,
}

impl Key<'_> {
    /// The module value of our type; `None` if there is no such key.
    pub(super) fn value(
        &self,
    ) -> Result<Option<(*mut raw::RedisModuleType, NonNull<c_void>)>, Error> {
        if self.key.is_null() {
            return Ok(None);
        }
        match api!(RedisModule_KeyType(self.key)) as isize {
            raw::REDISMODULE_KEYTYPE_EMPTY => Ok(None),
            raw::REDISMODULE_KEYTYPE_MODULE => {
                let of = api!(RedisModule_ModuleTypeGetType(self.key));
                let value = NonNull::new(api!(RedisModule_ModuleTypeGetValue(self.key)));
                Ok(value.map(|value| (of, value)))
            }
            _ => Err(wrong_type()),
        }
    }

    pub(super) fn set(&self, of: *mut raw::RedisModuleType, value: *mut c_void) {
        api!(RedisModule_ModuleTypeSetValue(self.key, of, value));
    }

    /// When the key expires, in milliseconds since 1970; `None` if it doesn't.
    pub(super) fn expiry(&self) -> Option<i64> {
        // Redis 8 must not be asked about a key that doesn't exist.
        if api!(RedisModule_KeyType(self.key)) as isize == raw::REDISMODULE_KEYTYPE_EMPTY {
            return None;
        }
        match api!(RedisModule_GetAbsExpire(self.key)) {
            -1 => None,
            at => Some(at),
        }
    }

    pub(super) fn expire_at(&self, at: i64) {
        api!(RedisModule_SetAbsExpire(self.key, at));
    }

    pub(super) fn delete(&self) {
        api!(RedisModule_DeleteKey(self.key));
    }
}

impl Drop for Key<'_> {
    fn drop(&mut self) {
        if !self.key.is_null() {
            api!(RedisModule_CloseKey(self.key));
        }
    }
}

/// A function that not every server has; NULL if this one lacks it.
pub(super) fn function(name: &CStr) -> *mut c_void {
    let mut found: *mut c_void = std::ptr::null_mut();
    let place: *mut *mut c_void = &mut found;
    api!(RedisModule_GetApi(name.as_ptr(), place.cast()));
    found
}

/// Milliseconds since 1970.
pub(super) fn now() -> i64 {
    api!(RedisModule_Milliseconds())
}

/// The server's clock, which is constant during a command, script or transaction.
pub(super) fn clock() -> Moment {
    // SAFETY: a function of the server, set when it loaded the module. Redis 7.0 lacks it.
    let cached = unsafe { raw::RedisModule_CachedMicroseconds };
    match cached {
        // SAFETY: it has no preconditions.
        Some(cached) => Moment::from_micros(unsafe { cached() }),
        None => Moment::from_millis(now()),
    }
}

pub(super) fn wrong_type() -> Error {
    Error::new("WRONGTYPE Operation against a key holding the wrong kind of value")
}

pub(super) fn log(context: Context, text: &str) {
    let text = c_string(text);
    let format: *const c_char = c"%s".as_ptr();
    api!(RedisModule_Log(
        context.0,
        c"warning".as_ptr(),
        format,
        text.as_ptr()
    ));
}
