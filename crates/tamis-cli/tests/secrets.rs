//! Passwords are not repeated, and secrets are not spread without a word.

mod common;

use common::Sandbox;
use std::process::Stdio;

#[test]
fn no_message_repeats_a_password() {
    let dir = Sandbox::new();
    dir.write("list", "a\n");
    for line in [
        "check redis://bob:hunter2@host/{name} list",
        "check redis://bob:hunter2@host list",
        "check redis://bob:hunter2@host:port/name list",
        "check redis://bob:hunter2@a,b/name list",
        "check redsi://bob:hunter2@host/name list",
        "check redis://bob:hun/ter2@host:x/name list",
        "check list redis://bob:hunter2@host/name",
        "dedup redis://bob:hunter2@host/name",
        "dedup --filter redis://bob:hunter2@host:port/name list",
        "dedup --filtr redis://bob:hunter2@host/name list",
        "dedup --filter=redis://bob:hunter2@host list",
        "dedup list -o redis://bob:hunter2@host/name",
        "info redis://bob:hunter2@host/name extra",
        "copy list redis://bob:hunter2@host",
        "redis://bob:hunter2@host/name",
        // Nobody is there.
        "info --retry-for 0s redis://bob:hunter2@127.0.0.1:1/name",
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}");
        let said = format!("{}{}", ran.err, ran.text());
        assert!(!said.contains("hunter2"), "{line}: {said}");
        assert!(!said.contains("ter2@"), "{line}: {said}");
        assert!(!said.is_empty(), "{line}");
    }
}

#[test]
fn a_password_file_that_is_missing_is_said() {
    let dir = Sandbox::new();
    let mut command = dir.command("info redis://127.0.0.1:1/name");
    command.env("TAMIS_REDIS_PASSWORD_FILE", dir.path("none"));
    let output = command.stdout(Stdio::null()).output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("TAMIS_REDIS_PASSWORD_FILE"), "{said}");
}

#[test]
fn text_with_the_secret_in_it_is_warned_of() {
    let dir = Sandbox::new();
    dir.ok("create keyed.tamis -n 100 --keyed");
    dir.ok("create apart.tamis -n 100 --key-file secret");
    dir.ok("create plain.tamis -n 100");
    let said = |line: &str| dir.ok(line).err.contains("secret");
    assert!(said("export keyed.tamis"));
    assert!(!said("export --key-file secret apart.tamis"));
    assert!(!said("export plain.tamis"));
    let text = dir.ok("export keyed.tamis").out;
    assert_eq!(dir.feed("import copy.tamis", text).code, 0);
    assert!(dir.list().contains(&"copy.tamis".to_owned()));
    assert_eq!(dir.read("copy.tamis"), dir.read("keyed.tamis"));
}

#[cfg(unix)]
#[test]
fn the_file_of_a_keyed_filter_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Sandbox::new();
    dir.write("list", "a\nb\n");
    let set = |name: &str, mode| {
        let permissions = PermissionsExt::from_mode(mode);
        std::fs::set_permissions(dir.path(name), permissions).unwrap();
    };
    let mode = |name: &str| {
        let metadata = std::fs::metadata(dir.path(name)).unwrap();
        metadata.permissions().mode() & 0o777
    };
    dir.ok("create keyed.tamis -n 100 --keyed");
    dir.ok("build --keyed built.tamis list");
    dir.ok("dedup -q --keyed --filter seen.tamis list");
    dir.ok("copy keyed.tamis copy.tamis");
    for name in ["keyed.tamis", "built.tamis", "seen.tamis", "copy.tamis"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    // Whoever lets others read it has decided.
    set("keyed.tamis", 0o640);
    dir.ok("add keyed.tamis list");
    assert_eq!(mode("keyed.tamis"), 0o640);
    // What was there before was no secret.
    dir.ok("create plain.tamis -n 100");
    set("plain.tamis", 0o644);
    dir.ok("create plain.tamis -n 100 --keyed --force");
    assert_eq!(mode("plain.tamis"), 0o600);
    // Without the secret in it, it is as any file.
    dir.ok("create apart.tamis -n 100 --key-file secret");
    assert_eq!(mode("apart.tamis") & 0o400, 0o400);
    assert_eq!(mode("secret"), 0o600);
}
