//! Requests and answers when nothing goes wrong.

use crate::common::Sandbox;
use crate::service::{Service, receive, send};
use serde_json::{Value, json};
use std::io::BufReader;

fn words(dir: &Sandbox) {
    dir.write("list", "apple\npear\n\nplum \n");
    dir.ok("build words.tamis list");
}

#[test]
fn lines_and_json_get_the_same_answers_in_order() {
    let dir = Sandbox::new();
    words(&dir);
    let service = Service::start(&dir, "words.tamis");
    // An empty line is a key, a carriage return before the line end isn't part of one, the last line may lack an end,
    // and blanks count.
    let keys = "pear\nnot there\n\napple\r\nplum\nplum ";
    assert_eq!(service.check("words", keys), "yes\nno\nyes\nyes\nno\nyes\n");
    assert_eq!(service.check("words", ""), "");
    let asked = |headers: &str, body: &str| {
        let answer = service.ask("POST /v1/filters/words/check", headers, body);
        assert_eq!(answer.status, 200, "{}", answer.text());
        answer
    };
    let as_json = "content-type: application/json\r\n";
    let body = r#"["pear", "not there", "", "\u0061pple", "plum", "plum "]"#;
    let found = json!({ "found": [true, false, true, true, false, true] });
    assert_eq!(asked(as_json, body).json(), found);
    assert_eq!(asked(as_json, "[]").json(), json!({ "found": [] }));

    // The answers have the request's form, unless another is asked for.
    let plain = asked(
        "content-type: application/json\r\naccept: text/plain\r\n",
        body,
    );
    assert_eq!(plain.text(), "yes\nno\nyes\nyes\nno\nyes\n");
    assert_eq!(asked("accept: application/json\r\n", keys).json(), found);
    assert_eq!(asked("accept: */*\r\n", "pear").text(), "yes\n");
    let form = "content-type: application/x-www-form-urlencoded\r\n";
    assert_eq!(asked(form, "pear\nq").text(), "yes\nno\n");
    service.end();
}

#[test]
fn keys_are_bytes() {
    let dir = Sandbox::new();
    let all: Vec<u8> = (0..=255).filter(|b| *b != b'\n').collect();
    dir.write("list", [&all[..], b"\n\xff\xfe\n\0\n"].concat());
    dir.ok("build -p 1e-6 bytes.tamis list");
    let service = Service::start(&dir, "bytes.tamis");
    let asked = [&all[..], b"\n\xff\xfe\n\0\n\0\0\n\xfe\xff\n"].concat();
    assert_eq!(service.check("bytes", asked), "yes\nyes\nyes\nno\nno\n");
    service.end();
}

