//! Recognising, unpacking and mapping files.

use crate::common::words;
use std::path::PathBuf;
use tamis_formats::{Bytes, Create, Error, Foreign, Format, Hint};

/// Large files are recognised by their ends, and other files aren't read.
#[test]
fn ends_are_enough() {
    const END: usize = 64 << 10;
    let may_be = |file: &[u8]| {
        let (start, end) = (file.len().min(END), file.len().saturating_sub(END));
        tamis_formats::may_be(&file[..start], &file[end..], file.len() as u64)
    };
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut known = 0;
    for folder in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let files = std::fs::read_dir(folder.path()).into_iter().flatten();
        for file in files.map(|file| file.unwrap().path()) {
            let bytes = std::fs::read(&file).unwrap();
            let unknown = tamis_formats::open(&bytes, Hint::default());
            if !matches!(unknown, Err(tamis_formats::Error::Unknown)) {
                known += 1;
                assert!(may_be(&bytes), "{}", file.display());
            }
        }
    }
    assert!(known > 40, "{known}");
    for create in [
        Create::BitsAndBlooms { json: false },
        Create::BitsAndBlooms { json: true },
        Create::Dcso,
        Create::guava(),
        Create::Npm { seed: 1 },
        Create::Poppy(tamis_formats::Optimise::None),
        Create::Poppy(tamis_formats::Optimise::Best),
        Create::Pybloomfilter { seeds: Vec::new() },
        Create::RedisBloom {
            growth: Some(2),
            chunks: true,
        },
        Create::Spark { seed: None },
    ] {
        let name = format!("{create:?}");
        let mut filter = tamis_formats::create(create, 1_000_000, 0.01).unwrap();
        filter.insert(b"key").unwrap();
        assert!(may_be(&filter.to_bytes()), "{name}");
    }
    for junk in [
        &b"x"[..],
        b"{\"a\": 1, ",
        &[0xFF],
        b"\0",
        b"log line\n",
        b"",
    ] {
        assert!(!may_be(&junk.repeat(1 << 18)), "{junk:?}");
    }
    // Larger than any memory.
    assert!(!tamis_formats::may_be(b"x", b"x", u64::MAX));
}

#[test]
fn unpacking_is_bounded() {
    use std::io::Write as _;
    let gzip = |bytes: &[u8]| {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(bytes).unwrap();
        packed.finish().unwrap()
    };
    let filter = tamis_formats::create(Create::Dcso, 100_000, 0.01).unwrap();
    let file = gzip(&filter.to_bytes());
    let allowing = |most: usize| Hint {
        most_unpacked: Some(most as u64),
        ..Hint::default()
    };
    let len = filter.to_bytes().len();
    assert!(
        tamis_formats::open(&file, allowing(len))
            .unwrap()
            .is_gzipped()
    );
    let forged = {
        // The last bytes give the unpacked length; a forged file gives less.
        let mut forged = file.clone();
        let end = forged.len();
        forged[end - 4..].fill(0);
        forged
    };
    for (file, most) in [(&file, len - 1), (&file, 0), (&forged, len / 2)] {
        let refused = tamis_formats::open(file, allowing(most));
        let Err(tamis_formats::Error::Unpacked { most: told }) = refused else {
            panic!("{most}: {refused:?}");
        };
        assert_eq!(told, most as u64);
    }
}

/// A mapped file gives the same answers as its bytes, in every format.
#[test]
fn mapped_files_answer_as_bytes_do() {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/samples");
    let mut files = Vec::new();
    for format in std::fs::read_dir(folder).unwrap() {
        let format = format.unwrap().path();
        if format.is_dir() {
            files.extend(
                std::fs::read_dir(format)
                    .unwrap()
                    .map(|file| file.unwrap().path()),
            );
        }
    }
    let keys = words(0..600);
    let names = [None, Some(&b"s"[..]), Some(b"bfscale"), Some(b"cfkick")];
    let mut opened = 0;
    for path in &files {
        let bytes = std::fs::read(path).unwrap();
        for (format, name) in Format::ALL.iter().flat_map(|f| names.map(|name| (f, name))) {
            let hint = Hint {
                format: Some(*format),
                name,
                ..Hint::default()
            };
            let map = Bytes::map(&std::fs::File::open(path).unwrap()).unwrap();
            let (map, memory) = (
                tamis_formats::open(map, hint),
                tamis_formats::open(&bytes, hint),
            );
            let (map, memory) = match (map, memory) {
                (Ok(map), Ok(memory)) => (map, memory),
                (map, memory) => {
                    let text =
                        |error: Result<Foreign<'_>, Error>| error.err().map(|e| e.to_string());
                    assert_eq!(text(map), text(memory), "{}", path.display());
                    continue;
                }
            };
            opened += 1;
            let mut many = vec![false; keys.len()];
            map.contains_many(&keys, &mut many);
            for (key, many) in keys.iter().zip(many) {
                assert_eq!(
                    map.contains(key.as_bytes()),
                    memory.contains(key.as_bytes())
                );
                assert_eq!(map.contains(key.as_bytes()), many);
            }
            assert_eq!(map.fill(), memory.fill());
            assert_eq!(map.rate_now().to_bits(), memory.rate_now().to_bits());
            assert_eq!(map.keys_now(), memory.keys_now());
            assert_eq!(map.to_bytes(), memory.to_bytes());
            let (mut map, mut memory) = (map, memory);
            assert_eq!(map.insert(b"new").ok(), memory.insert(b"new").ok());
            assert_eq!(map.to_bytes(), memory.to_bytes());
        }
        assert_eq!(std::fs::read(path).unwrap(), bytes, "a sample was changed");
    }
    assert!(opened > 100, "{opened}");
}
