//! A filter in parts: its header, and the bytes of its body, for those who
//! keep them elsewhere than in a file.

use crate::any::AnyFilter;
use crate::bytes::{Body, Bytes};
use crate::header::{Header, KEYS_UNKNOWN};
use crate::layers::GrowingShape;
use crate::schedule::GrowingLayer;
use crate::{Error, Hasher, store};

/// A filter whose body is being brought from elsewhere.
///
/// ```
/// use tamis::{Blocked, Draft, HEADER_LEN, Header};
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

    /// The body, to be filled.
    pub fn body_mut(&mut self) -> &mut [u8] {
        self.body.exclusive_bytes().unwrap_or_default()
    }

    /// The filter. Its count of keys is the header's if the body is the one
    /// that the header was made for, and else unknown.
    pub fn finish(mut self) -> Result<AnyFilter, Error> {
        if self.header.state.body_checksum == store::UNSEALED
            || store::verify(&self.header, self.body.words()).is_err()
        {
            self.header.state.keys = KEYS_UNKNOWN;
        }
        AnyFilter::assemble(&self.header, self.body)
    }
}

impl Header {
    /// Of an empty filter that is all zeros, sealed as a file of it would be.
    pub fn sealed_empty(mut self) -> Self {
        self.state.keys = 0;
        self.state.body_checksum = store::checksum_of_zeros(self.body_len(), 0);
        self
    }

    /// Of a growing filter that has these layers, oldest first. `like` gives
    /// its rate and hash.
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

    /// Of an empty growing filter with this first layer.
    pub fn of_first_layer(layer: &GrowingLayer, rate: f64, hasher: Hasher) -> Result<Self, Error> {
        Ok(Self {
            shape: GrowingShape::of_first(layer.shape())?.into(),
            hasher,
            capacity: layer.capacity(),
            rate,
            state: Default::default(),
        })
    }
}

impl<B: Body> AnyFilter<B> {
    /// The header as a file of this filter would have it.
    pub fn header(&self) -> Header {
        store::sealed(&self.unsealed_header(), &self.body())
    }

    /// The body's words, in order: one run of them, or several in a growing
    /// filter.
    pub fn body(&self) -> Vec<&[B::Word]> {
        self.all_words()
    }
}
