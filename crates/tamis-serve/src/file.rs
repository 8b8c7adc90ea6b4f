//! A filter from a file: queried in a private copy, replaced when its file is, and saved after additions.

use crate::loaded::{Loaded, Opening, fault_of};
use crate::log::log;
use crate::media::Form;
use crate::problem::Problem;
use crate::replies::{Added, Replies};
use crate::stamp::{Stamp, TICK};
use crate::when::{Clock, Dated, When};
use anyhow::{Context as _, Result, anyhow, bail};
use bytes::Bytes;
use hyper::{StatusCode, header};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant, SystemTime};
use tamis::{Moment, file::FileLock};
use tamis_report::about;
use tamis_report::human;
use tokio::sync::{Mutex as Turns, Notify, OwnedMutexGuard, Semaphore, watch};

/// Larger bodies take so long, some milliseconds, that other requests should not wait for the thread. Moving them to
/// another thread costs as much as a thousand keys.
const MANY_BYTES: usize = 1 << 20;
/// How many large bodies are answered at the same time. More would only take processors away from small ones, and need
/// memory for their keys.
static LARGE: Semaphore = Semaphore::const_new(4);

/// How often the file is checked for a replacement.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// The time limit of a check. On a file system that doesn't respond, it never ends.
const LOOK_LIMIT: Duration = Duration::from_secs(10);
/// Above this many bytes, additions are saved early; above the second limit, they are refused.
const MANY_UNSAVED: usize = 16 << 20;
const MOST_UNSAVED: usize = 64 << 20;
/// Memory overhead of an addition.
const OF_AN_ADDITION: usize = 64;
/// When to retry a failed save, or opening a file that has not changed.
const TRY_AGAIN: Duration = Duration::from_secs(5);
/// When the log reports that the service's shutdown waits for a save.
const TELL_AFTER: Duration = Duration::from_secs(10);

/// Whether keys may be added, and when additions are saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Writing {
    /// Keys can't be added.
    No,
    /// Additions are saved before they are confirmed.
    AtOnce,
    /// Additions are saved at most this much later.
    Every(Duration),
}

pub(crate) struct FileFilter {
    path: PathBuf,
    opening: Opening,
    current: RwLock<Arc<Version>>,
    watched: Mutex<Watched>,
    clock: Clock,
    /// Present if keys may be added.
    writer: Option<Writer>,
}

/// One version of the file's content.
pub(crate) struct Version {
    filter: RwLock<Loaded>,
    pub(crate) loaded_at: SystemTime,
}

/// The state of the file on disk.
struct Watched {
    /// The stamp of the file that answers queries.
    answers: Stamp,
    /// The stamp of the file at the last check.
    seen: Stamp,
    /// The file that could not be opened, and the time of the last attempt.
    failed: Option<(Stamp, Instant)>,
    /// Why the file on disk isn't the one that answers queries.
    fault: Option<String>,
    /// Number of replacements so far.
    replaced: u64,
}

/// Saves additions.
///
/// Adding and saving take turns, so that queries never wait for more than an insertion.
struct Writer {
    turns: Arc<Turns<Turn>>,
    /// Signals that there is something to save.
    wake: Notify,
    /// Signals that there is too much to wait for the interval.
    is_much: Notify,
    saved: watch::Sender<Saved>,
    /// If set, additions are saved at this interval; otherwise, answers wait for the disk.
    interval: Option<Duration>,
}

struct Turn {
    lock: FileLock,
    /// The bodies of requests whose keys aren't on disk, in order. If another program replaces our file, its file gets
    /// these keys. All keys of a body have one time.
    unsaved: Vec<(Form, Box<[u8]>, Moment)>,
    unsaved_bytes: usize,
    /// The number of the last request.
    last: u64,
}

/// The progress of saving, as numbers of requests.
#[derive(Clone, Debug, Default)]
pub(crate) struct Saved {
    upto: u64,
    /// Requests up to this number could not be saved.
    failed: u64,
    /// Why the last save failed, if it did.
    pub(crate) error: Option<String>,
    /// The number of keys that aren't on disk.
    pub(crate) unsaved_keys: u64,
    /// The time of the last save.
    pub(crate) at: Option<SystemTime>,
}

