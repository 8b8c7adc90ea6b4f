//! A file that may be one of pybloomfiltermmap3: opened, asked, added to and
//! opened again; as it is, and with a header that says what its length allows.

use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use tamis_formats::pybloomfilter::{Hash, Shape};
use tamis_python_core::pybloom::filter::Filter;

const KEY: &[u8] = b"key";
const EMPTY: &[u8] = b"";

static PATH: LazyLock<PathBuf> = LazyLock::new(|| {
    // In memory where that is possible: a million files are written.
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    };
    folder.join(format!("tamis-fuzz-{}.bloom", std::process::id()))
});

pub(crate) fn pybloomfilter(data: &[u8]) {
    let hash = data
        .last()
        .and_then(|byte| Hash::ALL.get(usize::from(byte % 8)));
    exercise(&PATH, data, hash.copied());
    // With a header whose fields are right, but for those the input chooses.
    let mut bytes = vec![0; 1280];
    let fields = data.get(..24).unwrap_or_default();
    let [bits, hashes, ..] = fields else {
        return;
    };
    let body = &data[24..];
    bytes[..9].copy_from_slice(b"MBITARRAY");
    let most = 8 * body.len() as u64;
    let bits = most.saturating_sub(u64::from(*bits) % 9);
    bytes[9..17].copy_from_slice(&bits.to_le_bytes());
    let len = [1200u32, 1056, 1048][usize::from(fields[2] % 3)];
    bytes[17..21].copy_from_slice(&len.to_le_bytes());
    bytes[21..37].copy_from_slice(&fields[8..24]);
    bytes[37..41].copy_from_slice(&(u32::from(*hashes)).to_le_bytes());
    for (byte, seed) in bytes[41..1065].iter_mut().zip(body.iter().rev()) {
        *byte = *seed;
    }
    bytes.extend_from_slice(body);
    exercise(&PATH, &bytes, hash.copied());
    let _ = std::fs::remove_file(&*PATH);
}

fn exercise(path: &Path, bytes: &[u8], hash: Option<Hash>) {
    // The count lies next to the bytes of the last one.
    let _ = std::fs::remove_file(path);
    std::fs::write(path, bytes).expect("the folder is ours");
    let decoded = Shape::decode(bytes, bytes.len() as u64, hash);
    let opened = Filter::open(path.to_path_buf(), false, hash);
    assert_eq!(decoded.is_ok(), opened.is_ok());
    let (Ok((shape, _)), Ok(filter)) = (decoded, opened) else {
        return;
    };
    // What the header says is written again as it was read.
    let again = Shape::decode(&shape.encode(), shape.file_len(), Some(shape.hash));
    let (again, _) = again.expect("what was encoded");
    assert_eq!(again.encode(), shape.encode());
    let ones = filter.bits.count_ones();
    let _ = filter.estimated_len();
    assert!(ones <= filter.num_bits().next_multiple_of(8));
    assert_eq!(filter.bits.any_set(), ones > 0);
    let had = [filter.contains(KEY), filter.contains(EMPTY)];
    drop(filter);

    let mut filter = Filter::open(path.to_path_buf(), true, hash)
        .unwrap_or_else(|_| panic!("it opened for reading"));
    assert_eq!(filter.add(KEY), had[0]);
    assert!(filter.contains(KEY) && filter.contains(EMPTY) >= had[1]);
    assert!(filter.bits.count_ones() >= ones);
    let (exact, ones) = (filter.exact_len(), filter.bits.count_ones());
    filter.sync().expect("the folder is ours");
    drop(filter);
    let mut filter =
        Filter::open(path.to_path_buf(), true, hash).unwrap_or_else(|_| panic!("it opened before"));
    assert!(filter.contains(KEY) && filter.bits.count_ones() == ones);
    if exact.is_some() {
        assert_eq!(filter.exact_len(), exact);
    }
    filter.clear();
    assert!(!filter.bits.any_set() && !filter.contains(KEY));
    let after = std::fs::read(path).expect("the folder is ours");
    assert_eq!(after.len(), bytes.len());
    // Nothing is written before the bits, nor behind them.
    let end = shape.file_len() as usize;
    assert_eq!(after[..1280], bytes[..1280]);
    assert_eq!(after[end..], bytes[end..]);
}
