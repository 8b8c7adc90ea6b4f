//! Inputs, however compressed, listed or damaged.

use crate::common::Sandbox;
use std::fs;
use std::io::Write;
use std::os::unix::fs::symlink;

fn lines(range: std::ops::Range<u32>) -> String {
    range.map(|i| format!("line{i}\n")).collect()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 1);
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

type Encode = fn(&[u8]) -> Vec<u8>;
const FORMATS: [(&str, Encode); 4] = [("gzip", gzip), ("zstd", zstd), ("bzip2", bzip2), ("xz", xz)];

/// A last line without a line feed is the part most easily lost.
#[test]
fn what_follows_compressed_data_costs_none_of_it() {
    let text = format!("{}last", lines(0..5));
    let zeros = [0; 10_240];
    for (name, encode) in FORMATS {
        let dir = Sandbox::new();
        let whole = encode(text.as_bytes());
        let ends: [(&str, Vec<u8>, bool); 6] = [
            ("whole", Vec::new(), true),
            ("zeros", zeros.to_vec(), true),
            (
                "members",
                [encode(b""), zeros[..3].to_vec(), encode(b"\nline1")].concat(),
                true,
            ),
            ("garbage", b"some garbage\n".to_vec(), false),
            ("short", b"x".to_vec(), false),
            ("zeros-and-garbage", [&zeros[..], b"x"].concat(), false),
        ];
        let mut all = Vec::new();
        for (end, bytes, _) in &ends {
            dir.write(end, [&whole[..], bytes].concat());
            all.push(*end);
        }
        for (end, _, is_sound) in &ends {
            let code = if *is_sound { 0 } else { 2 };
            let what = format!("{name}, {end}");
            let ran = dir.run(&format!("dedup -q {end}"));
            assert_eq!(
                (ran.code, ran.text()),
                (code, &*format!("{text}\n")),
                "{what}: {}",
                ran.err
            );
            let said = format!("{end}: what follows the {name} data is not {name} data");
            assert_eq!(ran.err.contains(&said), !is_sound, "{what}: {}", ran.err);

            let built = dir.run(&format!("build -q {end}.tamis {end}"));
            assert_eq!(built.code, code, "{what}: {}", built.err);
            assert_eq!(dir.path(&format!("{end}.tamis")).exists(), *is_sound);
            let ran = dir.run(&format!("check -c whole.tamis {end}"));
            let keys = if *end == "members" { "7\n" } else { "6\n" };
            assert_eq!((ran.code, ran.text()), (code, keys), "{what}: {}", ran.err);
        }
        let ran = dir.run(&format!("index -q all.index --key line {}", all.join(" ")));
        assert_eq!(ran.code, 2, "{}", ran.err);
        let ran = dir.run("grep last all.index");
        for end in all {
            let found = ran
                .text()
                .lines()
                .any(|line| line.starts_with(&format!("{end}:")));
            assert!(found, "{name}, {end}: {}{}", ran.text(), ran.err);
        }
        // After truncation, there is no last line.
        dir.write("cut", &whole[..whole.len() - 5]);
        let ran = dir.run("dedup -q cut");
        assert_eq!(ran.code, 2);
        assert!(text.starts_with(ran.text()), "{name}: {}", ran.text());
        assert!(ran.err.contains("cut short"), "{name}: {}", ran.err);
    }
}

