//! Sending with patience: what was not answered is sent again where that is
//! safe, for a bounded time, and what stays open is told.

use crate::link::{Failure, Link, Outcome, Request, Wait};
use crate::{Error, Options};
use redis::{RedisError, Value};
use std::ops::Range;
use std::time::{Duration, Instant};

/// The first pause before trying again; each is twice the last, up to a second.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A link, and how patient to be.
#[derive(Clone)]
pub(crate) struct Wire<L> {
    pub(crate) link: L,
    retry_for: Duration,
    pub(crate) wait: Wait,
}

/// What became of a request in the end.
pub(crate) struct Settled {
    pub(crate) outcome: Outcome,
    /// An earlier try was perhaps executed: what the answer calls old may be
    /// that try's.
    pub(crate) ambiguous: bool,
}

impl Settled {
    const fn at_once(outcome: Outcome) -> Self {
        Self {
            outcome,
            ambiguous: false,
        }
    }
}

/// Whether a request may be sent again when its answer was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// Twice is as good as once.
    Harmless,
    /// Twice is not once.
    Never,
}

/// Some work for the servers: the requests, which may be redirected.
pub(crate) trait Work: Send {
    fn requests(&mut self) -> &mut Vec<Request>;
}

impl<L: Link> Wire<L> {
    pub(crate) async fn new(mut link: L, options: &Options) -> Result<Self, Error> {
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match link.learn().await {
                Ok(()) => break,
                Err(Failure::Refused(source)) => {
                    let action = "asking for the nodes of the cluster";
                    return Err(Error::Server { action, source });
                }
                Err(failure) if start.elapsed() + pause > options.retry_for => {
                    return Err(of_failure("connecting", failure));
                }
                Err(_) => link.pause(pause).await,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(Self {
            link,
            retry_for: options.retry_for,
            wait: options.replicas,
        })
    }

    /// Sends again what is open, until nothing is or time is up.
    async fn settle(
        &mut self,
        requests: &mut [Request],
        outcomes: Vec<Outcome>,
        again: Again,
        wait: Wait,
    ) -> Vec<Settled> {
        let mut settled: Vec<_> = outcomes.into_iter().map(Settled::at_once).collect();
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        let mut redirects = 0;
        loop {
            let mut open = Vec::new();
            let (mut unrest, mut refused) = (false, false);
            for (i, state) in settled.iter_mut().enumerate() {
                requests[i].ask = None;
                match &state.outcome {
                    Ok(_) | Err(Failure::FewReplicas(_)) => continue,
                    Err(Failure::Refused(_)) => {
                        refused = true;
                        continue;
                    }
                    Err(Failure::Lost(_)) if again == Again::Never => continue,
                    Err(Failure::Moved(_)) if !self.link.is_cluster() => {
                        let error = std::io::Error::other(
                            "the server is part of a cluster; use redis-cluster:// instead of redis://",
                        );
                        state.outcome = Err(Failure::Refused(error.into()));
                        refused = true;
                        continue;
                    }
                    Err(Failure::Moved(node)) => self.link.moved(requests[i].slot, node.clone()),
                    Err(Failure::Ask(node)) => requests[i].ask = Some(node.clone()),
                    Err(Failure::Lost(_)) => {
                        state.ambiguous = true;
                        unrest = true;
                    }
                    Err(Failure::NotNow(_)) => unrest = true,
                }
                open.push(i);
            }
            if open.is_empty() || refused || start.elapsed() >= self.retry_for {
                return settled;
            }
            // A redirection is followed at once, but not for ever: nodes that
            // do not agree yet send requests to and fro.
            redirects += 1;
            if unrest || redirects > 3 {
                let left = self.retry_for.saturating_sub(start.elapsed());
                self.link.pause(pause.min(left)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                // If nobody can tell, the next try shows.
                let _ = self.link.learn().await;
            }
            let sending: Vec<&Request> = open.iter().map(|i| &requests[*i]).collect();
            let ticket = self.link.send(&sending, wait).await;
            let outcomes = self.link.receive(ticket).await;
            for (i, outcome) in open.into_iter().zip(outcomes) {
                settled[i].outcome = outcome;
            }
        }
    }

    /// Sends requests that are harmless to send twice, and needs every answer.
    pub(crate) async fn ask(
        &mut self,
        action: &'static str,
        mut requests: Vec<Request>,
    ) -> Result<Vec<Vec<Value>>, Error> {
        let sending: Vec<&Request> = requests.iter().collect();
        let ticket = self.link.send(&sending, None).await;
        let outcomes = self.link.receive(ticket).await;
        let settled = self
            .settle(&mut requests, outcomes, Again::Harmless, None)
            .await;
        settled
            .into_iter()
            .map(|settled| {
                settled
                    .outcome
                    .map_err(|failure| of_failure(action, failure))
            })
            .collect()
    }

    /// One such request with one command.
    pub(crate) async fn ask_one(
        &mut self,
        action: &'static str,
        slot: u16,
        command: redis::Cmd,
    ) -> Result<Value, Error> {
        let mut answers = self
            .ask(action, vec![Request::new(slot, &[command])])
            .await?;
        Ok(answers
            .pop()
            .and_then(|mut values| values.pop())
            .unwrap_or(Value::Nil))
    }

    /// Does work for `total` keys in windows, of which the next is made and
    /// sent while the servers are at the last. `done` returns whether to go
    /// on; how many keys were sent is returned.
    pub(crate) async fn run<W: Work>(
        &mut self,
        total: usize,
        window: usize,
        again: Again,
        wait: Wait,
        mut make: impl FnMut(Range<usize>) -> W + Send,
        mut done: impl FnMut(W, Vec<Settled>) -> bool + Send,
    ) -> usize {
        let mut flying: Option<(W, L::Ticket)> = None;
        let mut sent = 0;
        let mut going = true;
        while flying.is_some() || going && sent < total {
            let next = if going && sent < total {
                let range = sent..(sent + window).min(total);
                sent = range.end;
                let mut work = make(range);
                let requests: Vec<&Request> = work.requests().iter().collect();
                let ticket = self.link.send(&requests, wait).await;
                Some((work, ticket))
            } else {
                None
            };
            let Some((mut work, ticket)) = flying.take() else {
                flying = next;
                continue;
            };
            let outcomes = self.link.receive(ticket).await;
            if outcomes.iter().all(Result::is_ok) {
                going &= done(work, outcomes.into_iter().map(Settled::at_once).collect());
                flying = next;
                continue;
            }
            // Nothing may be on the way when something is sent again.
            let next = match next {
                Some((work, ticket)) => Some((work, self.link.receive(ticket).await)),
                None => None,
            };
            let settled = self.settle(work.requests(), outcomes, again, wait).await;
            going &= done(work, settled);
            if let Some((mut work, outcomes)) = next {
                let settled = self.settle(work.requests(), outcomes, again, wait).await;
                going &= done(work, settled);
            }
        }
        sent
    }
}

/// A failure that ends an operation.
pub(crate) fn of_failure(action: &'static str, failure: Failure) -> Error {
    let source = match failure {
        Failure::NotNow(error) | Failure::Lost(error) | Failure::Refused(error) => error,
        other => RedisError::from(std::io::Error::other(other.to_string())),
    };
    Error::Server { action, source }
}
