//! Many keys: JavaScript writes a block of them, they are hashed, and then the hashes are asked or added.

use crate::list::List;
use crate::memory::{given, reply_error};
use std::cell::RefCell;
use tamis::{AnyFilter, Error, Hash, Hasher, KeyRule, Moment, Window};

/// The most keys of a batch.
const KEYS: usize = 4096;
/// The most bytes of its keys.
const BYTES: usize = 1 << 17;

/// What both sides write and read. It stays in place.
#[repr(C, align(64))]
struct Block {
    bytes: [u8; BYTES],
    /// Milliseconds since 1970, of each key.
    times: [f64; KEYS],
    /// How often each key was added, at most.
    counts: [f64; KEYS],
    /// Where each key ends in `bytes`.
    ends: [u32; KEYS],
    answers: [bool; KEYS],
}

/// The keys so far, hashed.
struct Hashed {
    hasher: Hasher,
    /// Of a cascade that is built.
    checker: Option<Hasher>,
    hashes: Vec<Hash>,
    checks: Vec<Hash>,
    /// The values so far of a key that has several.
    joined: Vec<u8>,
}

thread_local! {
    static BLOCK: RefCell<Block> = const {
        RefCell::new(Block {
            bytes: [0; BYTES],
            times: [0.0; KEYS],
            counts: [0.0; KEYS],
            ends: [0; KEYS],
            answers: [false; KEYS],
        })
    };
    static HASHED: RefCell<Hashed> = const {
        RefCell::new(Hashed {
            hasher: Hasher::seeded(0),
            checker: None,
            hashes: Vec::new(),
            checks: Vec::new(),
            joined: Vec::new(),
        })
    };
}

/// The most keys of a batch.
#[unsafe(no_mangle)]
pub extern "C" fn block_keys() -> usize {
    KEYS
}

/// The most bytes of a block's keys.
#[unsafe(no_mangle)]
pub extern "C" fn block_bytes() -> usize {
    BYTES
}

/// Where the bytes of a block go.
#[unsafe(no_mangle)]
pub extern "C" fn block_bytes_at() -> *const u8 {
    BLOCK.with_borrow(|block| block.bytes.as_ptr())
}

/// Where the ends of keys go.
#[unsafe(no_mangle)]
pub extern "C" fn block_ends_at() -> *const u32 {
    BLOCK.with_borrow(|block| block.ends.as_ptr())
}

/// Where the times of keys go.
#[unsafe(no_mangle)]
pub extern "C" fn block_times_at() -> *const f64 {
    BLOCK.with_borrow(|block| block.times.as_ptr())
}

/// Where answers are found.
#[unsafe(no_mangle)]
pub extern "C" fn block_answers_at() -> *const bool {
    BLOCK.with_borrow(|block| block.answers.as_ptr())
}

/// Where counts are found.
#[unsafe(no_mangle)]
pub extern "C" fn block_counts_at() -> *const f64 {
    BLOCK.with_borrow(|block| block.counts.as_ptr())
}

impl Hashed {
    fn begin(&mut self, hasher: Hasher, checker: Option<Hasher>) {
        (self.hasher, self.checker) = (hasher, checker);
        self.hashes.clear();
        self.checks.clear();
        self.joined.clear();
    }

    fn push(&mut self, key: &[u8], exact: bool) {
        let hash = |hasher: &Hasher| {
            if exact {
                hasher.hash_exact(key)
            } else {
                hasher.hash(key)
            }
        };
        self.hashes.push(hash(&self.hasher));
        self.checks.extend(self.checker.as_ref().map(hash));
    }
}

/// Begins a batch of keys for a filter.
///
/// # Safety
/// `filter` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn begin(filter: *const AnyFilter) {
    // SAFETY: the caller's promise.
    let hasher = *unsafe { &*filter }.hasher();
    HASHED.with_borrow_mut(|hashed| hashed.begin(hasher, None));
}

/// Begins a batch of keys for a list.
///
/// # Safety
/// `list` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn begin_list(list: *const List) {
    // SAFETY: the caller's promise.
    let (hasher, checker) = unsafe { &*list }.hashers();
    HASHED.with_borrow_mut(|hashed| hashed.begin(hasher, checker));
}

/// Hashes the first `count` keys of the block, for which there is room in the batch.
#[unsafe(no_mangle)]
pub extern "C" fn hash_block(count: usize, exact: bool) {
    HASHED.with_borrow_mut(|hashed| {
        BLOCK.with_borrow(|block| {
            let mut start = 0;
            let keys = block.ends.iter().take(count).map(|end| {
                let key = block.bytes.get(start..*end as usize).unwrap_or_default();
                start = *end as usize;
                key
            });
            if exact || hashed.checker.is_some() {
                keys.for_each(|key| hashed.push(key, exact));
            } else {
                let hasher = hashed.hasher;
                hasher.hash_all(keys, &mut hashed.hashes);
            }
        });
    });
}

