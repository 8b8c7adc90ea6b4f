//! Key specs as arguments.

use tamis_records::key::KeySpec;

/// Adds a hint for builds without Parquet.
pub(crate) fn parse_key_spec(text: &str) -> Result<KeySpec, String> {
    text.parse().map_err(|why: String| {
        let is_parquet = text.starts_with("parquet:") || text.contains(":parquet:");
        if cfg!(not(feature = "parquet")) && is_parquet {
            format!("{why}\n{}", crate::FULL_BUILD)
        } else {
            why
        }
    })
}
