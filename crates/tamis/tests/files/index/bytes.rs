//! Truncated, damaged and forged bytes: an error, or an index that answers.

use super::*;
use std::ops::Range;
use xxhash_rust::xxh3::xxh3_64;

// According to docs/format.md; not taken from the library, because they check it.
const ENTRIES: Range<usize> = 16..24;
const SPECS: Range<usize> = 56..60;
const WIDTH: Range<usize> = 60..62;
const NARROW: Range<usize> = 62..64;
const DIRECTORY: Range<usize> = 64..72;
const TEXT_LEN: Range<usize> = 72..80;
const DIRECTORY_CHECKSUM: Range<usize> = 80..88;
const HEADER_CHECKSUM: Range<usize> = 88..96;
const RESERVED: Range<usize> = 120..128;

fn number(bytes: &[u8], field: Range<usize>) -> usize {
    u64::from_le_bytes(bytes[field].try_into().unwrap()) as usize
}

fn put(bytes: &mut [u8], field: Range<usize>, value: u64) {
    let len = field.len();
    bytes[field].copy_from_slice(&value.to_le_bytes()[..len]);
}

/// Corrects both checksums.
fn reseal(bytes: &mut [u8]) {
    if let Some(directory) = bytes.get(number(bytes, DIRECTORY)..) {
        let sum = xxh3_64(directory);
        put(bytes, DIRECTORY_CHECKSUM, sum);
    }
    let sum = xxh3_64(&bytes[..HEADER_CHECKSUM.start]);
    put(bytes, HEADER_CHECKSUM, sum);
}

/// Two specs; entries of all sorts and sizes, including one with two layers.
fn sample() -> Vec<u8> {
    let options = options(0.1).specs(["one", "two"]).unwrap();
    let mut builder = IndexBuilder::in_memory(&options);
    for (entry, keys) in [0u64, 1, 70, 300, 2600].into_iter().enumerate() {
        let mut all = EntryKeys::new(&options);
        for key in 0..keys {
            all.add(0, Hash::from_u64(key));
            all.add(1, Hash::from_u64(key / 10));
        }
        let stamp = (entry % 2 == 1).then(|| Stamp::new(1, 2, 3, 4));
        let filters = all.build().unwrap();
        builder
            .add(format!("entry {entry}"), stamp, &filters)
            .unwrap();
    }
    builder
        .add_unindexed("secret", None, "no permission")
        .unwrap();
    builder.finish().unwrap().to_bytes()
}

/// Runs every query.
fn exercise(bytes: &[u8]) {
    let Ok(index) = FileIndex::view(bytes) else {
        return;
    };
    let hashes: Vec<Hash> = (0..40).map(Hash::from_u64).collect();
    for spec in index.specs() {
        let (_, _) = (spec.text(), spec.keys());
        let many = spec.candidates_many(&hashes);
        let alone = spec.candidates(hashes[0]);
        assert_eq!(many[0].len(), alone.len());
    }
    for entry in index.entries() {
        let _ = format!("{entry:?}, {}", entry.keys(0));
    }
    let (_, _, _) = (index.verify(), index.info(), index.by_id());
    let mut builder = IndexBuilder::in_memory(&IndexOptions::of(&index));
    let copied = index.entries().try_for_each(|entry| builder.copy(&entry));
    if copied.is_ok() {
        assert!(
            builder.finish().unwrap().to_bytes() == bytes,
            "there is one way to write it"
        );
    }
}

#[test]
fn every_shorter_or_longer_file_is_an_error() {
    let bytes = sample();
    FileIndex::view(&bytes).unwrap().verify().unwrap();
    for len in 0..bytes.len() {
        let error = FileIndex::view(&bytes[..len]).unwrap_err();
        assert!(
            matches!(error, Error::CorruptIndex { .. }),
            "{len}: {error}"
        );
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(FileIndex::view(&longer).is_err());
}

/// Damage to the header and the directory is noticed on opening, damage to a filter when it is
/// verified or copied.
#[test]
fn every_flipped_bit_is_noticed() {
    let sound = sample();
    let directory = number(&sound, DIRECTORY);
    for bit in 0..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let Ok(index) = FileIndex::view(&bytes) else {
            continue;
        };
        let body = 128..directory;
        assert!(body.contains(&(bit / 8)), "bit {bit} was not noticed");
        if bit % 11 == 0 {
            let error = index.verify().unwrap_err().to_string();
            assert!(error.contains("filter checksum"), "{error}");
            let mut builder = IndexBuilder::in_memory(&IndexOptions::of(&index));
            let copied = index.entries().try_for_each(|entry| builder.copy(&entry));
            assert!(copied.is_err(), "the damage must not spread");
        }
    }
}

