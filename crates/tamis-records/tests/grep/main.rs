//! Random texts, patterns and options give the same bytes as ripgrep.

// File names are bytes here.
#![cfg(unix)]

mod cases;
mod peer;

use cases::*;
use peer::*;
use std::ffi::OsStr;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use tamis_records::grep::{Failure, Found, LineFilter, Matcher, Options, Print, Search, Stretch};
use tamis_records::patterns::{Patterns, Syntax};

#[test]
fn prints_what_ripgrep_prints() {
    let major = rg_major();
    cases(1000, |seed, folder| {
        let random = &mut Random(seed);
        let (text, patterns, options) = (text(random), patterns(random), options(random));
        if differs_by_version(major, &patterns, &options, &text) {
            return Ok(());
        }
        let name = format!("{seed}.log");
        std::fs::write(folder.join(&name), &text).unwrap();
        let arguments = arguments(&patterns, &options);
        let rg = rg(folder, &arguments, &name);
        let text = without_mark(&folder.join(&name));
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

/// Cases where this version of ripgrep differs from the libraries that we use, or is wrong.
fn differs_by_version(major: u32, patterns: &Patterns, options: &Options, text: &[u8]) -> bool {
    let counts = matches!(options.print, Print::Count | Print::CountMatches);
    if major >= 14 {
        // With `-A`, it counts matches in the context of the last one that `-m` allows; and it counts at least one
        // match in the last line, even if only an empty one follows it.
        let ends = [&b"\n"[..], b"\n\0"].iter().any(|end| text.ends_with(end));
        return counts && (options.max_count.is_some() && options.after > 0 || !ends);
    }
    // Its regular expressions lose matches after the first one in a line.
    let is_lost = |text: &String| [r"\Bo", "^.{3}"].contains(&text.as_str());
    if patterns.syntax == Syntax::Regex && patterns.texts.iter().any(is_lost) {
        return true;
    }
    // Its expression for whole words includes adjacent characters, so it misses matches that don't begin and end with a
    // letter.
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

/// Which lines match. Each is searched as a separate text.
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

/// Whether a line matches, or is among the `before` lines before a match or the `after` lines after one.
fn is_printed(matched: &[bool], options: &Options, line: usize) -> bool {
    let (first, last) = (line.saturating_sub(options.after), line + options.before);
    matched[first..=last.min(matched.len() - 1)].contains(&true)
}

#[test]
fn gaps_change_nothing() {
    let major = rg_major();
    cases(400, |seed, folder| {
        let random = &mut Random(seed ^ 0xabcd);
        let (text, patterns, options) = (text(random), patterns(random), options(random));
        if text.len() > 9999 || differs_by_version(major, &patterns, &options, &text) {
            return Ok(());
        }
        let name = format!("{seed}.log");
        std::fs::write(folder.join(&name), &text).unwrap();
        let arguments = arguments(&patterns, &options);
        let rg = rg(folder, &arguments, &name);
        let text = without_mark(&folder.join(&name));
        std::fs::remove_file(folder.join(&name)).unwrap();

        // Any line that isn't printed may be omitted.
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

/// Accepts lines of even length, and records all text that it sees, without line ends.
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
    cases(700, |seed, _| {
        let random = &mut Random(seed ^ 0xfeed);
        let (text, patterns) = (text(random), patterns(random));
        if text.len() > 9999 {
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

/// Fails when more is read than it has.
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

    // The same for a stretch that can't be opened; other files can still be searched.
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
    // Too large, but valid.
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

/// Options that matter when there are several files.
fn of_several_files(plain: Options) -> [Options; 8] {
    let with_path = Options {
        with_path: true,
        ..plain
    };
    [
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
    ]
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
    for options in of_several_files(plain) {
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
            // The summary is compared elsewhere; ripgrep 13 doesn't count files without a match.
            let summary = memchr::memmem::rfind(&expected, b"{\"data\"").unwrap();
            expected.truncate(summary);
        }
        let (expected, got) = (without_times(&expected), without_times(&got));
        compare(&options, b"", &expected, &got).unwrap_or_else(|difference| panic!("{difference}"));
    }
}
