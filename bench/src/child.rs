//! A whole process, measured: time, processor time, memory, bytes read.

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

pub struct Child<'a> {
    pub program: &'a Path,
    pub args: &'a [String],
    pub folder: &'a Path,
    /// The file for what it prints.
    pub printed: &'a Path,
}

pub struct Measured {
    /// Nanoseconds from its start to its end.
    pub wall: f64,
    /// Nanoseconds of processor time, its own children's included.
    pub processor: f64,
    /// The most memory that it had, in bytes.
    pub peak: u64,
    /// Bytes that it read by calls.
    pub read: u64,
    pub code: i32,
}

impl Child<'_> {
    pub fn run(&self) -> io::Result<Measured> {
        let printed = File::create(self.printed)?;
        let start = Instant::now();
        let mut child = Command::new(self.program)
            .args(self.args)
            .current_dir(self.folder)
            .stdin(Stdio::null())
            .stdout(printed)
            .stderr(Stdio::inherit())
            .spawn()?;
        let id = child.id();
        // SAFETY: zero is a value of this struct, and a place for the answer.
        let waited = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, id, &mut info, libc::WEXITED | libc::WNOWAIT)
        };
        if waited != 0 {
            let error = io::Error::last_os_error();
            child.wait()?;
            return Err(error);
        }
        let wall = start.elapsed().as_nanos() as f64;
        // It has ended, but the system still knows what it did.
        let io = fs::read_to_string(format!("/proc/{id}/io")).unwrap_or_default();
        let read = io.lines().find_map(|line| line.strip_prefix("rchar: "));
        let mut status = 0;
        // SAFETY: as above; nobody else waits for this child.
        let usage = unsafe {
            let mut usage: libc::rusage = std::mem::zeroed();
            if libc::wait4(id as libc::pid_t, &mut status, 0, &mut usage) < 0 {
                return Err(io::Error::last_os_error());
            }
            usage
        };
        let code = match libc::WIFEXITED(status) {
            true => libc::WEXITSTATUS(status),
            false => -1,
        };
        let ns = |time: libc::timeval| time.tv_sec as f64 * 1e9 + time.tv_usec as f64 * 1e3;
        Ok(Measured {
            wall,
            processor: ns(usage.ru_utime) + ns(usage.ru_stime),
            peak: usage.ru_maxrss as u64 * 1024,
            read: read.and_then(|bytes| bytes.parse().ok()).unwrap_or(0),
            code,
        })
    }
}
