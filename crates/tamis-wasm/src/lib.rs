//! The library as WebAssembly, for the npm package `tamis`: what `js/core.js` calls, and nothing else does.
//!
//! The border is plain: numbers, and bytes in linear memory. Filters are pointers. Many keys come as one
//! block of memory that stays in place (`batch.rs`). Whatever else a call answers, the text of an error as
//! well, is left in one buffer until the next call that answers so (`memory.rs`). JavaScript has checked the
//! types; values are checked here.

pub mod batch;
pub mod filter;
pub mod list;
pub mod memory;
#[cfg(feature = "page")]
pub mod page;
#[cfg(target_arch = "wasm32")]
mod random;
pub mod wish;
