//! Set operations on filters: union, intersection, comparison.

use super::Filter;
use super::backing::Backing;
use crate::error::{Failure, Result};
use crate::key;
use crate::when::Times;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use tamis::AnyFilter;

#[derive(Clone, Copy)]
pub(crate) enum Combination {
    Union,
    Intersection,
}

impl Combination {
    fn of(self, ours: &mut AnyFilter, theirs: &Backing) -> Result<()> {
        match self {
            Self::Union => theirs.unite_into(ours),
            Self::Intersection => theirs.intersect_into(ours),
        }
    }
}

/// Refuses filters whose functions make different keys.
fn check_functions(slf: &Bound<'_, Filter>, other: &Bound<'_, Filter>) -> Result<()> {
    if same_functions(slf, other)? {
        Ok(())
    } else {
        Err(Failure::Own(
            "UnlikeError",
            "hash_func: expected the same function in both filters, got different ones".into(),
        ))
    }
}

fn same_functions(slf: &Bound<'_, Filter>, other: &Bound<'_, Filter>) -> PyResult<bool> {
    match (&slf.get().hash_func, &other.get().hash_func) {
        (None, None) => Ok(true),
        (Some(ours), Some(theirs)) => ours.bind(slf.py()).eq(theirs),
        _ => Ok(false),
    }
}

/// The argument `other`, which must be a filter.
pub(crate) fn other<'a, 'py>(object: &'a Bound<'py, PyAny>) -> Result<&'a Bound<'py, Filter>> {
    object.cast::<Filter>().map_err(|_| {
        let got = key::type_name(object);
        Failure::argument(format!("other: expected a Filter, got {got}"))
    })
}

/// A new filter combining both.
pub(crate) fn combined<'py>(
    slf: &Bound<'py, Filter>,
    other: &Bound<'py, Filter>,
    how: Combination,
) -> Result<Bound<'py, Filter>> {
    check_functions(slf, other)?;
    let made = Filter::write_beside(slf, other, move |ours, theirs| {
        let mut filter = ours.duplicate()?;
        how.of(&mut filter, theirs)?;
        Ok(filter)
    });
    match made? {
        Some(filter) => Filter::alike(slf, filter),
        None => Filter::copy(slf),
    }
}

/// Combines the right filter into the left one.
pub(crate) fn combine(
    slf: &Bound<'_, Filter>,
    other: &Bound<'_, Filter>,
    how: Combination,
) -> Result<()> {
    slf.get().check_writer()?;
    check_functions(slf, other)?;
    let done = Filter::write_beside(slf, other, move |ours, theirs| {
        how.of(ours.writable()?, theirs)
    });
    match done? {
        Some(()) => Ok(()),
        // Combined with itself, it is unchanged; only checks that it may be changed.
        None => Filter::write(slf, |state| state.writable().map(drop)),
    }
}

/// A new filter combining this one and all others: filters or keys.
pub(crate) fn united<'py>(
    slf: &Bound<'py, Filter>,
    others: &Bound<'py, PyTuple>,
    how: Combination,
) -> Result<Bound<'py, Filter>> {
    let all = Filter::alike(slf, Filter::to_memory(slf)?)?;
    combine_all(&all, others, how)?;
    Ok(all)
}

/// Combines all others, filters or keys, into this one.
pub(crate) fn combine_all(
    slf: &Bound<'_, Filter>,
    others: &Bound<'_, PyTuple>,
    how: Combination,
) -> Result<()> {
    for other in others {
        match (other.cast::<Filter>(), how) {
            (Ok(other), _) => combine(slf, other, how)?,
            (Err(_), Combination::Union) => {
                slf.get()
                    .insert_all(&other, &Times::Now, 1, false, None)
                    .map(drop)?;
            }
            (Err(_), Combination::Intersection) => {
                let mut empty = Filter::to_memory(slf)?;
                empty.clear()?;
                let theirs = Filter::alike(slf, empty)?;
                theirs
                    .get()
                    .insert_all(&other, &Times::Now, 1, false, None)?;
                combine(slf, &theirs, how)?;
            }
        }
    }
    Ok(())
}

pub(crate) fn is_subset(slf: &Bound<'_, Filter>, other: &Bound<'_, Filter>) -> Result<bool> {
    check_functions(slf, other)?;
    let subset = Filter::write_beside(slf, other, |ours, theirs| ours.is_subset_of(theirs));
    match subset? {
        Some(subset) => Ok(subset),
        // With itself: true, if the comparison is possible at all.
        None => Filter::read(slf, |state| state.is_subset_of(state)),
    }
}

pub(crate) fn is_same(slf: &Bound<'_, Filter>, other: &Bound<'_, Filter>) -> Result<bool> {
    if !same_functions(slf, other)? {
        return Ok(false);
    }
    let same = Filter::write_beside(slf, other, |ours, theirs| ours.same(theirs));
    Ok(same?.unwrap_or(true))
}
