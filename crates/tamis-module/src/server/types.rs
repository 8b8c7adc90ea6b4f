//! Filters as values of the server's keys: one type of ours for each kind of filter, and the types of other modules,
//! with their names and formats.

use super::alloc::{defragment, size_of_allocation};
use super::api::{Context, Key, RawString, api, wrong_type};
use super::counters::Counter;
use crate::bloom::Bloom;
use crate::cuckoo::Cuckoo;
use crate::error::Error;
use crate::filter::Filter;
use crate::loading::Loading;
use crate::words::FilterLayout;
use std::alloc::Layout;
use std::borrow::Cow;
use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicI64, AtomicPtr, Ordering::Relaxed};
use tamis_formats::redisbloom::{self, Sink, Source};
use tamis_formats::valkeybloom;
use valkey_module::raw;

/// The longest string in an RDB file.
const MOST_PIECE: usize = 16 << 20;

/// A kind of filter, as used in this file.
pub(super) trait Value: Filter + 'static {
    const LOADCHUNK: &'static CStr;
    const ASKED: Counter;
    const HITS: Counter;
    /// One per layout, in the order of the layouts.
    fn types() -> &'static [AtomicPtr<raw::RedisModuleType>];
    fn alive() -> &'static AtomicI64;

    fn save_theirs(&self, to: &mut Saving);
    /// Loads a value of RedisBloom's or valkey-bloom's type.
    fn load_theirs(from: &mut Stored, layout: FilterLayout) -> Result<Self, Error>;
    /// The argument of BF.LOAD, for layouts that it loads.
    fn to_load(&self) -> Option<Vec<u8>>;
    /// All allocations except the value itself.
    fn allocations(&self) -> Vec<(*const u8, usize)>;
    fn defragment(&mut self, context: Defragmentation);
}

/// The value of a key; `None` if there is no such key.
pub(super) fn get<'k, V: Value>(key: &'k mut Key<'_>) -> Result<Option<&'k mut V>, Error> {
    let value = value::<V>(key)?;
    // SAFETY: values of these types are boxes that `set` made. While the key is open, nobody else uses its value:
    // commands run one at a time and never open a key twice for writing.
    Ok(value.map(|mut value| unsafe { value.as_mut() }))
}

/// A pointer to the value of a key; `None` if there is no such key.
pub(super) fn value<V: Value>(key: &Key<'_>) -> Result<Option<NonNull<V>>, Error> {
    let Some((of, value)) = key.value()? else {
        return Ok(None);
    };
    if V::types().iter().any(|known| known.load(Relaxed) == of) {
        return Ok(Some(value.cast()));
    }
    Err(wrong_type())
}

/// Replaces the value of a key, whatever it was.
pub(super) fn set<V: Value>(key: &mut Key<'_>, value: V) {
    let of = V::types()[value.layout() as usize].load(Relaxed);
    key.set(of, boxed(value));
}

fn boxed<V: Value>(value: V) -> *mut c_void {
    V::alive().fetch_add(1, Relaxed);
    Box::into_raw(Box::new(value)).cast()
}

/// From this size on, freeing memory takes longer than a command should.
const FREED_BESIDE: u64 = 1 << 20;

/// Drops a value that no longer belongs to a key; a large one in another thread.
pub(super) fn drop_beside<V: Value + Send>(value: V) {
    if value.bytes().is_ok_and(|bytes| bytes > FREED_BESIDE) {
        let thread = std::thread::Builder::new().name("tamis-free".to_owned());
        // If no thread can be started, it is dropped here.
        let _ = thread.spawn(move || drop(value));
    }
}

/// A value from the server's callbacks.
///
/// # Safety
/// `boxed` made it, for this kind.
unsafe fn as_value<'v, V: Value>(value: *const c_void) -> &'v V {
    // SAFETY: as the caller promises.
    unsafe { &*value.cast::<V>() }
}

/// A panic must not reach the server.
fn guarded<T>(otherwise: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(otherwise)
}

// Saving and loading.

/// The output of an RDB save.
pub(super) struct Saving(*mut raw::RedisModuleIO);

impl Sink for Saving {
    fn unsigned(&mut self, number: u64) {
        api!(RedisModule_SaveUnsigned(self.0, number));
    }

    fn double(&mut self, number: f64) {
        api!(RedisModule_SaveDouble(self.0, number));
    }

    fn string(&mut self, bytes: &[u8]) {
        api!(RedisModule_SaveStringBuffer(
            self.0,
            bytes.as_ptr().cast(),
            bytes.len()
        ));
    }
}

