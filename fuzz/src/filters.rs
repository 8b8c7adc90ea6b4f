//! Bytes and files that may be a filter.

use std::path::Path;
use tamis::{
    AnyFilter, Hash, Kind, Moment, Open, SecretKey,
    body::{Body, Map},
};
use xxhash_rust::xxh3::{xxh3_64, xxh3_64_with_seed};

/// When windows are asked and added to. By the clock, a forged window of short generations would
/// forget between two questions.
const AT: Moment = Moment::from_secs(1_800_000_000);

/// Bytes, copied to the heap: asked, changed and written again.
pub(crate) fn decode(data: &[u8]) {
    for bytes in [Some(data.to_vec()), mended(data)].into_iter().flatten() {
        for open in [open(), open().accept_loss()] {
            if let Ok(mut filter) = open.from_bytes(&bytes) {
                exercise(&filter, &bytes);
                change(&mut filter);
            }
        }
    }
}

/// Bytes in place, at any alignment, which depends on the bytes.
pub(crate) fn view(data: &[u8]) {
    let shift = data.iter().map(|byte| usize::from(*byte)).sum::<usize>() % 64;
    for bytes in [Some(data.to_vec()), mended(data)].into_iter().flatten() {
        let moved = [vec![0xff; shift], bytes].concat();
        let bytes = &moved[shift..];
        for open in [open(), open().accept_loss()] {
            if let Ok(filter) = open.view(bytes) {
                exercise(&filter, bytes);
            }
        }
    }
}

/// A file: loaded, mapped, shared and verified.
pub(crate) fn file(data: &[u8]) {
    let name = format!("tamis-fuzz-{}.tamis", std::process::id());
    let path = std::env::temp_dir().join(name);
    for bytes in [Some(data.to_vec()), mended(data)].into_iter().flatten() {
        std::fs::write(&path, &bytes).expect("a folder for temporary files");
        exercise_file(&path, &bytes);
    }
    let _ = std::fs::remove_file(&path);
}

fn exercise_file(path: &Path, bytes: &[u8]) {
    for open in [open(), open().accept_loss()] {
        let sound = AnyFilter::<Map>::verify(path, &open).is_ok();
        assert_eq!(open.load(path).is_ok(), sound);
        if let Ok(filter) = open.open(path) {
            // A body is mapped whether or not its checksum fits.
            let _ = filter.contains("key");
            if sound {
                exercise(&filter, bytes);
            }
        }
    }
    if let Ok(mut filter) = open().share(path) {
        let added = add(&mut filter);
        assert!(!added || has(&filter));
        filter.close().expect("a closed file");
        let found = has(&open().load(path).expect("a sound file"));
        assert!(!added || found);
    }
}

/// Adds a key; whether it must be found. A growing filter of forged layers may find no room for
/// another, and a forged window may have gone on to a time beyond.
fn add(filter: &mut AnyFilter) -> bool {
    match filter {
        AnyFilter::Window(window) => {
            let remembered = window.remembers(AT);
            window.insert("key", AT);
            remembered
        }
        other => other.insert("key").is_ok(),
    }
}

fn has<B: Body>(filter: &AnyFilter<B>) -> bool {
    filter.contains_at("key", AT)
}

/// Text that may be base64 of a filter, and base64 of anything.
pub(crate) fn base64(data: &[u8]) {
    if let Ok(text) = std::str::from_utf8(data)
        && let Ok(filter) = open().from_base64(text)
    {
        let again = filter.to_base64();
        let copy = open()
            .from_base64(&again)
            .expect("what was written is read");
        assert_eq!(copy.to_base64(), again);
    }
    if let Some(bytes) = mended(data)
        && let Ok(filter) = open().from_bytes(&bytes)
    {
        let mut text = filter.to_base64();
        // As mail would break it.
        text.insert_str(text.len() / 3, "\r\n ");
        let copy = open().from_base64(&text).expect("what was written is read");
        assert_eq!(copy.to_bytes(), filter.to_bytes());
    }
}

/// The secret of the keyed files among the seeds.
pub(crate) fn secret() -> SecretKey {
    SecretKey::new(std::array::from_fn(|i| i as u8))
}

/// Opens every file among the seeds.
fn open() -> Open {
    Open::new().key(secret())
}

