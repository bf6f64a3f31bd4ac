//! The address of the client of a request.
//!
//! It is the peer of the connection, unless that peer is one of `server.trusted_proxies`: then it is read from
//! `X-Forwarded-For` or `Forwarded`, from right to left over trusted proxies only, because a client can write anything further
//! left. Headers of other peers are ignored.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use axum::extract::FromRequestParts;
use http::request::Parts;
use http::{HeaderMap, HeaderName, header};
use ipnet::IpNet;
use serde::Deserialize;

use crate::problem::Problem;

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");

/// The address of the client of a request: an extension of every request, and an extractor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClientAddress(pub IpAddr);

impl fmt::Display for ClientAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<S: Sync> FromRequestParts<S> for ClientAddress {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let found = parts.extensions.get::<Self>().copied();
        found.ok_or_else(|| Problem::internal(&"a request without a client address"))
    }
}

/// What limits per address count: an IPv4 address, or a network of 64 bits for IPv6, which one client usually has as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AddressKey(IpAddr);

impl From<ClientAddress> for AddressKey {
    fn from(ClientAddress(address): ClientAddress) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// A proxy, or a network of them: `10.0.0.1`, `10.0.0.0/8`, `fd00::/8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ProxyNetwork(IpNet);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not the address of a proxy: write it as `10.0.0.1` or as a network such as `10.0.0.0/8`")]
pub struct InvalidNetwork(String);

impl FromStr for ProxyNetwork {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        let network = text.parse().or_else(|_| text.parse().map(|address: IpAddr| IpNet::from(address)));
        network.map(Self).map_err(|_| InvalidNetwork(text.to_owned()))
    }
}

impl TryFrom<String> for ProxyNetwork {
    type Error = InvalidNetwork;

    fn try_from(text: String) -> Result<Self, InvalidNetwork> {
        text.parse()
    }
}

/// Proxies whose headers are believed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TrustedProxies(Vec<ProxyNetwork>);

impl TrustedProxies {
    pub fn new(networks: Vec<ProxyNetwork>) -> Self {
        Self(networks)
    }

    pub fn contain(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|ProxyNetwork(network)| network.contains(&address))
    }

    /// The client of a request that came over a connection from `peer`.
    ///
    /// A proxy that writes one of the two headers may pass on the other as the client sent it. If both are there and do not
    /// agree, neither is believed, and the client is the proxy.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> ClientAddress {
        let peer = peer.to_canonical();
        if !self.contain(peer) {
            return ClientAddress(peer);
        }
        let listed = self.origin(peer, items(headers, &X_FORWARDED_FOR).map(|item| address(item.trim())));
        let forwarded = self.origin(peer, items(headers, &header::FORWARDED).map(forwarded_for));
        ClientAddress(match (listed, forwarded) {
            (Some(client), None) | (None, Some(client)) => client,
            (Some(listed), Some(forwarded)) if listed == forwarded => listed,
            _ => peer,
        })
    }

    /// The first address, from the right, that is not a trusted proxy. At an item that is no address, the proxy that wrote it.
    fn origin(&self, peer: IpAddr, hops: impl DoubleEndedIterator<Item = Option<IpAddr>>) -> Option<IpAddr> {
        let mut found = None;
        for hop in hops.rev() {
            let Some(hop) = hop.map(|hop| hop.to_canonical()) else { return found.or(Some(peer)) };
            found = Some(hop);
            if !self.contain(hop) {
                break;
            }
        }
        found
    }
}

/// The items of a list header, over all its lines. `Forwarded` may quote commas, but not in addresses.
fn items<'a>(headers: &'a HeaderMap, name: &HeaderName) -> impl DoubleEndedIterator<Item = &'a str> {
    // Text that is not ASCII becomes an item that is no address.
    let lines = headers.get_all(name).into_iter().map(|line| line.to_str().unwrap_or("?"));
    lines.flat_map(|line| line.split(','))
}

