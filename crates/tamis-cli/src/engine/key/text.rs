//! Values that count as equal though their bytes differ: URLs by the WHATWG rules, letters regardless of case.

use super::KeyRule;
use url::Url;

/// Appends `value`, normalised as `rule` asks. What is no URL stays as it is.
pub(crate) fn append(value: &[u8], rule: &KeyRule, key: &mut Vec<u8>) {
    let start = key.len();
    match rule.url.then(|| normal_url(value)).flatten() {
        Some(url) => key.extend_from_slice(url.as_str().as_bytes()),
        None => key.extend_from_slice(value),
    }
    if rule.ignore_case {
        lower_case(key, start);
    }
}

/// The URL without its fragment; the parser already drops a default port, dots, tabs and the host's capitals.
fn normal_url(value: &[u8]) -> Option<Url> {
    let mut url = Url::parse(std::str::from_utf8(value).ok()?).ok()?;
    url.set_fragment(None);
    Some(url)
}

/// Lower-cases what follows `start`: Unicode where it is UTF-8, else ASCII letters only.
fn lower_case(key: &mut Vec<u8>, start: usize) {
    let text = &key[start..];
    if let Ok(text) = std::str::from_utf8(text)
        && !text.is_ascii()
    {
        let lower: String = text.chars().flat_map(char::to_lowercase).collect();
        key.truncate(start);
        key.extend_from_slice(lower.as_bytes());
    } else {
        key[start..].make_ascii_lowercase();
    }
}
