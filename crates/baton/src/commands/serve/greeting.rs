//! What `baton serve` prints once it listens: the address on stdout, for programs; where to go next on stderr, for people.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use baton_core::ThreadId;
use baton_server::ui::UiSite;

use crate::config::AuthMode;
use crate::report;

pub fn print(scheme: &str, address: SocketAddr, ui: Option<UiSite>, mode: AuthMode) {
    let mut out = anstream::stdout().lock();
    let _ = writeln!(out, "{scheme}://{address}");
    let _ = out.flush();
    report::tell(&text(&url(scheme, address), ui, mode));
}

/// The address for a browser on this machine: `0.0.0.0` and `::` mean all addresses and cannot be opened.
pub fn url(scheme: &str, mut address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        address.set_ip(match address.ip() {
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    format!("{scheme}://{address}")
}

fn text(url: &str, ui: Option<UiSite>, mode: AuthMode) -> String {
    let (page, or) = match ui {
        Some(site) if site.is_empty() => {
            (format!("Baton listens on {url} (without the web page; {url}/ says how to build it)"), "Try it")
        }
        Some(_) => (format!("Baton is ready: open {url} in a browser"), "Or"),
        None => (format!("Baton listens on {url}"), "Try it"),
    };
    let (sign_in, header) = match mode {
        AuthMode::Open => ("", ""),
        AuthMode::Required => (
            "\nSign in with an API key; this creates one:\n\n  baton keys create --user YOU --role admin\n",
            " -H \"Authorization: Bearer $BATON_KEY\"",
        ),
    };
    let thread = ThreadId::random();
    format!(
        "{page}\n{sign_in}\n{or} from a terminal (all routes: {url}/docs):\n\n  \
         curl -N {url}/api/v1/threads/{thread}/messages{header} \\\n    \
         -H 'Content-Type: application/json' -d '{{\"content\": \"How do I configure rate limiting?\"}}'\n"
    )
}

#[cfg(test)]
mod tests {
    use baton_server::ui::UiFile;

    use super::*;

    static PAGE: &[UiFile] =
        &[UiFile { path: "/index.html", etag: "1", identity: b"", br: None, gzip: None }];

    #[test]
    fn page_comes_first_then_the_command() {
        let text = text("http://127.0.0.1:1", Some(UiSite::new(PAGE)), AuthMode::Open);
        assert!(text.starts_with("Baton is ready: open http://127.0.0.1:1 in a browser\n"), "{text}");
        assert!(text.contains("curl -N http://127.0.0.1:1/api/v1/threads/"), "{text}");
        assert!(!text.contains("baton keys"), "{text}");
    }

    #[test]
    fn required_authentication_says_how_to_create_a_key() {
        let text = text("http://127.0.0.1:1", None, AuthMode::Required);
        assert!(text.contains("baton keys create --user YOU --role admin"), "{text}");
        assert!(text.contains("Authorization: Bearer $BATON_KEY"), "{text}");
        assert!(!text.contains("browser"), "{text}");
    }

    #[test]
    fn page_that_is_not_there_is_not_announced() {
        let text = text("http://127.0.0.1:1", Some(UiSite::new(&[])), AuthMode::Open);
        assert!(text.starts_with("Baton listens on http://127.0.0.1:1 (without the web page"), "{text}");
    }

    #[test]
    fn all_addresses_are_reached_through_loopback() {
        for (bound, expected) in [
            ("0.0.0.0:8420", "http://127.0.0.1:8420"),
            ("[::]:8420", "http://[::1]:8420"),
            ("10.0.0.7:80", "http://10.0.0.7:80"),
        ] {
            assert_eq!(url("http", bound.parse().unwrap()), expected);
        }
    }
}
