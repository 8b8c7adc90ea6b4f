//! The chunks of a filter that a client loads into the module. The input is the
//! kind, the length of the first chunk (16 bits), that chunk, and the rest.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis_fuzz::mended;
use tamis_module::bloom::Bloom;
use tamis_module::cuckoo::Cuckoo;
use tamis_module::filter::Filter;
use tamis_module::loading::Loading;

fuzz_target!(|data: &[u8]| {
    let Some(([kind, low, high], rest)) = data.split_first_chunk() else {
        return;
    };
    let len = usize::from(u16::from_le_bytes([*low, *high]));
    let Some((header, body)) = rest.split_at_checked(len) else {
        return;
    };
    // As LOADCHUNK does: what a header claims is not taken before it comes.
    let claimed = match kind % 2 {
        0 => Bloom::expected(header),
        _ => Cuckoo::expected(header),
    };
    if let Ok(claimed) = claimed {
        let mut loading = Loading::new(header, claimed);
        let _ = loading.push(1 + body.len() as u64, body);
        assert!(loading.bytes() <= header.len() + body.len().max(8) * 2);
    }
    exercise(*kind, header, body);
    if let Some(mended) = mended(body) {
        exercise(*kind, header, &mended);
    }
});

fn exercise(kind: u8, header: &[u8], body: &[u8]) {
    // A forged size must not make it grow beyond reason.
    const MOST: u64 = 1 << 20;
    match kind % 2 {
        0 => {
            let Ok(mut filter) = Bloom::decode(header, body) else {
                return;
            };
            let _ = (filter.info(), filter.dump_header(), filter.dump(0, 100));
            for key in [&b"a"[..], b"", b"key1"] {
                if filter.insert(key, &MOST).is_ok() {
                    assert!(filter.contains(key).unwrap());
                }
            }
            let _ = filter.duplicate().map(|mut copy| copy.union_with(&filter));
        }
        _ => {
            let Ok(mut filter) = Cuckoo::decode(header, body) else {
                return;
            };
            let _ = (filter.info(), filter.dump_header(), filter.dump(0, 100));
            for key in [&b"a"[..], b"", b"key1"] {
                if filter.insert(key, &MOST).is_ok() {
                    assert!(filter.contains(key).unwrap() && filter.count(key).unwrap() > 0);
                    assert!(filter.remove(key).unwrap());
                }
            }
            let _ = filter.compact();
        }
    }
}
