//! The same bytes as ripgrep's, for random texts, patterns and options.

// Names of files are bytes here.
#![cfg(unix)]

use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;
use tamis_records::grep::{
    Failure, Found, LineFilter, Matcher, Options, Print, Search, Stretch, write_summary,
};
use tamis_records::patterns::{Patterns, Syntax};

/// Small numbers, always the same ones.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

const PIECES: &[&[u8]] = &[
    b"a",
    b"b",
    b"ab",
    b"foo",
    b"Foo",
    b"FOO",
    b"foo_bar",
    b"o",
    b" ",
    b" ",
    b"-",
    b".",
    b"10.0.0.1",
    b"7",
    b"\t",
    b"\r",
    b"\0",
    b"\xff",
    b"\xc3",
    "é".as_bytes(),
    "É".as_bytes(),
    "ß".as_bytes(),
    "\u{212a}".as_bytes(),
    "ſ".as_bytes(),
    "日本".as_bytes(),
    "e\u{301}".as_bytes(),
    "👩\u{200d}👩".as_bytes(),
    b"\"",
    b"\\",
];

const LITERALS: &[&str] = &[
    "foo", "Foo", "o", "a", "ab", "foo_bar", "10.0.0.1", "0.0", " ", "- ", ".", "é", "É", "ß", "k",
    "s", "日", "e\u{301}", "foo foo", "absent", "",
];

const EXPRESSIONS: &[&str] = &[
    "foo",
    "fo+",
    "o*",
    "^",
    "$",
    "^$",
    "",
    "a|b",
    r"\bfoo\b",
    r"\Bo",
    r"\w+",
    "[a-z]+",
    "(?i:foo)",
    "f.o",
    ".",
    "..",
    r"\s",
    "[^a]",
    "x*",
    r"\d+",
    "^a",
    "o$",
    "^foo",
    "foo$",
    "é",
    r"\W",
    r"(?-u:\xff)",
    r"\r$",
    r"\x00",
    "a.*b",
    "(a|foo) ?",
    r"10\.0",
    r"[A-Z]o",
    "(?-u:[^a])",
    r"\p{Lu}",
    "absent",
    "^.{3}",
    r"\b",
    "a??",
    "(?s:.+)",
];

/// Lines of all kinds.
fn text(random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    if random.one_in(40) {
        text.extend_from_slice(b"\xef\xbb\xbf");
    }
    // Some are larger than the searcher's buffer.
    let lines = if random.one_in(25) {
        4000
    } else {
        random.below(30)
    };
    let sparse = random.one_in(3);
    for _ in 0..lines {
        if sparse && random.below(8) > 0 {
            text.extend_from_slice(b"quiet");
        } else {
            let pieces = if random.one_in(20) {
                200
            } else {
                random.below(9)
            };
            for _ in 0..pieces {
                text.extend_from_slice(random.one_of::<&[u8]>(PIECES));
            }
        }
        text.extend_from_slice(if random.one_in(10) { b"\r\n" } else { b"\n" });
    }
    if random.one_in(3) {
        text.pop();
    }
    if random.one_in(40) {
        let units: Vec<u16> = "\u{feff}"
            .encode_utf16()
            .chain(String::from_utf8_lossy(&text).encode_utf16())
            .collect();
        let big = random.one_in(2);
        text = units
            .iter()
            .flat_map(|unit| {
                if big {
                    unit.to_be_bytes()
                } else {
                    unit.to_le_bytes()
                }
            })
            .collect();
    }
    text
}

fn patterns(random: &mut Random) -> Patterns {
    let syntax = random.one_of(&[
        Syntax::Words,
        Syntax::Literal,
        Syntax::Regex,
        Syntax::Regex,
        Syntax::Regex,
    ]);
    let from = if syntax == Syntax::Regex {
        EXPRESSIONS
    } else {
        LITERALS
    };
    let count = if random.one_in(3) {
        1 + random.below(4)
    } else {
        1
    };
    Patterns {
        texts: (0..count)
            .map(|_| random.one_of(from).to_string())
            .collect(),
        syntax,
        ignore_case: random.one_in(5),
        smart_case: random.one_in(5),
        whole_words: random.one_in(6),
        whole_lines: random.one_in(8),
    }
}

