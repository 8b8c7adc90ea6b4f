//! The link that blocks: one connection a node.

use crate::link::{Address, Failure, Link, Outcome, Request, Topology, Wait, answer, client};
use crate::{Location, Options};
use redis::{Connection, ConnectionLike as _, RedisError, Value, cmd};
use std::collections::HashMap;
use std::time::Duration;

pub(crate) struct Blocking {
    at: Location,
    options: Options,
    topology: Topology,
    connections: HashMap<Address, Numbered>,
    opened: u64,
}

/// A connection and its number: what was sent over an earlier one is lost.
struct Numbered {
    number: u64,
    connection: Connection,
}

/// What has been sent.
pub(crate) struct Ticket {
    outcomes: Vec<Option<Outcome>>,
    sent: Vec<Sent>,
}

/// To one node: for each request its place and how many answers to expect.
struct Sent {
    node: Address,
    number: u64,
    requests: Vec<(usize, usize, bool)>,
    wait: Option<u32>,
}

impl Blocking {
    pub(crate) fn new(at: &Location, options: &Options) -> Self {
        Self {
            at: at.clone(),
            options: options.clone(),
            topology: Topology::new(at),
            connections: HashMap::new(),
            opened: 0,
        }
    }

    fn connection(&mut self, node: &Address) -> Result<&mut Numbered, Failure> {
        if !self.connections.contains_key(node) {
            let connection = self.connect(node).map_err(Failure::of_connecting)?;
            self.opened += 1;
            let numbered = Numbered {
                number: self.opened,
                connection,
            };
            self.connections.insert(node.clone(), numbered);
        }
        Ok(self.connections.get_mut(node).expect("just inserted"))
    }

    fn connect(&self, node: &Address) -> Result<Connection, RedisError> {
        let client = client(&self.at, node, &self.options)?;
        let connection = client.get_connection_with_timeout(self.options.connect_timeout)?;
        let wait = self
            .options
            .replicas
            .map_or(Duration::ZERO, |(_, time)| time);
        let timeout = Some(self.options.response_timeout + wait);
        connection.set_read_timeout(timeout)?;
        connection.set_write_timeout(timeout)?;
        Ok(connection)
    }

    fn send_to(
        &mut self,
        node: &Address,
        places: &[usize],
        requests: &[&Request],
        wait: Wait,
    ) -> Result<Sent, Failure> {
        let mut bytes = Vec::new();
        let mut expected = Vec::with_capacity(places.len());
        for &place in places {
            let Request { commands, ask, .. } = requests[place];
            for command in commands {
                if ask.is_some() {
                    cmd("ASKING").write_packed_command(&mut bytes);
                }
                command.write_packed_command(&mut bytes);
            }
            expected.push((place, commands.len(), ask.is_some()));
        }
        if let Some((replicas, time)) = wait {
            cmd("WAIT")
                .arg(replicas)
                .arg(time.as_millis() as u64)
                .write_packed_command(&mut bytes);
        }
        let to = self.connection(node)?;
        let number = to.number;
        if let Err(error) = to.connection.send_packed_command(&bytes) {
            self.connections.remove(node);
            return Err(Failure::Lost(error));
        }
        Ok(Sent {
            node: node.clone(),
            number,
            requests: expected,
            wait: wait.map(|(replicas, _)| replicas),
        })
    }

    fn receive_from(&mut self, sent: &Sent, outcomes: &mut [Option<Outcome>]) {
        let mut broken = None;
        for &(place, answers, asking) in &sent.requests {
            let outcome = match &broken {
                None => self.receive_one(sent, answers, asking),
                Some(error) => Err(Failure::Lost(RedisError::clone(error))),
            };
            if let Err(Failure::Lost(error)) = &outcome {
                broken = Some(error.clone());
            }
            outcomes[place] = Some(outcome);
        }
        let Some(wanted) = sent.wait else {
            return;
        };
        let replicas = match broken {
            None => self.read(sent),
            Some(error) => Err(Failure::Lost(error)),
        };
        let failure = match replicas {
            Ok(Value::Int(got)) if got >= wanted.into() => return,
            Ok(Value::Int(got)) => Failure::FewReplicas(got),
            Ok(_) => Failure::FewReplicas(0),
            Err(failure) => failure,
        };
        for (place, ..) in &sent.requests {
            if matches!(outcomes[*place], Some(Ok(_))) {
                outcomes[*place] = Some(Err(failure.clone()));
            }
        }
    }

