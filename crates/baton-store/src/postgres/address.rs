//! From a URL to what is needed to connect. No error repeats the URL: it may hold a password.

use std::path::PathBuf;
use std::time::Duration;

use baton_core::StoreError;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::tls::{self, Trust};

/// How long a server may take to accept a connection, unless the URL says otherwise.
const CONNECTING: Duration = Duration::from_secs(10);
/// A connection through which nothing comes for so long is asked whether it is still there.
const KEEPALIVE: Duration = Duration::from_secs(30);

pub(super) struct Address {
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, StoreError> {
        let Parts { url, roots } = Parts::of(url);
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
        let trust = match (config.get_ssl_mode(), roots) {
            (SslMode::Require, Some(file)) => Trust::File(file),
            (SslMode::Require, None) => Trust::System,
            _ => Trust::Anyone,
        };
        Ok(Self { tls: tls::connector(&trust)?, config })
    }
}

fn misunderstood() -> StoreError {
    let help = "check its port and parameters, and that special characters in its password are written as %40 and the like";
    StoreError::Failed(format!("`store.url` is not a PostgreSQL address: {help}"))
}

/// A URL without the parameters that the client does not know by itself.
#[derive(Debug, PartialEq, Eq)]
struct Parts {
    url: String,
    /// `sslrootcert`: the certificates to trust, instead of those of the system.
    roots: Option<PathBuf>,
}

impl Parts {
    fn of(url: &str) -> Self {
        let Some((server, query)) = url.rsplit_once('?') else {
            return Self { url: url.to_owned(), roots: None };
        };
        let mut kept = Vec::new();
        let mut roots = None;
        for pair in query.split('&') {
            match pair.split_once('=') {
                Some(("sslrootcert", file)) => roots = Some(decoded(file).into()),
                // A server that is required to use TLS is always checked, by its name as well.
                Some(("sslmode", "verify-ca" | "verify-full")) => kept.push("sslmode=require"),
                _ => kept.push(pair),
            }
        }
        let url = if kept.is_empty() { server.to_owned() } else { format!("{server}?{}", kept.join("&")) };
        Self { url, roots }
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
            Parts::of("postgres://u@h/d?sslmode=verify-full&sslrootcert=%2Fca.pem&application_name=x");
        assert_eq!(parts.url, "postgres://u@h/d?sslmode=require&application_name=x");
        assert_eq!(parts.roots, Some("/ca.pem".into()));
        assert_eq!(Parts::of("postgres://u@h/d?sslrootcert=a.pem").url, "postgres://u@h/d");
    }

    #[test]
    fn an_error_does_not_repeat_the_address() {
        for url in ["postgres://u:secret@h:port/d", "postgres://u:secret@h/d?secret=1", "postgres://"] {
            let error = Address::parse(url).err().unwrap().to_string();
            assert!(error.contains("store.url") && !error.contains("secret"), "{error}");
        }
    }

    #[test]
    fn what_is_not_said_has_a_default() {
        let address = Address::parse("postgres://u@h/d").unwrap();
        assert_eq!(address.config.get_ssl_mode(), SslMode::Prefer);
        assert_eq!(address.config.get_connect_timeout(), Some(&CONNECTING));
        assert_eq!(address.config.get_application_name(), Some("baton"));
        let missing = Address::parse("postgres://u@h/d?sslmode=require&sslrootcert=/no/such.pem");
        assert!(missing.err().unwrap().to_string().contains("/no/such.pem"));
    }
}
