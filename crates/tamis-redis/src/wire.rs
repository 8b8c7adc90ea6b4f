//! Sends requests and retries: unanswered requests are sent again where that is
//! safe, for a limited time, and those still open are reported.

use crate::failure::{Failure, Outcome, Reason};
use crate::link::Link;
use crate::request::{Again, Request, Wait};
use crate::stats::{self, Counters};
use crate::{Error, Options};
use redis::Value;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The first pause before a retry; each is twice the last, up to a second.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A link with a retry limit.
#[derive(Clone)]
pub(crate) struct Wire<L> {
    pub(crate) link: L,
    retry_for: Duration,
    pub(crate) wait: Wait,
}

/// The final outcome of a request.
pub(crate) struct Settled {
    pub(crate) outcome: Outcome,
    /// An earlier try may have been executed, so a key that the answer calls
    /// old may have been added by it.
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

/// Work for many keys, done in windows. It collects the answers.
pub(crate) trait Job: Send {
    /// State needed to read the answers to a window's requests.
    type Window: Send;

    /// The requests for a range of keys.
    fn begin(&mut self, keys: Range<usize>) -> (Vec<Request>, Self::Window);

    /// Takes the outcomes of the requests; returns whether to go on.
    fn finish(&mut self, window: Self::Window, settled: Vec<Settled>) -> bool;
}

impl<L: Link> Wire<L> {
    pub(crate) async fn new(mut link: L, options: &Options) -> Result<Self, Error> {
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            match link.learn().await {
                Ok(()) => break,
                Err(failure @ Failure::Refused(_)) => {
                    return Err(of_failure("looking for the servers", failure));
                }
                Err(failure) if start.elapsed() + pause > options.retry_for => {
                    return Err(of_failure("connecting", failure));
                }
                Err(_) => link.pause(jittered(pause)).await,
            }
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
        Ok(Self {
            link,
            retry_for: options.retry_for,
            wait: options.replicas,
        })
    }

    /// Disables retries from now on.
    pub(crate) const fn lose_patience(&mut self) {
        self.retry_for = Duration::ZERO;
    }

    pub(crate) fn counters(&self) -> &Arc<Counters> {
        self.link.counters()
    }

