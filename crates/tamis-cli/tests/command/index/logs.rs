//! Many logs, of which an index finds what grep finds.

use super::*;
use std::path::Path;
use std::process::Command;

/// A request's id, 16 pseudo-random digits.
pub(super) fn id(number: u64) -> String {
    format!("{:016x}", (number + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
}

/// A log of about `bytes`, in which every request leaves three lines.
pub(super) fn log(file: u64, bytes: usize) -> String {
    let mut text = String::new();
    for request in 0.. {
        if text.len() >= bytes {
            break;
        }
        let id = id(file << 32 | request);
        let (second, ip) = (request / 20 % 60, request.wrapping_mul(2_654_435_761) >> 8);
        for (step, message) in ["accepted", "GET /cart/items?page=2", "done in 12 ms"]
            .iter()
            .enumerate()
        {
            text += &format!(
                "2026-11-15T05:03:{second:02}.{:03}Z INFO [{id}] 10.{}.{}.{}:443 {message}\n",
                request % 20 * 50 + step as u64,
                ip & 255,
                ip >> 8 & 255,
                ip >> 16 & 255,
            );
        }
    }
    text
}

fn compress(tool: &str, path: &Path) -> bool {
    let done = Command::new(tool)
        .arg("-f")
        .arg(path)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    done.is_ok_and(|status| status.success())
}

/// 200 logs of 50 KB, or in the long run 1,000 of 2 MB; every fifth is compressed.
#[test]
fn logs_are_found_like_grep_finds_them() {
    let long = std::env::var_os("TAMIS_LONG").is_some();
    let (files, bytes) = if long {
        (1000, 2 << 20)
    } else {
        (200, 50 << 10)
    };
    let dir = Sandbox::new();
    fs::create_dir(dir.path("logs")).unwrap();
    for file in 0..files {
        let name = format!("logs/{file:04}.log");
        dir.write(&name, log(file, bytes));
        if file % 5 == 0 {
            assert!(compress("gzip", &dir.path(&name)));
        }
    }
    // These tools exist on most systems; files that they can't compress stay plain.
    for (tool, file) in [("zstd", 1), ("bzip2", 2), ("xz", 3)] {
        let path = dir.path(&format!("logs/{file:04}.log"));
        if compress(tool, &path) {
            let _ = fs::remove_file(&path);
        }
    }
    dir.ok("index logs.index logs");

    let requests = bytes / 300;
    let asked = 40;
    let mut others = 0;
    for n in 0..asked {
        let file = n * 7919 % files;
        let id = id((file << 32) + n * 31 % requests as u64);
        let candidates = which(&dir, &format!("{id} logs.index"));
        let own = format!("logs/{file:04}.log");
        assert!(candidates.iter().any(|c| c.starts_with(&own)), "{id}");
        others += candidates.len() - 1;
    }
    let share = others as f64 / (asked * (files - 1)) as f64;
    assert!(share <= 0.015, "{share}");

    for n in [0, 1, 5, 6, files - 1] {
        let id = id(n << 32 | 7);
        let found = dir.ok(&format!("grep -n {id} logs.index"));
        // What grep finds in plain files, and zgrep in gzip files.
        let expected = Command::new("sh")
            .arg("-c")
            .arg("{ grep -rnF --include='*.log' \"$1\" logs; zgrep -nHF \"$1\" logs/*.gz; } | sort")
            .args(["sh", &id])
            .current_dir(dir.path("."))
            .output()
            .unwrap();
        let expected = String::from_utf8(expected.stdout).unwrap();
        match n {
            // Compressed in a format that neither of them reads.
            1 => assert_eq!(found.text().lines().count(), 3),
            _ => assert_eq!(found.text(), expected),
        }
        assert_eq!(lines(&expected).len(), if n == 1 { 0 } else { 3 });
    }
    // An address, and a phrase with white space, both of which occur in many files.
    let found = dir.ok("grep -c page=2 logs.index");
    assert_eq!(lines(found.text()).len(), files as usize);
    let naive = log(7, bytes);
    let naive = naive.lines().filter(|line| line.contains("12 ms")).count();
    let found = dir
        .command("grep -c")
        .args(["12 ms", "logs.index"])
        .output();
    let found = String::from_utf8(found.unwrap().stdout).unwrap();
    assert!(found.contains(&format!("logs/0007.log:{naive}\n")));
    let mut command = dir.command("grep -l");
    let asked = ["GET /cart/items?page=2", "logs.index"];
    let found = command.args(asked).output().unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    assert_eq!(lines(&found).len(), files as usize);
}
