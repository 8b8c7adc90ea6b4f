//! Texts, compressed in every format, read from any position.

use super::common::Random;
use crate::input::{
    Compression, Encoding, Entrance, InputError, Spacing, TextKind, TextReader, text_from,
};
use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::sync::Arc;

type Encode = fn(&[u8], &mut Random) -> Vec<u8>;
const FORMATS: [(Compression, Encode); 4] = [
    (Compression::Gzip, gzip),
    (Compression::Zstd, zstd),
    (Compression::Bzip2, bzip2),
    (Compression::Xz, xz),
];
/// Dense entrances, so that even short texts have some.
const CLOSE: Spacing = Spacing {
    text: 1_000,
    text_inside: 20_000,
    windows: 1,
};

fn gzip(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let level = flate2::Compression::new(random.below(10) as u32);
    let mut encoder = flate2::GzBuilder::new();
    if random.below(2) == 0 {
        encoder = encoder.filename("a name").comment("a comment").extra("BC");
    }
    let mut encoder = encoder.write(Vec::new(), level);
    for part in bytes.chunks(1 + random.below(100_000)) {
        encoder.write_all(part).unwrap();
        if random.below(4) == 0 {
            encoder.flush().unwrap(); // an empty stored block
        }
    }
    encoder.finish().unwrap()
}

fn zstd(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut packed = zstd::encode_all(bytes, 1 + random.below(5) as i32).unwrap();
    if random.below(3) == 0 {
        // As the seekable format has it after its frames, and pzstd before each.
        let table = random.bytes(&[0, 7, 0x28, 0xB5], 40);
        packed.extend([0x5E, 0x2A, 0x4D, 0x18]);
        packed.extend((table.len() as u32).to_le_bytes());
        packed.extend(table);
    }
    packed
}

