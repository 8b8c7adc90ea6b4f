//! The target that TAMIS_FUZZ_TARGET names.
#![no_main]

use std::sync::LazyLock;

static TARGET: LazyLock<tamis_fuzz::Target> = LazyLock::new(|| {
    let name = std::env::var("TAMIS_FUZZ_TARGET").unwrap_or_default();
    tamis_fuzz::target(&name).unwrap_or_else(|| {
        let names = tamis_fuzz::names().join("\n");
        println!("{names}");
        eprintln!("TAMIS_FUZZ_TARGET must be one of these; got {name:?}");
        std::process::exit(2)
    })
});

libfuzzer_sys::fuzz_target!(init: { LazyLock::force(&TARGET); }, |data: &[u8]| TARGET(data));