#[test]
fn keys_are_made_as_the_filter_says() {
    let dir = Sandbox::new();
    dir.write("list", "Apple\n");
    dir.write("orders.csv", "customer,date\nAda,2026\n");
    dir.ok("create any-case.tamis --capacity 100 -i");
    dir.ok("add any-case.tamis list");
    dir.ok("create orders.tamis --capacity 100 --values 2");
    dir.ok("add -k csv:customer,date orders.tamis orders.csv");
    let service = Service::start(&dir, "any-case.tamis orders.tamis");
    assert_eq!(service.check("any-case", "APPLE\nPEAR"), "yes\nno\n");

    let asked = |body: &str| {
        let headers = "content-type: application/json\r\n";
        service.ask("POST /v1/filters/orders/check", headers, body)
    };
    let found = asked(r#"[["Ada", "2026"], ["Ada2026", ""], ["2026", "Ada"]]"#);
    assert_eq!(found.json(), json!({ "found": [true, false, false] }));
    for bad in [
        r#"["Ada"]"#,
        r#"[["Ada"]]"#,
        r#"[["a", "b", "c"]]"#,
        r#"[["a", ["b"]]]"#,
    ] {
        let refused = asked(bad);
        assert_eq!(refused.status, 400, "{bad}");
        refused.error();
    }
    let line = service.ask("POST /v1/filters/orders/check", "", "Ada,2026");
    assert!(line.error().contains("2 values"), "{}", line.text());
    let nested = service.ask(
        "POST /v1/filters/any-case/check",
        "content-type: application/json\r\n",
        r#"[["Apple"]]"#,
    );
    assert_eq!(nested.status, 400);
    service.end();
}

#[test]
fn info_tells_what_the_page_shows() {
    let dir = Sandbox::new();
    words(&dir);
    let keys: String = (0..900).map(|i| format!("key{i}\n")).collect();
    dir.write("keys", &keys);
    for (kind, flags) in [
        ("blocked", "--kind blocked"),
        ("bloom", "--kind bloom"),
        ("counting", "--kind counting"),
        ("cuckoo", "--kind cuckoo"),
        ("growing", "--kind growing"),
    ] {
        dir.ok(&format!(
            "create {kind}.tamis --capacity 1000 -p 0.01 {flags}"
        ));
        dir.ok(&format!("add {kind}.tamis keys"));
    }
    let all = "blocked.tamis bloom.tamis counting.tamis cuckoo.tamis growing.tamis w=words.tamis";
    let service = Service::start(&dir, all);
    service.check("blocked", "key1\nkey2\nother\n");
    let listed = service.json("/v1/filters");
    let listed = listed["filters"].as_array().unwrap();
    let names: Vec<_> = listed
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(
        names,
        ["blocked", "bloom", "counting", "cuckoo", "growing", "w"]
    );
    for one in listed {
        let name = one["name"].as_str().unwrap();
        let same = service.json(&format!("/v1/filters/{name}"));
        assert_eq!(same["kind"], one["kind"]);
        // The service reports the same as `tamis info`.
        let place = one["place"].as_str().unwrap();
        let info: Value =
            serde_json::from_str(dir.ok(&format!("info --json {place}")).text()).unwrap();
        for field in [
            "kind", "keys", "capacity", "rate", "rate_now", "bytes", "shape", "hash",
        ] {
            assert_eq!(one[field], info[field], "{name} {field}");
        }
        assert_eq!(one["writable"], false);
        assert_eq!(one["fault"], Value::Null);
        assert_eq!(one["recent"].as_array().unwrap().len(), 15);
        if matches!(name, "cuckoo" | "w") {
            assert_eq!(one["lines"], Value::Null);
            continue;
        }
        let lines = &one["lines"];
        let counts = lines["counts"].as_array().unwrap();
        let sum: u64 = counts.iter().map(|n| n.as_u64().unwrap()).sum();
        assert_eq!(
            (counts.len(), sum),
            (32, lines["lines"].as_u64().unwrap()),
            "{name}"
        );
        assert_eq!(lines["sampled"], lines["lines"]);
        let fill = lines["fill"].as_f64().unwrap();
        assert!((0.2..0.7).contains(&fill), "{name}: {fill}");
    }
    let recent = service.json("/v1/filters/blocked")["recent"].clone();
    let sum = |field: &str| -> u64 {
        let minutes = recent.as_array().unwrap().iter();
        minutes.map(|minute| minute[field].as_u64().unwrap()).sum()
    };
    assert_eq!(
        (sum("yes"), sum("no"), sum("new"), sum("known")),
        (2, 1, 0, 0)
    );
    service.end();
}

#[test]
fn metrics_are_what_prometheus_reads() {
    let dir = Sandbox::new();
    words(&dir);
    let service = Service::start(&dir, "words.tamis");
    service.check("words", "apple\npear\nnone\n");
    service.get("/nowhere");
    // A client may see its connection end before the service does.
    service.until("only this connection is open", || {
        let text = service.get("/metrics").text();
        text.lines().any(|line| line == "tamis_connections 1")
    });
    let answer = service.get("/metrics");
    let kind = answer.header("content-type").unwrap();
    assert!(kind.starts_with("text/plain; version=0.0.4"), "{kind}");
    let text = answer.text();
    let mut announced = "";
    for line in text.lines() {
        // The samples of a family stand together, below its type.
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            announced = rest.split(' ').next().unwrap();
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').unwrap();
            assert!(name.starts_with(announced), "{line} below {announced}");
            value.parse::<f64>().unwrap();
        }
    }
    for sample in [
        "tamis_keys_total{filter=\"words\",answer=\"yes\"} 2",
        "tamis_keys_total{filter=\"words\",answer=\"no\"} 1",
        "tamis_filter_keys{filter=\"words\"} 4",
        "tamis_filter_fault{filter=\"words\"} 0",
        "tamis_requests_total{status=\"4xx\"} 1",
    ] {
        assert!(
            text.lines().any(|line| line == sample),
            "{sample} in\n{text}"
        );
    }
    service.end();
}

#[test]
fn without_filters_there_is_the_page() {
    let dir = Sandbox::new();
    let service = Service::start(&dir, "");
    assert_eq!(service.get("/healthz").text(), "ok\n");
    assert_eq!(service.json("/v1/filters"), json!({ "filters": [] }));
    let page = service.get("/");
    assert_eq!(page.status, 200);
    assert!(
        page.text().starts_with("<!doctype html>"),
        "{}",
        page.text()
    );
    assert!(
        page.header("content-security-policy")
            .unwrap()
            .contains("default-src 'none'")
    );
    let described = service.json("/v1/openapi.json");
    assert_eq!(described["openapi"], "3.1.0");
    service.end();
}

