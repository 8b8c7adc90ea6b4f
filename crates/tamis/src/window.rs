//! Options and parts of a [`Window`](crate::Window).

pub use crate::filter::window::Generation;
pub use crate::raw::window::{Renewal, Span, When, WindowOptions};
