//! Rates and sizes of the kinds built from finished lists, which compare a fingerprint.

use super::rated::{Rated, check_rate, most_keys, no_room, shown, too_large};
use crate::error::Error;
use crate::kind::Kind;
use crate::raw::cascade::CascadeShape;
use crate::raw::fuse::FuseShape;
use crate::raw::ribbon::RibbonShape;
use crate::raw::ribbon::compact::Width;
use crate::raw::shape::Shape;
use crate::raw::word::Word;

/// The rate of fingerprints of this many bits. The empty set has no body.
fn rate_of(body_len: u64, width: u32, keys: f64) -> f64 {
    if body_len == 0 || keys == 0.0 {
        0.0
    } else {
        2f64.powi(-(width as i32))
    }
}

impl Rated for FuseShape {
    fn rate_at(&self, keys: f64) -> f64 {
        rate_of(self.body_len(), self.width(), keys)
    }

    fn rate_now<W: Word>(&self, _: &[W]) -> f64 {
        self.rate_at(1.0)
    }
}

impl Rated for RibbonShape {
    fn rate_at(&self, keys: f64) -> f64 {
        rate_of(self.body_len(), self.width(), keys)
    }

    fn rate_now<W: Word>(&self, _: &[W]) -> f64 {
        self.rate_at(1.0)
    }
}

impl Rated for CascadeShape {
    fn rate_at(&self, keys: f64) -> f64 {
        self.first().rate_at(keys) * self.second().rate_at(keys)
    }

    fn rate_now<W: Word>(&self, _: &[W]) -> f64 {
        self.rate_at(1.0)
    }
}

/// The narrowest fingerprint that keeps the rate.
pub(crate) fn width_for_rate(rate: f64) -> Result<u32, Error> {
    check_rate(rate)?;
    let keeps = |width: &u32| 2f64.powi(-(*width as i32)) <= rate;
    (1..=32).find(keeps).ok_or_else(|| {
        Error::parameter(
            "rate",
            "at least 2^-32 (2.4e-10) for a finished list; a blocked filter goes lower",
            shown(rate),
        )
    })
}

/// The approximate shape that building with this many keys gives; for a cascade, without the few
/// bits that an allow list costs.
pub(super) fn shape_for(kind: Kind, keys: u64, width: u32) -> Result<Shape, Error> {
    let ribbon = |width| {
        RibbonShape::expected(keys, width)
            .ok_or_else(|| too_large(keys, 2f64.powi(-(width as i32))))
    };
    Ok(match kind {
        Kind::Fuse => FuseShape::expected(keys, width)?.into(),
        Kind::Ribbon => ribbon(width)?.into(),
        _ => {
            let first = width.saturating_sub(1).max(1);
            CascadeShape::of_levels(ribbon(first)?, ribbon(1)?).into()
        }
    })
}

pub(super) fn for_size(kind: Kind, keys: u64, bytes: u64) -> Result<Shape, Error> {
    let fits =
        |width: &u32| shape_for(kind, keys, *width).is_ok_and(|shape| shape.body_len() <= bytes);
    let least = if kind == Kind::Cascade { 2 } else { 1 };
    match (least..=32).rev().find(fits) {
        Some(width) => shape_for(kind, keys, width),
        None => Err(no_room("room for at least one bit per key", bytes, keys)),
    }
}

pub(super) fn for_rate_in_size(kind: Kind, rate: f64, bytes: u64) -> Result<(Shape, u64), Error> {
    let width = width_for_rate(rate)?;
    let shape = |keys: f64| shape_for(kind, keys as u64, width);
    let mut keys = most_keys(|keys| shape(keys).is_ok_and(|shape| shape.body_len() <= bytes));
    // Sizes have small steps, so fewer keys may take more.
    while shape(keys as f64)?.body_len() > bytes {
        keys -= 1;
    }
    Ok((shape(keys as f64)?, keys))
}

/// The width of the first level: as the rate requires, or wider if that makes the whole smaller,
/// because the allow list is much longer.
pub(crate) fn first_width(block: u64, allow: u64, width: u32) -> u32 {
    let least = width.saturating_sub(1).max(1);
    let bits =
        |width: u32| block as f64 * f64::from(width) + allow as f64 / 2f64.powi(width as i32);
    let smaller = |width: &u32| bits(width + 1) < bits(*width);
    (least..32).find(|width| !smaller(width)).unwrap_or(32)
}

/// The minimum bits of any structure that contains all of `block` keys, none of `allow` keys, and
/// others at `rate`.
///
/// A random set of that rate does so by luck with probability `rate^block · (1 - rate)^allow`, so a
/// structure must be able to name one of about the inverse of that many sets.
///
/// ```
/// let bits = tamis::internals::plan::cascade_bound(1_000_000, 5_000_000, 1.0 / 128.0);
/// assert_eq!(bits.round(), 7_056_577.0);
/// ```
pub fn cascade_bound(block: u64, allow: u64, rate: f64) -> f64 {
    -(block as f64) * libm::log2(rate) - allow as f64 * libm::log1p(-rate) / std::f64::consts::LN_2
}

/// The width of a table in an index.
impl Width {
    /// The narrowest that keeps the rate.
    pub(crate) fn for_rate(rate: f64) -> Result<Self, Error> {
        let bits = width_for_rate(rate)?;
        // Exact: a power of two scales without rounding.
        let narrow = (rate * 2f64.powi(bits as i32) - 1.0) * 65536.0;
        Self::new(bits, narrow as u16)
            .filter(|_| rate <= 0.5)
            .ok_or_else(|| Error::parameter("rate", "at most 0.5 for an index", rate))
    }

    /// The highest probability of finding a key outside the set.
    pub(crate) fn rate(self) -> f64 {
        2f64.powi(-(self.bits as i32)) * (1.0 + f64::from(self.narrow) / 65536.0)
    }
}