/// The input of an RDB load.
pub(super) struct Stored(*mut raw::RedisModuleIO);

impl Stored {
    fn check<T>(&self, read: T) -> Result<T, tamis_formats::Error> {
        match api!(RedisModule_IsIOError(self.0)) {
            0 => Ok(read),
            _ => Err(tamis_formats::Error::Parameter {
                what: "RDB value",
                expected: "all of its fields",
                got: "an early end".to_owned(),
            }),
        }
    }
}

impl Source<'static> for Stored {
    fn unsigned(&mut self, _: &'static str) -> Result<u64, tamis_formats::Error> {
        let number = api!(RedisModule_LoadUnsigned(self.0));
        self.check(number)
    }

    fn double(&mut self, _: &'static str) -> Result<f64, tamis_formats::Error> {
        let number = api!(RedisModule_LoadDouble(self.0));
        self.check(number)
    }

    fn string(&mut self, _: &'static str) -> Result<Cow<'static, [u8]>, tamis_formats::Error> {
        let mut len = 0;
        let data = api!(RedisModule_LoadStringBuffer(self.0, &mut len));
        let data = NonNull::new(data.cast::<u8>());
        let Some(data) = data else {
            return self.check(Cow::Borrowed(&[][..]));
        };
        // SAFETY: a buffer of this many bytes, which is ours to free.
        let bytes = unsafe { std::slice::from_raw_parts(data.as_ptr(), len) }.to_vec();
        api!(RedisModule_Free(data.as_ptr().cast()));
        self.check(Cow::Owned(bytes))
    }
}

unsafe extern "C" fn save_theirs<V: Value>(io: *mut raw::RedisModuleIO, of: *mut c_void) {
    guarded((), || {
        // SAFETY: the server passes a value of this type.
        let value = unsafe { as_value::<V>(of) };
        value.save_theirs(&mut Saving(io));
    });
}

unsafe extern "C" fn load_theirs<V: Value>(
    io: *mut raw::RedisModuleIO,
    version: c_int,
) -> *mut c_void {
    guarded(null_mut(), || match version {
        4 => V::load_theirs(&mut Stored(io), FilterLayout::RedisBloom).map_or(null_mut(), boxed),
        _ => null_mut(),
    })
}

unsafe extern "C" fn load_valkey<V: Value>(
    io: *mut raw::RedisModuleIO,
    version: c_int,
) -> *mut c_void {
    guarded(null_mut(), || match version {
        1 => V::load_theirs(&mut Stored(io), FilterLayout::Valkey).map_or(null_mut(), boxed),
        _ => null_mut(),
    })
}

/// Tamis's layouts are saved like SCANDUMP's output: the first chunk, the number of bytes that follow, and those bytes
/// in pieces. If some are missing, the filter is still being loaded.
unsafe extern "C" fn save_ours<V: Value>(io: *mut raw::RedisModuleIO, of: *mut c_void) {
    guarded((), || {
        // SAFETY: the server passes a value of this type.
        let value = unsafe { as_value::<V>(of) };
        let mut to = Saving(io);
        let mut total = 0;
        pieces(value, |end, _| total = end);
        to.string(&value.dump_header());
        to.unsigned(total);
        pieces(value, |_, piece| to.string(piece));
    });
}

/// Everything after the first chunk, in pieces, each with its end position.
pub(super) fn pieces<V: Value>(value: &V, mut each: impl FnMut(u64, &[u8])) {
    let mut at = 0;
    loop {
        let piece = value.dump(at, MOST_PIECE);
        if piece.is_empty() {
            return;
        }
        at += piece.len() as u64;
        each(at, &piece);
    }
}

unsafe extern "C" fn load_ours<V: Value>(
    io: *mut raw::RedisModuleIO,
    version: c_int,
) -> *mut c_void {
    guarded(null_mut(), || match version {
        1 => load_pieces::<V>(&mut Stored(io)).map_or(null_mut(), boxed),
        _ => null_mut(),
    })
}

fn load_pieces<V: Value>(from: &mut Stored) -> Result<V, Error> {
    let header = from.string("header")?;
    let total = from.unsigned("bytes")?;
    let expected = V::expected(&header)?;
    let mut loading = Loading::new(&header, expected);
    let mut at = 0;
    while at < total {
        let piece = from.string("piece")?;
        at += piece.len() as u64;
        if piece.is_empty() || at > total {
            return Err(Error::bad_data("pieces of another length"));
        }
        loading.push(1 + at, &piece)?;
    }
    if !loading.is_whole() {
        return Ok(V::loading(loading));
    }
    let value = V::arrived(&loading)?;
    if value.layout() != FilterLayout::Tamis {
        return Err(Error::bad_data("a layout of another type"));
    }
    Ok(value)
}

