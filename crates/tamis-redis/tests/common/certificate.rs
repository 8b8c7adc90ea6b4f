//! A certificate for servers on the loopback, created for one test.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A certificate authority, and the certificates that it has signed for
/// 127.0.0.1.
pub(crate) struct Certificate(TempDir);

impl Certificate {
    pub(crate) fn new() -> Self {
        let made = Self(tempfile::tempdir().unwrap());
        made.openssl("-subj /CN=tamis-test-authority -keyout ca.key -out ca.crt");
        made.openssl(
            "-subj /CN=localhost -keyout server.key -out server.crt -CA ca.crt -CAkey ca.key \
             -addext subjectAltName=IP:127.0.0.1,DNS:localhost -addext basicConstraints=CA:FALSE",
        );
        made.openssl(
            "-subj /CN=ada -keyout client.key -out client.crt -CA ca.crt -CAkey ca.key \
             -addext basicConstraints=CA:FALSE",
        );
        made
    }

    fn openssl(&self, arguments: &str) {
        let ran = Command::new("openssl")
            .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1".split(' '))
            .args(["-nodes", "-days", "2"])
            .args(arguments.split_whitespace())
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .output()
            .expect("openssl is there");
        let errors = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "openssl {arguments}: {errors}");
    }

    /// The authority that clients must trust.
    pub(crate) fn authority(&self) -> PathBuf {
        self.0.path().join("ca.crt")
    }

    /// A client's certificate signed by it, and its key.
    pub(crate) fn client(&self) -> (PathBuf, PathBuf) {
        (
            self.0.path().join("client.crt"),
            self.0.path().join("client.key"),
        )
    }

    /// The configuration of a server with this certificate. It doesn't ask
    /// clients for one.
    pub(crate) fn settings(&self) -> Vec<String> {
        let file = |name: &str| self.0.path().join(name).display().to_string();
        vec![
            format!("tls-cert-file {}", file("server.crt")),
            format!("tls-key-file {}", file("server.key")),
            format!("tls-ca-cert-file {}", file("ca.crt")),
            "tls-auth-clients no".into(),
        ]
    }
}
