//! One file per subcommand: its arguments, then its code.

#[cfg(not(all(
    feature = "clean",
    feature = "compare",
    feature = "serve",
    feature = "parquet"
)))]
pub(crate) mod absent;
pub(crate) mod add;
pub(crate) mod build;
pub(crate) mod check;
#[cfg(feature = "clean")]
pub(crate) mod clean;
#[cfg(feature = "compare")]
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod copy;
pub(crate) mod count;
pub(crate) mod create;
pub(crate) mod dedup;
pub(crate) mod drop;
pub(crate) mod explain;
pub(crate) mod grep;
pub(crate) mod index;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod man;
pub(crate) mod merge;
#[cfg(feature = "serve")]
pub(crate) mod page;
#[cfg(feature = "parquet")]
pub(crate) mod parquet;
pub(crate) mod plan;
pub(crate) mod remove;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod verify;
