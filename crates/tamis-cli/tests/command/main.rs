//! Runs the command as users do, in a temporary folder.

#[path = "../common/mod.rs"]
mod common;
mod random;
#[path = "../../../tamis-redis/tests/common/mod.rs"]
#[allow(dead_code, unused_imports)] // the Redis tests use the rest
mod servers;
#[path = "../../../tamis/tests/common/windows.rs"]
#[allow(dead_code)] // queries between additions
mod window_events;

#[cfg(unix)]
mod bar;
mod build;
mod check;
mod commands;
mod compare;
mod dedup;
mod explain;
mod foreign;
// Windows has no indexes.
#[cfg(unix)]
mod grep;
#[cfg(unix)]
mod index;
#[cfg(unix)]
mod inputs;
#[cfg(unix)]
mod installing;
mod key_rules;
mod messages;
#[cfg(unix)]
mod outputs;
mod plan;
mod refusals;
mod secrets;
mod sizes;
mod windows;
