//! Files written by the original implementations: each opens, has its keys,
//! keeps its rate, and is reproduced byte for byte from the same keys.

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
