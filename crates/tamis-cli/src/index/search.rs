//! The true matches in a file.

use super::scan::{self, Kind, Limits};
use crate::engine::input::InputError;
use crate::engine::key::{KeySpec, Keys, Query};
use crate::engine::progress::Progress;
use std::path::Path;
use std::sync::Arc;

/// A record that has what one of the queries asks for.
pub(crate) struct Match<'a> {
    /// The number of its first line, or of the row in Parquet; from 1.
    pub(crate) number: u64,
    /// The record, or the key of a row of Parquet as one asks for it.
    pub(crate) text: &'a [u8],
    /// The first of the queries that it answers.
    pub(crate) query: usize,
}

/// Calls `found` with every match, in order. What was found before an error counts.
pub(crate) fn search(
    path: &Path,
    spec: &KeySpec,
    queries: &[&Query],
    progress: &Arc<Progress>,
    mut found: impl FnMut(Match),
) -> Result<(), InputError> {
    let mut keys = Keys::new(spec);
    let searched = match scan::open(path, spec, progress) {
        Err(error) => Err(error),
        Ok(Kind::Text(input)) => {
            let mut lines = 1;
            scan::for_each_chunk(input, spec.rule(), Limits::NONE, progress, |chunk| {
                let layout = chunk.layout;
                let records = chunk.records();
                let whole = &chunk.buffer[..chunk.length];
                if queries.iter().any(|query| query.can_be_in(records)) {
                    let mut line = lines + newlines(&whole[..chunk.header]);
                    let mut counted = 0;
                    layout.for_each(records, |start, end| {
                        let content = layout.content(&records[start..end]);
                        let matches = |query: &&Query| {
                            query.can_be_in(content)
                                && query.matches(&mut keys, content, &chunk.columns)
                        };
                        if let Some(query) = queries.iter().position(matches) {
                            line += newlines(&records[counted..start]);
                            counted = start;
                            found(Match {
                                number: line,
                                text: content,
                                query,
                            });
                        }
                    });
                }
                lines += newlines(whole);
                Ok(())
            })
        }
        Ok(Kind::Parquet(file, columns)) => {
            scan::for_each_row(path, file, columns, progress, |row, values| {
                let matches = |query: &&Query| query.matches_values(&mut keys, values);
                if let Some(query) = queries.iter().position(matches) {
                    found(Match {
                        number: row,
                        text: &as_asked(values),
                        query,
                    });
                }
            })
        }
    };
    match searched {
        // Then it has no such key.
        Err(error) if error.is_no_column() => Ok(()),
        searched => searched,
    }
}

fn newlines(bytes: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', bytes).count() as u64
}

/// As one asks for the row: several values as CSV, one as it is.
fn as_asked(values: &[&[u8]]) -> Vec<u8> {
    if let [value] = values {
        return value.to_vec();
    }
    let field = |value: &&[u8]| {
        let plain = !value.iter().any(|byte| b",\"\r\n".contains(byte));
        match plain {
            true => value.to_vec(),
            false => {
                let text = value.iter().flat_map(|byte| match byte {
                    b'"' => vec![b'"', b'"'],
                    other => vec![*other],
                });
                [b'"'].into_iter().chain(text).chain([b'"']).collect()
            }
        }
    };
    values.iter().map(field).collect::<Vec<_>>().join(&b',')
}
