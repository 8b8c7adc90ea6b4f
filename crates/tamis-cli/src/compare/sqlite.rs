//! SQLite from the user's system. The library is loaded at run time, because compiling it would take a fifth of Tamis's
//! whole build time.
//!
//! A table with one column and no row ids, filled in one transaction and queried in another.

use super::contender::Contender;
use super::report::Step;
use super::work::{self, Unfit, Work};
use anyhow::{Context, Result, bail};
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::time::Instant;

#[cfg(target_os = "macos")]
const NAMES: [&CStr; 1] = [c"libsqlite3.dylib"];
#[cfg(not(target_os = "macos"))]
const NAMES: [&CStr; 2] = [c"libsqlite3.so.0", c"libsqlite3.so"];

pub(super) fn build(work: &Work) -> Result<Step> {
    let path = work.file(Contender::Sqlite);
    let _ = std::fs::remove_file(&path); // left from an earlier run in the same folder
    let library = Library::load()?;
    let database = library.open(&path)?;
    // The database need not survive a crash.
    database.execute(c"PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF")?;
    database.execute(c"CREATE TABLE keys (key BLOB PRIMARY KEY) WITHOUT ROWID")?;
    database.execute(c"BEGIN")?;
    let mut insert = database.prepare(c"INSERT INTO keys VALUES (?1)")?;
    let adding = work.add_held(|keys| keys.iter().try_for_each(|key| insert.run(key).map(drop)))?;
    let start = Instant::now();
    drop(insert);
    database.execute(c"COMMIT")?;
    drop(database);
    work::built(&path, adding + start.elapsed().as_secs_f64())
}

pub(super) fn ask(work: &Work) -> Result<Step> {
    let path = work.file(Contender::Sqlite);
    let library = Library::load()?;
    let database = library.open(&path)?;
    database.execute(c"BEGIN")?;
    let mut select = database.prepare(c"SELECT 1 FROM keys WHERE key = ?1")?;
    let answers = work.ask_singly(|key| select.run(key))?;
    work::answered(&path, answers)
}

const OK: c_int = 0;
const ROW: c_int = 100;
const DONE: c_int = 101;
const OPEN_READ_WRITE: c_int = 2;
const OPEN_CREATE: c_int = 4;

// The functions we use, as sqlite3.h declares them. Handles are opaque here.
type Open = unsafe extern "C" fn(*const c_char, *mut *mut c_void, c_int, *const c_char) -> c_int;
type Execute = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    *const c_void,
    *mut c_void,
    *mut *mut c_char,
) -> c_int;
type Prepare = unsafe extern "C" fn(
    *mut c_void,
    *const c_char,
    c_int,
    *mut *mut c_void,
    *mut *const c_char,
) -> c_int;
type Bind = unsafe extern "C" fn(*mut c_void, c_int, *const c_void, u64, *const c_void) -> c_int;
type Handle = unsafe extern "C" fn(*mut c_void) -> c_int;
type Message = unsafe extern "C" fn(*mut c_void) -> *const c_char;

struct Library {
    open: Open,
    close: Handle,
    execute: Execute,
    prepare: Prepare,
    bind: Bind,
    step: Handle,
    reset: Handle,
    finalize: Handle,
    message: Message,
}

/// Looks up a function of the library by name.
macro_rules! function {
    ($library:expr, $name:literal, $type:ty) => {{
        // SAFETY: the library was loaded and is never unloaded; the name ends with NUL.
        let found = unsafe { libc::dlsym($library, $name.as_ptr()) };
        if found.is_null() {
            bail!("the system's SQLite has no {}", $name.to_string_lossy());
        }
        // SAFETY: sqlite3.h declares the function of this name with this type, and SQLite promises never to change it.
        unsafe { std::mem::transmute::<*mut c_void, $type>(found) }
    }};
}

