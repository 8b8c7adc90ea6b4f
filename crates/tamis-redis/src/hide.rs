//! Hides passwords in locations as typed, correct or not.

/// The parameters of locations that may be shown.
const HARMLESS: [&str; 13] = [
    "name", "db", "user", "protocol", "timeout", "retry", "replicas", "max-lag", "write", "ca",
    "cert", "key", "tls",
];

/// The text without the passwords of addresses in it, as in `redis://user:password@host`. Recognises addresses of Redis
/// even if the scheme is mistyped. Addresses end at whitespace.
///
/// ```
/// use tamis_redis::hide_passwords;
/// let text = "opening redis:/:secret@example.org/seen: no such file";
/// assert_eq!(hide_passwords(text), "opening redis:/***@example.org/seen: no such file");
/// ```
pub fn hide_passwords(text: &str) -> String {
    let mut hidden = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((at, is_redis)) = behind_scheme(rest) {
        let (before, after) = rest.split_at(at);
        hidden.push_str(before);
        let end = after.find(char::is_whitespace).unwrap_or(after.len());
        let (address, parameters) = match is_redis {
            true => split_parameters(&after[..end]),
            false => (&after[..end], ""),
        };
        hidden.push_str(&without_user(address, parameters));
        hidden.push_str(&without_values(parameters));
        rest = &after[end..];
    }
    hidden + rest
}

/// A text that is meant as one location, without what may be its password.
pub(crate) fn hide_password(text: &str) -> String {
    let (scheme, rest) = text.split_at(behind_scheme(text).map_or(0, |(at, _)| at));
    let (address, parameters) = split_parameters(rest);
    // A password without a host behind it stands where a port would be.
    let (servers, path) = address.split_at(address.find('/').unwrap_or(address.len()));
    let address = match servers.split_once(':') {
        Some((host, port)) if !address.contains('@') && !is_port(host, port) => {
            format!("{host}:***{path}")
        }
        _ => without_user(address, parameters),
    };
    format!("{scheme}{address}{}", without_values(parameters))
}

/// Whether a text that begins like this is meant as a location, possibly with a mistyped scheme, rather than a file
/// name.
pub(crate) fn looks_like_location(text: &str) -> bool {
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-:/".contains(c);
    behind_scheme(text).is_some_and(|(at, _)| text[..at].chars().all(is_scheme))
}

/// Where the parameters of a location begin, if it has any: at the first `?` that is followed by a word and `=`. A name
/// may contain any other `?`.
pub(crate) fn split_parameters(text: &str) -> (&str, &str) {
    let begins = |at: &usize| {
        let word = text[at + 1..]
            .trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        word.starts_with('=') && !text[at + 1..].starts_with('=')
    };
    let at = text.match_indices('?').map(|(at, _)| at).find(begins);
    text.split_at(at.unwrap_or(text.len()))
}

/// The position behind the first scheme, and whether it is meant as Redis's: `redis://`, or a mistyped one like
/// `redis:/` or `redis//`.
fn behind_scheme(text: &str) -> Option<(usize, bool)> {
    const REDIS: &str = "redis";
    let lower = text.to_ascii_lowercase();
    let redis = lower.match_indices(REDIS).find_map(|(at, _)| {
        let rest =
            lower[at..].trim_start_matches(|c: char| c.is_ascii_alphanumeric() || "+-".contains(c));
        let behind = rest.trim_start_matches(':').trim_start_matches(['/', '\\']);
        let is_scheme = rest.starts_with(':') || rest.starts_with("//");
        (is_scheme && behind.starts_with(|c: char| !c.is_whitespace()))
            .then_some((at, text.len() - behind.len()))
    });
    match (redis, text.find("://")) {
        (Some((redis, behind)), other) if other.is_none_or(|other| redis < other) => {
            Some((behind, true))
        }
        (_, other) => other.map(|other| (other + "://".len(), false)),
    }
}

