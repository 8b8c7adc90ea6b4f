//! The library as WebAssembly, for the npm package `tamis`: what `js/core.js` calls, and nothing else does.
//!
//! The border is plain: numbers, and bytes in linear memory. Filters are pointers. Many keys come as one
//! block of memory that stays in place (`batch.rs`). Whatever else a call answers, the text of an error as
//! well, is left in one buffer until the next call that answers so (`memory.rs`). JavaScript has checked the
//! types; values are checked here. With the feature `page` it is the library for the page of `tamis serve` instead
//! (`page.rs`), which is much smaller without what the package calls.

#[cfg(not(feature = "page"))]
pub mod batch;
#[cfg(not(feature = "page"))]
pub mod filter;
#[cfg(not(feature = "page"))]
pub mod list;
pub mod memory;
#[cfg(feature = "page")]
pub mod page;
#[cfg(target_arch = "wasm32")]
mod random;
#[cfg(not(feature = "page"))]
pub mod wish;
