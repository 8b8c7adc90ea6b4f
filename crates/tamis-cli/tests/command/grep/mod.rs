//! Compares `tamis grep` with rg: the same lines, from the same files, whatever happens to them meanwhile.

#[allow(dead_code)] // benchmarks use more of it
mod corpus;
#[cfg(target_os = "linux")]
mod killed;
mod kinds;
mod list;
#[cfg(target_os = "linux")]
mod live;
mod peer;
mod places;
#[allow(dead_code)]
mod queries;
mod random;
mod rg_options;
mod segments;
mod times;
