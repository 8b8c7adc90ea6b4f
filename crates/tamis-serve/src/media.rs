//! The headers about bodies and answers: the form of the keys, their compression, and the form that the client wants
//! back.

use crate::problem::Problem;
use hyper::StatusCode;
use hyper::header::{self, HeaderMap, HeaderName};

/// The form of keys and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// One key per line.
    Lines,
    /// An array of strings.
    Json,
}

/// The compression of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Packing {
    None,
    Gzip,
}

/// The value of a header that may only occur once.
pub(crate) fn single<'h>(
    headers: &'h HeaderMap,
    name: &HeaderName,
) -> Result<Option<&'h str>, Problem> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => match value.to_str() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(Problem::bad_request(format!("{name}: expected ASCII"))),
        },
        _ => Err(Problem::bad_request(format!(
            "{name}: expected one, got several"
        ))),
    }
}

/// The items of a list header, over all its lines: `a, b`.
fn items<'h>(headers: &'h HeaderMap, name: &HeaderName) -> impl Iterator<Item = String> + 'h {
    let values = headers.get_all(name).iter();
    let items = values.flat_map(|value| value.as_bytes().split(|&b| b == b','));
    items
        .map(|item| String::from_utf8_lossy(item).trim().to_ascii_lowercase())
        .filter(|item| !item.is_empty())
}

/// The parameter of a media type, without quotes: `utf-8` of `text/plain; charset="utf-8"`.
fn parameter<'a>(media: &'a str, name: &str) -> Option<&'a str> {
    media.split(';').skip(1).find_map(|part| {
        let (found, value) = part.split_once('=')?;
        let is_it = found.trim().eq_ignore_ascii_case(name);
        is_it.then(|| value.trim().trim_matches('"'))
    })
}

/// The name of a media type, without its parameters.
fn name_of(media: &str) -> String {
    let name = media.split(';').next().unwrap_or_default();
    name.trim().to_ascii_lowercase()
}

fn unsupported(text: String) -> Problem {
    Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text)
}

impl Form {
    /// The form of a request's body, from its Content-Type.
    pub(crate) fn of_request(headers: &HeaderMap) -> Result<Self, Problem> {
        let Some(media) = single(headers, &header::CONTENT_TYPE)? else {
            return Ok(Self::Lines);
        };
        let form = match name_of(media).as_str() {
            "application/json" => Self::Json,
            // The third is curl's default for `--data-binary @keys.txt`.
            "text/plain" | "application/octet-stream" | "application/x-www-form-urlencoded" => {
                Self::Lines
            }
            other => {
                return Err(unsupported(format!(
                    "Content-Type: expected application/json (an array of strings) or text/plain \
                     (one key a line), got {other}"
                )));
            }
        };
        // In another charset, keys would have different bytes from those in the filter.
        match parameter(media, "charset") {
            None => Ok(form),
            Some(charset) if is_utf8(charset) => Ok(form),
            Some(other) => Err(unsupported(format!(
                "Content-Type: expected charset=utf-8 or us-ascii, got {other}; \
                 application/octet-stream without a charset sends keys as the bytes they are"
            ))),
        }
    }

    /// Where the text of a body begins: after a UTF-8 byte order mark. Refuses UTF-16, whose keys would have different
    /// bytes from those in the filter. A client that means these bytes can send `application/octet-stream`.
    pub(crate) fn start_of_text(headers: &HeaderMap, body: &[u8]) -> Result<usize, Problem> {
        let media = single(headers, &header::CONTENT_TYPE)?.map(name_of);
        if media.as_deref() == Some("application/octet-stream") {
            return Ok(0);
        }
        if is_utf16(body) {
            return Err(unsupported(
                "the body seems to be UTF-16: expected UTF-8; Content-Type: application/octet-stream \
                 sends keys as the bytes they are"
                    .into(),
            ));
        }
        const MARK: &[u8] = "\u{FEFF}".as_bytes();
        Ok(if body.starts_with(MARK) {
            MARK.len()
        } else {
            0
        })
    }