    /// Reads all answers of a request, also behind one that is an error.
    fn receive_one(&mut self, sent: &Sent, answers: usize, asking: bool) -> Outcome {
        let mut values = Vec::with_capacity(answers);
        let mut failure = None;
        for _ in 0..answers {
            if asking {
                self.read(sent)?;
            }
            match self.read(sent) {
                Ok(value) => values.push(value),
                Err(lost @ Failure::Lost(_)) => return Err(lost),
                Err(other) => failure = failure.or(Some(other)),
            }
        }
        match failure {
            None => Ok(values),
            Some(failure) => Err(failure),
        }
    }

    fn read(&mut self, sent: &Sent) -> Result<Value, Failure> {
        let lost = |reason| Failure::Lost(RedisError::from(std::io::Error::other(reason)));
        let Some(from) = self.connections.get_mut(&sent.node) else {
            return Err(lost("the connection was given up"));
        };
        if from.number != sent.number {
            return Err(lost("the connection was replaced"));
        }
        loop {
            match from.connection.recv_response() {
                Ok(Value::Push { .. }) => {}
                Ok(value) => return answer(value),
                Err(error) => {
                    // A late answer must not be taken for that of a later request.
                    self.connections.remove(&sent.node);
                    return Err(Failure::Lost(error));
                }
            }
        }
    }
}

impl Link for Blocking {
    type Ticket = Ticket;

    async fn send(&mut self, requests: &[&Request], wait: Wait) -> Ticket {
        let mut outcomes: Vec<Option<Outcome>> = vec![None; requests.len()];
        let mut by_node: Vec<(Address, Vec<usize>)> = Vec::new();
        for (place, request) in requests.iter().enumerate() {
            let Some(node) = request.ask.as_ref().or(self.topology.owner(request.slot)) else {
                let error = std::io::Error::other("no node of the cluster has this slot");
                outcomes[place] = Some(Err(Failure::NotNow(error.into())));
                continue;
            };
            match by_node.iter_mut().find(|(known, _)| known == node) {
                Some((_, places)) => places.push(place),
                None => by_node.push((node.clone(), vec![place])),
            }
        }
        let mut sent = Vec::with_capacity(by_node.len());
        for (node, places) in by_node {
            match self.send_to(&node, &places, requests, wait) {
                Ok(done) => sent.push(done),
                Err(failure) => {
                    for place in places {
                        outcomes[place] = Some(Err(failure.clone()));
                    }
                }
            }
        }
        Ticket { outcomes, sent }
    }

    async fn receive(&mut self, mut ticket: Ticket) -> Vec<Outcome> {
        for sent in &ticket.sent {
            self.receive_from(sent, &mut ticket.outcomes);
        }
        ticket.outcomes.into_iter().flatten().collect()
    }

    async fn learn(&mut self) -> Result<(), Failure> {
        if !self.topology.is_cluster() {
            return Ok(());
        }
        let mut failure = None;
        for node in self.topology.informants() {
            let answered = self.connection(&node).and_then(|to| {
                to.connection
                    .req_command(cmd("CLUSTER").arg("SLOTS"))
                    .map_err(Failure::Lost)
            });
            match answered.and_then(answer) {
                Ok(value) => {
                    if self.topology.learn(&value, &node).is_some() {
                        return Ok(());
                    }
                }
                Err(error) => {
                    self.connections.remove(&node);
                    failure = Some(error);
                }
            }
        }
        let silent = || RedisError::from(std::io::Error::other("no node answers CLUSTER SLOTS"));
        Err(failure.unwrap_or_else(|| Failure::NotNow(silent())))
    }

    fn moved(&mut self, slot: u16, to: Address) {
        self.topology.moved(slot, to);
    }

    fn is_cluster(&self) -> bool {
        self.topology.is_cluster()
    }

    async fn pause(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
