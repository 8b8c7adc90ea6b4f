//! The limit on open files and connections of the process.

#[cfg(unix)]
use crate::log::log;

/// Descriptors of the process itself, and of clients above the limit that still get a response.
#[cfg(unix)]
const OF_SERVICE: u64 = 128;
/// Descriptors per filter: its lock, a new file, its folder, the file being read, connections to Redis.
#[cfg(unix)]
const OF_FILTER: u64 = 8;

/// Raises the system's limit as needed for this many connections. If that fails, returns the lower number of
/// connections to accept: without a free descriptor, additions could not be saved.
#[cfg(unix)]
pub(crate) fn make_room(connections: usize, filters: usize) -> usize {
    let own = OF_SERVICE + OF_FILTER * filters as u64;
    let needed = own.saturating_add(connections as u64);
    let limit = raise_limit(needed);
    if limit >= needed {
        return connections;
    }
    let fitting = limit.saturating_sub(own).max(1) as usize;
    log(format_args!(
        "warning: the system allows {limit} open files, which is enough for {fitting} connections \
         instead of {connections}\nhint: ulimit -n {needed}, or LimitNOFILE={needed} in a systemd unit"
    ));
    fitting
}

#[cfg(not(unix))]
pub(crate) const fn make_room(connections: usize, _: usize) -> usize {
    connections
}

/// The limit of open files, raised to `needed` if possible.
#[cfg(unix)]
#[allow(clippy::unnecessary_cast, reason = "not a u64 on every system")]
fn raise_limit(needed: u64) -> u64 {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    // SAFETY: a system call that writes the one value it is given.
    if unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) } != 0 {
        return needed;
    }
    let before = limit.rlim_cur as u64;
    if before >= needed {
        return before;
    }
    limit.rlim_cur = limit.rlim_max.min(needed as libc::rlim_t);
    // SAFETY: a system call that reads the one value it is given.
    match unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit) } {
        0 => limit.rlim_cur as u64,
        _ => before,
    }
}
