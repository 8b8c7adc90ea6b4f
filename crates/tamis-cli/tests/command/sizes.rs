//! A summary about a file reports the file's size, including its header.

use crate::common::Sandbox;
use serde_json::Value;

/// A size as the command prints it.
fn printed(bytes: u64) -> String {
    match bytes {
        ..1000 => format!("{bytes} B"),
        1000..9995 => format!("{:.2} kB", bytes as f64 / 1e3),
        _ => format!("{:.1} kB", bytes as f64 / 1e3),
    }
}

#[test]
fn a_summary_says_what_the_file_takes() {
    let dir = Sandbox::new();
    dir.write("none", "");
    dir.write("few", "apple\npear\nplum\n");
    dir.write("good", "fig\n");
    dir.ok("build -q few.tamis few");
    let mut least = u64::MAX;
    for line in [
        "build --allow-empty new none",
        "build --allow-empty --smallest new none",
        "build --allow-empty --allow good new none",
        "build --allow good new few",
        "build new few",
        "build --smallest new few",
        "build --format guava,keys=utf8 --allow-empty none -o new",
        "build --format dcso,keys=utf8 few -o new",
        "create new --capacity 1",
        "create new --capacity 100 --kind bloom",
        "create new --capacity 100 --kind counting",
        "create new --capacity 100 --kind cuckoo",
        "create new --capacity 100 --kind growing",
        "create new --capacity 10 --within 1h",
        "create new --capacity 100 --secret-file new.key",
        "create new --capacity 100 --secret",
        "copy few.tamis new",
    ] {
        let _ = std::fs::remove_file(dir.path("new"));
        let made = dir.ok(line);
        let bytes = std::fs::metadata(dir.path("new")).unwrap().len();
        least = least.min(bytes);
        let size = printed(bytes);
        assert!(
            made.err.contains(&format!(" {size}")),
            "{line}: {size}: {}",
            made.err
        );
        assert!(
            !made.err.contains("0.00 bits a key"),
            "{line}: {}",
            made.err
        );
        let key = match line.contains("secret-file") {
            true => " --secret-file new.key",
            false => "",
        };
        let info = dir.ok(&format!("info new{key}"));
        assert!(
            info.text().contains(&format!("size           {size}\n")),
            "{line}: {size}: {}",
            info.text()
        );
        if !line.contains("--format") {
            let json: Value =
                serde_json::from_slice(&dir.ok(&format!("info new --json{key}")).out).unwrap();
            assert_eq!(json["file_bytes"], bytes, "{line}");
            assert_eq!(json["bytes"], bytes - 128, "{line}");
        }
    }
    // A list without keys is only the header, and in other systems not even that.
    assert!(least < 128, "{least}");
}
