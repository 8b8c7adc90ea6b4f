//! The filters being served, by name.

use crate::file::{FileFilter, Saved, Writing};
use crate::loaded::Opening;
use crate::media::Form;
use crate::problem::Problem;
use crate::remote::RemoteFilter;
use crate::replies::{Added, Replies};
use crate::tally::{Answers, Tally};
use crate::when::When;
use anyhow::{Result, bail};
use bytes::Bytes;
use hyper::StatusCode;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tamis_redis::Location;
use tokio::sync::Mutex;

/// The time limit for describing a filter in Redis.
pub(crate) const PATIENCE: Duration = Duration::from_secs(2);

/// The fields of a Redis filter's description that are about its servers.
const OF_SERVERS: [&str; 2] = ["nodes", "servers"];

/// A filter to serve.
#[derive(Clone, Debug)]
pub struct Named {
    /// The name in request paths.
    pub name: String,
    /// The place of the filter.
    pub place: FilterPlace,
}

/// The place of a filter.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum FilterPlace {
    File(PathBuf),
    Redis(Location),
}

impl fmt::Display for FilterPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Redis(at) => at.fmt(f),
        }
    }
}

#[derive(Default)]
pub(crate) struct Filters(BTreeMap<String, Served>);

pub(crate) struct Served {
    name: String,
    place: FilterPlace,
    source: Source,
    pub(crate) tally: Tally,
    about: Mutex<Option<Told>>,
}

enum Source {
    File(Arc<FileFilter>),
    Redis(Arc<RemoteFilter>),
}

/// A description of a filter, and the time it took.
struct Told {
    value: Value,
    /// The number of replacements when the file was read, or earlier.
    times_replaced: u64,
    at: Instant,
    took: Duration,
}

impl Filters {
    /// Opens all filters, or fails with the first that can't be opened.
    pub(crate) fn open(named: Vec<Named>, opening: &Opening, writing: Writing) -> Result<Self> {
        let mut all = BTreeMap::new();
        for Named { name, place } in named {
            if all.contains_key(&name) {
                bail!("two filters are named {name:?}\nhint: rename one with NAME=FILTER");
            }
            let source = match &place {
                FilterPlace::File(path) => {
                    Source::File(Arc::new(FileFilter::open(path, opening, writing)?))
                }
                FilterPlace::Redis(at) => {
                    let is_writable = writing != Writing::No;
                    let filter = RemoteFilter::open(at, &opening.redis, is_writable)?;
                    Source::Redis(Arc::new(filter))
                }
            };
            let served = Served {
                name: name.clone(),
                place,
                source,
                tally: Tally::default(),
                about: Mutex::default(),
            };
            all.insert(name, served);
        }
        Ok(Self(all))
    }

    pub(crate) fn get(&self, name: &str) -> Result<&Served, Problem> {
        self.0.get(name).ok_or_else(|| {
            let text = if name.len() <= 100 {
                format!("there is no filter {name:?}; GET /v1/filters lists them")
            } else {
                "there is no filter of this name; GET /v1/filters lists them".into()
            };
            Problem::new(StatusCode::NOT_FOUND, text)
        })
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Served> {
        self.0.values()
    }

    /// Starts the background work: watching files, and saving.
    pub(crate) fn start(&self) {
        for file in self.iter().filter_map(Served::file) {
            tokio::spawn(Arc::clone(file).watch());
            tokio::spawn(Arc::clone(file).keep_saving());
        }
    }

    /// Saves the last additions.
    pub(crate) async fn save(&self) -> Result<()> {
        let mut result = Ok(());
        for file in self.iter().filter_map(Served::file) {
            result = file.save_last().await.and(result);
        }
        result
    }
}

impl Served {
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    fn file(&self) -> Option<&Arc<FileFilter>> {
        match &self.source {
            Source::File(filter) => Some(filter),
            Source::Redis(_) => None,
        }
    }

    fn is_writable(&self) -> bool {
        match &self.source {
            Source::File(filter) => filter.is_writable(),
            Source::Redis(filter) => filter.is_writable(),
        }
    }

