//! Progress bars on stderr, if that is a terminal. Commands draw none with `-q`, or when they print records to a
//! terminal, where the two would mix.

use crate::human;
use indicatif::{ProgressBar, ProgressState, ProgressStyle};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::JoinHandle;
use std::time::Duration;
use tamis_records::progress::Progress;

/// Removed when dropped.
pub(crate) struct Bar {
    done: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Bar {
    /// Progress of reading these files.
    pub(crate) fn of_input(paths: &[PathBuf], progress: &Arc<Progress>) -> Self {
        let progress = Arc::clone(progress);
        let total = std::io::stderr().is_terminal().then(|| total_size(paths));
        let (total, template) = match total.flatten() {
            total @ Some(_) => (
                total,
                "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec}, {left}{msg}",
            ),
            None => (None, "{spinner} {bytes} {bytes_per_sec}, {msg}"),
        };
        Self::start(total, template, move |bar| {
            bar.set_position(progress.consumed.load(Relaxed));
            bar.set_message(human::counted(progress.records.load(Relaxed), "record"));
        })
    }

    /// Progress of building a filter of this many keys.
    pub(crate) fn of_building(total: u64, built: Arc<AtomicU64>) -> Self {
        let template = "building {wide_bar} {human_pos} keys";
        Self::start(Some(total), template, move |bar| {
            bar.set_position(built.load(Relaxed));
        })
    }

    fn start(
        total: Option<u64>,
        template: &str,
        show: impl Fn(&ProgressBar) + Send + 'static,
    ) -> Self {
        let done = Arc::new(AtomicBool::new(false));
        let thread = std::io::stderr().is_terminal().then(|| {
            let done = Arc::clone(&done);
            let mut bar = total.map_or_else(ProgressBar::no_length, ProgressBar::new);
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar = bar.with_style(style.with_key("left", time_left));
            }
            std::thread::spawn(move || {
                while !done.load(Relaxed) {
                    show(&bar);
                    std::thread::park_timeout(Duration::from_millis(100));
                }
                bar.finish_and_clear();
            })
        });
        Self { done, thread }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.done.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// The estimated time left, once a twentieth is done or five seconds have passed.
fn time_left(state: &ProgressState, out: &mut dyn std::fmt::Write) {
    let is_known =
        state.pos() > 0 && (state.fraction() >= 0.05 || state.elapsed() >= Duration::from_secs(5));
    if is_known {
        let _ = write!(out, "{:#} left, ", indicatif::HumanDuration(state.eta()));
    }
}

/// The size of all inputs on disk, if known.
fn total_size(paths: &[PathBuf]) -> Option<u64> {
    let size = |path: &PathBuf| {
        if path == Path::new("-") {
            None
        } else {
            std::fs::metadata(path)
                .ok()
                .filter(|m| m.is_file())
                .map(|m| m.len())
        }
    };
    paths.iter().map(size).sum()
}
