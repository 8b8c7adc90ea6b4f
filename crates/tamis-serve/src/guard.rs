//! Access control: the service's host names, the sites that may talk to it, and the tokens for writing and reading.

use crate::log::log;
use crate::media::single;
use crate::problem::Problem;
use anyhow::{Context as _, Result, bail};
use hyper::header::{self, HeaderMap, HeaderName};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use std::collections::BTreeSet;
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::path::Path;
use tamis::internals::file::{mode_for_everyone, read_small};
use tamis::{
    SecretKey,
    internals::file::{Existing, Readers, Replacement},
};

/// The shortest token.
const SHORTEST_TOKEN: usize = 16;
/// The most bytes in a token file.
const LONGEST_TOKEN: u64 = 4096;
/// Tokens with fewer characters, or fewer distinct ones, may be guessable words.
const STRONG_TOKEN: usize = 32;
const STRONG_CHARACTERS: usize = 8;

pub(crate) struct Guard {
    /// Names besides addresses and `localhost`.
    hosts: Vec<String>,
    /// `None` if nobody may write.
    writing: Option<Token>,
    /// `None` if everybody may read.
    reading: Option<Token>,
}

impl Guard {
    pub(crate) fn new(hosts: Vec<String>, writing: Option<Token>, reading: Option<Token>) -> Self {
        Self {
            hosts,
            writing,
            reading,
        }
    }

    /// Checks a request by its head.
    pub(crate) fn check(&self, head: &Parts) -> Result<(), Problem> {
        let host = self.check_host(head)?;
        check_origin(head, host)?;
        check_expectation(&head.headers)?;
        check_transfer(&head.headers)
    }

    /// An attacker's page can make a name of theirs resolve to this address (DNS rebinding), but its requests then
    /// still carry that name.
    fn check_host<'h>(&self, head: &'h Parts) -> Result<&'h str, Problem> {
        let named = single(&head.headers, &header::HOST)?;
        let named = named.ok_or_else(|| Problem::bad_request("Host: expected one, got none"))?;
        let of_target = head.uri.authority().map(|authority| authority.as_str());
        for host in [Some(named), of_target].into_iter().flatten() {
            if !self.is_called(host) {
                return Err(Problem::new(
                    StatusCode::FORBIDDEN,
                    format!("Host: this service is not called {host:?} (--host allows a name)"),
                ));
            }
        }
        Ok(named)
    }

    fn is_called(&self, host: &str) -> bool {
        let name = without_port(host);
        let address = name.strip_prefix('[').and_then(|n| n.strip_suffix(']'));
        // Nobody can redirect an address.
        name.eq_ignore_ascii_case("localhost")
            || address.unwrap_or(name).parse::<IpAddr>().is_ok()
            || self
                .hosts
                .iter()
                .any(|known| known.eq_ignore_ascii_case(name))
    }

    /// Refuses a request that would change something, unless it has the token.
    pub(crate) fn check_token(&self, headers: &HeaderMap) -> Result<(), Problem> {
        let Some(token) = &self.writing else {
            return Err(Problem::new(
                StatusCode::FORBIDDEN,
                "the service was started without --write: nothing can be added",
            ));
        };
        demand(headers, &[token], "--token-file")
    }

    /// Refuses a request that would read something, if a token is required and missing.
    pub(crate) fn check_reader(&self, headers: &HeaderMap) -> Result<(), Problem> {
        match &self.reading {
            None => Ok(()),
            Some(_) => demand(headers, &self.tokens(), "--read-token-file"),
        }
    }

    /// Whether a request has any of the tokens, and so may see details.
    pub(crate) fn is_known(&self, headers: &HeaderMap) -> bool {
        demand(headers, &self.tokens(), "").is_ok()
    }

    fn tokens(&self) -> Vec<&Token> {
        self.writing.iter().chain(&self.reading).collect()
    }
}

