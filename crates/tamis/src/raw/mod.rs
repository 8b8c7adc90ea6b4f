//! Geometry and kernels over slices of words, one kind a file. No rate, no
//! file and no owner of memory is known here.

pub(crate) mod blocked;
pub(crate) mod bloom;
pub(crate) mod cascade;
pub(crate) mod counting;
pub(crate) mod cuckoo;
pub(crate) mod fuse;
pub(crate) mod isa;
pub(crate) mod layers;
pub(crate) mod layout;
pub(crate) mod ribbon;
pub(crate) mod roomy;
pub(crate) mod shape;
pub(crate) mod sorted;
pub(crate) mod word;
