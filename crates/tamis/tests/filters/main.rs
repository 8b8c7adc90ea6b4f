//! What filters answer, how often they are wrong, and how they are combined.

#[path = "../common/mod.rs"]
mod common;

mod churn;
mod conformance;
mod explain;
mod finished;
mod rates;
mod window;
