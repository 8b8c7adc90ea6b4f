//! The library as WebAssembly, for the npm package `tamis` (`js/`), which is all that calls it.
//!
//! The border is plain: numbers, and bytes in linear memory. Keys come in one piece of memory that
//! stays in place (`scratch`), filters are pointers, and whatever else a call answers, text
//! of an error as well, is left in one buffer ([`memory::reply`]) until the next call that answers so.
//! JavaScript checks types; numbers are checked here.

pub mod memory;
#[cfg(feature = "page")]
pub mod page;
#[cfg(target_arch = "wasm32")]
mod random;
