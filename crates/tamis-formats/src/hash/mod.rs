//! The hashes that other systems' files are made with. Each is the variant of
//! its file format, odd ones included; the crate's own tests hold vectors of
//! the real implementations for every length that has broken one of them.

pub(crate) mod murmur;
pub(crate) mod small;
pub(crate) mod xxph3;
