//! What a request shows: one credential, in one place.

use http::{HeaderMap, HeaderValue, header};

use super::key;
use super::refusal::AuthRefusal;

/// Tokens with many claims are long, but not longer.
const MAX_BYTES: usize = 16 * 1024;
const SCHEME: &str = "bearer";
/// How a WebSocket client that cannot set headers names its credential among the protocols it speaks.
const PROTOCOL: &str = "bearer.";

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Credential<'a> {
    Key(&'a str),
    Token(&'a str),
}

/// Two credentials are refused: a proxy may have checked the other one.
pub(super) fn of(headers: &HeaderMap) -> Result<Credential<'_>, AuthRefusal> {
    let mut authorizations = headers.get_all(header::AUTHORIZATION).iter().map(bearer);
    let mut protocols = headers.get_all(header::SEC_WEBSOCKET_PROTOCOL).iter().flat_map(offered);
    let found = match (authorizations.next(), protocols.next()) {
        (None, None) => return Err(AuthRefusal::Missing),
        (Some(found), None) => found?,
        (None, Some(found)) => found,
        (Some(_), Some(_)) => return Err(AuthRefusal::Invalid("two credentials")),
    };
    if authorizations.next().is_some() || protocols.next().is_some() {
        return Err(AuthRefusal::Invalid("two credentials"));
    }
    read(found)
}

/// `Bearer` in any case, spaces, and the credential.
fn bearer(value: &HeaderValue) -> Result<&str, AuthRefusal> {
    let text = value.to_str().map_err(|_| AuthRefusal::Invalid("not ASCII"))?;
    let (scheme, rest) = text.split_once(' ').ok_or(AuthRefusal::Invalid("no scheme"))?;
    if !scheme.eq_ignore_ascii_case(SCHEME) {
        return Err(AuthRefusal::Invalid("another scheme than Bearer"));
    }
    Ok(rest.trim_matches(' '))
}

/// The protocols of a header that are credentials.
fn offered(value: &HeaderValue) -> impl Iterator<Item = &str> {
    let names = value.to_str().unwrap_or_default().split(',');
    names.filter_map(|name| name.trim().strip_prefix(PROTOCOL))
}

fn read(text: &str) -> Result<Credential<'_>, AuthRefusal> {
    if text.len() > MAX_BYTES {
        return Err(AuthRefusal::Invalid("too long"));
    }
    if text.starts_with(key::PREFIX) {
        return if key::is_key(text) {
            Ok(Credential::Key(text))
        } else {
            Err(AuthRefusal::Invalid("no key"))
        };
    }
    let is_token = text.bytes().filter(|byte| *byte == b'.').count() == 2;
    if is_token {
        Ok(Credential::Token(text))
    } else {
        Err(AuthRefusal::Invalid("neither a key nor a token"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_headers(pairs: &[(header::HeaderName, &[u8])]) -> Result<String, AuthRefusal> {
        let mut headers = HeaderMap::new();
        for (name, value) in pairs {
            headers.append(name, HeaderValue::from_bytes(value).unwrap());
        }
        of(&headers).map(|credential| format!("{credential:?}"))
    }

    #[test]
    fn keys_and_tokens_come_in_one_header() {
        let key = format!("baton_{}", "a".repeat(43));
        for value in [format!("Bearer {key}"), format!("bearer   {key} "), format!("BEARER {key}")] {
            let found = of_headers(&[(header::AUTHORIZATION, value.as_bytes())]);
            assert_eq!(found, Ok(format!("Key({key:?})")), "{value}");
        }
        let token = of_headers(&[(header::AUTHORIZATION, b"Bearer a.b.c")]);
        assert_eq!(token, Ok("Token(\"a.b.c\")".to_owned()));
        assert_eq!(of_headers(&[]), Err(AuthRefusal::Missing));
    }

    #[test]
    fn a_web_socket_may_name_it_among_its_protocols() {
        let name = header::SEC_WEBSOCKET_PROTOCOL;
        for value in ["baton, bearer.a.b.c", "bearer.a.b.c,baton", "bearer.a.b.c"] {
            let found = of_headers(&[(name.clone(), value.as_bytes())]);
            assert_eq!(found, Ok("Token(\"a.b.c\")".to_owned()), "{value}");
        }
        let apart = of_headers(&[(name.clone(), b"baton"), (name.clone(), b"bearer.a.b.c")]);
        assert_eq!(apart, Ok("Token(\"a.b.c\")".to_owned()));
        assert_eq!(of_headers(&[(name, b"baton")]), Err(AuthRefusal::Missing));
    }

    #[test]
    fn everything_else_is_refused() {
        let long = format!("Bearer {}", "a.".repeat(50_000));
        let cases: &[&[u8]] = &[
            b"",
            b"Bearer",
            b"Bearer ",
            b"Basic YTpi",
            b"Token a.b.c",
            b"a.b.c",
            b"Bearer a.b",
            b"Bearer a.b.c.d",
            b"Bearer baton_short",
            "Bearer baton_ä".as_bytes(),
            b"Bearer \xff.\xfe.\xfd",
            long.as_bytes(),
        ];
        for value in cases {
            let found = of_headers(&[(header::AUTHORIZATION, value)]);
            assert!(matches!(found, Err(AuthRefusal::Invalid(_))), "{found:?}");
        }
    }

    #[test]
    fn two_are_one_too_many() {
        let (name, protocol) = (header::AUTHORIZATION, header::SEC_WEBSOCKET_PROTOCOL);
        let one: &[u8] = b"Bearer a.b.c";
        for pairs in [
            vec![(name.clone(), one), (name.clone(), one)],
            vec![(name, one), (protocol.clone(), b"bearer.a.b.c")],
            vec![(protocol.clone(), b"bearer.a.b.c, bearer.d.e.f")],
            vec![(protocol.clone(), b"bearer.a.b.c"), (protocol, b"bearer.a.b.c")],
        ] {
            assert_eq!(of_headers(&pairs), Err(AuthRefusal::Invalid("two credentials")));
        }
    }
}
