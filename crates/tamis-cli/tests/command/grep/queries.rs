//! Sixty typical queries for logs, for `tamis grep` and for rg.

use super::corpus::{Packing, Random, Style, Tree};
use std::fmt;
use std::path::Path;

/// The syntax of a pattern.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Syntax {
    /// Text with no word cut at either end, the default of `tamis grep`.
    Words,
    Literal,
    Regex,
}

#[derive(Clone, Debug)]
pub(crate) struct Query {
    /// The task that it is an example of.
    pub(crate) task: &'static str,
    /// The time limit, as a share of rg's time.
    pub(crate) bar: f64,
    /// For both `tamis grep` and rg.
    pub(crate) options: Vec<String>,
    pub(crate) syntax: Syntax,
    pub(crate) patterns: Vec<String>,
    /// Whether the patterns are read from a file.
    pub(crate) from_file: bool,
}

impl Query {
    pub(crate) fn new(options: &str, syntax: Syntax, patterns: Vec<String>) -> Self {
        Self {
            task: "",
            bar: f64::INFINITY,
            options: options.split_whitespace().map(String::from).collect(),
            syntax,
            patterns,
            from_file: false,
        }
    }

    /// The arguments for `tamis`; `list` is the file of patterns, if used.
    pub(crate) fn for_tamis(&self, indexes: &[&str], list: &Path) -> Vec<String> {
        let mut args = vec!["grep".to_string()];
        args.extend(match self.syntax {
            Syntax::Words => None,
            Syntax::Literal => Some("-F".into()),
            Syntax::Regex => Some("-E".into()),
        });
        args.extend(self.options.iter().cloned());
        if self.from_file {
            args.extend(["-f".into(), list.display().to_string()]);
        }
        for pattern in self.patterns.iter().filter(|_| !self.from_file) {
            args.extend(["-e".into(), pattern.clone()]);
        }
        args.extend(indexes.iter().map(|index| index.to_string()));
        args
    }

    /// The arguments for rg, such that it reads the same as `tamis grep`: compressed and hidden files, and text after a
    /// NUL.
    pub(crate) fn for_rg(&self, tree: &str, list: &Path) -> Vec<String> {
        let mut args: Vec<String> = ["--no-config", "-z", "-a", "--hidden", "--no-ignore"]
            .map(String::from)
            .into();
        args.extend(match self.syntax {
            Syntax::Words => Some("-wF".into()),
            Syntax::Literal => Some("-F".into()),
            Syntax::Regex => None,
        });
        args.extend(self.options.iter().cloned());
        if self.from_file {
            args.extend(["-f".into(), list.display().to_string()]);
        }
        for pattern in self.patterns.iter().filter(|_| !self.from_file) {
            args.extend(["-e".into(), pattern.clone()]);
        }
        args.extend(["--".into(), tree.into()]);
        args
    }
}

impl fmt::Display for Query {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let syntax = match self.syntax {
            Syntax::Words => "",
            Syntax::Literal => "-F ",
            Syntax::Regex => "-E ",
        };
        write!(f, "{syntax}")?;
        for option in &self.options {
            write!(f, "{option} ")?;
        }
        match &self.patterns[..] {
            patterns if patterns.len() > 3 => write!(f, "({} patterns)", patterns.len()),
            patterns => write!(f, "{}", patterns.join(" | ")),
        }
    }
}

