//! A filter from a file: queried in a private copy, replaced when its file is, and saved after additions.

mod saving;

use crate::loaded::{Loaded, Opening, fault_of};
use crate::log::log;
use crate::media::Form;
use crate::problem::Problem;
use crate::replies::Replies;
use crate::stamp::{Stamp, TICK};
use crate::when::{Clock, Dated, When};
use anyhow::{Context as _, Result, bail};
use bytes::Bytes;
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
/// When to retry a failed save, or opening a file that has not changed.
const TRY_AGAIN: Duration = Duration::from_secs(5);

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

    /// The time of a request with this time parameter.
    fn date(&self, loaded: &Loaded, when: When) -> Result<Dated, Problem> {
        when.date(loaded.window(), &self.clock, self.path.display())
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