fn options(random: &mut Random) -> Options {
    let print = match random.below(12) {
        0 => Print::Count,
        1 => Print::CountMatches,
        2 => Print::PathWithMatch,
        3 => Print::PathWithoutMatch,
        4 => Print::Nothing,
        5 | 6 => Print::Json,
        _ => Print::Lines,
    };
    Options {
        print,
        before: if random.one_in(4) { random.below(4) } else { 0 },
        after: if random.one_in(4) { random.below(4) } else { 0 },
        invert: random.one_in(7),
        max_count: random.one_in(5).then(|| random.below(5) as u64),
        only_matching: random.one_in(4),
        line_number: random.one_in(2),
        column: random.one_in(5),
        byte_offset: random.one_in(4),
        with_path: random.one_in(2),
        heading: random.one_in(5),
        null: random.one_in(8),
        colour: random.one_in(4),
        max_columns: random.one_in(6).then(|| 1 + random.below(30) as u64),
        max_columns_preview: random.one_in(3),
        include_zero: random.one_in(4),
        count_matches: false,
    }
}

fn arguments(patterns: &Patterns, options: &Options) -> Vec<String> {
    let mut arguments: Vec<String> = ["-a", "--no-config", "--no-ignore", "--hidden"]
        .map(String::from)
        .to_vec();
    let mut add = |flag: &str, on: bool| {
        if on {
            arguments.extend(flag.split(' ').map(String::from));
        }
    };
    add("-F", patterns.syntax != Syntax::Regex);
    add("-i", patterns.ignore_case);
    add("-S", patterns.smart_case && !patterns.ignore_case);
    add(
        "-w",
        patterns.whole_words || patterns.syntax == Syntax::Words,
    );
    add("-x", patterns.whole_lines);
    add("--json", options.print == Print::Json);
    add("-c", options.print == Print::Count);
    add("--count-matches", options.print == Print::CountMatches);
    add("-l", options.print == Print::PathWithMatch);
    add(
        "--files-without-match",
        options.print == Print::PathWithoutMatch,
    );
    add("-q", options.print == Print::Nothing);
    add(&format!("-B{}", options.before), options.before > 0);
    add(&format!("-A{}", options.after), options.after > 0);
    add("-v", options.invert);
    if let Some(most) = options.max_count {
        add(&format!("-m{most}"), true);
    }
    // Together with `-c`, ripgrep would count matches.
    add("-o", options.only_matching && options.print != Print::Count);
    // This one turns on numbers, so it stands before what sets them.
    add("--column", options.column);
    add(if options.line_number { "-n" } else { "-N" }, true);
    add("-b", options.byte_offset);
    add(if options.with_path { "-H" } else { "-I" }, true);
    add(
        if options.heading {
            "--heading"
        } else {
            "--no-heading"
        },
        true,
    );
    add("-0", options.null);
    add(
        if options.colour {
            "--color=always"
        } else {
            "--color=never"
        },
        options.print != Print::Json,
    );
    if let Some(most) = options.max_columns {
        add(&format!("-M{most}"), true);
        add("--max-columns-preview", options.max_columns_preview);
    }
    add("--include-zero", options.include_zero);
    for text in &patterns.texts {
        arguments.extend(["-e".into(), text.clone()]);
    }
    arguments
}

fn rg(folder: &Path, arguments: &[String], file: &str) -> Output {
    rg_on(folder, arguments, &[OsStr::new(file)])
}

fn rg_on(folder: &Path, arguments: &[String], files: &[&OsStr]) -> Output {
    Command::new("rg")
        .args(arguments)
        .arg("--")
        .args(files)
        .current_dir(folder)
        .output()
        .unwrap_or_else(|error| panic!("rg can't be run ({error}); it comes with `apt-get install ripgrep` or `cargo install ripgrep`"))
}

/// ripgrep 14 changed what whole words are, and how matches are limited.
fn rg_major() -> u32 {
    let version = rg(Path::new("."), &["--version".into()], ".").stdout;
    let version = String::from_utf8(version).unwrap();
    version
        .split([' ', '.'])
        .nth(1)
        .and_then(|major| major.parse().ok())
        .expect("the version of rg")
}

/// Takes out the times, which are never the same.
fn without_times(output: &[u8]) -> Vec<u8> {
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

/// Gives what it has in pieces of any size.
struct Trickle<'a>(&'a [u8], usize);

impl Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let size = buffer.len().min(self.1);
        self.0.read(&mut buffer[..size])
    }
}

