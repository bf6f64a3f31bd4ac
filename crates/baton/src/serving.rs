//! What `baton.toml` says about the server, in the server's terms.

mod auth;
mod inspect;

use std::sync::Arc;

use anyhow::Context as _;
use baton_a2a::signature::CardSigner;
use baton_server::a2a::push::sender::PushService;
use baton_server::a2a::settings::A2aSettings;
use baton_server::client_address::TrustedProxies;
use baton_server::serve::tls::TlsSettings;
use baton_server::settings::{RequestLimits, ServerSettings, TenantRequestLimits};
use secrecy::ExposeSecret as _;

use crate::config::{A2aConfig, Config, TenantConfig};
use crate::exit::Exit;
use crate::project::Project;
use crate::push::HttpSender;
use crate::wiring::secret_from;

pub use auth::auth_settings;
pub use inspect::inspect;

/// The settings of the server.
pub fn settings(project: &Project) -> anyhow::Result<ServerSettings> {
    let main = project.config.agents.main.agent().cloned();
    let a2a = match project.config.a2a.settings() {
        Some(settings) => Some(with_services(settings, &project.config.a2a)?),
        None => None,
    };
    let mains = project.config.tenants.iter();
    let tenant_mains = mains.filter_map(|(tenant, own)| Some((tenant.clone(), own.main.clone()?))).collect();
    let tls = project.config.server.tls.as_ref();
    let tls =
        tls.map(|tls| TlsSettings { cert: project.root.join(&tls.cert), key: project.root.join(&tls.key) });
    let auth = auth_settings(project)?;
    Ok(ServerSettings { auth, main, tenant_mains, a2a, tls, ..limits(&project.config) })
}

/// Names the private key that agent cards are signed with.
const CARD_KEY: &str = "BATON_CARD_KEY";

/// Adds what delivers push notifications and, if there is a key, what signs cards.
fn with_services(settings: A2aSettings, config: &A2aConfig) -> anyhow::Result<A2aSettings> {
    let sender = HttpSender::new(config.push_allow_private);
    let signer = match secret_from(CARD_KEY)? {
        Some(pem) => {
            let signer = CardSigner::from_pem(pem.expose_secret().as_bytes());
            let signer = signer.with_context(|| format!("{CARD_KEY} is not valid"));
            Some(Arc::new(signer.map_err(|error| Exit::Invalid.because(error))?))
        }
        None => None,
    };
    Ok(A2aSettings { push: Some(PushService::new(Arc::new(sender))), signer, ..settings })
}

/// Limits and times. What is not in the file has the server's own defaults.
pub fn limits(config: &Config) -> ServerSettings {
    let bytes = |number| usize::try_from(number).unwrap_or(usize::MAX);
    let given = &config.limits;
    let limits = RequestLimits {
        requests_per_minute: given.requests_per_minute,
        max_body_bytes: bytes(given.max_body_bytes),
        max_upload_bytes: bytes(given.max_upload_bytes),
        max_connections: bytes(given.max_connections.get().into()),
        max_connections_per_address: bytes(given.max_connections_per_address.get().into()),
        max_streams_per_user: bytes(given.max_streams_per_user.into()),
        max_streams_per_tenant: bytes(given.max_streams_per_tenant.into()),
        max_concurrent_runs: given.max_concurrent_runs,
        tenants: config.tenants.iter().map(|(tenant, own)| (tenant.clone(), tenant_limits(own))).collect(),
        max_concurrent_runs_per_user: given.max_concurrent_runs_per_user,
        ..RequestLimits::default()
    };
    ServerSettings {
        limits,
        allowed_origins: config.server.allowed_origins.clone(),
        behind_proxy: config.server.behind_proxy,
        trusted_proxies: TrustedProxies::new(config.server.trusted_proxies.clone()),
        grace: config.server.grace.get(),
        drain: config.server.drain.get(),
        ..ServerSettings::default()
    }
}

fn tenant_limits(own: &TenantConfig) -> TenantRequestLimits {
    TenantRequestLimits {
        requests_per_minute: own.limits.requests_per_minute,
        max_concurrent_runs: own.limits.max_concurrent_runs,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn both_have_the_same_defaults() {
        assert_eq!(format!("{:?}", limits(&Config::default())), format!("{:?}", ServerSettings::default()));
    }

    #[test]
    fn what_the_file_says_counts() {
        let text = "[server]\nallowed_origins = [\"https://app.example.com\"]\ngrace = \"5s\"\ndrain = \"1m\"\n\
                    [limits]\nmax_upload_bytes = 7\nmax_connections = 8\nrequests_per_minute = 9\n";
        let config = Config::parse(text, "baton.toml".as_ref(), std::iter::empty()).unwrap();
        let settings = limits(&config);
        assert_eq!((settings.grace, settings.drain), (Duration::from_secs(5), Duration::from_mins(1)));
        assert_eq!(settings.allowed_origins[0].to_string(), "https://app.example.com");
        assert_eq!((settings.limits.max_upload_bytes, settings.limits.max_connections), (7, 8));
        assert_eq!(settings.limits.requests_per_minute.get(), 9);
    }

    #[test]
    fn what_cannot_work_is_refused_with_its_line() {
        for (section, bad) in [
            ("server", "allowed_origins = [\"*\"]"),
            ("server", "allowed_origins = [\"https://app.example.com/\"]"),
            ("server", "grace = \"soon\""),
            ("server", "trusted_proxies = [\"proxy.internal\"]"),
            ("limits", "requests_per_minute = 0"),
            ("limits", "max_connections = 0"),
        ] {
            let text = format!("[{section}]\n{bad}\n");
            let error = Config::parse(&text, "baton.toml".as_ref(), std::iter::empty()).unwrap_err();
            assert!(error.to_string().contains("line 2"), "{error}");
        }
    }
}
