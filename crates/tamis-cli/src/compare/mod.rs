//! What it costs to hold a user's own keys in exact sets, databases and filters.
//!
//! ```text
//! inputs --keys.rs--> files of keys --measure.rs--> a process for each contender (step.rs, work.rs) --> rows
//! rows --advice.rs--> what to take;  table.rs and pictures.rs (by plot.rs) show both
//! ```
//!
//! Each contender runs in a separate process, so that the system's memory count covers nothing else.

pub(crate) mod advice;
pub(crate) mod contender;
mod exact;
mod filters;
mod key_file;
pub(crate) mod keys;
pub(crate) mod measure;
mod one_hash;
pub(crate) mod pictures;
mod plot;
mod redb;
pub(crate) mod report;
#[cfg(unix)]
mod sqlite;
#[cfg(not(unix))]
#[path = "no_sqlite.rs"]
mod sqlite;
pub(crate) mod step;
pub(crate) mod table;
mod work;
