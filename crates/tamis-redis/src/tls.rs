//! TLS: which certificates to trust, and our own.

use crate::options::TlsOptions;
use crate::{Error, Options};
use redis::{ErrorKind, RedisError};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

impl Options {
    /// Checks the certificates and the key in these options without connecting.
    /// Connecting checks them, too.
    ///
    /// ```
    /// use tamis_redis::Options;
    /// assert!(Options::new().tls_root("not a certificate").check_certificates().is_err());
    /// ```
    pub fn check_certificates(&self) -> Result<(), Error> {
        // Skips the system's authorities.
        make(&self.tls, self.tls.root.is_none()).map(drop)
    }
}

/// The TLS configuration; with `insecure`, it accepts any certificate. It is
/// cached for all connections with these options, because loading the system's
/// authorities is slow.
pub(crate) fn config(insecure: bool, options: &Options) -> Result<Arc<ClientConfig>, RedisError> {
    let insecure = insecure || options.tls.insecure;
    let made = &options.tls.made[usize::from(insecure)];
    if let Some(made) = made.get() {
        return Ok(Arc::clone(made));
    }
    let config = make(&options.tls, insecure)
        .map_err(|error| (ErrorKind::InvalidClientConfig, "TLS", error.to_string()))?;
    Ok(Arc::clone(made.get_or_init(|| config)))
}

/// The name that the certificate must be for.
pub(crate) fn server_name(host: &str) -> std::io::Result<ServerName<'static>> {
    let name = ServerName::try_from(host.to_owned());
    name.map_err(|error| std::io::Error::other(format!("{host}: {error}")))
}

fn make(options: &TlsOptions, insecure: bool) -> Result<Arc<ClientConfig>, Error> {
    // Respects a provider that the program has installed.
    let provider = match CryptoProvider::get_default() {
        Some(chosen) => Arc::clone(chosen),
        None => Arc::new(rustls::crypto::ring::default_provider()),
    };
    let wrong = |error: rustls::Error| Error::Certificates(error.to_string());
    // An invalid authority is an error even if no certificate is checked.
    let roots = match &options.root {
        Some(pem) => roots(pem)?,
        None if insecure => RootCertStore::empty(),
        None => system_roots()?,
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(wrong)?;
    let builder = if insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider)))
    } else {
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build();
        builder
            .with_webpki_verifier(verifier.map_err(|error| Error::Certificates(error.to_string()))?)
    };
    let Some(identity) = &options.identity else {
        return Ok(Arc::new(builder.with_no_client_auth()));
    };
    let chain = items(
        &identity.certificate,
        "the client's certificate",
        CERTIFICATES,
    )?;
    let key = items::<PrivateKeyDer>(&identity.key, "the client's key", KEY)?.swap_remove(0);
    let config = builder.with_client_auth_cert(chain, key).map_err(|error| {
        Error::Certificates(format!("the client's certificate and key: {error}"))
    })?;
    Ok(Arc::new(config))
}

fn roots(pem: &[u8]) -> Result<RootCertStore, Error> {
    let what = "the certificate authority";
    let mut roots = RootCertStore::empty();
    for certificate in items(pem, what, CERTIFICATES)? {
        let added = roots.add(certificate);
        added.map_err(|error| Error::Certificates(format!("{what}: {error}")))?;
    }
    Ok(roots)
}

fn system_roots() -> Result<RootCertStore, Error> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (added, _) = roots.add_parsable_certificates(found.certs);
    if added > 0 {
        return Ok(roots);
    }
    let why = found.errors.first();
    let why = why.map_or_else(String::new, |error| format!(" ({error})"));
    Err(Error::Certificates(format!(
        "this system has no certificate authorities{why}; name the one that signed the server's \
         certificate"
    )))
}

const CERTIFICATES: &str = "certificates in PEM format (-----BEGIN CERTIFICATE-----)";
const KEY: &str = "a private key in PEM format (-----BEGIN PRIVATE KEY-----), without a passphrase";

/// All items of this type in a PEM text; at least one.
fn items<T: PemObject>(pem: &[u8], what: &str, expected: &str) -> Result<Vec<T>, Error> {
    let found: Result<Vec<T>, _> = T::pem_slice_iter(pem).collect();
    let got = match found {
        Ok(found) if found.is_empty() => format!("none in {} bytes", pem.len()),
        Ok(found) => return Ok(found),
        Err(error) => error.to_string(),
    };
    Err(Error::Certificates(format!(
        "{what}: expected {expected}, got {got}"
    )))
}

/// Accepts any certificate.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
