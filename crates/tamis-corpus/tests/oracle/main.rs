//! What is cut out of generated corpora is what an exact set says.

mod naive;

use std::path::PathBuf;
use tamis_corpus::chunks::{Kind, Source};
use tamis_corpus::engine::{Job, run};
use tamis_corpus::output::Stream;
use tamis_corpus::rule::{TextUnit, UnitRule};
use tamis_corpus::seen::Seen;
use tamis_corpus::settings::{Output, Settings, Use};
use tamis_corpus::summary::Summary;

/// Cuts a text into units, each with what separates it from the next.
type Split = fn(&str) -> Vec<(String, String)>;

/// What a text becomes.
type Changed<'a> = &'a dyn Fn(&str) -> String;

/// Numbers drawn from a seed.
struct Draw(u64);

impl Draw {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn pick<'a>(&mut self, all: &[&'a str]) -> &'a str {
        all[self.below(all.len())]
    }

    fn words(&mut self, count: usize) -> String {
        const OTHERS: [&str; 8] = [
            "Ünïcode",
            "漢字",
            "👩‍🚀",
            "it's",
            "3.14",
            "“quoted”",
            "тест",
            "a\u{301}",
        ];
        let word = |draw: &mut Self| match draw.below(12) {
            0 => draw.pick(&OTHERS).to_owned(),
            _ => format!("w{}", draw.below(5000)),
        };
        let words: Vec<String> = (0..count).map(|_| word(self)).collect();
        words.join(" ")
    }

    /// Texts of which many parts occur more than once.
    fn corpus(&mut self, documents: usize) -> Vec<String> {
        const ENDS: [&str; 7] = [
            "\n",
            "\r\n",
            "\n\n",
            "\r\n\r\n",
            "\n \t\n\n",
            "\n\u{3000}\n",
            ". ",
        ];
        let mut parts: Vec<String> = Vec::new();
        let mut texts: Vec<String> = Vec::new();
        for _ in 0..documents {
            if !texts.is_empty() && self.below(10) == 0 {
                let again = self.below(texts.len());
                texts.push(texts[again].clone());
                continue;
            }
            let mut text = String::new();
            for _ in 0..self.below(9) {
                if !parts.is_empty() && self.below(3) == 0 {
                    let again = self.below(parts.len());
                    text += &parts[again];
                } else {
                    let length = 1 + self.below(30);
                    let part = self.words(length);
                    text += &part;
                    parts.push(part);
                }
                text += self.pick(&ENDS);
            }
            texts.push(text);
        }
        texts
    }
}

fn records(texts: &[String], first: usize) -> String {
    let record = |(number, text): (usize, &String)| {
        let number = first + number;
        let text = serde_json::to_string(text).unwrap();
        // Some writers escape all that isn't ASCII.
        let text = match number % 3 {
            0 => text.chars().map(escaped).collect(),
            _ => text,
        };
        format!("{{\"id\": {number}, \"text\": {text}, \"more\": [1, {{}}]}}\n")
    };
    texts.iter().enumerate().map(record).collect()
}

fn escaped(c: char) -> String {
    if c.is_ascii() {
        return c.to_string();
    }
    let units = c.encode_utf16(&mut [0; 2]).to_vec();
    units.iter().map(|unit| format!("\\u{unit:04x}")).collect()
}

struct Files(tempfile::TempDir);

impl Files {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    }
}

fn clean_with(
    settings: &Settings,
    seen: &mut Seen,
    sources: &[Source],
    threads: usize,
) -> (Vec<u8>, Summary) {
    let mut output = Vec::new();
    let outcome = run(Job {
        settings,
        sources,
        first: 0,
        seen,
        outputs: &mut Stream::new(&mut output),
        threads,
        progress: &Default::default(),
    });
    outcome.result.unwrap();
    (output, outcome.summary)
}

