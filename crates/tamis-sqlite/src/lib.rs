//! Filters in SQLite queries: `.load ./tamis_sqlite`, then `tamis_check('seen.tamis', key)` and others; see
//! docs/sql.md.
//!
//! We use rusqlite rather than a C file over libtamis: it calls SQLite through the loading program's function table, so
//! that nothing of SQLite is compiled, linked or generated here, and it doesn't let panics out.

mod aggregate;
mod ask;
mod key;
mod open;
mod which;

use rusqlite::functions::FunctionFlags as Flags;
use rusqlite::{Connection, Result, ffi};
use std::ffi::{c_char, c_int};

/// The version that rusqlite is built for: with an older one, it would end the process.
const OLDEST: c_int = ffi::SQLITE_VERSION_NUMBER;

/// The entry point that SQLite calls when it loads the extension, whatever the file's name.
///
/// # Safety
/// Only SQLite calls it, with the arguments for extensions.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sqlite3_extension_init(
    db: *mut ffi::sqlite3,
    error: *mut *mut c_char,
    api: *mut ffi::sqlite3_api_routines,
) -> c_int {
    // SAFETY: both functions are SQLite's, and have existed since it has had extensions.
    unsafe {
        let version = (*api).libversion_number.map_or(0, |version| version());
        if version < OLDEST {
            if let Some(print) = (*api).mprintf {
                *error = print(
                    c"tamis needs SQLite 3.34.1 or newer, and this is %d".as_ptr(),
                    version,
                );
            }
            return ffi::SQLITE_ERROR;
        }
        Connection::extension_init2(db, error, api, register)
    }
}

/// Functions that read files only work in statements: a trigger or view in somebody else's database must not call them.
/// Their answers don't depend on their arguments alone, either.
const READS_FILES: Flags = Flags::SQLITE_UTF8.union(Flags::SQLITE_DIRECTONLY);
/// Pure functions, harmless wherever they are called. Querying a filter in a blob isn't among them: a window answers as
/// of now, so an index of its answers would soon be wrong.
const COMPUTES: Flags = Flags::SQLITE_UTF8
    .union(Flags::SQLITE_DETERMINISTIC)
    .union(Flags::SQLITE_INNOCUOUS);

fn register(db: Connection) -> Result<bool> {
    let takes_keys = Flags::SQLITE_SUBTYPE;
    for arguments in [2, 3] {
        db.create_scalar_function(
            c"tamis_check",
            arguments,
            READS_FILES | takes_keys,
            ask::check,
        )?;
    }
    let kept = open::Kept::default();
    db.create_scalar_function(
        c"tamis_has",
        2,
        Flags::SQLITE_UTF8 | Flags::SQLITE_INNOCUOUS | takes_keys,
        ask::has(kept.clone()),
    )?;
    db.create_scalar_function(c"tamis_has", 3, READS_FILES | takes_keys, ask::has(kept))?;
    for arguments in [1, 2] {
        db.create_scalar_function(c"tamis_info", arguments, READS_FILES, ask::info)?;
    }
    db.create_scalar_function(
        c"tamis_int",
        1,
        COMPUTES | Flags::SQLITE_RESULT_SUBTYPE,
        key::int,
    )?;
    for arguments in [1, 2, 3] {
        db.create_aggregate_function(
            c"tamis_filter",
            arguments,
            Flags::SQLITE_UTF8 | takes_keys,
            aggregate::Maker,
        )?;
    }
    which::register(&db)?;
    // Stays loaded when the connection closes: other threads may have to free our memory when they end.
    Ok(true)
}