/// A part of a text, as a stretch of it.
fn stretch(text: &[u8], start: usize, end: usize, piece: usize) -> io::Result<Stretch<'_>> {
    Ok(Stretch {
        offset: start as u64,
        line: memchr::memchr_iter(b'\n', &text[..start]).count() as u64,
        text: Box::new(Trickle(&text[start..end], piece)),
    })
}

fn ours(
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

/// ripgrep's output and ours, made comparable.
fn both(options: &Options, rg: Output, ours: (Found, Vec<u8>)) -> (Vec<u8>, Vec<u8>) {
    let (mut expected, (found, mut got)) = (rg.stdout, ours);
    if options.print == Print::Json {
        if found.matched_lines == 0 {
            // ripgrep 13 counts a file without a match as not searched; 14 doesn't.
            expected.clear();
        } else {
            // The end message itself is not counted in it, but in the summary.
            let total = Found {
                bytes_printed: messages_before_end(&got),
                ..found
            };
            write_summary(&mut got, &total, Duration::ZERO).unwrap();
        }
        (expected, got) = (without_times(&expected), without_times(&got));
        if options.max_count.is_some() {
            // How much ripgrep has searched when it stops is a matter of its version.
            (expected, got) = (
                without_bytes_searched(&expected),
                without_bytes_searched(&got),
            );
        }
    }
    (expected, got)
}

fn messages_before_end(messages: &[u8]) -> u64 {
    memchr::memmem::rfind(messages, b"{\"type\":\"end\"").unwrap() as u64
}

/// Where a text is cut: its beginning, some ends of lines, its end.
fn cuts(random: &mut Random, text: &[u8]) -> Vec<usize> {
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

/// Runs cases on two threads. Each says how it failed, if it did.
fn cases(count: u64, case: impl Fn(u64, &Path) -> Result<(), String> + Sync) {
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

fn compare(
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

#[test]
fn prints_what_ripgrep_prints() {
    let major = rg_major();
    cases(3000, |seed, folder| {
        let random = &mut Random(seed);
        let (text, patterns, options) = (text(random), patterns(random), options(random));
        if differs_by_version(major, &patterns, &options, &text) {
            return Ok(());
        }
        let name = format!("{seed}.log");
        std::fs::write(folder.join(&name), &text).unwrap();
        let arguments = arguments(&patterns, &options);
        let rg = rg(folder, &arguments, &name);
        std::fs::remove_file(folder.join(&name)).unwrap();

        let piece = random.one_of(&[1, 7, 4096, usize::MAX]);
        let cuts = cuts(random, &text);
        let stretches = cuts
            .windows(2)
            .map(|cut| stretch(&text, cut[0], cut[1], piece))
            .collect();
        let (expected, got) = both(
            &options,
            rg,
            ours(&patterns, &options, &name, stretches, None),
        );
        compare(arguments, &text, &expected, &got)
    });
}

/// Where this ripgrep is known to print something else than the libraries that we use, or than it should.
fn differs_by_version(major: u32, patterns: &Patterns, options: &Options, text: &[u8]) -> bool {
    let counts = matches!(options.print, Print::Count | Print::CountMatches);
    if major >= 14 {
        // With `-A`, it counts matches in the context of the last one that `-m` allows; and at least one match in the
        // last line, even if there is only an empty one behind it.
        let ends = [&b"\n"[..], b"\n\0"].iter().any(|end| text.ends_with(end));
        return counts && (options.max_count.is_some() && options.after > 0 || !ends);
    }
    // Its regular expressions lose matches after the first of a line.
    let is_lost = |text: &String| [r"\Bo", "^.{3}"].contains(&text.as_str());
    if patterns.syntax == Syntax::Regex && patterns.texts.iter().any(is_lost) {
        return true;
    }
    // Its expression for whole words takes the characters next to them, so that it misses matches that don't begin and
    // end with a letter.
    let inner = if patterns.syntax == Syntax::Regex {
        "_+"
    } else {
        "_."
    };
    let is_plain = |text: &String| {
        text.starts_with(char::is_alphanumeric)
            && text
                .chars()
                .all(|character| character.is_alphanumeric() || inner.contains(character))
    };
    let whole_words =
        (patterns.whole_words || patterns.syntax == Syntax::Words) && !patterns.whole_lines;
    whole_words && !patterns.texts.iter().all(is_plain)
}

/// Lines of a text, with their ends.
fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|&byte| byte == b'\n').collect()
}

/// The lines that match, by their place. Each is searched as a text of its own.
fn matched(patterns: &Patterns, invert: bool, text: &[u8]) -> Vec<bool> {
    let matcher = Matcher::new(patterns).unwrap();
    let options = Options {
        invert,
        print: Print::Nothing,
        ..Options::default()
    };
    let mut search = Search::new(&matcher, &options);
    let mut is_match = |line: &&[u8]| {
        let stretches = [stretch(line, 0, line.len(), 99)].into_iter();
        search
            .file(Path::new(""), stretches, None, &mut io::sink())
            .unwrap()
            .matched_lines
            > 0
    };
    lines(text).iter().map(&mut is_match).collect()
}

/// Whether a line is among the `before` lines before a match, or the `after` lines after one, or one itself.
fn is_printed(matched: &[bool], options: &Options, line: usize) -> bool {
    let (first, last) = (line.saturating_sub(options.after), line + options.before);
    matched[first..=last.min(matched.len() - 1)].contains(&true)
}

#[test]
fn gaps_change_nothing() {
    let major = rg_major();
    cases(1200, |seed, folder| {
        let random = &mut Random(seed ^ 0xabcd);
        let (text, patterns, options) = (text(random), patterns(random), options(random));
        let is_marked = [&b"\xff\xfe"[..], b"\xfe\xff", b"\xef\xbb"]
            .iter()
            .any(|mark| text.starts_with(mark));
        if text.len() > 9999 || is_marked || differs_by_version(major, &patterns, &options, &text) {
            return Ok(());
        }
        let name = format!("{seed}.log");
        std::fs::write(folder.join(&name), &text).unwrap();
        let arguments = arguments(&patterns, &options);
        let rg = rg(folder, &arguments, &name);
        std::fs::remove_file(folder.join(&name)).unwrap();

        // Any line that isn't printed may be left out.
        let matched = matched(&patterns, options.invert, &text);
        let mut stretches = Vec::new();
        let mut start = 0;
        for (line, bytes) in lines(&text).iter().enumerate() {
            let end = start + bytes.len();
            if is_printed(&matched, &options, line) || random.one_in(4) {
                stretches.push(stretch(&text, start, end, 99));
            }
            start = end;
        }
        let (found, got) = ours(&patterns, &options, &name, stretches, None);
        let found = Found {
            bytes_searched: 0,
            ..found
        };
        let (expected, got) = both(&options, rg, (found, got));
        let (expected, got) = (
            without_bytes_searched(&expected),
            without_bytes_searched(&got),
        );
        compare(arguments, &text, &expected, &got)
    });
}

/// What was left out isn't counted as searched.
fn without_bytes_searched(output: &[u8]) -> Vec<u8> {
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

/// Accepts lines of an even length, and remembers all text that passes by, without ends of lines.
#[derive(Default)]
struct Even {
    seen: Vec<u8>,
}

impl Even {
    fn accepts(line: &[u8]) -> bool {
        line.len().is_multiple_of(2)
    }
}

fn without_ends(lines: &[u8]) -> impl Iterator<Item = u8> {
    lines.iter().copied().filter(|&byte| byte != b'\n')
}

impl LineFilter for Even {
    fn begin(&mut self, _: u64) {}

    fn pass(&mut self, lines: &[u8]) {
        self.seen.extend(without_ends(lines));
    }

    fn accept(&mut self, line: &[u8]) -> bool {
        self.pass(line);
        Self::accepts(line)
    }
}

#[test]
fn refused_lines_are_no_matches() {
    cases(2000, |seed, _| {
        let random = &mut Random(seed ^ 0xfeed);
        let (text, patterns) = (text(random), patterns(random));
        let is_marked = [&b"\xff\xfe"[..], b"\xfe\xff", b"\xef\xbb"]
            .iter()
            .any(|mark| text.starts_with(mark));
        if text.len() > 9999 || is_marked {
            return Ok(());
        }
        let options = Options {
            line_number: true,
            before: random.below(3),
            after: random.below(3),
            invert: random.one_in(3),
            ..Options::default()
        };
        let mut matched = matched(&patterns, options.invert, &text);
        let mut expected = Vec::new();
        for (matched, line) in matched.iter_mut().zip(lines(&text)) {
            *matched &= Even::accepts(line.strip_suffix(b"\n").unwrap_or(line));
        }
        let mut last = None;
        for (number, line) in lines(&text).into_iter().enumerate() {
            if !is_printed(&matched, &options, number) {
                continue;
            }
            if last.is_some_and(|last| last + 1 < number) && options.before + options.after > 0 {
                expected.extend_from_slice(b"--\n");
            }
            last = Some(number);
            let separator = if matched[number] { ':' } else { '-' };
            expected.extend_from_slice(format!("{}{separator}", number + 1).as_bytes());
            expected.extend_from_slice(line);
            if !line.ends_with(b"\n") {
                expected.push(b'\n');
            }
        }
        let mut filter = Even::default();
        let cuts = cuts(random, &text);
        let stretches = cuts
            .windows(2)
            .map(|cut| stretch(&text, cut[0], cut[1], 50))
            .collect();
        let (_, got) = ours(&patterns, &options, "", stretches, Some(&mut filter));
        compare((&patterns, &options), &text, &expected, &got)?;
        let all: Vec<u8> = without_ends(&text).collect();
        compare((&patterns, &options), &text, &all, &filter.seen)
    });
}

/// Fails when it is asked for more than it has.
struct Broken<'a>(&'a [u8]);

impl Read for Broken<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.0.read(buffer)? {
            0 => Err(io::Error::other("the disk is gone")),
            read => Ok(read),
        }
    }
}

