//! What every target of another system's format does: opens bytes, asks, adds,
//! writes and reads again. Nothing panics; what a header claims is not
//! allocated; nothing is answered from bytes behind the filter.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tamis_formats::{Error, Foreign, Format, Hint};

/// A machine of little memory that knows how much was wanted at once.
struct Watched;

static MOST_WANTED: AtomicUsize = AtomicUsize::new(0);
const MEMORY: usize = 64 << 20;

// SAFETY: the system's, or nothing.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        MOST_WANTED.fetch_max(layout.size(), Relaxed);
        match layout.size() > MEMORY {
            true => std::ptr::null_mut(),
            false => unsafe { System.alloc(layout) },
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        MOST_WANTED.fetch_max(layout.size(), Relaxed);
        match layout.size() > MEMORY {
            true => std::ptr::null_mut(),
            false => unsafe { System.alloc_zeroed(layout) },
        }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        MOST_WANTED.fetch_max(size, Relaxed);
        match size > MEMORY {
            true => std::ptr::null_mut(),
            false => unsafe { System.realloc(old, layout, size) },
        }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        unsafe { System.dealloc(old, layout) }
    }
}

#[global_allocator]
static MEMORY_OF_ALL: Watched = Watched;

const KEYS: [&[u8]; 6] = [b"", b"key7", b"12345678", &[0xFF; 33], b"\0", b"absent"];

/// Bytes as a file of this format: alone, and of each name that a file may have
/// filters by.
pub(crate) fn exercise(format: Format, data: &[u8]) {
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
    MOST_WANTED.store(0, Relaxed);
    let opened = tamis_formats::open(data, *hint);
    let wanted = MOST_WANTED.load(Relaxed);
    // Compressed bytes become more, in gzip up to a thousand times, and unpacking
    // needs a window.
    let most = match data.starts_with(&[0x1F, 0x8B]) {
        true => 2_100 * data.len() + (128 << 10),
        false => 600 * data.len() + (4 << 10),
    };
    assert!(wanted <= most, "{wanted} bytes for {}", data.len());
    if let Ok(filter) = opened {
        nothing_behind_counts(&filter, data, *hint);
        exercise_filter(filter, |bytes| tamis_formats::open(bytes, *hint));
    }
}

/// Where more may follow in the file, it changes no answer. Nothing but its end
/// tells how long a file of rbloom is.
fn nothing_behind_counts(filter: &Foreign<'_>, data: &[u8], hint: Hint<'_>) {
    if hint.format == Some(Format::Rbloom) {
        return;
    }
    let followed = [data, &[0xFF; 100]].concat();
    if let Ok(followed) = tamis_formats::open(&followed, hint) {
        for key in KEYS {
            assert_eq!(filter.contains(key), followed.contains(key), "{key:?}");
        }
    }
}

/// `reopen` opens bytes as these were.
pub(crate) fn exercise_filter(
    mut filter: Foreign<'_>,
    reopen: impl Fn(&[u8]) -> Result<Foreign<'_>, Error>,
) {
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
