//! Whom to trust over TLS, and who we are.

use crate::{Error, Options};
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use std::sync::Arc;

impl Options {
    /// Checks the certificates and the key that these options hold, without
    /// connecting to anyone. Connecting checks them, too.
    ///
    /// ```
    /// use tamis_redis::Options;
    /// assert!(Options::new().tls_root("not a certificate").check_certificates().is_err());
    /// ```
    pub fn check_certificates(&self) -> Result<(), Error> {
        // The system's authorities are not looked at.
        let insecure = self.tls_root.is_none();
        config(self, insecure).map(drop)
    }
}

/// How to talk TLS. `insecure` trusts everyone.
pub(crate) fn config(options: &Options, insecure: bool) -> Result<Arc<ClientConfig>, Error> {
    // A program that has chosen its cryptography keeps it.
    let provider = match CryptoProvider::get_default() {
        Some(chosen) => Arc::clone(chosen),
        None => Arc::new(rustls::crypto::ring::default_provider()),
    };
    let wrong = |error: rustls::Error| Error::Certificates(error.to_string());
    // Also where nobody is asked for it: a mistake in it is one.
    let roots = match &options.tls_root {
        Some(pem) => roots(pem)?,
        None if insecure => RootCertStore::empty(),
        None => system_roots()?,
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(wrong)?;
    let builder = match insecure {
        true => builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Anyone(provider))),
        false => {
            let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
            let verifier = verifier.build();
            builder.with_webpki_verifier(
                verifier.map_err(|error| Error::Certificates(error.to_string()))?,
            )
        }
    };
    let config = match &options.identity {
        None => builder.with_no_client_auth(),
        Some(identity) => {
            let chain = certificates(&identity.certificate, "the client's certificate")?;
            let key = PrivateKeyDer::from_pem_slice(&identity.key).map_err(|error| {
                Error::Certificates(format!(
                    "the client's key: expected a private key in PEM format \
                     (-----BEGIN PRIVATE KEY-----), without a passphrase: {error}"
                ))
            })?;
            builder.with_client_auth_cert(chain, key).map_err(|error| {
                Error::Certificates(format!("the client's certificate and key: {error}"))
            })?
        }
    };
    Ok(Arc::new(config))
}

fn roots(pem: &[u8]) -> Result<RootCertStore, Error> {
    let what = "the certificate authority";
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem, what)? {
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
    let why = found
        .errors
        .first()
        .map_or_else(String::new, |error| format!(" ({error})"));
    Err(Error::Certificates(format!(
        "this system has no certificate authorities{why}; name the one that signed the server's \
         certificate"
    )))
}

/// All certificates of a text, which must have some.
fn certificates(pem: &[u8], what: &str) -> Result<Vec<CertificateDer<'static>>, Error> {
    let refuse = |got: String| {
        Error::Certificates(format!(
            "{what}: expected certificates in PEM format (-----BEGIN CERTIFICATE-----), got {got}"
        ))
    };
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    match found {
        Ok(found) if found.is_empty() => Err(refuse(format!("none in {} bytes", pem.len()))),
        Ok(found) => Ok(found),
        Err(error) => Err(refuse(error.to_string())),
    }
}

/// Trusts whoever answers.
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
