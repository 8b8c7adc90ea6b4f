//! A histogram of how full a filter's lines are.

use serde_json::{Value, json};
use tamis::internals::raw::Shape;
use tamis::{AnyFilter, body::Body};

/// The most lines to read: enough for a picture, few enough for a page that asks repeatedly.
const SAMPLE: u64 = 1 << 16;
/// Adjacent lines that are read together.
const RUN: u64 = 64;
/// Columns of the histogram.
const COLUMNS: usize = 32;
/// Bits or counters per line.
const PLACES: usize = 512;

/// How full the lines of a filter are; `null` for kinds whose tables are always full.
pub fn lines<B: Body>(filter: &AnyFilter<B>) -> Value {
    let line_bytes = match filter.shape() {
        // The textbook's filter has no lines; it is split as if it had.
        Shape::Bloom(_) | Shape::Blocked(_) | Shape::Growing(_) => 64,
        Shape::Counting(_) => 256,
        _ => return Value::Null,
    };
    let all = filter.bytes() / line_bytes;
    let runs = all.div_ceil(RUN);
    let taken = runs.min(SAMPLE / RUN);
    let mut counts = [0u64; COLUMNS];
    let (mut looked_at, mut set) = (0, 0);
    for nth in 0..taken {
        // Spread evenly over the filter.
        let run = u128::from(nth) * u128::from(runs) / u128::from(taken);
        let first = run as u64 * RUN;
        let bytes = RUN.min(all - first) * line_bytes;
        let bytes = filter.read_body(first * line_bytes, bytes as usize);
        for line in bytes.chunks_exact(line_bytes as usize) {
            let full = match line_bytes {
                64 => line.iter().map(|byte| byte.count_ones() as usize).sum(),
                _ => line.iter().map(|byte| used_counters(*byte)).sum::<usize>(),
            };
            counts[(full * COLUMNS / PLACES).min(COLUMNS - 1)] += 1;
            set += full as u64;
            looked_at += 1;
        }
    }
    json!({
        "lines": all,
        "sampled": looked_at,
        "places": PLACES,
        "counts": counts,
        "fill": match looked_at {
            0 => 0.0,
            lines => set as f64 / (lines * PLACES as u64) as f64,
        },
    })
}

/// How many of the two counters in a byte are nonzero.
fn used_counters(byte: u8) -> usize {
    usize::from(byte & 0x0F != 0) + usize::from(byte & 0xF0 != 0)
}
