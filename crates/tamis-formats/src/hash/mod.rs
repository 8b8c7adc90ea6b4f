//! The hashes of other systems' files. Each is the variant of its file format,
//! including odd ones. Test vectors come from other implementations and cover
//! every length that has ever broken one. For xxph3, only RocksDB implements
//! it: the samples include one of its tables with such keys.

pub(crate) mod crates;
pub(crate) mod md;
pub(crate) mod murmur;
pub(crate) mod sha2;
pub(crate) mod small;
#[cfg(test)]
mod tests;
pub(crate) mod xxph3;
