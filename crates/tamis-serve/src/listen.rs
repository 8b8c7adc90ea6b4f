//! Connections: their number, their duration and their end.

use crate::log::log;
use crate::patient::Patient;
use crate::response::{Response, refusal, set};
use crate::socket::Socket;
use crate::worded::Worded;
use crate::{App, body, routes};
use anyhow::{Context as _, Result};
use hyper::body::Incoming;
use hyper::header::{self, HeaderName};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, StatusCode};
use std::convert::Infallible;
use std::net::{IpAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};
use tamis_report::human;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_rustls::TlsAcceptor;

/// The largest request head, and the size of reads from a body. Larger buffers would be returned to the system each
/// time, and cost more than they save.
const BUFFER: usize = 64 << 10;
/// How many clients above the limit get a response at the same time; others are just disconnected.
const TOLD: usize = 64;
const TOLD_FOR: Duration = Duration::from_secs(1);
/// How long clients may still send and read when the service ends.
const GRACE: Duration = Duration::from_secs(10);

/// The response to a client above the limit.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\n\
    content-length: 74\r\n\
    connection: close\r\n\
    retry-after: 1\r\n\r\n\
    {\"error\":\"too many clients are connected (--max-connections): try again\"}\n";

/// Serves until a signal comes, and finishes the requests received until then.
pub(crate) async fn serve(listener: TcpListener, tls: Option<TlsAcceptor>, app: App) -> Result<()> {
    listener.set_nonblocking(true).context("listening")?;
    let listener = tokio::net::TcpListener::from_std(listener).context("listening")?;
    let at = listener.local_addr().context("listening")?;
    let (first, again) = (signal(1)?, signal(2)?);
    let scheme = if tls.is_some() { "https" } else { "http" };
    log(format_args!("listening on {scheme}://{at}"));

    let places = Arc::new(Semaphore::new(app.limits.connections));
    let told = Arc::new(Semaphore::new(TOLD));
    let stop = watch::Sender::new(false);
    let accept = async {
        loop {
            let (stream, from) = match listener.accept().await {
                Ok(accepted) => accepted,
                Err(_) => {
                    // The client disconnected, or too many files are open: others will close.
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            };
            match Arc::clone(&places).try_acquire_owned() {
                Ok(place) => {
                    let connection = Connection {
                        peer: from.ip(),
                        app: Arc::clone(&app),
                        stop: stop.subscribe(),
                        _place: place,
                    };
                    tokio::spawn(connection.open(stream, tls.clone()));
                }
                Err(_) => {
                    app.metrics.refused_connections.fetch_add(1, Relaxed);
                    if let Ok(place) = Arc::clone(&told).try_acquire_owned() {
                        tokio::spawn(refuse(stream, tls.is_some(), place));
                    }
                }
            }
        }
    };
    until(accept, first).await;
    log("shutting down: answering open requests and saving additions");
    stop.send_replace(true);
    drop(listener);
    tokio::spawn(async {
        again.await;
        log("stopped by a second signal: unsaved additions are lost");
        std::process::exit(130);
    });
    // Once all places are free, every connection has ended.
    let all = u32::try_from(app.limits.connections).unwrap_or(u32::MAX);
    let grace = app.limits.time.min(GRACE);
    let _ = tokio::time::timeout(grace, places.acquire_many(all)).await;
    Ok(())
}

/// Refuses a client above the limit, and waits until it has read the response.
async fn refuse(mut stream: TcpStream, is_encrypted: bool, _place: OwnedSemaphorePermit) {
    if is_encrypted {
        return;
    }
    let told = async {
        stream.write_all(FULL).await?;
        stream.shutdown().await?;
        // Data that arrives after closing would make the system discard the response.
        let mut rest = [0; 1024];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = tokio::time::timeout(TOLD_FOR, told).await;
}

struct Connection {
    peer: IpAddr,
    app: App,
    stop: watch::Receiver<bool>,
    _place: OwnedSemaphorePermit,
}

impl Connection {
    async fn open(self, stream: TcpStream, tls: Option<TlsAcceptor>) {
        // Answers are small, and written completely at once.
        let _ = stream.set_nodelay(true);
        let time = self.app.limits.time;
        let socket = Socket::of(&stream);
        match tls {
            None => self.run(stream, socket).await,
            Some(tls) => {
                if let Ok(Ok(stream)) = tokio::time::timeout(time, tls.accept(stream)).await {
                    self.run(stream, socket).await;
                }
            }
        }
    }

    /// Answers requests until the connection ends. `socket` belongs to the stream.
    async fn run<S: AsyncRead + AsyncWrite + Unpin>(mut self, stream: S, socket: Socket) {
        let (app, peer) = (Arc::clone(&self.app), self.peer);
        let waiting = Arc::new(Waiting::new());
        let watched = Arc::clone(&waiting);
        let service = service_fn(move |request: Request<Incoming>| {
            waiting.ends();
            let (waiting, app) = (Arc::clone(&waiting), Arc::clone(&app));
            async move {
                let response = answer(&app, request, peer).await;
                waiting.begins();
                Ok::<_, Infallible>(response)
            }
        });
        let time = self.app.limits.time;
        let most = human::size(self.app.limits.body as u64);
        let connection = http1::Builder::new()
            // One timer per connection costs less than hyper's, which sets one per request.
            .header_read_timeout(None)
            .max_buf_size(BUFFER)
            .serve_connection(Patient::new(Worded::new(stream, most), time), service);
        let mut connection = pin!(connection);
        let stopped = async {
            let _ = self.stop.wait_for(|stop| *stop).await;
        };
        let mut late = pin!(watched.exceeds(time));
        self.app.metrics.connections.fetch_add(1, Relaxed);
        // How a connection ends is the client's business.
        let mut is_late = false;
        let work = async {
            is_late = until(connection.as_mut(), late.as_mut()).await;
        };
        if until(work, stopped).await {
            connection.as_mut().graceful_shutdown();
            is_late = until(connection.as_mut(), late).await;
        }
        if is_late {
            socket.forget_what_is_unread();
        }
        self.app.metrics.connections.fetch_sub(1, Relaxed);
    }
}

/// Since when we have waited for the head of a request.
struct Waiting {
    start: Instant,
    /// Milliseconds since the start, plus one; 0 while a request is being answered.
    since: AtomicU64,
}

impl Waiting {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            since: AtomicU64::new(1),
        }
    }

    fn begins(&self) {
        let now = self.start.elapsed().as_millis() as u64;
        self.since.store(now + 1, Relaxed);
    }

    fn ends(&self) {
        self.since.store(0, Relaxed);
    }

    /// Ends once the client has made us wait this long.
    async fn exceeds(&self, time: Duration) {
        loop {
            let owed = match self.since.load(Relaxed) {
                0 => time,
                since => {
                    let since = Duration::from_millis(since - 1);
                    (since + time).saturating_sub(self.start.elapsed())
                }
            };
            if owed.is_zero() {
                return;
            }
            tokio::time::sleep(owed).await;
        }
    }
}

async fn answer(app: &App, request: Request<Incoming>, peer: IpAddr) -> Response {
    let start = Instant::now();
    let (head, request_body) = request.into_parts();
    let answered = match app.guard.check(&head) {
        Ok(()) => routes::answer(app, &head, request_body).await,
        Err(refused) => {
            body::leave(&app.budget, &head.headers, request_body).await;
            Err(refused)
        }
    };
    let mut response =
        answered.unwrap_or_else(|problem| refusal(problem, app.guard.is_known(&head.headers)));
    protect(&mut response);
    app.metrics.answered(response.status(), start.elapsed());
    if response.status() == StatusCode::UNAUTHORIZED {
        app.metrics.strangers.seen(peer);
    }
    response
}

/// Headers that browsers need: nothing here is for other sites. The page's own policy is sent with the page.
fn protect(response: &mut Response) {
    set(response, header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    let policy = HeaderName::from_static("cross-origin-resource-policy");
    set(response, policy, "same-origin");
    if !response.headers().contains_key(header::CACHE_CONTROL) {
        set(response, header::CACHE_CONTROL, "no-store");
    }
}

/// Runs `work` until it ends or `stop` does; returns whether it was stopped.
async fn until<T>(work: impl Future<Output = T>, stop: impl Future<Output = ()>) -> bool {
    let (mut work, mut stop) = (pin!(work), pin!(stop));
    std::future::poll_fn(|context| {
        if work.as_mut().poll(context).is_ready() {
            return std::task::Poll::Ready(false);
        }
        stop.as_mut().poll(context).map(|()| true)
    })
    .await
}

/// Ends once this many signals have asked the process to end.
#[cfg(unix)]
fn signal(times: usize) -> Result<impl Future<Output = ()>> {
    use tokio::signal::unix::{SignalKind, signal};
    let watching = "watching for signals";
    let mut interrupt = signal(SignalKind::interrupt()).context(watching)?;
    let mut terminate = signal(SignalKind::terminate()).context(watching)?;
    Ok(async move {
        for _ in 0..times {
            let terminated = async {
                terminate.recv().await;
            };
            until(interrupt.recv(), terminated).await;
        }
    })
}

#[cfg(not(unix))]
fn signal(times: usize) -> Result<impl Future<Output = ()>> {
    Ok(async move {
        for _ in 0..times {
            let _ = tokio::signal::ctrl_c().await;
        }
    })
}