fn bzip2(bytes: &[u8], _: &mut Random) -> Vec<u8> {
    let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// Packs in blocks, like multithreaded xz.
fn xz(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let check = [liblzma::stream::Check::Crc64, liblzma::stream::Check::None][random.below(2)];
    let stream = liblzma::stream::Stream::new_easy_encoder(0, check).unwrap();
    let mut encoder = liblzma::write::XzEncoder::new_stream(Vec::new(), stream);
    for block in bytes.chunks(1 + random.below(60_000)) {
        encoder.write_all(block).unwrap();
        encoder.flush().unwrap();
    }
    encoder.finish().unwrap()
}

/// Lines that compress well, badly, or not at all.
fn text(random: &mut Random, len: usize) -> Vec<u8> {
    let mut text = Vec::with_capacity(len + 300);
    while text.len() < len {
        match random.below(5) {
            0 => text.extend(random.bytes(&[0, 10, 65, 200], 300)),
            1 => text.extend(format!("{:032x}\n", random.next()).bytes()),
            _ => text.extend(format!("line {} of a log, as usual\n", random.below(50)).bytes()),
        }
    }
    text.truncate(len);
    text
}

fn file(bytes: &[u8]) -> File {
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    file.rewind().unwrap();
    file
}

fn again(file: &File) -> File {
    file.try_clone().unwrap()
}

/// The whole text, its entrances, and how reading ended.
fn read(
    file: &File,
    spacing: Spacing,
    random: &mut Random,
) -> (Vec<u8>, TextKind, Vec<Entrance>, io::Result<()>) {
    again(file).rewind().unwrap();
    let mut reader = TextReader::with_spacing(again(file), spacing, &Arc::default()).unwrap();
    let (mut text, mut entrances) = (Vec::new(), Vec::new());
    let mut buffer = vec![0; 1 + random.below(50_000)];
    let end = loop {
        match reader.read(&mut buffer) {
            Ok(0) => break Ok(()),
            Ok(count) => text.extend(&buffer[..count]),
            Err(error) => break Err(error),
        }
        entrances.extend(reader.take_entrances());
    };
    entrances.extend(reader.take_entrances());
    (text, reader.kind(), entrances, end)
}

fn rest(
    file: &File,
    kind: TextKind,
    entrance: Option<&Entrance>,
    offset: u64,
) -> io::Result<Vec<u8>> {
    let mut rest = Vec::new();
    text_from(again(file), kind, entrance, offset)?.read_to_end(&mut rest)?;
    Ok(rest)
}

/// Compares the text from random offsets, through random entrances, with the whole text.
fn check(file: &File, kind: TextKind, entrances: &[Entrance], text: &[u8], random: &mut Random) {
    assert!(entrances.is_sorted_by_key(|entrance| (entrance.text, entrance.at)));
    for entrance in entrances {
        let same = Entrance::from_bytes(&entrance.to_bytes());
        assert_eq!(same.as_ref(), Some(entrance));
        let got = rest(file, kind, same.as_ref(), entrance.text).unwrap();
        assert!(
            got == text[entrance.text as usize..],
            "{kind:?} {}",
            entrance.at
        );
    }
    for _ in 0..6 {
        let offset = random.below(text.len() + 1) as u64;
        let fitting = entrances.iter().filter(|entrance| entrance.text <= offset);
        let fitting: Vec<_> = fitting.map(Some).chain([None]).collect();
        let entrance = fitting[random.below(fitting.len())];
        let got = rest(file, kind, entrance, offset).unwrap();
        assert!(
            got == text[offset as usize..],
            "{kind:?} at {offset} from {entrance:?}"
        );
    }
    let behind = text.len() as u64 + 10;
    assert_eq!(rest(file, kind, entrances.last(), behind).unwrap(), b"");
}

#[test]
fn text_is_the_same_from_any_entrance() {
    let mut random = Random(1);
    for round in 0..40 {
        let (compression, encode) = FORMATS[round % FORMATS.len()];
        let (mut all, mut packed) = (Vec::new(), Vec::new());
        for _ in 0..1 + random.below(6) {
            let longest = [10, 3_000, 200_000][random.below(3)];
            let len = random.below(longest);
            let part = text(&mut random, len);
            packed.extend(encode(&part, &mut random));
            if random.below(5) == 0 {
                let padding = [4, 12, 17][random.below(3)]; // xz has multiples of four
                packed.extend(vec![0; padding]);
            }
            all.extend(part);
        }
        let file = file(&packed);
        let (got, kind, entrances, end) = read(&file, CLOSE, &mut random);
        assert!(got == all && end.is_ok(), "{compression:?}");
        assert_eq!(kind.compression, compression);
        check(&file, kind, &entrances, &all, &mut random);
    }
}

/// Also inside a member, wherever a block begins.
#[test]
fn long_gzip_members_are_entered_in_the_middle() {
    let mut random = Random(2);
    let mut inside = 0;
    for level in [0, 1, 6, 9] {
        let all = text(&mut random, 1_500_000);
        let mut encoder =
            flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::new(level));
        encoder.write_all(&all).unwrap();
        let mut packed = encoder.finish().unwrap();
        packed.extend(gzip(b"and more\n", &mut random));
        let file = file(&packed);
        let (got, kind, entrances, end) = read(&file, CLOSE, &mut random);
        let all = [all, b"and more\n".to_vec()].concat();
        assert!(got == all && end.is_ok());
        inside += entrances.len();
        check(&file, kind, &entrances, &all, &mut random);
        // Too short to be entered anywhere except at the start of the other member.
        let far = read(&file, Spacing::default(), &mut random).2;
        assert_eq!(far.len(), 1);
    }
    assert!(inside > 40, "{inside}");
}

#[test]
fn blocks_of_xz_are_entered() {
    let mut random = Random(10);
    for _ in 0..6 {
        let parts = [0, 1, 2].map(|_| text(&mut random, 300_000));
        let mut packed = Vec::new();
        for part in &parts {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
            for block in part.chunks(20_000 + random.below(5_000)) {
                encoder.write_all(block).unwrap();
                encoder.flush().unwrap();
            }
            packed.extend(encoder.finish().unwrap());
            packed.extend(vec![0; 4 * random.below(3)]);
        }
        let all = parts.concat();
        let file = file(&packed);
        let (got, kind, entrances, end) = read(&file, CLOSE, &mut random);
        assert!(got == all && end.is_ok());
        assert!(entrances.len() >= 30, "{}", entrances.len());
        check(&file, kind, &entrances, &all, &mut random);
    }
}

