//! A connection that blocks, and that signals don't break: a read or write
//! that a signal interrupts is done again. To the `redis` crate it is a lost
//! answer, and the keys would be sent again and called new a second time.
//!
//! Over TLS that crate's connections are used: `rustls` goes on by itself.

use redis::{Cmd, ConnectionAddr, ConnectionInfo, Parser, RedisError, Value};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

pub(crate) enum Connection {
    Plain {
        socket: Patient<Socket>,
        parser: Parser,
    },
    Tls(Box<redis::Connection>),
}

pub(crate) enum Socket {
    Tcp(TcpStream),
    #[cfg(unix)]
    Unix(std::os::unix::net::UnixStream),
}

impl Connection {
    /// Connects, and answers must come within `timeout`.
    pub(crate) fn open(
        client: &redis::Client,
        connect_timeout: Duration,
        timeout: Duration,
    ) -> Result<Self, RedisError> {
        let info = client.get_connection_info();
        let Some(socket) = Socket::connect(info, connect_timeout)? else {
            let connection = client.get_connection_with_timeout(connect_timeout)?;
            connection.set_read_timeout(Some(timeout))?;
            connection.set_write_timeout(Some(timeout))?;
            return Ok(Self::Tls(Box::new(connection)));
        };
        socket.set_timeouts(timeout)?;
        let mut this = Self::Plain {
            socket: Patient { socket, timeout },
            parser: Parser::new(),
        };
        for command in introduction(info) {
            this.ask(&command)?;
        }
        Ok(this)
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) -> Result<(), RedisError> {
        match self {
            Self::Plain { socket, .. } => Ok(socket.write_all(bytes)?),
            Self::Tls(connection) => connection.send_packed_command(bytes),
        }
    }

    pub(crate) fn receive(&mut self) -> Result<Value, RedisError> {
        loop {
            let value = match self {
                Self::Plain { socket, parser } => parser.parse_value(&mut *socket)?,
                Self::Tls(connection) => connection.recv_response()?,
            };
            // Not an answer.
            if !matches!(value, Value::Push { .. }) {
                return Ok(value);
            }
        }
    }

    /// Sends a command and receives its answer, if that is not an error.
    pub(crate) fn ask(&mut self, command: &Cmd) -> Result<Value, RedisError> {
        self.send(&command.get_packed_command())?;
        match self.receive()? {
            Value::ServerError(error) => Err(error.into()),
            value => Ok(value),
        }
    }
}

impl Socket {
    /// None for an address that is not a plain one.
    fn connect(info: &ConnectionInfo, timeout: Duration) -> io::Result<Option<Self>> {
        match info.addr() {
            ConnectionAddr::Tcp(host, port) => {
                let mut failure = io::Error::other("the host has no address");
                for address in (host.as_str(), *port).to_socket_addrs()? {
                    match TcpStream::connect_timeout(&address, timeout) {
                        Ok(stream) => {
                            stream.set_nodelay(true)?;
                            return Ok(Some(Self::Tcp(stream)));
                        }
                        Err(error) => failure = error,
                    }
                }
                Err(failure)
            }
            #[cfg(unix)]
            ConnectionAddr::Unix(path) => {
                let stream = std::os::unix::net::UnixStream::connect(path)?;
                Ok(Some(Self::Unix(stream)))
            }
            _ => Ok(None),
        }
    }

    fn set_timeouts(&self, timeout: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
            #[cfg(unix)]
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(timeout))?;
                stream.set_write_timeout(Some(timeout))
            }
        }
    }
}

impl Read for Socket {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(to),
            #[cfg(unix)]
            Self::Unix(stream) => stream.read(to),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            #[cfg(unix)]
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Says who we are, and which database we want.
fn introduction(info: &ConnectionInfo) -> Vec<Cmd> {
    let settings = info.redis_settings();
    let mut commands = Vec::new();
    let user = settings.username().unwrap_or("default");
    if settings.protocol().supports_resp3() {
        let mut hello = redis::cmd("HELLO");
        hello.arg(3);
        if let Some(password) = settings.password() {
            hello.arg("AUTH").arg(user).arg(password);
        }
        commands.push(hello);
    } else if let Some(password) = settings.password() {
        let mut auth = redis::cmd("AUTH");
        // Servers before users were invented take a password alone.
        if settings.username().is_some() {
            auth.arg(user);
        }
        commands.push(auth.arg(password).take());
    }
    if settings.db() != 0 {
        commands.push(redis::cmd("SELECT").arg(settings.db()).take());
    }
    commands
}

/// Goes on where a signal interrupts, but not beyond the timeout, however many
/// signals come.
pub(crate) struct Patient<S> {
    socket: S,
    timeout: Duration,
}

impl<S> Patient<S> {
    fn insist(&mut self, mut call: impl FnMut(&mut S) -> io::Result<usize>) -> io::Result<usize> {
        let start = Instant::now();
        loop {
            match call(&mut self.socket) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {
                    if start.elapsed() >= self.timeout {
                        return Err(ErrorKind::TimedOut.into());
                    }
                }
                done => return done,
            }
        }
    }
}

impl<S: Read> Read for Patient<S> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.insist(|socket| socket.read(to))
    }
}

impl<S: Write> Write for Patient<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.insist(|socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interrupted as often as it has bytes.
    struct Interrupted(Vec<u8>, bool);

    impl Read for Interrupted {
        fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 || self.0.is_empty() {
                return Err(ErrorKind::Interrupted.into());
            }
            to[0] = self.0.remove(0);
            Ok(1)
        }
    }

    #[test]
    fn what_is_interrupted_goes_on_and_ends_in_time() {
        let mut socket = Patient {
            socket: Interrupted(b"*2\r\n:1\r\n$1\r\nx\r\n:7\r\n".to_vec(), false),
            timeout: Duration::from_secs(60),
        };
        let mut parser = Parser::new();
        let answer = parser.parse_value(&mut socket).unwrap();
        assert_eq!(
            answer,
            Value::Array(vec![Value::Int(1), Value::BulkString(b"x".to_vec())])
        );
        assert_eq!(parser.parse_value(&mut socket).unwrap(), Value::Int(7));
        socket.timeout = Duration::from_millis(20);
        assert!(parser.parse_value(&mut socket).unwrap_err().is_timeout());
    }
}