/// Hides the user and password. A password that isn't encoded properly may contain anything.
fn without_user(address: &str, parameters: &str) -> String {
    match address.rfind('@') {
        Some(at) if at > 0 => format!("***{}", &address[at..]),
        None if address.contains(':') && parameters.contains('@') => "***".to_owned(),
        _ => address.to_owned(),
    }
}

fn without_values(parameters: &str) -> String {
    let pieces = parameters
        .split_inclusive('&')
        .map(|piece| match piece.split_once('=') {
            Some((key, _)) if !HARMLESS.contains(&key.trim_start_matches('?')) => {
                let next = if piece.ends_with('&') { "&" } else { "" };
                format!("{key}=***{next}")
            }
            _ => piece.to_owned(),
        });
    pieces.collect()
}

/// Whether this is a port, or part of an IPv6 address.
fn is_port(host: &str, port: &str) -> bool {
    let is_number = port
        .split(',')
        .next()
        .is_some_and(|port| port.bytes().all(|b| b.is_ascii_digit()));
    host.starts_with('[') || port.contains(':') || (is_number && !host.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_form_of_an_address_shows_its_password() {
        for address in [
            "redis://:SECRET@h/0/f",
            "redis://u:SEC@RET@h/0/f",
            "redis://u:SEC/RET@h/0/f",
            "redis://:SECRET?x=y@h/0/f",
            "redis:/:SECRET@h/0/f",
            "redis//:SECRET@h/0/f",
            "redis::SECRET@h/0/f",
            "Redis:\\\\:SECRET@h/f",
            "rediss:/:SECRET@h/0/f",
            "redis+sentinel:/u:SECRET@h:1,i:2/main/f",
            "reids://:SECRET@h/0/f",
            "redis+unix:/s?name=a&pass=SECRET",
            "redis+unix:///s?pass=SEC@RET&name=a",
            "redis://h/0/f?password=SECRET",
            "redis://h/0/f?protocol=resp3&auth=SECRET",
        ] {
            for hidden in [hide_password(address), hide_passwords(address)] {
                assert!(
                    !hidden.contains("SEC") && !hidden.contains("RET"),
                    "{hidden}"
                );
                assert!(hidden.contains("***"), "{hidden}");
            }
            let text = format!("unexpected argument '{address}' found, see a@b.org");
            let hidden = hide_passwords(&text);
            assert!(
                !hidden.contains("SEC") && !hidden.contains("RET"),
                "{hidden}"
            );
            assert!(hidden.ends_with(" found, see a@b.org"), "{hidden}");
        }
        for address in [
            "redis://:SECRET/h/f",
            "redis://u:SECRET/f",
            "redis://:7654/f",
        ] {
            let hidden = hide_password(address);
            assert!(hidden.contains("***") && !hidden.contains("76"), "{hidden}");
            assert!(!hidden.contains("SECRET"), "{hidden}");
        }
    }

    #[test]
    fn other_texts_stay_as_they_are() {
        for text in [
            "",
            "seen.tamis",
            "redis",
            "redis: gone, ask ops@example.org",
            "redis://host:6379/2/seen?x",
            "expected redis://HOST:PORT,…/NAME or redis+unix:///PATH?name=NAME&db=2",
            "redis://[::1]:6379/x: refused",
            "https://example.org/?page=1",
            "a list of redis/keys.txt",
        ] {
            assert_eq!(hide_passwords(text), text);
        }
        for address in [
            "redis://host:6379/2/seen",
            "redis+cluster://a:1,b:2/x",
            "redis://[::1]:7/x",
        ] {
            assert_eq!(hide_password(address), address);
        }
    }

    #[test]
    fn a_mistyped_scheme_is_not_the_name_of_a_file() {
        for text in [
            "redis://h/f",
            "redis:/h/f",
            "redis//h/f",
            "reids://h/f",
            "REDIS:h/f",
        ] {
            assert!(looks_like_location(text), "{text}");
        }
        for text in [
            "seen.tamis",
            "redis/seen.tamis",
            "redis.tamis",
            "redis-1.tamis",
            "my redis://x",
            "./redis:x",
        ] {
            assert!(!looks_like_location(text), "{text}");
        }
    }
}
