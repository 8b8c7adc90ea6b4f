//! `tamis compare` on all types of keys.

use crate::common::{Ran, Sandbox};
use serde_json::Value;
use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

const FILTERS: [&str; 7] = [
    "bloom", "blocked", "counting", "cuckoo", "growing", "fuse", "ribbon",
];

fn json(ran: &Ran) -> Value {
    serde_json::from_slice(&ran.out).unwrap_or_else(|e| panic!("{e}: {}{}", ran.text(), ran.err))
}

fn compare(sandbox: &Sandbox, words: &str) -> Value {
    json(&sandbox.ok(&format!("compare --json {words}")))
}

fn contender<'v>(all: &'v Value, name: &str) -> &'v Value {
    let list = all["contenders"].as_array().unwrap();
    list.iter().find(|one| one["name"] == name).unwrap()
}

/// Scrambled numbers.
fn mix(i: u64) -> u64 {
    let i = (i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let i = (i ^ i >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    i ^ i >> 31
}

fn urls(count: u64) -> String {
    let mut text = String::new();
    for i in 0..count {
        let (host, page) = (mix(i) % 5000, mix(i + count));
        writeln!(text, "https://www.host-{host}.example/{page:x}?page={i}").unwrap();
    }
    text
}

/// A command's memory according to `/usr/bin/time`.
fn timed(line: &str) -> u64 {
    let ran = Command::new("/usr/bin/time")
        .args(["-f", "%M"])
        .args(line.split(' '))
        .output()
        .expect("/usr/bin/time is missing: apt-get install time");
    let said = String::from_utf8(ran.stderr).unwrap();
    let kilobytes = said.trim().parse::<u64>();
    kilobytes.unwrap_or_else(|_| panic!("{line}: {said}")) * 1024
}

fn assert_close(what: &str, one: u64, other: u64) {
    let ratio = one as f64 / other as f64;
    assert!((0.9..1.1).contains(&ratio), "{what}: {one} and {other}");
}

#[test]
#[ignore = "a minute of two cores: ./test more"]
fn three_inputs_get_three_right_recommendations() {
    let sandbox = Sandbox::new();
    sandbox.write("urls", urls(500_000));
    let integers: String = (0..500_000_u64)
        .map(|i| format!("{}\n", i * 7 % 500_009))
        .collect();
    sandbox.write("integers", integers);
    let few: String = (0..100).map(|i| format!("user{i}@example.org\n")).collect();
    sandbox.write("few", few);

    let of_urls = compare(&sandbox, "--keep kept urls");
    let of_integers = compare(&sandbox, "integers");
    let of_few = compare(&sandbox, "few");
    let taken = |all: &Value| all["recommendation"]["take"].as_str().unwrap().to_owned();
    // Which of the two is faster depends on the machine.
    assert!(["fuse", "ribbon"].contains(&&*taken(&of_urls)), "{of_urls}");
    assert_eq!(taken(&of_integers), "bitmap");
    assert_eq!(taken(&of_few), "hash-set");

    for all in [&of_urls, &of_integers] {
        assert_eq!(all["keys"]["held"], 250_000);
        assert_eq!(all["keys"]["absent"], 250_000);
        for name in ["hash-set", "digests"] {
            assert_eq!(contender(all, name)["false_yes"], 0.0, "{name}");
        }
        for name in FILTERS {
            // Fingerprints have whole bits, and a growing filter has spare room.
            let least = match name {
                "bloom" | "blocked" | "counting" => 0.009,
                "growing" => 0.001,
                _ => 0.007,
            };
            let wrong = contender(all, name)["false_yes"].as_f64().unwrap();
            assert!((least..0.0108).contains(&wrong), "{name}: {wrong}");
        }
        for name in ["sqlite", "redb"] {
            let one = contender(all, name);
            assert_eq!(one["false_yes"], 0.0, "{one}");
        }
        let of = |name| contender(all, name)["bytes"].as_u64().unwrap();
        for name in ["hash-set", "digests"] {
            let memory = contender(all, name)["memory"].as_u64().unwrap();
            assert_close(name, memory, of(name));
        }
    }
    agrees_with_time(&sandbox, &of_urls);
}

/// The figures match those of `/usr/bin/time` for the same processes.
fn agrees_with_time(sandbox: &Sandbox, all: &Value) {
    let read = format!(
        "{} compare-step {} hash-set read",
        env!("CARGO_BIN_EXE_tamis"),
        sandbox.path("kept").display()
    );
    let baseline = timed(&read);
    for name in ["hash-set", "digests", "sqlite", "redb", "counting", "fuse"] {
        let one = contender(all, name);
        let asked = one["commands"].as_array().unwrap().last().unwrap();
        let peak = timed(asked.as_str().unwrap());
        assert_close(name, one["process_memory"].as_u64().unwrap(), peak);
        let memory = one["memory"].as_u64().unwrap();
        // For smaller sizes, the program's own pages are too large a part.
        if memory > 20_000_000 {
            assert_close(name, memory, peak - baseline);
        }
    }
    let sets = ["hash-set", "redb"].map(|name| contender(all, name)["memory"].as_u64().unwrap());
    assert!(sets.iter().all(|memory| *memory > 20_000_000), "{sets:?}");
}

#[test]
fn what_is_needed_decides() {
    let sandbox = Sandbox::new();
    sandbox.write("urls", urls(20_000));
    for (need, right) in [
        ("add", &["blocked", "bloom", "cuckoo"][..]),
        ("delete", &["cuckoo"]),
        ("grow", &["growing"]),
        ("exact", &["digests"]),
        ("list", &["sqlite", "redb"]),
        ("delete,exact", &["sqlite", "redb"]),
    ] {
        let all = compare(&sandbox, &format!("--memory 10kB --need {need} urls"));
        let taken = all["recommendation"]["take"].as_str().unwrap();
        assert!(right.contains(&taken), "{need}: {taken}");
        assert!(all["if_also_needed"][need].is_null());
    }
    let enough = compare(&sandbox, "--memory 10MB --need list urls");
    assert_eq!(enough["recommendation"]["take"], "hash-set");
}

#[test]
fn keys_of_both_lists_are_not_asked_as_absent() {
    let sandbox = Sandbox::new();
    sandbox.write("held", "a\nb\nb\nc\na\n");
    sandbox.write("asked", "c\nd\nd\ne\na\nc\n");
    let all = compare(&sandbox, "held --absent asked");
    assert_eq!(all["keys"]["records"], 5);
    assert_eq!(all["keys"]["distinct"], 3);
    assert_eq!(all["keys"]["held"], 3);
    assert_eq!(all["keys"]["absent"], 2);
    assert_eq!(all["keys"]["overlapping"], 3);
    assert_eq!(contender(&all, "hash-set")["false_yes"], 0.0);
    // With an allow list there is a cascade, which is never wrong on it.
    assert_eq!(contender(&all, "cascade")["false_yes"], 0.0);

    let same = sandbox.ok("compare held --absent held");
    assert!(
        same.text().contains("every key of --absent is held"),
        "{}",
        same.text()
    );
    assert!(same.text().contains("Take hash-set"), "{}", same.text());
}

#[test]
fn few_and_odd_keys() {
    let sandbox = Sandbox::new();
    sandbox.write("one", "only");
    sandbox.write("equal", "same\n".repeat(1000));
    sandbox.write("blank", "\n");
    sandbox.write("bytes", b"\xff\xfe\n\x80\n\0\nplain\n\xc3\x28\n");
    for (name, distinct, held) in [
        ("one", 1, 1),
        ("equal", 1, 1),
        ("blank", 1, 1),
        ("bytes", 5, 3),
    ] {
        let all = compare(&sandbox, name);
        assert_eq!(all["keys"]["distinct"], distinct, "{name}");
        assert_eq!(all["keys"]["held"], held, "{name}");
        for name in FILTERS
            .iter()
            .chain(&["hash-set", "digests", "sqlite", "redb"])
        {
            let present = &contender(&all, name)["answers"]["present"];
            assert_eq!(present["keys"], held, "{name}");
            assert_eq!(present["yes"], held, "{name}");
        }
    }
    sandbox.write("empty", "");
    let ran = sandbox.run("compare empty");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("the input has no keys"), "{}", ran.err);
    let ran = sandbox.run("compare nowhere");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("nowhere"), "{}", ran.err);
    let ran = sandbox.run("compare --absent - -");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("both be standard input"), "{}", ran.err);
}