/// A damaged filter never rules out an entry, and the others answer as before.
#[test]
fn damage_makes_candidates_and_never_a_false_no() {
    let sound = sample();
    let directory = number(&sound, DIRECTORY);
    let whole = FileIndex::view(&sound).unwrap();
    let sizes = [0u64, 1, 70, 300, 2600];
    let mut damages: Vec<(Range<usize>, u8)> = (128..directory)
        .step_by(97)
        .map(|at| (at..at + 1, 0x55))
        .collect();
    // A lost sector, a lost page, everything lost.
    damages.extend([512, 4096].map(|len| (512..512 + len, 0)));
    damages.push((128..directory, 0xff));
    for (range, value) in damages {
        let mut bytes = sound.clone();
        bytes[range.start..range.end.min(directory)].fill(value);
        let index = FileIndex::view(&bytes).unwrap();
        let damaged = |number: usize| index.entry(number).verify().is_err();
        assert!((0..sizes.len()).any(damaged), "{range:?}");
        for (spec, asked) in index.specs().zip(whole.specs()) {
            let hashes: Vec<Hash> = (0..2600).step_by(7).map(Hash::from_u64).collect();
            let before = asked.candidates_many(&hashes);
            for (found, before) in spec.candidates_many(&hashes).iter().zip(before) {
                let found: Vec<usize> = found.iter().map(|entry| entry.number()).collect();
                for entry in before {
                    assert!(found.contains(&entry.number()), "{range:?}: a false no");
                }
            }
            for hash in (0..2600).step_by(501).map(Hash::from_u64) {
                let found = spec.candidates(hash);
                for entry in asked.candidates(hash) {
                    let same =
                        |found: &tamis::index::Entry<'_, _>| found.number() == entry.number();
                    assert!(found.iter().any(same), "{range:?}: a false no");
                }
            }
        }
    }
}

/// The pages of a large filter are checked separately: damage to one doesn't affect the answers
/// from others.
#[test]
fn damage_of_a_page_concerns_what_lies_in_it() {
    let options = options(0.001);
    let index = of_sizes(&options, &[400_000]);
    let mut bytes = index.to_bytes();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let index = FileIndex::view(&bytes).unwrap();
    let absent = (0..20_000u64).map(|key| Hash::from_u64(1 << 63 | key));
    let yes = absent.filter(|hash| !index.spec("key").unwrap().candidates(*hash).is_empty());
    let pages = bytes.len() / 1024;
    // A key needs one or two pages, and 1 in 1,000 is found anyway.
    let most = 20_000 * 2 / pages + 20_000 / 1000;
    let yes = yes.count();
    assert!(
        (40..most * 2).contains(&yes),
        "{yes} of at most about {most}"
    );
    assert!(index.verify().is_err());
}

/// Some of several sorts of keys may be unknown.
#[test]
fn an_unknown_spec_leaves_the_others() {
    let options = options(1e-6).specs(["one", "two"]).unwrap();
    let mut builder = IndexBuilder::in_memory(&options);
    let mut keys = EntryKeys::new(&options);
    keys.add(0, "here");
    keys.add(1, "forgotten");
    keys.set_unknown(1, "cut short");
    keys.set_unknown(1, "cut short");
    builder.add("half", None, &keys.build().unwrap()).unwrap();
    builder
        .add("none", None, &EntryKeys::new(&options).build().unwrap())
        .unwrap();
    let bytes = builder.finish().unwrap().to_bytes();
    exercise(&bytes);
    let index = FileIndex::from_bytes(bytes).unwrap();
    let found = |spec: &str, key: &str| index.spec(spec).unwrap().candidates(key).len();
    assert_eq!((found("one", "here"), found("one", "there")), (1, 0));
    assert_eq!((found("two", "forgotten"), found("two", "there")), (1, 1));
    let entry = index.entry(0);
    assert_eq!(entry.unindexed(), Some("cut short"));
    assert_eq!((entry.is_indexed(0), entry.is_indexed(1)), (true, false));
    assert_eq!((entry.keys(0), entry.keys(1)), (1, 0));
    assert_eq!(index.info().unindexed, 1);
    assert_eq!(index.info().keys, [1, 0]);
}

/// Every byte of header and directory, forged with correct checksums.
#[test]
fn forged_bytes_never_panic() {
    let sound = sample();
    exercise(&sound);
    let directory = number(&sound, DIRECTORY);
    for at in (8..128).chain(directory..sound.len()) {
        for value in [
            0,
            1,
            0x7f,
            0x80,
            0xff,
            sound[at] ^ 1,
            sound[at].wrapping_add(1),
        ] {
            let mut bytes = sound.clone();
            bytes[at] = value;
            reseal(&mut bytes);
            exercise(&bytes);
        }
    }
    for at in (8..120).chain(directory..sound.len() - 8) {
        for value in [0, 1 << 31, 1 << 32, 1 << 60, u64::MAX, u64::MAX / 40] {
            let mut bytes = sound.clone();
            put(&mut bytes, at..at + 8, value);
            reseal(&mut bytes);
            exercise(&bytes);
        }
    }
}