#[test]
fn an_unclosed_quote_is_told_and_costs_no_row() {
    let dir = Sandbox::new();
    let rows: String = (4..2000).map(|i| format!("{i},x\n")).collect();
    dir.write("in.csv", format!("id,name\n1,a\n2,\"b\n3,c\n{rows}"));
    let told = "in.csv: the quote in line 3 is never closed";
    let ran = dir.ok("dedup -k csv:id in.csv");
    assert_eq!(ran.out, dir.read("in.csv"));
    assert!(ran.err.contains(&format!("warning: {told}")), "{}", ran.err);
    assert!(ran.err.contains("1,999 records"), "{}", ran.err);

    let ran = dir.ok("build all.tamis -k csv:id in.csv");
    assert!(ran.err.contains(told), "{}", ran.err);
    let ran = dir.ok("check -c -k csv:id all.tamis in.csv");
    assert_eq!(ran.text(), "1999\n");
    assert!(ran.err.contains(told), "{}", ran.err);
    dir.ok("create some.tamis --capacity 10k");
    let ran = dir.ok("add -k csv:id some.tamis in.csv");
    assert!(
        ran.err.contains(told) && ran.err.contains("1,999 keys read"),
        "{}",
        ran.err
    );

    for line in [
        "dedup --strict -k csv:id in.csv",
        "build --strict new.tamis -k csv:id in.csv",
        "check --strict -k csv:id all.tamis in.csv",
        "add --strict -k csv:id some.tamis in.csv",
    ] {
        let ran = dir.run(line);
        assert_eq!(ran.code, 2, "{line}: {}", ran.err);
        assert!(
            ran.err.contains(&format!("tamis: {told}\n")),
            "{line}: {}",
            ran.err
        );
    }
    assert_eq!(
        dir.run("dedup -q --strict -k csv:id in.csv").text(),
        "id,name\n1,a\n"
    );
    assert!(!dir.path("new.tamis").exists());
    // A folder's file may still hold any key.
    let ran = dir.ok("index all.index --key csv:id in.csv");
    assert!(ran.err.contains("may hold any key"), "{}", ran.err);
}

/// 80 MB after an unclosed quote take a fraction of that memory.
#[cfg(target_os = "linux")]
#[test]
fn an_unclosed_quote_takes_no_memory_for_the_rest() {
    let dir = Sandbox::new();
    let row = format!("1,{}\n", "x".repeat(100));
    let rows = row.repeat((80 << 20) / row.len());
    dir.write("in.csv", format!("id,name\n2,\"b\n{rows}"));
    let tamis = env!("CARGO_BIN_EXE_tamis");
    let script = format!("ulimit -v 400000; exec {tamis} dedup -j 2 --count -k csv:id in.csv");
    let mut shell = std::process::Command::new("bash");
    shell.args(["-c", &script]).current_dir(dir.path("."));
    let ran = crate::common::Ran::from(shell.output().unwrap());
    assert_eq!((ran.code, ran.text()), (0, "2\n"), "{}", ran.err);
    assert!(ran.err.contains("not closed within"), "{}", ran.err);
}

#[test]
fn files_may_come_from_lists_and_folders() {
    let dir = Sandbox::new();
    fs::create_dir_all(dir.path("in/sub/deep")).unwrap();
    for (name, text) in [
        ("in/b", "1\n"),
        ("in/a b", "2\n"),
        ("in/sub/a", "3\n"),
        ("in/sub/deep/.hidden", "4\n"),
        ("in/z.gz", ""),
        ("outside", "6\n"),
    ] {
        dir.write(name, text);
    }
    dir.write("in/z.gz", gzip(b"5\n1\n"));
    symlink("..", dir.path("in/sub/loop")).unwrap();
    symlink("../outside", dir.path("in/link")).unwrap();
    symlink("nowhere", dir.path("in/dangling")).unwrap();
    let fifo = std::process::Command::new("mkfifo")
        .arg(dir.path("in/pipe"))
        .status();
    assert!(fifo.unwrap().success());
    let sorted = "2\n1\n6\n3\n4\n5\n";
    assert_eq!(dir.ok("dedup -q in").text(), sorted);
    assert_eq!(dir.ok("dedup -q in outside").text(), sorted);
    assert_eq!(dir.ok("dedup -q outside in").text(), "6\n2\n1\n3\n4\n5\n");
    // The command's own files aren't its input.
    for _ in 0..2 {
        dir.ok("dedup -q in -o in/out --filter in/seen --report in/report --force");
    }
    assert_eq!(dir.read("in/out"), b"");
    for name in ["in/out", "in/seen", "in/report"] {
        fs::remove_file(dir.path(name)).unwrap();
    }

    dir.write("list", "in/sub/a\n\nin/a b\nin/sub/a\n");
    assert_eq!(dir.ok("dedup -q --files-from list").text(), "3\n2\n");
    assert_eq!(
        dir.ok("dedup -q --files-from list outside").text(),
        "6\n3\n2\n"
    );
    let ran = dir.feed("dedup -q --files-from -", "in/b\n");
    assert_eq!((ran.code, ran.text()), (0, "1\n"), "{}", ran.err);
    let ran = dir.feed("dedup -q --files-from -", "in/sub\0outside\0");
    assert_eq!((ran.code, ran.text()), (0, "3\n4\n6\n"), "{}", ran.err);
    dir.ok("build all.tamis in");
    dir.ok("create some.tamis --capacity 100");
    dir.ok("add some.tamis in/sub");
    assert_eq!(dir.ok("check -c all.tamis --files-from list").text(), "3\n");
    assert_eq!(
        dir.ok("check -Hn some.tamis in").text(),
        "in/sub/a:1:3\nin/sub/deep/.hidden:1:4\n"
    );

    // An empty list of files means no files, not standard input.
    dir.write("none", "");
    assert_eq!(dir.feed("dedup -q --files-from none", "x\n").text(), "");
    for (line, input, said) in [
        ("dedup --files-from nowhere", "", "nowhere"),
        ("dedup in --files-from list", "", ""),
        ("dedup - --files-from -", "", "standard input"),
        ("dedup --files-from -", "in/b\nmissing\n", "missing"),
        ("dedup -r in", "", "a folder is read"),
    ] {
        let ran = dir.feed(line, input);
        assert_eq!(ran.code == 2, !said.is_empty(), "{line}: {}", ran.err);
        assert!(ran.err.contains(said), "{line}: {}", ran.err);
    }
}

