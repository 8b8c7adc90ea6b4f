//! What the page without a server asks: JSON and text in, JSON out, made where the service's answers
//! are made (`tamis_report::page`). A filter's file is opened where JavaScript has put it.

use crate::memory::{given, reply};
use serde_json::Value;
use std::cell::RefCell;
use tamis_report::page::{self, Dropped, Refused};

thread_local! {
    /// The file that was opened. There is one for each instance: who drops another starts anew,
    /// which also gives back the memory.
    static OPENED: RefCell<Option<Dropped<'static>>> = const { RefCell::new(None) };
}

/// What [`page_open`] returns.
const WRONG: u32 = 0;
const OPEN: u32 = 1;
const KEY_NEEDED: u32 = 2;

/// Leaves the answer, or the text of an error; whether it is the answer.
fn answer(answer: Result<Value, String>) -> bool {
    let is_answer = answer.is_ok();
    match answer {
        Ok(value) => reply(value.to_string()),
        Err(error) => reply(error),
    }
    is_answer
}

/// A query as text. What JavaScript encodes is UTF-8.
fn text(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes).map_err(|error| error.to_string())
}

/// What `GET /v1/plan` answers to this query.
///
/// # Safety
/// Those of [`given`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn page_plan(at: *const u8, len: usize) -> bool {
    // SAFETY: the caller's promise.
    let query = unsafe { given(at, len) };
    answer(text(query).and_then(page::plan))
}

/// What `GET /v1/why` answers to this query.
///
/// # Safety
/// Those of [`given`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn page_why(at: *const u8, len: usize) -> bool {
    // SAFETY: the caller's promise.
    let query = unsafe { given(at, len) };
    answer(text(query).and_then(page::why))
}

/// What `POST /v1/playground` answers to this body.
///
/// # Safety
/// Those of [`given`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn page_playground(at: *const u8, len: usize) -> bool {
    // SAFETY: the caller's promise.
    let request = unsafe { given(at, len) };
    answer(page::playground(request))
}

/// Opens a file, with the text of its key file if `key_len` is not 0, and describes it. Returns
/// [`OPEN`], or why not.
///
/// # Safety
/// - `at` and `len` are within memory that JavaScript has allocated, or `len` is 0, and so are
///   `key_at` and `key_len`.
/// - Once this has returned [`OPEN`], the file is neither changed nor freed, ever.
/// - Nothing writes to the key before this returns.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn page_open(
    at: *const u8,
    len: usize,
    key_at: *const u8,
    key_len: usize,
) -> u32 {
    // SAFETY: the caller's promise.
    let (file, key) = unsafe { (given(at, len), given(key_at, key_len)) };
    let key = match key {
        [] => Ok(None),
        key => text(key).map(Some),
    };
    let opened = key
        .map_err(Refused::Wrong)
        .and_then(|key| Dropped::open(file, key));
    match opened {
        Ok(dropped) => {
            reply(dropped.info().to_string());
            OPENED.set(Some(dropped));
            OPEN
        }
        Err(Refused::KeyNeeded(text)) => {
            reply(text);
            KEY_NEEDED
        }
        Err(Refused::Wrong(text)) => {
            reply(text);
            WRONG
        }
    }
}

/// Which of these keys may be in the opened file.
///
/// # Safety
/// Those of [`given`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn page_ask(at: *const u8, len: usize) -> bool {
    // SAFETY: the caller's promise.
    of_opened(unsafe { given(at, len) }, Dropped::ask)
}

/// Why the opened file answers as it does for these keys.
///
/// # Safety
/// Those of [`given`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn page_explain(at: *const u8, len: usize) -> bool {
    // SAFETY: the caller's promise.
    of_opened(unsafe { given(at, len) }, Dropped::explain)
}

fn of_opened(
    request: &[u8],
    ask: impl Fn(&Dropped<'static>, &[u8]) -> Result<Value, String>,
) -> bool {
    OPENED.with_borrow(|opened| match opened {
        Some(opened) => answer(ask(opened, request)),
        None => answer(Err("no file is open".into())),
    })
}
