//! Files that the real implementations wrote: each opens, has its keys, keeps
//! its rate, and is written again byte for byte from the same keys.

mod bitmap;
mod common;
mod go_and_rust;
mod hostile;
mod java;
mod opening;
mod others;
mod python;
mod redis;
mod tables;
