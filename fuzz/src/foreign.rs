//! Files of other systems: opened, asked, added to, written and read again.
//! Nothing panics; what a header claims is not allocated; nothing is answered
//! from bytes behind the filter.

use crate::memory;
use tamis_formats::{Error, Foreign, Format, Hint, open};

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