    /// The form of the answers: from Accept, or the request's if Accept leaves it open.
    pub(crate) fn of_response(headers: &HeaderMap, request: Self) -> Result<Self, Problem> {
        let ranges: Vec<Range> = items(headers, &header::ACCEPT)
            .map(|item| Range::read(&item))
            .collect();
        let wishes = [
            Wish::of(&ranges, ["application", "json"]),
            Wish::of(&ranges, ["text", "plain"]),
        ];
        match wishes {
            [Wish { quality: 0, .. }, Wish { quality: 0, .. }] => Err(Problem::new(
                StatusCode::NOT_ACCEPTABLE,
                "Accept: answers are application/json or text/plain, and both are refused",
            )),
            [json, lines] if json == lines => Ok(request),
            [json, lines] if json > lines => Ok(Self::Json),
            _ => Ok(Self::Lines),
        }
    }
}

/// How much a client wants a form, compared field by field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Wish {
    /// In thousandths; 0 means refused.
    quality: u16,
    /// Whether it was named rather than matched by a wildcard; among named ones, the first wins.
    named: usize,
}

impl Wish {
    fn of(ranges: &[Range], [sort, name]: [&str; 2]) -> Self {
        // The most specific range counts, whatever its position.
        let fits = |range: &&Range| range.fits(sort, name);
        match ranges.iter().filter(fits).max_by_key(|r| r.closeness()) {
            // Neither wanted nor refused: the last resort.
            None => Self {
                quality: 1,
                named: 0,
            },
            Some(range) => Self {
                quality: range.quality,
                named: match range.closeness() {
                    2 => {
                        let later = ranges.iter().rev();
                        1 + later.take_while(|r| !r.fits(sort, name)).count()
                    }
                    _ => 0,
                },
            },
        }
    }
}

/// An item of Accept: `text/*; q=0.5`.
struct Range {
    sort: String,
    name: String,
    quality: u16,
}

impl Range {
    fn read(item: &str) -> Self {
        let media = name_of(item);
        let (sort, name) = media.split_once('/').unwrap_or((&media, ""));
        let quality = parameter(item, "q").and_then(|q| q.parse::<f32>().ok());
        Self {
            sort: sort.into(),
            name: name.into(),
            quality: (quality.unwrap_or(1.0).clamp(0.0, 1.0) * 1000.0) as u16,
        }
    }

    fn fits(&self, sort: &str, name: &str) -> bool {
        let is = |ours: &str, theirs: &str| ours == "*" || ours == theirs;
        is(&self.sort, sort) && is(&self.name, name)
    }

    fn closeness(&self) -> u8 {
        u8::from(self.sort != "*") + u8::from(self.name != "*")
    }
}

impl Packing {
    /// The compression of a request's body, from its Content-Encoding.
    pub(crate) fn of_request(headers: &HeaderMap) -> Result<Self, Problem> {
        let codings = items(headers, &header::CONTENT_ENCODING);
        let codings: Vec<String> = codings.filter(|coding| coding != "identity").collect();
        match codings.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            [] => Ok(Self::None),
            ["gzip" | "x-gzip"] => Ok(Self::Gzip),
            _ => {
                let got = codings.join(", ");
                let text = format!("Content-Encoding: expected gzip or none, got {got}");
                Err(unsupported(text).with(header::ACCEPT_ENCODING, "gzip, identity"))
            }
        }
    }
}

fn is_utf8(charset: &str) -> bool {
    ["utf-8", "utf8", "us-ascii", "ascii"]
        .iter()
        .any(|known| charset.eq_ignore_ascii_case(known))
}