/// What is left of the texts, by one thread; four give the same bytes.
fn clean(settings: &Settings, texts: &[String]) -> (naive::Cleaned, Summary) {
    let files = Files::new();
    let half = texts.len() / 2;
    let sources = [
        Source::by_name(files.write("a.jsonl", &records(&texts[..half], 0))),
        Source::by_name(files.write("b.jsonl", &records(&texts[half..], half))),
    ];
    let seen = || Seen::new(settings.rule, 100_000, 1e-9).unwrap();
    let (output, summary) = clean_with(settings, &mut seen(), &sources, 1);
    let (by_four, same) = clean_with(settings, &mut seen(), &sources, 4);
    assert!(output == by_four, "threads give another output");
    assert_eq!(summary.sources, same.sources);
    let mut cleaned = vec![None; texts.len()];
    let lines = output.split(|byte| *byte == b'\n');
    for line in lines.filter(|line| !line.is_empty()) {
        let record: serde_json::Value = serde_json::from_slice(line).unwrap();
        let at = record["id"].as_u64().unwrap() as usize;
        cleaned[at] = Some(record["text"].as_str().unwrap().to_owned());
        assert_eq!(record["more"], serde_json::json!([1, {}]));
    }
    (cleaned, summary)
}

fn rule(unit: TextUnit, fold: &str) -> UnitRule {
    let fold = match fold {
        "" => Default::default(),
        list => list.parse().unwrap(),
    };
    UnitRule::new(unit, fold)
}

fn assert_like(cleaned: &naive::Cleaned, expected: &naive::Cleaned, texts: &[String]) {
    for ((cleaned, expected), text) in cleaned.iter().zip(expected).zip(texts) {
        assert_eq!(cleaned, expected, "{text:?}");
    }
}

#[test]
fn units_are_those_of_an_exact_set() {
    let texts = Draw(1).corpus(3000);
    let asis = str::to_owned;
    let units: [(TextUnit, Split); 3] = [
        (TextUnit::Line, naive::lines),
        (TextUnit::Sentence, naive::sentences),
        (TextUnit::Paragraph, naive::paragraphs),
    ];
    for (unit, split) in units {
        let (cleaned, summary) = clean(&Settings::new(rule(unit, "")), &texts);
        let expected = naive::cut(&texts, split, asis);
        assert_like(&cleaned, &expected, &texts);
        let total = summary.total();
        assert!(
            total.repeats > 1000 && total.repeats < total.units,
            "{total:?}"
        );
        let changed = cleaned
            .iter()
            .zip(&texts)
            .filter(|(cleaned, text)| cleaned.as_ref() != Some(*text));
        assert_eq!(total.changed, changed.count() as u64);
    }
}

#[test]
fn documents_are_those_of_an_exact_set() {
    let texts = Draw(2).corpus(3000);
    let (cleaned, summary) = clean(&Settings::new(rule(TextUnit::Document, "")), &texts);
    assert_like(&cleaned, &naive::documents(&texts, str::to_owned), &texts);
    let dropped = cleaned.iter().filter(|text| text.is_none()).count();
    assert!(dropped > 100);
    assert_eq!(summary.total().dropped, dropped as u64);
}

#[test]
fn folds_are_those_of_simple_functions() {
    let mut draw = Draw(3);
    let mut texts = draw.corpus(1500);
    // The same words in other letters, spaces and marks.
    for number in 0..500 {
        let text = &texts[number];
        let other = match number % 3 {
            0 => text.to_uppercase(),
            1 => text.replace(' ', "  \t"),
            _ => text.replace(' ', ", "),
        };
        texts.push(other);
    }
    let space = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let case = |text: &str| -> String { text.chars().flat_map(char::to_lowercase).collect() };
    let folds: [(&str, Changed); 3] = [
        ("case", &case),
        ("space", &space),
        ("case,space", &|text| space(&case(text))),
    ];
    for (fold, naive_fold) in folds {
        let (cleaned, _) = clean(&Settings::new(rule(TextUnit::Document, fold)), &texts);
        assert_like(&cleaned, &naive::documents(&texts, naive_fold), &texts);
    }
}

