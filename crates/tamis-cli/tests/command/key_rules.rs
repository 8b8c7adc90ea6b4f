//! A filter records how its keys are made, so later commands need not repeat it.

use crate::common::Sandbox;

#[test]
fn what_was_built_regardless_of_case_is_asked_so() {
    let dir = Sandbox::new();
    dir.write("list", "Alice@Example.org\nBob\n");
    dir.write("asked", "alice@example.ORG\nbob\neve\n");
    for make in [
        "build -i f.tamis list",
        "build -i --smallest f.tamis list",
        "build -i f.tamis list --allow other",
        "dedup -q -i list --filter f.tamis",
    ] {
        dir.write("other", "EVE\n");
        dir.ok(make);
        assert_eq!(
            dir.ok("check f.tamis asked").text(),
            "alice@example.ORG\nbob\n",
            "{make}"
        );
        assert_eq!(
            dir.ok("check -i f.tamis asked").text(),
            dir.ok("check f.tamis asked").text()
        );
        assert!(dir.ok("info f.tamis").text().contains("case ignored"));
        std::fs::remove_file(dir.path("f.tamis")).unwrap();
    }
}

#[test]
fn every_command_applies_the_rule_of_the_filter() {
    let dir = Sandbox::new();
    dir.write("upper", "KEY\n");
    dir.write("lower", "key\n");
    dir.ok("create f.tamis --capacity 100 -p 1e-9 --kind counting -i");
    dir.ok("add f.tamis upper");
    assert!(dir.ok("add f.tamis lower").err.contains("0 new"));
    assert_eq!(dir.ok("check --tally f.tamis lower").text(), "2\tkey\n");
    assert_eq!(dir.ok("dedup -q --filter f.tamis lower").text(), "");
    assert_eq!(dir.run("check -v f.tamis lower").code, 1);
    dir.ok("add --shared f.tamis upper");
    dir.ok("remove f.tamis lower");
    dir.ok("copy f.tamis g.tamis");
    assert_eq!(dir.ok("check g.tamis lower").text(), "key\n");
    dir.ok("verify f.tamis");
    assert!(
        dir.ok("info --json g.tamis")
            .text()
            .contains("\"ignore_case\": true")
    );
    dir.write("text", dir.ok("copy g.tamis - --as base64").out);
    dir.ok("copy text h.tamis");
    assert_eq!(dir.ok("check h.tamis lower").text(), "key\n");
}

#[test]
fn urls_are_normalised_for_good() {
    let dir = Sandbox::new();
    dir.write("list", "http://Example.org:80/a#top\n");
    dir.write("asked", "http://example.org/a\nhttp://example.org/b\n");
    dir.ok("build --url f.tamis list");
    assert_eq!(
        dir.ok("check f.tamis asked").text(),
        "http://example.org/a\n"
    );
    assert!(dir.ok("info f.tamis").text().contains("URLs normalised"));
}

#[test]
fn a_contradiction_is_an_error_that_says_what_the_filter_has() {
    let dir = Sandbox::new();
    dir.write("list", "KEY\n");
    dir.write("table", "a,b\n1,2\n");
    dir.ok("create exact.tamis --capacity 100 --kind cuckoo");
    dir.ok("add exact.tamis list");
    dir.ok("build -k csv:a,b joined.tamis table");
    for (line, said) in [
        ("check -i exact.tamis list", "exact"),
        ("check --url exact.tamis list", "exact"),
        ("add -i exact.tamis list", "exact"),
        ("remove -i exact.tamis list", "exact"),
        ("check --tally -i exact.tamis list", "exact"),
        ("dedup -i --filter exact.tamis list", "exact"),
        ("check -k csv:a,b exact.tamis table", "exact"),
        ("check joined.tamis list", "2 values joined"),
        ("check -k csv:a joined.tamis table", "2 values joined"),
        ("check -i -k csv:a,b joined.tamis table", "2 values joined"),
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
        assert!(
            ran.err.contains(said) && ran.err.contains("hint"),
            "{line}: {}",
            ran.err
        );
    }
    assert_eq!(
        dir.ok("check -c -k csv:a,b joined.tamis table").text(),
        "1\n"
    );
    // By number, from tabs, by pointer: the same values are the same key.
    dir.write("tabs", "1\t2\n");
    let tabs = dir.ok("check -c -k tsv:1,2 --no-header joined.tamis tabs");
    assert_eq!(tabs.text(), "1\n");
    dir.write("json", "{\"x\":\"1\",\"y\":\"2\"}\n");
    assert_eq!(
        dir.ok("check -c -k jsonl:/x,/y joined.tamis json").text(),
        "1\n"
    );
}

