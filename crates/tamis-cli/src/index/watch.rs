//! Waiting for files to change.

use anyhow::{Context, Result};
use notify::{RecursiveMode, Watcher as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How soon a request to stop is heeded.
const MOMENT: Duration = Duration::from_millis(100);
/// Changes that follow each other so closely are one.
const TOGETHER: Duration = Duration::from_millis(200);
/// Some file systems don't tell of changes that other machines make, so files are looked at from time to time anyway.
const AT_LEAST: Duration = Duration::from_secs(60);

/// Tells when something below some folders has changed.
pub(crate) struct Watcher {
    _watcher: notify::RecommendedWatcher,
    changes: Receiver<()>,
}

impl Watcher {
    pub(crate) fn new(places: &[PathBuf]) -> Result<Self> {
        let (sender, changes) = channel();
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                // Who only reads changes nothing; an error may hide a change.
                if event.is_ok_and(|event| event.kind.is_access()) {
                    return;
                }
                // Nobody listens any more when all is over.
                let _ = sender.send(());
            })
            .context("watching files")?;
        for place in places {
            let is_folder = place.is_dir();
            let (place, mode) = if is_folder {
                (place.as_path(), RecursiveMode::Recursive)
            } else {
                // The file itself may be replaced.
                let folder = place
                    .parent()
                    .filter(|folder| !folder.as_os_str().is_empty());
                (
                    folder.unwrap_or(Path::new(".")),
                    RecursiveMode::NonRecursive,
                )
            };
            watcher.watch(place, mode).with_context(|| {
                format!(
                    "watching {}\nhint: more folders than the system allows? \
                     See fs.inotify.max_user_watches, or run `tamis index` from cron",
                    place.display()
                )
            })?;
        }
        Ok(Self {
            _watcher: watcher,
            changes,
        })
    }

    /// Waits until something has changed, and a moment longer. False if it was asked to stop instead.
    pub(crate) fn wait(&self, stop: &AtomicBool) -> bool {
        let began = Instant::now();
        while !stop.load(Relaxed) {
            match self.changes.recv_timeout(MOMENT) {
                Ok(()) => {
                    let changed = Instant::now();
                    while changed.elapsed() < TOGETHER && !stop.load(Relaxed) {
                        let left = TOGETHER.saturating_sub(changed.elapsed());
                        if self.changes.recv_timeout(left.min(MOMENT))
                            == Err(RecvTimeoutError::Disconnected)
                        {
                            break;
                        }
                    }
                    return !stop.load(Relaxed);
                }
                Err(RecvTimeoutError::Timeout) if began.elapsed() < AT_LEAST => {}
                Err(_) => return !stop.load(Relaxed),
            }
        }
        false
    }
}