#[test]
fn ngrams_are_judged_by_those_of_earlier_texts() {
    let mut draw = Draw(4);
    let mut texts: Vec<String> = Vec::new();
    for number in 0..1200 {
        let text = match number % 3 {
            // A part of an earlier one, and new words.
            2 => {
                let known: Vec<&str> = texts[draw.below(texts.len())].split(' ').collect();
                let share = draw.below(known.len() + 1);
                format!(
                    "{} {}",
                    known[..share].join(" "),
                    draw.words(1 + known.len() - share)
                )
            }
            // The same n-grams time and again, which say nothing against their own text.
            1 => format!("{0} {0} {0}", draw.words(20)),
            _ => {
                let length = 1 + draw.below(120);
                draw.words(length)
            }
        };
        texts.push(text);
    }
    for (n, threshold) in [(3, 0.5), (13, 0.8), (1, 1.0)] {
        let mut settings = Settings::new(rule(TextUnit::Words(n), ""));
        settings.threshold = threshold;
        let (cleaned, summary) = clean(&settings, &texts);
        let expected = naive::ngrams(&texts, usize::from(n), threshold);
        assert_like(&cleaned, &expected, &texts);
        assert!(summary.total().dropped > 30, "{n}: {:?}", summary.total());
    }
}

#[test]
fn what_was_learned_is_found_and_nothing_is_added() {
    let mut draw = Draw(5);
    let tests: Vec<String> = (0..100).map(|_| draw.words(40)).collect();
    let others: Vec<String> = (0..400)
        .map(|number| match number % 4 {
            0 => tests[number / 4].clone(),
            _ => draw.words(40),
        })
        .collect();
    let files = Files::new();
    let mut settings = Settings::new(rule(TextUnit::Words(8), "case"));
    settings.threshold = 0.5;
    let mut seen = Seen::new(settings.rule, 1000, 1e-6).unwrap();
    settings.use_of_filter = Use::Learn;
    let learned = [Source::by_name(
        files.write("tests.jsonl", &records(&tests, 0)),
    )];
    let (output, summary) = clean_with(&settings, &mut seen, &learned, 2);
    assert_eq!(
        (output.len() as u64, summary.total().repeats),
        (summary.total().bytes, 0)
    );
    let units = seen.units();
    settings.use_of_filter = Use::Ask;
    let asked = [Source::by_name(
        files.write("others.jsonl", &records(&others, 0)),
    )];
    for threads in [1, 3] {
        let (_, summary) = clean_with(&settings, &mut seen, &asked, threads);
        assert_eq!(summary.total().dropped, 100);
        assert_eq!(seen.units(), units);
    }
}

/// Pairs of each likeness are found as often as the bands promise: within four standard deviations.
#[test]
fn near_duplicates_are_found_as_often_as_bands_promise() {
    let mut draw = Draw(6);
    let bands = tamis_corpus::near::Bands::for_threshold(0.8);
    for changed in [2usize, 6, 14, 30] {
        const PAIRS: usize = 400;
        let mut texts = Vec::new();
        let (mut promised, mut variance) = (0.0, 0.0);
        for _ in 0..PAIRS {
            let words: Vec<String> = (0..300)
                .map(|_| format!("w{}", draw.below(1 << 30)))
                .collect();
            let mut other = words.clone();
            for at in 0..changed {
                other[at * 300 / changed] = format!("x{}", draw.below(1 << 30));
            }
            let (first, second) = (words.join(" "), other.join(" "));
            let chance = bands.chance(naive::likeness(&first, &second));
            promised += chance;
            variance += chance * (1.0 - chance);
            texts.extend([first, second]);
        }
        let (cleaned, _) = clean(&Settings::new(rule(TextUnit::Alike(80), "")), &texts);
        assert!(
            cleaned.iter().step_by(2).all(Option::is_some),
            "the first one stays"
        );
        let found = cleaned.iter().filter(|text| text.is_none()).count() as f64;
        assert!(
            (found - promised).abs() <= 4.0 * f64::sqrt(variance) + 4.0,
            "{changed} words changed: {found} found, {promised} promised"
        );
    }
}