impl FileFilter {
    /// Opens a file; if keys may be added, also locks it.
    pub(crate) fn open(path: &Path, opening: &Opening, writing: Writing) -> Result<Self> {
        let lock = match writing {
            Writing::No => None,
            _ => Some(FileLock::try_acquire(path)?),
        };
        let (loaded, stamp) = load_settled(path, opening)?;
        let writer = lock.filter(|_| loaded.is_writable()).map(|lock| Writer {
            turns: Arc::new(Turns::new(Turn {
                lock,
                unsaved: Vec::new(),
                unsaved_bytes: 0,
                last: 0,
            })),
            wake: Notify::new(),
            is_much: Notify::new(),
            saved: watch::Sender::default(),
            interval: match writing {
                Writing::Every(interval) => Some(interval),
                Writing::AtOnce | Writing::No => None,
            },
        });
        Ok(Self {
            path: path.to_owned(),
            opening: opening.clone(),
            current: RwLock::new(Version::new(loaded)),
            watched: Mutex::new(Watched {
                answers: stamp,
                seen: stamp,
                failed: None,
                fault: None,
                replaced: 0,
            }),
            clock: Clock::default(),
            writer,
        })
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.writer.is_some()
    }

    /// The current content. All keys of a request are checked against one version.
    pub(crate) fn version(&self) -> Arc<Version> {
        let current = self.current.read();
        Arc::clone(&current.unwrap_or_else(PoisonError::into_inner))
    }

    /// Why the file on disk isn't the one that answers queries, if so.
    pub(crate) fn fault(&self) -> Option<String> {
        self.watched().fault.clone()
    }

    /// The number of replacements so far.
    pub(crate) fn times_replaced(&self) -> u64 {
        self.watched().replaced
    }

    /// The state of saving; `None` for a read-only filter.
    pub(crate) fn saving(&self) -> Option<Saved> {
        Some(self.writer.as_ref()?.saved.borrow().clone())
    }

