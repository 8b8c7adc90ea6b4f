//! Filters of libraries in Go, Rust and C.

use crate::common::{again, again_for, has, sample, strangers, words};
use tamis_formats::{Create, Error, Format, Hint, Keys, Optimise};

#[test]
fn dcso() {
    let keys = words(0..500);
    let file = sample("dcso/debian_cli_0.2.4_n1000_p01_key0-499.bloom");
    let filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Dcso);
    has(&filter, &keys, Keys::Utf8);
    let facts = filter.facts();
    assert_eq!(
        (facts.capacity, facts.rate, facts.keys),
        (Some(1_000), Some(0.01), Some(500))
    );
    again(Create::Dcso, &keys, Keys::Utf8, &file);
    assert!(sample("poppy/poppy_v1_n1000_p01_key0-499.bloom") == file);

    // User data after the bits is kept, and gzip is unpacked.
    let with_data = sample("dcso/dcso_v1_n1000_p01_key0-499.bloom");
    let packed = sample("dcso/dcso_v1_n1000_p01_key0-499.bloom.gz");
    for file in [&with_data, &packed] {
        let mut filter = tamis_formats::open(file, Hint::default()).unwrap();
        has(&filter, &keys, Keys::Utf8);
        assert_eq!(filter.facts().data, 10);
        assert!(filter.insert(b"one more").unwrap());
        let written = filter.to_bytes();
        let again = tamis_formats::open(&written, Hint::default()).unwrap();
        assert_eq!((again.facts().data, again.facts().keys), (10, Some(501)));
        assert!(again.contains(b"one more"));
    }
}

#[test]
fn bits_and_blooms() {
    let keys = words(0..500);
    for (json, end) in [(false, "bin"), (true, "json")] {
        let file = sample(&format!("bitsandblooms/bb_v3_n1000_p01_key0-499.{end}"));
        let filter = tamis_formats::open(&file, Hint::default()).unwrap();
        assert_eq!(filter.format(), Format::BitsAndBlooms);
        has(&filter, &keys, Keys::Utf8);
        again(Create::BitsAndBlooms { json }, &keys, Keys::Utf8, &file);
    }
}

#[test]
fn poppy() {
    let small = sample("poppy/poppy_v2_n1000_p01_key0-499.bloom");
    let filter = tamis_formats::open(&small, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Poppy);
    assert_eq!(filter.facts().keys, Some(499)); // one seemed to be there already
    has(&filter, &words(0..500), Keys::Utf8);
    again(
        Create::Poppy(Optimise::None),
        &words(0..500),
        Keys::Utf8,
        &small,
    );

    let keys: Vec<String> = (0..5_000)
        .map(|i| {
            if i % 2 == 1 {
                format!("some-long-key-{i}")
            } else {
                format!("k{i}")
            }
        })
        .collect();
    let levels = [
        Optimise::None,
        Optimise::Space,
        Optimise::Speed,
        Optimise::Best,
    ];
    for (i, optimise) in levels.into_iter().enumerate() {
        let file = sample(&format!("poppy/poppy_v2_opt{i}_n20000_p001.bloom"));
        has(
            &tamis_formats::open(&file, Hint::default()).unwrap(),
            &keys,
            Keys::Utf8,
        );
        again_for(
            Create::Poppy(optimise),
            20_000,
            0.001,
            &keys,
            Keys::Utf8,
            &file,
        );
    }

    let mut full = tamis_formats::create(Create::Poppy(Optimise::None), 10, 0.01).unwrap();
    for key in words(0..10) {
        full.insert(key.as_bytes()).unwrap();
    }
    assert!(matches!(
        full.insert(b"one more"),
        Err(Error::Full { capacity: 10, .. })
    ));
    assert!(!full.insert(b"key3").unwrap());
}

#[test]
fn fastbloom() {
    let file = sample("fastbloom/fastbloom_0.17_n1000_p01.json");
    let mut filter = tamis_formats::open(&file, Hint::default()).unwrap();
    assert_eq!(filter.format(), Format::Fastbloom);
    for word in words(0..500) {
        assert!(filter.contains(&Keys::RustStr.encode(word.as_bytes()).unwrap()));
    }
    for number in 0..100u64 {
        assert!(filter.contains(&number.to_le_bytes()));
    }
    assert_eq!(strangers(&filter, Keys::RustStr), 7);
    // The order of fields may change.
    let json = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).unwrap();
    assert_eq!(json(&filter.to_bytes()), json(&file));
    let new = Keys::RustStr.encode(b"new").unwrap();
    assert!(filter.insert(&new).unwrap());
    let written = filter.to_bytes();
    let again = tamis_formats::open(&written, Hint::default()).unwrap();
    assert!(again.contains(&new) && written != file);

    // A hasher that couldn't be written back as it was read is refused.
    let text = String::from_utf8(file).unwrap();
    let large = text.replacen("\"v2\":", "\"v2\":3.68019531863202025e+19,\"v\":", 1);
    assert_ne!(large, text);
    let refused = tamis_formats::open(large.as_bytes(), Format::Fastbloom).unwrap_err();
    assert!(refused.to_string().contains("64 bits"), "{refused}");
}

#[test]
fn fastfilter() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples/fastfilter");
    let mut seen = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let path = file.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let file = std::fs::read(&path).unwrap();
        let filter = tamis_formats::open(&file, Hint::default());
        let filter = filter.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert_eq!(filter.format(), Format::FastFilter, "{name}");
        let key = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_string();
        for i in 0..500 {
            let key = Keys::Uint64.encode(key(i).as_bytes()).unwrap().into_owned();
            assert!(filter.contains(&key), "{name}: {i}");
        }
        // As many false positives as in the crate xorf.
        let wrong = (0..20_000u64).filter(|i| {
            let key = i.wrapping_mul(0xD6E8_FEB8_6659_FD93) | 1 << 63;
            filter.contains(&key.to_le_bytes())
        });
        let expected = match &*name {
            name if name.contains("xor8") => 70,
            name if name.contains("fuse8") => 91,
            _ => 0,
        };
        assert_eq!(wrong.count(), expected, "{name}");
        let about = filter.keys_now().unwrap();
        assert!((485.0..545.0).contains(&about), "{name}: {about}");
        assert!(!filter.contains(b"seven b"), "no key of another length");
        assert!(filter.check_writable().is_err());
        assert!(filter.to_bytes() == file, "{name}");
        for end in [0, 7, 8, 15, 16, 20, 24, 28, file.len() - 1] {
            let cut = tamis_formats::open(&file[..end], Format::FastFilter);
            assert!(cut.is_err(), "{name}, {end} bytes");
        }
        seen += 1;
    }
    assert_eq!(seen, 15);
}
