//! The textbook's filter: one run of bits, some of which belong to a key. Most formats use it, and
//! differ in hash, bit order and header.

use crate::Error;
use crate::bits::{Bits, Modulus};
use crate::bytes::View;
use crate::probe::{Probe, sums};
use tamis::internals::raw::{Cell, Look};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plain {
    pub(crate) bits: Bits,
    pub(crate) probe: Probe,
    /// Positions are reduced modulo this. Some formats don't round it up, though they round up the
    /// number of bits that they store.
    modulus: Modulus,
}

/// Filters of at most this many bits are shown completely.
const FEW: u64 = 512;

/// Keys whose bits are prefetched together: enough to hide memory latency.
pub(crate) const BLOCK: usize = 32;

impl Plain {
    /// The bits must be within the file, and there must be at least one.
    pub(crate) const fn new(bits: Bits, probe: Probe) -> Self {
        let modulus = Modulus::new(bits.len);
        Self::with_modulus(bits, probe, modulus)
    }

    /// The same for positions reduced modulo another number than that of the bits.
    pub(crate) const fn with_modulus(bits: Bits, probe: Probe, modulus: Modulus) -> Self {
        Self {
            bits,
            probe,
            modulus,
        }
    }

    #[inline]
    pub(crate) fn contains(&self, file: View<'_>, key: &[u8]) -> bool {
        let is_set = |bit| self.bits.get(file, bit);
        self.probe.all(key, &self.modulus, is_set)
            || !self.probe.is_single() && self.probe.all_as_text(key, &self.modulus, is_set)
    }

    /// [`contains`](Self::contains) for a probe of sums, which many filters share for a key.
    #[inline]
    pub(crate) fn contains_sums(&self, file: View<'_>, (first, step): (u64, u64)) -> bool {
        sums(self.probe.hashes(), first, step, |x| {
            self.bits.get(file, self.modulus.of(x))
        })
    }

    /// The bits that [`contains`](Self::contains) reads. A key may have bits in two ways.
    pub(crate) fn looks(&self, file: View<'_>, key: &[u8]) -> Vec<Look> {
        let (mut as_bytes, mut as_text) = (Vec::new(), Vec::new());
        self.probe.all(key, &self.modulus, |bit| {
            as_bytes.push(bit);
            true
        });
        let is_text = self.probe.all_as_text(key, &self.modulus, |bit| {
            as_text.push(bit);
            true
        });
        let value = |at: &u64| u64::from(self.bits.get(file, *at));
        let cell = |at: &u64| Cell {
            line: None,
            at: *at,
            value: value(at),
        };
        let all = || (0..self.bits.len).take_while(|_| self.bits.len <= FEW);
        let look = |bits: Vec<u64>| Look::Cells {
            cells: bits.iter().map(cell).collect(),
            all: all().map(|at| value(&at)).collect(),
        };
        let as_text = is_text.then_some(as_text);
        [as_bytes].into_iter().chain(as_text).map(look).collect()
    }

    /// Sets `out[i]` where it may have the key; leaves the others unchanged.
    pub(crate) fn contains_many(&self, file: View<'_>, keys: &[&[u8]], out: &mut [bool]) {
        let each = self.probe.hashes() as usize;
        let mut positions = Vec::with_capacity(BLOCK * each);
        for (keys, out) in keys.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
            positions.clear();
            for key in keys {
                self.probe.all(key, &self.modulus, |bit| {
                    self.bits.prefetch(file, bit);
                    positions.push(bit);
                    true
                });
            }
            for (positions, out) in positions.chunks(each).zip(out) {
                *out |= positions.iter().all(|bit| self.bits.get(file, *bit));
            }
        }
    }

    /// Adds a key; returns whether any bit was new.
    pub(crate) fn insert(&self, file: &mut [u8], key: &[u8]) -> bool {
        let mut new = false;
        self.probe.all(key, &self.modulus, |bit| {
            new |= self.bits.set(file, bit);
            true
        });
        new
    }

    /// ORs in another filter with the same shape.
    pub(crate) fn union_with(
        &self,
        file: &mut [u8],
        other: &Self,
        more: View<'_>,
    ) -> Result<(), Error> {
        let unlike = |what, ours: String, theirs: String| Err(Error::Unlike { what, ours, theirs });
        let of = |plain: &Self| (plain.bits.len, plain.probe.hashes());
        if of(self) != of(other) || self.bits.order != other.bits.order {
            let shape = |(bits, hashes)| format!("{bits} bits, {hashes} hashes");
            return unlike("shape", shape(of(self)), shape(of(other)));
        }
        if self.probe != other.probe {
            let name = |probe: &Probe| format!("{probe:?}");
            return unlike("hashes", name(&self.probe), name(&other.probe));
        }
        self.bits.union_with(file, &other.bits, more);
        Ok(())
    }

    /// The false-positive rate now.
    pub(crate) fn rate(&self, file: View<'_>) -> f64 {
        let fill = self.bits.fill(file);
        let one = match self.probe {
            Probe::NpmSlices { slice, hashes, .. } => {
                // A key's bits follow from two remainders. Small slices have so few pairs of these
                // that different keys often share all bits. Slices end with unused bits.
                let different = self.modulus.divisor() as f64;
                let fill = (fill * slice as f64 / different).min(1.0);
                let keys = keys_by_fill(fill, different, 1.0).unwrap_or(f64::INFINITY);
                let others = (-keys / (different * different)).exp();
                1.0 - (1.0 - fill.powf(hashes as f64)) * others
            }
            _ => fill.powf(self.probe.hashes() as f64),
        };
        1.0 - (1.0 - one).powi(self.probe.ways())
    }

    /// The number of keys, estimated from the number of set bits; `None` if all are set.
    pub(crate) fn keys(&self, file: View<'_>) -> Option<f64> {
        let (fill, bits) = (self.bits.fill(file), self.bits.len as f64);
        keys_by_fill(fill, bits, self.probe.hashes() as f64)
    }
}

/// The number of keys that set this share of a number of bits; `None` if all are set.
pub(crate) fn keys_by_fill(fill: f64, bits: f64, hashes: f64) -> Option<f64> {
    let keys = -(-fill).ln_1p() * bits / hashes;
    keys.is_finite().then_some(keys)
}
