//! The same filter in every environment: one node, with a password, as a user,
//! over TLS, in a cluster.

use crate::common::{Certificate, Server};
use crate::*;
use tamis_redis::{Error, aio};

/// All operations work.
fn works(at: &Location, options: &Options) {
    let plan = plan(5_000, 0.001);
    let hasher = Hasher::seeded(7);
    assert!(!RedisFilter::exists(at, options).unwrap());
    assert!(matches!(
        RedisFilter::open(at, options),
        Err(Error::NotFound { .. })
    ));
    let mut created = RedisFilter::create(at, &plan, hasher, options).unwrap();
    assert!(matches!(
        RedisFilter::create(at, &plan, hasher, options),
        Err(Error::Exists { .. })
    ));
    let (old, absent) = (keys(0..5_000), keys(10_000..15_000));
    let mut local = AnyFilter::from_plan(&plan, hasher).unwrap();
    let mut expected = vec![false; old.len()];
    local.insert_many(&old, &mut expected).unwrap();
    assert_eq!(insert(&mut created, &old), expected);
    drop(created);

    let mut opened = RedisFilter::open(at, options).unwrap();
    assert_eq!(opened.shape(), Some(plan.shape()));
    assert_eq!(opened.kind(), Kind::Blocked);
    assert_eq!((opened.capacity(), opened.rate()), (5_000, 0.001));
    assert_eq!(opened.bytes(), plan.bytes());
    assert!(all(&contains(&mut opened, &old)));
    let mut expected = vec![false; absent.len()];
    local.contains_many(&absent, &mut expected);
    assert_eq!(contains(&mut opened, &absent), expected);
    assert_eq!(count(&insert(&mut opened, &old)), 0);
    // One key at a time.
    assert!(opened.insert("one more").unwrap());
    assert!(!opened.insert("one more").unwrap());
    assert!(opened.contains("one more").unwrap());
    local.insert("one more").unwrap();

    opened.verify().unwrap();
    assert_eq!(body(&opened.download().unwrap()), body(&local));
    let keys = opened.keys().unwrap().get();
    assert!((4_900..5_100).contains(&keys), "{keys} keys estimated");
    let rate = opened.rate_now().unwrap();
    assert!(rate > 0.0 && rate < 0.0015, "{rate}");
    opened.clear().unwrap();
    assert_eq!(count(&contains(&mut opened, &old)), 0);
    opened.delete().unwrap();
    assert!(!RedisFilter::exists(at, options).unwrap());
}

#[test]
fn on_one_node() {
    works(&at(server(), "on-one-node"), &options());
    assert_eq!(
        server().cli(&["KEYS", "on-one-node*"]),
        "",
        "nothing is left"
    );
}

#[test]
fn in_a_database_of_its_own() {
    let text = format!("redis://{}/3/in-a-database", server().address());
    works(&location(&text), &options());
    let plan = plan(100, 0.01);
    RedisFilter::create(&location(&text), &plan, Hasher::default(), &options()).unwrap();
    assert!(RedisFilter::exists(&location(&text), &options()).unwrap());
    let elsewhere = at(server(), "in-a-database");
    assert!(!RedisFilter::exists(&elsewhere, &options()).unwrap());
}

#[test]
fn with_a_password() {
    let server = Server::start_on("port", &["requirepass sesame%"], &["-a", "sesame%"]);
    works(
        &location(&format!("redis://:sesame%25@{}/seen", server.address())),
        &options(),
    );
    for wrong in ["", ":guess@", "ada:sesame%25@"] {
        let at = location(&format!("redis://{wrong}{}/seen", server.address()));
        let error = RedisFilter::open(&at, &impatient()).err().unwrap();
        let text = error.to_string();
        assert!(matches!(error, Error::Server { .. }), "{error:?}");
        assert!(
            text.contains("assword") || text.contains("NOAUTH"),
            "{text}"
        );
        assert!(
            !text.contains("sesame") && !text.contains("guess"),
            "{text}"
        );
    }
}

/// A user with access to no other keys, and only to the commands that a filter
/// needs.
#[test]
fn as_a_user_with_few_rights() {
    let server = Server::start(&[]);
    let rights = "on >sesame ~seen ~seen:* ~{seen}:* +@read +@write +@connection +@scripting +wait";
    let user = [
        &["ACL", "SETUSER", "ada"],
        &rights.split(' ').collect::<Vec<_>>()[..],
    ]
    .concat();
    server.cli(&user);
    let of = |name: &str| location(&format!("redis://ada:sesame@{}/{name}", server.address()));
    works(&of("seen"), &options());
    let plan = plan(100, 0.01);
    let refused = RedisFilter::create(&of("other"), &plan, Hasher::default(), &options());
    let text = refused.err().unwrap().to_string();
    assert!(
        text.contains("permission") || text.contains("NOPERM"),
        "{text}"
    );
}