/// Hashes the first `count` texts of the block, of which some are not ASCII: their ends count UTF-16 units, as
/// JavaScript does, and behind each text is a byte that is not part of it.
#[unsafe(no_mangle)]
pub extern "C" fn hash_separated(count: usize) {
    HASHED.with_borrow_mut(|hashed| {
        BLOCK.with_borrow(|block| {
            let (mut at, mut units) = (0, 0);
            for end in block.ends.iter().take(count) {
                let start = at;
                while units < *end && at < BYTES {
                    let (bytes, more) = match block.bytes[at] {
                        0..=0x7F => (1, 1),
                        0x80..=0xDF => (2, 1),
                        0xE0..=0xEF => (3, 1),
                        // A surrogate pair.
                        0xF0.. => (4, 2),
                    };
                    at += bytes;
                    units += more;
                }
                let key = block.bytes.get(start..at.saturating_sub(1));
                hashed.push(key.unwrap_or_default(), false);
            }
        });
    });
}

/// Hashes a key that is too long for the block.
///
/// # Safety
/// At `at` are `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hash_long(at: *const u8, len: usize) {
    // SAFETY: the caller's promise.
    let key = unsafe { given(at, len) };
    HASHED.with_borrow_mut(|hashed| hashed.push(key, false));
}

/// Adds a value to a key that has several.
///
/// # Safety
/// At `at` are `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn join(at: *const u8, len: usize, exact: bool) {
    // SAFETY: the caller's promise.
    let value = unsafe { given(at, len) };
    HASHED.with_borrow_mut(|hashed| {
        let rule = if exact {
            KeyRule::EXACT
        } else {
            *hashed.hasher.rule()
        };
        rule.append_part(value, &mut hashed.joined);
    });
}

/// Hashes the key of the values that were joined.
#[unsafe(no_mangle)]
pub extern "C" fn hash_joined() {
    HASHED.with_borrow_mut(|hashed| {
        let key = std::mem::take(&mut hashed.joined);
        hashed.push(&key, true);
    });
}

/// When each key is seen or asked. `way` 0: now, which is `millis`, but not before the latest moment of the
/// window, since keys of a clock that was set back would be too old; 1: at `millis`; 2: as the block says.
fn moments(window: &Window, way: u32, millis: f64, block: &Block, count: usize) -> Vec<Moment> {
    let moment = |millis: f64| Moment::from_micros((millis * 1000.0).round() as i64);
    let at = match way {
        0 => moment(millis).max(window.latest().unwrap_or(Moment::MIN)),
        1 => moment(millis),
        _ => return block.times[..count].iter().map(|at| moment(*at)).collect(),
    };
    vec![at; count]
}

/// Runs `work` with the block and the batch, which is then empty.
fn with_batch<T>(work: impl FnOnce(&mut Block, &[Hash], &[Hash]) -> T) -> T {
    HASHED.with_borrow_mut(|hashed| {
        BLOCK.with_borrow_mut(|block| {
            let done = work(block, &hashed.hashes, &hashed.checks);
            hashed.hashes.clear();
            hashed.checks.clear();
            done
        })
    })
}

/// Asks the batch; for `way` see [`moments`].
///
/// # Safety
/// `filter` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn has_batch(filter: *const AnyFilter, way: u32, millis: f64) {
    // SAFETY: the caller's promise.
    let filter = unsafe { &*filter };
    with_batch(|block, hashes, _| {
        let AnyFilter::Window(window) = filter else {
            return filter.contains_many(hashes, &mut block.answers[..hashes.len()]);
        };
        let when = moments(window, way, millis, block, hashes.len());
        window.contains_many(hashes, &when[..], &mut block.answers[..hashes.len()]);
    });
}

/// Adds the batch; whether it could. Keys before the one that it could not add are in.
///
/// # Safety
/// `filter` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn add_batch(filter: *mut AnyFilter, way: u32, millis: f64) -> bool {
    // SAFETY: the caller's promise.
    let filter = unsafe { &mut *filter };
    let added = with_batch(|block, hashes, _| {
        let AnyFilter::Window(window) = filter else {
            return filter.insert_many(hashes, &mut block.answers[..hashes.len()]);
        };
        let when = moments(window, way, millis, block, hashes.len());
        window.insert_many_mut(hashes, &when[..], &mut block.answers[..hashes.len()]);
        Ok(())
    });
    reply_error(added).is_some()
}

/// Removes the batch; whether it could.
///
/// # Safety
/// `filter` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn remove_batch(filter: *mut AnyFilter) -> bool {
    // SAFETY: the caller's promise.
    let filter = unsafe { &mut *filter };
    let removed = with_batch(|block, hashes, _| {
        filter.remove_many(hashes, &mut block.answers[..hashes.len()])
    });
    reply_error(removed).is_some()
}

/// Counts how often each key of the batch was added; whether it could.
///
/// # Safety
/// `filter` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn count_batch(filter: *const AnyFilter) -> bool {
    // SAFETY: the caller's promise.
    let filter = unsafe { &*filter };
    let counted = with_batch(|block, hashes, _| {
        let mut counts = vec![0; hashes.len()];
        filter.count_many(hashes, &mut counts)?;
        for (to, count) in block.counts.iter_mut().zip(counts) {
            *to = count as f64;
        }
        Ok::<(), Error>(())
    });
    reply_error(counted).is_some()
}

/// Adds the batch to a list, or to what it must allow; whether it could.
///
/// # Safety
/// `list` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn list_batch(list: *mut List, allow: bool) -> bool {
    // SAFETY: the caller's promise.
    let list = unsafe { &mut *list };
    let added = with_batch(|_, hashes, checks| list.add(hashes, checks, allow));
    reply_error(added).is_some()
}
