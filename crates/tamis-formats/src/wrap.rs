//! The file formats for the same filter.

/// The file formats for the same filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrap {
    /// RedisBloom's DUMP, for RESTORE.
    Dump,
    /// RedisBloom's SCANDUMP, for LOADCHUNK.
    Chunks,
    /// bits-and-blooms's JSON.
    Json,
    /// bits-and-blooms's `WriteTo`.
    Binary,
}

impl Wrap {
    /// All variants.
    pub const ALL: [Self; 4] = [Self::Dump, Self::Chunks, Self::Json, Self::Binary];

    /// The name on the command line.
    ///
    /// ```
    /// assert_eq!(tamis_formats::Wrap::Dump.name(), "dump");
    /// ```
    pub const fn name(self) -> &'static str {
        match self {
            Self::Dump => "dump",
            Self::Chunks => "chunks",
            Self::Json => "json",
            Self::Binary => "binary",
        }
    }
}
