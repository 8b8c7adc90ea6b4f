//! The parameters behind the `?` of a location: how to talk to its servers.

use crate::options::Identity;
use crate::{Error, Options};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tamis::internals::file::read_small;

/// The largest certificate file: room for all authorities of a system.
const LARGEST_CERTIFICATES: u64 = 16 << 20;

/// The settings in a location. All others come from [`Options`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Parameters {
    /// Passed on to the `redis` crate.
    pub(crate) protocol: Option<String>,
    pub(crate) is_insecure: bool,
    pub(crate) replicas: Option<u32>,
    timeout: Option<Duration>,
    retry: Option<Duration>,
    max_lag: Option<MaxLag>,
    writes_to_replicas: bool,
    ca: Option<PathBuf>,
    cert: Option<PathBuf>,
    key: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MaxLag {
    Time(Duration),
    Any,
}

impl Parameters {
    /// All names, for errors.
    pub(crate) const NAMES: &str =
        "timeout, retry, replicas, max-lag, write, ca, cert, key, tls, protocol";

    /// Reads decoded names and values. The error says what was expected.
    pub(crate) fn read<K: AsRef<str>, V: AsRef<str>>(
        pairs: impl Iterator<Item = (K, V)>,
        with_tls: bool,
    ) -> Result<Self, String> {
        let mut this = Self::default();
        let mut seen = Vec::new();
        for (name, value) in pairs {
            let (name, value) = (name.as_ref(), value.as_ref());
            if seen.iter().any(|earlier| earlier == name) {
                return Err(format!("the parameter {name} only once"));
            }
            this.set(name, value, with_tls)?;
            seen.push(name.to_owned());
        }
        if this.cert.is_some() != this.key.is_some() {
            return Err("both cert=FILE and key=FILE, or neither".into());
        }
        Ok(this)
    }

    fn set(&mut self, name: &str, value: &str, with_tls: bool) -> Result<(), String> {
        if matches!(name, "ca" | "cert" | "key" | "tls") && !with_tls {
            return Err(format!("rediss:// for the parameter {name}"));
        }
        match name {
            "protocol" if matches!(value, "resp2" | "resp3") => {
                self.protocol = Some(value.to_owned());
            }
            "protocol" => return Err("protocol=resp3".into()),
            "timeout" => self.timeout = Some(time(name, value)?),
            "retry" => self.retry = Some(time(name, value)?),
            "replicas" => {
                let number = value.parse();
                self.replicas = Some(number.map_err(|_| "replicas=N with a number N")?);
            }
            "max-lag" if value == "any" => self.max_lag = Some(MaxLag::Any),
            "max-lag" => self.max_lag = Some(MaxLag::Time(time(name, value)?)),
            "write" if value == "replica" => self.writes_to_replicas = true,
            "write" => return Err("write=replica".into()),
            "tls" if value == "insecure" => self.is_insecure = true,
            "tls" => return Err("tls=insecure".into()),
            "ca" => self.ca = Some(value.into()),
            "cert" => self.cert = Some(value.into()),
            "key" => self.key = Some(value.into()),
            _ => return Err(format!("only the parameters {}", Self::NAMES)),
        }
        Ok(())
    }

    /// The files that it names: an authority, a certificate, and its private key.
    pub(crate) fn files(&self) -> [Option<&Path>; 3] {
        [&self.ca, &self.cert, &self.key].map(|file| file.as_deref())
    }

    /// The options, replaced by the location's settings where it has any.
    pub(crate) fn over(&self, options: &Options) -> Result<Options, Error> {
        let mut options = options.clone();
        if let Some(timeout) = self.timeout {
            options = options.connect_timeout(timeout).response_timeout(timeout);
            options.replicas = options.replicas.map(|(number, _)| (number, timeout));
        }
        if let Some(replicas) = self.replicas {
            let timeout = options.response_timeout;
            options = options.wait_replicas(replicas, timeout);
        }
        if let Some(retry) = self.retry {
            options = options.retry_for(retry);
        }
        options = match self.max_lag {
            Some(MaxLag::Any) => options.allow_stale(),
            Some(MaxLag::Time(time)) => options.max_lag(time),
            None => options,
        };
        if self.writes_to_replicas {
            options = options.allow_replica_writes();
        }
        if let Some(ca) = &self.ca {
            options = options.tls_root(read_small(ca, LARGEST_CERTIFICATES)?);
            options.check_certificates().map_err(named("ca", ca))?;
        }
        if let (Some(cert), Some(key)) = (&self.cert, &self.key) {
            let identity = Identity {
                certificate: read_small(cert, LARGEST_CERTIFICATES)?,
                key: read_small(key, LARGEST_CERTIFICATES)?,
            };
            options = options.tls_identity(identity.certificate, identity.key);
            options.check_certificates().map_err(named("cert", cert))?;
        }
        Ok(options)
    }
}

