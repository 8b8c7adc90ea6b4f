//! A filter in Redis. Its connection serves one request after the other; the
//! servers do the work.

use super::media::Form;
use super::problem::Problem;
use super::replies::Replies;
use crate::about::{self, About};
use crate::location::{KeyFile, RedisArgs, in_redis};
use anyhow::{Context as _, Result};
use bytes::Bytes;
use serde_json::Value;
use std::sync::Arc;
use tamis::{Hasher, KeyRule};
use tamis_redis::{Error, Location, RedisFilter};
use tokio::sync::Mutex as Turns;

pub(super) struct RemoteFilter {
    at: Location,
    redis: RedisArgs,
    key: KeyFile,
    turns: Arc<Turns<RedisFilter>>,
    is_writable: bool,
}

/// Asks for keys, or adds them.
type Work = fn(&mut RedisFilter, &[&[u8]], &mut [bool]) -> Result<(), Error>;

impl RemoteFilter {
    pub(super) fn open(
        at: &Location,
        key: &KeyFile,
        redis: &RedisArgs,
        is_writable: bool,
    ) -> Result<Self> {
        let filter = redis.open(at, key)?;
        Ok(Self {
            at: at.clone(),
            redis: redis.clone(),
            key: key.clone(),
            turns: Arc::new(Turns::new(filter)),
            is_writable,
        })
    }

    pub(super) fn is_writable(&self) -> bool {
        self.is_writable
    }

    pub(super) async fn ask(self: &Arc<Self>, form: Form, body: Bytes) -> Result<Replies, Problem> {
        self.run(form, body, |filter, keys, found| {
            filter.contains_many(keys, found)
        })
        .await
    }

    pub(super) async fn add(self: &Arc<Self>, form: Form, body: Bytes) -> Result<Replies, Problem> {
        self.run(form, body, |filter, keys, new| {
            filter.insert_many(keys, new)
        })
        .await
    }

    /// Has `work` answer for the keys of a request, on a thread that may wait.
    async fn run(
        self: &Arc<Self>,
        form: Form,
        body: Bytes,
        work: Work,
    ) -> Result<Replies, Problem> {
        let mut turn = Arc::clone(&self.turns).lock_owned().await;
        let this = Arc::clone(self);
        let task = tokio::task::spawn_blocking(move || {
            let answers = answer(&mut turn, form, &body, work)?;
            let answers = match answers {
                // Another filter may have its name.
                Err(Error::Gone { .. } | Error::NotFound { .. }) => {
                    let again = this.redis.open(&this.at, &this.key);
                    *turn = again.map_err(|error| Problem::unavailable(&error))?;
                    answer(&mut turn, form, &body, work)?
                }
                answers => answers,
            };
            answers.map_err(|error| Problem::unavailable(&in_redis(&this.at)(error)))
        });
        let failed = |error| Problem::unavailable(&anyhow::Error::new(error));
        task.await.map_err(failed)?
    }

    /// What can be told of it.
    pub(super) async fn about(self: &Arc<Self>) -> Result<Value> {
        let mut turn = Arc::clone(&self.turns).lock_owned().await;
        let at = self.at.clone();
        let told = tokio::task::spawn_blocking(move || {
            let about = About::in_redis(&mut turn).map_err(in_redis(&at))?;
            anyhow::Ok(about::to_json(&about))
        });
        told.await.context("asking Redis")?
    }
}

/// The outer error is the client's, the inner one the server's.
fn answer(
    filter: &mut RedisFilter,
    form: Form,
    body: &[u8],
    work: Work,
) -> Result<Result<Replies, Error>, Problem> {
    // A module, which hashes itself, knows no other rule.
    let rule = *filter.hasher().map_or(&KeyRule::EXACT, Hasher::rule);
    form.check(body, &rule)?;
    let mut replies = Replies::default();
    let mut failed = None;
    let mut answers = Vec::new();
    form.for_each_block(body, &rule, &mut |keys| {
        if failed.is_none() {
            let keys: Vec<&[u8]> = keys.iter().map(AsRef::as_ref).collect();
            answers.clear();
            answers.resize(keys.len(), false);
            match work(filter, &keys, &mut answers) {
                Ok(()) => replies.extend(&answers),
                Err(error) => failed = Some(error),
            }
        }
        Ok(())
    })?;
    Ok(failed.map_or(Ok(replies), Err))
}
