//! A model of a writer that opens and closes the file during a lock-free read, in every order.

use super::*;
use crate::Hasher;
use crate::raw::blocked::BlockedShape;
use crate::raw::header::State;
use loom::sync::{Arc, atomic::AtomicU64};

fn header() -> Header {
    Header {
        shape: Shape::Blocked(BlockedShape::new(1, 1, 1).unwrap()),
        hasher: Hasher::default(),
        capacity: 1,
        rate: 0.5,
        state: State::default(),
    }
}

/// The mark is two words. A reader that sees one of them must not take it for another boot's mark,
/// which means lost keys.
#[test]
fn half_a_mark_is_not_that_of_another_boot() {
    loom::model(|| {
        let encoded = header().encode();
        let words = encoded.as_chunks().0.iter().copied();
        let words = words.map(|word| AtomicU64::new(u64::from_le_bytes(word)));
        let words: Arc<Vec<AtomicU64>> = Arc::new(words.collect());
        let writer = loom::thread::spawn({
            let words = words.clone();
            move || {
                store_boot(&words, this_boot());
                store_boot(&words, BootId::default());
            }
        });
        let sound = |bytes: &[u8]| {
            let header = Header::decode(bytes, None)?;
            check_clean(&header, Path::new("model"))?;
            Ok(header)
        };
        let read = settled(|| Ok(encode_words(&words)), sound, loom::thread::yield_now);
        assert_eq!(read.unwrap().shape, header().shape);
        writer.join().unwrap();
    });
}