#[test]
fn unlike_rules_are_not_merged() {
    let dir = Sandbox::new();
    dir.ok("create a.tamis --capacity 100 -i");
    dir.ok("create b.tamis --capacity 100");
    dir.ok("create c.tamis --capacity 100 -i");
    let merged = dir.run("merge --union -o m.tamis a.tamis b.tamis");
    assert_eq!(merged.code, 2);
    assert!(
        merged
            .err
            .contains("the rule for keys is case ignored in one and exact"),
        "{}",
        merged.err
    );
    dir.ok("merge --union -o m.tamis a.tamis c.tamis");
    assert!(dir.ok("info m.tamis").text().contains("case ignored"));
}

/// The first keys decide, unless a rule was given.
#[test]
fn an_empty_filter_takes_the_rule_of_its_first_keys() {
    let dir = Sandbox::new();
    dir.write("table", "a,b\n1,2\n");
    dir.write("list", "KEY\n");
    for kind in ["blocked", "growing", "counting", "cuckoo"] {
        dir.ok(&format!(
            "create f.tamis --capacity 100 --kind {kind} --force"
        ));
        dir.ok("add -i -k csv:a,b f.tamis table");
        let info = dir.ok("info f.tamis");
        assert!(info.text().contains("case ignored, 2 values joined"));
        assert_eq!(dir.run("add f.tamis list").code, 2);
    }
    // For a filter that several processes share, the rule must be given first.
    dir.ok("create f.tamis --capacity 100 --force");
    let shared = dir.run("add --shared -i f.tamis list");
    assert_eq!(shared.code, 2);
    assert!(shared.err.contains("--ignore-case"), "{}", shared.err);
    dir.ok("create f.tamis --capacity 100 -i --values 2 --force");
    dir.ok("add --shared -k csv:a,b f.tamis table");
}

#[test]
fn deduplication_without_a_filter_has_its_rule_too() {
    let dir = Sandbox::new();
    dir.write("list", "Key\nKEY\nhttp://A/\nhttp://a\n");
    for exact in ["", "--exact"] {
        assert_eq!(
            dir.ok(&format!("dedup -q -i --url {exact} list")).text(),
            "Key\nhttp://A/\n"
        );
        assert_eq!(
            dir.ok(&format!("dedup -q {exact} list")).out,
            dir.read("list")
        );
    }
    // A line may end with CR LF; spaces count.
    assert_eq!(dir.feed("dedup -q", "a\na\r\na \n").text(), "a\na \n");
}

#[test]
fn dedup_makes_keyed_filters() {
    let dir = Sandbox::new();
    dir.write("list", "a\nb\n");
    dir.ok("dedup -q --filter apart.tamis --secret-file secret list");
    let info = dir.ok("info --secret-file secret apart.tamis");
    assert!(info.text().contains("secret kept apart"), "{}", info.text());
    assert_eq!(dir.run("check apart.tamis list").code, 2);
    assert_eq!(
        dir.ok("check --secret-file secret apart.tamis list").text(),
        "a\nb\n"
    );
    assert_eq!(
        dir.ok("dedup -q --filter apart.tamis --secret-file secret list")
            .text(),
        ""
    );
    dir.ok("dedup -q --filter inside.tamis --secret list");
    assert!(
        dir.ok("info inside.tamis")
            .text()
            .contains("secret in the file")
    );
    dir.ok("build --secret-file secret built.tamis list");
    let names = [
        "apart.tamis",
        "built.tamis",
        "inside.tamis",
        "list",
        "secret",
    ];
    assert_eq!(dir.list(), names);
    assert_eq!(dir.run("check built.tamis list").code, 2);
}
