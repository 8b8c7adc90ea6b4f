//! Filters in files: their format, damage, and concurrent users.

#[path = "../common/mod.rs"]
mod common;

mod corrupt;
mod golden;
mod growing;
mod index;
#[cfg(unix)]
mod mapped;
#[cfg(unix)]
mod window_shared;