#[test]
fn over_tls() {
    let certificate = Certificate::new();
    let mut settings = certificate.settings();
    settings.push("requirepass sesame".into());
    let settings: Vec<_> = settings.iter().map(String::as_str).collect();
    let authority = certificate.authority();
    let credentials = [
        "--tls",
        "--cacert",
        authority.to_str().unwrap(),
        "-a",
        "sesame",
    ];
    let server = Server::start_on("tls-port", &settings, &credentials);
    assert_eq!(server.cli(&["PING"]), "PONG");

    let text = format!("rediss://:sesame@{}/seen", server.address());
    let trusting = options().tls_root(std::fs::read(authority).unwrap());
    works(&location(&text), &trusting);
    works(&location(&text), &options().insecure());
    works(&location(&(text.clone() + "?tls=insecure")), &options());
    // Without the authority, opening fails; and a plain connection fails.
    assert!(RedisFilter::open(&location(&text), &impatient()).is_err());
    let plain = text.replace("rediss:", "redis:");
    assert!(RedisFilter::open(&location(&plain), &impatient()).is_err());
}

/// By default, Redis asks clients for certificates.
#[test]
fn with_a_certificate() {
    let certificate = Certificate::new();
    let settings = certificate.settings();
    let settings = settings.iter().map(String::as_str);
    let settings: Vec<_> = settings
        .filter(|line| *line != "tls-auth-clients no")
        .collect();
    let authority = certificate.authority();
    let (public, private) = certificate.client();
    let text = |path: &std::path::Path| path.to_str().unwrap().to_owned();
    let files = [text(&authority), text(&public), text(&private)];
    let credentials = [
        "--tls", "--cacert", &files[0], "--cert", &files[1], "--key", &files[2],
    ];
    let server = Server::start_on("tls-port", &settings, &credentials);

    let at = location(&format!("rediss://{}/seen", server.address()));
    let read = |path: &str| std::fs::read(path).unwrap();
    let trusting = options().tls_root(read(&files[0]));
    let known = trusting
        .clone()
        .tls_identity(read(&files[1]), read(&files[2]));
    known.check_certificates().unwrap();
    works(&at, &known);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        let plan = plan(100, 0.01);
        let created = aio::RedisFilter::create(&at, &plan, Hasher::default(), &known);
        let mut filter = created.await.unwrap();
        assert!(filter.insert("x").await.unwrap());
    });
    // Without a certificate, opening fails, and isn't retried.
    let error = RedisFilter::open(&at, &trusting).err().unwrap();
    assert!(error.to_string().contains("asks clients for"), "{error}");
    // Another certificate's key; no key; no certificate at all.
    for (certificate, key) in [(1, 1), (2, 2), (0, 2)] {
        let wrong = trusting
            .clone()
            .tls_identity(read(&files[certificate]), read(&files[key]));
        let error = wrong.check_certificates().unwrap_err();
        assert!(matches!(error, Error::Certificates(_)), "{error:?}");
        let error = RedisFilter::open(&at, &wrong).err().unwrap();
        assert!(matches!(error, Error::Server { .. }), "{error:?}");
    }
}

/// A file without an authority must neither accept nor reject all servers
/// silently.
#[test]
fn an_authority_without_certificates() {
    let at = location("rediss://127.0.0.1:1/seen");
    for text in ["", "certificate", "-----BEGIN CERTIFICATE-----\nAAAA\n"] {
        let options = impatient().tls_root(text);
        let error = options.check_certificates().unwrap_err().to_string();
        assert!(error.contains("expected certificates in PEM"), "{error}");
        let error = RedisFilter::open(&at, &options).err().unwrap().to_string();
        assert!(error.contains("expected certificates in PEM"), "{error}");
        assert!(!error.contains("refused"), "{error}");
    }
}

#[test]
fn in_a_cluster() {
    let at = location(&cluster().location("in-a-cluster"));
    works(&at, &options());
    assert!(cluster().keys("in-a-cluster").is_empty(), "nothing is left");
    works(&at, &options().wait_replicas(1, Duration::from_secs(30)));
}

/// A client that treats a cluster's node as a standalone server reports it.
#[test]
fn a_cluster_is_not_one_node() {
    let text = cluster().location("not-one-node");
    let mut created = RedisFilter::create(
        &location(&text),
        &plan(1_000_000, 0.01),
        Hasher::default(),
        &options(),
    )
    .unwrap();
    assert_eq!(count(&insert(&mut created, &keys(0..100))), 100);
    // One of the three masters has the header; the others don't.
    for server in &cluster().servers {
        let opened = RedisFilter::open(&at(server, "not-one-node"), &impatient());
        let Err(error) = opened.and_then(|mut filter| {
            let mut found = [false; 100];
            filter.contains_many(&keys(0..100), &mut found)
        }) else {
            continue; // all hundred keys happened to be here
        };
        assert!(error.to_string().contains("redis+cluster://"), "{error}");
    }
    created.delete().unwrap();
}
