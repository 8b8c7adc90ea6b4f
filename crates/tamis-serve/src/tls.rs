//! TLS with the user's certificate.

use crate::guard::warn_if_public;
use anyhow::{Context as _, Result};
use std::path::Path;
use std::sync::Arc;
use tamis::internals::file::read_small;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// The most bytes in a certificate chain or key.
const LARGEST: u64 = 1 << 20;

/// Reads a chain of certificates and its key, both PEM.
pub(crate) fn acceptor(certificate: &Path, key: &Path) -> Result<TlsAcceptor> {
    let of = |path: &Path| path.display().to_string();
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(&read_small(certificate, LARGEST)?)
            .collect::<Result<_, _>>()
            .with_context(|| of(certificate))?;
    let key_of =
        PrivateKeyDer::from_pem_slice(&read_small(key, LARGEST)?).with_context(|| of(key))?;
    warn_if_public(key);
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .and_then(|builder| {
            builder
                .with_no_client_auth()
                .with_single_cert(chain, key_of)
        })
        .with_context(|| format!("{} and {}", of(certificate), of(key)))?;
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(TlsAcceptor::from(Arc::new(config)))
}
