//! If `rg` finds a pattern in a line, the line's keys meet the pattern's need.

use super::common::Random;
use super::text_keys::{line, naive};
use crate::key::TextKeys;
use crate::key::folding::folded;
use crate::needs::{Need, needs};
use crate::patterns::{Patterns, Syntax};
use grep_matcher::Matcher;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use std::collections::HashSet;
use tamis::Hash;

/// As rg builds it.
fn matcher(patterns: &Patterns) -> Option<RegexMatcher> {
    RegexMatcherBuilder::new()
        .multi_line(true)
        .unicode(true)
        .case_insensitive(patterns.ignore_case)
        .case_smart(patterns.smart_case)
        .word(patterns.whole_words || patterns.syntax == Syntax::Words)
        .whole_line(patterns.whole_lines)
        .fixed_strings(patterns.syntax != Syntax::Regex)
        .line_terminator(Some(b'\n'))
        .build_many(&patterns.texts)
        .ok()
}

fn one_met(needs: &[Need], keys: &HashSet<Hash>) -> bool {
    needs
        .iter()
        .any(|need| need.is_met(&mut |key| keys.contains(&key)))
}

/// A part of a line, cut anywhere between characters; every other one is cut at
/// word borders.
fn stretch(line: &[u8], random: &mut Random) -> String {
    let text = String::from_utf8_lossy(line);
    let characters: Vec<char> = text.chars().collect();
    let is_word = |at: usize| characters.get(at).is_some_and(|c| folded(*c).1);
    let whole = random.below(2) == 0;
    let is_cut = |at: usize| whole && at > 0 && is_word(at - 1) && is_word(at);
    let mut start = random.below(characters.len() + 1);
    let mut end = start + random.below((characters.len() - start).min(20) + 1);
    while is_cut(start) {
        start -= 1;
    }
    while is_cut(end) {
        end += 1;
    }
    characters[start..end].iter().collect()
}

/// A regular expression that probably matches this text.
fn loosened(text: &str, random: &mut Random) -> String {
    let mut regex = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let most = rest.chars().count().min(6);
        let taken: String = rest.chars().take(1 + random.below(most)).collect();
        let one = regex_syntax::escape(&character.to_string());
        let some = regex_syntax::escape(&taken);
        let (piece, length) = match random.below(34) {
            0 => (".".into(), character.len_utf8()),
            1 => (r"\w+".into(), taken.len()),
            2 => (r"\W*".into(), 0),
            3 => (".*".into(), taken.len()),
            4 => (format!("[{one}x]"), character.len_utf8()),
            5 => (format!("[^{one}]?{one}"), character.len_utf8()),
            6 => (format!("{one}?"), character.len_utf8()),
            7 => (format!("(?:{some})+"), taken.len()),
            8 => (format!("(?:{some}|x)"), taken.len()),
            9 => (format!("(?:{some}|{one}|)"), taken.len()),
            10 => (format!("(?i:{some})"), taken.len()),
            11 => (format!("(?i:{})", some.to_uppercase()), taken.len()),
            12 => (r"\b".into(), 0),
            13 => (r"\b".into(), 0),
            14 => (r"(?-u:\b)".into(), 0),
            15 => (r"\B".into(), 0),
            16 => (r"(?:\s|$)".into(), 1),
            17 => (r"(?:^|\W)".into(), character.len_utf8()),
            18 => (format!("({some}){{1,2}}"), taken.len()),
            19 => (format!("(?:{one}){{2}}"), character.len_utf8()),
            20 => (r"(?-u:[^ ])".into(), character.len_utf8()),
            21 => (r"[\w.]+".into(), taken.len()),
            22 => (r"\d*".into(), taken.len()),
            23 => (r"\b{start}".into(), 0),
            24 => (r"\b{end-half}".into(), 0),
            25 => (format!("[{one}0-9a-fx]"), character.len_utf8()),
            26 => (format!("(?:{some}|(?:{one}.|y)*)"), taken.len()),
            27 => (r"[a-z&&[^b]]?".into(), 0),
            _ => (some, taken.len()),
        };
        regex.push_str(&piece);
        // A piece without these characters only matches less.
        rest = rest.get(length.min(rest.len())..).unwrap_or("");
    }
    regex
}

/// A random regular expression over a small alphabet.
fn grown(depth: usize, random: &mut Random) -> String {
    const LEAVES: [&str; 20] = [
        "a",
        "b1",
        "foo",
        " ",
        r"\.",
        "-",
        "42",
        "é",
        ".",
        r"\w",
        r"\s+",
        r"\b",
        "^",
        "$",
        "[ab]",
        "K",
        "(?-u:\\xA9)",
        "[^a]",
        r"\d+",
        "ß",
    ];
    if depth == 0 {
        return LEAVES[random.below(LEAVES.len())].into();
    }
    let one = grown(depth - 1, random);
    match random.below(9) {
        0 => format!("(?:{one})?"),
        1 => format!("(?:{one})*"),
        2 => format!("(?:{one})+"),
        3 => format!("(?:{one}){{2,3}}"),
        4 => format!("(?:{one}|{})", grown(depth - 1, random)),
        5 => format!("(?i:{one})"),
        _ => format!("{one}{}", grown(depth - 1, random)),
    }
}

