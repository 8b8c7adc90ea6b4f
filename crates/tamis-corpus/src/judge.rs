//! Decides which units were seen before.

use crate::batch::{Batch, Unit};
use crate::rule::TextUnit;
use crate::seen::Seen;
use crate::settings::Settings;
use tamis::Error;

/// Judges the units of a batch in order, and adds the new ones.
///
/// All n-grams of a unit are queried before any is added, so that none is found because of the same unit. Those of a
/// repetition aren't added: they appear in no output.
pub(crate) fn judge(seen: &mut Seen, settings: &Settings, batch: &mut Batch) -> Result<(), Error> {
    if !settings.rule.takes_words() {
        seen.insert(&batch.hashes, &mut batch.found)?;
        batch.found.iter_mut().for_each(|new| *new = !*new);
        decide(settings, batch);
        return Ok(());
    }
    let mut new = Vec::new();
    for unit in &mut batch.units {
        let hashes = &batch.hashes[unit.hashes.clone()];
        let found = &mut batch.found[unit.hashes.clone()];
        seen.contains(hashes, found);
        weigh(settings, unit, found);
        if !unit.is_repeat {
            new.resize(hashes.len(), false);
            seen.insert(hashes, &mut new)?;
        }
    }
    Ok(())
}

/// Adds all units, treating none as a repetition.
pub(crate) fn learn(seen: &mut Seen, batch: &mut Batch) -> Result<(), Error> {
    seen.insert(&batch.hashes, &mut batch.found)
}

/// Queries all units without adding any.
pub(crate) fn ask(seen: &Seen, settings: &Settings, batch: &mut Batch) {
    seen.contains(&batch.hashes, &mut batch.found);
    decide(settings, batch);
}

fn decide(settings: &Settings, batch: &mut Batch) {
    for unit in &mut batch.units {
        weigh(settings, unit, &batch.found[unit.hashes.clone()]);
    }
}

fn weigh(settings: &Settings, unit: &mut Unit, found: &[bool]) {
    if found.is_empty() {
        return;
    }
    let seen = found.iter().filter(|seen| **seen).count();
    let is_repeat = match settings.rule.unit() {
        TextUnit::Words(_) => {
            unit.share = seen as f64 / found.len() as f64;
            unit.share >= settings.threshold
        }
        // One matching band is enough; how many match says little about similarity.
        _ => {
            unit.share = f64::from(u8::from(seen > 0));
            seen > 0
        }
    };
    unit.is_repeat = is_repeat;
}
