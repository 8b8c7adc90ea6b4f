//! Files that aren't the text they seem to be, or expand to far more: candidates, never a false no.

use super::*;
use std::io::Read as _;
use std::process::Command;

fn utf16(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn zstd(bytes: impl std::io::Read) -> Vec<u8> {
    zstd::encode_all(bytes, 3).unwrap()
}

#[test]
fn what_is_no_text_is_a_candidate() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("d")).unwrap();
    let marked = [b"\xFF\xFE".to_vec(), utf16("needle in UTF-16\n")].concat();
    let big_endian: Vec<u8> = "\u{FEFF}needle"
        .encode_utf16()
        .flat_map(u16::to_be_bytes)
        .collect();
    for (name, bytes) in [
        ("a.parquet", b"PAR1\x15\x04\x15".to_vec()),
        ("b.zip", b"PK\x03\x04\x14\0\0\0\x08\0".to_vec()),
        ("c.lz4", b"\x04\x22\x4D\x18\x64\x40".to_vec()),
        ("f.utf16", utf16("needle without a mark\n")),
        ("h.log.gz.zst", zstd(&gzip(b"needle\n")[..])),
        ("i.pdf", b"%PDF-1.7\n1 0 obj\n".to_vec()),
    ] {
        dir.write(&format!("d/{name}"), bytes);
    }
    let not_text = fs::read_dir(dir.path("d")).unwrap().count();
    // With a byte order mark, it is text.
    for (name, bytes) in [
        ("d.utf16", &marked),
        ("e.utf16", &big_endian),
        ("g.utf16.gz", &gzip(&marked)),
    ] {
        dir.write(&format!("d/{name}"), bytes);
    }
    dir.write("d/text", "PAR1 and ORC are words of this text\n");
    dir.write("d/empty", "");
    for keys in [
        "--key word",
        "--key line",
        "--key csv:id",
        "--key jsonl:/id",
    ] {
        let _ = fs::remove_file(dir.path("ix"));
        let made = dir.ok(&format!("index ix -p 1e-6 {keys} d"));
        // Parquet has no CSV or JSON columns, which is reported.
        let unknown = match keys {
            "--key word" | "--key line" => not_text,
            _ => not_text - 1,
        };
        let files = if unknown == 1 { "file" } else { "files" };
        let says = format!("{unknown} {files} that may hold any key");
        assert!(made.err.contains(&says), "{keys}: {}", made.err);
        let text = match keys {
            "--key word" => 3,
            // One of them is exactly this line.
            "--key line" => 1,
            _ => 0,
        };
        let ran = dir.ok("grep --candidates needle ix");
        assert_eq!(
            lines(ran.text()).len(),
            unknown + text,
            "{keys}: {}",
            ran.text()
        );
        assert!(ran.err.contains("could not be indexed"), "{}", ran.err);
        // This is now recorded, so they aren't read again.
        assert!(dir.ok("index ix").err.contains("up to date"), "{keys}");
        let found = dir.run("grep -l needle ix");
        assert_eq!(lines(found.text()).len(), text, "{keys}: {}", found.text());
        assert_eq!(found.code, i32::from(text == 0), "{keys}");
        assert_eq!(dir.run("grep -l --strict needle ix").code, 2, "{keys}");
    }
}

#[test]
fn a_line_that_is_no_strict_json_makes_its_file_a_candidate() {
    let dir = Sandbox::new();
    for (name, text) in [
        ("nan", "{\"id\": 1}\n{\"x\": NaN, \"id\": \"needle\"}\n"),
        ("pretty", "{\n  \"id\": \"needle\"\n}\n"),
        ("comma", "{\"id\": \"needle\",}\n"),
        ("sequence", "\u{1E}{\"id\": \"needle\"}\n"),
        ("surrogate", "{\"id\": \"\\ud800\"}\n"),
        ("marked", "\u{FEFF}{\"id\": needle}\n"),
        (
            "sound",
            "{\"id\": 2}\n\n{\"other\": null}\nno JSON\n{\"id\": null}\n",
        ),
    ] {
        dir.write(name, text);
    }
    let deep = format!("{}\"id\": 1{}\n", "{\"a\": ".repeat(200), "}".repeat(200));
    dir.write("deep", deep);
    let all = [
        "comma",
        "deep",
        "marked",
        "nan",
        "pretty",
        "sequence",
        "surrogate",
    ];
    let made = dir.ok(&format!(
        "index ix -p 1e-6 --key jsonl:/id sound {}",
        all.join(" ")
    ));
    assert!(
        made.err.contains("7 files that may hold any key jsonl:/id"),
        "{}",
        made.err
    );
    assert!(made.err.contains(": not strict JSON"), "{}", made.err);
    assert!(made.err.contains("4 records without a key"), "{}", made.err);
    assert_eq!(which(&dir, "needle ix"), all);
    assert_eq!(which(&dir, "2 ix").len(), 8);
}

