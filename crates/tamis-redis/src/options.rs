//! How to talk to the servers.

#[cfg(feature = "tls")]
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tamis::SecretKey;

/// How to talk to the servers; every setting has a default.
///
/// ```
/// use std::time::Duration;
/// use tamis_redis::Options;
/// let options = Options::new()
///     .response_timeout(Duration::from_secs(2))
///     .retry_for(Duration::from_secs(10))
///     .wait_replicas(1, Duration::from_millis(500));
/// ```
#[derive(Clone, Debug)]
pub struct Options {
    pub(crate) key: Option<SecretKey>,
    pub(crate) connect_timeout: Duration,
    pub(crate) response_timeout: Duration,
    pub(crate) retry_for: Duration,
    pub(crate) replicas: Option<(u32, Duration)>,
    pub(crate) tls: TlsOptions,
    pub(crate) max_lag: Duration,
    pub(crate) allow_stale: bool,
    pub(crate) allow_replica_writes: bool,
    pub(crate) module: bool,
}

/// The certificates to trust, and our own, in PEM format.
#[derive(Clone, Default)]
pub(crate) struct TlsOptions {
    pub(crate) root: Option<Vec<u8>>,
    pub(crate) identity: Option<Identity>,
    pub(crate) insecure: bool,
    /// The configurations made from them: secure, insecure.
    #[cfg(feature = "tls")]
    pub(crate) made: Arc<[OnceLock<Arc<rustls::ClientConfig>>; 2]>,
}

#[derive(Clone)]
pub(crate) struct Identity {
    pub(crate) certificate: Vec<u8>,
    pub(crate) key: Vec<u8>,
}

/// Without the private key.
impl std::fmt::Debug for TlsOptions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TlsOptions")
            .field("insecure", &self.insecure)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            key: None,
            connect_timeout: Duration::from_secs(3),
            response_timeout: Duration::from_secs(10),
            retry_for: Duration::from_secs(30),
            replicas: None,
            tls: TlsOptions::default(),
            max_lag: Duration::from_secs(15),
            allow_stale: false,
            allow_replica_writes: false,
            module: false,
        }
    }
}

impl Options {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// The secret of a keyed filter, if the filter itself doesn't contain it.
    pub fn key(mut self, key: SecretKey) -> Self {
        self.key = Some(key);
        self
    }

    /// The timeout of connecting to a server, including the TLS handshake; 3
    /// seconds by default.
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// The timeout of all answers to a batch, after which the connection is
    /// closed; 10 seconds by default. Large answers, such as a download's, get
    /// one more second per MiB.
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// How long an operation keeps trying while servers are down, loading or
    /// changing roles, from its first request on; 30 seconds by default. Zero
    /// means it doesn't retry.
    pub fn retry_for(mut self, time: Duration) -> Self {
        self.retry_for = time;
        self
    }

    /// Confirms an addition only once this many replicas of its server have it
    /// (`WAIT`). After `timeout`, it stops waiting and reports the keys that
    /// aren't confirmed.
    pub fn wait_replicas(mut self, replicas: u32, timeout: Duration) -> Self {
        self.replicas = (replicas > 0).then_some((replicas, timeout));
        self
    }

    /// A replica that hasn't heard from its master for longer than this isn't
    /// asked; 15 seconds by default. Masters ping their replicas at least every
    /// 10 seconds, unless `repl-ping-replica-period` is changed.
    pub fn max_lag(mut self, time: Duration) -> Self {
        self.max_lag = time;
        self
    }

    /// Accepts the answers of a replica that has lost its master, is copying
    /// it, or lags behind: it answers a false "no" for keys that it lacks.
    pub fn allow_stale(mut self) -> Self {
        self.allow_stale = true;
        self
    }

    /// Writes to a replica that accepts writes (`replica-read-only no`). Its
    /// master doesn't get these keys, and the next full copy from the master
    /// discards them.
    pub fn allow_replica_writes(mut self) -> Self {
        self.allow_replica_writes = true;
        self
    }

    /// Creates new filters in the server's module (Tamis's or another that
    /// answers BF.*) instead of in plain strings. Existing filters are found in
    /// either.
    ///
    /// ```no_run
    /// use tamis::{Hasher, Kind, Plan};
    /// use tamis_redis::{Options, RedisFilter};
    /// let at = "redis://localhost/seen".parse()?;
    /// let plan = Plan::for_rate(Kind::Growing, 1_000_000, 0.01)?;
    /// let options = Options::new().in_module();
    /// let mut seen = RedisFilter::create(&at, &plan, Hasher::default(), &options)?;
    /// assert!(seen.insert("https://example.org/")?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn in_module(mut self) -> Self {
        self.module = true;
        self
    }
}

/// Options for TLS, of use only with the feature `tls`.
impl Options {
    /// The certificate authority to trust, in PEM format, instead of the
    /// system's.
    pub fn tls_root(self, pem: impl Into<Vec<u8>>) -> Self {
        self.with_tls(|tls| tls.root = Some(pem.into()))
    }

    /// The client's certificate (with its chain to the authority) and its
    /// private key, both in PEM format, for servers that ask for them.
    pub fn tls_identity(self, certificate: impl Into<Vec<u8>>, key: impl Into<Vec<u8>>) -> Self {
        let (certificate, key) = (certificate.into(), key.into());
        self.with_tls(|tls| tls.identity = Some(Identity { certificate, key }))
    }

    /// Accepts any certificate, so that anyone can pose as the server.
    pub fn insecure(self) -> Self {
        self.with_tls(|tls| tls.insecure = true)
    }

    /// An error if any option for TLS is set, since this build has no TLS.
    #[cfg(not(feature = "tls"))]
    pub fn check_certificates(&self) -> Result<(), crate::Error> {
        if self.tls.root.is_some() || self.tls.identity.is_some() || self.tls.insecure {
            Err(crate::Error::NoTls)
        } else {
            Ok(())
        }
    }

    fn with_tls(mut self, set: impl FnOnce(&mut TlsOptions)) -> Self {
        set(&mut self.tls);
        #[cfg(feature = "tls")]
        {
            self.tls.made = Arc::default();
        }
        self
    }
}
