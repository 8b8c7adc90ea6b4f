//! Adding keys and saving them, also into a file that has replaced ours.

use super::{FileFilter, MANY_BYTES, TRY_AGAIN, Turn, Writer, stamp_of};
use crate::loaded::{Loaded, fault_of};
use crate::log::log;
use crate::media::Form;
use crate::problem::Problem;
use crate::replies::{Added, Replies};
use crate::stamp::Stamp;
use crate::when::{Dated, When};
use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use hyper::{StatusCode, header};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use tamis::file::FileLock;
use tamis_report::about;
use tamis_report::human;
use tokio::sync::OwnedMutexGuard;

/// Above this many bytes, additions are saved early; above the second limit, they are refused.
const MANY_UNSAVED: usize = 16 << 20;
const MOST_UNSAVED: usize = 64 << 20;
/// Memory overhead of an addition.
const OF_AN_ADDITION: usize = 64;
/// When the log reports that the service's shutdown waits for a save.
const TELL_AFTER: Duration = Duration::from_secs(10);

impl FileFilter {
    /// Adds the keys of a request's body.
    pub(crate) async fn add(&self, form: Form, body: Bytes, when: When) -> Result<Added, Problem> {
        let Some(writer) = &self.writer else {
            let text =
                "keys can't be added to this filter: it is a finished list or another system's";
            let refused = Problem::new(StatusCode::METHOD_NOT_ALLOWED, text);
            return Err(refused.with(header::ALLOW, ""));
        };
        let mut saved = writer.saved.subscribe();
        self.check_writable(writer)?;
        let (new, outcome, number) = {
            let mut turn = writer.turn().await;
            self.check_writable(writer)?;
            if turn.unsaved_bytes > MOST_UNSAVED {
                let text = "too many additions wait for the disk: try again";
                return Err(Problem::unavailable(&anyhow!(text)));
            }
            let is_small = body.len() < MANY_BYTES;
            let add = || self.add_now(writer, &mut turn, form, body, when);
            if is_small {
                add()?
            } else {
                tokio::task::block_in_place(add)?
            }
        };
        writer.wake.notify_one();
        outcome?;
        if writer.interval.is_some() {
            return Ok(Added { new, saved: false });
        }
        let done = saved
            .wait_for(|saved| saved.upto >= number || saved.failed >= number)
            .await;
        match done {
            Ok(saved) if saved.upto >= number => Ok(Added { new, saved: true }),
            Ok(saved) => Err(Problem::unavailable(&anyhow!(
                "the keys are in memory, but not on disk: {}",
                saved.error.as_deref().unwrap_or("saving failed")
            ))),
            Err(_) => Err(Problem::unavailable(&anyhow!(
                "the service is shutting down"
            ))),
        }
    }

    /// Refuses additions that would not be saved.
    fn check_writable(&self, writer: &Writer) -> Result<(), Problem> {
        if let Some(fault) = self.fault() {
            return Err(Problem::unavailable(&anyhow!(fault)));
        }
        match &writer.saved.borrow().error {
            None => Ok(()),
            Some(error) => Err(Problem::unavailable(&anyhow!(
                "nothing is added until a save succeeds, which is tried every {}: {error}",
                human::duration(TRY_AGAIN)
            ))
            .with(header::RETRY_AFTER, "5")),
        }
    }

    /// Adds in memory, and records the unsaved body. Returns the answers, whether all keys were added, and the number
    /// of the addition.
    fn add_now(
        &self,
        writer: &Writer,
        turn: &mut Turn,
        form: Form,
        body: Bytes,
        when: When,
    ) -> Result<(Replies, Result<(), Problem>, u64), Problem> {
        let version = self.version();
        let rule = version.read(Loaded::rule);
        form.check(&body, &rule)?;
        let mut filter = version.filter.write();
        let filter = filter.as_mut().map_err(|_| {
            let error = anyhow!("an addition failed halfway");
            Problem::unavailable(&error)
        })?;
        let Dated { at, lateness } = self.date(filter, when)?;
        let mut new = Replies::new(lateness);
        let mut answers = Vec::new();
        let outcome = form.for_each_block(&body, &rule, &mut |keys| {
            answers.clear();
            answers.resize(keys.len(), false);
            filter.add(keys, at, &mut answers).map_err(|error| {
                let text = format!("{error:#}\nkeys before the one that was refused are added");
                Problem::new(StatusCode::INSUFFICIENT_STORAGE, text)
            })?;
            new.extend(&answers);
            Ok(())
        });
        // The keys before a refused one were added.
        turn.unsaved_bytes += body.len() + OF_AN_ADDITION;
        if turn.unsaved_bytes > MANY_UNSAVED {
            writer.is_much.notify_one();
        }
        // A copy: the body may be a slice of a larger buffer, which would be kept in memory, too.
        turn.unsaved.push((form, body[..].into(), at));
        turn.last += 1;
        // Nobody waits for this change.
        writer.saved.send_if_modified(|saved| {
            saved.unsaved_keys += new.keys();
            false
        });
        Ok((new, outcome, turn.last))
    }

