//! Which addresses of a card are used, in which order.

use baton_core::remote::{RemoteError, RemoteErrorKind};
use reqwest::Url;
use url::Host;

use super::card_source::KnownCard;
use super::http::host_of;
use crate::card::{HTTP_JSON, Interface, JSONRPC};
use crate::wire::WireForm;

/// How methods are called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Binding {
    JsonRpc,
    Rest,
}

/// An address of a peer that this client can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Endpoint {
    pub(super) url: Url,
    pub(super) binding: Binding,
    pub(super) form: WireForm,
    pub(super) tenant: Option<String>,
}

/// The usable addresses of a card, preferred first.
pub(super) fn endpoints(known: &KnownCard) -> Result<Vec<Endpoint>, RemoteError> {
    let found: Vec<Endpoint> = known.card.interfaces.iter().filter_map(endpoint).collect();
    if found.is_empty() {
        let transports: Vec<&str> =
            known.card.interfaces.iter().map(|interface| interface.transport.as_str()).collect();
        let message = format!(
            "its card names no address that Baton can use: it needs JSON-RPC or REST of version 0.3 or 1.0, and has {}",
            if transports.is_empty() { "none".to_owned() } else { transports.join(", ") }
        );
        return Err(RemoteError::new(RemoteErrorKind::Malformed, message));
    }
    let Some(card_url) = known.url.as_ref() else { return Ok(found) };
    let (safe, foreign): (Vec<Endpoint>, Vec<Endpoint>) =
        found.into_iter().partition(|endpoint| is_permitted(card_url, &endpoint.url));
    match foreign.first().filter(|_| safe.is_empty()) {
        Some(other) => {
            let message = format!(
                "the card of {} names the address {}, which is another host: write the card into the agent's file with \
                 `agent_card_json` if that is right",
                host_of(card_url),
                host_of(&other.url)
            );
            Err(RemoteError::new(RemoteErrorKind::Refused, message))
        }
        None => Ok(safe),
    }
}

/// Messages and credentials go to the host that the operator has named, and not from TLS to a plain connection. A card must not make
/// this server send requests to other hosts, such as those of its own network.
fn is_permitted(card: &Url, address: &Url) -> bool {
    let keeps_tls = card.scheme() == address.scheme() || address.scheme() == "https";
    let is_same = card.host() == address.host() || (is_loopback(card) && is_loopback(address));
    keeps_tls && is_same
}

fn is_loopback(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name.eq_ignore_ascii_case("localhost"),
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    }
}

fn endpoint(interface: &Interface) -> Option<Endpoint> {
    let url = Url::parse(&interface.url).ok().filter(|url| matches!(url.scheme(), "http" | "https"))?;
    let binding = if interface.transport.eq_ignore_ascii_case(JSONRPC) {
        Binding::JsonRpc
    } else if interface.transport.eq_ignore_ascii_case(HTTP_JSON) {
        Binding::Rest
    } else {
        return None;
    };
    let version = interface.protocol_version.as_str();
    let form = match binding {
        _ if version.starts_with("1.") || version == "1" => WireForm::V10,
        Binding::JsonRpc => WireForm::V03,
        Binding::Rest => WireForm::V03Rest,
    };
    Some(Endpoint {
        url,
        binding,
        form,
        tenant: interface.tenant.clone().filter(|tenant| !tenant.is_empty()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn interface(url: &str, transport: &str, version: &str) -> Interface {
        Interface {
            url: url.to_owned(),
            transport: transport.to_owned(),
            protocol_version: version.to_owned(),
            tenant: None,
        }
    }

    #[test]
    fn transport_and_version_decide_the_form() {
        let of = |transport: &str, version: &str| {
            endpoint(&interface("https://x.example/a", transport, version)).map(|one| (one.binding, one.form))
        };
        assert_eq!(of("jsonrpc", "0.3.0"), Some((Binding::JsonRpc, WireForm::V03)));
        assert_eq!(of("HTTP+JSON", "0.3.0"), Some((Binding::Rest, WireForm::V03Rest)));
        assert_eq!(of("HTTP+JSON", "1.0"), Some((Binding::Rest, WireForm::V10)));
        assert_eq!(of("JSONRPC", "1.0.1"), Some((Binding::JsonRpc, WireForm::V10)));
        assert_eq!(of("GRPC", "1.0"), None);
        assert_eq!(endpoint(&interface("grpc://x", "JSONRPC", "1.0")), None);
    }

    #[test]
    fn credentials_stay_at_their_host() {
        let may = |card: &str, address: &str| {
            is_permitted(&Url::parse(card).unwrap(), &Url::parse(address).unwrap())
        };
        assert!(may("https://a.example/card", "https://a.example:8443/rpc"));
        assert!(may("http://127.0.0.1:1/card", "http://localhost:2/rpc"));
        assert!(!may("https://a.example/card", "https://b.example/rpc"));
        assert!(!may("https://a.example/card", "http://a.example/rpc"));
    }
}
