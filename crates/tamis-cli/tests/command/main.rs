//! The command, run as people run it, in a folder of its own.

#[path = "../common/mod.rs"]
mod common;
mod random;
#[path = "../../../tamis-redis/tests/common/mod.rs"]
#[allow(dead_code, unused_imports)] // the tests of Redis use the rest
mod servers;
#[path = "../../../tamis/tests/common/windows.rs"]
#[allow(dead_code)] // questions between additions
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
// No index is made on Windows.
#[cfg(unix)]
mod grep;
#[cfg(unix)]
mod index;
#[cfg(unix)]
mod inputs;
#[cfg(unix)]
mod installing;
mod key_rules;
#[cfg(unix)]
mod outputs;
mod plan;
mod refusals;
mod secrets;
mod sizes;
mod windows;