/// Whether a body is UTF-16 text: it starts with the mark, and soon has a character below 256. Random bytes hardly ever
/// look like that.
fn is_utf16(body: &[u8]) -> bool {
    const LOOKED_AT: usize = 512;
    let (mark, rest) = match body.split_at_checked(2) {
        Some((mark, rest)) if body.len().is_multiple_of(2) => (mark, rest),
        _ => return false,
    };
    let high = match mark {
        [0xFF, 0xFE] => 1,
        [0xFE, 0xFF] => 0,
        _ => return false,
    };
    let mut units = rest.chunks_exact(2).take(LOOKED_AT);
    rest.is_empty() || units.any(|unit| unit[high] == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(of: &[(&'static str, &str)]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for (name, value) in of {
            headers.append(*name, value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn the_answers_form_is_what_the_client_wants_most() {
        let form = |accept: &str, request| {
            Form::of_response(&headers(&[("accept", accept)]), request)
                .map_err(|problem| problem.status.as_u16())
        };
        for (accept, wanted) in [
            ("application/json", Form::Json),
            ("text/plain", Form::Lines),
            ("APPLICATION/JSON; charset=utf-8", Form::Json),
            ("text/plain, application/json", Form::Lines),
            ("application/json, text/plain", Form::Json),
            ("text/plain;q=0.5, application/json", Form::Json),
            ("text/plain;q=0.5, application/json;q=0.4", Form::Lines),
            ("application/json;q=0", Form::Lines),
            ("application/json;q=0, */*", Form::Lines),
            ("text/plain; q=0.000, */*;q=0.1", Form::Json),
            ("*/*, application/json", Form::Json),
            ("text/html, text/*", Form::Lines),
            ("text/html, application/*;q=0.2", Form::Json),
        ] {
            for request in [Form::Json, Form::Lines] {
                assert_eq!(form(accept, request), Ok(wanted), "{accept}");
            }
        }
        // If Accept leaves it open, or can't be parsed, the request decides.
        for accept in ["*/*", "text/html", "", ";", "q=0", "*/*;q=0.1"] {
            for request in [Form::Json, Form::Lines] {
                assert_eq!(form(accept, request), Ok(request), "{accept}");
            }
        }
        for accept in ["*/*;q=0", "text/plain;q=0, application/json;q=0.0"] {
            assert_eq!(form(accept, Form::Json), Err(406), "{accept}");
        }
    }

    #[test]
    fn charsets_other_than_utf_8_are_refused() {
        let form = |media: &str| {
            Form::of_request(&headers(&[("content-type", media)]))
                .map_err(|problem| problem.status.as_u16())
        };
        for media in [
            "text/plain",
            "text/plain; charset=utf-8",
            "Text/Plain;charset=\"UTF-8\"",
            "text/plain; format=flowed; CHARSET=us-ascii",
        ] {
            assert_eq!(form(media), Ok(Form::Lines), "{media}");
        }
        assert_eq!(form("application/json; charset=utf-8"), Ok(Form::Json));
        for media in [
            "text/plain; charset=iso-8859-1",
            "text/plain; charset=utf-16",
            "text/plain; charset=",
            "application/json;charset=utf-16le",
            "multipart/form-data; boundary=x",
            "text/html",
            "",
        ] {
            assert_eq!(form(media), Err(415), "{media}");
        }
        let twice = headers(&[("content-type", "text/plain"), ("content-type", "text/x")]);
        assert_eq!(Form::of_request(&twice).unwrap_err().status, 400);
    }

    #[test]
    fn gzip_is_the_one_packing() {
        let packing = |values: &[&str]| {
            let all: Vec<_> = values.iter().map(|v| ("content-encoding", *v)).collect();
            Packing::of_request(&headers(&all)).map_err(|problem| problem.status.as_u16())
        };
        assert_eq!(packing(&[]), Ok(Packing::None));
        assert_eq!(packing(&["identity"]), Ok(Packing::None));
        for one in ["gzip", "GZip", "x-gzip", "identity, gzip", " gzip ,"] {
            assert_eq!(packing(&[one]), Ok(Packing::Gzip), "{one}");
        }
        for other in ["deflate", "zstd", "br", "gzip, gzip", "gzip, br", "none"] {
            assert_eq!(packing(&[other]), Err(415), "{other}");
        }
        assert_eq!(packing(&["gzip", "gzip"]), Err(415));
    }

    #[test]
    fn utf_16_is_recognised_by_more_than_its_mark() {
        let text = |text: &str, to: fn(u16) -> [u8; 2]| {
            let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
            units.flat_map(to).collect::<Vec<u8>>()
        };
        for words in ["", "apple", "яблоко\nгруша\n"] {
            assert!(is_utf16(&text(words, u16::to_le_bytes)), "{words}");
            assert!(is_utf16(&text(words, u16::to_be_bytes)), "{words}");
        }
        for bytes in [&b""[..], b"\xff", b"\xff\xfea", b"\xff\xfe\n\xff", b"ap"] {
            assert!(!is_utf16(bytes), "{bytes:?}");
        }
    }
}