/// Many files become one chunk; none of their line ends is lost.
#[test]
fn many_small_files_are_as_one() {
    let dir = Sandbox::new();
    fs::create_dir(dir.path("in")).unwrap();
    let mut all = String::new();
    for i in 0..3000 {
        // Without a final line feed, empty, or with several lines.
        let text = match i % 4 {
            0 => format!("{i}"),
            1 => String::new(),
            2 => format!("{i}\n{}\r\n", i / 2),
            _ => format!("{i}\n\n"),
        };
        dir.write(&format!("in/{i:05}"), &text);
        all.push_str(&text);
        if !text.is_empty() && !text.ends_with('\n') {
            all.push('\n');
        }
    }
    let mut seen = std::collections::HashSet::new();
    let expected: String = all
        .split_inclusive('\n')
        .filter(|line| seen.insert(line.trim_end()))
        .collect();
    for threads in [1, 3] {
        let ran = dir.ok(&format!("dedup --exact -j {threads} in"));
        assert!(ran.text() == expected, "{}", ran.err);
    }
    // Each file has its own header.
    for i in 0..50 {
        dir.write(&format!("{i:02}.csv"), format!("id,n\n{i},a\n7,b"));
    }
    let names: Vec<_> = (0..50).map(|i| format!("{i:02}.csv")).collect();
    let ran = dir.ok(&format!("dedup --exact -k csv:id {}", names.join(" ")));
    assert_eq!(ran.text().lines().count(), 1 + 50, "{}", ran.text());
    dir.write("07.csv", "n,id\na,8\n");
    let ran = dir.run(&format!("dedup --exact -k csv:id {}", names.join(" ")));
    assert_eq!(
        (ran.code, ran.text().lines().count()),
        (2, 1 + 50),
        "{}",
        ran.err
    );
    assert!(
        ran.err.contains("07.csv: its header differs"),
        "{}",
        ran.err
    );
}

