//! A blocking connection. The deadline and the most bytes to accept are set
//! before each read. A read or write that a signal interrupts is repeated:
//! treating it as a lost answer would send the keys again and call them new a
//! second time.

use redis::{Cmd, ConnectionAddr, ConnectionInfo, Parser, RedisError, Value};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use crate::Options;
use crate::request::SMALL;
use crate::way::introduction;

pub(crate) struct Connection {
    stream: Metered<Box<dyn Stream>>,
    parser: Parser,
}

/// A connected socket, or TLS over it.
trait Stream: Read + Write + Send + Sync {
    /// Sets the deadline of reads and writes.
    fn set_until(&mut self, until: Instant);
}

impl<S: Read + Write + GivesUp + Send + Sync> Stream for Timed<S> {
    fn set_until(&mut self, until: Instant) {
        self.until = until;
    }
}

#[cfg(feature = "tls")]
impl Stream for rustls::StreamOwned<rustls::ClientConnection, Timed<TcpStream>> {
    fn set_until(&mut self, until: Instant) {
        self.sock.until = until;
    }
}

impl Connection {
    /// Connects and introduces us, each within its own timeout.
    pub(crate) fn open(info: &ConnectionInfo, options: &Options) -> Result<Self, RedisError> {
        let stream = connect(info.addr(), options)?;
        let mut this = Self {
            stream: Metered { stream, left: 0 },
            parser: Parser::new(),
        };
        this.expect(Instant::now() + options.response_timeout, SMALL);
        for command in introduction(info) {
            this.ask(&command)?;
        }
        Ok(this)
    }

    /// Sets the deadline and the most bytes for the answers from now on.
    pub(crate) fn expect(&mut self, until: Instant, bytes: u64) {
        self.stream.left = bytes;
        self.stream.stream.set_until(until);
    }

    pub(crate) fn send(&mut self, bytes: &[u8], until: Instant) -> Result<(), RedisError> {
        self.stream.stream.set_until(until);
        self.write(bytes)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), RedisError> {
        self.stream.stream.write_all(bytes)?;
        Ok(self.stream.stream.flush()?)
    }

    pub(crate) fn receive(&mut self) -> Result<Value, RedisError> {
        loop {
            let value = self.parser.parse_value(&mut self.stream)?;
            // Not an answer.
            if !matches!(value, Value::Push { .. }) {
                return Ok(value);
            }
        }
    }

    /// Sends a command and receives its answer by the deadline; an error answer
    /// is an `Err`.
    pub(crate) fn ask(&mut self, command: &Cmd) -> Result<Value, RedisError> {
        self.write(&command.get_packed_command())?;
        match self.receive()? {
            Value::ServerError(error) => Err(error.into()),
            value => Ok(value),
        }
    }
}

fn connect(address: &ConnectionAddr, options: &Options) -> Result<Box<dyn Stream>, RedisError> {
    let until = Instant::now() + options.connect_timeout;
    match address {
        ConnectionAddr::Tcp(host, port) => Ok(Box::new(connect_tcp(host, *port, until)?)),
        #[cfg(feature = "tls")]
        ConnectionAddr::TcpTls {
            host,
            port,
            insecure,
            ..
        } => {
            let config = crate::tls::config(*insecure, options)?;
            let socket = connect_tcp(host, *port, until)?;
            let session = rustls::ClientConnection::new(config, crate::tls::server_name(host)?);
            let session = session.map_err(io::Error::other)?;
            let mut stream = rustls::StreamOwned::new(session, socket);
            while stream.conn.is_handshaking() {
                stream.conn.complete_io(&mut stream.sock)?;
            }
            Ok(Box::new(stream))
        }
        #[cfg(unix)]
        ConnectionAddr::Unix(path) => {
            let socket = std::os::unix::net::UnixStream::connect(path)?;
            Ok(Box::new(Timed { socket, until }))
        }
        _ => Err(unreachable_here().into()),
    }
}

