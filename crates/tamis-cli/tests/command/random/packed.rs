//! Compressed bytes as different tools produce them.

use super::Random;
use std::io::{Read, Write};

const ENDS: [&str; 4] = ["gz", "zst", "bz2", "xz"];

fn encode(end: &str, bytes: &[u8]) -> Vec<u8> {
    match end {
        "gz" => {
            let level = flate2::Compression::fast();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        "zst" => zstd::encode_all(bytes, 1).unwrap(),
        "bz2" => {
            let level = bzip2::Compression::fast();
            let mut encoder = bzip2::write::BzEncoder::new(Vec::new(), level);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
        _ => {
            let mut encoder = liblzma::write::XzEncoder::new(Vec::new(), 0);
            encoder.write_all(bytes).unwrap();
            encoder.finish().unwrap()
        }
    }
}

/// Compresses to one member; returns the extension of its format.
pub(crate) fn pack(random: &mut Random, bytes: &[u8]) -> (&'static str, Vec<u8>) {
    let end = random.pick(&ENDS);
    (end, encode(end, bytes))
}

/// Uncompressed, or in one or several members, maybe followed by zeros.
pub(crate) fn pack_somehow(random: &mut Random, bytes: &[u8]) -> Vec<u8> {
    if random.below(2) == 0 {
        return bytes.to_vec();
    }
    let end = random.pick(&ENDS);
    let mut packed = Vec::new();
    let mut rest = bytes;
    for _ in 0..random.below(3) {
        let (member, after) = rest.split_at(random.below(rest.len() as u64 + 1) as usize);
        packed.extend(encode(end, member));
        packed.resize(packed.len() + random.pick(&[0, 0, 4]), 0);
        rest = after;
    }
    packed.extend(encode(end, rest));
    packed.resize(packed.len() + random.pick(&[0, 0, 1, 5000]), 0);
    packed
}

/// The decompressed content of a file of this name.
pub(crate) fn unpack(name: &str, bytes: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    match name.rsplit('.').next() {
        Some("gz") => flate2::read::GzDecoder::new(bytes).read_to_end(&mut plain),
        Some("zst") => zstd::Decoder::new(bytes).unwrap().read_to_end(&mut plain),
        Some("bz2") => bzip2::read::BzDecoder::new(bytes).read_to_end(&mut plain),
        Some("xz") => liblzma::read::XzDecoder::new(bytes).read_to_end(&mut plain),
        _ => return bytes.to_vec(),
    }
    .unwrap();
    plain
}
