//! URLs by the WHATWG standard. The crate `url` follows it except in a few corners, where it merges
//! different URLs or accepts invalid ones: the paths of `file:`, dots behind a segment like `C:`,
//! and hosts of non-web schemes. There we make the path ourselves.

use std::fmt::Write as _;
use url::{Position, Url};

/// The URL without its fragment; `None` if it isn't a URL. The standard drops a default port, dots
/// and tabs, and lower-cases the host.
pub(super) fn normal(value: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(value).ok()?;
    match Parts::of(text) {
        Corner::None => {
            let mut url = Url::parse(text).ok()?;
            url.set_fragment(None);
            Some(url.into())
        }
        Corner::Space(text) => Some(Url::parse(&text).ok()?[..Position::AfterQuery].to_owned()),
        Corner::Path(parts) => parts.normal(),
    }
}

enum Corner {
    None,
    /// A space at the end of a path without segments, written out.
    Space(String),
    Path(Parts),
}

/// A URL with a path of segments, before any of it is normalised.
struct Parts {
    scheme: String,
    special: bool,
    /// Between `//` and the path, if there is `//`.
    authority: Option<String>,
    path: String,
    /// From the question mark on.
    query: String,
}

impl Parts {
    fn of(text: &str) -> Corner {
        let text = text.trim_matches(|c: char| c <= ' ');
        let text = text.split('#').next().unwrap_or_default();
        let breaks = ['\t', '\n', '\r'];
        let end = text.find('?').unwrap_or(text.len());
        let Some((scheme, rest)) = text[..end].split_once(':') else {
            return Corner::None;
        };
        let scheme = scheme.replace(breaks, "").to_ascii_lowercase();
        let special = matches!(&*scheme, "http" | "https" | "ws" | "wss" | "ftp" | "file");
        if special && scheme != "file" && !has_drive_letter(rest) {
            return Corner::None;
        }
        let rest = rest.replace(breaks, "");
        let is_slash = |c: char| c == '/' || special && c == '\\';
        let split = |after: &str| {
            let end = after.find(is_slash).unwrap_or(after.len());
            (Some(after[..end].to_owned()), after[end..].to_owned())
        };
        let slashes = rest.chars().take_while(|c| is_slash(*c)).count();
        let (authority, path) = match (&*scheme, slashes) {
            ("file", 0) => (None, format!("/{rest}")),
            ("file", 1) => (None, rest),
            ("file", _) => match split(&rest[2..]) {
                (Some(drive), _) if is_drive_letter(&drive) => (None, format!("/{}", &rest[2..])),
                split => split,
            },
            _ if special => split(rest.trim_start_matches(is_slash)),
            (_, 0) => {
                return match rest.strip_suffix(' ') {
                    Some(rest) => Corner::Space(format!("{scheme}:{rest}%20{}#", &text[end..])),
                    None => Corner::None,
                };
            }
            (_, 1) => (None, rest),
            _ => split(&rest[2..]),
        };
        Corner::Path(Self {
            scheme,
            special,
            authority,
            path,
            query: text[end..].to_owned(),
        })
    }

    fn normal(&self) -> Option<String> {
        let is_file = self.scheme == "file";
        let authority = match &self.authority {
            Some(authority) => {
                // After the user's name and password.
                let host = authority.rsplit('@').next().unwrap_or_default();
                let no_host = host.is_empty() && authority.contains('@');
                if !is_file && no_host || !self.special && host.contains('\\') {
                    return None;
                }
                format!("//{authority}")
            }
            None if is_file => "//".to_owned(),
            None => String::new(),
        };
        let path = self.path(is_file);
        // The crate does everything but the path. A fragment keeps it from trimming a space before
        // it.
        let whole = Url::parse(&format!("{}:{authority}/{}#", self.scheme, self.query)).ok()?;
        let mut normal = whole[..Position::BeforePath].to_owned();
        if !whole.has_host() && !is_file && self.authority.is_none() && path.starts_with("//") {
            normal.push_str("/.");
        }
        normal.push_str(&path);
        normal.push_str(&whole[Position::AfterPath..Position::AfterQuery]);
        Some(normal)
    }

    /// The path, without dots.
    fn path(&self, is_file: bool) -> String {
        if self.path.is_empty() && !self.special {
            return String::new();
        }
        let mut path: Vec<String> = Vec::new();
        let is_slash = |c: char| c == '/' || self.special && c == '\\';
        let mut segments = self.path.split(is_slash).skip(1).peekable();
        if segments.peek().is_none() {
            path.push(String::new());
        }
        while let Some(segment) = segments.next() {
            let is_last = segments.peek().is_none();
            let dots = segment.replace("%2e", ".").replace("%2E", ".");
            match &*dots {
                ".." => {
                    let is_drive = is_file && path.len() == 1 && is_drive_letter(&path[0]);
                    if !is_drive {
                        path.pop();
                    }
                }
                "." => {}
                _ if is_file && path.is_empty() && is_drive_letter(segment) => {
                    path.push(segment.replace('|', ":"));
                    continue;
                }
                _ => {
                    path.push(encoded(segment));
                    continue;
                }
            }
            if is_last {
                path.push(String::new());
            }
        }
        path.iter().flat_map(|segment| ["/", segment]).collect()
    }
}

/// A letter, then a colon or its substitute in old file URLs.
fn is_drive_letter(segment: &str) -> bool {
    matches!(segment.as_bytes(), [letter, b':' | b'|'] if letter.is_ascii_alphabetic())
}

fn has_drive_letter(rest: &str) -> bool {
    let tabs = rest.contains(['\t', '\n', '\r']);
    rest.contains(['|', ':']) && (tabs || rest.split(['/', '\\']).any(is_drive_letter))
}

/// The segment with bytes that a path can't contain percent-encoded.
fn encoded(segment: &str) -> String {
    let mut out = String::with_capacity(segment.len());
    for byte in segment.bytes() {
        match byte {
            b'"' | b'<' | b'>' | b'`' | b'{' | b'}' | b'#' | b'?' | ..=b' ' | 0x7F.. => {
                // Writing to a String can't fail.
                let _ = write!(out, "%{byte:02X}");
            }
            _ => out.push(char::from(byte)),
        }
    }
    out
}
