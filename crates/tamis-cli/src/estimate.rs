//! Estimates how many records the inputs hold, from their sizes and samples. Only decides how much memory to allocate
//! at first.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tamis_records::input::{Input, Packing};
use tamis_records::records::Framing;

/// Sampled places, over all files together.
const PLACES: u64 = 64;
/// Bytes sampled at each place.
const PLACE: u64 = 16 << 10;

/// The number of records, slightly high; `None` if some input can't be measured, such as a pipe or a compressed file.
pub(crate) fn records(paths: &[PathBuf], framing: Framing, packing: Packing) -> Option<u64> {
    let files = measure(paths, packing)?;
    let total: u64 = files.iter().map(|(_, bytes)| bytes).sum();
    let (mut looked, mut records) = (0, 0);
    for (from, to) in places(total, is_many(paths)) {
        let (bytes, ends) = look(&files, from, to, framing.delimiter());
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

/// Whether there are too many files to open each for a guess.
fn is_many(paths: &[PathBuf]) -> bool {
    paths.len() as u64 > PLACES
}

/// The byte ranges to sample: all, or one in each of equal shares, at varying offsets, so that no pattern in the file
/// lines up with them.
fn places(total: u64, of_many: bool) -> Vec<(u64, u64)> {
    if total <= PLACES * PLACE && !of_many {
        return vec![(0, total)];
    }
    let share = total / PLACES;
    let place = |i: u64| {
        let somewhere = i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
        let from = i * share + ((share.saturating_sub(PLACE) * somewhere) >> 32);
        (from, from + PLACE)
    };
    (0..PLACES).map(place).collect()
}

/// Bytes and delimiters between `from` and `to` of the concatenated files; if there are many files, only of the one
/// where the range begins. An unreadable file counts as empty; reading it later reports the error.
fn look(files: &[(&Path, u64)], from: u64, to: u64, delimiter: u8) -> (u64, u64) {
    let (mut looked, mut ends, mut start) = (0, 0, 0);
    for (path, bytes) in files {
        let (first, last) = (from.max(start), to.min(start + bytes));
        if first < last {
            let read = read_at(path, first - start, last - first).unwrap_or_default();
            looked += read.len() as u64;
            ends += memchr::memchr_iter(delimiter, &read).count() as u64;
            if files.len() as u64 > PLACES {
                break;
            }
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

/// The sizes of all files, if all are plain. If there are many, only some are opened to check.
fn measure(paths: &[PathBuf], packing: Packing) -> Option<Vec<(&Path, u64)>> {
    let sizes: Vec<u64> = paths.iter().map(|path| size(path)).collect::<Option<_>>()?;
    let step = paths.len().div_ceil(PLACES as usize).max(1);
    let is_packed = |path: &PathBuf| {
        let input = Input::open(path, packing, &Arc::default());
        input.is_ok_and(|input| input.is_compressed())
    };
    let packed = packing == Packing::Recognised && paths.iter().step_by(step).any(is_packed);
    (!packed).then(|| paths.iter().map(PathBuf::as_path).zip(sizes).collect())
}

/// The size of a file; 0 if missing.
fn size(path: &Path) -> Option<u64> {
    if path == Path::new("-") {
        return None;
    }
    match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_file() => Some(metadata.len()),
        Ok(metadata) if metadata.is_dir() => Some(0),
        Ok(_) => None,
        Err(_) => Some(0),
    }
}

/// The most records that the inputs can hold, if known.
pub(crate) fn most_records(paths: &[PathBuf], packing: Packing) -> Option<u64> {
    let files = measure(paths, packing)?;
    Some(files.iter().map(|(_, bytes)| bytes + 1).sum())
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
        records(&paths, Framing::LINES, Packing::Recognised)
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
    fn many_small_files_are_guessed_from_some() {
        let content: Vec<Vec<u8>> = (0..1000)
            .map(|i| format!("{i}\n").repeat(1 + i % 9).into_bytes())
            .collect();
        let content: Vec<&[u8]> = content.iter().map(Vec::as_slice).collect();
        let guess = estimate(&content).unwrap();
        assert!((4_000..10_000).contains(&guess), "{guess}");
    }

    #[test]
    fn small_files_are_counted() {
        let guess = estimate(&[b"a\nb\n", b"c", b""]).unwrap();
        assert!((3..8).contains(&guess), "{guess}");
        assert!(estimate(&[b""]).unwrap() < 2);
        let missing = [PathBuf::from("/nowhere/at/all")];
        let packing = Packing::Recognised;
        assert_eq!(records(&missing, Framing::LINES, packing), Some(1));
        assert_eq!(records(&["-".into()], Framing::LINES, packing), None);
    }
}
