//! A column that says it is Arrow: any format, lengths, offsets, indices and
//! views, in buffers that are as long as it says, which is all that a consumer
//! must trust. What is asked of it gives hashes or an error, on every part.

use std::ffi::{CString, c_void};
use tamis::Hasher;
use tamis_python_core::arrow::{self, ArrowArray, ArrowSchema, Owned, Release};

/// Takes numbers from the input, zeros when it is at its end.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// Mostly small, now and then anything.
    fn number(&mut self) -> i64 {
        match self.byte() {
            255 => i64::from_le_bytes(std::array::from_fn(|_| self.byte())),
            254 => -i64::from(self.byte()),
            small => i64::from(small % 40),
        }
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }
}

/// The two structures, and what they point to. The release is a mark only.
struct Forged {
    schema: ArrowSchema,
    array: ArrowArray,
    _format: CString,
    _buffers: Vec<Option<Vec<u8>>>,
    _pointers: Vec<*const c_void>,
    _dictionary: Option<Box<Forged>>,
}

unsafe extern "C" fn release_schema(schema: *mut ArrowSchema) {
    unsafe { (*schema).release = None }
}

unsafe extern "C" fn release_array(array: *mut ArrowArray) {
    unsafe { (*array).release = None }
}

const FORMATS: [&str; 38] = [
    "n",
    "c",
    "C",
    "s",
    "S",
    "i",
    "I",
    "l",
    "L",
    "u",
    "z",
    "U",
    "Z",
    "vu",
    "vz",
    "w:3",
    "w:0",
    "w:-1",
    "+s",
    "b",
    "e",
    "f",
    "g",
    "tdD",
    "tdm",
    "tts",
    "ttm",
    "ttu",
    "ttn",
    "tss:",
    "tsn:UTC",
    "tDs",
    "tDn",
    "d:9,2",
    "d:38,-3",
    "d:76,10,256",
    "d:9,2,64",
    "d:9,2,32",
];
/// Buffers that say that they are longer can't be made here.
const MOST: i64 = 1 << 16;

