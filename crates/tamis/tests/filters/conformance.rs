//! One suite of properties for every kind of filter.
//!
//! `subject.rs` is the table of kinds; a new kind is a new row there, and a new match arm in
//! `oracle.rs`. The other modules are the properties, each for all subjects with the ability it
//! needs.

mod answers;
mod combine;
mod counts;
mod members;
mod oracle;
mod subject;
mod tables;
mod threads;
