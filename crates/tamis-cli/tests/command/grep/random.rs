//! Random queries: words and pieces of the tree's own lines, regular expressions made from them, and options.

use super::corpus::Random;
use super::peer::{TREE, plant, rg, same};
use super::queries::{Query, Syntax};
use crate::common::{Sandbox, cases};
use std::io::Write;

/// Files unlike logs, and their content.
fn odd_files() -> Vec<(&'static str, Vec<u8>)> {
    let utf16 = |text: &str| -> Vec<u8> {
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        units.flat_map(u16::to_le_bytes).collect()
    };
    vec![
        ("empty", Vec::new()),
        ("blank-lines", b"\n\n  \n\tindented\n\n".to_vec()),
        ("no-last-end", b"first line\nlast line without an end".to_vec()),
        ("crlf.txt", b"one ERROR\r\ntwo INFO  \r\nthree\r\n".to_vec()),
        ("nul.log", b"before the crash\n\0\0\0\0after it ERROR\nmore INFO text\n".to_vec()),
        ("latin-1.log", b"caf\xe9 cr\xe8me ERROR\n\xff\xfe\xfd\nwort\xe9wort INFO\nx\xe9 \xe9y\n".to_vec()),
        ("cases.txt", "K\u{212A} k ſ s İ i ı I Straße STRASSE ẞ Σσς ΑΣ ας\nMAẞE Maße\n".as_bytes().to_vec()),
        ("words.txt", "it's don't foo_bar foo-bar _x_ x__y ٣٤ e\u{301}te\u{301} na\u{ef}ve zero\u{200d}width\n日本語テスト\n".as_bytes().to_vec()),
        ("signs.txt", b"a.b.c a-b a/b a:b a@b a=b a&b a?b a#b a+b a%b a~b a*b a$b a!b a^b a\\b a|b a,b a;b (a)[b]{c}<d>\n.hidden -x --yy ..\n".to_vec()),
        ("long-line.txt", [b"start ".as_slice(), &b"x1 ".repeat(60_000), b"ERROR end\nnext INFO\n"].concat()),
        ("utf-16.txt", utf16("first line\nzweite Größe ERROR\nlast\n")),
        ("bom.txt", "\u{feff}first ERROR\nsecond\n".as_bytes().to_vec()),
        ("boms.txt", "\u{feff}\u{feff}first ERROR\n\u{feff}second\n".as_bytes().to_vec()),
        ("boms-16.txt", utf16("\u{feff}first ERROR\n\u{feff}second\n")),
    ]
}

/// Adds files unlike logs; returns the lines of all files.
fn odd_tree(seed: u64) -> (Sandbox, Vec<String>) {
    let (dir, tree) = plant(24, 300_000, seed);
    let mut texts: Vec<Vec<u8>> = tree.files.iter().map(|file| file.text()).collect();
    for (name, bytes) in odd_files() {
        dir.write(&format!("{TREE}/{name}"), &bytes);
        texts.push(bytes);
    }
    let packed = b"packed by bzip2 or xz ERROR 4f4f4f4f4f4f4f4f\nand INFO another\n";
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    bzip2.write_all(packed).unwrap();
    dir.write(&format!("{TREE}/packed.bz2"), bzip2.finish().unwrap());
    let mut xz = liblzma::write::XzEncoder::new(Vec::new(), 6);
    xz.write_all(packed).unwrap();
    dir.write(&format!("{TREE}/packed.xz"), xz.finish().unwrap());
    texts.push(packed.to_vec());
    let lines = texts.iter().flat_map(|text| {
        let text = String::from_utf8_lossy(text).into_owned();
        text.lines().map(String::from).collect::<Vec<_>>()
    });
    (dir, lines.collect())
}

struct Questions<'a> {
    random: Random,
    /// Whether to also compare where in a line the matches are.
    spans: bool,
    lines: &'a [String],
}

