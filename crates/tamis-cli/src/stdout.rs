//! The state of standard output when the program started.

use std::fs::File;
use std::io;

/// Whether it was closed (`>&-`). The standard library opens /dev/null instead before `main` runs, so output would
/// vanish silently.
pub(crate) fn was_closed() -> bool {
    #[cfg(target_os = "linux")]
    return before_main::CLOSED.load(std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(target_os = "linux"))]
    false
}

#[cfg(target_os = "linux")]
mod before_main {
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    pub(super) static CLOSED: AtomicBool = AtomicBool::new(false);

    extern "C" fn look() {
        // SAFETY: reads the flags of a descriptor, which need not be open.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        CLOSED.store(flags == -1, Relaxed);
    }

    // SAFETY: the loader calls the functions in this section once, before `main`. This one only uses an atomic and a
    // system call, which don't need an initialised standard library.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;
}

/// Whether the next write would continue an unfinished line, for example one left by a killed run whose output we
/// append to. `false` if unknown.
#[cfg(unix)]
pub(crate) fn goes_on_with_a_line(output: &File, delimiter: u8) -> io::Result<bool> {
    use std::io::Seek;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::FileExt;
    let metadata = output.metadata()?;
    if !metadata.is_file() {
        return Ok(false);
    }
    let descriptor = output.as_raw_fd();
    // SAFETY: reads the flags of an open descriptor.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    let at = if flags != -1 && flags & libc::O_APPEND != 0 {
        metadata.len()
    } else {
        (&*output).stream_position()?
    };
    if at == 0 {
        return Ok(false);
    }
    // The descriptor is most likely write-only, so the file is opened again.
    let Ok(readable) = File::open(format!("/dev/fd/{descriptor}")) else {
        return Ok(false);
    };
    let mut last = [delimiter];
    Ok(readable.read_exact_at(&mut last, at - 1).is_ok() && last != [delimiter])
}

#[cfg(not(unix))]
pub(crate) fn goes_on_with_a_line(_: &File, _: u8) -> io::Result<bool> {
    Ok(false)
}