/// The index is read before anything has verified it.
#[test]
fn wrong_indexes_of_xz_do_no_harm() {
    let mut random = Random(11);
    let one = text(&mut random, 5_000);
    let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
    for block in one.chunks(1_500) {
        encoder.write_all(block).unwrap();
        encoder.flush().unwrap();
    }
    let whole = encoder.finish().unwrap().repeat(2);
    let all = one.repeat(2);
    for _ in 0..3_000 {
        let mut bytes = whole.clone();
        for _ in 0..1 + random.below(3) {
            // Usually in the last index and its footer.
            let at = bytes.len() - 1 - random.below(bytes.len().min(60));
            bytes[at] = [0, 0xFF, random.next() as u8][random.below(3)];
        }
        bytes.truncate(bytes.len() - random.below(2) * random.below(20));
        let file = file(&bytes);
        let (got, kind, entrances, end) = read(&file, CLOSE, &mut random);
        assert!(end.is_err() || got == all || got == one);
        for entrance in entrances.iter().rev().take(2) {
            let _ = rest(&file, kind, Some(entrance), entrance.text);
        }
    }
}

#[test]
fn readers_can_be_handed_to_threads() {
    fn is_send<T: Send>() {}
    is_send::<TextReader>();
    is_send::<Entrance>();
}

#[test]
fn windows_take_no_more_than_their_share() {
    let mut random = Random(3);
    let all = text(&mut random, 3_000_000);
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(&all).unwrap();
    let packed = encoder.finish().unwrap();
    for share in [10, 100] {
        let spacing = Spacing {
            windows: share,
            ..CLOSE
        };
        let (_, _, entrances, _) = read(&file(&packed), spacing, &mut random);
        let sizes: Vec<_> = entrances.iter().map(|e| e.to_bytes().len()).collect();
        let (sum, last) = (sizes.iter().sum::<usize>(), sizes.last().copied());
        let allowed = packed.len() / share as usize + last.unwrap_or(0);
        assert!(sum <= allowed, "{sum} of {allowed}");
    }
}

#[test]
fn damaged_and_cut_files_end_with_an_error_and_never_a_panic() {
    let mut random = Random(4);
    for round in 0..120 {
        let (compression, encode) = FORMATS[round % FORMATS.len()];
        let first = text(&mut random, 60_000);
        let second = text(&mut random, 60_000);
        let all = [first.clone(), second.clone()].concat();
        let whole = [encode(&first, &mut random), encode(&second, &mut random)].concat();
        let whole_file = file(&whole);
        let (_, kind, entrances, _) = read(&whole_file, CLOSE, &mut random);
        let mut bytes = whole.clone();
        let at = random.below(bytes.len());
        let is_cut = random.below(2) == 0;
        if is_cut {
            bytes.truncate(at);
        } else {
            bytes[at] ^= 1 << random.below(8);
        }
        let damaged = file(&bytes);
        // From the beginning: an error, or correct text (if the bit was unused or the cut was between members), unless
        // the signature is damaged or there is no checksum, as in frames of zstd and some streams of xz.
        let mut reader = TextReader::new(again(&damaged), &Arc::default()).unwrap();
        let mut got = Vec::new();
        let end = reader.read_to_end(&mut got);
        let is_checked = is_cut || matches!(compression, Compression::Gzip | Compression::Bzip2);
        if end.is_ok() && is_checked && reader.kind().compression == compression {
            assert!(all.starts_with(&got), "{compression:?}");
        }
        // With entrances found before the damage: at worst an error.
        for entrance in entrances.iter().take(3) {
            let _ = rest(&damaged, kind, Some(entrance), entrance.text);
        }
        // Forged entrances.
        if let Some(entrance) = entrances.last() {
            let mut bytes = entrance.to_bytes();
            let at = random.below(bytes.len());
            bytes[at] ^= 1 << random.below(8);
            if let Some(wrong) = Entrance::from_bytes(&bytes) {
                let _ = rest(&whole_file, kind, Some(&wrong), wrong.text);
            }
        }
    }
}

#[test]
fn an_offset_before_the_entrance_is_an_error() {
    let mut random = Random(5);
    let all = text(&mut random, 10_000);
    let packed = [gzip(&all, &mut random), gzip(&all, &mut random)].concat();
    let file = file(&packed);
    let (_, kind, entrances, _) = read(&file, CLOSE, &mut random);
    let error = rest(&file, kind, entrances.last(), 17).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}

#[test]
fn plain_text_is_sought() {
    let mut random = Random(6);
    for len in [0, 1, 9, 511, 70_000] {
        let all = text(&mut random, len);
        let file = file(&all);
        let (got, kind, entrances, end) = read(&file, CLOSE, &mut random);
        assert!(got == all && end.is_ok() && entrances.is_empty());
        assert!(kind.is_plain());
        check(&file, kind, &[], &all, &mut random);
    }
}

