//! Finds the true matches in a file.

use crate::input::InputError;
use crate::key::{KeySpec, Keys, Query};
use crate::progress::Progress;
use crate::reader::Chunk;
use crate::records::newlines;
use crate::scan::{Opened, Way};
use std::path::Path;
use std::sync::Arc;

/// A record that matches one of the queries.
pub struct Match<'a> {
    /// The number of its first line, or of the row in Parquet, from 1.
    pub number: u64,
    /// The record; for Parquet, the key of the row as it would be queried.
    pub text: &'a [u8],
    /// The first query that it matches.
    pub query: usize,
}

/// A match, passed on by the thread that found it.
struct Found {
    /// The number of lines before it in its chunk.
    lines: u64,
    text: Vec<u8>,
    query: usize,
}

/// Calls `found` with every match, in order. Matches before an error are valid.
pub fn search(
    path: &Path,
    spec: &KeySpec,
    queries: &[&Query],
    threads: usize,
    progress: &Arc<Progress>,
    mut found: impl FnMut(Match) + Send,
) -> Result<(), InputError> {
    let opened = Opened::open(path, progress)?;
    let searched = match opened.way(spec) {
        Err(error) => Err(error),
        Ok(Way::Text) => {
            let mut before = 1;
            let take = |(matches, lines): (Vec<Found>, u64)| {
                for one in matches {
                    found(Match {
                        number: before + one.lines,
                        text: &one.text,
                        query: one.query,
                    });
                }
                before += lines;
            };
            let work = |chunk: &Chunk| {
                let lines = newlines(&chunk.buffer[..chunk.length]);
                (search_chunk(chunk, spec, queries), lines)
            };
            opened.map_chunks(spec.rule(), threads, progress, work, take)
        }
        Ok(Way::Parquet(columns)) => {
            let mut keys = Keys::new(spec);
            opened.for_each_row(columns, progress, |row, values| {
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
        // The file has no such key.
        Err(error) if error.is_no_column() => Ok(()),
        searched => searched,
    }
}

fn search_chunk(chunk: &Chunk, spec: &KeySpec, queries: &[&Query]) -> Vec<Found> {
    let records = chunk.records();
    let mut found = Vec::new();
    if !queries.iter().any(|query| query.can_be_in(records)) {
        return found;
    }
    let mut keys = Keys::new(spec);
    let framing = chunk.framing;
    let mut lines = newlines(&chunk.buffer[..chunk.header]);
    let mut counted = 0;
    framing.for_each(records, |start, end| {
        let content = framing.content(&records[start..end]);
        let matches = |query: &&Query| {
            query.can_be_in(content) && query.matches(&mut keys, content, &chunk.columns)
        };
        if let Some(query) = queries.iter().position(matches) {
            lines += newlines(&records[counted..start]);
            counted = start;
            found.push(Found {
                lines,
                text: content.to_vec(),
                query,
            });
        }
    });
    found
}

/// The key of a row as it would be queried: several values as CSV, a single one
/// as it is.
fn as_asked(values: &[&[u8]]) -> Vec<u8> {
    if let [value] = values {
        return value.to_vec();
    }
    let field = |value: &&[u8]| {
        if !value.iter().any(|byte| b",\"\r\n".contains(byte)) {
            return value.to_vec();
        }
        let text = value.iter().flat_map(|byte| match byte {
            b'"' => vec![b'"', b'"'],
            other => vec![*other],
        });
        [b'"'].into_iter().chain(text).chain([b'"']).collect()
    };
    values.iter().map(field).collect::<Vec<_>>().join(&b',')
}
