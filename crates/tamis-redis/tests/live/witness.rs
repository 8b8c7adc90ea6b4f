//! Verifies the answers that concurrent workers got.
//!
//! Which keys look old by chance depends on the order in which the server saw
//! them, which we can't know. But the answers themselves reveal an order that
//! explains them, if there is one: a key reported as new had an unset bit at
//! that moment, so the last of the new keys has a bit that no other has. Remove
//! it, and the same holds for the rest. A local filter that gets the keys in
//! this order must give the same answer for every key, and end with the same
//! bytes.

use tamis::Hash;
use tamis::internals::raw::BlockedShape;

/// An order of the keys in which each has a bit that no earlier one has. `None`
/// if there is none: then some were wrongly reported as new.
pub(crate) fn order(shape: BlockedShape, new: &[Hash]) -> Option<Vec<usize>> {
    let mut uses = Uses::of(shape, new);
    let mut single: Vec<usize> = (0..uses.0.len())
        .filter(|bit| uses.0[*bit].0 == 1)
        .collect();
    let mut last_first = Vec::with_capacity(new.len());
    while let Some(bit) = single.pop() {
        // If its key has been removed because of another bit, this bit is free.
        let (1, key) = uses.0[bit] else { continue };
        last_first.push(key);
        for bit in bits(shape, new[key]) {
            let (count, keys) = &mut uses.0[bit];
            *count -= 1;
            *keys ^= key;
            if *count == 1 {
                single.push(bit);
            }
        }
    }
    last_first.reverse();
    (last_first.len() == new.len()).then_some(last_first)
}

/// How many keys could look old in some order: those without a bit that no
/// other key has.
pub(crate) fn coverable(shape: BlockedShape, keys: &[Hash]) -> usize {
    let uses = Uses::of(shape, keys);
    let covered = |key: &&Hash| bits(shape, **key).iter().all(|bit| uses.0[*bit].0 > 1);
    keys.iter().filter(covered).count()
}

/// For each bit, how many keys have it, and the XOR of their indices, which is
/// the index if there is only one.
struct Uses(Vec<(u32, usize)>);

impl Uses {
    fn of(shape: BlockedShape, keys: &[Hash]) -> Self {
        let mut uses = vec![(0, 0); shape.lines() as usize * 512];
        for (key, hash) in keys.iter().enumerate() {
            for bit in bits(shape, *hash) {
                uses[bit].0 += 1;
                uses[bit].1 ^= key;
            }
        }
        Self(uses)
    }
}

fn bits(shape: BlockedShape, hash: Hash) -> Vec<usize> {
    let mut bits = Vec::new();
    shape.for_each_line(hash, |line, words| {
        for (i, mut word) in words.into_iter().enumerate() {
            while word != 0 {
                bits.push(line as usize * 512 + i * 64 + word.trailing_zeros() as usize);
                word &= word - 1;
            }
        }
    });
    bits
}

/// The check can fail: no order explains a key that was new twice.
#[test]
fn twice_new_has_no_order() {
    let shape = BlockedShape::new(4, 6, 1).unwrap();
    let [a, b] = [1, 2].map(Hash::from_u64);
    assert_eq!(order(shape, &[a, b]).map(|order| order.len()), Some(2));
    assert_eq!(order(shape, &[a, b, a]), None);
    assert_eq!(
        (coverable(shape, &[a, b]), coverable(shape, &[a, b, a])),
        (0, 2)
    );
}