    fn watched(&self) -> std::sync::MutexGuard<'_, Watched> {
        self.watched.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The description, for which the whole filter is read.
    pub(crate) async fn about(self: &Arc<Self>) -> Value {
        // Takes a turn, so that no addition waits for this read, with queries waiting behind that addition.
        let turn = match &self.writer {
            Some(writer) => Some(writer.turn().await),
            None => None,
        };
        let version = self.version();
        let told = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            version.read(Loaded::about)
        });
        told.await.unwrap_or(Value::Null)
    }

    /// Switches to the file on disk, if it is another one and valid.
    fn look(&self) {
        let stamp = stamp_of(&self.path);
        if let Some(writer) = &self.writer {
            // Only a change takes a turn, so that adding and saving don't wait for a file system.
            match stamp {
                Ok(stamp) if self.is_ours(stamp) => self.set_fault(None),
                _ => {
                    let _ = self.retake(&mut Arc::clone(&writer.turns).blocking_lock_owned());
                }
            }
            return;
        }
        let fault = match stamp {
            Ok(stamp) => match self.consider(stamp) {
                Some(fault) => fault,
                None => return,
            },
            Err(error) => Some(format!(
                "{}: {error:#}; the file that was there answers",
                self.path.display()
            )),
        };
        self.set_fault(fault);
    }

    /// Whether the file on disk is the one that answers queries.
    fn is_ours(&self, stamp: Stamp) -> bool {
        let mut watched = self.watched();
        let is_ours = stamp == watched.answers;
        if is_ours {
            watched.seen = stamp;
        }
        is_ours
    }

    /// What is wrong with the file on disk; `None` if it is too early to decide.
    fn consider(&self, stamp: Stamp) -> Option<Option<String>> {
        let is_settled = {
            let mut watched = self.watched();
            let is_settled = std::mem::replace(&mut watched.seen, stamp) == stamp;
            if watched.answers == stamp {
                return Some(None);
            }
            if matches!(watched.failed, Some((failed, at)) if failed == stamp && at.elapsed() < TRY_AGAIN)
            {
                return None;
            }
            is_settled
        };
        if stamp.is_fresh() {
            return None;
        }
        // A checksum shows that a file is complete; without one, only time does.
        if !is_settled && about::is_sealed(&self.path) != Some(true) {
            return None;
        }
        let loaded = self.opening.load(&self.path);
        let is_still = stamp_of(&self.path).is_ok_and(|now| now == stamp);
        match loaded {
            _ if !is_still => None,
            Ok(loaded) => {
                self.replace(loaded, stamp);
                Some(None)
            }
            Err(_) if !is_settled => None,
            Err(error) => {
                self.watched().failed = Some((stamp, Instant::now()));
                let fault = fault_of(&self.path, &error);
                Some(Some(format!("{fault}; the file that was there answers")))
            }
        }
    }

    fn replace(&self, loaded: Loaded, stamp: Stamp) {
        let version = Version::new(loaded);
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = version;
        let mut watched = self.watched();
        watched.answers = stamp;
        watched.failed = None;
        watched.replaced += 1;
        let path = self.path.display();
        log(format_args!("{path}: now serving the new file"));
    }

    fn set_fault(&self, fault: Option<String>) {
        let mut watched = self.watched();
        if let Some(fault) = &fault
            && watched.fault.as_ref() != Some(fault)
        {
            log(fault);
        }
        watched.fault = fault;
    }

    /// Checks the file periodically.
    pub(crate) async fn watch(self: Arc<Self>) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let filter = Arc::clone(&self);
            let mut look = tokio::task::spawn_blocking(move || filter.look());
            if tokio::time::timeout(LOOK_LIMIT, &mut look).await.is_err() {
                self.set_fault(Some(format!(
                    "{}: reading it has taken longer than {}; the file that was there answers",
                    self.path.display(),
                    human::duration(LOOK_LIMIT)
                )));
                // The thread has reported its panic; the next check starts afresh.
                let _ = look.await;
            }
        }
    }

    /// Checks which keys of a request's body may be present.
    pub(crate) async fn check(
        &self,
        form: Form,
        body: Bytes,
        when: When,
    ) -> Result<Replies, Problem> {
        let version = self.version();
        let ask = || version.read(|loaded| answer(loaded, form, &body, self.date(loaded, when)?));
        if body.len() < MANY_BYTES {
            return ask();
        }
        let _place = LARGE.acquire().await;
        tokio::task::block_in_place(ask)
    }

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

    /// The time of a request with this time parameter.
    fn date(&self, loaded: &Loaded, when: When) -> Result<Dated, Problem> {
        when.date(loaded.window(), &self.clock, self.path.display())
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
    fn retake(&self, turn: &mut Turn) -> Result<(), String> {
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

impl Version {
    fn new(loaded: Loaded) -> Arc<Self> {
        Arc::new(Self {
            filter: RwLock::new(loaded),
            loaded_at: SystemTime::now(),
        })
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&Loaded) -> T) -> T {
        read(&self.filter.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Writer {
    async fn turn(&self) -> OwnedMutexGuard<Turn> {
        Arc::clone(&self.turns).lock_owned().await
    }
}

/// Checks which keys of a body may be present.
fn answer(loaded: &Loaded, form: Form, body: &[u8], dated: Dated) -> Result<Replies, Problem> {
    let mut replies = Replies::new(dated.lateness);
    let mut found = Vec::new();
    form.for_each_block(body, &loaded.rule(), &mut |keys| {
        found.clear();
        found.resize(keys.len(), false);
        let asked = loaded.ask(keys, dated.at, &mut found);
        asked.map_err(|error| Problem::bad_request(format!("{error:#}")))?;
        replies.extend(&found);
        Ok(())
    })?;
    Ok(replies)
}

fn stamp_of(path: &Path) -> Result<Stamp> {
    let file = fs::metadata(path)?;
    if !file.is_file() {
        bail!("expected a regular file, got a folder, a pipe, a socket or a device");
    }
    Ok((&file).into())
}

/// A file and the stamp of the content that was read, not of a later one.
fn load_settled(path: &Path, opening: &Opening) -> Result<(Loaded, Stamp)> {
    let stamp_of = || stamp_of(path).with_context(|| path.display().to_string());
    loop {
        let before = stamp_of()?;
        if before.is_fresh() {
            std::thread::sleep(TICK);
            continue;
        }
        let loaded = opening.load(path)?;
        if stamp_of()? == before {
            return Ok((loaded, before));
        }
    }
}
