//! Hand-made corrupt files: each gives a clear error, never a panic, and never an allocation of the
//! size that the header claims.

mod fields;

use crate::common::*;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::fs;
use std::path::Path;
use tamis::{AnyFilter, Blocked, Bloom, Error, Hasher, Open, SecretKey};

/// Remembers the largest allocation of each thread.
struct Watchful;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

fn watch(size: usize) {
    LARGEST.with(|largest| largest.set(largest.get().max(size)));
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Watchful {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        watch(layout.size());
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(place, layout) }
    }
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        watch(size);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.realloc(place, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watchful = Watchful;

/// Blocked, one line a key, 100 keys.
fn blocked() -> Vec<u8> {
    let filter = Blocked::with_hasher(100, 0.01, Hasher::seeded(3)).unwrap();
    for i in 0..100u64 {
        filter.insert(i.to_le_bytes());
    }
    filter.to_bytes()
}

fn bloom() -> Vec<u8> {
    let filter = Bloom::new(100, 0.01).unwrap();
    filter.insert("key");
    filter.to_bytes()
}

fn keyed() -> Vec<u8> {
    let hasher = Hasher::keyed(SecretKey::new([9; 16]));
    Blocked::with_hasher(100, 0.01, hasher).unwrap().to_bytes()
}

fn keyed_apart() -> Vec<u8> {
    let hasher = Hasher::keyed_apart(SecretKey::new([9; 16]));
    Blocked::with_hasher(100, 0.01, hasher).unwrap().to_bytes()
}

/// The errors of every method that opens bytes or a file with these bytes.
fn errors(bytes: &[u8]) -> Vec<(&'static str, Option<Error>)> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("corrupt.tamis");
    fs::write(&path, bytes).unwrap();
    let open = Open::new().key(SecretKey::new([9; 16]));
    LARGEST.set(0);
    let errors = vec![
        ("decode", open.from_bytes(bytes).err()),
        ("view", open.view(bytes).err()),
        ("load", open.load(&path).err()),
        ("map", open.open(&path).err()),
        ("share", open.share(&path).err()),
    ];
    assert!(LARGEST.get() < 1 << 16, "allocated {} bytes", LARGEST.get());
    if errors.iter().all(|(_, e)| e.is_some()) {
        assert_eq!(
            fs::read(&path).unwrap(),
            bytes,
            "a refused file was changed"
        );
    }
    errors
}

/// Keeps a refused file for readers in other languages, which must also refuse it.
fn keep(name: &str, bytes: &[u8]) {
    let Ok(folder) = std::env::var("TAMIS_CORRUPT_FILES") else {
        return;
    };
    let name: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    // Files may share a name, so the checksum distinguishes them; identical files are kept once.
    let sum = xxhash_rust::xxh3::xxh3_64(bytes) as u32;
    fs::create_dir_all(&folder).unwrap();
    fs::write(format!("{folder}/{name}-{sum:08x}.tamis"), bytes).unwrap();
}

/// Every method to open it fails with this error.
fn refused(name: &str, bytes: &[u8], expected: &str) {
    keep(name, bytes);
    for (way, error) in errors(bytes) {
        let text = error.map(|e| e.to_string());
        let text = text.unwrap_or_else(|| panic!("{name}: {way} opened it"));
        assert!(
            text.contains(expected),
            "{name}: {way}: {text:?} lacks {expected:?}"
        );
        assert!(
            text.len() < 400,
            "{name}: {way}: a message of {} bytes",
            text.len()
        );
    }
}

#[test]
fn the_undamaged_files_open() {
    for bytes in [blocked(), bloom(), keyed(), keyed_apart()] {
        for (way, error) in errors(&bytes) {
            assert!(error.is_none(), "{way}: {error:?}");
        }
    }
}

/// Shape and body length agree on an enormous size, but the file doesn't.
#[test]
fn enormous_claims_allocate_nothing() {
    for lines in [3, 1 << 20, 1 << 30, 1 << 44, 1u64 << 54] {
        let mut bytes = blocked();
        bytes[SHAPE_1].copy_from_slice(&lines.to_le_bytes());
        bytes[BODY_LEN].copy_from_slice(&(lines * 64).to_le_bytes());
        reseal_header(&mut bytes);
        let expected = format!(
            "file length: expected {} bytes as the header says, got 256 bytes",
            lines * 64 + 128
        );
        refused("enormous blocked", &bytes, &expected);
    }
    for bits in [10_000, 1 << 40, 1u64 << 63] {
        let mut bytes = bloom();
        let body: u64 = bits.div_ceil(512) * 64;
        bytes[SHAPE_1].copy_from_slice(&bits.to_le_bytes());
        bytes[BODY_LEN].copy_from_slice(&body.to_le_bytes());
        reseal_header(&mut bytes);
        refused("enormous bloom", &bytes, "file length: expected");
    }
}

#[test]
fn files_of_another_length() {
    for sound in [blocked(), bloom()] {
        refused(
            "empty",
            &[],
            "length: expected at least 128 bytes of header, got 0 bytes",
        );
        for len in 0..sound.len() {
            let expected = match len {
                0..128 => format!("at least 128 bytes of header, got {len} bytes"),
                _ => format!(
                    "file length: expected {} bytes as the header says, got {len} bytes",
                    sound.len()
                ),
            };
            // Every length in memory, one of each class on disk.
            let error = Open::new()
                .from_bytes(&sound[..len])
                .unwrap_err()
                .to_string();
            assert!(error.contains(&expected), "{len}: {error}");
            if [1, 8, 64, 96, 127, 128, 129, 192, sound.len() - 1].contains(&len) {
                refused("truncated", &sound[..len], &expected);
            }
        }
        for more in [1, 63, 64, 4096] {
            let longer = [sound.clone(), vec![0; more]].concat();
            refused("trailing bytes", &longer, "file length: expected");
        }
        refused(
            "twice",
            &[sound.clone(), sound.clone()].concat(),
            "file length: expected",
        );
    }
}

/// `load`, `decode` and `view` notice every flipped bit. `map` and `share`, which don't read the
/// body, notice those in the header's fixed part and in the mark; they leave the count and the
/// checksum to `verify`.
#[test]
fn every_flipped_bit_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("flipped.tamis");
    for sound in [blocked(), bloom(), keyed(), keyed_apart()] {
        let open = Open::new().key(SecretKey::new([9; 16]));
        for bit in 0..sound.len() * 8 {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(open.view(&bytes).is_err(), "view: bit {bit}");
            // In files, test only one bit of each byte, a different one for each.
            if bit % 8 != bit / 8 % 8 {
                continue;
            }
            fs::write(&path, &bytes).unwrap();
            let error = open.load(&path).expect_err("load").to_string();
            let at = bit / 8;
            let expected = match at {
                _ if MAGIC.contains(&at) => "magic: expected",
                _ if VERSION.contains(&at) => "format version: expected 1",
                ..96 => "header checksum: expected",
                _ if BOOT.contains(&at) => "was open for writing",
                _ => "body checksum: expected",
            };
            assert!(error.contains(expected), "byte {at}: {error}");
            let seen_by_map = !expected.contains("body");
            assert_eq!(open.open(&path).is_err(), seen_by_map, "map: byte {at}");
            if seen_by_map {
                assert!(open.share(&path).is_err(), "share: byte {at}");
            } else {
                let error = AnyFilter::verify(&path, &open).expect_err("verify");
                assert!(
                    error.to_string().contains(expected),
                    "verify: byte {at}: {error}"
                );
            }
        }
    }
}