unsafe extern "C" fn rewrite<V: Value>(
    io: *mut raw::RedisModuleIO,
    key: RawString,
    of: *mut c_void,
) {
    guarded((), || {
        // SAFETY: the server passes a value of this type.
        let value = unsafe { as_value::<V>(of) };
        let emit = |iterator: u64, data: &[u8]| {
            api!(RedisModule_EmitAOF(
                io,
                V::LOADCHUNK.as_ptr(),
                c"slb".as_ptr(),
                key,
                iterator as i64,
                data.as_ptr(),
                data.len(),
            ));
        };
        if let Some(data) = value.to_load() {
            api!(RedisModule_EmitAOF(
                io,
                c"BF.LOAD".as_ptr(),
                c"sb".as_ptr(),
                key,
                data.as_ptr(),
                data.len(),
            ));
            return;
        }
        emit(1, &value.dump_header());
        pieces(value, |end, piece| emit(1 + end, piece));
    });
}

// Other callbacks of a type.

unsafe extern "C" fn free<V: Value>(of: *mut c_void) {
    V::alive().fetch_sub(1, Relaxed);
    // SAFETY: the server passes what `boxed` made, for the last time.
    guarded((), || drop(unsafe { Box::from_raw(of.cast::<V>()) }));
}

unsafe extern "C" fn copy<V: Value>(_: RawString, _: RawString, of: *const c_void) -> *mut c_void {
    guarded(null_mut(), || {
        // SAFETY: the server passes a value of this type.
        let value = unsafe { as_value::<V>(of) };
        value.duplicate().map_or(null_mut(), boxed)
    })
}

unsafe extern "C" fn mem_usage<V: Value>(of: *const c_void) -> usize {
    guarded(0, || {
        // SAFETY: the server passes a value of this type; all addresses are allocations of ours with this alignment.
        unsafe {
            let rest = as_value::<V>(of).allocations().into_iter();
            let rest: usize = rest
                .map(|(ptr, align)| size_of_allocation(ptr, align))
                .sum();
            size_of_allocation(of.cast(), align_of::<V>()) + rest
        }
    })
}

/// One per allocation, and one per 64 KiB: from 64 on, the server frees in another thread.
unsafe extern "C" fn free_effort<V: Value>(_: RawString, of: *const c_void) -> usize {
    guarded(1, || {
        // SAFETY: the server passes a value of this type.
        let (value, bytes) = unsafe { (as_value::<V>(of), mem_usage::<V>(of)) };
        value.allocations().len() + bytes / (64 << 10)
    })
}

unsafe extern "C" fn digest<V: Value>(to: *mut raw::RedisModuleDigest, of: *mut c_void) {
    guarded((), || {
        // SAFETY: the server passes a value of this type.
        let value = unsafe { as_value::<V>(of) };
        let add = |bytes: &[u8]| {
            api!(RedisModule_DigestAddStringBuffer(
                to,
                bytes.as_ptr().cast(),
                bytes.len()
            ));
        };
        add(&value.dump_header());
        pieces(value, |_, piece| add(piece));
        api!(RedisModule_DigestEndSequence(to));
    });
}

unsafe extern "C" fn defrag<V: Value>(
    context: *mut raw::RedisModuleDefragCtx,
    _: RawString,
    of: *mut *mut c_void,
) -> c_int {
    guarded(0, || {
        // SAFETY: the server passes a pointer to a value of this type, which nobody else uses now.
        unsafe {
            *of = defragment(context, (*of).cast(), Layout::new::<V>()).cast();
            (*(*of).cast::<V>()).defragment(Defragmentation(context));
        }
        0
    })
}

/// The server's context for moving a filter's memory, valid for one call of `defrag`.
#[derive(Clone, Copy)]
pub(super) struct Defragmentation(*mut raw::RedisModuleDefragCtx);