    /// Why the file on disk isn't the one that answers queries, if so.
    pub(crate) fn fault(&self) -> Option<String> {
        self.file()?.fault()
    }

    /// The number of replacements of its file so far.
    pub(crate) fn times_replaced(&self) -> u64 {
        self.file().map_or(0, |file| file.times_replaced())
    }

    /// The state of saving, for a file.
    pub(crate) fn saving(&self) -> Option<Saved> {
        self.file()?.saving()
    }

    /// Why it can't do its work now, if so. If an older file still answers queries, an unusable new one only counts if
    /// keys may be added.
    pub(crate) async fn obstacle(&self, is_known: bool) -> Option<String> {
        match &self.source {
            Source::File(filter) => {
                let saving = filter.saving()?;
                let not_saved = saving.error.map(|error| format!("not saved: {error}"));
                filter.fault().or(not_saved)
            }
            Source::Redis(_) => match tokio::time::timeout(PATIENCE, self.content()).await {
                Ok(Ok(_)) => None,
                Ok(Err(problem)) => Some(problem.text_for(is_known)),
                Err(_) => Some("Redis does not answer".into()),
            },
        }
    }

    /// Checks which keys of a request's body may be present.
    pub(crate) async fn check(
        &self,
        form: Form,
        body: Bytes,
        when: When,
    ) -> Result<Replies, Problem> {
        let found = match &self.source {
            Source::File(filter) => filter.check(form, body, when).await?,
            Source::Redis(filter) => filter.ask(form, body, when).await?,
        };
        self.tally.add(Answers::to_check(&found));
        Ok(found)
    }

    /// Adds the keys of a request's body.
    pub(crate) async fn add(&self, form: Form, body: Bytes, when: When) -> Result<Added, Problem> {
        let added = match &self.source {
            Source::File(filter) => filter.add(form, body, when).await?,
            Source::Redis(filter) => Added {
                new: filter.add(form, body, when).await?,
                saved: true,
            },
        };
        self.tally.add(Answers::to_add(&added.new));
        Ok(added)
    }

    /// Its description. Reading all of a large filter takes a while, so the description may be slightly old. Clients
    /// without a token don't learn which Redis servers there are and how they are set up.
    pub(crate) async fn about(&self, is_known: bool) -> Result<Value, Problem> {
        // Read before the content: the content described with this number is from that file or a later one.
        let times_replaced = self.times_replaced();
        let mut about = self.content().await?;
        about["name"] = json!(self.name);
        match (&self.source, &mut about) {
            (Source::Redis(_), Value::Object(about)) if !is_known => {
                for field in OF_SERVERS {
                    about.remove(field);
                }
            }
            _ => about["place"] = json!(tamis_redis::hide_passwords(&self.place.to_string())),
        }
        about["writable"] = json!(self.is_writable());
        about["fault"] = json!(self.fault());
        if let Some(filter) = self.file() {
            about["loaded_at"] = json!(seconds(filter.version().loaded_at));
            about["times_replaced"] = json!(times_replaced);
        }
        if let Some(saving) = self.saving() {
            about["unsaved_keys"] = json!(saving.unsaved_keys);
            about["last_saved_at"] = json!(saving.at.map(seconds));
            about["save_failed"] = json!(saving.error);
        }
        about["recent"] = self.tally.recent();
        Ok(about)
    }

    /// Its content. Concurrent requests wait for one read instead of reading again.
    async fn content(&self) -> Result<Value, Problem> {
        let mut told = self.about.lock().await;
        let times_replaced = self.times_replaced();
        if let Some(told) = &*told
            && told.times_replaced == times_replaced
            && told.at.elapsed() < told.took * 10
        {
            return Ok(told.value.clone());
        }
        let start = Instant::now();
        let value = match &self.source {
            Source::File(filter) => filter.about().await,
            Source::Redis(filter) => filter.about().await?,
        };
        *told = Some(Told {
            value: value.clone(),
            times_replaced,
            at: Instant::now(),
            took: start.elapsed(),
        });
        Ok(value)
    }
}

/// Seconds since 1970.
pub(crate) fn seconds(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}
