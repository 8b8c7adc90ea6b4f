//! Runs ripgrep and our search on the same text, and extracts the parts of the
//! output that must be equal.

use crate::cases::Random;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::Duration;
use tamis_records::grep::{
    Found, LineFilter, Matcher, Options, Print, Search, Stretch, write_summary,
};
use tamis_records::input::TextReader;
use tamis_records::patterns::Patterns;

pub(crate) fn rg(folder: &Path, arguments: &[String], file: &str) -> Output {
    rg_on(folder, arguments, &[OsStr::new(file)])
}

pub(crate) fn rg_on(folder: &Path, arguments: &[String], files: &[&OsStr]) -> Output {
    Command::new("rg")
        .args(arguments)
        .arg("--")
        .args(files)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("rg can't be run ({error}); it comes with `apt-get install ripgrep` or `cargo install ripgrep`"))
}

/// ripgrep 14 changed the meaning of whole words and of limits on matches.
pub(crate) fn rg_major() -> u32 {
    let version = rg(Path::new("."), &["--version".into()], ".").stdout;
    let version = String::from_utf8(version).unwrap();
    version
        .split([' ', '.'])
        .nth(1)
        .and_then(|major| major.parse().ok())
        .expect("the version of rg")
}

/// Removes times, which always differ.
pub(crate) fn without_times(output: &[u8]) -> Vec<u8> {
    let mut rest = output;
    let mut kept = Vec::new();
    while let Some(at) = memchr::memmem::find(rest, b"\"elapsed") {
        let end = at + memchr::memchr(b'}', &rest[at..]).expect("times end") + 1;
        kept.extend_from_slice(&rest[..at]);
        rest = &rest[end..];
    }
    kept.extend_from_slice(rest);
    kept
}

/// Returns its bytes in pieces of any size.
pub(crate) struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = buffer.len().min(self.1);
        self.0.read(&mut buffer[..size])
    }
}

/// The text of a file, without a mark, as in its stretches.
pub(crate) fn without_mark(path: &Path) -> Vec<u8> {
    let mut text = Vec::new();
    let mut reader = TextReader::open(path, &Arc::default()).unwrap();
    reader.read_to_end(&mut text).unwrap();
    text
}

/// A part of a text, as a stretch of it.
pub(crate) fn stretch(
    text: &[u8],
    start: usize,
    end: usize,
    piece: usize,
) -> io::Result<Stretch<'_>> {
    Ok(Stretch {
        offset: start as u64,
        line: memchr::memchr_iter(b'\n', &text[..start]).count() as u64,
        text: Box::new(Trickle(&text[start..end], piece)),
    })
}

pub(crate) fn ours(
    patterns: &Patterns,
    options: &Options,
    name: &str,
    stretches: Vec<io::Result<Stretch>>,
    filter: Option<&mut dyn LineFilter>,
) -> (Found, Vec<u8>) {
    let matcher = Matcher::new(patterns).unwrap();
    let mut out = Vec::new();
    let mut search = Search::new(&matcher, options);
    let found = search
        .file(Path::new(name), stretches.into_iter(), filter, &mut out)
        .unwrap();
    assert_eq!(found.bytes_printed, out.len() as u64);
    (found, out)
}

/// The output of ripgrep and ours, normalised.
pub(crate) fn both(options: &Options, rg: Output, ours: (Found, Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    let (mut expected, (found, mut got)) = (rg.stdout, ours);
    if options.print == Print::Json {
        if found.matched_lines == 0 {
            // ripgrep 13 doesn't count a file without a match as searched; 14
            // does.
            expected.clear();
        } else {
            // The end message doesn't count itself, but the summary counts it.
            let total = Found {
                bytes_printed: messages_before_end(&got),
                ..found
            };
            write_summary(&mut got, &total, Duration::ZERO).unwrap();
        }
        (expected, got) = (without_times(&expected), without_times(&got));
        if options.max_count.is_some() {
            // How much ripgrep has searched when it stops depends on its
            // version.
            (expected, got) = (
                without_bytes_searched(&expected),
                without_bytes_searched(&got),
            );
        }
    }
    (expected, got)
}

pub(crate) fn messages_before_end(messages: &[u8]) -> u64 {
    memchr::memmem::rfind(messages, b"{\"type\":\"end\"").unwrap() as u64
}

/// Where to cut a text: its beginning, some line ends, its end.
pub(crate) fn cuts(random: &mut Random, text: &[u8]) -> Vec<usize> {
    let often = 1 + random.below(6);
    let ends = memchr::memchr_iter(b'\n', text)
        .map(|end| end + 1)
        .filter(|_| random.one_in(often));
    let mut cuts: Vec<usize> = [0].into_iter().chain(ends).collect();
    if cuts.last() != Some(&text.len()) {
        cuts.push(text.len());
    }
    cuts
}

/// Runs a case for every seed, on two threads: `usual` seeds, or `TAMIS_CASES`.
/// Failing cases return a description.
pub(crate) fn cases(usual: u64, case: impl Fn(u64, &Path) -> Result<(), String> + Sync) {
    let number = |n: String| n.parse().expect("TAMIS_CASES is a number");
    let count: u64 = std::env::var("TAMIS_CASES").map_or(usual, number);
    let folder = tempfile::tempdir().unwrap();
    let failed = |half: u64| -> Vec<String> {
        let seeds = (0..count).filter(|seed| seed % 2 == half);
        seeds
            .filter_map(|seed| Some(format!("seed {seed}: {}", case(seed, folder.path()).err()?)))
            .collect()
    };
    let failures = std::thread::scope(|scope| {
        let other = scope.spawn(|| failed(1));
        [failed(0), other.join().unwrap()].concat()
    });
    if let Some(shortest) = failures.iter().min_by_key(|failure| failure.len()) {
        panic!("{} of {count} cases differ. {shortest}", failures.len());
    }
}

pub(crate) fn compare(
    what: impl std::fmt::Debug,
    text: &[u8],
    expected: &[u8],
    got: &[u8],
) -> Result<(), String> {
    if expected == got {
        return Ok(());
    }
    let [text, expected, got] =
        [text, expected, got].map(|bytes| bytes.escape_ascii().to_string().replace(r"\n", "\\n\n"));
    Err(format!(
        "{what:?}\ntext:\n{text}\nexpected:\n{expected}\ngot:\n{got}"
    ))
}

/// Omitted lines don't count as searched.
pub(crate) fn without_bytes_searched(output: &[u8]) -> Vec<u8> {
    let mut rest = output;
    let mut kept = Vec::new();
    while let Some(at) = memchr::memmem::find(rest, b"\"bytes_searched\":") {
        let end = at + memchr::memchr(b',', &rest[at..]).expect("another field follows");
        kept.extend_from_slice(&rest[..at]);
        rest = &rest[end..];
    }
    kept.extend_from_slice(rest);
    kept
}
