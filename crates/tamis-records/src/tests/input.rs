use super::common::{Random, Trickle};
use crate::input::{Input, InputError, Packing};
use crate::progress::Progress;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// All bytes of an input, and how it ended.
fn read_all(mut input: Input) -> (Vec<u8>, Result<(), InputError>) {
    let mut all = Vec::new();
    let mut buffer = vec![0; 70_000];
    loop {
        match input.read(&mut buffer) {
            Ok(0) => return (all, Ok(())),
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(e) => return (all, Err(e)),
        }
    }
}

fn read_bytes(bytes: &[u8], step: usize) -> (Vec<u8>, Result<(), InputError>) {
    match Input::from_read(
        "somewhere",
        Trickle::new(bytes, step),
        Packing::Recognised,
        &Arc::default(),
    ) {
        Ok(input) => read_all(input),
        Err(e) => (Vec::new(), Err(e)),
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8]) -> Vec<u8> {
    zstd::encode_all(bytes, 1).unwrap()
}

fn bzip2(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    bzip2::read::BzEncoder::new(bytes, bzip2::Compression::fast())
        .read_to_end(&mut all)
        .unwrap();
    all
}

fn xz(bytes: &[u8]) -> Vec<u8> {
    let mut all = Vec::new();
    liblzma::read::XzEncoder::new(bytes, 1)
        .read_to_end(&mut all)
        .unwrap();
    all
}

type Encode = fn(&[u8]) -> Vec<u8>;
const FORMATS: [(&str, Encode); 4] = [("gzip", gzip), ("zstd", zstd), ("bzip2", bzip2), ("xz", xz)];

fn text() -> Vec<u8> {
    let mut random = Random(4);
    (0..20_000)
        .flat_map(|i| format!("line {i} {}\n", random.below(1 << 30)).into_bytes())
        .collect()
}

#[test]
fn every_format_is_recognised_and_members_follow_each_other() {
    let text = text();
    for (name, encode) in FORMATS {
        for step in [1, 7, 1 << 20] {
            for plain in [&text[..], b"", b"x"] {
                let (got, end) = read_bytes(&encode(plain), step);
                assert!(
                    got == plain && end.is_ok(),
                    "{name}, {} bytes: {end:?}",
                    plain.len()
                );
            }
            let two = [encode(&text), encode(b""), encode(b"and more\n")].concat();
            let (got, end) = read_bytes(&two, step);
            assert!(
                got == [&text[..], b"and more\n"].concat() && end.is_ok(),
                "{name}: {end:?}"
            );
        }
    }
}

#[test]
fn zstd_with_a_skippable_frame_in_front() {
    let bytes = [
        &[0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 1, 2, 3],
        &zstd(b"hello")[..],
    ]
    .concat();
    let (got, end) = read_bytes(&bytes, 1 << 20);
    assert!(got == b"hello" && end.is_ok(), "{end:?}");
}

#[test]
fn plain_bytes_pass_even_if_they_look_like_the_beginning_of_a_format() {
    let plain: [&[u8]; 14] = [
        b"",
        b"a",
        b"\n",
        b"BZh9 is how bzip2 starts\n",
        b"BZh",
        b"B",
        b"BZh91AY&",
        b"\x1F",
        b"\x1F\x8B",
        b"\x1F\x8B\x07",
        b"\x28\xB5\x2F",
        b"\xFD7zXZ",
        b"P*M",
        b"\xFD\xFF\x00\x01",
    ];
    for bytes in plain {
        for step in [1, 2, 100] {
            let (got, end) = read_bytes(bytes, step);
            assert!(got == bytes && end.is_ok(), "{bytes:?}");
        }
    }
}

#[test]
fn a_stream_cut_short_gives_what_is_there_and_says_so() {
    let text = text();
    for (name, encode) in FORMATS {
        let whole = encode(&text);
        for cut in [1, 2, 9, whole.len() / 3, whole.len() * 2 / 3] {
            let (got, end) = read_bytes(&whole[..whole.len() - cut], 1 << 20);
            assert!(text.starts_with(&got), "{name}");
            let message = end.unwrap_err().to_string();
            assert_eq!(
                message,
                format!("somewhere: the {name} data is cut short"),
                "{cut} bytes missing"
            );
            if cut < 3 {
                assert!(
                    got.len() + 150_000 > text.len(),
                    "{name}: {} of {} bytes",
                    got.len(),
                    text.len()
                );
            }
        }
        // Also inside the second member: the first one is complete.
        let two = [whole.clone(), whole.clone()].concat();
        let (got, end) = read_bytes(&two[..whole.len() + 20], 1 << 20);
        assert!(got.starts_with(&text) && end.is_err(), "{name}");
    }
}

