//! What the page asks, answered as JSON: by the service, and by WebAssembly in the page itself. So
//! no number is made twice, and none in JavaScript.

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
