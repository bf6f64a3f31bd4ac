//! TLS: the certificate of this server, and its reload.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use super::socket::Socket;

/// Interval at which the files are checked for changes.
const CHECK: Duration = Duration::from_secs(1);
const HTTP2: &[u8] = b"h2";
const HTTP1: &[u8] = b"http/1.1";

/// PEM files: the certificate chain, the server's own first, and its private key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    pub cert: PathBuf,
    pub key: PathBuf,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: rustls::pki_types::pem::Error },
    #[error("{} has no certificate", .0.display())]
    NoCertificate(PathBuf),
    #[error("the certificate in {} cannot be used with the key in {}: {error}", cert.display(), key.display())]
    Unusable { cert: PathBuf, key: PathBuf, error: rustls::Error },
}

pub struct Tls {
    settings: TlsSettings,
    provider: Arc<CryptoProvider>,
    acceptor: TlsAcceptor,
    certificate: Arc<CurrentCertificate>,
    /// Reads the files now, whether or not they look changed.
    reload: Arc<Notify>,
}

#[derive(Debug)]
struct CurrentCertificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Tls {
    /// Reads the files. Both must be there and belong together. They are read again when they change, and on `reload`.
    pub fn load(settings: TlsSettings, reload: Arc<Notify>) -> Result<Self, TlsError> {
        let provider = Arc::new(aws_lc_rs::default_provider());
        let certificate = read(&settings, &provider)?;
        let certificate = Arc::new(CurrentCertificate(ArcSwap::from_pointee(certificate)));
        let resolver = Arc::clone(&certificate) as Arc<dyn ResolvesServerCert>;
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| settings.unusable(error))?
            .with_no_client_auth()
            .with_cert_resolver(resolver);
        config.alpn_protocols = vec![HTTP2.to_vec(), HTTP1.to_vec()];
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)), settings, provider, certificate, reload })
    }

    /// Performs the handshake. Returns whether the client chose HTTP/2.
    pub async fn accept(&self, socket: Socket) -> io::Result<(TlsStream<Socket>, bool)> {
        let stream = self.acceptor.accept(socket).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HTTP2);
        Ok((stream, is_http2))
    }

    /// Replaces the certificate when its files have changed or a reload is requested. Open connections keep theirs. Files that cannot be used change
    /// nothing, and are logged.
    pub async fn watch(&self) {
        let mut loaded = self.settings.stamps().await;
        let mut last = loaded;
        loop {
            let is_asked = tokio::select! {
                () = tokio::time::sleep(CHECK) => false,
                () = self.reload.notified() => true,
            };
            let now = self.settings.stamps().await;
            // Two files are seldom replaced at once: waits until both have stayed as they are for one interval.
            if !is_asked && now != last {
                last = now;
                continue;
            }
            if !is_asked && now == loaded {
                continue;
            }
            (loaded, last) = (now, now);
            self.replace();
        }
    }

    fn replace(&self) {
        match read(&self.settings, &self.provider) {
            Ok(certificate) => {
                self.certificate.0.store(Arc::new(certificate));
                tracing::info!("the TLS certificate was loaded again");
            }
            Err(error) => {
                tracing::warn!(%error, "the new TLS certificate cannot be used; the last good one stays");
            }
        }
    }
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").field("settings", &self.settings).finish_non_exhaustive()
    }
}

/// Identifies the content of a file without reading it.
type Stamp = Option<(SystemTime, u64)>;

impl TlsSettings {
    fn unusable(&self, error: rustls::Error) -> TlsError {
        TlsError::Unusable { cert: self.cert.clone(), key: self.key.clone(), error }
    }

    async fn stamps(&self) -> [Stamp; 2] {
        [stamp(&self.cert).await, stamp(&self.key).await]
    }
}

async fn stamp(path: &Path) -> Stamp {
    let metadata = tokio::fs::metadata(path).await.ok()?;
    Some((metadata.modified().ok()?, metadata.len()))
}

fn read(settings: &TlsSettings, provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let unreadable = |path: &Path| {
        let path = path.to_owned();
        |error| TlsError::Unreadable { path, error }
    };
    let TlsSettings { cert, key } = settings;
    let chain: Result<Vec<_>, _> = CertificateDer::pem_file_iter(cert).and_then(Iterator::collect);
    let chain = chain.map_err(unreadable(cert))?;
    if chain.is_empty() {
        return Err(TlsError::NoCertificate(cert.clone()));
    }
    let private = PrivateKeyDer::from_pem_file(key).map_err(unreadable(key))?;
    CertifiedKey::from_der(chain, private, provider).map_err(|error| settings.unusable(error))
}