fn foo() -> (Patterns, Options) {
    let texts = vec!["foo".into()];
    (
        Patterns {
            texts,
            ..Patterns::default()
        },
        Options::default(),
    )
}

#[test]
fn matches_before_an_error_are_printed_and_counted() {
    let (patterns, options) = foo();
    let matcher = Matcher::new(&patterns).unwrap();
    let mut search = Search::new(&matcher, &options);
    let broken = Stretch {
        offset: 0,
        line: 0,
        text: Box::new(Broken(b"a foo\nfoo\n")),
    };
    let after = stretch(b"foo\n", 0, 4, 99);
    let mut out = Vec::new();
    let failure = search
        .file(
            Path::new("f"),
            [Ok(broken), after].into_iter(),
            None,
            &mut out,
        )
        .unwrap_err();
    assert_eq!(out, b"a foo\nfoo\n");
    assert_eq!(failure.to_string(), "can't be read: the disk is gone");
    assert!(matches!(
        failure,
        Failure::Reading {
            found: Found {
                matched_lines: 2,
                ..
            },
            ..
        }
    ));

    // A stretch that can't be opened is the same; and the search is good for other files.
    let mut out = Vec::new();
    let stretches = [stretch(b"foo\n", 0, 4, 9), Err(io::Error::other("no"))];
    let failure = search.file(Path::new("f"), stretches.into_iter(), None, &mut out);
    assert!(matches!(
        failure,
        Err(Failure::Reading {
            found: Found {
                matched_lines: 1,
                ..
            },
            ..
        })
    ));
    assert_eq!(out, b"foo\n");
    let found = search
        .file(
            Path::new("f"),
            [stretch(b"foo\n", 0, 4, 9)].into_iter(),
            None,
            &mut out,
        )
        .unwrap();
    assert_eq!((found.matched_lines, &*out), (1, &b"foo\nfoo\n"[..]));
}