impl Library {
    fn load() -> Result<Self> {
        // SAFETY: loading SQLite has no side effects that others could notice.
        let load = |name: &&CStr| unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
        let library = NAMES.iter().map(load).find(|library| !library.is_null());
        let Some(library) = library else {
            return Err(Unfit("SQLite's library (libsqlite3) is not installed here".into()).into());
        };
        Ok(Self {
            open: function!(library, c"sqlite3_open_v2", Open),
            close: function!(library, c"sqlite3_close", Handle),
            execute: function!(library, c"sqlite3_exec", Execute),
            prepare: function!(library, c"sqlite3_prepare_v2", Prepare),
            bind: function!(library, c"sqlite3_bind_blob64", Bind),
            step: function!(library, c"sqlite3_step", Handle),
            reset: function!(library, c"sqlite3_reset", Handle),
            finalize: function!(library, c"sqlite3_finalize", Handle),
            message: function!(library, c"sqlite3_errmsg", Message),
        })
    }

    fn open(&self, path: &Path) -> Result<Database<'_>> {
        let name = CString::new(path.as_os_str().as_bytes())?;
        let mut database = Database {
            library: self,
            handle: null_mut(),
        };
        // SAFETY: the name ends with NUL, and the handle is written to.
        let code = unsafe {
            (self.open)(
                name.as_ptr(),
                &raw mut database.handle,
                OPEN_READ_WRITE | OPEN_CREATE,
                null(),
            )
        };
        database.check(code)?;
        Ok(database)
    }
}

struct Database<'l> {
    library: &'l Library,
    handle: *mut c_void,
}

impl Database<'_> {
    fn check(&self, code: c_int) -> Result<()> {
        match code {
            OK | ROW | DONE => Ok(()),
            _ if self.handle.is_null() => bail!("SQLite: error {code}"),
            _ => {
                // SAFETY: the handle is open, and the message stays until the next call.
                let message = unsafe { CStr::from_ptr((self.library.message)(self.handle)) };
                bail!("SQLite: {} (error {code})", message.to_string_lossy())
            }
        }
    }

    fn execute(&self, sql: &CStr) -> Result<()> {
        // SAFETY: the handle is open, and the call uses neither a callback nor a message.
        let code = unsafe {
            (self.library.execute)(self.handle, sql.as_ptr(), null(), null_mut(), null_mut())
        };
        self.check(code)
            .with_context(|| sql.to_string_lossy().into_owned())
    }

    fn prepare(&self, sql: &CStr) -> Result<Statement<'_>> {
        let mut handle = null_mut();
        // SAFETY: the handle is open; the statement's is written to.
        let code = unsafe {
            (self.library.prepare)(self.handle, sql.as_ptr(), -1, &raw mut handle, null_mut())
        };
        self.check(code)?;
        Ok(Statement {
            database: self,
            handle,
        })
    }
}

impl Drop for Database<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing uses the handle any more: its statements borrow it and are gone. Null is allowed.
        unsafe { (self.library.close)(self.handle) };
    }
}

/// A statement with one parameter.
struct Statement<'d> {
    database: &'d Database<'d>,
    handle: *mut c_void,
}

impl Statement<'_> {
    /// Runs it with a key; returns whether there is a row.
    fn run(&mut self, key: &[u8]) -> Result<bool> {
        let library = self.database.library;
        // SAFETY: the statement is open. The key is not copied (no destructor is SQLITE_STATIC) and outlives all use:
        // the statement is stepped here, reset, and bound anew before it is stepped again. An empty slice's pointer is
        // not null, so it is bound as an empty value.
        let (code, reset) = unsafe {
            let code = (library.bind)(
                self.handle,
                1,
                key.as_ptr().cast(),
                key.len() as u64,
                null(),
            );
            self.database.check(code)?;
            let code = (library.step)(self.handle);
            (code, (library.reset)(self.handle))
        };
        self.database.check(code)?;
        self.database.check(reset)?;
        Ok(code == ROW)
    }
}

impl Drop for Statement<'_> {
    fn drop(&mut self) {
        // SAFETY: nothing uses the statement any more, and its database is open.
        unsafe { (self.database.library.finalize)(self.handle) };
    }
}
