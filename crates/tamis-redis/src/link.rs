//! A way to reach the servers: `blocking` is one, `multiplexed` another. Nothing
//! else does input or output.

use crate::address::Address;
use crate::failure::{Failure, Outcome};
use crate::request::{Request, Wait};
use crate::stats::Counters;
use std::sync::Arc;
use std::time::Duration;

/// A way to reach the servers. Requests that were sent are answered in the
/// order of their tickets.
pub(crate) trait Link: Send {
    /// What has been sent and not yet been received.
    type Ticket: Send;

    /// Sends requests, each to the node that has its slot, and waits there for
    /// the replicas of those that need them.
    fn send(
        &mut self,
        requests: &[&Request],
        wait: Wait,
    ) -> impl Future<Output = Self::Ticket> + Send;

    /// Receives the outcome of each request of a ticket.
    fn receive(&mut self, ticket: Self::Ticket) -> impl Future<Output = Vec<Outcome>> + Send;

    /// Asks who has which slots, if this is a cluster.
    fn learn(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Remembers where a slot has gone.
    fn moved(&mut self, slot: u16, to: Address);

    fn is_cluster(&self) -> bool;

    /// The nodes that have slots, each with one of them.
    fn masters(&self) -> Vec<(Address, u16)>;

    /// Who has a slot, as far as we know.
    fn owner(&self, slot: u16) -> Option<Address>;

    fn counters(&self) -> &Arc<Counters>;

    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// Runs a future that never waits, as those of a link that blocks.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => unreachable!("a blocking link has its answers at once"),
    }
}
