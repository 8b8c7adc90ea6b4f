//! What holding a user's own keys costs: exact sets, databases and filters, side by side.
//!
//! ```text
//! inputs --keys.rs--> files of keys --measure.rs--> a process for each contender (step.rs, work.rs) --> rows
//! rows --advice.rs--> what to take;  table.rs and pictures.rs (by plot.rs) show both
//! ```
//!
//! A process of its own is what makes memory measurable: the system counts it, and nothing else is in it.

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
