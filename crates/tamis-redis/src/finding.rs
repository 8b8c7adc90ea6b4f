//! Finding the servers: through the nodes of a cluster, or Sentinels.

use crate::Location;
use crate::address::Address;
use crate::failure::Failure;
use crate::location::Reach;
use crate::topology::Topology;
use crate::trust::{Named, how_is_master, master, who_is_master};
use crate::way::way_to_sentinel;
use redis::{Cmd, ConnectionInfo, RedisError, Value};
use std::time::Instant;

/// The parts of a link that are needed to find servers.
pub(crate) trait Finder: Send {
    fn at(&self) -> &Location;

    fn topology<R>(&mut self, with: impl FnOnce(&mut Topology) -> R) -> R;

    /// Asks over a new connection.
    fn ask_anew(
        &mut self,
        way: &ConnectionInfo,
        commands: &[Cmd],
    ) -> impl Future<Output = Result<Vec<Value>, RedisError>> + Send;

    /// A node's answer to `CLUSTER SLOTS`.
    fn ask_slots(&mut self, node: &Address) -> impl Future<Output = Result<Value, Failure>> + Send;
}

/// Asks which node has which slots of a cluster, or which node is the master.
pub(crate) async fn learn<F: Finder>(finder: &mut F) -> Result<(), Failure> {
    if matches!(finder.at().reach(), Reach::Server | Reach::Socket) {
        return Ok(());
    }
    if finder.at().service().is_some() {
        let named = ask_sentinels(finder).await?;
        finder.topology(|topology| topology.follow(named.master));
        return Ok(());
    }
    let mut failure = Failure::nobody_answers();
    for node in finder.topology(|topology| topology.informants()) {
        match finder.ask_slots(&node).await {
            Ok(slots) if finder.topology(|all| all.learn(&slots, &node)).is_some() => {
                return Ok(());
            }
            Ok(_) => failure = Failure::no_slots().at(&node),
            Err(other) => failure = other.at(&node),
        }
    }
    Err(failure)
}

/// The master, from the first Sentinel that answers.
pub(crate) async fn ask_sentinels<F: Finder>(finder: &mut F) -> Result<Named, Failure> {
    let mut failure = Failure::nobody_answers();
    for node in finder.topology(|topology| topology.informants()) {
        match ask_sentinel(finder, &node).await {
            Ok(named) => {
                finder.topology(|topology| topology.prefer(&node));
                return Ok(named);
            }
            Err(other) => failure = other.at(&node),
        }
    }
    Err(failure)
}

/// Asks a Sentinel for the master; sends a password only if it requires one.
async fn ask_sentinel<F: Finder>(finder: &mut F, node: &Address) -> Result<Named, Failure> {
    let start = Instant::now();
    let mut authenticated = false;
    let mut answers = loop {
        let way = way_to_sentinel(finder.at(), node, authenticated);
        let commands = [who_is_master(finder.at()), how_is_master(finder.at())];
        let answers = finder.ask_anew(&way, &commands).await;
        let wants_password = match &answers {
            Err(error) => error.code() == Some("NOAUTH"),
            Ok(answers) => {
                matches!(answers.first(), Some(Value::ServerError(e)) if e.code() == "NOAUTH")
            }
        };
        if authenticated || !wants_password {
            break answers.map_err(|e| Failure::of_connecting(node, start.elapsed(), e))?;
        }
        authenticated = true;
    };
    let state = answers.pop();
    let answer = answers.pop().unwrap_or(Value::Nil).extract_error();
    let answer = answer.map_err(|e| Failure::of_connecting(node, start.elapsed(), e))?;
    Ok(Named::new(master(finder.at(), node, answer)?, state, start))
}
