//! Random bytes, from JavaScript's `crypto.getRandomValues`.

#[link(wasm_import_module = "tamis")]
unsafe extern "C" {
    /// Fills memory with random bytes; whether it could.
    safe fn random(at: *mut u8, len: usize) -> bool;
}

/// What `getrandom` calls where nothing else is known to be random.
#[unsafe(no_mangle)]
extern "Rust" fn __getrandom_v03_custom(at: *mut u8, len: usize) -> Result<(), getrandom::Error> {
    if random(at, len) {
        Ok(())
    } else {
        Err(getrandom::Error::UNSUPPORTED)
    }
}