#[test]
fn damage_is_an_error_and_never_wrong_bytes_of_an_earlier_part() {
    let text = text();
    for (name, encode) in FORMATS {
        let whole = encode(&text);
        let mut random = Random(5);
        for _ in 0..30 {
            let mut damaged = [whole.clone(), whole.clone()].concat();
            let at = whole.len() + 30 + random.below(whole.len() - 40);
            damaged[at] ^= 1 << random.below(8);
            let (got, end) = read_bytes(&damaged, 1 << 20);
            assert!(got.starts_with(&text), "{name}");
            let Err(e) = end else { continue }; // a bit that means nothing
            assert!(
                e.to_string()
                    .starts_with(&format!("somewhere: the {name} data is")),
                "{e}"
            );
        }
    }
}

#[test]
fn files_are_named_in_errors_and_counted() {
    let folder = std::env::temp_dir().join(format!("tamis-input-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let error = Input::open(
        &folder.join("missing.txt"),
        Packing::Recognised,
        &Arc::default(),
    )
    .err()
    .unwrap();
    assert!(error.to_string().contains("missing.txt: "), "{error}");
    let error = Input::open(&folder, Packing::Recognised, &Arc::default())
        .map(read_all)
        .map_or_else(Some, |(_, end)| end.err())
        .unwrap();
    assert!(error.to_string().contains("tamis-input-"), "{error}");

    let packed = gzip(&text());
    let path = folder.join("lines"); // no telling extension
    std::fs::write(&path, &packed).unwrap();
    let progress = Arc::new(Progress::default());
    let (got, end) =
        read_all(Input::open(Path::new(&path), Packing::Recognised, &progress).unwrap());
    assert!(got == text() && end.is_ok());
    assert_eq!(
        progress.consumed.load(Ordering::Relaxed),
        packed.len() as u64
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Tapes and block devices leave zeros after the data.
#[test]
fn zeros_around_members_are_padding() {
    let text = text();
    for (name, encode) in FORMATS {
        for zeros in [1, 4, 511, 300_000] {
            for step in [7, 1 << 20] {
                let padding = vec![0; zeros];
                let one = [encode(&text), padding.clone()].concat();
                let (got, end) = read_bytes(&one, step);
                assert!(got == text && end.is_ok(), "{name}, {zeros}: {end:?}");
                let two = [encode(b"one"), padding.clone(), encode(b"two"), padding].concat();
                let (got, end) = read_bytes(&two, step);
                assert!(got == b"onetwo" && end.is_ok(), "{name}, {zeros}: {end:?}");
            }
        }
    }
}

#[test]
fn what_follows_compressed_data_is_an_error_of_its_own() {
    let text = text();
    for (name, encode) in FORMATS {
        for garbage in [&b"x"[..], b"\0\0x", b"garbage\n", &[0xFF; 1000]] {
            for plain in [&text[..], b"short", b""] {
                for step in [1, 1 << 20] {
                    let (got, end) = read_bytes(&[&encode(plain), garbage].concat(), step);
                    assert!(got == plain, "{name}, {garbage:?}");
                    let error = end.unwrap_err();
                    assert!(error.is_trailing(), "{name}: {error}");
                }
            }
        }
        // Bytes that begin like another member are a truncated one.
        for cut in 1..9 {
            let (got, end) = read_bytes(&[&encode(b"all"), &encode(b"of it")[..cut]].concat(), 3);
            assert!(got == b"all", "{name}");
            let error = end.unwrap_err();
            assert!(!error.is_trailing(), "{name}, {cut}: {error}");
        }
    }
}

#[test]
fn raw_bytes_stay_packed() {
    let packed = gzip(b"text");
    let source = Trickle::new(&packed, 5);
    let input = Input::from_read("raw", source, Packing::Ignored, &Arc::default()).unwrap();
    let (got, end) = read_all(input);
    assert!(got == packed && end.is_ok());
}
