//! Waits for files to change.

use anyhow::{Context, Result};
use notify::{RecursiveMode, Watcher as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How soon it reacts to a request to stop.
const MOMENT: Duration = Duration::from_millis(100);
/// Changes this close together count as one.
const TOGETHER: Duration = Duration::from_millis(200);
/// Some file systems don't report changes by other machines, so files are also checked at this interval.
const AT_LEAST: Duration = Duration::from_secs(60);

/// Reports changes below some folders.
pub(crate) struct Watcher {
    _watcher: notify::RecommendedWatcher,
    changes: Receiver<()>,
}

impl Watcher {
    pub(crate) fn new(places: &[PathBuf]) -> Result<Self> {
        let (sender, changes) = channel();
        let mut watcher =
            notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
                // Read accesses change nothing; an error may hide a change.
                if event.is_ok_and(|event| event.kind.is_access()) {
                    return;
                }
                // At the end, nobody listens any more.
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

    /// Waits for a change, and a moment longer. False if it was stopped instead.
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
