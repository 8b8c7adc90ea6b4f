//! The socket below a connection, encrypted or not.

#[cfg(unix)]
use std::os::fd::{AsRawFd as _, RawFd};
use tokio::net::TcpStream;

/// A socket owned by somebody else.
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

    /// Makes closing the connection discard data that the client hasn't received, if there is any. Otherwise the system
    /// would keep megabytes and go on sending them, for as long as the client likes. Must be called while the stream
    /// exists.
    #[cfg(unix)]
    pub(crate) fn forget_what_is_unread(self) {
        let mut unread: libc::c_int = 0;
        // SAFETY: a system call that writes one number. The descriptor belongs to a stream that the caller hasn't
        // closed.
        let asked = unsafe { libc::ioctl(self.descriptor, libc::TIOCOUTQ, &raw mut unread) };
        if asked != 0 || unread == 0 {
            return;
        }
        let at_once = libc::linger {
            l_onoff: 1,
            l_linger: 0,
        };
        // SAFETY: a system call that reads one value of the given size. The descriptor is as above.
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
