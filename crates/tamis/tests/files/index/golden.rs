//! Index files kept for ever; see golden/README.md.

use super::*;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

const SECRET: SecretKey = SecretKey::new([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
const PROBES: usize = 300;

fn folder() -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "tests", "golden"]
        .iter()
        .collect()
}

fn kept(name: &str, made: &[u8]) {
    let path = folder().join(name);
    let bless = std::env::var("TAMIS_BLESS").is_ok_and(|v| v == "1");
    if bless && !path.exists() {
        fs::write(&path, made).unwrap();
    }
    let kept = fs::read(&path).unwrap_or_else(|e| panic!("{name}: {e}; see golden/README.md"));
    assert!(
        kept == made,
        "{name}: the format has changed, which orphans every index of every user; see golden/README.md"
    );
}

/// Name, rate, hasher, and each entry's number of keys: `None` is not indexed.
type Row = (&'static str, f64, Hasher, Vec<Option<usize>>);

fn rows() -> Vec<Row> {
    // No keys; one group, cut; two and more, the last cut or not; narrow groups; a bumping layer
    // with few or many rows after it.
    let sizes = [0, 1, 7, 63, 64, 65, 130, 500].map(Some);
    let mut all = sizes.to_vec();
    all.insert(3, None);
    vec![
        ("index-small", 0.01, Hasher::seeded(5), all),
        (
            "index-layers",
            0.3,
            Hasher::default(),
            vec![Some(2600), Some(3100)],
        ),
        (
            "index-keyed-apart",
            0.05,
            Hasher::keyed_apart(SECRET),
            vec![Some(40), None],
        ),
    ]
}

fn make(rate: f64, hasher: Hasher, entries: &[Option<usize>]) -> FileIndex {
    let options = options(rate)
        .hasher(hasher)
        .specs(["key", "tenth"])
        .unwrap();
    let mut builder = IndexBuilder::in_memory(&options);
    for (entry, keys) in entries.iter().enumerate() {
        let id = format!("entry-{entry}").into_bytes();
        let id = [&id[..], b"\xff\0"].concat();
        let number = entry as i64;
        let stamp = Stamp::new(entry as u64 + 1, number - 2, number << 40, u64::MAX);
        // Read just after it changed, or long after.
        let racy = stamp.after_reading(&stamp, std::time::SystemTime::UNIX_EPOCH);
        let stamp = [Some(stamp), Some(racy), None][entry % 3];
        match keys {
            None => builder.add_unindexed(id, stamp, "crème brûlée").unwrap(),
            Some(keys) => {
                let of = |step| (0..*keys).step_by(step).map(|i| format!("{entry}-{i}"));
                let filters = filters(&options, &[of(1).collect::<Vec<_>>(), of(10).collect()]);
                builder.add(id, stamp, &filters).unwrap();
            }
        }
    }
    builder.finish().unwrap()
}

#[test]
fn indexes_are_written_and_read_as_ever() {
    let mut json = String::from("{\n");
    for (name, rate, hasher, entries) in rows() {
        let file = format!("{name}.tamix");
        kept(&file, &make(rate, hasher, &entries).to_bytes());
        let path = folder().join(&file);
        let index = match hasher {
            Hasher::Keyed { key, .. } => FileIndex::open_keyed(path, &key),
            _ => FileIndex::open(path),
        };
        let index = index.unwrap();
        index.verify().unwrap();
        for (entry, keys) in entries.iter().enumerate() {
            for i in 0..keys.unwrap_or(50) {
                for spec in index.specs().take(if i % 10 == 0 { 2 } else { 1 }) {
                    let found = spec.candidates(format!("{entry}-{i}"));
                    assert!(found.iter().any(|found| found.number() == entry), "{name}");
                }
            }
        }
        // The answers that readers in other languages must also give.
        let sizes = entries
            .iter()
            .map(|keys| keys.map_or("null".into(), |keys| keys.to_string()));
        let sizes: Vec<String> = sizes.collect();
        write!(
            json,
            "  \"{file}\": {{\n    \"entries\": [{}],\n",
            sizes.join(", ")
        )
        .unwrap();
        for spec in index.specs() {
            let answers = (0..PROBES).map(|i| {
                let found = spec.candidates(format!("probe-{i}"));
                let numbers: Vec<String> = found.iter().map(|e| e.number().to_string()).collect();
                format!("[{}]", numbers.join(", "))
            });
            let end = if spec.number() == 0 {
                ",\n"
            } else {
                "\n  },\n"
            };
            let answers: Vec<String> = answers.collect();
            write!(
                json,
                "    \"{}\": [{}]{end}",
                spec.text(),
                answers.join(", ")
            )
            .unwrap();
        }
    }
    json.truncate(json.len() - 2);
    json.push_str("\n}\n");
    kept("index-answers.json", json.as_bytes());
}