/// `10.0.0.1`, `10.0.0.1:80`, `fd00::1`, `[fd00::1]`, `[fd00::1]:80`.
fn address(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    bare.parse().ok().or_else(|| text.parse().ok().map(|socket: SocketAddr| socket.ip()))
}

/// `for=…` of one item of `Forwarded`.
fn forwarded_for(item: &str) -> Option<IpAddr> {
    let mut pairs = item.split(';').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(name, _)| name.trim().eq_ignore_ascii_case("for"))?;
    address(value.trim().trim_matches('"'))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn proxies() -> TrustedProxies {
        TrustedProxies::new(["10.0.0.0/8", "fd00::/8", "127.0.0.1"].map(|text| text.parse().unwrap()).into())
    }

    fn client(peer: &str, lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        proxies().client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn only_trusted_proxies_are_believed_from_right_to_left() {
        type Headers = &'static [(&'static str, &'static str)];
        const XFF: &str = "x-forwarded-for";
        let cases: &[(&str, Headers, &str)] = &[
            ("192.0.2.7", &[(XFF, "198.51.100.1")], "192.0.2.7"),
            ("192.0.2.7", &[("forwarded", "for=198.51.100.1")], "192.0.2.7"),
            ("10.0.0.1", &[], "10.0.0.1"),
            ("10.0.0.1", &[(XFF, "198.51.100.1")], "198.51.100.1"),
            ("::ffff:10.0.0.1", &[(XFF, "::ffff:198.51.100.1")], "198.51.100.1"),
            // The left part is what the client sent.
            ("10.0.0.1", &[(XFF, "1.1.1.1, 198.51.100.1, 10.9.9.9")], "198.51.100.1"),
            ("10.0.0.1", &[(XFF, "1.1.1.1"), (XFF, "198.51.100.1:55"), (XFF, "10.0.0.2")], "198.51.100.1"),
            ("10.0.0.1", &[(XFF, "198.51.100.1, unknown, 10.0.0.2")], "10.0.0.2"),
            ("10.0.0.1", &[(XFF, "198.51.100.1, ")], "10.0.0.1"),
            ("10.0.0.1", &[(XFF, "10.0.0.3, 10.0.0.2")], "10.0.0.3"),
            (
                "fd00::1",
                &[("forwarded", "for=192.0.2.43, For=\"[2001:db8::17]:4711\";proto=https")],
                "2001:db8::17",
            ),
            ("10.0.0.1", &[("forwarded", "for=_hidden")], "10.0.0.1"),
            ("10.0.0.1", &[("forwarded", "proto=https")], "10.0.0.1"),
            // The client wrote one of them, and the proxy passed it on.
            ("10.0.0.1", &[(XFF, "198.51.100.1"), ("forwarded", "for=1.1.1.1")], "10.0.0.1"),
            ("10.0.0.1", &[(XFF, "198.51.100.1"), ("forwarded", "for=198.51.100.1")], "198.51.100.1"),
        ];
        for (peer, lines, expected) in cases {
            assert_eq!(client(peer, lines), *expected, "{peer} {lines:?}");
        }
    }

    #[test]
    fn clients_of_one_ipv6_network_share_a_key() {
        let key = |text: &str| AddressKey::from(ClientAddress(text.parse().unwrap()));
        assert_eq!(key("2001:db8::1"), key("2001:db8::ffff:1:2:3"));
        assert_ne!(key("2001:db8::1"), key("2001:db8:0:1::1"));
        assert_ne!(key("192.0.2.1"), key("192.0.2.2"));
        assert_eq!(key("::ffff:192.0.2.1"), key("192.0.2.1"));
    }

    #[test]
    fn networks_are_checked() {
        for text in ["10.0.0.0/33", "proxy.internal", "", "10.0.0.0/8 "] {
            let error = text.parse::<ProxyNetwork>().unwrap_err().to_string();
            assert!(error.contains("10.0.0.0/8"), "{error}");
        }
    }
}
