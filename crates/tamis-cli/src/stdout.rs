//! What standard output was when the program started.

use std::fs::File;
use std::io;

/// Whether it was closed (`>&-`). The standard library opens /dev/null in its
/// place before `main` runs, and output would vanish without a word.
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
        // SAFETY: asks for the flags of a descriptor, which need not be open.
        let flags = unsafe { libc::fcntl(libc::STDOUT_FILENO, libc::F_GETFD) };
        CLOSED.store(flags == -1, Relaxed);
    }

    // SAFETY: the section holds functions that the loader calls once before
    // `main`. This one uses nothing that needs the standard library to have
    // started: an atomic and a system call.
    #[used]
    #[unsafe(link_section = ".init_array")]
    static LOOK: extern "C" fn() = look;
}

/// Whether the next write would go on with a line that somebody else began: a
/// run that was killed while it wrote, and whose output we append to. `false`
/// also where it can't be told.
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
    // SAFETY: asks for the flags of an open file.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    let at = if flags != -1 && flags & libc::O_APPEND != 0 {
        metadata.len()
    } else {
        (&*output).stream_position()?
    };
    if at == 0 {
        return Ok(false);
    }
    // Most likely it is open for writing only; this opens it once more.
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