#[test]
fn a_quote_that_is_never_closed_makes_its_file_a_candidate() {
    let dir = Sandbox::new();
    dir.write("open", "id,name\n1,\"x\n2,y\nneedle,z\n");
    dir.write("closed", "id,name\n1,\"x\"\n2,y\n");
    dir.ok("index ix -p 1e-6 --key csv:id open closed");
    assert_eq!(which(&dir, "needle ix"), ["open"]);
    assert_eq!(which(&dir, "2 ix"), ["closed", "open"]);
}

/// Runs `tamis` with at most a gigabyte of address space.
#[cfg(unix)]
fn with_little_memory(dir: &Sandbox, line: &str) -> crate::common::Ran {
    let mut command = Command::new("sh");
    let limited = format!("ulimit -v 1000000; exec \"$0\" {line}");
    command
        .args(["-c", &limited, env!("CARGO_BIN_EXE_tamis")])
        .current_dir(dir.path("."))
        .stdin(Stdio::null());
    crate::common::Ran::from(command.output().unwrap())
}

/// A few kilobytes that demand gigabytes: a long line, many lines, or a large declared size.
#[cfg(unix)]
#[test]
fn bombs_cost_little_and_are_candidates() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("d")).unwrap();
    dir.write("d/good", "word\n");
    let zeros = || std::io::repeat(0).take(1400 << 20);
    dir.write("d/one-line.zst", zstd(zeros()));
    let lines = "word\n".repeat(1 << 20);
    let mut many = zstd::Encoder::new(Vec::new(), 3).unwrap();
    (0..120).for_each(|_| many.write_all(lines.as_bytes()).unwrap());
    dir.write("d/many-lines.zst", many.finish().unwrap());
    // A frame with a window of 2 GiB, and an empty block.
    let window = [0x28, 0xB5, 0x2F, 0xFD, 0, (31 - 10) << 3, 1, 0, 0];
    dir.write("d/window.zst", window);
    // A dictionary of 4 GiB, declared in the header of the first block.
    let mut xz = Vec::new();
    let mut encoder = liblzma::read::XzEncoder::new(&b"word\n"[..], 0);
    std::io::Read::read_to_end(&mut encoder, &mut xz).unwrap();
    xz[16] = 40;
    let mut sum = flate2::Crc::new();
    sum.update(&xz[12..20]);
    xz[20..24].copy_from_slice(&sum.sum().to_le_bytes());
    dir.write("d/dictionary.xz", &xz);
    let small = |name: &str| assert!(fs::metadata(dir.path(name)).unwrap().len() < 200 << 10);
    small("d/one-line.zst");
    small("d/many-lines.zst");

    let made = with_little_memory(&dir, "index -j 2 ix -p 1e-6 d");
    assert_eq!(made.code, 0, "{}", made.err);
    assert!(
        made.err.contains("4 files that may hold any key word"),
        "{}",
        made.err
    );
    let ran = dir.ok("grep --candidates nowhere ix");
    assert_eq!(
        lines_of(&ran),
        [
            "d/dictionary.xz",
            "d/many-lines.zst",
            "d/one-line.zst",
            "d/window.zst"
        ]
    );
    for why in [
        "a record is longer",
        "when unpacked",
        "needs more than 128 MiB",
    ] {
        assert!(ran.err.contains(why), "{why}: {}", ran.err);
    }
    // Other commands that read such data explain the problem.
    for name in ["window.zst", "dictionary.xz"] {
        let ran = with_little_memory(&dir, &format!("dedup d/{name}"));
        assert_eq!((ran.code, ran.text()), (2, ""), "{name}: {}", ran.err);
        assert!(ran.err.contains("needs more than 128 MiB"), "{}", ran.err);
    }
}