/// Refuses a request without one of these tokens.
fn demand(headers: &HeaderMap, tokens: &[&Token], of: &str) -> Result<(), Problem> {
    let given = single(headers, &header::AUTHORIZATION)?;
    let given = given.and_then(|given| {
        let (scheme, given) = given.split_once(' ')?;
        scheme.eq_ignore_ascii_case("Bearer").then(|| given.trim())
    });
    let text = match given {
        // All are compared, so that the time reveals nothing.
        Some(given) if tokens.iter().filter(|token| token.is(given)).count() > 0 => return Ok(()),
        Some(_) => format!("Authorization: not the token of {of}"),
        None => format!("Authorization: expected \"Bearer TOKEN\", the token of {of}"),
    };
    Err(Problem::new(StatusCode::UNAUTHORIZED, text))
}

/// Pages of other sites may not talk to the service, even if they could not see the answer. Programs other than
/// browsers don't send such headers.
fn check_origin(head: &Parts, host: &str) -> Result<(), Problem> {
    let refuse = |what: &str| {
        Err(Problem::new(
            StatusCode::FORBIDDEN,
            format!("{what}: pages of other sites may not use this service"),
        ))
    };
    if let Some(origin) = single(&head.headers, &header::ORIGIN)? {
        let theirs = origin.split_once("://").map(|(_, theirs)| theirs);
        if !theirs.is_some_and(|theirs| is_same_authority(theirs, host)) {
            return refuse("Origin");
        }
    }
    // A link to the page is harmless; any other path could be loaded as an image.
    let is_link = matches!(head.method, Method::GET | Method::HEAD) && head.uri.path() == "/";
    let site = single(&head.headers, &HeaderName::from_static("sec-fetch-site"))?;
    match site {
        Some("cross-site" | "same-site") if !is_link => refuse("Sec-Fetch-Site"),
        _ => Ok(()),
    }
}

/// Only one expectation is defined.
fn check_expectation(headers: &HeaderMap) -> Result<(), Problem> {
    match single(headers, &header::EXPECT)? {
        None => Ok(()),
        Some(expected) if expected.eq_ignore_ascii_case("100-continue") => Ok(()),
        Some(other) => Err(Problem::new(
            StatusCode::EXPECTATION_FAILED,
            format!("Expect: expected 100-continue, got {other}"),
        )),
    }
}

/// A compressed transfer (`gzip, chunked`) would be taken for keys.
fn check_transfer(headers: &HeaderMap) -> Result<(), Problem> {
    match single(headers, &header::TRANSFER_ENCODING)? {
        None => Ok(()),
        Some(coding) if coding.trim().eq_ignore_ascii_case("chunked") => Ok(()),
        Some(other) => Err(Problem::new(
            StatusCode::NOT_IMPLEMENTED,
            format!("Transfer-Encoding: expected chunked, got {other}"),
        )),
    }
}

/// Whether both are the same site, with or without the default port.
fn is_same_authority(a: &str, b: &str) -> bool {
    let usual = |authority: &str| {
        let authority = authority.to_ascii_lowercase();
        let plain = authority.strip_suffix(":80");
        let plain = plain.or_else(|| authority.strip_suffix(":443"));
        plain.unwrap_or(&authority).to_owned()
    };
    usual(a) == usual(b)
}

fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) && !name.is_empty() => {
            // `::1` without brackets isn't a URL's host, but an address.
            if name.contains(':') && !name.ends_with(']') {
                host
            } else {
                name
            }
        }
        _ => host,
    }
}

/// The secret of clients that may write or read.
pub(crate) struct Token(String);