/// Moves the memory of vectors.
fn defragment_all<'v>(vectors: impl Iterator<Item = &'v mut Vec<u8>>, context: Defragmentation) {
    for vector in vectors.filter(|vector| vector.capacity() > 0) {
        let mut old = std::mem::ManuallyDrop::new(std::mem::take(vector));
        let (len, capacity) = (old.len(), old.capacity());
        // SAFETY: our allocator allocated the vector's memory with this layout, and that stays true after moving it.
        unsafe {
            let layout = Layout::from_size_align_unchecked(capacity, 1);
            let new = defragment(context.0, old.as_mut_ptr(), layout);
            *vector = Vec::from_raw_parts(new, len, capacity);
        }
    }
}

/// The addresses of the parts of a filter in RedisBloom's layout, and of their list.
fn part_addresses(parts: &[&[u8]], list: (*const u8, usize)) -> Vec<(*const u8, usize)> {
    let parts = parts.iter().map(|part| (part.as_ptr(), 1));
    parts.chain([list]).collect()
}

/// The addresses of what has been loaded of a filter so far.
fn loading_addresses(loading: &Loading) -> Vec<(*const u8, usize)> {
    let parts = [loading.header(), loading.received()];
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.map(|part| (part.as_ptr(), 1)).collect()
}

/// Moves a body allocated by the library.
///
/// # Safety
/// - `ptr` is an allocation of our allocator, of `len` bytes, aligned to 64.
/// - Nobody else uses it.
unsafe fn defragment_body(context: Defragmentation, ptr: *mut u8, len: usize) -> *mut u8 {
    // SAFETY: as the caller promises.
    unsafe { defragment(context.0, ptr, Layout::from_size_align_unchecked(len, 64)) }
}

static BLOOM_TYPES: [AtomicPtr<raw::RedisModuleType>; 3] =
    [const { AtomicPtr::new(null_mut()) }; 3];
static CUCKOO_TYPES: [AtomicPtr<raw::RedisModuleType>; 2] =
    [const { AtomicPtr::new(null_mut()) }; 2];
static BLOOMS: AtomicI64 = AtomicI64::new(0);
static CUCKOOS: AtomicI64 = AtomicI64::new(0);

impl Value for Bloom {
    const LOADCHUNK: &'static CStr = c"BF.LOADCHUNK";
    const ASKED: Counter = Counter::BloomAsked;
    const HITS: Counter = Counter::BloomHits;

    fn types() -> &'static [AtomicPtr<raw::RedisModuleType>] {
        &BLOOM_TYPES
    }

    fn alive() -> &'static AtomicI64 {
        &BLOOMS
    }

    fn save_theirs(&self, to: &mut Saving) {
        match self {
            Self::RedisBloom(chain) => chain.encode(to),
            Self::Valkey(chain) => chain.encode(to),
            Self::Tamis(_) | Self::Counting(_) | Self::Window(_) | Self::Loading(_) => {}
        }
    }

    fn load_theirs(from: &mut Stored, layout: FilterLayout) -> Result<Self, Error> {
        Ok(match layout {
            FilterLayout::Valkey => Self::Valkey(valkeybloom::Chain::decode(from)?),
            _ => Self::RedisBloom(redisbloom::Chain::decode(from)?),
        })
    }

    fn to_load(&self) -> Option<Vec<u8>> {
        match self {
            Self::Valkey(chain) => Some(chain.to_load()),
            _ => None,
        }
    }

    fn allocations(&self) -> Vec<(*const u8, usize)> {
        match self {
            Self::Tamis(filter) => filter.allocations(),
            Self::Counting(filter) => filter.allocations(),
            Self::Window(window) => window.allocations(),
            Self::RedisBloom(chain) => part_addresses(&chain.parts(), chain.list()),
            Self::Valkey(chain) => part_addresses(&chain.parts(), chain.list()),
            Self::Loading(loading) => loading_addresses(loading),
        }
    }

    fn defragment(&mut self, context: Defragmentation) {
        match self {
            // SAFETY: the library passes its own bodies, in whole lines aligned to 64 bytes; `defragment` keeps length,
            // content and alignment.
            Self::Tamis(filter) => unsafe {
                filter.relocate(&mut |ptr, len| defragment_body(context, ptr, len))
            },
            // SAFETY: likewise.
            Self::Counting(filter) => unsafe {
                filter.relocate(&mut |ptr, len| defragment_body(context, ptr, len))
            },
            // SAFETY: likewise.
            Self::Window(window) => unsafe {
                window.relocate(&mut |ptr, len| defragment_body(context, ptr, len))
            },
            Self::Valkey(chain) => defragment_all(chain.bodies_mut(), context),
            Self::RedisBloom(chain) => defragment_all(chain.bodies_mut(), context),
            Self::Loading(_) => {}
        }
    }
}

