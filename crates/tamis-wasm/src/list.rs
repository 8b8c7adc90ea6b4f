//! Finished lists, built from all their keys.

use crate::memory::{boxed, reply_error};
use crate::wish::finished;
use tamis::{AnyFilter, Error, Hash, Hasher, ListBuilder, internals::Both};

/// A list that is being built.
pub struct List {
    builder: ListBuilder,
    hasher: Hasher,
}

impl List {
    /// How its keys are hashed.
    pub(crate) const fn hashers(&self) -> (Hasher, Option<Hasher>) {
        (self.hasher, self.builder.checker())
    }

    pub(crate) fn add(
        &mut self,
        hashes: &[Hash],
        checks: &[Hash],
        allow: bool,
    ) -> Result<(), Error> {
        match (allow, self.builder.checker().is_some()) {
            (false, true) => self.builder.add_checked(hashes, checks),
            (false, false) => self.builder.add_hashes(hashes),
            (true, true) => self.builder.allow_checked(hashes, checks),
            (true, false) => self.builder.allow_hashes(hashes),
        }
    }
}

/// Begins the list that was wished for; 0 if it can't. `both` says which list wins where a key is on both:
/// 0 neither, 1 the block list, 2 the allow list.
#[unsafe(no_mangle)]
pub extern "C" fn list(both: u32) -> *mut List {
    let (kind, rate, hasher) = finished();
    let both = match both {
        1 => Both::Block,
        2 => Both::Allow,
        _ => Both::Refuse,
    };
    let builder = ListBuilder::with_hasher(kind, rate, hasher);
    boxed(reply_error(builder).map(|builder| List {
        builder: builder.both(both),
        hasher,
    }))
}

/// The filter of all keys of the list, which is gone; 0 if it can't be built.
///
/// # Safety
/// `list` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn list_build(list: *mut List) -> *mut AnyFilter {
    // SAFETY: the caller's promise.
    let list = unsafe { Box::from_raw(list) };
    boxed(reply_error(list.builder.build()))
}

/// Frees a list that will not be built.
///
/// # Safety
/// `list` is one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn list_free(list: *mut List) {
    // SAFETY: the caller's promise.
    drop(unsafe { Box::from_raw(list) });
}
