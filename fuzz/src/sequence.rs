//! Keys added and removed in any order, saved and read again between: what was
//! added more often than removed is there.

use std::collections::HashMap;
use std::sync::OnceLock;
use tamis::{AnyFilter, Error, Hasher, Kind, Open, Plan};

/// Planning takes longer than all the rest.
static PLANS: OnceLock<Vec<Plan>> = OnceLock::new();

fn plans() -> Vec<Plan> {
    let kinds = [Kind::Counting, Kind::Cuckoo, Kind::Blocked];
    let of = |keys| kinds.map(|kind| Plan::for_rate(kind, keys, 0.01).unwrap());
    [1, 10, 100].into_iter().flat_map(of).collect()
}

pub(crate) fn sequence(data: &[u8]) {
    let Some((first, steps)) = data.split_first() else {
        return;
    };
    let plans = PLANS.get_or_init(plans);
    let plan = &plans[usize::from(*first) % plans.len()];
    let kind = plan.kind();
    let mut filter = AnyFilter::from_plan(plan, Hasher::default()).unwrap();
    let mut there: HashMap<u8, u32> = HashMap::new();
    // A full table costs hundreds of moves a key.
    for [step, key] in steps.as_chunks::<2>().0.iter().take(60) {
        let count = there.entry(*key).or_default();
        match step % 8 {
            // Only what was added may be removed.
            0..=2 if *count > 0 && matches!(kind, Kind::Counting | Kind::Cuckoo) => {
                assert!(filter.remove([*key]).unwrap(), "{kind}: {key} is there");
                *count -= 1;
            }
            7 if key % 4 == 0 => filter = Open::new().from_bytes(&filter.to_bytes()).unwrap(),
            _ => match filter.insert([*key]) {
                Ok(_) => *count += 1,
                Err(Error::Full { .. } | Error::TooManyCopies { .. }) => {}
                Err(error) => panic!("{kind}: {error}"),
            },
        }
        assert!(
            *count == 0 || filter.contains([*key]),
            "{kind}: {key} is gone"
        );
    }
    for (key, count) in there {
        assert!(
            count == 0 || filter.contains([key]),
            "{kind}: {key} is gone"
        );
    }
}
