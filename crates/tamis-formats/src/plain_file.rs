//! A file with one plain filter.

use crate::bits::Bits;
use crate::bytes::{Bytes, View};
use crate::filter::{Filter, Opened, same};
use crate::plain::Plain;
use crate::probe::Probe;
use crate::{Error, Facts, Keys, Wrap};
use std::fmt::Debug;
use std::sync::Arc;

/// A file with one plain filter.
#[derive(Clone, Debug)]
pub(crate) struct PlainFile {
    plain: Plain,
    facts: Facts,
    /// How its keys became bytes, if known more precisely than from the format.
    pub(crate) keys: Option<&'static [Keys]>,
    envelope: Option<Arc<dyn Envelope>>,
    /// The file formats for the same filter, if there are several.
    pub(crate) envelopes: &'static [(Wrap, Option<MakeEnvelope>)],
}

pub(crate) type MakeEnvelope = fn() -> Arc<dyn Envelope>;

/// A file that doesn't contain the bits in place, such as JSON.
pub(crate) trait Envelope: Debug + Send + Sync {
    /// The file, from the bytes that the filter uses.
    fn write(&self, file: View<'_>) -> Vec<u8>;
}

impl PlainFile {
    /// The bits must be within the file, and there must be at least one.
    pub(crate) const fn new(bits: Bits, probe: Probe) -> Self {
        Self::of(Plain::new(bits, probe))
    }

    pub(crate) const fn of(plain: Plain) -> Self {
        Self {
            plain,
            facts: Facts::NONE,
            keys: None,
            envelope: None,
            envelopes: &[],
        }
    }

    pub(crate) const fn facts(mut self, facts: Facts) -> Self {
        self.facts = facts;
        self
    }

    /// The filter of an envelope; it uses these bytes.
    pub(crate) fn within(mut self, envelope: impl Envelope + 'static, file: Vec<u8>) -> Opened {
        self.envelope = Some(Arc::new(envelope));
        Opened::new(self, file)
    }
}

impl Filter for PlainFile {
    fn facts(&self) -> Facts {
        self.facts
    }

    fn keys(&self) -> Option<&'static [Keys]> {
        self.keys
    }

    #[inline]
    fn contains(&self, file: View<'_>, key: &[u8]) -> bool {
        self.plain.contains(file, key)
    }

    fn contains_many(&self, file: View<'_>, keys: &[&[u8]], out: &mut [bool]) {
        if self.plain.probe.is_single() {
            return self.plain.contains_many(file, keys, out);
        }
        for (key, out) in keys.iter().zip(out) {
            *out |= self.plain.contains(file, key);
        }
    }

    fn insert(&mut self, file: &mut Bytes<'_>, key: &[u8]) -> Result<bool, Error> {
        let new = self.plain.insert(file.to_mut(), key);
        self.facts.count(file.to_mut(), new);
        Ok(new)
    }

    fn union_with(
        &mut self,
        file: &mut Bytes<'_>,
        other: &dyn Filter,
        more: View<'_>,
    ) -> Result<bool, Error> {
        let Some(other) = same(self, other) else {
            return Ok(false);
        };
        self.plain.union_with(file.to_mut(), &other.plain, more)?;
        let keys = other.facts.keys.unwrap_or_default();
        let keys = self.facts.keys.map(|ours| ours.saturating_add(keys));
        self.facts.set_count(file.to_mut(), keys);
        Ok(true)
    }

    fn write(&self, file: View<'_>) -> Vec<u8> {
        match &self.envelope {
            Some(envelope) => envelope.write(file),
            None => file.to_vec(),
        }
    }

    fn rewrap(&mut self, wrap: Wrap) -> bool {
        let found = self.envelopes.iter().find(|(other, _)| *other == wrap);
        if let Some((_, make)) = found {
            self.envelope = make.map(|make| make());
        }
        found.is_some()
    }

    fn plains<'v>(&'v self, file: View<'v>) -> Vec<(&'v Plain, View<'v>)> {
        vec![(&self.plain, file)]
    }
}
