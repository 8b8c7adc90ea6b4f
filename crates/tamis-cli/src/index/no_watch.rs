//! Replaces `watch.rs` in builds that can't watch files.

use anyhow::{Result, bail};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Never constructed.
pub(crate) enum Watcher {}

impl Watcher {
    pub(crate) fn new(_: &[PathBuf]) -> Result<Self> {
        bail!("this build has no `--watch`\n{}", crate::FULL_BUILD)
    }

    pub(crate) fn wait(&self, _: &AtomicBool) -> bool {
        match *self {}
    }
}