impl Value for Cuckoo {
    const LOADCHUNK: &'static CStr = c"CF.LOADCHUNK";
    const ASKED: Counter = Counter::CuckooAsked;
    const HITS: Counter = Counter::CuckooHits;

    fn types() -> &'static [AtomicPtr<raw::RedisModuleType>] {
        &CUCKOO_TYPES
    }

    fn alive() -> &'static AtomicI64 {
        &CUCKOOS
    }

    fn save_theirs(&self, to: &mut Saving) {
        if let Self::RedisBloom(cuckoo) = self {
            cuckoo.encode(to);
        }
    }

    fn load_theirs(from: &mut Stored, _: FilterLayout) -> Result<Self, Error> {
        Ok(Self::RedisBloom(redisbloom::Cuckoo::decode(from)?))
    }

    fn to_load(&self) -> Option<Vec<u8>> {
        None
    }

    fn allocations(&self) -> Vec<(*const u8, usize)> {
        match self {
            Self::Tamis(tables) => {
                let mut all = tables.lists();
                all.extend(tables.all().flat_map(|table| table.allocations()));
                all
            }
            Self::RedisBloom(cuckoo) => part_addresses(&cuckoo.parts(), cuckoo.list()),
            Self::Loading(loading) => loading_addresses(loading),
        }
    }

    fn defragment(&mut self, context: Defragmentation) {
        match self {
            Self::Tamis(tables) => {
                for table in tables.all_mut() {
                    // SAFETY: the library passes its own bodies, in whole lines aligned to 64 bytes; `defragment` keeps
                    // length, content and alignment.
                    unsafe { table.relocate(&mut |ptr, len| defragment_body(context, ptr, len)) };
                }
            }
            Self::RedisBloom(cuckoo) => defragment_all(cuckoo.bodies_mut(), context),
            Self::Loading(_) => {}
        }
    }
}

/// The number of filters of each kind.
pub(super) fn alive() -> (i64, i64) {
    (BLOOMS.load(Relaxed), CUCKOOS.load(Relaxed))
}

type Load = unsafe extern "C" fn(*mut raw::RedisModuleIO, c_int) -> *mut c_void;
type Save = unsafe extern "C" fn(*mut raw::RedisModuleIO, *mut c_void);

fn register_one<V: Value>(
    context: Context,
    name: &CStr,
    layout: FilterLayout,
) -> Result<(), String> {
    // SAFETY: only numbers and optional pointers, for which zero is valid.
    let mut methods: raw::RedisModuleTypeMethods = unsafe { std::mem::zeroed() };
    methods.version = raw::REDISMODULE_TYPE_METHOD_VERSION.into();
    let (load, save, version): (Load, Save, _) = match layout {
        FilterLayout::Tamis => (load_ours::<V>, save_ours::<V>, 1),
        FilterLayout::RedisBloom => (load_theirs::<V>, save_theirs::<V>, 4),
        FilterLayout::Valkey => (load_valkey::<V>, save_theirs::<V>, 1),
    };
    (methods.rdb_load, methods.rdb_save) = (Some(load), Some(save));
    methods.aof_rewrite = Some(rewrite::<V>);
    methods.mem_usage = Some(mem_usage::<V>);
    methods.digest = Some(digest::<V>);
    methods.free = Some(free::<V>);
    methods.free_effort = Some(free_effort::<V>);
    methods.copy = Some(copy::<V>);
    methods.defrag = Some(defrag::<V>);
    let made = api!(RedisModule_CreateDataType(
        context.as_ptr(),
        name.as_ptr(),
        version,
        &mut methods
    ));
    if made.is_null() {
        return Err(format!(
            "the type {} exists already: is another module for BF.* and CF.* loaded?",
            name.to_string_lossy()
        ));
    }
    V::types()[layout as usize].store(made, Relaxed);
    Ok(())
}

pub(super) fn register(context: Context) -> Result<(), String> {
    register_one::<Bloom>(context, c"tamis--bf", FilterLayout::Tamis)?;
    register_one::<Bloom>(context, c"MBbloom--", FilterLayout::RedisBloom)?;
    register_one::<Bloom>(context, c"bloomfltr", FilterLayout::Valkey)?;
    register_one::<Cuckoo>(context, c"tamis--cf", FilterLayout::Tamis)?;
    register_one::<Cuckoo>(context, c"MBbloomCF", FilterLayout::RedisBloom)
}