/// `None` for one whose buffers would be too long to make.
fn forge(input: &mut Input, depth: u32) -> Option<Box<Forged>> {
    let format = match input.byte() {
        255 => String::from_utf8_lossy(&input.bytes(6)).replace('\0', "x"),
        index => FORMATS[usize::from(index) % FORMATS.len()].into(),
    };
    let (length, offset, null_count) = (input.number(), input.number(), input.number());
    let rows = offset.saturating_add(length);
    // What the interface prescribes for the format, if there can be so much.
    let width: i64 = match format.as_str() {
        "c" | "C" => 1,
        "s" | "S" | "e" => 2,
        "i" | "I" | "f" | "tdD" | "tts" | "ttm" | "d:9,2,32" => 4,
        "l" | "L" | "g" | "tdm" | "ttu" | "ttn" | "tss:" | "tsn:UTC" | "tDs" | "tDn" => 8,
        "d:9,2,64" => 8,
        "vu" | "vz" | "d:9,2" | "d:38,-3" => 16,
        // Of the others, which may be of any kind, none is wider than 32.
        other => match other.strip_prefix("w:") {
            Some(width) => width.parse().unwrap_or(0),
            None => 32,
        },
    };
    let sane = length >= 0 && offset >= 0 && rows < MOST && width.saturating_mul(rows) < MOST;
    let refused = length < 0 || offset < 0 || rows >= 1 << 56;
    if !sane && !refused && format != "n" {
        return None;
    }
    let size = |bytes: i64| if sane { bytes.max(0) as usize } else { 0 };
    let mut buffers = vec![Some(input.bytes(size(rows / 8 + 1)))];
    match format.as_str() {
        "u" | "z" | "U" | "Z" => {
            let wide = matches!(format.as_str(), "U" | "Z");
            let (mut offsets, mut at) = (Vec::new(), 0i64);
            for _ in 0..size(rows.saturating_add(1)) {
                at = at.wrapping_add(input.number());
                match wide {
                    true => offsets.extend(at.to_le_bytes()),
                    false => offsets.extend((at as i32).to_le_bytes()),
                }
            }
            let end = if wide { at } else { i64::from(at as i32) };
            if end > MOST {
                return None;
            }
            buffers.push(Some(offsets));
            buffers.push(Some(input.bytes(size(end))));
        }
        "vu" | "vz" => {
            let mut views = Vec::new();
            for _ in 0..size(rows) {
                let fields: [i64; 4] = std::array::from_fn(|_| input.number());
                views.extend(
                    fields
                        .iter()
                        .flat_map(|field| (*field as i32).to_le_bytes()),
                );
            }
            buffers.push(Some(views));
            let mut lengths = Vec::new();
            for _ in 0..input.byte() % 4 {
                let len = input.number();
                if len > MOST {
                    return None;
                }
                buffers.push(Some(input.bytes(len.max(0) as usize)));
                lengths.extend(len.to_le_bytes());
            }
            buffers.push(Some(lengths));
        }
        _ => buffers.push(Some(input.bytes(size(width.saturating_mul(rows))))),
    }
    // Some are missing; what is there may not be aligned.
    let missing = input.byte();
    for (i, buffer) in buffers.iter_mut().enumerate() {
        if missing & 128 != 0 && missing >> (i % 7) & 1 != 0 {
            *buffer = None;
        }
    }
    let dictionary = match input.byte() % 4 {
        0 if depth < 2 => Some(forge(input, depth + 1)?),
        _ => None,
    };
    let count = match input.byte() {
        // Fewer than there are; of views, none whose lengths are missing.
        255 => i64::from(input.byte() % 3),
        254 => -1,
        _ => buffers.len() as i64,
    };
    let format = CString::new(format).ok()?;
    let pointer = |buffer: &Option<Vec<u8>>| {
        buffer
            .as_ref()
            .map_or(std::ptr::null(), |b| b.as_ptr().cast())
    };
    let pointers: Vec<*const c_void> = buffers.iter().map(pointer).collect();
    let mut dictionary = dictionary;
    let (schema_of, array_of) = dictionary
        .as_mut()
        .map_or((std::ptr::null_mut(), std::ptr::null_mut()), |d| {
            (&raw mut d.schema, &raw mut d.array)
        });
    let odd = input.byte();
    Some(Box::new(Forged {
        schema: ArrowSchema {
            format: if odd == 255 {
                std::ptr::null()
            } else {
                format.as_ptr()
            },
            release: (odd != 254).then_some(release_schema),
            dictionary: if odd == 253 {
                std::ptr::null_mut()
            } else {
                schema_of
            },
            ..ArrowSchema::released()
        },
        array: ArrowArray {
            length,
            null_count,
            offset,
            n_buffers: count,
            buffers: pointers.as_ptr(),
            dictionary: if odd == 252 {
                std::ptr::null_mut()
            } else {
                array_of
            },
            release: (odd != 251).then_some(release_array),
            ..ArrowArray::released()
        },
        _format: format,
        _buffers: buffers,
        _pointers: pointers,
        _dictionary: dictionary,
    }))
}

pub(crate) fn arrow(data: &[u8]) {
    let Some(forged) = forge(&mut Input(data), 0) else {
        return;
    };
    let hasher = Hasher::default();
    // SAFETY: every buffer is as long as the format prescribes for so many rows.
    let Ok(mut column) = (unsafe { arrow::column(&forged.schema, &forged.array) }) else {
        return;
    };
    if column.hash_dictionary(&hasher).is_err() {
        return;
    }
    let (mut hashes, mut rows) = (Vec::new(), Vec::new());
    // A number of rows that only nulls can have.
    let len = column.len.min(MOST as usize);
    let whole = column.hash(&hasher, 0..len, &mut hashes, &mut rows).is_ok();
    assert!(hashes.len() <= len && rows.iter().all(|row| *row < len));
    assert!(rows.is_empty() || !whole || rows.len() == hashes.len());
    let all = hashes.clone();
    // Part by part the same.
    let mut parts = Vec::new();
    for start in (0..len).step_by(7) {
        let part = column.hash(&hasher, start..len.min(start + 7), &mut hashes, &mut rows);
        parts.extend_from_slice(&hashes);
        if part.is_err() {
            assert!(!whole);
            break;
        }
    }
    assert_eq!(parts, all);
    // What is ours to release is released once.
    // SAFETY: the function only marks it, and nobody else releases it.
    drop(unsafe { Owned::new(forged.array_to_release()) });
}

impl Forged {
    fn array_to_release(&self) -> ArrowArray {
        ArrowArray {
            release: self.array.release,
            ..ArrowArray::released()
        }
    }
}