fn is_id(word: &str) -> bool {
    word.len() == 16 && word.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_uuid(word: &str) -> bool {
    word.len() == 36 && word.bytes().filter(|b| *b == b'-').count() == 4
}

fn is_address(word: &str) -> bool {
    let parts: Vec<Option<u8>> = word.split('.').map(|part| part.parse().ok()).collect();
    // A browser's version ends in zero.
    parts.len() == 4 && parts.iter().all(Option::is_some) && parts[3] != Some(0)
}

fn is_mail(word: &str) -> bool {
    word.contains('@')
}

/// The list. Time limits are from issue 29: queries that an index narrows to a file or two take a fiftieth of rg's
/// time; less narrow ones aren't slower than rg, within the precision of the clock.
pub(crate) fn sixty(tree: &Tree) -> Vec<Query> {
    use Packing::{Gzip, Plain, Zstd};
    use Style::{Abroad, Apache, App, Csv, Epoch, Java, Json, Logfmt, Nginx, Syslog};
    use Syntax::{Literal, Regex, Words};
    const RARE: f64 = 0.02;
    const COMMON: f64 = 1.0;
    const ANY: f64 = 1.05;

    let id = |style, packing, nth| tree.word(style, packing, nth, is_id);
    let uuid = |style, packing| tree.word(style, packing, 1, is_uuid);
    let address = |style, packing| tree.word(style, packing, 2, is_address);
    let mail = |style, packing| tree.word(style, packing, 3, is_mail);
    let phrase = |style, packing, from: &str, words| {
        let line = tree.line(style, packing, 0, from);
        let rest = &line[line.find(from).expect("it is there")..];
        let words: Vec<&str> = rest.split(' ').take(words).collect();
        words
            .join(" ")
            .trim_end_matches(['"', ',', '}'])
            .to_string()
    };
    let mut list: Vec<Query> = Vec::new();
    let mut add = |task, bar, options: &str, syntax, patterns: &[&str]| {
        let patterns = patterns.iter().map(|pattern| pattern.to_string());
        let query = Query::new(options, syntax, patterns.collect());
        list.push(Query { task, bar, ..query });
    };

    add("a rare id", RARE, "", Words, &[&id(App, Plain, 0)]);
    add("a rare id", RARE, "", Words, &[&id(Nginx, Gzip, 1)]);
    add("a rare id", RARE, "", Words, &[&id(Java, Zstd, 0)]);
    add("a rare id", RARE, "-n", Words, &[&id(Logfmt, Plain, 2)]);
    add("an absent id", RARE, "", Words, &["00c0ffee00c0ffee"]);
    add(
        "an absent id",
        RARE,
        "-c",
        Words,
        &["99999999-aaaa-4bbb-8ccc-dddddddddddd"],
    );
    add("a UUID", RARE, "", Words, &[&uuid(Json, Plain)]);
    add("a UUID", RARE, "", Words, &[&uuid(Csv, Gzip)]);
    add("a UUID", RARE, "", Literal, &[&uuid(Json, Zstd)]);
    add("an address", RARE, "", Words, &[&address(Apache, Plain)]);
    add("an address", RARE, "", Words, &[&address(Syslog, Zstd)]);
    add("an e-mail", RARE, "", Words, &[&mail(Logfmt, Gzip)]);
    add("an e-mail", RARE, "-n", Words, &[&mail(Csv, Plain)]);
    add(
        "a phrase",
        RARE,
        "",
        Words,
        &[&phrase(App, Plain, "order ", 3)],
    );
    add(
        "a phrase",
        RARE,
        "",
        Words,
        &[&phrase(Apache, Plain, "GET /api/v2/orders/", 2)],
    );

    add("a common word", COMMON, "", Words, &["FATAL"]);
    add("a common word", COMMON, "", Words, &["timeout"]);
    add("a common word", COMMON, "-c", Words, &["INFO"]);
    add("a common word", COMMON, "", Words, &["connection refused"]);

    let mut random = Random(29);
    let present = [App, Nginx, Java, Logfmt, Abroad];
    let ids: Vec<String> = (0..1000)
        .map(|n| match n % 4 {
            0 => id(present[n / 4 % 5], Plain, n / 20),
            _ => format!("{:016x}", random.next()),
        })
        .collect();
    let ids: Vec<&str> = ids.iter().map(String::as_str).collect();
    add("1,000 ids from a file", COMMON, "", Words, &ids);
    add("1,000 ids from a file", COMMON, "-c", Literal, &ids);
    add("ten ids from a file", COMMON, "", Words, &ids[..10]);

    add(
        "a regex with a literal",
        COMMON,
        "",
        Regex,
        &[r"\btimeout after 2\d{4} ms\b"],
    );
    add(
        "a regex with a literal",
        COMMON,
        "",
        Regex,
        &[r"\bFATAL\b.*\btimeout\b"],
    );
    add(
        "a regex with a literal",
        COMMON,
        "",
        Regex,
        &[r"java\.lang\.OutOfMemoryError: (retrying|flushed) "],
    );
    add(
        "a regex with a literal",
        COMMON,
        "",
        Regex,
        &[r#""(PUT|HEAD) /api/v2/orders/\d+ "#],
    );
    add(
        "a regex with a literal",
        COMMON,
        "",
        Regex,
        &[r"level=fatal .* status=5\d\d "],
    );
    add(
        "a regex with a literal",
        COMMON,
        "",
        Regex,
        &[&format!(r"trace=({}|{})", ids[3], id(Logfmt, Plain, 1))],
    );
    add(
        "a regex with a literal",
        COMMON,
        "-c",
        Regex,
        &[r"^2026-10-0[1-3]T0\d:\d\d:.*\bERROR\b"],
    );

    add("ignoring case", COMMON, "-i", Words, &["fatal"]);
    add(
        "ignoring case",
        COMMON,
        "-i",
        Words,
        &[&id(App, Gzip, 1).to_uppercase()],
    );
    add(
        "ignoring case",
        COMMON,
        "-i",
        Literal,
        &["Connection Reset By Peer"],
    );
    add(
        "ignoring case",
        COMMON,
        "-i",
        Regex,
        &[r"\bnullpointerexception\b"],
    );
    add("ignoring case", COMMON, "-i -c", Words, &["ОШИБКА"]);
    add("ignoring case", COMMON, "-S", Words, &["größe"]);

    add(
        "a literal cut",
        ANY,
        "",
        Literal,
        &[&id(App, Plain, 3)[2..14]],
    );
    add("a literal cut", ANY, "-c", Literal, &["xcepti"]);
    add("a literal cut", ANY, "", Literal, &["ttempt 4"]);
    add(
        "a literal cut",
        ANY,
        "-l",
        Literal,
        &[&mail(Json, Plain)[3..20]],
    );
    add(
        "a regex without a literal",
        ANY,
        "-c",
        Regex,
        &[r"\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}\b"],
    );
    add(
        "a regex without a literal",
        ANY,
        "-c",
        Regex,
        &[r"^\s+at \S+\(\S+:1\d\d\)$"],
    );
    add(
        "a regex without a literal",
        ANY,
        "-o",
        Regex,
        &[r"\b81\.2[45]\d\.\d+\.25\d\b"],
    );
    add("files", ANY, "-l", Words, &["OutOfMemoryError"]);
    add("files", ANY, "-l", Words, &["GET"]);
    add("files", ANY, "--files-without-match", Words, &["INFO"]);
    add("counted", ANY, "--count-matches", Words, &["orders"]);
    add(
        "what matched",
        ANY,
        "-o -n",
        Regex,
        &[r"UnsupportedOperation\w+"],
    );
    add(
        "what matched",
        ANY,
        "-o -b",
        Words,
        &[&address(Nginx, Plain)],
    );
    add("lines without it", ANY, "-v -c", Words, &["INFO"]);
    add("lines without it", ANY, "-v -m 2", Regex, &[r"[0-9]"]);
    add("the first of each file", ANY, "-m 1", Words, &["200"]);
    add(
        "the first of each file",
        ANY,
        "-m 3 -n",
        Regex,
        &[r"\bWARN\b.* refused"],
    );
    add("context", ANY, "-A 2 -B 1", Words, &["FATAL"]);
    add("context", ANY, "-C 3 -n", Words, &[&id(Java, Plain, 1)]);
    add("globs and types", ANY, "-g *.csv -c", Words, &["returned"]);
    add(
        "globs and types",
        ANY,
        "-g !*.gz -g !**/exports/**",
        Words,
        &["refused"],
    );
    add("globs and types", ANY, "-t log", Words, &["ERROR"]);
    add(
        "whole words, whole lines",
        ANY,
        "-w --column",
        Regex,
        &[r"shelf|hammer/19\d\d\d"],
    );
    add(
        "whole words, whole lines",
        ANY,
        "-x",
        Literal,
        &[&tree.line(Epoch, Plain, 0, "")],
    );
    add(
        "several at once",
        ANY,
        "-I",
        Words,
        &["OutOfMemoryError", &id(Abroad, Zstd, 0), "узлом"],
    );
    for query in &mut list {
        query.from_file = query.patterns.len() > 3;
    }
    assert_eq!(list.len(), 60);
    list
}
