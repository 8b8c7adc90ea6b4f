use super::*;
use std::time::Duration;

fn shape(generations: u32, block: u32, slices: u32) -> WindowShape {
    let span = Span::Time(Duration::from_millis(u64::from(generations)));
    let options = WindowOptions::new(span).generations(generations);
    WindowShape::new(&options, 9, block, slices).unwrap()
}

fn zeroed(shape: &WindowShape) -> Vec<AtomicU64> {
    (0..shape.body_len() / 8)
        .map(|_| AtomicU64::new(0))
        .collect()
}

/// Every set of instructions gives the answers of the portable code, in any column.
#[test]
fn all_instructions_agree() {
    for (generations, block, slices) in [
        (1, 4, 2),
        (2, 8, 1),
        (3, 4, 3),
        (8, 4, 2),
        (9, 16, 1),
        (62, 4, 6),
    ] {
        let shape = shape(generations, block, slices);
        let words = zeroed(&shape);
        let times: Vec<Moment> = (0..3_000).map(|i| Moment::from_micros(i * 20)).collect();
        let hashes: Vec<Hash> = (0..3_000).map(Hash::from_u64).collect();
        let mut new = vec![false; hashes.len()];
        shape.insert_many_shared(&words, &hashes, &times[..], &mut new);
        let asked: Vec<Hash> = (0..6_000).map(|i| Hash::from_u64(i * 7 % 9_000)).collect();
        let answers = |isa: Isa| {
            let mut out = vec![false; asked.len()];
            let shape = shape.on(isa);
            for at in [0, 30_000, 59_000] {
                let at = Moment::from_micros(at);
                shape.contains_many_at(&words, &asked, at, &mut out);
                for (hash, out) in asked.iter().zip(&out) {
                    assert_eq!(shape.contains_at(&words, *hash, at), *out);
                }
            }
            out
        };
        let portable = answers(Isa::available()[0]);
        assert!(portable.contains(&true) && portable.contains(&false));
        for isa in Isa::available() {
            assert_eq!(answers(isa), portable, "{isa:?}");
        }
    }
}

/// One who stalls for a whole window between finding a column and writing to it must
/// not touch what the next generation has there.
#[test]
fn a_straggler_does_not_harm_the_next_generation() {
    let shape = shape(4, 4, 2);
    let words = zeroed(&shape);
    let (old, new) = (Hash::from_u64(1), Hash::from_u64(2));
    // Two keys of the same row.
    let new = (2..)
        .map(Hash::from_u64)
        .find(|hash| shape.row_of(*hash) == shape.row_of(old) && *hash != new)
        .unwrap();
    let straggler = shape.claim(&words, 0).unwrap();
    let next = shape.claim(&words, shape.columns() as i64).unwrap();
    assert_eq!(add(&shape, &mut Beside(&words), new, next), Some(true));
    assert_eq!(add(&shape, &mut Beside(&words), old, straggler), None);
    assert!(shape.claim(&words, 0).is_none());
    let now = Moment::from_micros(shape.columns() as i64 * 1_000);
    assert!(shape.contains_at(&words, new, now));
}

#[test]
fn alone_and_beside_others_write_the_same() {
    let shape = shape(8, 8, 2);
    let times: Vec<Moment> = (0..5_000)
        .map(|i| Moment::from_micros(i * 9 - 1_000 * (i % 3)))
        .collect();
    let hashes: Vec<Hash> = (0..5_000).map(|i| Hash::from_u64(i % 3_000)).collect();
    let beside = zeroed(&shape);
    let mut alone = vec![0; beside.len()];
    let (mut one, mut other) = (vec![false; 5_000], vec![false; 5_000]);
    shape.insert_many_shared(&beside, &hashes, &times[..], &mut one);
    shape.insert_many(&mut alone, &hashes, &times[..], &mut other);
    assert_eq!(one, other);
    assert!(beside.iter().map(Word::get).eq(alone.iter().map(Word::get)));
}