fn connect_tcp(host: &str, port: u16, until: Instant) -> io::Result<Timed<TcpStream>> {
    let mut failure = io::Error::other("the host has no address");
    for address in (host, port).to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, left(until)?) {
            Ok(socket) => {
                socket.set_nodelay(true)?;
                return Ok(Timed { socket, until });
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// The error for an address that this build or system can't connect to.
pub(crate) fn unreachable_here() -> io::Error {
    io::Error::other("not an address that can be reached here")
}

/// The time left until a deadline.
fn left(until: Instant) -> io::Result<Duration> {
    match until.saturating_duration_since(Instant::now()) {
        Duration::ZERO => Err(ErrorKind::TimedOut.into()),
        left => Ok(left),
    }
}

/// A socket with timeouts.
trait GivesUp {
    fn read_within(&self, time: Duration) -> io::Result<()>;
    fn write_within(&self, time: Duration) -> io::Result<()>;
}

macro_rules! gives_up {
    ($socket:ty) => {
        impl GivesUp for $socket {
            fn read_within(&self, time: Duration) -> io::Result<()> {
                self.set_read_timeout(Some(time))
            }

            fn write_within(&self, time: Duration) -> io::Result<()> {
                self.set_write_timeout(Some(time))
            }
        }
    };
}

gives_up!(TcpStream);
#[cfg(unix)]
gives_up!(std::os::unix::net::UnixStream);

/// Reads and writes until a deadline, however little arrives at a time and
/// however many signals interrupt.
struct Timed<S> {
    socket: S,
    until: Instant,
}

impl<S> Timed<S> {
    fn insist(
        &mut self,
        within: impl Fn(&S, Duration) -> io::Result<()>,
        mut call: impl FnMut(&mut S) -> io::Result<usize>,
    ) -> io::Result<usize> {
        loop {
            within(&self.socket, left(self.until)?)?;
            match call(&mut self.socket) {
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // What systems return when a timeout passes.
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                done => return done,
            }
        }
    }
}

impl<S: Read + GivesUp> Read for Timed<S> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.insist(S::read_within, |socket| socket.read(to))
    }
}

impl<S: Write + GivesUp> Write for Timed<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.insist(S::write_within, |socket| socket.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.socket.flush()
    }
}

/// Accepts no more bytes than allowed.
struct Metered<S> {
    stream: S,
    left: u64,
}

impl<S: Read> Read for Metered<S> {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            return Err(too_much());
        }
        let most = to.len().min(self.left.try_into().unwrap_or(usize::MAX));
        let read = self.stream.read(&mut to[..most])?;
        self.left -= read as u64;
        Ok(read)
    }
}

/// The error for a server that sends without end.
pub(crate) fn too_much() -> io::Error {
    io::Error::other("it sent more than it was asked for")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Interrupts before every byte.
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

    impl GivesUp for Interrupted {
        fn read_within(&self, _: Duration) -> io::Result<()> {
            Ok(())
        }

        fn write_within(&self, _: Duration) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_interrupted_goes_on_and_ends_in_time() {
        let mut socket = Timed {
            socket: Interrupted(b"*2\r\n:1\r\n$1\r\nx\r\n:7\r\n".to_vec(), false),
            until: Instant::now() + Duration::from_secs(600),
        };
        let mut parser = Parser::new();
        let answer = parser.parse_value(&mut socket).unwrap();
        assert_eq!(
            answer,
            Value::Array(vec![Value::Int(1), Value::BulkString(b"x".to_vec())])
        );
        assert_eq!(parser.parse_value(&mut socket).unwrap(), Value::Int(7));
        socket.until = Instant::now() + Duration::from_millis(20);
        assert!(parser.parse_value(&mut socket).unwrap_err().is_timeout());
    }

    #[test]
    fn no_more_is_read_than_was_asked_for() {
        let text = b"$1000000000000\r\nxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";
        let mut stream = Metered {
            stream: &text[..],
            left: 40,
        };
        let error = Parser::new().parse_value(&mut stream).unwrap_err();
        assert!(error.to_string().contains("more than"), "{error}");
        assert_eq!(stream.stream.len(), text.len() - 40);
    }
}
