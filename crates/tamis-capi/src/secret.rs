//! The secrets of keyed filters.

use crate::arguments::{path, write};
use crate::status::{Failure, status};
use std::ffi::{c_char, c_int};
use tamis::SecretKey;

/// The secret of a keyed filter.
#[repr(C)]
pub struct Secret {
    /// As they are in a key file.
    pub bytes: [u8; 16],
}

impl Secret {
    pub(crate) fn key(&self) -> SecretKey {
        SecretKey::new(self.bytes)
    }
}

fn give(secret: &mut Secret, key: Result<SecretKey, tamis::Error>) -> Result<(), Failure> {
    secret.bytes = *key?.as_bytes();
    Ok(())
}

/// A secret from the system's random source.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_secret_random(secret: *mut Secret) -> c_int {
    // SAFETY: callers keep what tamis.h says.
    status(|| give(unsafe { write(secret, "secret")? }, SecretKey::random()))
}

/// The secret in a key file, of 32 hexadecimal digits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_secret_load(file: *const c_char, secret: *mut Secret) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (file, secret) = unsafe { (path(file)?, write(secret, "secret")?) };
        give(secret, SecretKey::load(file))
    })
}

/// The secret in a key file; if there is none, it is made with a new secret, readable by its owner only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tamis_secret_load_or_create(
    file: *const c_char,
    secret: *mut Secret,
) -> c_int {
    status(|| {
        // SAFETY: callers keep what tamis.h says.
        let (file, secret) = unsafe { (path(file)?, write(secret, "secret")?) };
        give(secret, SecretKey::load_or_create(file))
    })
}
