//! How many records the inputs hold, from their sizes and a look at their
//! beginnings.

use crate::engine::input::Input;
use crate::engine::key::KeyRule;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Bytes looked at in each file.
const SAMPLE: usize = 256 << 10;

/// The number of records, a little high; `None` where some input can't be
/// measured: a pipe, or a compressed file.
pub(crate) fn records(paths: &[PathBuf], rule: &KeyRule) -> Option<u64> {
    let estimates = paths.iter().map(|path| records_of(path, rule));
    let total: f64 = estimates.sum::<Option<f64>>()?;
    // Room for files whose records get shorter towards the end; a filter that
    // grows takes care of the rest.
    Some((total * 1.05) as u64 + 1)
}

fn records_of(path: &Path, rule: &KeyRule) -> Option<f64> {
    if path == Path::new("-") {
        return None;
    }
    // A file that is not there is reported by whoever reads it.
    let Ok(metadata) = std::fs::metadata(path) else {
        return Some(0.0);
    };
    if !metadata.is_file() {
        return None;
    }
    let Ok(mut input) = Input::open(path, &Arc::default()) else {
        return Some(0.0);
    };
    if input.is_compressed() {
        return None;
    }
    let mut sample = vec![0; SAMPLE];
    let mut filled = 0;
    while filled < SAMPLE {
        match input.read(&mut sample[filled..]) {
            Ok(0) | Err(_) => break,
            Ok(count) => filled += count,
        }
    }
    let (mut records, mut end) = (0u64, 0);
    rule.layout().for_each(&sample[..filled], |_, record_end| {
        records += 1;
        end = record_end;
    });
    match records {
        0 => Some(0.0),
        _ => Some(metadata.len() as f64 / end as f64 * records as f64),
    }
}