impl Questions<'_> {
    fn chance(&mut self, one_in: u64) -> bool {
        self.random.below(one_in) == 0
    }

    /// A piece of a line, and whether it includes the line's start and end.
    fn piece(&mut self, longest: u64) -> (String, bool, bool) {
        let line: Vec<char> = self.random.pick(self.lines).chars().collect();
        let start = self.random.below(line.len() as u64 + 1) as usize;
        let len = self.random.below(longest) as usize + 1;
        let end = (start + len).min(line.len());
        let piece: String = line[start..end].iter().collect();
        // A byte that is not UTF-8 can't be typed.
        (
            piece.replace(['\u{fffd}', '\0'], "x"),
            start == 0,
            end == line.len(),
        )
    }

    /// Consecutive words of a line, often only one.
    fn words(&mut self) -> String {
        let line = self.random.pick(self.lines);
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let mut edges: Vec<usize> = vec![0];
        let mut last = ' ';
        for (at, c) in line.char_indices() {
            if is_word(last) != is_word(c) {
                edges.push(at);
            }
            last = c;
        }
        edges.push(line.len());
        let from = self.random.below(edges.len() as u64) as usize;
        let count = [1, 1, 1, 2, 3, 3, 5][self.random.below(7) as usize];
        let words = &line[edges[from]..edges[(from + count).min(edges.len() - 1)]];
        words.replace(['\u{fffd}', '\0'], "x")
    }

    /// A regular expression that a piece of a line may match.
    fn regex(&mut self) -> String {
        let (piece, first, last) = self.piece(24);
        let mut regex = String::new();
        if first && self.chance(2) {
            regex += "^";
        }
        if self.chance(4) {
            regex += r"\b";
        }
        for c in piece.chars() {
            let literal = escape(c);
            regex += &match self.random.below(24) {
                0 => ".".to_string(),
                1 if c.is_ascii_digit() => r"\d".into(),
                2 if c.is_alphanumeric() => r"\w".into(),
                3 => format!("{literal}?"),
                4 => format!("{literal}+"),
                5 => format!("(?:{literal}|zz)"),
                6 => format!("{literal}.*"),
                7 if c.is_alphanumeric() => format!("[{c}x-z]"),
                8 => format!("(?i:{literal})"),
                9 => format!("{literal}{{1,2}}"),
                10 if c == ' ' => r"\s+".into(),
                11 => format!("(?:{literal})*"),
                _ => literal,
            };
        }
        if self.chance(4) {
            regex += r"\b";
        }
        if last && self.chance(2) {
            regex += "$";
        }
        match self.random.below(12) {
            0 => format!("{regex}|{}", self.literal_regex()),
            1 => format!("(?i){regex}"),
            2 => format!(r"\b(?:{}|{})\b", self.literal_regex(), self.literal_regex()),
            3 => format!(r"{}\W+\w+", self.literal_regex()),
            4 => r"[0-9a-f]{16}".into(),
            5 => format!(
                r"\b{}\b.*\b{}\b",
                self.literal_regex(),
                self.literal_regex()
            ),
            _ => regex,
        }
    }

    fn literal_regex(&mut self) -> String {
        self.words().chars().map(escape).collect()
    }

    /// Text that doesn't occur, but nearly.
    fn changed(&mut self, text: &str) -> String {
        let mut chars: Vec<char> = text.chars().collect();
        let letters = ['q', '7', 'Z', '-', 'é'];
        if let Some(at) = self.random.below(chars.len() as u64 + 1).checked_sub(1) {
            chars[at as usize] = *self.random.pick(&letters);
        }
        chars.into_iter().collect()
    }

    fn next(&mut self) -> Query {
        let syntax = *self
            .random
            .pick(&[Syntax::Words, Syntax::Literal, Syntax::Regex]);
        let count = *self.random.pick(&[1, 1, 1, 1, 2, 3, 12]);
        let patterns = (0..count).map(|_| {
            let pattern = match syntax {
                Syntax::Words if self.chance(4) => self.piece(20).0,
                Syntax::Words => self.words(),
                Syntax::Literal => self.piece(20).0,
                Syntax::Regex => return self.regex(),
            };
            let pattern = if self.chance(6) {
                self.changed(&pattern)
            } else {
                pattern
            };
            if self.chance(8) {
                pattern.to_uppercase()
            } else {
                pattern
            }
        });
        let mut patterns: Vec<String> = patterns.collect();
        if count > 1 {
            // Before rg 14, a pattern's flag also applied to all later patterns.
            for pattern in &mut patterns {
                if let Some(rest) = pattern.strip_prefix("(?i)").map(str::to_owned) {
                    *pattern = rest;
                }
            }
        }
        let from_file = count > 3;
        let options = self.options();
        Query {
            from_file,
            ..Query::new(&options, syntax, patterns)
        }
    }

    fn options(&mut self) -> String {
        let mut options = self.random.pick(&["", "", "-i", "-i", "-S"]).to_string();
        if self.chance(6) {
            options += *self.random.pick(&[" -w", " -x"]);
        }
        let shown = *self.random.pick(&[
            "",
            "",
            "",
            " -c",
            " --count-matches",
            " -l",
            " --files-without-match",
            " -o",
        ]);
        let shown = match shown {
            " -o" | " --count-matches" if !self.spans => "",
            shown => shown,
        };
        options += shown;
        if self.chance(10) && shown != " -o" && shown != " --count-matches" {
            options += " -v";
        }
        if self.chance(6) {
            options += *self.random.pick(&[" -m 1", " -m 2", " -m 7"]);
        }
        if shown.is_empty() && self.chance(5) {
            options += *self.random.pick(&[" -A 1", " -B 2", " -C 3", " -A 5 -B 1"]);
        }
        if shown.is_empty() || shown == " -o" {
            options +=
                *self
                    .random
                    .pick(&["", "", " -n", " -n", " --column", " -b", " -I", " -n -M 80"]);
        }
        if self.chance(8) {
            options += *self.random.pick(&[
                " -g *.log",
                " -g !*.gz",
                " -g *.{csv,jsonl}",
                " -t csv",
                " -T json",
                " -g !**/app-*/**",
            ]);
        }
        options
    }
}

fn escape(c: char) -> String {
    match c {
        '\\' | '.' | '+' | '*' | '?' | '(' | ')' | '|' | '[' | ']' | '{' | '}' | '^' | '$'
        | '#' | '&' | '-' | '~' => format!(r"\{c}"),
        _ => c.to_string(),
    }
}

/// Up to version 13, rg misses a whole word directly after another match: lines are the same, matches aren't.
fn rg_tells_matches() -> bool {
    let version = rg(&Sandbox::new(), ["--version"]);
    let digits = version.text().trim_start_matches("ripgrep ");
    let major = digits.split('.').next().unwrap_or_default();
    major.parse::<u32>().expect("a version of rg") >= 14
}

fn questions_by_chance(seed: u64, key: &str) {
    let (dir, lines) = odd_tree(seed);
    dir.ok(&format!("index -q ix --key {key} {TREE}"));
    let mut questions = Questions {
        random: Random(seed),
        spans: rg_tells_matches(),
        lines: &lines,
    };
    let mut different = Vec::new();
    let asked = cases(150);
    for _ in 0..asked {
        different.extend(same(&dir, "ix", &questions.next()).err());
    }
    let shown = different.len().min(12);
    assert!(
        different.is_empty(),
        "{} of {asked}:\n{}",
        different.len(),
        different[..shown].join("\n\n")
    );
}

#[test]
fn of_words() {
    questions_by_chance(1, "word");
}

#[test]
fn of_trigrams() {
    questions_by_chance(2, "trigram");
}
