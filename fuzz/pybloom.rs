//! The modules of the Python package that map files of pybloomfiltermmap3, and
//! what the target does with them. They need no Python.
#![allow(dead_code, reason = "the package uses all of it")]

#[path = "../crates/tamis-python/src/pybloom/bits.rs"]
mod bits;
#[path = "../crates/tamis-python/src/pybloom/file.rs"]
mod file;
#[path = "../crates/tamis-python/src/pybloom/filter.rs"]
mod filter;

use filter::Filter;
use std::path::Path;
use tamis_formats::pybloomfilter::Shape;

pub(crate) fn exercise(path: &Path, bytes: &[u8]) {
    // The count is beside the bytes of the last one.
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).expect("the folder is ours");
    let decoded = Shape::decode(bytes, bytes.len() as u64);
    let opened = Filter::open(path.to_path_buf(), false);
    assert_eq!(decoded.is_ok(), opened.is_ok());
    let (Ok(shape), Ok(filter)) = (decoded, opened) else {
        return;
    };
    // What the header says is written again as it was read.
    let again = Shape::decode(&shape.encode(), shape.file_len()).expect("what was encoded");
    assert_eq!(again.encode(), shape.encode());
    let ones = filter.bits.count_ones();
    let _ = filter.estimated_len();
    assert!(ones <= filter.num_bits().next_multiple_of(8));
    assert_eq!(filter.bits.any_set(), ones > 0);
    let had = [filter.contains(b"key"), filter.contains(b"")];
    drop(filter);

    let mut filter =
        Filter::open(path.to_path_buf(), true).unwrap_or_else(|_| panic!("it opened for reading"));
    assert_eq!(filter.add(b"key"), had[0]);
    assert!(filter.contains(b"key") && filter.contains(b"") >= had[1]);
    assert!(filter.bits.count_ones() >= ones);
    let (exact, ones) = (filter.exact_len(), filter.bits.count_ones());
    filter.sync().expect("the folder is ours");
    drop(filter);
    let mut filter =
        Filter::open(path.to_path_buf(), true).unwrap_or_else(|_| panic!("it opened before"));
    assert!(filter.contains(b"key") && filter.bits.count_ones() == ones);
    if exact.is_some() {
        assert_eq!(filter.exact_len(), exact);
    }
    filter.clear();
    assert!(!filter.bits.any_set() && !filter.contains(b"key"));
    let after = std::fs::read(path).expect("the folder is ours");
    assert_eq!(after.len(), bytes.len());
    // Nothing is written before the bits, nor behind them.
    let end = shape.file_len() as usize;
    assert_eq!(after[..1280], bytes[..1280]);
    assert_eq!(after[end..], bytes[end..]);
}
