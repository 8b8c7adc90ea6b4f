//! Random but reproducible texts, patterns and options, and the options in ripgrep's notation.

use tamis_records::grep::{Options, Print};
use tamis_records::patterns::{Patterns, Syntax};

/// Small random numbers, reproducible.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % limit as u64) as usize
    }

    pub(crate) fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }

    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

pub(crate) const PIECES: &[&[u8]] = &[
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

pub(crate) const LITERALS: &[&str] = &[
    "foo", "Foo", "o", "a", "ab", "foo_bar", "10.0.0.1", "0.0", " ", "- ", ".", "é", "É", "ß", "k",
    "s", "日", "e\u{301}", "foo foo", "absent", "",
];

pub(crate) const EXPRESSIONS: &[&str] = &[
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

/// All kinds of lines.
pub(crate) fn text(random: &mut Random) -> Vec<u8> {
    let mut text = Vec::new();
    if random.one_in(40) {
        // The second mark is text.
        text.extend_from_slice(&b"\xef\xbb\xbf\xef\xbb\xbf"[..random.one_of(&[3, 6])]);
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

pub(crate) fn patterns(random: &mut Random) -> Patterns {
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

pub(crate) fn options(random: &mut Random) -> Options {
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

pub(crate) fn arguments(patterns: &Patterns, options: &Options) -> Vec<String> {
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
    // With `-c`, ripgrep would count matches.
    add("-o", options.only_matching && options.print != Print::Count);
    // It turns on line numbers, so it must precede the options that set them.
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
