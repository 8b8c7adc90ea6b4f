//! A filter in Redis. Its connection serves one request at a time; the servers do the work.

use crate::log::log;
use crate::media::Form;
use crate::problem::Problem;
use crate::replies::{Lateness, Replies};
use crate::when::When;
use anyhow::{Context as _, Result};
use bytes::Bytes;
use serde_json::Value;
use std::sync::{Arc, Mutex, PoisonError};
use tamis::{Hasher, KeyRule, Moment};
use tamis_redis::{Error, Location, Options, RedisFilter};
use tamis_report::about;
use tokio::sync::Mutex as Turns;

pub(crate) struct RemoteFilter {
    at: Location,
    options: Options,
    turns: Arc<Turns<RedisFilter>>,
    is_writable: bool,
    /// Why the servers can't be reached, as logged.
    fault: Mutex<Option<String>>,
}

/// Queries or adds keys, as of now or of a time.
type Work = fn(&mut RedisFilter, &[&[u8]], Option<Moment>, &mut [bool]) -> Result<(), Error>;

impl RemoteFilter {
    pub(crate) fn open(at: &Location, options: &Options, is_writable: bool) -> Result<Self> {
        let filter = open(at, options)?;
        Ok(Self {
            at: at.clone(),
            options: options.clone(),
            turns: Arc::new(Turns::new(filter)),
            is_writable,
            fault: Mutex::default(),
        })
    }

    /// Logs once why the servers can't be reached: clients retry again and again.
    fn note<T>(&self, answered: Result<T, Problem>) -> Result<T, Problem> {
        let now = answered.as_ref().err().and_then(|it| it.details.clone());
        let mut fault = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(now) = &now
            && fault.as_ref() != Some(now)
        {
            log(now);
        }
        *fault = now;
        answered
    }

    pub(crate) fn is_writable(&self) -> bool {
        self.is_writable
    }

    pub(crate) async fn ask(
        self: &Arc<Self>,
        form: Form,
        body: Bytes,
        when: When,
    ) -> Result<Replies, Problem> {
        let work: Work = |filter, keys, at, found| match at {
            Some(at) => filter.contains_many_at(keys, at, found),
            None => filter.contains_many(keys, found),
        };
        self.run(form, body, when, work).await
    }

    pub(crate) async fn add(
        self: &Arc<Self>,
        form: Form,
        body: Bytes,
        when: When,
    ) -> Result<Replies, Problem> {
        let work: Work = |filter, keys, at, new| match at {
            Some(at) => filter.insert_many_at(keys, at, new),
            None => filter.insert_many(keys, new),
        };
        self.run(form, body, when, work).await
    }

    /// Runs `work` for the keys of a request, on a thread that may block.
    async fn run(
        self: &Arc<Self>,
        form: Form,
        body: Bytes,
        when: When,
        work: Work,
    ) -> Result<Replies, Problem> {
        let mut turn = Arc::clone(&self.turns).lock_owned().await;
        let this = Arc::clone(self);
        let task = tokio::task::spawn_blocking(move || {
            let answers = answer(&mut turn, form, &body, when, work)?;
            let answers = match answers {
                // Another filter may have taken its name.
                Err(Error::Gone { .. } | Error::NotFound { .. }) => {
                    let again = open(&this.at, &this.options);
                    *turn = again.map_err(|error| Problem::of_redis(&error))?;
                    answer(&mut turn, form, &body, when, work)?
                }
                answers => answers,
            };
            answers.map_err(|error| Problem::of_redis(&in_redis(&this.at, error)))
        });
        let failed = |error| Problem::unavailable(&anyhow::Error::new(error));
        self.note(task.await.map_err(failed)?)
    }

    /// Its description.
    pub(crate) async fn about(self: &Arc<Self>) -> Result<Value, Problem> {
        let mut turn = Arc::clone(&self.turns).lock_owned().await;
        let at = self.at.clone();
        let told = tokio::task::spawn_blocking(move || {
            let about = tamis_report::redis::about(&mut turn);
            Ok(about::to_json(
                &about.map_err(|error| in_redis(&at, error))?,
            ))
        });
        let told = told.await.context("asking Redis").flatten();
        self.note(told.map_err(|error| Problem::of_redis(&error)))
    }
}

fn open(at: &Location, options: &Options) -> Result<RedisFilter> {
    let filter = RedisFilter::open(at, options).map_err(|error| in_redis(at, error))?;
    for warning in filter.warnings() {
        log(format_args!("warning: {warning}"));
    }
    Ok(filter)
}

/// Adds the filter's location to an error.
fn in_redis(at: &Location, error: Error) -> anyhow::Error {
    let text = error.to_string();
    let name = format!("{}: ", at.name());
    anyhow::anyhow!("{at}: {}", text.strip_prefix(&name).unwrap_or(&text))
}

/// The outer error is the client's fault, the inner one the server's.
fn answer(
    filter: &mut RedisFilter,
    form: Form,
    body: &[u8],
    when: When,
    work: Work,
) -> Result<Result<Replies, Error>, Problem> {
    // Modules hash keys themselves, without a rule.
    let rule = *filter.hasher().map_or(&KeyRule::EXACT, Hasher::rule);
    form.check(body, &rule)?;
    let at = when.in_redis(filter)?;
    let too_old = filter.stats().too_old_keys;
    let mut replies = Replies::default();
    let mut failed = None;
    let mut answers = Vec::new();
    form.for_each_block(body, &rule, &mut |keys| {
        if failed.is_none() {
            let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
            answers.clear();
            answers.resize(keys.len(), false);
            match work(filter, &keys, at, &mut answers) {
                Ok(()) => replies.extend(&answers),
                Err(error) => failed = Some(error),
            }
        }
        Ok(())
    })?;
    if filter.stats().too_old_keys > too_old {
        replies.set_lateness(Lateness::TooOld);
    }
    Ok(failed.map_or(Ok(replies), Err))
}
