//! How we reach the servers: `blocking` or `multiplexed`. Only links do input
//! and output.

use crate::address::Address;
use crate::failure::{Failure, Outcome};
use crate::request::{Request, Wait};
use crate::stats::Counters;
use std::sync::Arc;
use std::time::Duration;

/// A connection to the servers. The answers arrive in the order of the tickets.
pub(crate) trait Link: Send {
    /// Requests that were sent and not yet answered.
    type Ticket: Send;

    /// Sends each request to the node that has its slot, and waits for replicas
    /// where requests need them.
    fn send(
        &mut self,
        requests: &[&Request],
        wait: Wait,
    ) -> impl Future<Output = Self::Ticket> + Send;

    /// Receives the outcome of each request of a ticket.
    fn receive(&mut self, ticket: Self::Ticket) -> impl Future<Output = Vec<Outcome>> + Send;

    /// In a cluster, asks which node has which slots.
    fn learn(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Remembers a slot's new node.
    fn moved(&mut self, slot: u16, to: Address);

    fn is_cluster(&self) -> bool;

    /// The nodes that have slots, each with one of them.
    fn masters(&self) -> Vec<(Address, u16)>;

    /// The node that has a slot, as far as we know.
    fn owner(&self, slot: u16) -> Option<Address>;

    fn counters(&self) -> &Arc<Counters>;

    fn pause(&self, time: Duration) -> impl Future<Output = ()> + Send;
}

/// Runs a future of a blocking link, which never waits.
pub(crate) fn now<T>(future: impl Future<Output = T>) -> T {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(value) => value,
        std::task::Poll::Pending => unreachable!("a blocking link has its answers at once"),
    }
}