#[test]
fn huge_keys() {
    let sandbox = Sandbox::new();
    let mut text = String::new();
    for i in 0..12 {
        let letter = char::from(b'a' + i);
        text.push_str(&letter.to_string().repeat(1 << 20));
        text.push('\n');
        writeln!(text, "small {i}").unwrap();
    }
    sandbox.write("huge", text);
    let all = compare(&sandbox, "huge");
    assert_eq!(all["keys"]["held"], 12);
    for one in all["contenders"].as_array().unwrap() {
        assert!(one["failed"].is_null(), "{one}");
    }
}

#[test]
fn integers_that_make_no_bitmap() {
    let sandbox = Sandbox::new();
    let sparse: String = (0..1000).map(|i| format!("{}\n", mix(i))).collect();
    sandbox.write("sparse", sparse);
    let all = compare(&sandbox, "sparse");
    let why = contender(&all, "bitmap")["left_out"].as_str().unwrap();
    assert!(why.contains("range"), "{why}");
    // Leading zeros make different keys of the same number.
    sandbox.write("padded", "1\n01\n2\n02\n");
    let all = compare(&sandbox, "padded");
    assert_eq!(
        contender(&all, "bitmap")["left_out"],
        "not all keys are integers"
    );
    let negative: String = (-500..500).map(|i| format!("{i}\n")).collect();
    sandbox.write("negative", negative);
    let all = compare(&sandbox, "negative --memory 1");
    assert_eq!(all["recommendation"]["take"], "bitmap");
}

