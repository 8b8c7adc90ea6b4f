//! The socket below a connection, encrypted or not.

#[cfg(unix)]
use std::os::fd::{AsRawFd as _, RawFd};
use tokio::net::TcpStream;

/// A socket that somebody else holds.
#[derive(Clone, Copy)]
pub(crate) struct Socket {
    #[cfg(unix)]
    descriptor: RawFd,
}

impl Socket {
    pub(crate) fn of(stream: &TcpStream) -> Self {
        #[cfg(not(unix))]
        let _ = stream;
        Self {
            #[cfg(unix)]
            descriptor: stream.as_raw_fd(),
        }
    }

    /// Has the end of a connection discard what the client has not taken yet, if there is anything. The
    /// system would otherwise go on sending it, megabytes, for as long as the client likes. To be
    /// called while the stream still exists.
    #[cfg(unix)]
    pub(crate) fn forget_what_is_unread(self) {
        let mut unread: libc::c_int = 0;
        // SAFETY: a system call that writes the one number it is given. The descriptor is that of a
        // stream which the caller has not closed.
        let asked = unsafe { libc::ioctl(self.descriptor, libc::TIOCOUTQ, &raw mut unread) };
        if asked != 0 || unread == 0 {
            return;
        }
        let at_once = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        // SAFETY: a system call that reads the one value it is given, of the size it is told. The
        // descriptor is as above.
        unsafe {
            libc::setsockopt(
                self.descriptor,
                libc::SOL_SOCKET,
                libc::SO_LINGER,
                (&raw const at_once).cast(),
                size_of_val(&at_once) as libc::socklen_t,
            );
        }
    }

    #[cfg(not(unix))]
    pub(crate) fn forget_what_is_unread(self) {}
}