impl Token {
    /// Reads a token's file, or creates one.
    pub(crate) fn load_or_create(path: &Path) -> Result<Self> {
        let reading = || format!("reading the token in {}", path.display());
        match read_small(path, LONGEST_TOKEN) {
            Ok(text) => {
                let text = String::from_utf8_lossy(&text);
                let token = text.trim();
                let is_sendable = token.bytes().all(|b| b.is_ascii_graphic());
                if token.len() < SHORTEST_TOKEN || !is_sendable {
                    bail!(
                        "{}: expected a token of at least {SHORTEST_TOKEN} letters and digits\n\
                         hint: name a file that does not exist, and it is made",
                        path.display()
                    );
                }
                warn_of(path, token);
                Ok(Self(token.into()))
            }
            Err(tamis::Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                let random = SecretKey::random()?;
                let token: String = random.as_bytes().map(|b| format!("{b:02x}")).concat();
                let mut file = Replacement::begin(path, Existing::Keep)?.readers(Readers::Owner);
                writeln!(file.file(), "{token}").with_context(reading)?;
                file.place()?;
                log(format_args!("{}: token created", path.display()));
                Ok(Self(token))
            }
            Err(error) => Err(error).with_context(reading),
        }
    }

    /// Takes the same time for all texts of the same length.
    fn is(&self, given: &str) -> bool {
        let (ours, given) = (self.0.as_bytes(), given.as_bytes());
        let differences = ours.iter().zip(given).fold(0, |all, (a, b)| all | (a ^ b));
        std::hint::black_box(differences) == 0 && ours.len() == given.len()
    }
}

/// Warns about a weak token, and about a file that others can read.
fn warn_of(path: &Path, token: &str) {
    let different = token.bytes().collect::<BTreeSet<u8>>().len();
    if token.len() < STRONG_TOKEN || different < STRONG_CHARACTERS {
        log(format_args!(
            "warning: {}: the token may be guessed: it has {} characters, {different} different \
             ones\nhint: name a file that does not exist, and a random one is made",
            path.display(),
            token.len()
        ));
    }
    warn_if_public(path);
}

