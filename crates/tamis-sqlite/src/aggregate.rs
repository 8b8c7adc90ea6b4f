//! The aggregate that builds a filter from a column.

use crate::key::{self, error, wrong};
use rusqlite::functions::{Aggregate, Context};
use rusqlite::limits::Limit;
use rusqlite::types::ValueRef;
use rusqlite::{Error, Result};
use std::panic::AssertUnwindSafe;
use tamis::{AnyFilter, Hasher, Kind, Plan};

/// `tamis_filter(key [, keys [, rate]])`.
pub(crate) struct Maker;

/// A filter being built.
pub(crate) struct Making {
    filter: AnyFilter,
    asked: Asked,
}

/// The arguments, which must be the same in every row.
#[derive(Clone, Copy, PartialEq)]
struct Asked {
    /// `None` if unknown: then the filter grows.
    keys: Option<u64>,
    rate: f64,
}

impl Asked {
    fn read(ctx: &Context<'_>) -> Result<Self> {
        let argument = |at| match at < ctx.len() {
            true => ctx.get_raw(at),
            false => ValueRef::Null,
        };
        let number = |value| error(format!("keys: expected a number from 1, got {value}"));
        let keys = match argument(1) {
            ValueRef::Null => None,
            ValueRef::Integer(keys) => Some(u64::try_from(keys).map_err(|_| number(keys as f64))?),
            // In SQL, 1e6 is a real number.
            ValueRef::Real(keys) if keys >= 1.0 && keys.fract() == 0.0 && keys < 1e18 => {
                Some(keys as u64)
            }
            ValueRef::Real(keys) => return Err(number(keys)),
            other => return Err(wrong("keys", "a number, or NULL", other.data_type())),
        };
        let rate = match argument(2) {
            ValueRef::Null => 0.01,
            ValueRef::Real(rate) => rate,
            ValueRef::Integer(rate) => rate as f64,
            other => return Err(wrong("rate", "a number between 0 and 1", other.data_type())),
        };
        Ok(Self { keys, rate })
    }
}

fn too_many(keys: u64) -> Error {
    error(format!(
        "there are more than {keys} different keys, and the filter would not keep its rate; \
         say more, or NULL for a filter that grows"
    ))
}

/// The most bytes in a blob.
fn longest(ctx: &Context<'_>) -> Result<u64> {
    // SAFETY: used here, in this thread, and not kept.
    let db = unsafe { ctx.get_connection()? };
    Ok(u64::try_from(db.limit(Limit::SQLITE_LIMIT_LENGTH)?).unwrap_or(0))
}

impl Aggregate<AssertUnwindSafe<Making>, Option<Vec<u8>>> for Maker {
    fn init(&self, ctx: &mut Context<'_>) -> Result<AssertUnwindSafe<Making>> {
        let asked = Asked::read(ctx)?;
        let plan = match asked.keys {
            Some(keys) => Plan::for_rate(Kind::Blocked, keys, asked.rate),
            None => Plan::for_rate(Kind::Growing, 1_000, asked.rate),
        }
        .map_err(error)?;
        // Checked before allocating: no blob could hold it.
        let longest = longest(ctx)?;
        if plan.bytes() > longest {
            return Err(error(format!(
                "a filter for {} keys has {} bytes, and a blob at most {longest}; \
                 fewer keys or a higher rate need less, or make a file with `tamis build`",
                plan.keys(),
                plan.bytes()
            )));
        }
        let filter = AnyFilter::from_plan(&plan, Hasher::default()).map_err(error)?;
        Ok(AssertUnwindSafe(Making { filter, asked }))
    }

    fn step(&self, ctx: &mut Context<'_>, making: &mut AssertUnwindSafe<Making>) -> Result<()> {
        let Making { filter, asked } = &mut making.0;
        if Asked::read(ctx)? != *asked {
            return Err(error(
                "keys, rate: expected the same for all rows of a filter",
            ));
        }
        let Some(hash) = key::hash(ctx, 0, filter.hasher())? else {
            return Ok(());
        };
        let is_new = filter.insert(hash).map_err(error)?;
        match asked.keys {
            Some(keys) if is_new && filter.counted() > Some(keys) => Err(too_many(keys)),
            _ => Ok(()),
        }
    }

    fn finalize(
        &self,
        _: &mut Context<'_>,
        making: Option<AssertUnwindSafe<Making>>,
    ) -> Result<Option<Vec<u8>>> {
        let Some(AssertUnwindSafe(Making { filter, asked })) = making else {
            return Ok(None);
        };
        // At high rates many new keys seem present and aren't counted. The number of bits set shows how many keys there
        // are, to within the square root of their number.
        if let (Some(keys), Some(estimated)) = (asked.keys, filter.undercounted())
            && estimated as f64 > keys as f64 + 4.0 * (keys as f64).sqrt()
        {
            return Err(too_many(keys));
        }
        Ok(Some(filter.to_bytes()))
    }
}