/// A filter with a rate of 1 % drops about so many units that never occurred, and no more.
#[test]
fn the_rate_is_kept() {
    let mut draw = Draw(7);
    let texts: Vec<String> = (0..60_000)
        .map(|number| format!("{number} {}", draw.below(1 << 40)))
        .collect();
    let settings = Settings::new(rule(TextUnit::Document, ""));
    let files = Files::new();
    let sources = [Source::by_name(files.write("a.jsonl", &records(&texts, 0)))];
    // Made for far fewer: it grows.
    let mut seen = Seen::new(settings.rule, 1000, 0.01).unwrap();
    let (_, summary) = clean_with(&settings, &mut seen, &sources, 2);
    let dropped = summary.total().dropped as f64;
    assert!(dropped > 0.0 && dropped <= 60_000.0 * 0.01, "{dropped}");
    let expected = seen.expected_wrong();
    assert!(
        (dropped - expected).abs() < 5.0 * expected.sqrt(),
        "{dropped}, expected {expected}"
    );
}

#[test]
fn places_are_those_of_characters() {
    let files = Files::new();
    let text = "é漢👩 same\nOther\né漢👩 same";
    let path = files.write("a.jsonl", &records(&[text.to_owned()], 3));
    for (output, expected) in [
        (
            Output::Attributes,
            "{\"id\": 3, \"attributes\": {\"tamis_repeats\": [[15, 23, 1.0]]}}\n",
        ),
        (
            Output::Annotated,
            "{}], \"tamis_repeats\": [[15, 23, 1.0]]}\n",
        ),
    ] {
        let mut settings = Settings::new(rule(TextUnit::Line, ""));
        settings.output = output;
        let mut seen = Seen::new(settings.rule, 1000, 1e-6).unwrap();
        let (printed, _) = clean_with(&settings, &mut seen, &[Source::by_name(path.clone())], 1);
        let printed = String::from_utf8(printed).unwrap();
        let printed = printed.split("[1, ").last().unwrap();
        assert_eq!(printed, expected);
        let characters: Vec<char> = text.chars().collect();
        assert_eq!(characters[15..23].iter().collect::<String>(), "é漢👩 same");
    }
}

#[test]
fn odd_lines_are_kept_counted_and_named() {
    let files = Files::new();
    let text = "{\"text\": \"a\"}\n{\"text\"\n\n[1]\n{\"text\": null}\n{\"text\": 7}\n{\"text\": \"\\ud800\"}\n\u{0}\n{\"text\": \"a\"}";
    let sources = [Source::by_name(files.write("a.jsonl", text))];
    let settings = Settings::new(rule(TextUnit::Document, ""));
    let mut seen = Seen::new(settings.rule, 1000, 1e-6).unwrap();
    let (output, summary) = clean_with(&settings, &mut seen, &sources, 2);
    let end = text.rfind("{\"text\": \"a\"}").unwrap();
    assert_eq!(String::from_utf8_lossy(&output), text[..end]);
    let total = summary.total();
    assert_eq!((total.records, total.dropped), (2, 1));
    assert_eq!((total.broken, total.missing, total.not_text), (2, 2, 2));
    let odd: Vec<(u64, &str)> = summary.odd.iter().map(|odd| (odd.line, odd.what)).collect();
    let expected = [
        (2, "no JSON"),
        (4, "no text"),
        (5, "no text"),
        (6, "a text that is no string"),
        (7, "a text that is no string"),
        (8, "no JSON"),
    ];
    assert_eq!(odd, expected);
}