/// The bytes with right checksums, magic, version and length fields, so that
/// the checks behind those are reached, which chance would hardly do.
pub(crate) fn mended(data: &[u8]) -> Option<Vec<u8>> {
    if data.len() < 128 {
        return None;
    }
    let mut bytes = data.to_vec();
    let body_len = (data.len() as u64 - 128).to_le_bytes();
    bytes[..8].copy_from_slice(b"TAMIS\r\n\x1a");
    bytes[8..10].copy_from_slice(&1u16.to_le_bytes());
    bytes[80..88].copy_from_slice(&body_len);
    let header_sum = xxh3_64(&bytes[..88]);
    bytes[88..96].copy_from_slice(&header_sum.to_le_bytes());
    let keys = u64::from_le_bytes(bytes[96..104].try_into().unwrap());
    let body_sum = xxh3_64_with_seed(&bytes[128..], keys);
    bytes[104..112].copy_from_slice(&body_sum.to_le_bytes());
    Some(bytes)
}

/// Asks a decoded filter all there is to ask.
fn exercise<B: Body>(filter: &AnyFilter<B>, bytes: &[u8]) {
    let keys = [&bytes[..8], b"", b"key", &bytes[64..]];
    let mut found = [false; 4];
    filter.contains_many(&keys, &mut found);
    let hashes = keys.map(|key| filter.hasher().hash(key));
    let mut found_at = [false; 4];
    filter.contains_many_at(&hashes, AT, &mut found_at);
    for (i, hash) in hashes.into_iter().enumerate() {
        assert_eq!(filter.contains_at(hash, AT), found_at[i]);
        if filter.kind() != Kind::Window {
            assert_eq!(
                (filter.contains(keys[i]), found[i]),
                (found_at[i], found_at[i])
            );
        }
    }
    let hashes: Vec<Hash> = (0..200).map(Hash::from_u64).collect();
    filter.contains_many(&hashes, &mut [false; 200]);
    let _ = (filter.keys(), filter.estimated_keys());
    assert!((0.0..=1.0).contains(&filter.rate_now()));
    reencodes(filter, bytes);
}

/// A filter is written as it was read: to the byte where it had a checksum and
/// no mark, and else but for those.
fn reencodes<B: Body>(filter: &AnyFilter<B>, bytes: &[u8]) {
    let again = filter.to_bytes();
    let copy = open().from_bytes(&again).expect("what was written is read");
    assert_eq!(copy.to_bytes(), again);
    if filter.kind() == Kind::Growing {
        // Its capacity and count are those of its layers, whatever a forged
        // header says, and a tail that was not finished is dropped.
        return;
    }
    assert_eq!(again[..96], bytes[..96], "the fixed part");
    assert_eq!(again[128..], bytes[128..], "the body");
    let marked = bytes[112..128] != [0; 16];
    // A window counts in its body.
    if !marked && filter.kind() != Kind::Window {
        assert_eq!(again[96..104], bytes[96..104], "the count");
        if bytes[104..112] != [0; 8] {
            assert_eq!(again, bytes);
        }
    }
}

/// Changes a filter in every way that its kind allows.
fn change(filter: &mut AnyFilter) {
    let before = filter.to_bytes();
    let copy = open()
        .from_bytes(&before)
        .expect("what was written is read");
    if matches!(filter.kind(), Kind::Bloom | Kind::Blocked) {
        filter.insert("key").expect("both kinds take every key");
        assert!(filter.contains("key"));
        filter.union_with(&copy).expect("like itself");
        filter.intersect_with(&copy).expect("like itself");
        assert_eq!(filter.to_bytes()[128..], before[128..]);
    } else {
        // Others may refuse, for want of room or at all; they say so.
        let added = add(filter);
        assert!(!added || has(filter));
        let _ = (filter.insert("key"), filter.contains("key"));
        if let AnyFilter::Window(window) = filter {
            for at in [
                Moment::MIN,
                Moment::from_secs(0),
                Moment::from_secs(1 << 31),
                Moment::MAX,
            ] {
                let remembered = window.remembers(at);
                window.insert("key", at);
                assert!(window.contains("key", at) || !remembered);
                window.insert_many_mut(&["key", "other"], at, &mut [false; 2]);
            }
            let _ = window.generations();
        }
        let _ = filter.remove("key");
        let _ = filter.union_with(&copy);
        let _ = filter.intersect_with(&copy);
    }
    let _ = filter.clear();
}
