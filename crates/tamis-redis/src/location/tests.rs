//! Locations in every form, and wrong ones.

use super::*;

fn shown(text: &str) -> String {
    text.parse::<Location>().unwrap().to_string()
}

#[test]
fn all_forms_are_understood() {
    for (text, expected) in [
        ("redis://host/seen", "redis://host:6379/seen"),
        ("redis://host:1/3/seen", "redis://host:1/3/seen"),
        ("redis://host/seen/urls", "redis://host:6379/seen/urls"),
        ("redis://host/0/7", "redis://host:6379/0/7"),
        ("redis://host/0/7/x", "redis://host:6379/0/7/x"),
        ("redis://host/7up", "redis://host:6379/7up"),
        ("redis+cluster://a:1/7", "redis+cluster://a:1/7"),
        ("redis://:pw@host/7/8", "redis://:***@host:6379/7/8"),
        ("redis://u:p%2Fw@h/x", "redis://u:***@h:6379/x"),
        ("rediss://host/seen?tls=insecure", "rediss://host:6379/seen"),
        (
            "redis+cluster://a:1,b:2/seen",
            "redis+cluster://a:1,b:2/seen",
        ),
        (
            "rediss+cluster://u:p@a:1,b:2/3/x",
            "rediss+cluster://u:***@a:1,b:2/3/x",
        ),
        ("redis://h/a?b?protocol=resp3", "redis://h:6379/a?b"),
        ("redis://[::1]:7/x", "redis://[::1]:7/x"),
        ("rediss://[fe80::2]/x", "rediss://[fe80::2]:6379/x"),
        (
            "redis+cluster://[::1]:1,b:2/x",
            "redis+cluster://[::1]:1,b:2/x",
        ),
        (
            "redis+sentinel://:p@a:1,b:2/main/3/x",
            "redis+sentinel://:***@a:1,b:2/main/3/x",
        ),
        (
            "redis+unix:///run/redis.sock?name=seen%2Furls&db=2&user=u&pass=p",
            "redis+unix:///run/redis.sock?name=seen/urls&db=2&user=u",
        ),
    ] {
        assert_eq!(shown(text), expected);
    }
    let at: Location = "redis://u:p%2Fw@h/x".parse().unwrap();
    assert_eq!(at.nodes()[0].redis_settings().password(), Some("p/w"));
    let at: Location = "rediss+cluster://u:p@a:1,b:2/3/x".parse().unwrap();
    assert_eq!(
        (at.name(), at.nodes().len(), at.is_cluster()),
        ("3/x", 2, true)
    );
    assert_eq!(at.nodes()[1].redis_settings().username(), Some("u"));
    let at: Location = "redis+sentinel://a:1/main/x".parse().unwrap();
    assert_eq!((at.service(), at.name()), (Some("main"), "x"));
    let at: Location = "redis://h/x?protocol=resp3".parse().unwrap();
    let protocol = at.nodes()[0].redis_settings().protocol();
    assert_eq!(protocol, redis::ProtocolVersion::RESP3);
}

/// Locations and server lists agree on the meaning of a number.
#[test]
fn a_number_is_the_database() {
    for (text, way_out) in [
        ("redis://host/3", "redis://HOST/3/NAME"),
        ("redis://host/3", "redis://HOST/0/3"),
        ("redis://host/3/", "redis://HOST/3/NAME"),
        ("redis://host", "redis://HOST/NAME"),
        ("redis://host/", "redis://HOST/NAME"),
        (
            "redis+sentinel://a:1/main/3",
            "redis+sentinel://HOST:PORT/SERVICE/3/NAME",
        ),
        (
            "redis+sentinel://a:1/seen",
            "redis+sentinel://HOST:PORT/SERVICE/NAME",
        ),
        (
            "redis+sentinel://a:1",
            "redis+sentinel://HOST:PORT/SERVICE/NAME",
        ),
        ("redis+cluster://a:1/", "redis+cluster://HOST:PORT,…/NAME"),
    ] {
        let error = text.parse::<Location>().unwrap_err().to_string();
        assert!(error.contains(way_out), "{text}: {error}");
    }
    let at: Location = "redis://host/3/seen".parse().unwrap();
    let servers: Servers = "redis://host/3".parse().unwrap();
    assert_eq!(Servers::from(&at).to_string(), servers.to_string());
    assert_eq!(at.nodes()[0].redis_settings().db(), 3);
}

#[test]
fn servers_have_no_name() {
    for (text, expected) in [
        ("redis://host", "redis://host:6379"),
        ("redis://host/", "redis://host:6379"),
        ("redis://:pw@host/3", "redis://:***@host:6379/3"),
        ("redis://host/3/", "redis://host:6379/3"),
        ("redis+cluster://a:1,b:2", "redis+cluster://a:1,b:2"),
        ("redis+sentinel://a:1/main/3", "redis+sentinel://a:1/main/3"),
        ("redis+unix:///s.sock?db=3", "redis+unix:///s.sock?db=3"),
    ] {
        let servers: Servers = text.parse().unwrap();
        assert_eq!(servers.to_string(), expected);
        assert!(servers.location().name().is_empty());
    }
    for text in [
        "redis://host/seen",
        "redis://host/3/seen",
        "redis+cluster://a:1/3",
        "redis+sentinel://a:1",
        "redis+unix:///s.sock?name=seen",
    ] {
        assert!(text.parse::<Servers>().is_err(), "{text}");
    }
    let at: Location = "redis://:pw@host/3/seen".parse().unwrap();
    assert_eq!(Servers::from(&at).to_string(), "redis://:***@host:6379/3");
}

#[test]
fn what_is_wrong_is_said_without_the_password() {
    for text in [
        "seen.tamis",
        "redis://host",
        "redis://u:secret@host/",
        "redis://u:secret@host/2/",
        "redis://u:secret@a:1,b:2/name",
        "redis://u:secret@host/{x}",
        "redis://u:secret@host:port/x",
        "redis://u:secret@::1:6379/x",
        "redis+cluster://u:secret@a:1,::1/x",
        "redis+cluster://u:secret@/x",
        "redis://u:secret@host/x?protocol=resp4",
        "redis+sentinel://u:secret@a:1/main",
        "redis+sentinel://u:secret@a:1//x",
        "redis+unix:///run/redis.sock?pass=secret&db=1",
        "redis+unix:///run/redis.sock?db=x&pass=secret&name=y",
        "redis+unix:/run/redis.sock?name=y&pass=secret",
        "redis+unix:///run/redis.sock?name=y&password=secret",
        "redis:/:secret@host/0/x",
        "redis//:secret@host/0/x",
        "redis://:secret/host/x",
        "rediss://u:secret@host/x#insecure",
        "redis://host/0/x?password=secret",
        "redis://host/0/x?protocol=resp3&pass=secret",
        "redis://host/0/x?a?pass=secret?protocol=resp3",
    ] {
        let error = text.parse::<Location>().unwrap_err().to_string();
        assert!(!error.contains("secret"), "{error}");
        assert!(error.contains("expected"), "{error}");
    }
}