#[test]
fn plain_text_is_cut_as_records_are() {
    let mut text = Draw(8).corpus(4000).concat().into_bytes();
    // So that it comes in several chunks, and one line is no UTF-8.
    while text.len() < 2 << 20 {
        text.extend_from_within(..);
    }
    const END: &[u8] = b"unique one\n\n\xFF broken\n\nlast new line\n";
    text.extend_from_slice(b"\n\n");
    text.extend_from_slice(END);
    let files = Files::new();
    let path = files.write("a.txt", "");
    std::fs::write(&path, &text).unwrap();
    let valid = String::from_utf8(text[..text.len() - END.len()].to_vec()).unwrap();
    let units: [(TextUnit, Split); 2] = [
        (TextUnit::Line, naive::lines),
        (TextUnit::Paragraph, naive::paragraphs),
    ];
    for (unit, split) in units {
        let settings = Settings::new(rule(unit, ""));
        let mut outputs = Vec::new();
        for threads in [1, 4] {
            let mut seen = Seen::new(settings.rule, 1_000_000, 1e-9).unwrap();
            let (output, summary) = clean_with(
                &settings,
                &mut seen,
                &[Source::by_name(path.clone())],
                threads,
            );
            assert_eq!((summary.total().broken, summary.odd.len()), (1, 1));
            outputs.push(output);
        }
        assert!(outputs[0] == outputs[1]);
        let mut expected = naive::cut(std::slice::from_ref(&valid), split, str::to_owned)[0]
            .clone()
            .unwrap()
            .into_bytes();
        expected.extend_from_slice(END);
        assert!(outputs[0] == expected, "{unit:?}");
    }
}

/// Records with bytes changed, removed and doubled: nothing panics, what is no text any more is kept, and every line of
/// the output is one of the input or a part of it.
#[test]
fn damaged_records_are_kept_or_cut_and_never_more() {
    let mut draw = Draw(9);
    let files = Files::new();
    let whole = records(&draw.corpus(400), 0).into_bytes();
    for round in 0..12 {
        let mut bytes = whole.clone();
        for _ in 0..2000 {
            let at = draw.below(bytes.len());
            match draw.below(4) {
                0 => drop(bytes.remove(at)),
                1 => bytes[at] = draw.below(256) as u8,
                2 => bytes.insert(at, bytes[at]),
                _ => bytes[at] = b"\\\"{}u0n"[draw.below(7)],
            }
        }
        let path = files.write("a.jsonl", "");
        std::fs::write(&path, &bytes).unwrap();
        let units = [
            TextUnit::Document,
            TextUnit::Paragraph,
            TextUnit::Sentence,
            TextUnit::Line,
            TextUnit::Words(3),
            TextUnit::Alike(80),
        ];
        let unit = units[round % units.len()];
        for (kind, fold) in [
            (Kind::Json, "case,space,punctuation,nfkc"),
            (Kind::Text, ""),
        ] {
            let settings = Settings::new(rule(unit, fold));
            let mut seen = Seen::new(settings.rule, 100_000, 1e-6).unwrap();
            let source = Source {
                path: path.clone(),
                kind,
            };
            let (output, summary) = clean_with(&settings, &mut seen, &[source], 2);
            let total = summary.total();
            assert_eq!(
                output.len() as u64,
                total.bytes - total.cut,
                "{unit:?}, {kind:?}"
            );
            assert!(is_subsequence(&output, &bytes), "{unit:?}, {kind:?}");
            if kind == Kind::Json {
                assert!(total.broken > 50 && total.records > 50, "{total:?}");
                let lines =
                    |bytes: &[u8]| bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
                assert_eq!(lines(&output), lines(&bytes) - total.dropped);
            }
        }
    }
}

fn is_subsequence(part: &[u8], whole: &[u8]) -> bool {
    let mut rest = whole.iter();
    part.iter().all(|byte| rest.any(|other| other == byte))
}
