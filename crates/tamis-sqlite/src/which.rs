//! `tamis_which(index, key)`: a table of the files that may contain a key.
//!
//! Runs the command `tamis grep --candidates`, which does more than read an index: it lists the folders, compares the
//! files with their indexed state, and parses keys like the index does. Doing that here would take half of the command.

use crate::key::{error, with_bytes};
use rusqlite::vtab::{
    Context, Filters, IndexConstraintOp, IndexInfo, Module, VTab, VTabConfig, VTabConnection,
    VTabCursor,
};
use rusqlite::{Connection, Result, ffi};
use serde_json::Value;
use std::borrow::Cow;
use std::ffi::{CStr, OsString, c_int};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStringExt as _;
use std::process::{Command, Stdio};

pub(crate) fn register(db: &Connection) -> Result<()> {
    const MODULE: Module<'_, Which> = Module::eponymous_only_module();
    db.create_module(c"tamis_which", &MODULE, None)
}

/// The columns after `file` and `state` are the arguments, in order.
const ARGUMENTS: [(c_int, &str); 3] = [(2, "an index"), (3, "a key"), (4, "the columns of keys")];

#[repr(C)]
pub(crate) struct Which {
    /// SQLite's part; must be first.
    base: ffi::sqlite3_vtab,
}

// SAFETY: `base` is its first field, and the layout is C's.
unsafe impl<'vtab> VTab<'vtab> for Which {
    type Aux = ();
    type Cursor = Answers<'vtab>;

    fn connect(
        db: &mut VTabConnection,
        _: Option<&()>,
        _: &[u8],
        _: &[u8],
        _: &[u8],
        _: &[&[u8]],
    ) -> Result<(Cow<'static, CStr>, Self)> {
        // It reads files and starts a program, so triggers and views in somebody else's database must not use it.
        db.config(VTabConfig::DirectOnly)?;
        let base = ffi::sqlite3_vtab::default();
        Ok((
            Cow::Borrowed(
                c"CREATE TABLE x(file TEXT, state TEXT, \"index\" HIDDEN, \"key\" HIDDEN, spec HIDDEN)",
            ),
            Self { base },
        ))
    }

    fn best_index(&self, info: &mut IndexInfo) -> Result<bool> {
        let mut given = 0;
        for (at, (column, what)) in ARGUMENTS.into_iter().enumerate() {
            let mut equal = None;
            for (number, constraint) in info.constraints().enumerate() {
                if constraint.column() != column
                    || constraint.operator() != IndexConstraintOp::SQLITE_INDEX_CONSTRAINT_EQ
                {
                    continue;
                }
                if !constraint.is_usable() {
                    return Ok(false); // usable in another order of the tables
                }
                equal = Some(number);
            }
            match equal {
                Some(number) if given == at => {
                    given += 1;
                    let mut usage = info.constraint_usage(number);
                    usage.set_argv_index(given as c_int);
                    usage.set_omit(true);
                }
                None if at == 2 => {}
                _ => {
                    return Err(error(format!(
                        "tamis_which(index, key): expected {what}, got none"
                    )));
                }
            }
        }
        // Each query starts a program.
        info.set_estimated_cost(1e6);
        info.set_estimated_rows(10);
        Ok(true)
    }

    fn open(&'vtab mut self) -> Result<Answers<'vtab>> {
        Ok(Answers::default())
    }
}

/// The files found by one query.
#[derive(Default)]
#[repr(C)]
pub(crate) struct Answers<'vtab> {
    /// SQLite's part; must be first.
    base: ffi::sqlite3_vtab_cursor,
    /// Names and states.
    files: Vec<[String; 2]>,
    at: usize,
    table: PhantomData<&'vtab Which>,
}

/// The output of `tamis grep --candidates`.
fn ask(arguments: &[OsString]) -> Result<Vec<[String; 2]>> {
    let mut command = Command::new("tamis");
    command
        .args(["grep", "--candidates", "--json"])
        .stdin(Stdio::null());
    if let [_, _, spec] = arguments {
        command.arg("--key").arg(spec);
    }
    // After the dashes, nothing is an option.
    let (index, keys) = (&arguments[0], &arguments[1]);
    let done = command.arg("--").args([keys, index]).output();
    let done = done.map_err(|e| {
        error(format!(
            "tamis grep: {e}; tamis_which runs the command `tamis`, which must be on the PATH"
        ))
    })?;
    if !matches!(done.status.code(), Some(0 | 1)) {
        let said = String::from_utf8_lossy(&done.stderr);
        return Err(error(said.trim().trim_start_matches("tamis: ")));
    }
    let answer: Value = serde_json::from_slice(&done.stdout).map_err(error)?;
    let files = answer["files"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    Ok(files
        .map(|file| [text(&file["file"]), text(&file["state"])])
        .collect())
}

// SAFETY: `base` is its first field, and the layout is C's.
unsafe impl VTabCursor for Answers<'_> {
    fn filter(&mut self, _: c_int, _: Option<&str>, given: &Filters<'_>) -> Result<()> {
        (self.at, self.files) = (0, Vec::new());
        let mut arguments = Vec::new();
        for value in given.iter() {
            match with_bytes(value, |bytes| OsString::from_vec(bytes.to_vec()))? {
                Some(argument) => arguments.push(argument),
                None => return Ok(()), // no file is known to contain NULL
            }
        }
        self.files = ask(&arguments)?;
        Ok(())
    }

    fn next(&mut self) -> Result<()> {
        self.at += 1;
        Ok(())
    }

    fn eof(&self) -> bool {
        self.at >= self.files.len()
    }

    fn column(&self, ctx: &mut Context, column: c_int) -> Result<()> {
        match self.files.get(self.at) {
            Some(row) if column < 2 => ctx.set_result(&row[column as usize]),
            _ => ctx.set_result(&rusqlite::types::Null),
        }
    }

    fn rowid(&self) -> Result<i64> {
        Ok(self.at as i64)
    }
}