#[test]
fn a_sample_is_even_and_said() {
    let sandbox = Sandbox::new();
    // One key makes up most of the records.
    let text = urls(50_000) + &"https://often.example/\n".repeat(100_000);
    sandbox.write("urls", text);
    let all = compare(&sandbox, "--sample 2000 urls");
    assert_eq!(all["keys"]["records"], 150_000);
    assert_eq!(all["keys"]["is_sample"], true);
    assert_eq!(all["keys"]["held"], 2000);
    assert_eq!(all["keys"]["absent"], 2000);
    let distinct = all["keys"]["distinct"].as_u64().unwrap();
    assert!((45_000..55_000).contains(&distinct), "{distinct}");
    let again = compare(&sandbox, "--sample 2000 urls");
    assert_eq!(again["keys"], all["keys"]);
    let text = sandbox.ok("compare --sample 2000 urls");
    assert!(text.text().contains("an even sample"), "{}", text.text());
}

#[test]
fn inputs_are_read_as_dedup_reads_them() {
    let sandbox = Sandbox::new();
    let mut rows = String::from("id,name\n");
    (0..100).for_each(|i| writeln!(rows, "{},\"a, b\"", i / 2).unwrap());
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(rows.as_bytes()).unwrap();
    sandbox.write("rows.csv.gz", packed.finish().unwrap());
    let all = compare(&sandbox, "-k csv:id rows.csv.gz");
    assert_eq!(all["keys"]["distinct"], 50);
    assert!(contender(&all, "bitmap")["bytes"].is_u64());

    let ran = sandbox.feed(
        "compare --json --url -",
        "http://A.example/\nhttp://a.example:80/#x\n",
    );
    assert_eq!(json(&ran)["keys"]["distinct"], 1);
}

#[test]
fn pictures_stand_alone() {
    let sandbox = Sandbox::new();
    sandbox.write("a<b&c", urls(2000));
    assert_eq!(sandbox.run("compare a<b&c --keep kept").code, 0);
    for name in ["size", "build", "speed", "wrong"] {
        let picture = sandbox.read(&format!("kept/{name}.svg"));
        let picture = String::from_utf8(picture).unwrap();
        assert!(picture.starts_with("<svg") && picture.contains("role=\"img\""));
        // Nothing is fetched: the only URL is SVG's namespace.
        assert_eq!(
            picture.matches("http").count(),
            picture.matches("http://www.w3.org/2000/svg").count()
        );
        assert!(!picture.contains("<script") && !picture.contains("NaN"));
        assert!(picture.contains("prefers-color-scheme:dark"));
    }
}

#[test]
fn what_takes_too_long_is_given_up() {
    let sandbox = Sandbox::new();
    sandbox.write("keys", "a\nb\n");
    let ran = sandbox.run("compare --limit 1ms keys");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("fuse: not done in"), "{}", ran.err);
    assert!(ran.text().contains("Nothing here"), "{}", ran.text());
}

/// A shell that limits files to so many KiB, in place of a full disk.
#[cfg(unix)]
fn with_small_files(sandbox: &Sandbox, kibibytes: u32, words: &str) -> Ran {
    let script = format!(
        "ulimit -f {kibibytes}; exec {} {words}",
        env!("CARGO_BIN_EXE_tamis")
    );
    let mut shell = Command::new("bash");
    shell
        .args(["-c", &script])
        .current_dir(sandbox.path(""))
        .env("TMPDIR", sandbox.path("temporary"));
    Ran::from(shell.output().unwrap())
}

#[test]
#[cfg(unix)]
fn a_full_disk_is_told() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("temporary")).unwrap();
    sandbox.write("few", urls(100));
    sandbox.write("many", urls(20_000));
    // Too large for the keys themselves.
    let ran = with_small_files(&sandbox, 100, "compare many");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("temporary files"), "{}", ran.err);
    // Too large only for a database: the others are still reported.
    let ran = with_small_files(&sandbox, 500, "compare few");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("redb: "), "{}", ran.err);
    assert!(ran.text().contains("Take hash-set"), "{}", ran.text());
    let left = std::fs::read_dir(sandbox.path("temporary")).unwrap();
    assert_eq!(left.count(), 0);
}