/// Golden files with forged fields and correct checksums: refused files are refused before any
/// large allocation, and the others open and answer.
#[test]
fn golden_files_that_claim_something_else() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "tamis"))
        .collect();
    files.sort();
    let open = Open::new()
        .key(SecretKey::new(std::array::from_fn(|i| i as u8)))
        .accept_loss();
    let mut kept = 0;
    for path in files {
        let sound = fs::read(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        let mut damaged: Vec<(String, Vec<u8>)> = Vec::new();
        for (field, at) in [
            ("flags", FLAGS),
            ("rate", RATE),
            ("shape-1", SHAPE_1),
            ("shape-2a", SHAPE_2A),
            ("shape-2b", SHAPE_2B),
            ("shape-3", SHAPE_3),
            ("body-len", BODY_LEN),
            ("first-word", BODY..BODY + 8),
            ("second-word", BODY + 8..BODY + 16),
            ("last-word", sound.len() - 8..sound.len()),
        ] {
            for byte in at.clone() {
                for value in [0, 1, 0x7f, 0x80, 0xff, sound[byte].wrapping_add(1)] {
                    let mut bytes = sound.clone();
                    bytes[byte] = value;
                    damaged.push((format!("{name}-{field}"), bytes));
                }
            }
            for value in [0, 0xff] {
                let mut bytes = sound.clone();
                bytes[at.clone()].fill(value);
                damaged.push((format!("{name}-{field}"), bytes));
            }
        }
        for (name, mut bytes) in damaged {
            reseal_header(&mut bytes);
            reseal_body(&mut bytes);
            LARGEST.set(0);
            let opened = open.from_bytes(&bytes);
            let most = 4 * bytes.len().max(1 << 14);
            assert!(LARGEST.get() < most, "{name}: {} bytes", LARGEST.get());
            match opened {
                Ok(filter) => {
                    let _ = filter.contains("key");
                }
                Err(_) => {
                    keep(&name, &bytes);
                    kept += 1;
                }
            }
        }
        for len in [127, 128, sound.len() - 1] {
            assert!(
                open.from_bytes(&sound[..len]).is_err(),
                "{name}: {len} bytes"
            );
            keep(&format!("{name}-cut"), &sound[..len]);
        }
    }
    assert!(kept > 1_000, "only {kept} are refused");
}

