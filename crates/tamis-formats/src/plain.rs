//! The textbook's filter: one run of bits, and for a key some of them. Most
//! formats are this, and differ in the hash, the order and the header.

use crate::Error;
use crate::bits::{Bits, Modulus};
use crate::bytes::View;
use crate::probe::{Probe, sums};
use tamis::internals::raw::{Cell, Look};

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plain {
    pub(crate) bits: Bits,
    pub(crate) probe: Probe,
    /// By the number of bits that positions are reduced to, which some formats
    /// do not round up as they do the bits they store.
    modulus: Modulus,
}

/// Filters of at most this many bits are shown whole.
const FEW: u64 = 512;

/// Keys whose bits are fetched together: enough to hide the memory's latency.
pub(crate) const BLOCK: usize = 32;

impl Plain {
    /// The bits must lie in the file, and be one at least.
    pub(crate) const fn new(bits: Bits, probe: Probe) -> Self {
        let modulus = Modulus::new(bits.len);
        Self::with_modulus(bits, probe, modulus)
    }

    /// The same, of numbers that are made for another size.
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

    /// [`contains`](Self::contains) of a probe of sums, which many filters have of a key.
    #[inline]
    pub(crate) fn contains_sums(&self, file: View<'_>, (first, step): (u64, u64)) -> bool {
        sums(self.probe.hashes(), first, step, |x| {
            self.bits.get(file, self.modulus.of(x))
        })
    }

    /// What [`contains`](Self::contains) looks at: a key may have bits in two ways.
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

    /// Sets `out[i]` where it may have the key; leaves the others alone.
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

    /// Whether any bit was new.
    pub(crate) fn insert(&self, file: &mut [u8], key: &[u8]) -> bool {
        let mut new = false;
        self.probe.all(key, &self.modulus, |bit| {
            new |= self.bits.set(file, bit);
            true
        });
        new
    }

    /// Sets all bits of another one, whose keys have the same.
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

    /// How often a key that is not in it is taken for one.
    pub(crate) fn rate(&self, file: View<'_>) -> f64 {
        let fill = self.bits.fill(file);
        let one = match self.probe {
            Probe::NpmSlices { slice, hashes, .. } => {
                // A key's bits follow from two remainders: small slices have so few pairs of them
                // that keys have all bits in common with another. Slices end with unused bits.
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

    /// The number of keys, estimated from how many bits are set; none if all
    /// are.
    pub(crate) fn keys(&self, file: View<'_>) -> Option<f64> {
        let (fill, bits) = (self.bits.fill(file), self.bits.len as f64);
        keys_by_fill(fill, bits, self.probe.hashes() as f64)
    }
}

/// The number of keys that set this share of a number of bits; none if all are
/// set.
pub(crate) fn keys_by_fill(fill: f64, bits: f64, hashes: f64) -> Option<f64> {
    let keys = -(-fill).ln_1p() * bits / hashes;
    keys.is_finite().then_some(keys)
}