#[cfg(unix)]
/// A byte order mark at the start of a file isn't text. DuckDB and pandas keep any other.
#[test]
fn a_value_may_begin_with_a_mark() {
    let dir = Sandbox::new();
    dir.write(
        "a.csv",
        "\u{feff}id,x\n\u{feff}one,1\ntwo,2\n\u{feff}three,3\n",
    );
    dir.write("b.tsv", "\u{feff}one\t1\n\u{feff}three\t3\n");
    dir.ok("index -q csv -p 1e-6 --key csv:id a.csv");
    dir.ok("index -q tsv -p 1e-6 --key tsv:1 b.tsv");
    for (index, plain, marked) in [
        ("csv", ["two"], ["one", "three"]),
        ("tsv", ["one"], ["three", "three"]),
    ] {
        for key in plain {
            assert_eq!(
                which(&dir, &format!("{key} {index}")).len(),
                1,
                "{index} {key}"
            );
            assert_eq!(dir.ok(&format!("grep -c {key} {index}")).code, 0);
        }
        for key in marked {
            assert_eq!(
                dir.run(&format!("grep --candidates {key} {index}")).code,
                1,
                "{index} {key}"
            );
            assert_eq!(
                dir.run(&format!("grep {key} {index}")).code,
                1,
                "{index} {key}"
            );
            let key = format!("\u{feff}{key}");
            assert_eq!(
                which(&dir, &format!("{key} {index}")).len(),
                1,
                "{index} {key}"
            );
            assert!(dir.ok(&format!("grep {key} {index}")).text().contains(&key));
        }
    }
}

fn lines_of(ran: &crate::common::Ran) -> Vec<&str> {
    ran.text().lines().collect()
}

/// Line ends, marks, members, and lines across the borders of read blocks.
#[test]
fn however_a_text_is_written_its_lines_are_found() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("d")).unwrap();
    dir.write("d/crlf", "first line\r\nsecond line\r\n");
    dir.write("d/mark", "\u{FEFF}marked line\nno end");
    dir.write(
        "d/members.gz",
        [gzip(b"member one\nmemb"), gzip(b"er two\n"), gzip(b"")].concat(),
    );
    dir.write("d/nul", b"zero\0line\nbad \xFF\xFE utf-8\n");
    // Blocks have about a mebibyte, so some of these lines cross a border.
    let numbered: String = (0..400_000).map(|i| format!("row-{i}\n")).collect();
    dir.write("d/numbered.gz", gzip(numbered.as_bytes()));
    let long = format!("{} end-of-it\nnext\n", "long-word ".repeat(400_000));
    dir.write("d/long", &long);
    dir.ok("index words -p 1e-6 --key word --key line d");
    for (spec, key, file) in [
        ("word", "second", "d/crlf"),
        ("line", "second line", "d/crlf"),
        ("word", "marked", "d/mark"),
        ("line", "no end", "d/mark"),
        ("line", "member two", "d/members.gz"),
        ("word", "utf-8", "d/nul"),
        ("word", "zero", "d/nul"),
        ("word", "end-of-it", "d/long"),
        ("line", "next", "d/long"),
    ] {
        for command in ["grep --candidates", "grep -l"] {
            let mut asked = dir.command(&format!("{command} -k {spec}"));
            let ran = crate::common::Ran::from(asked.args([key, "words"]).output().unwrap());
            assert_eq!(
                ran.text(),
                format!("{file}\n"),
                "{command} {key}: {}",
                ran.err
            );
        }
    }
    let rows = dir.feed("grep --candidates --key line -f - words", &numbered);
    let found = rows.text().lines();
    let found = found.filter(|line| line.ends_with("\td/numbered.gz"));
    assert_eq!(found.count(), 400_000, "{}", rows.err);
}