#[test]
fn a_writer_that_fails_ends_the_search() {
    let (patterns, options) = foo();
    let text = b"foo\n".repeat(100_000);
    let mut small = [0; 100];
    let matcher = Matcher::new(&patterns).unwrap();
    let stretches = [
        stretch(&text, 0, text.len(), 1 << 20),
        Err(io::Error::other("read too far")),
    ];
    let failure = Search::new(&matcher, &options).file(
        Path::new("f"),
        stretches.into_iter(),
        None,
        &mut &mut small[..],
    );
    assert!(matches!(failure, Err(Failure::Writing(_))));
}

#[test]
fn the_rest_is_not_read_once_the_answer_is_known() {
    let (patterns, _) = foo();
    for options in [
        Options {
            print: Print::PathWithMatch,
            ..Options::default()
        },
        Options {
            print: Print::Nothing,
            ..Options::default()
        },
        Options {
            max_count: Some(1),
            ..Options::default()
        },
    ] {
        let after_gap = Stretch {
            offset: 100,
            line: 9,
            text: Box::new(Broken(b"")),
        };
        let stretches = vec![stretch(b"foo\n", 0, 4, 9), Ok(after_gap)];
        assert_eq!(
            ours(&patterns, &options, "f", stretches, None)
                .0
                .matched_lines,
            1,
            "{options:?}"
        );
    }
}

