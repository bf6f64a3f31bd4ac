//! Parses a PostgreSQL URL. No error repeats the URL, because it may contain a password.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use baton_core::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls::{self, TlsTrust};

/// Connect timeout, unless the URL sets one.
const CONNECTING: Duration = Duration::from_secs(10);
/// Idle time after which TCP keepalive probes are sent.
const KEEPALIVE: Duration = Duration::from_secs(30);

pub(super) struct PostgresAddress {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
}

impl PostgresAddress {
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        let UrlParts { url, roots, has_mode } = UrlParts::of(url);
        let mut config: Config = url.parse().map_err(|_| misunderstood())?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(misunderstood());
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECTING);
        }
        if config.get_application_name().is_none() {
            config.application_name("baton");
        }
        config.keepalives_idle(KEEPALIVE).tcp_user_timeout(KEEPALIVE);
        // A machine between the two could otherwise read and change everything.
        if !has_mode && (roots.is_some() || !is_local(&config)) {
            config.ssl_mode(SslMode::Require);
        }
        let trust = match (config.get_ssl_mode(), roots) {
            (SslMode::Require, Some(file)) => TlsTrust::File(file),
            (SslMode::Require, None) => TlsTrust::System,
            _ => TlsTrust::Anyone,
        };
        Ok(Self { tls: tls::connector(&trust)?, config })
    }
}

/// Whether the server is on this machine: all hosts are sockets or loopback addresses.
fn is_local(config: &Config) -> bool {
    let is_loopback = |host: &Host| match host {
        Host::Tcp(name) => {
            name == "localhost" || name.parse().is_ok_and(|address: IpAddr| address.is_loopback())
        }
        #[cfg(unix)]
        Host::Unix(_) => true,
    };
    // An address takes the place of the host's own, which then only names the certificate.
    if config.get_hostaddrs().is_empty() {
        config.get_hosts().iter().all(is_loopback)
    } else {
        config.get_hostaddrs().iter().all(IpAddr::is_loopback)
    }
}

fn misunderstood() -> StoreError {
    let help = "check its port and parameters, and that special characters in its password are written as %40 and the like";
    StoreError::Failed(format!("`store.url` is not a PostgreSQL address: {help}"))
}

/// A URL without the parameters that `tokio-postgres` does not support.
#[derive(Debug, PartialEq, Eq)]
struct UrlParts {
    url: String,
    /// `sslrootcert`: a file of certificates to trust instead of the system's.
    roots: Option<PathBuf>,
    /// Whether it says `sslmode`.
    has_mode: bool,
}

impl UrlParts {
    fn of(url: &str) -> Self {
        let Some((server, query)) = url.rsplit_once('?') else {
            return Self { url: url.to_owned(), roots: None, has_mode: false };
        };
        let mut kept = Vec::new();
        let (mut roots, mut has_mode) = (None, false);
        for pair in query.split('&') {
            has_mode |= pair.starts_with("sslmode=");
            match pair.split_once('=') {
                Some(("sslrootcert", file)) => roots = Some(decoded(file).into()),
                // With `sslmode=require` the certificate and the host name are always verified.
                Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require"),
                _ => kept.push(pair),
            }
        }
        let url = if kept.is_empty() { server.to_owned() } else { format!("{server}?{}", kept.join("&")) };
        Self { url, roots, has_mode }
    }
}

fn decoded(value: &str) -> String {
    let pair = format!("v={value}");
    url::form_urlencoded::parse(pair.as_bytes()).map(|(_, value)| value.into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_of_our_own() {
        let parts =
            UrlParts::of("postgres://u@h/d?sslmode=verify-full&sslrootcert=%2Fca.pem&application_name=x");
        assert_eq!(parts.url, "postgres://u@h/d?sslmode=require&application_name=x");
        assert_eq!(parts.roots, Some("/ca.pem".into()));
        assert_eq!(UrlParts::of("postgres://u@h/d?sslrootcert=a.pem").url, "postgres://u@h/d");
    }

    #[test]
    fn an_error_does_not_repeat_the_address() {
        for url in ["postgres://u:secret@h:port/d", "postgres://u:secret@h/d?secret=1", "postgres://"] {
            let error = PostgresAddress::parse(url).err().unwrap().to_string();
            assert!(error.contains("store.url") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn certificates_of_other_machines_are_verified_unless_the_url_says_otherwise() {
        for (url, expected) in [
            ("postgres://u@db.example.com/d", SslMode::Require),
            ("postgres://u@10.0.0.7/d", SslMode::Require),
            ("postgres://u@localhost,db.example.com/d", SslMode::Require),
            ("postgres://u@localhost/d?hostaddr=10.0.0.7", SslMode::Require),
            ("postgres://u@db.example.com/d?application_name=x", SslMode::Require),
            ("postgres://u@localhost/d", SslMode::Prefer),
            ("postgres://u@127.0.0.1:5432/d", SslMode::Prefer),
            ("postgres://u@[::1]/d", SslMode::Prefer),
            ("postgres://u@%2Frun%2Fpostgresql/d", SslMode::Prefer),
            ("postgres://u@db.example.com/d?sslmode=prefer", SslMode::Prefer),
            ("postgres://u@db.example.com/d?sslmode=disable", SslMode::Disable),
            ("postgres://u@localhost/d?sslmode=verify-full", SslMode::Require),
        ] {
            let mode = PostgresAddress::parse(url).unwrap().config.get_ssl_mode();
            assert_eq!(mode, expected, "{url}");
        }
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let address = PostgresAddress::parse("postgres://u@h/d").unwrap();
        assert_eq!(address.config.get_connect_timeout(), Some(&CONNECTING));
        assert_eq!(address.config.get_application_name(), Some("baton"));
        let missing = PostgresAddress::parse("postgres://u@h/d?sslmode=require&sslrootcert=/no/such.pem");
        assert!(missing.err().unwrap().to_string().contains("/no/such.pem"));
    }
}