/// Warns about a secret that others can read.
pub(crate) fn warn_if_public(path: &Path) {
    if let Some(mode) = mode_for_everyone(path) {
        let path = path.display();
        log(format_args!(
            "warning: {path}: every user of this machine can read or change this secret (mode \
             {mode:03o})\nhint: chmod 600 {path}"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyper::Request;

    fn guard() -> Guard {
        let token = Token("0123456789abcdef".into());
        Guard::new(vec!["Tamis.example".into()], Some(token), None)
    }

    /// The status of a request with these headers, 200 if it may pass.
    fn status(line: &str, headers: &[(&str, &str)]) -> u16 {
        let (method, target) = line.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(target);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let (head, ()) = request.body(()).unwrap().into_parts();
        guard()
            .check(&head)
            .map_or_else(|problem| problem.status.as_u16(), |()| 200)
    }

    #[test]
    fn only_known_names_are_answered_to() {
        for host in [
            "127.0.0.1:7654",
            "127.0.0.1",
            "localhost",
            "LOCALHOST:1",
            "[::1]:7654",
            "[::1]",
            "192.168.1.7:80",
            "tamis.example",
            "TAMIS.EXAMPLE:443",
        ] {
            assert_eq!(status("GET /", &[("host", host)]), 200, "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example",
            "tamis.example.evil.example",
            "localhost.evil.example:7654",
            "evil.example:7654@127.0.0.1",
            "127.0.0.1:7654@evil.example",
            "",
            "localhost.",
            ":7654",
        ] {
            assert_eq!(status("GET /", &[("host", host)]), 403, "{host}");
        }
        assert_eq!(status("GET /", &[]), 400);
        assert_eq!(
            status("GET /", &[("host", "localhost"), ("host", "evil")]),
            400
        );
        // For some servers, a host in the target takes precedence.
        let good = [("host", "localhost")];
        assert_eq!(status("GET http://evil.example/", &good), 403);
        assert_eq!(status("GET http://localhost/", &good), 200);
    }

    #[test]
    fn only_its_own_pages_talk_to_it() {
        let check = "POST /v1/filters/a/check";
        let with = |origin| status(check, &[("host", "localhost:7654"), ("origin", origin)]);
        assert_eq!(with("http://localhost:7654"), 200);
        assert_eq!(with("https://localhost:7654"), 200);
        for origin in [
            "null",
            "http://evil.example",
            "http://localhost",
            "http://localhost:1",
            "http://127.0.0.1:7654",
            "http://localhost:7654.evil.example",
            "http://evil.example/http://localhost:7654",
            "",
        ] {
            assert_eq!(with(origin), 403, "{origin}");
        }
        let usual_port = [
            ("host", "tamis.example"),
            ("origin", "https://tamis.example:443"),
        ];
        assert_eq!(status(check, &usual_port), 200);
        let site = |site| status(check, &[("host", "localhost"), ("sec-fetch-site", site)]);
        assert_eq!(site("same-origin"), 200);
        assert_eq!(site("none"), 200);
        assert_eq!(site("cross-site"), 403);
        assert_eq!(site("same-site"), 403);
        // A link to the page from another site is harmless, but an image whose URL causes work isn't.
        let link = [("host", "localhost"), ("sec-fetch-site", "cross-site")];
        assert_eq!(status("GET /", &link), 200);
        assert_eq!(status("GET /?keys=1M", &link), 200);
        for other in [
            "/v1/plan?keys=1M",
            "/v1/filters",
            "/metrics",
            "/page/app.js",
            "//",
        ] {
            assert_eq!(status(&format!("GET {other}"), &link), 403, "{other}");
            assert_eq!(status(&format!("HEAD {other}"), &link), 403, "{other}");
        }
    }

    #[test]
    fn nothing_but_a_hundred_is_expected() {
        let with = |expect| status("POST /", &[("host", "localhost"), ("expect", expect)]);
        assert_eq!(with("100-continue"), 200);
        assert_eq!(with("100-Continue"), 200);
        for expect in ["", "200-ok", "100-continue, x", "x=100-continue"] {
            assert_eq!(with(expect), 417, "{expect}");
        }
    }

    #[test]
    fn bodies_are_chunked_at_most() {
        let with = |coding| {
            status(
                "POST /",
                &[("host", "localhost"), ("transfer-encoding", coding)],
            )
        };
        assert_eq!(with("Chunked"), 200);
        for coding in ["gzip, chunked", "gzip,chunked", "identity", ""] {
            assert_eq!(with(coding), 501, "{coding}");
        }
    }

    #[test]
    fn only_the_token_opens_what_writes() {
        let with = |given: &str| {
            let mut headers = HeaderMap::new();
            headers.append(header::AUTHORIZATION, given.parse().unwrap());
            guard().check_token(&headers).is_ok()
        };
        assert!(with("Bearer 0123456789abcdef"));
        assert!(with("bearer  0123456789abcdef"));
        for given in [
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer ",
            "Bearer",
            "0123456789abcdef",
            "Basic 0123456789abcdef",
            "",
        ] {
            assert!(!with(given), "{given}");
        }
        assert!(guard().check_token(&HeaderMap::new()).is_err());
        let nobody = Guard::new(Vec::new(), None, None);
        assert!(nobody.check_token(&HeaderMap::new()).is_err());
        assert!(nobody.check_reader(&HeaderMap::new()).is_ok());
        assert!(!nobody.is_known(&HeaderMap::new()));
    }

    #[test]
    fn readers_need_a_token_where_there_is_one() {
        let token = |text: &str| Some(Token(text.into()));
        let guard = Guard::new(
            Vec::new(),
            token("writing-writing-"),
            token("reading-reading-"),
        );
        let with = |given: &str| {
            let mut headers = HeaderMap::new();
            headers.append(header::AUTHORIZATION, given.parse().unwrap());
            let (reads, writes) = (guard.check_reader(&headers), guard.check_token(&headers));
            assert_eq!(guard.is_known(&headers), reads.is_ok(), "{given}");
            (reads.is_ok(), writes.is_ok())
        };
        assert_eq!(with("Bearer reading-reading-"), (true, false));
        assert_eq!(with("Bearer writing-writing-"), (true, true));
        assert_eq!(with("Bearer others-others-on"), (false, false));
        assert!(guard.check_reader(&HeaderMap::new()).is_err());
    }
}
