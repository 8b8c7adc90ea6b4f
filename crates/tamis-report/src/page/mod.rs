//! Answers the page's requests as JSON, in the service and as WebAssembly in the page. So every number is computed in
//! one place, and never in JavaScript.

mod dropped;
mod generations;
mod lines;
mod plan;
mod playground;
mod why;

pub use dropped::{Dropped, Refused};
pub use generations::bring_up_to_date;
pub use lines::lines;
pub use plan::plan;
pub use playground::playground;
pub use why::why;