#[test]
fn whatever_is_found_has_what_is_needed() {
    let mut random = Random(29);
    let (mut found, mut narrowed, mut skipped) = (0, 0, 0);
    for round in 0..6000 {
        let lines: Vec<Vec<u8>> = (0..4).map(|_| line(&mut random)).collect();
        let syntax = match random.below(5) {
            0 => Syntax::Words,
            1 => Syntax::Literal,
            _ => Syntax::Regex,
        };
        let texts = (0..1 + random.below(2)).map(|_| {
            let text = stretch(&lines[random.below(4)], &mut random);
            match (syntax, random.below(5)) {
                (Syntax::Regex, 0) => grown(1 + random.below(4), &mut random),
                (Syntax::Regex, _) => loosened(&text, &mut random),
                (_, 0) => text.to_uppercase(),
                _ => text,
            }
        });
        let patterns = Patterns {
            texts: texts.collect(),
            syntax,
            ignore_case: random.below(3) == 0,
            smart_case: random.below(4) == 0,
            whole_words: random.below(3) == 0,
            whole_lines: random.below(8) == 0,
        };
        let Some(matcher) = matcher(&patterns) else {
            continue;
        };
        for keys in [TextKeys::Words, TextKeys::Trigrams] {
            let needs = needs(&patterns, keys);
            for line in &lines {
                let met = one_met(&needs, &naive(line, keys));
                let is_found = matcher.is_match(line).unwrap();
                let shown = String::from_utf8_lossy(line);
                assert!(
                    met || !is_found,
                    "{round}: {shown:?} {patterns:?} {needs:?}"
                );
                found += usize::from(is_found);
                narrowed += usize::from(is_found && !needs.contains(&Need::Anything));
                skipped += usize::from(!met);
            }
        }
    }
    assert!(
        found > 10_000 && narrowed > 1_500 && skipped > 10_000,
        "{found} {narrowed} {skipped}"
    );
}

fn narrows(regex: &str, keys: TextKeys, line: &str) -> bool {
    let patterns = Patterns {
        texts: vec![regex.into()],
        ..Patterns::default()
    };
    !one_met(&needs(&patterns, keys), &naive(line.as_bytes(), keys))
}

/// Typical searches in logs are narrowed down.
#[test]
fn what_is_known_of_a_pattern_is_needed() {
    use TextKeys::{Trigrams, Words};
    for (regex, line) in [
        (r"\berror \d+ in\b", "error"),
        (r"\berror\b", "errors"),
        (r"^GET /cart\b", "GET /car"),
        (r" (GET|POST) .*\btimeout ", " GET timeouts "),
        (r"(?i) ERROR ", "errors"),
        (r"\b10\.0\.3\.\d+\b", "10.3.0 and 10 0 3"),
        (r"user=ann\s", "anna user"),
        (r#""status": ?"failed""#, "status ok"),
        (r"\b(?:[Ww]arn|error)\b", "warning errors"),
        (r"(?:\s|^)id=\d+\b.*\bdone$", "id=7 did"),
        (r"[\[(]main[\])]\s+started", "[mains]"),
        (r"(?:foo )+bar\b", "foo rebar"),
    ] {
        assert!(narrows(regex, Words, line), "{regex}");
    }
    for (regex, line) in [
        (r"imeou", "time out"),
        (r"(?i)TIMEO.T", "tim eo"),
        (r"https?://x", "http:/x"),
        (r"a(?:bcd|efg)h", "abcd efgh"),
    ] {
        assert!(narrows(regex, Trigrams, line), "{regex}");
    }
    for regex in [
        r"\d+",
        "",
        ".*",
        r"\w+@\w+",
        "ab",
        r"\s",
        "[a-z]+",
        "foo",
        "x*",
        "(?-u)\\xFFfoo",
    ] {
        assert!(!narrows(regex, Words, ""), "{regex}");
    }
    assert!(narrows("[a&&b]", Words, ""), "found nowhere");
}

/// Patterns are parsed together: parts that are invalid alone may form a valid
/// one.
#[test]
fn what_can_not_be_read_needs_nothing() {
    let patterns = Patterns {
        texts: vec!["x[".into(), "]foo ".into()],
        ..Patterns::default()
    };
    assert_eq!(
        needs(&patterns, TextKeys::Trigrams),
        [Need::Anything, Need::Anything]
    );
}

/// Patterns that would expand to millions of alternatives or characters.
#[test]
fn large_patterns_are_bounded() {
    for regex in [
        "(?:a|b)(?:c|d)".repeat(500),
        "[ab][cd]?".repeat(500),
        "(?:(?:(?:(?:(?:ab){3}){3}){3}){3}){3}".repeat(50),
        format!(
            r"\b(?:{})\b.*x",
            (0..9000)
                .map(|i| format!("w{i}"))
                .collect::<Vec<_>>()
                .join("|")
        ),
        "x".repeat(200_000),
        format!("{}a{}", "(".repeat(80), "?)".repeat(80)),
    ] {
        for keys in [TextKeys::Words, TextKeys::Trigrams] {
            let patterns = Patterns {
                texts: vec![regex.clone()],
                ..Patterns::default()
            };
            needs(&patterns, keys);
        }
    }
    // The needs of many alternatives are kept.
    let words: Vec<String> = (0..1000).map(|i| format!("w{i}")).collect();
    assert!(narrows(
        &format!(r"\b(?:{})\b", words.join("|")),
        TextKeys::Words,
        "w"
    ));
}