#[test]
fn what_is_described_is_there() {
    let dir = Sandbox::new();
    words(&dir);
    let service = Service::start(&dir, "words.tamis");
    let described = service.json("/v1/openapi.json");
    for (path, methods) in described["paths"].as_object().unwrap() {
        let path = path.replace("{name}", "words");
        for method in methods.as_object().unwrap().keys() {
            if method != "parameters" {
                let line = format!("{} {path}", method.to_uppercase());
                let status = service.ask(&line, "", "").status;
                assert!(![404, 405].contains(&status), "{line}: {status}");
            }
        }
        let other = service.ask(&format!("DELETE {path}"), "", "");
        assert_eq!(other.status, 405, "{path}");
        other.error();
    }
    // References resolve.
    let text = described.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(described.pointer(pointer).is_some(), "{pointer}");
    }
    service.end();
}

#[test]
fn a_connection_takes_many_requests() {
    let dir = Sandbox::new();
    words(&dir);
    let service = Service::start(&dir, "words.tamis");
    let mut stream = service.connect();
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    for turn in 0..1000 {
        let key = ["apple", "none"][turn % 2];
        let line = "POST /v1/filters/words/check";
        send(&mut stream, service.address, line, "", key.as_bytes()).unwrap();
        let answer = receive(&mut reader).unwrap();
        assert_eq!(answer.text(), ["yes\n", "no\n"][turn % 2]);
    }
    service.end();
}

#[test]
fn other_systems_filters_answer_beside_ours() {
    let dir = Sandbox::new();
    words(&dir);
    dir.ok("create --format dcso --capacity 100 -p 0.001 theirs.bloom");
    dir.ok("add --format keys=utf8 theirs.bloom list");
    let service = Service::start(&dir, "words.tamis theirs.bloom --format keys=utf8");
    assert_eq!(service.check("theirs", "apple\nnone"), "yes\nno\n");
    assert_eq!(service.check("words", "apple\nnone"), "yes\nno\n");
    let about = service.json("/v1/filters/theirs");
    assert_eq!(about["kind"], "dcso");
    service.end();

    // The user has to say how keys became bytes.
    let refused = dir.run("serve --listen 127.0.0.1:0 theirs.bloom");
    assert_eq!(refused.code, 2);
    assert!(
        refused.err.contains("--format dcso,keys=HOW"),
        "{}",
        refused.err
    );
}

#[test]
fn names_come_from_files_or_are_given() {
    let dir = Sandbox::new();
    words(&dir);
    dir.ok("copy words.tamis a=b.tamis");
    let service = Service::start(&dir, "words.tamis x=words.tamis y.z=./a=b.tamis");
    let listed = service.json("/v1/filters");
    let name = |at: usize| listed["filters"][at]["name"].clone();
    assert_eq!(
        [name(0), name(1), name(2)],
        ["words", "x", "y.z"].map(Value::from)
    );
    service.end();
    let twice = dir.run("serve --listen 127.0.0.1:0 words.tamis words=words.tamis");
    assert!(twice.err.contains("two filters"), "{}", twice.err);
    let unnamed = dir.run("serve --listen 127.0.0.1:0 ./a=b.tamis");
    assert!(unnamed.err.contains("NAME=FILTER"), "{}", unnamed.err);
    let missing = dir.run("serve --listen 127.0.0.1:0 none.tamis");
    assert!(missing.err.contains("none.tamis"), "{}", missing.err);
}

/// If a file doesn't record its hash, every key could be denied: the service warns, and the hash can be named.
#[test]
fn a_hash_is_named_or_doubted() {
    let dir = Sandbox::new();
    let samples = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../tamis-formats/tests/samples/pybloomfilter"
    );
    let from = format!("{samples}/pbfm_0.3.11_sha512.bloom");
    std::fs::copy(from, dir.path("old.bloom")).unwrap();
    let keys = "key0\nkey1\nkey499\n";
    let named = Service::start(
        &dir,
        "--format pybloomfilter,hash=sha512,keys=utf8 old.bloom",
    );
    assert_eq!(named.check("old", keys), "yes\nyes\nyes\n");
    assert!(!named.end().contains("does not say"));
    let alone = Service::start(&dir, "--format keys=utf8 old.bloom").end();
    assert!(
        alone.contains("warning") && alone.contains("sha512"),
        "{alone}"
    );
}
