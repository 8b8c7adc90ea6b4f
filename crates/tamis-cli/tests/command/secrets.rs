//! Passwords aren't repeated, and secrets aren't exposed without a warning.

use crate::common::Sandbox;
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
        "info redis:/bob:hunter2@host/0/name",
        "info redis//bob:hunter2@host/0/name",
        "info redis://bob:hunter2/host/name",
        "info redis+unix:/s?name=a&pass=hunter2",
        "info redis+unix:///s?name=a&password=hunter2",
        "info redis://127.0.0.1:1/0/name?password=hunter2",
        "dedup redis:/bob:hunter2@host/0/name",
        "dedup list -o redis//bob:hunter2@host/0/name",
        "index redis:/bob:hunter2@host/0/name none",
        "create --capacity 10 redis:/bob:hunter2@host/0/name",
        "list redis:/bob:hunter2@host/0",
        // Nothing listens there.
        "info redis://bob:hunter2@127.0.0.1:1/name?retry=0s",
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}");
        let said = format!("{}{}", ran.err, ran.text());
        assert!(!said.contains("hunter2"), "{line}: {said}");
        assert!(!said.contains("ter2@"), "{line}: {said}");
        assert!(!said.is_empty(), "{line}");
    }
}

/// An ignored parameter could be a password, or a setting that the user relies on.
#[test]
fn unknown_parameters_of_a_location_are_errors() {
    let dir = Sandbox::new();
    for (line, said) in [
        ("info redis://127.0.0.1:1/0/f?timout=5s", "protocol"),
        ("info redis+unix:///none?name=f&timout=5s", "name, db"),
        ("list redis://127.0.0.1:1/0?timout=5s", "protocol"),
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}");
        assert!(
            ran.err.contains(said) && ran.err.contains("parameter"),
            "{}",
            ran.err
        );
    }
}

/// A device would be read until memory is full.
#[cfg(unix)]
#[test]
fn a_secret_is_a_small_file() {
    let dir = Sandbox::new();
    dir.ok("create apart.tamis --capacity 100 --secret-file secret");
    dir.write("large", vec![b'a'; 5_000]);
    for file in ["/dev/zero", "/dev/null", "large", "."] {
        for line in [
            "info apart.tamis",
            "create new.tamis --capacity 100",
            "serve apart.tamis",
        ] {
            let ran = dir.run(&format!("{line} --secret-file {file}"));
            assert_eq!(ran.code, 2, "{line} {file}");
            assert!(ran.err.contains(file), "{line} {file}: {}", ran.err);
        }
        let line = "serve apart.tamis --secret-file secret --listen 127.0.0.1:0";
        for options in [
            format!("--write --token-file {file}"),
            format!("--read-token-file {file}"),
            format!("--tls-cert {file} --tls-key secret"),
            format!("--tls-cert secret --tls-key {file}"),
        ] {
            let ran = dir.run(&format!("{line} {options}"));
            assert_eq!(ran.code, 2, "{options}");
            assert!(!ran.err.contains("listening"), "{options}: {}", ran.err);
        }
        let mut command = dir.command("info redis://127.0.0.1:1/name");
        command.env("TAMIS_REDIS_PASSWORD_FILE", file);
        let said = String::from_utf8(command.output().unwrap().stderr).unwrap();
        assert!(said.contains("TAMIS_REDIS_PASSWORD_FILE"), "{said}");
    }
    assert!(!dir.list().contains(&"new.tamis".to_owned()));
    // A shell may pass it through a pipe.
    let shell = "cat secret | \"$0\" info --secret-file /dev/stdin apart.tamis";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", shell, env!("CARGO_BIN_EXE_tamis")]);
    assert!(
        command
            .current_dir(dir.path(""))
            .output()
            .unwrap()
            .status
            .success()
    );
}

#[cfg(unix)]
#[test]
fn a_key_file_for_everyone_is_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let dir = Sandbox::new();
    dir.ok("create apart.tamis --capacity 100 --secret-file secret");
    dir.write("list", "a\n");
    let lines = [
        "add apart.tamis list --secret-file secret",
        "create other.tamis --capacity 100 --force --secret-file secret",
        "dedup -q --filter seen.tamis list --secret-file secret",
    ];
    for (mode, times) in [(0o600, 0), (0o640, 0), (0o644, 1)] {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(dir.path("secret"), permissions).unwrap();
        for line in lines {
            let ran = dir.ok(line);
            assert_eq!(
                ran.err.matches("every user").count(),
                times,
                "{line}: {}",
                ran.err
            );
        }
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
    dir.ok("create keyed.tamis --capacity 100 --secret");
    dir.ok("create apart.tamis --capacity 100 --secret-file secret");
    dir.ok("create plain.tamis --capacity 100");
    let said = |line: &str| dir.ok(line).err.contains("secret");
    assert!(said("copy keyed.tamis - --as base64"));
    assert!(!said("copy --secret-file secret apart.tamis - --as base64"));
    assert!(!said("copy plain.tamis - --as base64"));
    let text = dir.ok("copy keyed.tamis - --as base64").out;
    assert_eq!(dir.feed("copy - copy.tamis", text).code, 0);
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
    dir.ok("create keyed.tamis --capacity 100 --secret");
    dir.ok("build --secret built.tamis list");
    dir.ok("dedup -q --secret --filter seen.tamis list");
    dir.ok("copy keyed.tamis copy.tamis");
    for name in ["keyed.tamis", "built.tamis", "seen.tamis", "copy.tamis"] {
        assert_eq!(mode(name), 0o600, "{name}");
    }
    // If others may read it, the user has decided so.
    set("keyed.tamis", 0o640);
    dir.ok("add keyed.tamis list");
    assert_eq!(mode("keyed.tamis"), 0o640);
    // The earlier file had no secret.
    dir.ok("create plain.tamis --capacity 100");
    set("plain.tamis", 0o644);
    dir.ok("create plain.tamis --capacity 100 --secret --force");
    assert_eq!(mode("plain.tamis"), 0o600);
    // Without the secret inside, it is like any other file.
    dir.ok("create apart.tamis --capacity 100 --secret-file secret");
    assert_eq!(mode("apart.tamis") & 0o400, 0o400);
    assert_eq!(mode("secret"), 0o600);
}
