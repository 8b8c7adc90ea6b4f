//! A filter in parts, header and body, for programs that store them somewhere other than in a file.

use crate::error::Error;
use crate::filter::any::AnyFilter;
use crate::hasher::Hasher;
use crate::plan::Plan;
use crate::raw::header::{Header, KEYS_UNKNOWN, State, UNSEALED};
use crate::raw::layers::{GrowingLayer, GrowingShape};
use crate::raw::word::ReadOnly;
use crate::store::body::{Body, Bytes};
use crate::store::check::{Terms, checksum_of_zeros, verify};

/// A filter whose body comes from elsewhere.
///
/// ```
/// use tamis::internals::raw::{HEADER_LEN, Header};
/// use tamis::{Blocked, internals::Draft};
/// let seen = Blocked::new(1_000, 0.01)?;
/// seen.insert("key");
/// let bytes = seen.to_bytes();
/// let (header, body) = bytes.split_at(HEADER_LEN); // kept apart
///
/// let mut draft = Draft::new(&Header::decode(header, None)?)?;
/// draft.body_mut().copy_from_slice(body);
/// assert_eq!(draft.finish()?.to_bytes(), bytes);
/// # Ok::<(), tamis::Error>(())
/// ```
#[derive(Debug)]
pub struct Draft {
    header: Header,
    body: Bytes,
}

impl Draft {
    /// Room for the body, zeroed.
    pub fn new(header: &Header) -> Result<Self, Error> {
        let body = Bytes::zeroed(header.body_len())?;
        let header = *header;
        Ok(Self { header, body })
    }

    /// Room for the body of a filter of `len` bytes, header included; see
    /// [`Open::draft`](crate::Open::draft).
    pub(crate) fn of_file(header: &[u8], len: u64, terms: Terms<'_>) -> Result<Self, Error> {
        let header = Header::decode(header, terms.key)?;
        header.check_file_len(len)?;
        header.check_clean(terms.accept_loss)?;
        Self::new(&header)
    }

    /// The body, to be filled.
    pub fn body_mut(&mut self) -> &mut [u8] {
        self.body.exclusive_bytes().unwrap_or_default()
    }

    /// The filter. Its count of keys is the header's if the body matches the header's checksum, and
    /// otherwise unknown.
    pub fn finish(mut self) -> Result<AnyFilter, Error> {
        if self.header.state.body_checksum == UNSEALED
            || verify(&self.header, self.body.words()).is_err()
        {
            self.header.state.keys = KEYS_UNKNOWN;
        }
        AnyFilter::assemble((self.header, self.body))
    }

    /// The filter of the original file. The body must match the header's checksum.
    pub fn verified(self) -> Result<AnyFilter, Error> {
        verify(&self.header, self.body.words())?;
        AnyFilter::assemble((self.header, self.body))
    }
}

impl Header {
    /// The header of an empty filter, as planned.
    ///
    /// ```
    /// use tamis::internals::raw::Header;
    /// use tamis::{Hasher, Kind, Plan};
    /// let plan = Plan::for_rate(Kind::Blocked, 1_000, 0.01)?;
    /// let header = Header::of_plan(&plan, Hasher::default());
    /// assert_eq!((header.shape(), header.capacity()), (plan.shape(), 1_000));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    pub fn of_plan(plan: &Plan, hasher: Hasher) -> Self {
        Self {
            shape: plan.shape(),
            hasher,
            capacity: plan.keys(),
            rate: plan.promise(),
            state: State::default(),
        }
    }

    /// Seals an empty filter, all zeros, like its file would be.
    pub fn sealed_empty(mut self) -> Self {
        self.state.keys = 0;
        self.state.body_checksum = checksum_of_zeros(self.body_len(), 0);
        self
    }

    /// The header of a growing filter with these layers, oldest first, and the rate and hash of
    /// `like`.
    pub fn of_layers(like: &Self, layers: &[GrowingLayer]) -> Result<Self, Error> {
        let mut header = *like;
        let mut shape: Option<GrowingShape> = None;
        header.capacity = 0;
        for layer in layers {
            shape = Some(match shape {
                None => GrowingShape::of_first(layer.shape())?,
                Some(shape) => shape.and(layer.shape())?,
            });
            header.capacity = header.capacity.saturating_add(layer.capacity());
        }
        header.shape = shape
            .ok_or(Error::corrupt("layers", "at least 1", 0))?
            .into();
        Ok(header)
    }

    /// The header of an empty growing filter with this first layer.
    pub fn of_first_layer(layer: &GrowingLayer, rate: f64, hasher: Hasher) -> Result<Self, Error> {
        Ok(Self {
            shape: GrowingShape::of_first(layer.shape())?.into(),
            hasher,
            capacity: layer.capacity(),
            rate,
            state: State::default(),
        })
    }
}

