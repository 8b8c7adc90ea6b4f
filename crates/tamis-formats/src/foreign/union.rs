//! All keys of two filters in one.

use super::{Body, Foreign};
use crate::Error;
use crate::format::redis::Value;

impl Foreign<'_> {
    /// Takes in all keys of another filter of the same format, size and
    /// hashes. A count that the file has becomes the sum of both, as the keys
    /// that both have can't be told; poppy's becomes the estimate that poppy
    /// makes.
    ///
    /// ```
    /// use tamis_formats::{Create, create};
    /// let mut all = create(Create::Dcso, 1_000, 0.01)?;
    /// let mut more = create(Create::Dcso, 1_000, 0.01)?;
    /// more.insert(b"key")?;
    /// all.union_with(&more)?;
    /// assert!(all.contains(b"key"));
    /// assert!(all.union_with(&create(Create::Dcso, 2_000, 0.01)?).is_err());
    /// # Ok::<(), tamis_formats::Error>(())
    /// ```
    pub fn union_with(&mut self, other: &Foreign<'_>) -> Result<(), Error> {
        let format = self.format;
        if format != other.format {
            return Err(Error::Unlike {
                what: "format",
                ours: format.to_string(),
                theirs: other.format.to_string(),
            });
        }
        self.check_writable()?;
        other.check_writable()?;
        match (&mut self.body, &other.body) {
            (
                Body::Plain {
                    file, plain, facts, ..
                },
                Body::Plain {
                    file: more,
                    plain: theirs,
                    facts: counted,
                    ..
                },
            ) => {
                plain.union_with(file.to_mut(), theirs, more)?;
                let keys = counted.keys.unwrap_or_default();
                let keys = facts.keys.map(|ours| ours.saturating_add(keys));
                facts.set_count(file.to_mut(), keys);
            }
            (
                Body::Poppy { file, poppy, facts },
                Body::Poppy {
                    file: more,
                    poppy: theirs,
                    ..
                },
            ) => {
                poppy.union_with(file.to_mut(), theirs, more)?;
                let keys = poppy
                    .keys(file)
                    .map_or(u64::MAX, |keys| keys.round() as u64);
                facts.set_count(file.to_mut(), Some(keys));
            }
            (
                Body::Redis {
                    value: Value::Bloom(chain),
                    ..
                },
                Body::Redis {
                    value: Value::Bloom(theirs),
                    ..
                },
            ) => chain.union_with(theirs)?,
            (
                Body::Parquet { file, column },
                Body::Parquet {
                    file: more,
                    column: theirs,
                },
            ) => match (column.only(file), theirs.only(more)) {
                (Some(ours), Some(theirs)) => ours.union_with(file.to_mut(), theirs, more)?,
                _ => {
                    return Err(Error::Unable {
                        format,
                        what: "be united where they lie",
                        instead: "a file's filters describe its rows",
                    });
                }
            },
            _ => {
                return Err(Error::Unable {
                    format,
                    what: "be united",
                    instead: "where a fingerprint may lie depends on its key; add the keys of one to the other",
                });
            }
        }
        Ok(())
    }
}
