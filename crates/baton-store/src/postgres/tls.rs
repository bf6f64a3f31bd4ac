//! TLS: which server certificates a connection trusts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::StoreError;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{self, CryptoProvider, WebPkiSupportedAlgorithms};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};
use rustls_platform_verifier::BuilderVerifierExt as _;
use tokio_postgres_rustls::MakeRustlsConnect;

pub(super) enum TlsTrust {
    /// `sslmode=prefer`, also the default on this machine: encrypts if the server supports it and accepts any certificate. An active attacker could disable
    /// encryption anyway.
    Anyone,
    /// The certificate authorities of the operating system.
    System,
    /// The certificate authorities in a PEM file.
    File(PathBuf),
}

pub(super) fn connector(trust: &TlsTrust) -> Result<MakeRustlsConnect, StoreError> {
    let provider = Arc::new(crypto::aws_lc_rs::default_provider());
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&error))?;
    let verified = match trust {
        TlsTrust::Anyone => {
            builder.dangerous().with_custom_certificate_verifier(Arc::new(Unchecked::new(&provider)))
        }
        TlsTrust::System => builder.with_platform_verifier().map_err(|error| unusable(&error))?,
        TlsTrust::File(path) => builder.with_root_certificates(roots(path)?),
    };
    Ok(MakeRustlsConnect::new(verified.with_no_client_auth()))
}

fn unusable(error: &Error) -> StoreError {
    let help = "name a file of certificates with `sslrootcert`";
    StoreError::Failed(format!("cannot check certificates: {error}; {help}"))
}

fn roots(path: &Path) -> Result<RootCertStore, StoreError> {
    let wrong = |error: &dyn std::fmt::Display| {
        StoreError::Failed(format!("cannot read the certificates in {}: {error}", path.display()))
    };
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))? {
        roots.add(certificate.map_err(|error| wrong(&error))?).map_err(|error| wrong(&error))?;
    }
    if roots.is_empty() { Err(wrong(&"there are none")) } else { Ok(roots) }
}

/// Accepts any certificate whose private key the server holds.
#[derive(Debug)]
struct Unchecked(WebPkiSupportedAlgorithms);

impl Unchecked {
    fn new(provider: &CryptoProvider) -> Self {
        Self(provider.signature_verification_algorithms)
    }
}

impl ServerCertVerifier for Unchecked {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        crypto::verify_tls12_signature(message, certificate, signature, &self.0)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        crypto::verify_tls13_signature(message, certificate, signature, &self.0)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_schemes()
    }
}
