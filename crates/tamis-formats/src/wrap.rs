//! The files that a format has for one and the same filter.

/// The files that a format has for one and the same filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrap {
    /// RedisBloom's, as DUMP gives it and RESTORE takes it.
    Dump,
    /// RedisBloom's, as SCANDUMP gives it and LOADCHUNK takes it.
    Chunks,
    /// bits-and-blooms's JSON.
    Json,
    /// bits-and-blooms's `WriteTo`.
    Binary,
}

impl Wrap {
    /// Every one.
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