#[test]
fn text_mode_damage_is_told_by_the_magic() {
    let replaced = |from: &[u8], to: &[u8]| {
        let bytes = blocked();
        let at = bytes.windows(from.len()).position(|w| w == from).unwrap();
        [&bytes[..at], to, &bytes[at + from.len()..]].concat()
    };
    for (name, bytes, got) in [
        ("CRLF to LF", replaced(b"\r\n", b"\n"), r"got TAMIS\n\x1a"),
        ("LF to CRLF", replaced(b"\n", b"\r\n"), r"got TAMIS\r\r\n"),
        (
            "cut at end of text",
            replaced(b"\x1a", b""),
            r"got TAMIS\r\n\x01",
        ),
        ("a text file", b"apple\npear\n".repeat(20), r"got apple\npe"),
        (
            "gzip",
            [&[0x1f, 0x8b, 8, 0, 0, 0, 0, 0][..], &[0; 300]].concat(),
            r"got \x1f\x8b\x08",
        ),
        ("zeros", vec![0; 256], r"got \x00\x00"),
        (
            "as UTF-8 with a mark",
            [&b"\xef\xbb\xbf"[..], &blocked()].concat(),
            r"got \xef\xbb\xbf",
        ),
    ] {
        refused(name, &bytes, r"magic: expected TAMIS\r\n\x1a");
        refused(name, &bytes, got);
    }
}

#[test]
fn places_that_are_no_files() {
    let dir = tempfile::tempdir().unwrap();
    let all = |path: &Path| -> [String; 3] {
        [
            Blocked::load(path).unwrap_err().to_string(),
            Blocked::open(path).unwrap_err().to_string(),
            Blocked::share(path).unwrap_err().to_string(),
        ]
    };
    for error in all(dir.path()) {
        assert!(error.contains("directory"), "{error}");
        assert!(error.contains(dir.path().to_str().unwrap()), "{error}");
    }
    for error in all(&dir.path().join("missing.tamis")) {
        assert!(error.contains("missing.tamis"), "{error}");
        assert!(error.contains("No such file"), "{error}");
    }
    #[cfg(target_os = "linux")]
    for error in all(Path::new("/dev/null")) {
        assert!(error.contains("expected a regular file"), "{error}");
    }
}

#[test]
fn another_kind_is_named() {
    let error = Bloom::from_bytes(&blocked()).unwrap_err().to_string();
    assert!(error.contains("expected bloom, got blocked"), "{error}");
    let error = Blocked::view(&bloom()).unwrap_err().to_string();
    assert!(error.contains("expected blocked, got bloom"), "{error}");
}

#[test]
fn base64_garbage() {
    let sound = Blocked::from_bytes(&blocked()).unwrap().to_base64();
    for (name, text, expected) in [
        (
            "empty",
            String::new(),
            "length: expected at least 128 bytes",
        ),
        (
            "white space",
            " \r\n\t ".into(),
            "length: expected at least 128 bytes",
        ),
        (
            "prose",
            "not base64, surely!".into(),
            "base64: expected the text of `to_base64`",
        ),
        (
            "a letter beyond ASCII",
            format!("{sound}é"),
            "base64: expected",
        ),
        ("NUL", format!("{sound}\0"), "base64: expected"),
        (
            "URL alphabet",
            sound.replacen('A', "-", 1),
            "base64: expected",
        ),
        (
            "cut within a group",
            sound[..sound.len() - 5].into(),
            "base64: expected",
        ),
        (
            "no padding",
            sound.trim_end_matches('=').into(),
            "base64: expected",
        ),
        ("more padding", format!("{sound}=="), "base64: expected"),
        (
            "cut at a group",
            sound[..200].into(),
            "file length: expected",
        ),
        (
            "twice, padded within",
            format!("{sound}{sound}"),
            "base64: expected",
        ),
        ("of garbage", "AAAA".repeat(100), "magic: expected"),
        (
            "letters swapped",
            sound.chars().rev().collect(),
            "base64: expected",
        ),
    ] {
        let error = Open::new().from_base64(&text).expect_err(name).to_string();
        assert!(error.contains(expected), "{name}: {error}");
    }
}