/// A byte order mark isn't part of the first key, however the text is compressed.
#[test]
fn a_byte_order_mark_is_not_text() {
    let dir = Sandbox::new();
    dir.write("keys", "a\nb\n");
    dir.ok("build -q f.tamis keys");
    let marked = "\u{FEFF}a\nb\na\n".as_bytes();
    dir.write("plain", marked);
    let mut names = vec!["plain"];
    for (name, encode) in FORMATS {
        dir.write(name, encode(marked));
        names.push(name);
    }
    for name in &names {
        assert_eq!(
            dir.ok(&format!("dedup -q {name}")).text(),
            "a\nb\n",
            "{name}"
        );
        assert_eq!(
            dir.ok(&format!("check f.tamis {name}")).text(),
            "a\nb\na\n",
            "{name}"
        );
    }
    let all = names.join(" ");
    assert_eq!(dir.ok(&format!("dedup -q {all}")).text(), "a\nb\n");
    dir.ok(&format!("build -q g.tamis {all}"));
    assert_eq!(
        dir.ok("info --json g.tamis")
            .text()
            .matches("\"keys\": 2")
            .count(),
        1
    );
    assert_eq!(dir.feed("dedup -q -z", "\u{FEFF}a\0a\0").out, b"a\0");
    assert_eq!(
        dir.feed("dedup -q -k jsonl:/id", "\u{FEFF}{\"id\":1}\n{\"id\":1}\n")
            .text(),
        "{\"id\":1}\n"
    );
    // Also in lists of file names.
    dir.write("list", "\u{FEFF}plain\n");
    assert_eq!(dir.ok("dedup -q --files-from list").text(), "a\nb\n");
    // Elsewhere it is text, and so it is in raw bytes.
    assert_eq!(
        dir.feed("dedup -q", "a\n\u{FEFF}a\n").text(),
        "a\n\u{FEFF}a\n"
    );
    assert_eq!(dir.ok("dedup -q --raw plain").out, marked);
}

/// Records of one character and a NUL look like UTF-16, but an explicit record end takes precedence.
#[test]
fn records_that_end_with_nul_are_not_utf_16() {
    let dir = Sandbox::new();
    let digits = (1..=9).map(|i| format!("{i}\0")).collect::<String>();
    let ran = dir.feed("dedup -z --strict", &digits);
    assert_eq!((ran.code, ran.text()), (0, &*digits), "{}", ran.err);
    assert!(!ran.err.contains("warning"), "{}", ran.err);
    let ran = dir.feed("dedup -k line(;) --strict", "1;\0;2;\0;");
    assert_eq!((ran.code, ran.text()), (0, "1;\0;2;"), "{}", ran.err);
    let marked = dir.feed("dedup -z --strict", b"\xFF\xFEa\0b\0");
    assert_eq!(marked.out, b"\xFF\xFEa\0b\0", "{}", marked.err);
    // Lines like that are refused.
    assert_eq!(dir.feed("dedup --strict", &digits).code, 2);
}

#[test]
fn what_has_no_lines_is_named() {
    let dir = Sandbox::new();
    dir.write("words", lines(0..3));
    dir.ok("build -q filter.tamis words");
    dir.ok("index -q all.index words");
    dir.write("wide", b"\xFF\xFEa\0\n\0b\0\n\0");
    dir.write("table.parquet", b"PAR1\x15\x04\x15\x0A\n\0PAR1");
    dir.write("page.pdf", b"%PDF-1.7\n%\xE2\xE3\n1 0 obj\n");
    dir.write("image.png", b"\x89PNG\r\n\x1A\n\0\0");
    dir.write("packed.gz", gzip(&gzip(b"text\n")));
    for (name, kind) in [
        ("filter.tamis", "a Tamis filter"),
        ("all.index", "an index of Tamis"),
        ("wide", "text in UTF-16"),
        ("table.parquet", "a Parquet file"),
        ("page.pdf", "a PDF file"),
        ("image.png", "a PNG image"),
        ("packed.gz", "gzip data inside"),
    ] {
        for command in ["dedup", "build --force new.tamis", "check filter.tamis"] {
            if command.contains(name) {
                continue;
            }
            let ran = dir.run(&format!("{command} {name}"));
            let said = format!("warning: {name}: this is {kind}");
            assert!(
                ran.code < 2 && ran.err.contains(&said),
                "{command}: {}",
                ran.err
            );
            let ran = dir.run(&format!("{command} --strict {name}"));
            assert_eq!(ran.code, 2, "{command} {name}: {}", ran.err);
            let ran = dir.run(&format!("{command} --raw {name}"));
            assert!(
                ran.code < 2 && !ran.err.contains("warning"),
                "{command}: {}",
                ran.err
            );
        }
    }
    // Raw bytes.
    let ran = dir.ok("dedup -q --raw packed.gz");
    let packed = dir.read("packed.gz");
    assert!(ran.out.starts_with(&packed[..10]));
    assert!(dir.ok("dedup words").err.lines().count() == 2);
}
