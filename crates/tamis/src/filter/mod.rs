//! The filter types.

mod adding;
pub(crate) mod any;
pub(crate) mod counting;
pub(crate) mod cuckoo;
pub(crate) mod draft;
mod files;
pub(crate) mod growing;
#[cfg(feature = "plain-heap")]
mod heap;
pub(crate) mod in_order;
pub(crate) mod keys;
pub(crate) mod kinds;
pub(crate) mod open;
pub(crate) mod shell;
pub(crate) mod window;
