//! Files of other systems: opened, asked, added to, written and read again.
//! Nothing panics; what a header claims is not allocated; nothing is answered
//! from bytes behind the filter.

use crate::memory;
use tamis_formats::{BitmapHash, BitmapShape, Error, Foreign, Format, Hint, open};

/// What packed files may unpack to here.
const MOST_UNPACKED: u64 = 1 << 20;

const KEYS: [&[u8]; 6] = [b"", b"key7", b"12345678", &[0xFF; 33], b"\0", b"absent"];

/// Bytes as a file of this format: alone, and of each name that a file may have
/// filters by.
pub(crate) fn exercise(format: Format, data: &[u8]) {
    memory::limit();
    for name in [
        None,
        Some(&b"s"[..]),
        Some(b"i64"),
        Some(b"bfscale"),
        Some(b"cfkick"),
    ] {
        let hint = Hint {
            format: Some(format),
            name,
            most_unpacked: Some(MOST_UNPACKED),
            ..Hint::default()
        };
        exercise_hinted(data, &hint);
        if matches!(format, Format::RedisBloom | Format::RedisCuckoo)
            && let Some(mended) = without_sum(data)
        {
            exercise_hinted(&mended, &hint);
        }
    }
}

/// A DUMP or an RDB file ends in a checksum, or in zeros instead.
fn without_sum(data: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = data.to_vec();
    bytes.last_chunk_mut::<8>()?.fill(0);
    Some(bytes)
}

fn exercise_hinted(data: &[u8], hint: &Hint<'_>) {
    let (opened, wanted) = memory::largest(|| open(data, *hint));
    // Compressed bytes become more, in gzip up to a thousand times, and unpacking
    // needs a window.
    let most = if data.starts_with(&[0x1F, 0x8B]) {
        2_100 * data.len() + (128 << 10)
    } else if data.starts_with(b"e") {
        // pybloomfilter's text is packed twice.
        2 * MOST_UNPACKED as usize + 600 * data.len()
    } else {
        600 * data.len() + (4 << 10)
    };
    assert!(wanted <= most, "{wanted} bytes for {}", data.len());
    if let Ok(filter) = opened {
        nothing_behind_counts(&filter, data, *hint);
        exercise_filter(filter, |bytes| open(bytes, *hint));
    }
}

/// Where more may follow in the file, it changes no answer. Nothing but its end
/// tells how long a file of rbloom is.
fn nothing_behind_counts(filter: &Foreign<'_>, data: &[u8], hint: Hint<'_>) {
    if hint.format == Some(Format::Rbloom) {
        return;
    }
    let followed = [data, &[0xFF; 100]].concat();
    if let Ok(followed) = open(&followed, hint) {
        for key in KEYS {
            assert_eq!(filter.contains(key), followed.contains(key), "{key:?}");
        }
    }
}

/// `reopen` opens bytes as these were.
fn exercise_filter(mut filter: Foreign<'_>, reopen: impl Fn(&[u8]) -> Result<Foreign<'_>, Error>) {
    let before = KEYS.map(|key| filter.contains(key));
    let mut many = [false; KEYS.len()];
    filter.contains_many(&KEYS, &mut many);
    assert_eq!(before, many, "one by one, and together");
    let _ = (
        filter.facts(),
        filter.keys(),
        filter.keys_now(),
        filter.hashes(),
        filter.fill(),
    );
    let rate = filter.rate_now();
    assert!(
        rate.is_nan() || (-1e-9..=1.0 + 1e-9).contains(&rate),
        "{rate}"
    );

    if filter.insert(b"a key").is_ok() {
        assert!(filter.contains(b"a key"));
        for (key, had) in KEYS.iter().zip(before) {
            assert!(filter.contains(key) >= had, "a key is lost");
        }
        let written = filter.to_bytes();
        let again = reopen(&written).expect("what was written can be read");
        assert!(again.contains(b"a key"));
        assert_eq!(again.to_bytes(), written);
    }
    let _ = filter.remove(b"a key");
}

/// Bytes of no known format: recognised by their content and their length.
pub(crate) fn unknown(data: &[u8]) {
    memory::limit();
    match open(data, Hint::default()) {
        Ok(filter) => {
            let format = filter.format();
            exercise_filter(filter, |bytes| open(bytes, format));
        }
        Err(Error::Ambiguous { fits }) => {
            assert!(fits.len() > 1 && fits.iter().all(|format| open(data, *format).is_ok()));
        }
        Err(_) => {}
    }
}

/// A string of bits, behind what the program that set them knows.
pub(crate) fn bitmap(data: &[u8]) {
    let Some(([way, size @ ..], string)) = data.split_first_chunk::<5>() else {
        return;
    };
    let numbers = || {
        string
            .iter()
            .take(9)
            .map(|byte| i32::from(*byte) << 20 | 7)
            .collect()
    };
    let (hash, hashes) = match way % 4 {
        0 => (BitmapHash::Guava, Some(u32::from(way / 4))),
        1 => (BitmapHash::Guava32, Some(u32::from(way / 4))),
        2 => (BitmapHash::Seeds(numbers()), None),
        _ => (BitmapHash::Spread(vec![1, 3]), None),
    };
    // Most of a large one would be zeros.
    let size = u64::from(u32::from_le_bytes(*size) >> 12);
    memory::limit();
    let Ok(shape) = BitmapShape::new(hash, hashes, size) else {
        return;
    };
    if let Ok(filter) = tamis_formats::bitmap(string, &shape) {
        for key in KEYS {
            let bits = shape.bits(key);
            let is_set = |bit: &u64| {
                let byte = string.get(*bit as usize / 8).copied().unwrap_or(0);
                byte & 0x80 >> (bit % 8) != 0
            };
            let expected = bits.is_some_and(|bits| bits.iter().all(is_set));
            assert_eq!(filter.contains(key), expected, "{key:?}");
        }
        exercise_filter(filter, |bytes| tamis_formats::bitmap(bytes, &shape));
    }
}

/// A string of Redis, behind the size and the number of hashes, which another key holds.
pub(crate) fn redisson(data: &[u8]) {
    let Some((numbers, string)) = data.split_first_chunk::<6>() else {
        return;
    };
    let [a, b, c, d, hashes, high] = *numbers;
    // Most of a large one would be zeros.
    let size = u64::from(u32::from_le_bytes([a, b, c, d]) >> 12);
    let hashes = u32::from_le_bytes([hashes, high & 7, 0, 0]);
    let read = |string: &[u8]| tamis_formats::redisson(string.to_vec(), size, hashes);
    memory::limit();
    if let Ok(filter) = read(string) {
        exercise_filter(filter, |bytes| read(bytes));
    }
}
