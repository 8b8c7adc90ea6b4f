//! The service behind `tamis serve`: filters over HTTP, and a page.
//!
//! ```text
//! listen.rs    connections, their number and their time      guard.rs   who may ask what
//!              (descriptors.rs, socket.rs)               health.rs  asks a running service
//!     |
//! routes.rs    which path is answered by what                response.rs  responses and their bodies
//!     |
//! api.rs       /v1/filters      page.rs    /, and what it asks (tamis-report), in pool.rs
//!     |
//! filters.rs   by name          body.rs    bodies into memory   keys.rs   into keys   replies.rs   answers
//!     |
//! file.rs      a file: watched, replaced, saved              remote.rs  in Redis
//! loaded.rs    its content      when.rs   when keys are seen, for windows
//! ```

mod api;
mod body;
mod descriptors;
mod file;
mod filters;
mod guard;
mod health;
mod keys;
mod listen;
mod loaded;
mod log;
mod media;
mod memory;
mod metrics;
mod openapi;
mod page;
mod patient;
mod pool;
mod problem;
mod remote;
mod replies;
mod response;
mod routes;
mod socket;
mod stamp;
mod tally;
mod tls;
mod when;
mod worded;

pub use file::Writing;
pub use filters::{FilterPlace, Named};
pub use health::probe;
pub use loaded::ForeignOptions;
pub use page::page_files;

use anyhow::{Context as _, Result};
use body::Budget;
use descriptors::make_room;
use filters::Filters;
use guard::{Guard, Token};
use loaded::Opening;
use log::log;
use metrics::Metrics;
use pool::Pool;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tamis::Open;

/// Options of the service.
#[allow(missing_debug_implementations)]
pub struct Settings {
    /// The filters, each with a unique name.
    pub filters: Vec<Named>,
    /// The address to listen on.
    pub listen: SocketAddr,
    /// Host names of the service, in addition to IP addresses and localhost.
    pub hosts: Vec<String>,
    /// The certificate and its key, for TLS.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// The file with the token of clients that may write.
    pub token: Option<PathBuf>,
    /// The file with the token of clients that may read; without one, everybody may.
    pub read_token: Option<PathBuf>,
    /// Whether and when additions are saved.
    pub writing: Writing,
    /// Limits per client.
    pub limits: Limits,
    /// Whether to serve the page.
    pub has_page: bool,
    /// How filter files are opened.
    pub open: Open,
    /// How other systems' filters are opened.
    pub foreign: ForeignOptions,
    /// How filters in Redis are opened.
    pub redis: tamis_redis::Options,
}

/// Limits that protect clients from each other.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes in a request's body.
    pub body: usize,
    /// The time limit for each of: a request's head, its body, and writing the whole response.
    pub time: Duration,
    /// The most concurrent connections.
    pub connections: usize,
}

/// Shared by the handlers.
pub(crate) type App = Arc<Shared>;

pub(crate) struct Shared {
    filters: Filters,
    limits: Limits,
    guard: Guard,
    metrics: Metrics,
    has_page: bool,
    /// Runs calculations for the page.
    pool: Pool,
    budget: Arc<Budget>,
}

/// Serves until a signal ends it.
pub fn run(settings: Settings) -> Result<()> {
    memory::give_back_what_is_large();
    let tls = match &settings.tls {
        Some((certificate, key)) => Some(tls::acceptor(certificate, key)?),
        None => None,
    };
    let token = |path: Option<PathBuf>| path.as_deref().map(Token::load_or_create).transpose();
    let (writing, reading) = (token(settings.token)?, token(settings.read_token)?);
    let are_tokens_sent = writing.is_some() || reading.is_some();
    if are_tokens_sent && tls.is_none() && !settings.listen.ip().is_loopback() {
        log(format_args!(
            "warning: whoever sees the traffic to {} sees the token, and can use it\n\
             hint: --tls-cert and --tls-key, or --listen 127.0.0.1 behind a proxy that encrypts",
            settings.listen
        ));
    }
    let guard = Guard::new(settings.hosts, writing, reading);
    let opening = Opening {
        ours: settings.open,
        foreign: settings.foreign,
        redis: settings.redis,
    };
    let filters = Filters::open(settings.filters, &opening, settings.writing)?;
    let limits = Limits {
        connections: make_room(settings.limits.connections, filters.iter().count()),
        ..settings.limits
    };
    let app = Arc::new(Shared {
        filters,
        budget: Budget::new(limits.body, limits.time),
        limits,
        guard,
        metrics: Metrics::default(),
        has_page: settings.has_page,
        pool: Pool::default(),
    });
    let listener = TcpListener::bind(settings.listen)
        .with_context(|| format!("listening on {}", settings.listen))?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting threads")?;
    let ended = runtime.block_on(async {
        app.filters.start();
        listen::serve(listener, tls, Arc::clone(&app)).await?;
        app.filters.save().await
    });
    // Doesn't wait for requests that still wait for Redis.
    runtime.shutdown_background();
    ended
}
