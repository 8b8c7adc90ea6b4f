//! `tamis clean`, end to end: runs the real command in a temporary folder.

#[path = "../common/mod.rs"]
#[allow(dead_code)]
mod common;
#[cfg(unix)]
mod killed;
mod refusals;
mod runs;

use common::Sandbox;
use std::fs;

/// Records with these texts.
fn records(texts: &[&str]) -> String {
    let record =
        |(id, text): (usize, &&str)| format!("{}\n", serde_json::json!({ "id": id, "text": text }));
    texts.iter().enumerate().map(record).collect()
}

/// The texts of the records in a file, unpacked by `tamis dedup`, which drops none because their names differ.
fn texts(dir: &Sandbox, name: &str) -> Vec<String> {
    let plain = dir.ok(&format!("dedup {name}"));
    let text = |line: &str| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        record["text"].as_str().unwrap().to_owned()
    };
    plain.text().lines().map(text).collect()
}

/// All files in a folder, with their content.
fn tree(dir: &Sandbox, name: &str) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let mut folders = vec![dir.path(name)];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(dir.path(name)).unwrap();
                files.push((name.display().to_string(), fs::read(&path).unwrap()));
            }
        }
    }
    files.sort();
    files
}