impl Options {
    /// The defaults, replaced by the environment's settings: `TAMIS_REDIS_TIMEOUT`, `TAMIS_REDIS_RETRY`,
    /// `TAMIS_REDIS_REPLICAS`, `TAMIS_REDIS_MAX_LAG`, `TAMIS_REDIS_CA`, `TAMIS_REDIS_CERT` and `TAMIS_REDIS_KEY`. Their
    /// values are those of a [`Location`](crate::Location)'s parameters, which take precedence. Settings that weaken a
    /// promise exist only in locations.
    ///
    /// ```
    /// # fn main() -> Result<(), tamis_redis::Error> {
    /// let options = tamis_redis::Options::from_env()?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn from_env() -> Result<Self, Error> {
        let names = [
            "timeout", "retry", "replicas", "max-lag", "ca", "cert", "key",
        ];
        let mut parameters = Parameters::default();
        for name in names {
            let variable = format!("TAMIS_REDIS_{}", name.to_uppercase().replace('-', "_"));
            let Some(value) = std::env::var_os(&variable).filter(|value| !value.is_empty()) else {
                continue;
            };
            let got = format!("{variable}={}", value.display());
            let refuse = |expected: &str| Error::Location {
                expected: format!("in the environment {expected}"),
                got: got.clone(),
            };
            let value = value.to_str().ok_or_else(|| refuse("UTF-8"))?;
            if value == "any" {
                return Err(refuse(
                    "a time; max-lag=any, which weakens a promise, stands in the location only",
                ));
            }
            let set = parameters.set(name, value, true);
            set.map_err(|expected| refuse(&expected))?;
        }
        if parameters.cert.is_some() != parameters.key.is_some() {
            return Err(Error::Location {
                expected: "both TAMIS_REDIS_CERT and TAMIS_REDIS_KEY".into(),
                got: "one of them".into(),
            });
        }
        if cfg!(not(feature = "tls")) {
            // Without TLS, no location leads to a server that needs these.
            (parameters.ca, parameters.cert, parameters.key) = (None, None, None);
        }
        parameters.over(&Self::new())
    }
}

/// Names the file in a certificate's error.
fn named<'a>(name: &'a str, file: &'a Path) -> impl FnOnce(Error) -> Error + 'a {
    move |error| match error {
        Error::Certificates(why) => {
            Error::Certificates(format!("{name}={}: {why}", file.display()))
        }
        error => error,
    }
}

/// A time with its unit: 500ms, 5s, 2m, 1h, 7d.
fn time(name: &str, text: &str) -> Result<Duration, String> {
    const UNITS: [(&str, f64); 5] = [
        ("ms", 0.001),
        ("s", 1.0),
        ("m", 60.0),
        ("h", 3600.0),
        ("d", 86_400.0),
    ];
    let expected = || format!("{name}=TIME with a time such as 500ms, 5s or 2m");
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = UNITS
        .iter()
        .find(|(unit, _)| *unit == &text[digits.len()..]);
    let (Some((_, seconds)), Ok(number)) = (unit, digits.parse::<f64>()) else {
        return Err(expected());
    };
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|_| expected())?;
    // A timeout of zero would always fail, but zero retries is a valid setting.
    if time < Duration::from_millis(1) && name != "retry" {
        return Err(expected());
    }
    Ok(time)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Location;

    fn options(text: &str) -> Options {
        let at: Location = text.parse().unwrap();
        at.options(&Options::new()).unwrap()
    }

    #[test]
    fn a_location_settles_its_own_servers() {
        let all = options(
            "redis://h/seen?timeout=500ms&retry=2m&replicas=2&max-lag=1h&write=replica&protocol=resp3",
        );
        let half = Duration::from_millis(500);
        assert_eq!(all.connect_timeout, half);
        assert_eq!(all.response_timeout, half);
        assert_eq!(all.retry_for, Duration::from_secs(120));
        assert_eq!(all.replicas, Some((2, half)));
        assert_eq!(all.max_lag, Duration::from_secs(3600));
        assert!(all.allow_replica_writes && !all.allow_stale);
        assert!(options("redis://h/seen?max-lag=any").allow_stale);
        assert_eq!(options("redis://h/seen?retry=0s").retry_for, Duration::ZERO);
        // The order of parameters doesn't matter, and options that they don't name stay.
        let given = Options::new().wait_replicas(3, half);
        let at: Location = "redis+unix:///s?name=x&timeout=5s".parse().unwrap();
        let made = at.options(&given).unwrap();
        assert_eq!(made.replicas, Some((3, Duration::from_secs(5))));
        assert_eq!(made.retry_for, given.retry_for);
    }

    #[test]
    fn a_wrong_parameter_is_refused() {
        for (parameter, expected) in [
            ("timeout=5", "timeout=TIME"),
            ("timeout=0s", "timeout=TIME"),
            ("timeout=-1s", "timeout=TIME"),
            ("timeout=infs", "timeout=TIME"),
            ("timeout=1e300d", "timeout=TIME"),
            ("max-lag=ever", "max-lag=TIME"),
            ("replicas=-1", "replicas=N"),
            ("write=all", "write=replica"),
            ("ca=/ca.pem", "rediss://"),
            ("tls=insecure", "rediss://"),
            ("timout=5s", "only the parameters timeout"),
            ("retry=1s&retry=2s", "only once"),
        ] {
            let text = format!("redis://h/seen?{parameter}");
            let error = text.parse::<Location>().unwrap_err().to_string();
            assert!(error.contains(expected), "{parameter}: {error}");
        }
    }

    #[cfg(feature = "tls")]
    #[test]
    fn certificates_are_read_when_they_are_needed() {
        let at: Location = "rediss://h/seen?ca=/nowhere/ca%26.pem".parse().unwrap();
        assert_eq!(at.files()[0], Some(Path::new("/nowhere/ca&.pem")));
        let error = at.options(&Options::new()).unwrap_err().to_string();
        assert!(error.contains("/nowhere/ca&.pem"), "{error}");
        let error = "rediss://h/seen?cert=/c.pem"
            .parse::<Location>()
            .unwrap_err();
        assert!(error.to_string().contains("both cert=FILE"), "{error}");
    }
}
