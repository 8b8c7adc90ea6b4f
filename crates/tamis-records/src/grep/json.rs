//! Lines as JSON messages, and the statistics of a search.

use super::found::Found;
use super::printer::Line;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::io::{self, Write};
use std::path::Path;
use std::time::Duration;

/// Prints the messages of one file.
pub(super) struct Messages {
    /// The path as text or bytes.
    path: Vec<u8>,
}

impl Messages {
    pub(super) fn new(path: &Path) -> Self {
        let mut data = Vec::new();
        text_or_bytes(&mut data, path.as_os_str().as_encoded_bytes());
        Self { path: data }
    }

    pub(super) fn begin(&self, out: &mut Vec<u8>) {
        self.open(out, "begin");
        out.extend_from_slice(b"}}\n");
    }

    pub(super) fn line(&self, out: &mut Vec<u8>, line: &Line) {
        self.open(out, if line.context { "context" } else { "match" });
        out.extend_from_slice(b",\"lines\":");
        text_or_bytes(out, line.bytes);
        match line.number {
            Some(number) => write(out, format_args!(",\"line_number\":{number}")),
            None => out.extend_from_slice(b",\"line_number\":null"),
        }
        write(
            out,
            format_args!(",\"absolute_offset\":{},\"submatches\":[", line.offset),
        );
        for (index, found) in line.matches.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.extend_from_slice(b"{\"match\":");
            text_or_bytes(out, &line.bytes[*found]);
            write(
                out,
                format_args!(",\"start\":{},\"end\":{}}}", found.start(), found.end()),
            );
        }
        out.extend_from_slice(b"]}}\n");
    }

    pub(super) fn end(&self, out: &mut Vec<u8>, found: &Found) {
        self.open(out, "end");
        let elapsed = found.elapsed;
        write(
            out,
            format_args!(
                ",\"binary_offset\":null,\"stats\":{{\"elapsed\":{{\"secs\":{},\"nanos\":{},\"human\":\"{}\"}},\
                 \"searches\":{},\"searches_with_match\":{},\"bytes_searched\":{},\"bytes_printed\":{},\
                 \"matched_lines\":{},\"matches\":{}}}}}}}\n",
                elapsed.as_secs(),
                elapsed.subsec_nanos(),
                human(elapsed),
                found.files,
                found.files_with_match,
                found.bytes_searched,
                found.bytes_printed,
                found.matched_lines,
                found.matches,
            ),
        );
    }

    fn open(&self, out: &mut Vec<u8>, kind: &str) {
        write(
            out,
            format_args!("{{\"type\":\"{kind}\",\"data\":{{\"path\":"),
        );
        out.extend_from_slice(&self.path);
    }
}

/// Prints the last message of a search: the total counts, and the time since
/// the program began.
pub fn write_summary(out: &mut dyn Write, total: &Found, elapsed: Duration) -> io::Result<()> {
    let time = |time: Duration| json!({"secs": time.as_secs(), "nanos": time.subsec_nanos(), "human": human(time)});
    let summary = json!({
        "type": "summary",
        "data": {
            "elapsed_total": time(elapsed),
            "stats": {
                "elapsed": time(total.elapsed),
                "searches": total.files,
                "searches_with_match": total.files_with_match,
                "bytes_searched": total.bytes_searched,
                "bytes_printed": total.bytes_printed,
                "matched_lines": total.matched_lines,
                "matches": total.matches,
            },
        },
    });
    writeln!(out, "{summary}")
}

fn human(elapsed: Duration) -> String {
    format!("{:.6}s", elapsed.as_secs_f64())
}

/// Bytes as JSON: a string if they are UTF-8, else ripgrep's notation for such
/// bytes.
///
/// ```
/// use tamis_records::grep::json_text;
///
/// assert_eq!(json_text("naïve".as_bytes()).to_string(), "\"naïve\"");
/// assert_eq!(json_text(b"na\xEFve").to_string(), r#"{"bytes":"bmHvdmU="}"#);
/// ```
pub fn json_text(bytes: &[u8]) -> Value {
    match str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => json!({ "bytes": STANDARD.encode(bytes) }),
    }
}

/// Valid UTF-8 as it is, other bytes as base64.
fn text_or_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match str::from_utf8(bytes) {
        Ok(text) => {
            out.extend_from_slice(b"{\"text\":");
            serde_json::to_writer(&mut *out, text).expect("text can be written to memory");
            out.push(b'}');
        }
        Err(_) => write(
            out,
            format_args!("{{\"bytes\":\"{}\"}}", STANDARD.encode(bytes)),
        ),
    }
}

fn write(out: &mut Vec<u8>, text: std::fmt::Arguments) {
    out.write_fmt(text).expect("text can be written to memory");
}
