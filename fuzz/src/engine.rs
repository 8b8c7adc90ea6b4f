//! How the command takes keys from records: its own files, since a command is no library.

#[path = "../../crates/tamis-cli/src/engine/key/mod.rs"]
pub(crate) mod key;
#[path = "../../crates/tamis-cli/src/engine/records.rs"]
pub(crate) mod records;