#[test]
fn each_forged_field_is_named() {
    let sound = sample();
    let directory = number(&sound, DIRECTORY);
    let entries = number(&sound, ENTRIES);
    let records = directory + 2 * entries * 32;
    let sums = records + entries * 48;
    let ends = sums + directory.div_ceil(1024) * 4;
    let text = ends + 16;
    // The third entry's records: its filter for spec one, and its own.
    let (filter, entry) = (directory + 2 * 32, records + 2 * 48);
    type Forgery<'a> = (&'a str, Range<usize>, u64);
    let forgeries: &[Forgery<'_>] = &[
        ("magic of an index", 4..5, b'S'.into()),
        ("format version", 8..10, 2),
        ("reserved bytes", 10..11, 1),
        ("hash", 11..12, 3),
        ("flags", 12..16, 1 << 31),
        ("file length", ENTRIES, entries as u64 + 1),
        ("file length", ENTRIES, u64::MAX),
        ("rate", 24..32, f64::NAN.to_bits()),
        ("rate", 24..32, 1.5f64.to_bits()),
        ("fingerprint width", 24..32, 0.01f64.to_bits()),
        ("fingerprint width", WIDTH, 0),
        ("fingerprint width", WIDTH, 33),
        ("fingerprint width", NARROW, 0xffff),
        ("key specs", SPECS, 0),
        ("key specs", SPECS, 256),
        ("key specs", SPECS, u32::MAX.into()),
        ("file length", DIRECTORY, 128),
        ("file length", DIRECTORY, u64::MAX - 7),
        ("file length", TEXT_LEN, 0),
        ("file length", TEXT_LEN, u64::MAX),
        ("reserved bytes", RESERVED, 1),
        ("filter record", filter..filter + 8, 0),
        ("filter record", filter..filter + 8, u64::MAX),
        ("filter record", filter + 8..filter + 16, 0),
        ("filter record", filter + 8..filter + 16, u64::MAX),
        ("filter record", filter + 16..filter + 24, 1),
        ("filter record", filter + 16..filter + 24, 1 << 40),
        ("end of a filter", filter + 24..filter + 32, u64::MAX << 32),
        ("end of an entry's text", entry..entry + 8, u64::MAX),
        ("end of an entry's text", entry..entry + 8, 0),
        (
            "end of an entry's text",
            entry + 8..entry + 12,
            u32::MAX.into(),
        ),
        ("entry flags", entry + 12..entry + 16, 8),
        ("entry flags", entry + 12..entry + 16, 2),
        ("entry flags", entry + 16..entry + 24, 1),
        ("entry flags", entry + 12..entry + 16, 4),
        ("reason of an indexed entry", entry + 8..entry + 12, 1),
        ("end of a key spec", ends..ends + 8, 1 << 50),
        ("end of a key spec", ends + 8..ends + 16, 1),
        ("key spec", text..text + 1, 0xff),
        (
            "key specs",
            text..text + 3,
            u64::from_le_bytes(*b"two\0\0\0\0\0"),
        ),
        ("reason", sound.len() - 1..sound.len(), 0xff),
    ];
    for (what, field, value) in forgeries {
        let mut bytes = sound.clone();
        put(&mut bytes, field.clone(), *value);
        reseal(&mut bytes);
        let error = FileIndex::view(&bytes).unwrap_err().to_string();
        let named = format!("index: {what}: expected");
        assert!(error.contains(&named), "{what}, {field:?}: {error}");
    }
}

/// An index without entries, and one whose only entry is empty.
#[test]
fn nothing_is_an_index_too() {
    let options = options(0.01);
    let empty = IndexBuilder::in_memory(&options).finish().unwrap();
    let empty = FileIndex::from_bytes(empty.to_bytes()).unwrap();
    assert!(empty.is_empty() && empty.candidates("key").is_empty());
    empty.verify().unwrap();
    assert_eq!(empty.info().filter_bytes, 0);

    let mut builder = IndexBuilder::in_memory(&options);
    let none = EntryKeys::new(&options).build().unwrap();
    builder.add("", None, &none).unwrap();
    let index = FileIndex::from_bytes(builder.finish().unwrap().to_bytes()).unwrap();
    assert!(index.candidates("key").is_empty());
    assert_eq!(index.entry(0).id(), b"");
    exercise(&index.to_bytes());
}
