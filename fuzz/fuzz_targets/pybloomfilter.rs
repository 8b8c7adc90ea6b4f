//! A file that may be one of pybloomfiltermmap3: opened, asked, added to and
//! opened again; as it is, and with a header that says what its length allows.
#![no_main]

#[path = "../pybloom.rs"]
mod pybloom;

use libfuzzer_sys::fuzz_target;
use std::path::PathBuf;
use std::sync::LazyLock;

static PLACE: LazyLock<PathBuf> = LazyLock::new(|| {
    // In memory where there is such a place: a million files are written.
    let memory = PathBuf::from("/dev/shm");
    let folder = if memory.is_dir() {
        memory
    } else {
        std::env::temp_dir()
    };
    folder.join(format!("tamis-fuzz-{}.bloom", std::process::id()))
});

fuzz_target!(|data: &[u8]| {
    pybloom::exercise(&PLACE, data);
    // With a header whose fields are right, but for those the input chooses.
    let mut bytes = vec![0; 1280];
    let fields = data.get(..24).unwrap_or_default();
    let [bits, hashes, ..] = fields else {
        return;
    };
    let body = &data[24..];
    bytes[..9].copy_from_slice(b"MBITARRAY");
    let most = 8 * body.len() as u64;
    let bits = most.saturating_sub(u64::from(*bits) % 9);
    bytes[9..17].copy_from_slice(&bits.to_le_bytes());
    bytes[17..21].copy_from_slice(&1200u32.to_le_bytes());
    bytes[21..37].copy_from_slice(&fields[8..24]);
    bytes[37..41].copy_from_slice(&(u32::from(*hashes)).to_le_bytes());
    for (byte, seed) in bytes[41..1065].iter_mut().zip(body.iter().rev()) {
        *byte = *seed;
    }
    bytes.extend_from_slice(body);
    pybloom::exercise(&PLACE, &bytes);
    let _ = std::fs::remove_file(&*PLACE);
});
