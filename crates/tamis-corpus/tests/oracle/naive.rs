//! What cleaning is, with exact sets and no regard to speed. Texts are judged one after the other.

use std::collections::HashSet;
use unicode_segmentation::UnicodeSegmentation;

/// What remains of each text; none where its document is dropped.
pub(crate) type Cleaned = Vec<Option<String>>;

/// Units by lines: each with what separates it from the next.
pub(crate) fn lines(text: &str) -> Vec<(String, String)> {
    text.split_inclusive('\n')
        .map(|line| {
            let key = line
                .strip_suffix('\n')
                .map_or(line, |line| line.strip_suffix('\r').unwrap_or(line));
            (key.to_owned(), line.to_owned())
        })
        .collect()
}

/// Sentences; empty ones belong to the one before.
pub(crate) fn sentences(text: &str) -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> = Vec::new();
    for sentence in text.split_sentence_bounds() {
        match all.last_mut() {
            Some((key, whole)) if sentence.trim().is_empty() && !key.is_empty() => {
                whole.push_str(sentence);
            }
            _ => all.push((sentence.trim().to_owned(), sentence.to_owned())),
        }
    }
    all
}

/// Lines up to an empty one. The last line's end is not part of the key; those between lines are, as they are.
pub(crate) fn paragraphs(text: &str) -> Vec<(String, String)> {
    let mut all: Vec<Vec<&str>> = vec![Vec::new()];
    let mut was_empty = false;
    for line in text.split_inclusive('\n') {
        let is_empty = line.trim().is_empty();
        if was_empty && !is_empty {
            all.push(Vec::new());
        }
        was_empty = is_empty;
        all.last_mut().unwrap().push(line);
    }
    let unit = |lines: Vec<&str>| {
        let whole = lines.concat();
        let last = lines.iter().rposition(|line| !line.trim().is_empty());
        let key = last.map_or(String::new(), |last| lines[..=last].concat());
        let key = match key.strip_suffix('\n') {
            Some(key) => key.strip_suffix('\r').unwrap_or(key).to_owned(),
            None => key,
        };
        (key, whole)
    };
    all.into_iter().map(unit).collect()
}

/// Cuts out of each text the units that occurred before. Empty lines at a text's start belong to no unit.
pub(crate) fn cut(
    texts: &[String],
    units: impl Fn(&str) -> Vec<(String, String)>,
    fold: impl Fn(&str) -> String,
) -> Cleaned {
    let mut seen = HashSet::new();
    texts
        .iter()
        .map(|text| {
            let kept = units(text)
                .into_iter()
                .filter(|(key, _)| key.trim().is_empty() || seen.insert(fold(key)));
            Some(kept.map(|(_, whole)| whole).collect())
        })
        .collect()
}

/// Drops texts that occurred before.
pub(crate) fn documents(texts: &[String], fold: impl Fn(&str) -> String) -> Cleaned {
    let mut seen = HashSet::new();
    let is_kept = |text: &&String| text.trim().is_empty() || seen.insert(fold(text));
    let mut is_kept = is_kept;
    texts
        .iter()
        .map(|text| is_kept(&text).then(|| text.clone()))
        .collect()
}

/// Drops a text if this share of its n-grams was in the texts kept before it.
pub(crate) fn ngrams(texts: &[String], n: usize, threshold: f64) -> Cleaned {
    let mut seen: HashSet<Vec<String>> = HashSet::new();
    texts
        .iter()
        .map(|text| {
            let words: Vec<String> = text.unicode_words().map(str::to_owned).collect();
            let grams: Vec<Vec<String>> = words.windows(n).map(<[String]>::to_vec).collect();
            let known = grams.iter().filter(|gram| seen.contains(*gram)).count();
            if !grams.is_empty() && known as f64 / grams.len() as f64 >= threshold {
                return None;
            }
            seen.extend(grams);
            Some(text.clone())
        })
        .collect()
}

/// The share of 5-word shingles that two texts have in common.
pub(crate) fn likeness(a: &str, b: &str) -> f64 {
    let shingles = |text: &str| -> HashSet<Vec<String>> {
        let words: Vec<String> = text.unicode_words().map(str::to_owned).collect();
        words.windows(5).map(<[String]>::to_vec).collect()
    };
    let (a, b) = (shingles(a), shingles(b));
    a.intersection(&b).count() as f64 / a.union(&b).count().max(1) as f64
}
