//! A file: loaded, mapped, shared and verified.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tamis::{AnyFilter, Map};
use tamis_fuzz::{exercise, mended, open};

fuzz_target!(|data: &[u8]| {
    let name = format!("tamis-fuzz-{}.tamis", std::process::id());
    let path = std::env::temp_dir().join(name);
    for bytes in [Some(data.to_vec()), mended(data)].into_iter().flatten() {
        std::fs::write(&path, &bytes).expect("a place for temporary files");
        for open in [open(), open().accept_loss()] {
            let sound = AnyFilter::<Map>::verify(&path, &open).is_ok();
            assert_eq!(open.load(&path).is_ok(), sound);
            if let Ok(filter) = open.map(&path) {
                // A map may be of a body that its checksum does not fit.
                let _ = filter.contains("key");
                if sound {
                    exercise(&filter, &bytes);
                }
            }
        }
        if let Ok(mut filter) = open().share(&path) {
            // A growing filter of forged layers may find no room for another.
            let added = filter.insert("key").is_ok();
            assert!(!added || filter.contains("key"));
            filter.close().expect("a closed file");
            let found = open().load(&path).expect("a sound file").contains("key");
            assert!(!added || found);
        }
    }
    let _ = std::fs::remove_file(&path);
});
