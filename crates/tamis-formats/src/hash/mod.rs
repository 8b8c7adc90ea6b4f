//! The hashes that other systems' files are made with. Each is the variant of
//! its file format, odd ones included; the vectors are another implementation's,
//! for every length that has broken one. xxph3 has none but RocksDB: a table of
//! it with such keys is among the samples.

pub(crate) mod crates;
pub(crate) mod md;
pub(crate) mod murmur;
pub(crate) mod sha2;
pub(crate) mod small;
#[cfg(test)]
mod tests;
pub(crate) mod xxph3;