    /// Saves additions as they come.
    pub(crate) async fn keep_saving(self: Arc<Self>) {
        let Some(writer) = &self.writer else {
            return;
        };
        let mut has_failed = false;
        loop {
            if !has_failed {
                writer.wake.notified().await;
                if let Some(interval) = writer.interval {
                    // Whichever comes first; nothing is lost if both do.
                    let _ = tokio::time::timeout(interval, writer.is_much.notified()).await;
                }
            }
            let start = Instant::now();
            has_failed = self.save().await.is_err();
            // At most half of the time is spent on saving.
            let rest = if has_failed {
                TRY_AGAIN
            } else {
                start.elapsed()
            };
            tokio::time::sleep(rest).await;
        }
    }

    /// Saves additions when the service ends.
    pub(crate) async fn save_last(self: &Arc<Self>) -> Result<()> {
        let mut saving = std::pin::pin!(self.save());
        match tokio::time::timeout(TELL_AFTER, saving.as_mut()).await {
            Ok(saved) => saved,
            Err(_) => {
                log(format_args!(
                    "{}: still saving; a second signal ends the service without it",
                    self.path.display()
                ));
                saving.await
            }
        }
    }

    /// Saves additions and notifies the requests that wait for it.
    async fn save(self: &Arc<Self>) -> Result<()> {
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        let turn = writer.turn().await;
        let filter = Arc::clone(self);
        let saved = tokio::task::spawn_blocking(move || filter.save_now(turn)).await;
        saved.context("saving")?
    }

    fn save_now(&self, mut turn: OwnedMutexGuard<Turn>) -> Result<()> {
        let Some(writer) = &self.writer else {
            return Ok(());
        };
        if turn.unsaved.is_empty() {
            return Ok(());
        }
        let last = turn.last;
        let taken = self.retake(&mut turn).map_err(|fault| anyhow!(fault));
        let before = turn.lock.metadata().map(|file| Stamp::from(&file));
        let saved = taken.and_then(|()| {
            let lock = &mut turn.lock;
            self.version().read(|loaded| loaded.save(lock))
        });
        // A save may fail after the file already got its name. If we took that file for another program's, it would get
        // our keys once more, and count them twice.
        if let (Ok(before), Ok(file)) = (before, turn.lock.metadata())
            && (saved.is_ok() || !before.is_same_file(&(&file).into()))
        {
            let stamp = (&file).into();
            let mut watched = self.watched();
            (watched.answers, watched.seen) = (stamp, stamp);
        }
        match &saved {
            Ok(()) => {
                turn.unsaved = Vec::new();
                turn.unsaved_bytes = 0;
                writer.saved.send_modify(|saved| {
                    saved.upto = last;
                    saved.error = None;
                    saved.unsaved_keys = 0;
                    saved.at = Some(SystemTime::now());
                });
            }
            Err(error) => {
                let error = tamis_redis::hide_passwords(&format!("{error:#}"));
                log(format_args!("not saved: {error}"));
                writer.saved.send_modify(|saved| {
                    saved.failed = last;
                    saved.error = Some(error);
                });
            }
        }
        saved
    }

    /// If a program that takes no locks has replaced our file, switches to the new file and adds the unsaved keys to
    /// it. Otherwise, returns why the file on disk is neither ours nor usable.
    pub(super) fn retake(&self, turn: &mut Turn) -> Result<(), String> {
        let taken = self.take(turn).map_err(|error| {
            let fault = fault_of(&self.path, &error);
            format!("{fault}; the previous file still answers, but takes no more keys")
        });
        self.set_fault(taken.clone().err());
        taken
    }

    fn take(&self, turn: &mut Turn) -> Result<()> {
        let stamp = stamp_of(&self.path)?;
        let is_settled = {
            let mut watched = self.watched();
            let is_settled = std::mem::replace(&mut watched.seen, stamp) == stamp;
            if stamp == watched.answers {
                return Ok(());
            }
            is_settled
        };
        if !is_settled && about::is_sealed(&self.path) != Some(true) {
            bail!("it is being written by another program");
        }
        let ours: Stamp = (&turn.lock.metadata()?).into();
        // If a file was overwritten in place, our lock is still valid.
        let lock = if stamp.is_same_file(&ours) {
            None
        } else {
            Some(FileLock::try_acquire(&self.path)?)
        };
        let mut loaded = self.opening.load(&self.path)?;
        if !loaded.is_writable() {
            bail!("the new file can't be added to");
        }
        let rule = loaded.rule();
        for (form, body, at) in &turn.unsaved {
            let added = form.for_each_block(body, &rule, &mut |keys| {
                let added = loaded.add(keys, *at, &mut vec![false; keys.len()]);
                added.map_err(|error| Problem::unavailable(&error))
            });
            added.map_err(|problem| anyhow!(problem.text))?;
        }
        if let Some(lock) = lock {
            turn.lock = lock;
        }
        self.replace(loaded, (&turn.lock.metadata()?).into());
        Ok(())
    }
}