/// The number of processes that work in a folder.
#[cfg(target_os = "linux")]
fn working_in(folder: &std::path::Path) -> usize {
    let folder = folder.as_os_str().as_encoded_bytes();
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    lines
        .filter(|line| line.windows(folder.len()).any(|part| part == folder))
        .count()
}

#[cfg(target_os = "linux")]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let start = std::time::Instant::now();
    while !is_so() {
        assert!(start.elapsed().as_secs() < 60, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
#[cfg(target_os = "linux")]
fn an_end_in_the_middle_leaves_nothing_behind() {
    for (signal, code) in [("INT", 130), ("TERM", 143), ("KILL", -1)] {
        let sandbox = Sandbox::new();
        sandbox.write("urls", urls(100_000));
        let temporary = sandbox.path("temporary");
        std::fs::create_dir(&temporary).unwrap();
        let child = sandbox
            .command("compare urls")
            .env("TMPDIR", &temporary)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        until("a contender is at work", || working_in(&temporary) > 0);
        let sent = Command::new("kill")
            .args(["-s", signal, &child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
        let ran = Ran::from(child.wait_with_output().unwrap());
        assert_eq!(ran.code, code, "{signal}: {}", ran.err);
        assert!(ran.out.is_empty(), "{signal}");
        until("the contender ends", || working_in(&temporary) == 0);
        if signal == "KILL" {
            // The next run removes it, but not the folder of a living process.
            let alive = temporary.join("tamis-compare-alive");
            std::fs::create_dir(&alive).unwrap();
            let lock = std::fs::File::open(&alive).unwrap();
            lock.lock().unwrap();
            assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 2);
            sandbox.write("few", "a\nb\n");
            let next = sandbox
                .command("compare few")
                .env("TMPDIR", &temporary)
                .output();
            assert!(next.unwrap().status.success());
            std::fs::remove_dir(&alive).unwrap();
        }
        assert_eq!(std::fs::read_dir(&temporary).unwrap().count(), 0);
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let sandbox = Sandbox::new();
    sandbox.write("keys", "a\nb\n");
    let mut child = sandbox
        .command("compare keys")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_folder_that_exists_is_not_kept_in() {
    let sandbox = Sandbox::new();
    sandbox.write("keys", "a\nb\n");
    sandbox.ok("compare keys --keep kept");
    assert_eq!(sandbox.list(), ["kept", "keys"]);
    assert!(sandbox.path("kept/redb").exists());
    let ran = sandbox.run("compare keys --keep kept");
    assert_eq!(ran.code, 2);
    assert!(ran.err.contains("kept"), "{}", ran.err);
}

/// With few keys, queries are repeated; that memory isn't counted for the contender.
#[test]
fn one_key_takes_hardly_any_memory() {
    let sandbox = Sandbox::new();
    sandbox.write("one", "key\n");
    let all = compare(&sandbox, "one");
    for name in ["hash-set", "digests"].iter().chain(&FILTERS) {
        let memory = contender(&all, name)["memory"].as_u64().unwrap();
        assert!(memory < 1 << 20, "{name}: {memory} bytes");
    }
}

/// The tutorials' bitmap with one hash, next to the others, and the sizes for a crawler's keys.
#[test]
fn one_hash_takes_ten_times_a_filter() {
    let sandbox = Sandbox::new();
    sandbox.write("urls", urls(20_000));
    let all = compare(&sandbox, "--memory 10kB --need add urls");
    let of = |name: &str| contender(&all, name)["bytes_for_keys"].as_f64().unwrap();
    // n / -ln(1 - p) bits; for digests and filters exactly the numbers reported elsewhere.
    assert!(
        (of("one-hash") / 1_243_739_522.0 - 1.0).abs() < 1e-6,
        "{all}"
    );
    assert_eq!(
        (all["for_keys"].as_u64(), of("digests")),
        (Some(100_000_000), 1.6e9)
    );
    let plans = json(&sandbox.ok("plan --capacity 100M --json"));
    for plan in plans.as_array().unwrap() {
        let kind = plan["kind"].as_str().unwrap();
        assert_eq!(of(kind), plan["bytes"].as_f64().unwrap(), "{kind}");
    }
    let wrong = contender(&all, "one-hash")["false_yes"].as_f64().unwrap();
    assert!((0.006..0.014).contains(&wrong), "{wrong}");
    assert_ne!(all["recommendation"]["take"], "one-hash");

    let text = sandbox.ok("compare -p 1e-6 --for 1M urls");
    assert!(
        text.text()
            .contains("one-hash  at this rate its bits would take 1.25 GB"),
        "{}",
        text.text()
    );
    assert!(
        text.text()
            .contains("For 1,000,000 such keys, calculated: hash-set ")
    );
    assert!(
        text.text().contains(", digests 16.0 MB, "),
        "{}",
        text.text()
    );
}
