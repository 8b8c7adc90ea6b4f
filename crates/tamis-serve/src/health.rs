//! Checks whether a service runs: a probe for images, units and scripts without an HTTP client.

use anyhow::{Context as _, Result, bail};
use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tamis::internals::file::read_small;
use tokio_rustls::rustls::client::danger::{
    HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier,
};
use tokio_rustls::rustls::crypto::{
    CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature,
};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use tokio_rustls::rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, Error,
    SignatureScheme, StreamOwned,
};

/// The most bytes in a certificate chain, and in an answer.
const LARGEST: u64 = 1 << 20;

/// Requests `/healthz` from the service at this address. With the service's certificate, the request uses TLS, and only
/// the holder of that certificate can answer it.
///
/// For `0.0.0.0` and `[::]`, the request goes to the loopback address.
///
/// ```
/// let nobody = "127.0.0.1:1".parse().unwrap();
/// let error = tamis_serve::probe(nobody, None, std::time::Duration::from_secs(1)).unwrap_err();
/// assert!(error.to_string().contains("127.0.0.1:1"));
/// ```
pub fn probe(listen: SocketAddr, certificate: Option<&Path>, patience: Duration) -> Result<()> {
    let at = SocketAddr::new(reachable(listen.ip()), listen.port());
    let certificate = certificate.map(first_certificate).transpose()?;
    let asking = || format!("asking {at} for /healthz");
    let answer = ask(at, certificate, patience).with_context(asking)?;
    let status = answer.lines().next().unwrap_or_default();
    if status.split(' ').nth(1) != Some("200") {
        bail!("{}: expected status 200, got {status:?}", asking());
    }
    Ok(())
}

fn reachable(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(ip) if ip.is_unspecified() => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(ip) if ip.is_unspecified() => Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    }
}

fn first_certificate(path: &Path) -> Result<CertificateDer<'static>> {
    let text = read_small(path, LARGEST)?;
    CertificateDer::from_pem_slice(&text).with_context(|| path.display().to_string())
}

/// The head of the answer, and its body.
fn ask(
    at: SocketAddr,
    certificate: Option<CertificateDer<'static>>,
    patience: Duration,
) -> Result<String> {
    let stream = TcpStream::connect_timeout(&at, patience)?;
    stream.set_read_timeout(Some(patience))?;
    stream.set_write_timeout(Some(patience))?;
    match certificate {
        None => exchange(stream, at),
        Some(certificate) => {
            let name = ServerName::from(at.ip());
            let connection = ClientConnection::new(Arc::new(trusting(certificate)?), name)?;
            exchange(StreamOwned::new(connection, stream), at)
        }
    }
}

fn exchange(mut stream: impl Read + Write, at: SocketAddr) -> Result<String> {
    write!(
        stream,
        "GET /healthz HTTP/1.1\r\nhost: {at}\r\nconnection: close\r\n\r\n"
    )?;
    stream.flush()?;
    let mut answer = Vec::new();
    let ended = stream.take(LARGEST).read_to_end(&mut answer);
    // After answering, the server may end the connection in any way.
    if answer.is_empty() {
        ended?;
        bail!("the connection ended without an answer");
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

fn trusting(certificate: CertificateDer<'static>) -> Result<ClientConfig> {
    let provider = Arc::new(ring::default_provider());
    let only = Arc::new(Only {
        certificate,
        provider: Arc::clone(&provider),
    });
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(only)
        .with_no_client_auth();
    Ok(config)
}

/// Trusts a single certificate, whatever its names: the probe connects to an address, which few certificates include.
#[derive(Debug)]
struct Only {
    certificate: CertificateDer<'static>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Only {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        if *shown == self.certificate {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}