#[test]
fn errors_show_the_pattern_that_is_wrong() {
    let of = |text: &str| {
        let texts = vec!["fine".into(), text.into()];
        Matcher::new(&Patterns {
            texts,
            ..Patterns::default()
        })
        .unwrap_err()
        .to_string()
    };
    let error = of("a(b");
    assert!(
        error.contains("a(b") && error.contains("unclosed group") && !error.contains("fine"),
        "{error}"
    );
    assert!(of(r"a\nb").contains("not allowed"), "{}", of(r"a\nb"));
    assert!(
        of(r"\p{Nonsense}").contains("Unicode property"),
        "{}",
        of(r"\p{Nonsense}")
    );
    // Too large, not wrong.
    assert!(
        of(r"(\w{1000}){1000}").contains("limit"),
        "{}",
        of(r"(\w{1000}){1000}")
    );
}

#[test]
fn no_pattern_matches_nothing() {
    let patterns = Patterns::default();
    let text = b"a\n\n";
    for (invert, lines) in [(false, 0), (true, 2)] {
        let options = Options {
            invert,
            ..Options::default()
        };
        assert_eq!(
            ours(&patterns, &options, "f", vec![stretch(text, 0, 3, 9)], None)
                .0
                .matched_lines,
            lines
        );
    }
}

#[test]
fn some_patterns_have_the_case_of_all() {
    let patterns = Patterns {
        texts: vec!["foo".into(), "Bar".into()],
        smart_case: true,
        ..Patterns::default()
    };
    let matcher = Matcher::of(&patterns, &patterns.texts[..1]).unwrap();
    let options = Options::default();
    let mut out = Vec::new();
    let stretches = [stretch(b"FOO\nfoo\n", 0, 8, 9)];
    Search::new(&matcher, &options)
        .file(Path::new("f"), stretches.into_iter(), None, &mut out)
        .unwrap();
    assert_eq!(out, b"foo\n");
}

#[test]
fn files_with_any_name_are_printed_one_after_the_other() {
    let folder = tempfile::tempdir().unwrap();
    let names = [&b"a.log"[..], b"b none.log", b"c \xff.log"].map(OsStr::from_bytes);
    let texts = [&b"x\nfoo\ny\nz\nfoo\n"[..], b"bar\n", b"foo\nx\n"];
    for (name, text) in names.iter().zip(texts) {
        std::fs::write(folder.path().join(name), text).unwrap();
    }
    let (patterns, plain) = foo();
    let with_path = Options {
        with_path: true,
        ..plain
    };
    for options in [
        with_path.clone(),
        Options {
            heading: true,
            ..with_path.clone()
        },
        Options {
            heading: true,
            null: true,
            colour: true,
            ..with_path.clone()
        },
        Options {
            after: 1,
            ..with_path.clone()
        },
        Options {
            after: 1,
            heading: true,
            ..with_path.clone()
        },
        Options {
            print: Print::Count,
            after: 1,
            ..with_path.clone()
        },
        Options {
            print: Print::PathWithMatch,
            heading: true,
            ..with_path.clone()
        },
        Options {
            print: Print::Json,
            after: 1,
            ..with_path.clone()
        },
    ] {
        let matcher = Matcher::new(&patterns).unwrap();
        let mut search = Search::new(&matcher, &options);
        let (mut got, mut total) = (Vec::new(), Found::default());
        for (name, text) in names.iter().zip(texts) {
            let mut of_file = Vec::new();
            let stretches = [stretch(text, 0, text.len(), 9)].into_iter();
            total += search
                .file(Path::new(name), stretches, None, &mut of_file)
                .unwrap();
            if !of_file.is_empty() && !got.is_empty() {
                got.extend_from_slice(options.between_files());
            }
            got.extend(of_file);
        }
        assert_eq!(
            (total.files, total.files_with_match, total.matched_lines),
            (
                3,
                2,
                if options.print == Print::PathWithMatch {
                    2
                } else {
                    3
                }
            )
        );
        let mut arguments = arguments(&patterns, &options);
        arguments.extend(["--sort".into(), "path".into()]);
        let mut expected = rg_on(folder.path(), &arguments, &names).stdout;
        if options.print == Print::Json {
            // The summary is compared elsewhere; ripgrep 13 doesn't count the file without a match.
            let summary = memchr::memmem::rfind(&expected, b"{\"data\"").unwrap();
            expected.truncate(summary);
        }
        let (expected, got) = (without_times(&expected), without_times(&got));
        compare(&options, b"", &expected, &got).unwrap_or_else(|difference| panic!("{difference}"));
    }
}
