//! Requests that are sent to one node together, and the meaning of their
//! answers.

use crate::address::Address;
use crate::failure::{Failure, Outcome, Reason, answer};
use crate::request::{Allowance, Request, Wait};
use crate::trust::{Named, asks_for_role};
use crate::{Location, Options};
use redis::{Cmd, Value};

/// The answers we expect from a node. The answer to the replication query may
/// come before them.
pub(crate) struct Batch {
    pub(crate) node: Address,
    requests: Vec<Expected>,
    wait: Wait,
    /// Whether the batch ends with the question whether the node is still the
    /// master.
    role: bool,
    pub(crate) allowance: Allowance,
    /// The first of the commands, for errors.
    pub(crate) command: String,
}

/// The answers that a request expects.
struct Expected {
    /// The index of the request.
    place: usize,
    answers: usize,
    /// Whether each command is preceded by an `ASKING`, which has its own
    /// answer.
    asking: bool,
    replicated: bool,
}

/// Why we don't believe a node's answers.
pub(crate) enum Distrust {
    /// It isn't the master, or didn't say.
    Replica,
    Stale(Reason),
    /// The Sentinels name another master, or none that is up.
    Another(Option<Named>),
}

impl Batch {
    pub(crate) fn new(
        (at, options): (&Location, &Options),
        node: Address,
        places: &[usize],
        requests: &[&Request],
        wait: Wait,
    ) -> Self {
        let sending = || places.iter().map(|place| requests[*place]);
        let wait = wait.filter(|_| sending().any(|request| request.replicated));
        let expected = |place: &usize| Expected {
            place: *place,
            answers: requests[*place].packed.commands,
            asking: requests[*place].ask.is_some(),
            replicated: requests[*place].replicated,
        };
        Self {
            node,
            requests: places.iter().map(expected).collect(),
            wait,
            role: asks_for_role(at),
            allowance: Allowance::of(sending(), wait, options),
            command: sending().next().map(Request::command).unwrap_or_default(),
        }
    }

    /// The commands behind the requests.
    pub(crate) fn last_commands(&self) -> Vec<Cmd> {
        let wait = self.wait;
        let wait = wait.map(|(n, time)| command!("WAIT", n, time.as_millis() as u64));
        let role = self.role.then(|| command!("ROLE"));
        wait.into_iter().chain(role).collect()
    }

    /// The number of answers.
    pub(crate) fn answers(&self) -> usize {
        let each = |request: &Expected| request.answers * (1 + usize::from(request.asking));
        let requests: usize = self.requests.iter().map(each).sum();
        requests + usize::from(self.wait.is_some()) + usize::from(self.role)
    }

    /// Removes the node's role from complete answers, if it was asked for.
    pub(crate) fn take_role(&self, answers: &mut Vec<Value>) -> Option<Value> {
        let all = answers.len() == self.answers();
        answers.pop_if(|_| self.role && all)
    }

    /// The outcomes of the requests; those without answers have failed.
    pub(crate) fn settle(
        &self,
        answers: Vec<Value>,
        failed: Option<Failure>,
        outcomes: &mut [Option<Outcome>],
    ) {
        let few = || Failure::Lost(Reason::of("it sent fewer answers than it was asked for"));
        let failed = failed.unwrap_or_else(few).at(&self.node);
        let mut answers = answers.into_iter();
        let mut next = || answers.next().map_or_else(|| Err(failed.clone()), answer);
        for expected in &self.requests {
            let mut values = Vec::with_capacity(expected.answers);
            let mut failure = None;
            for _ in 0..expected.answers {
                if expected.asking {
                    let _ = next();
                }
                match next() {
                    Ok(value) => values.push(value),
                    // The command may have been executed.
                    Err(lost @ Failure::Lost(_)) => failure = Some(lost),
                    Err(other) => failure = failure.or(Some(other)),
                }
            }
            let failure = failure.map(|failure| failure.at(&self.node));
            outcomes[expected.place] = Some(failure.map_or(Ok(values), Err));
        }
        if let Some((wanted, _)) = self.wait {
            let failure = match next() {
                Ok(Value::Int(got)) if got >= wanted.into() => return,
                Ok(Value::Int(got)) => Failure::FewReplicas(got),
                Ok(_) => Failure::FewReplicas(0),
                Err(failure) => failure,
            };
            let replicated = self.requests.iter().filter(|request| request.replicated);
            for request in replicated {
                let outcome = &mut outcomes[request.place];
                if matches!(outcome, Some(Ok(_))) {
                    *outcome = Some(Err(failure.clone()));
                }
            }
        }
    }

    /// Discards the answers of a node that we don't believe. They count as
    /// lost, not as refused: replicas can be writable, and a former master may
    /// have executed commands that the failover loses.
    pub(crate) fn distrust(&self, why: Distrust, outcomes: &mut [Option<Outcome>]) {
        let reason = match why {
            Distrust::Replica => Reason::of("a replica, not the master any more"),
            Distrust::Stale(reason) => reason,
            Distrust::Another(Some(named)) if named.master != self.node => {
                Reason::of(format!("the Sentinels call {} the master", named.master))
            }
            Distrust::Another(_) => Reason::of("no Sentinel confirms that it is still the master"),
        };
        for request in &self.requests {
            let outcome = &mut outcomes[request.place];
            if matches!(outcome, Some(Ok(_) | Err(Failure::FewReplicas(_)))) {
                *outcome = Some(Err(Failure::Lost(reason.clone()).at(&self.node)));
            }
        }
    }
}
