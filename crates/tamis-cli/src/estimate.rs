//! How many records the inputs hold, from their sizes and a look here and
//! there. It decides how much memory is taken at first, and nothing else.

use crate::engine::input::Input;
use crate::engine::records::Layout;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Places looked at, over all files together.
const PLACES: u64 = 64;
/// Bytes looked at in each place.
const PLACE: u64 = 16 << 10;

/// The number of records, a little high; `None` where some input can't be
/// measured: a pipe, or a compressed file.
pub(crate) fn records(paths: &[PathBuf], layout: Layout) -> Option<u64> {
    let files: Vec<(&Path, u64)> = paths
        .iter()
        .map(|path| Some((path.as_path(), measurable(path)?)))
        .collect::<Option<_>>()?;
    let total: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    let (mut looked, mut records) = (0, 0);
    for (from, to) in places(total) {
        let (bytes, ends) = look(&files, from, to, layout.delimiter());
        looked += bytes;
        records += ends;
    }
    let density = match looked {
        0 => 0.0,
        _ => records as f64 / looked as f64,
    };
    // The last record of a file may lack its delimiter.
    Some((density * total as f64 * 1.05) as u64 + paths.len() as u64)
}

/// The ranges of bytes to look at: all, or places spread over all, each at a
/// point of its own within its share, so that nothing in the file keeps time
/// with them.
fn places(total: u64) -> Vec<(u64, u64)> {
    if total <= PLACES * PLACE {
        return vec![(0, total)];
    }
    let share = total / PLACES;
    let place = |i: u64| {
        let somewhere = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let from = i * share + (((share - PLACE) * somewhere) >> 32);
        (from, from + PLACE)
    };
    (0..PLACES).map(place).collect()
}

/// Bytes and delimiters between `from` and `to` of the files one after the
/// other. A file that can't be read has none; whoever reads it says so.
fn look(files: &[(&Path, u64)], from: u64, to: u64, delimiter: u8) -> (u64, u64) {
    let (mut looked, mut ends, mut start) = (0, 0, 0);
    for (path, bytes) in files {
        let (first, last) = (from.max(start), to.min(start + bytes));
        if first < last {
            let read = read_at(path, first - start, last - first).unwrap_or_default();
            looked += read.len() as u64;
            ends += memchr::memchr_iter(delimiter, &read).count() as u64;
        }
        start += bytes;
    }
    (looked, ends)
}

fn read_at(path: &Path, at: u64, bytes: u64) -> std::io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(at))?;
    let mut read = Vec::new();
    file.take(bytes).read_to_end(&mut read)?;
    Ok(read)
}

/// The size of a plain file; 0 of one that is not there.
fn measurable(path: &Path) -> Option<u64> {
    if path == Path::new("-") {
        return None;
    }
    let Ok(metadata) = std::fs::metadata(path) else {
        return Some(0);
    };
    if !metadata.is_file() {
        return None;
    }
    match Input::open(path, &Arc::default()) {
        Ok(input) if input.is_compressed() => None,
        Ok(_) => Some(metadata.len()),
        Err(_) => Some(0),
    }
}

/// The most records that the inputs can hold, if that can be told.
pub(crate) fn most_records(paths: &[PathBuf]) -> Option<u64> {
    paths.iter().map(|path| Some(measurable(path)? + 1)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(contents: &[&[u8]]) -> Option<u64> {
        let dir = tempfile::tempdir().unwrap();
        let paths: Vec<PathBuf> = (0..contents.len())
            .map(|i| dir.path().join(i.to_string()))
            .collect();
        for (path, content) in paths.iter().zip(contents) {
            std::fs::write(path, content).unwrap();
        }
        records(&paths, Layout::LINES)
    }

    #[test]
    fn what_is_odd_at_one_end_does_not_decide() {
        let even: Vec<u8> = (0..400_000)
            .flat_map(|i| format!("{i:09}\n").into_bytes())
            .collect();
        let long = [vec![b'x'; 300_000], b"\n".to_vec()].concat();
        let blank = vec![b'\n'; 100_000];
        for odd in [long, blank] {
            for parts in [[&odd[..], &even], [&even, &odd]] {
                for files in [&[&parts.concat()[..]][..], &parts] {
                    let guess = estimate(files).unwrap();
                    assert!((300_000..800_000).contains(&guess), "{guess}");
                }
            }
        }
    }

    #[test]
    fn small_files_are_counted() {
        let guess = estimate(&[b"a\nb\n", b"c", b""]).unwrap();
        assert!((3..8).contains(&guess), "{guess}");
        assert!(estimate(&[b""]).unwrap() < 2);
        let missing = [PathBuf::from("/nowhere/at/all")];
        assert_eq!(records(&missing, Layout::LINES), Some(1));
        assert_eq!(records(&["-".into()], Layout::LINES), None);
    }
}