fn wide(text: &str, unit: fn(u16) -> [u8; 2]) -> Vec<u8> {
    "\u{FEFF}"
        .encode_utf16()
        .chain(text.encode_utf16())
        .flat_map(unit)
        .collect()
}

#[test]
fn marks_are_heeded_and_left_out() {
    let mut random = Random(7);
    let text = "grün 🙂 line, as usual\n".repeat(5_000);
    let cases = [
        (Encoding::Utf8Mark, format!("\u{FEFF}{text}").into_bytes()),
        (Encoding::Utf16Le, wide(&text, u16::to_le_bytes)),
        (Encoding::Utf16Be, wide(&text, u16::to_be_bytes)),
        (Encoding::Bytes, text.clone().into_bytes()),
    ];
    for (encoding, bytes) in cases {
        for packing in [None, Some(FORMATS[0]), Some(FORMATS[1])] {
            let file = match packing {
                None => file(&bytes),
                Some((_, encode)) => {
                    let (a, b) = bytes.split_at(20_001);
                    file(&[encode(a, &mut random), encode(b, &mut random)].concat())
                }
            };
            let (got, kind, entrances, end) = read(&file, CLOSE, &mut random);
            assert_eq!(kind.encoding, encoding);
            assert_eq!(TextKind::from_byte(kind.to_byte()), Some(kind));
            assert!(got == text.as_bytes() && end.is_ok(), "{kind:?}");
            let is_wide = matches!(encoding, Encoding::Utf16Le | Encoding::Utf16Be);
            assert_eq!(entrances.is_empty(), is_wide || packing.is_none());
            check(&file, kind, &entrances, text.as_bytes(), &mut random);
        }
    }
}

#[test]
fn half_characters_of_utf16_are_replaced() {
    let mut bytes = wide("a", u16::to_le_bytes);
    bytes.extend([0x3D, 0xD8, b'b', 0, b'c']); // half a pair, and half a unit
    let (got, ..) = read(&file(&bytes), CLOSE, &mut Random(8));
    assert_eq!(String::from_utf8_lossy(&got), "a\u{FFFD}b\u{FFFD}");
}

#[test]
fn what_is_no_text_is_named_and_what_grows_without_end_is_not_read() {
    let kind = |bytes: &[u8]| {
        let reader = TextReader::new(file(bytes), &Arc::default()).unwrap();
        reader.file_kind().map(|kind| kind.name)
    };
    assert_eq!(kind(b"PAR1\x15\x04"), Some("a Parquet file"));
    assert_eq!(kind(&wide("text", u16::to_le_bytes)), None);
    assert_eq!(kind(b"text"), None);
    assert_eq!(kind(b""), None);

    let mut bomb = zstd::Encoder::new(Vec::new(), 1).unwrap();
    let zeros = vec![0; 1 << 20];
    for _ in 0..300 {
        bomb.write_all(&zeros).unwrap();
    }
    let bomb = file(&bomb.finish().unwrap());
    let mut reader = TextReader::new(bomb, &Arc::default()).unwrap();
    let cause = io::copy(&mut reader, &mut io::sink()).unwrap_err();
    let error = InputError {
        name: "bomb".into(),
        cause,
    };
    assert!(error.is_not_read(), "{error}");
}

/// The decoder loses the end of what doesn't fit into its buffer.
#[test]
fn utf16_is_the_same_in_pieces_of_any_size() {
    let mut bytes = vec![0xFF, 0xFE];
    bytes.extend("wörd 漢字\n".encode_utf16().flat_map(u16::to_le_bytes));
    bytes.push(b'!'); // half a character
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let open = || TextReader::open(file.path(), &Default::default()).unwrap();
    let mut whole = Vec::new();
    open().read_to_end(&mut whole).unwrap();
    assert_eq!(whole, "wörd 漢字\n\u{FFFD}".as_bytes());
    for size in 1..20 {
        let mut reader = open();
        let mut pieces = Vec::new();
        let mut piece = vec![0; size];
        while let count @ 1.. = reader.read(&mut piece).unwrap() {
            pieces.extend_from_slice(&piece[..count]);
        }
        assert_eq!(pieces, whole, "{size}");
    }
    for offset in 0..=whole.len() {
        let opened = std::fs::File::open(file.path()).unwrap();
        let mut rest = Vec::new();
        let mut reader = text_from(opened, open().kind(), None, offset as u64).unwrap();
        reader.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, whole[offset..], "{offset}");
    }
}