    /// Retries open requests until none is left or time is up, counted from the
    /// first sending.
    async fn settle(
        &mut self,
        requests: &mut [Request],
        outcomes: Vec<Outcome>,
        start: Instant,
    ) -> Vec<Settled> {
        let mut settled: Vec<_> = outcomes.into_iter().map(Settled::at_once).collect();
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
                    Err(Failure::Lost(_)) if requests[i].again == Again::Never => continue,
                    Err(Failure::Moved(_)) if !self.link.is_cluster() => {
                        state.outcome = Err(Failure::Refused(Reason::of(
                            "the server is part of a cluster; use redis+cluster:// instead of redis://",
                        )));
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
            // A redirection is followed at once, but not forever: nodes that
            // don't agree yet send requests back and forth.
            redirects += 1;
            if unrest || redirects > 3 {
                let left = self.retry_for.saturating_sub(start.elapsed());
                stats::pausing(pause, open.len());
                self.link.pause(jittered(pause).min(left)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
                // If no node answers, the next try will fail as well.
                let _ = self.link.learn().await;
            }
            for failure in open
                .iter()
                .filter_map(|i| settled[*i].outcome.as_ref().err())
            {
                match failure {
                    Failure::Moved(_) | Failure::Ask(_) => self.counters().redirected(failure),
                    _ => self.counters().retried(failure),
                }
            }
            let sending: Vec<&Request> = open.iter().map(|i| &requests[*i]).collect();
            let ticket = self.link.send(&sending, self.wait).await;
            let outcomes = self.link.receive(ticket).await;
            for (i, outcome) in open.into_iter().zip(outcomes) {
                settled[i].outcome = outcome;
            }
        }
    }

    /// Sends requests; an error unless all are answered.
    pub(crate) async fn ask(
        &mut self,
        action: &'static str,
        mut requests: Vec<Request>,
    ) -> Result<Vec<Vec<Value>>, Error> {
        let start = Instant::now();
        let sending: Vec<&Request> = requests.iter().collect();
        let ticket = self.link.send(&sending, self.wait).await;
        let outcomes = self.link.receive(ticket).await;
        let settled = self.settle(&mut requests, outcomes, start).await;
        let answer = |settled: Settled| settled.outcome.map_err(|why| of_failure(action, why));
        settled.into_iter().map(answer).collect()
    }

    /// The first answer to one request.
    pub(crate) async fn ask_request(
        &mut self,
        action: &'static str,
        request: Request,
    ) -> Result<Value, Error> {
        let answers = self.ask(action, vec![request]).await?;
        Ok(answers.into_iter().flatten().next().unwrap_or(Value::Nil))
    }

    /// The answer to one command.
    pub(crate) async fn ask_one(
        &mut self,
        action: &'static str,
        slot: u16,
        command: redis::Cmd,
    ) -> Result<Value, Error> {
        self.ask_request(action, Request::new(slot, &[command]))
            .await
    }

    /// Runs a job for `total` keys in windows. The next window is prepared and
    /// sent while the servers work on the last. Returns how many keys were
    /// sent.
    pub(crate) async fn run<J: Job>(&mut self, job: &mut J, total: usize, window: usize) -> usize {
        let mut flying = None;
        let mut sent = 0;
        let mut going = true;
        while flying.is_some() || going && sent < total {
            let next = if going && sent < total {
                let range = sent..(sent + window).min(total);
                sent = range.end;
                let (requests, window) = job.begin(range);
                let start = Instant::now();
                let sending: Vec<&Request> = requests.iter().collect();
                let ticket = self.link.send(&sending, self.wait).await;
                Some((requests, window, ticket, start))
            } else {
                None
            };
            let Some((mut requests, window, ticket, start)) = flying.take() else {
                flying = next;
                continue;
            };
            let outcomes = self.link.receive(ticket).await;
            if outcomes.iter().all(Result::is_ok) {
                let settled = outcomes.into_iter().map(Settled::at_once).collect();
                going &= job.finish(window, settled);
                flying = next;
                continue;
            }
            // No request may be in flight during a retry.
            let next = match next {
                Some((requests, window, ticket, start)) => {
                    Some((requests, window, self.link.receive(ticket).await, start))
                }
                None => None,
            };
            let settled = self.settle(&mut requests, outcomes, start).await;
            going &= job.finish(window, settled);
            if let Some((mut requests, window, outcomes, start)) = next {
                let settled = self.settle(&mut requests, outcomes, start).await;
                going &= job.finish(window, settled);
            }
        }
        sent
    }
}

/// A failure that ends an operation.
pub(crate) fn of_failure(action: &'static str, failure: Failure) -> Error {
    let Reason { node, error } = match failure {
        Failure::NotNow(reason) | Failure::Lost(reason) | Failure::Refused(reason) => reason,
        other => Reason::of(other.to_string()),
    };
    Error::Server {
        action,
        node: node.map(|node| node.to_string()),
        source: error,
    }
}

/// Between half and the whole of a pause, so that workers that lost a server
/// together don't come back together.
fn jittered(pause: Duration) -> Duration {
    let mut random = [0; 4];
    // Without random numbers, the whole pause.
    let _ = getrandom::fill(&mut random);
    let share = f64::from(u32::from_le_bytes(random)) / f64::from(u32::MAX);
    pause.mul_f64(1.0 - share / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Address;
    use crate::link::now;
    use std::collections::VecDeque;

    /// Gives scripted answers, and records what it was sent.
    #[derive(Default)]
    struct Scripted {
        answers: VecDeque<Vec<Outcome>>,
        sent: Vec<Vec<(u16, bool)>>,
        moved: Vec<u16>,
        learnt: u32,
        counters: Arc<Counters>,
    }

    impl Link for Scripted {
        type Ticket = Vec<Outcome>;

        async fn send(&mut self, requests: &[&Request], _: Wait) -> Vec<Outcome> {
            let seen = requests.iter().map(|r| (r.slot, r.ask.is_some()));
            self.sent.push(seen.collect());
            self.answers.pop_front().unwrap()
        }

        async fn receive(&mut self, ticket: Vec<Outcome>) -> Vec<Outcome> {
            ticket
        }

        async fn learn(&mut self) -> Result<(), Failure> {
            self.learnt += 1;
            Ok(())
        }

        fn moved(&mut self, slot: u16, _: Address) {
            self.moved.push(slot);
        }

        fn is_cluster(&self) -> bool {
            true
        }

        fn masters(&self) -> Vec<(Address, u16)> {
            Vec::new()
        }

        fn owner(&self, _: u16) -> Option<Address> {
            None
        }

        fn counters(&self) -> &Arc<Counters> {
            &self.counters
        }

        async fn pause(&self, _: Duration) {}
    }

    /// Two requests, and their outcomes.
    struct Two(Again, Vec<Settled>);

    impl Job for Two {
        type Window = ();

        fn begin(&mut self, _: Range<usize>) -> (Vec<Request>, ()) {
            let request = |slot| Request {
                again: self.0,
                ..Request::new(slot, &[])
            };
            (vec![request(1), request(2)], ())
        }

        fn finish(&mut self, (): (), settled: Vec<Settled>) -> bool {
            self.1 = settled;
            true
        }
    }

    fn io() -> Reason {
        Reason::of("broken")
    }

    /// Sends two requests in one window; returns their outcomes and the link.
    fn run(answers: Vec<Vec<Outcome>>, again: Again) -> (Vec<Settled>, Scripted) {
        let link = Scripted {
            answers: answers.into(),
            ..Scripted::default()
        };
        let options = Options::new();
        let mut wire = now(Wire::new(link, &options)).unwrap();
        let mut job = Two(again, Vec::new());
        assert_eq!(now(wire.run(&mut job, 1, 10)), 1);
        (job.1, wire.link)
    }

    #[test]
    fn only_what_is_open_is_sent_again() {
        let node = || Address::parse("h:1").unwrap();
        let (settled, link) = run(
            vec![
                vec![Ok(vec![]), Err(Failure::Moved(node()))],
                vec![Err(Failure::Ask(node()))],
                vec![Err(Failure::NotNow(io()))],
                vec![Ok(vec![])],
            ],
            Again::Never,
        );
        assert_eq!(
            link.sent[1..],
            [vec![(2, false)], vec![(2, true)], vec![(2, false)]]
        );
        assert_eq!((link.moved, link.learnt), (vec![2], 2));
        assert!(settled.iter().all(|s| s.outcome.is_ok() && !s.ambiguous));
    }

    #[test]
    fn what_may_have_been_done_is_repeated_only_if_harmless() {
        let lost = || vec![Ok(vec![]), Err(Failure::Lost(io()))];
        let (settled, link) = run(vec![lost(), vec![Ok(vec![])]], Again::Harmless);
        assert_eq!(link.sent.len(), 2);
        assert!(settled[1].outcome.is_ok() && settled[1].ambiguous && !settled[0].ambiguous);
        let (settled, link) = run(vec![lost()], Again::Never);
        assert_eq!(link.sent.len(), 1);
        assert!(matches!(settled[1].outcome, Err(Failure::Lost(_))));
    }

    #[test]
    fn a_refusal_ends_it() {
        let refused = || Err(Failure::Refused(io()));
        let (settled, link) = run(
            vec![vec![refused(), Err(Failure::NotNow(io()))]],
            Again::Harmless,
        );
        assert_eq!(link.sent.len(), 1);
        assert!(settled.iter().all(|s| s.outcome.is_err()));
    }
}