impl<B: Body> AnyFilter<B> {
    /// The body's words, in order, as one slice, or several in a growing filter.
    ///
    /// ```
    /// use tamis::internals::raw::Word;
    /// use tamis::{AnyFilter, Blocked};
    /// let empty = AnyFilter::from(Blocked::new(1_000, 0.01)?);
    /// assert!(empty.body().iter().copied().flatten().all(|word| word.get() == 0));
    /// # Ok::<(), tamis::Error>(())
    /// ```
    ///
    /// They can only be read, since a mapped file may not be written to:
    ///
    /// ```compile_fail
    /// # use std::sync::atomic::Ordering::Relaxed;
    /// # let filter = tamis::AnyFilter::open("seen.tamis").unwrap();
    /// filter.body()[0][0].store(1, Relaxed);
    /// ```
    #[must_use]
    #[doc(hidden)]
    pub fn body(&self) -> Vec<&[ReadOnly<B::Word>]> {
        let words = self.all_words().into_iter();
        words.map(ReadOnly::slice).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Blocked;
    use crate::filter::growing::Growing;
    use crate::filter::keys::KeyCount;
    use crate::raw::word::Word as _;

    /// Takes a filter apart, changes it and reassembles it.
    fn redrawn(filter: &AnyFilter, change: impl Fn(&mut [u8])) -> AnyFilter {
        let mut draft = Draft::new(&filter.sealed_header()).unwrap();
        let parts = filter.body();
        let words = parts.iter().flat_map(|part| part.iter());
        let bytes: Vec<u8> = words.flat_map(|word| word.get().to_le_bytes()).collect();
        draft.body_mut().copy_from_slice(&bytes);
        change(draft.body_mut());
        draft.finish().unwrap()
    }

    #[test]
    fn the_count_holds_for_the_same_body_only() {
        let blocked = Blocked::new(1_000, 0.01).unwrap();
        let mut growing = Growing::new(1_000, 0.01).unwrap();
        for i in 0..3_000u64 {
            blocked.insert(i.to_le_bytes());
            growing.insert(i.to_le_bytes()).unwrap();
        }
        for filter in [AnyFilter::Blocked(blocked), AnyFilter::Growing(growing)] {
            let same = redrawn(&filter, |_| {});
            assert_eq!(same.to_bytes(), filter.to_bytes());
            assert!(matches!(same.keys(), KeyCount::Counted(_)));
            let other = redrawn(&filter, |body| body[body.len() - 1] ^= 1);
            assert!(matches!(other.keys(), KeyCount::Estimated(_)));
        }
    }

    #[test]
    fn an_empty_filter_is_sealed_as_its_file_would_be() {
        let filter = AnyFilter::Blocked(Blocked::new(1_000, 0.01).unwrap());
        assert_eq!(filter.sealed_header(), filter.header().sealed_empty());
    }

    #[test]
    fn layers_make_a_header() {
        let mut layers = vec![GrowingLayer::first_of_one_line(1_000, 0.01).unwrap()];
        let hasher = Hasher::default();
        let first = Header::of_first_layer(&layers[0], 0.01, hasher).unwrap();
        for _ in 0..20 {
            layers.push(GrowingLayer::next(&layers, 0.01).unwrap());
        }
        let header = Header::of_layers(&first, &layers).unwrap();
        let mut draft = Draft::new(&header).unwrap();
        let mut at = 0;
        for layer in &layers {
            draft.body_mut()[at..at + 64].copy_from_slice(&layer.encode(1));
            at += 64 * (1 + layer.shape().lines() as usize);
        }
        assert_eq!(at as u64, header.body_len());
        assert_eq!(draft.finish().unwrap().shape(), header.shape());
        assert!(Header::of_layers(&first, &[]).is_err());
    }

    #[test]
    fn lines_that_describe_no_layer_are_refused() {
        let layer = GrowingLayer::first_of_one_line(1_000, 0.01).unwrap();
        let sound = layer.encode(5);
        let like = layer.shape();
        assert!(GrowingLayer::decode(&[0; 64], &like).is_err());
        assert!(GrowingLayer::decode(&[255; 64], &like).is_err());
        // Lines, keys, rate and the reserved words; any capacity is valid.
        for word in [0, 2, 3, 4, 5, 6, 7] {
            let mut line = sound;
            line[word * 8..][..8].fill(255);
            assert!(GrowingLayer::decode(&line, &like).is_err(), "word {word}");
        }
    }
}
