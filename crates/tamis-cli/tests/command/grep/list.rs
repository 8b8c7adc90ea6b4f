//! The sixty queries on a small tree; benchmarks run them on a large one.

use super::peer::{TREE, plant, same};
use super::queries::sixty;

fn the_sixty(files: u64, bytes: u64, index: &[&str]) {
    let (dir, tree) = plant(files, bytes, 60);
    let mut args = vec!["index", "-q", "ix", TREE];
    args.extend(index);
    dir.ok(&args.join(" "));
    let different: Vec<String> = (sixty(&tree).iter())
        .filter_map(|query| same(&dir, "ix", query).err())
        .collect();
    assert!(
        different.is_empty(),
        "{} of 60:\n{}",
        different.len(),
        different.join("\n\n")
    );
}

#[test]
fn words_find_what_rg_finds() {
    the_sixty(150, 6_000_000, &[]);
}

#[test]
fn trigrams_find_what_rg_finds() {
    the_sixty(150, 6_000_000, &["--key", "trigram"]);
}

/// Files with several segments, some of them compressed.
#[test]
fn long_files_find_what_rg_finds() {
    the_sixty(80, 120_000_000, &[]);
}
