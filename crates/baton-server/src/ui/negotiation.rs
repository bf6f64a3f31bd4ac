//! What a client accepts and already has: `Accept-Encoding`, `Accept` and `If-None-Match`.

use http::{HeaderMap, HeaderName, HeaderValue, header};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    Brotli,
    Gzip,
    Identity,
}

impl Encoding {
    /// The one with the highest weight; the first of those that are offered if there are several. `Identity` if none is accepted:
    /// an answer that the client may not like is more useful than 406.
    pub fn choose(headers: &HeaderMap, offered: impl Iterator<Item = Self>) -> Self {
        let accepted = AcceptedEncodings::of(headers, header::ACCEPT_ENCODING);
        let weighed = offered.map(|encoding| (encoding, encoding.weight(&accepted)));
        let best = weighed
            .filter(|(_, weight)| *weight > 0)
            .reduce(|best, next| if next.1 > best.1 { next } else { best });
        best.map_or(Self::Identity, |(encoding, _)| encoding)
    }

    fn weight(self, accepted: &AcceptedEncodings) -> u16 {
        let named = accepted.weight(self.word()).or_else(|| accepted.weight("*"));
        // Identity is acceptable unless it is excluded, and the last choice unless it is named.
        named.unwrap_or(u16::from(self == Self::Identity))
    }

    fn word(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
            Self::Identity => "identity",
        }
    }

    /// The value of `Content-Encoding`.
    pub fn header(self) -> Option<HeaderValue> {
        (self != Self::Identity).then(|| HeaderValue::from_static(self.word()))
    }

    /// Sets the `ETag`s of the encodings of a file apart: they are different bytes.
    pub fn suffix(self) -> &'static str {
        match self {
            Self::Brotli => "-br",
            Self::Gzip => "-gz",
            Self::Identity => "",
        }
    }
}

/// Whether HTML is among what `Accept` names. Without the header, everything is.
pub fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = AcceptedEncodings::of(headers, header::ACCEPT);
    let named = ["text/html", "text/*", "*/*"].into_iter().find_map(|range| accepted.weight(range));
    named.map_or(accepted.0.is_empty(), |weight| weight > 0)
}

/// Whether the client has this version. Compared weakly, as RFC 9110 says for `If-None-Match`.
pub fn is_known(headers: &HeaderMap, etag: &str) -> bool {
    let listed = items(headers, header::IF_NONE_MATCH);
    let mut tags = listed.map(|tag| tag.strip_prefix("W/").unwrap_or(tag));
    tags.any(|tag| tag == etag || tag == "*")
}

/// Names with their weights in thousandths, as `q=` gives them.
struct AcceptedEncodings<'a>(Vec<(&'a str, u16)>);

impl<'a> AcceptedEncodings<'a> {
    fn of(headers: &'a HeaderMap, name: HeaderName) -> Self {
        Self(items(headers, name).map(weighed).collect())
    }

    fn weight(&self, name: &str) -> Option<u16> {
        self.0.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, weight)| *weight)
    }
}

fn items(headers: &HeaderMap, name: HeaderName) -> impl Iterator<Item = &str> {
    let values = headers.get_all(name).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).map(str::trim).filter(|item| !item.is_empty())
}

/// A weight that cannot be read is a full one.
fn weighed(item: &str) -> (&str, u16) {
    let mut fields = item.split(';').map(str::trim);
    let name = fields.next().unwrap_or_default();
    let weight = fields.find_map(|field| field.strip_prefix("q=").or_else(|| field.strip_prefix("Q=")));
    (name, weight.and_then(thousandths).unwrap_or(1000))
}

/// `0.8` → 800.
fn thousandths(text: &str) -> Option<u16> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if !matches!(whole, "0" | "1")
        || fraction.len() > 3
        || !fraction.bytes().all(|byte| byte.is_ascii_digit())
    {
        return None;
    }
    let value: u16 = format!("{whole}{fraction:0<3}").parse().ok()?;
    (value <= 1000).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Encoding; 3] = [Encoding::Brotli, Encoding::Gzip, Encoding::Identity];

    fn headers(name: HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).expect("a header"))])
    }

    #[test]
    fn highest_weight_wins_and_brotli_between_equals() {
        let check = |accept: &str, expected: Encoding| {
            let chosen = Encoding::choose(&headers(header::ACCEPT_ENCODING, accept), ALL.into_iter());
            assert_eq!(chosen, expected, "{accept:?}");
        };
        check("gzip, deflate, br, zstd", Encoding::Brotli);
        check("GZip", Encoding::Gzip);
        check("br;q=0.5, gzip;q=0.9", Encoding::Gzip);
        check("br; q=0.501, gzip;q=0.5", Encoding::Brotli);
        check("br;q=0, gzip;q=0.001", Encoding::Gzip);
        check("*", Encoding::Brotli);
        check("*;q=0.1, br;q=0", Encoding::Gzip);
        check("identity, br;q=0.5", Encoding::Identity);
        check("", Encoding::Identity);
        check("deflate", Encoding::Identity);
        check("br;q=0, gzip;q=0", Encoding::Identity);
        check("*;q=0", Encoding::Identity);
        check("br;q=nonsense", Encoding::Brotli);
        check(";;,,;q=", Encoding::Identity);
        assert_eq!(Encoding::choose(&HeaderMap::new(), ALL.into_iter()), Encoding::Identity);
    }

    #[test]
    fn missing_encoding_is_not_chosen() {
        let accept = headers(header::ACCEPT_ENCODING, "br, gzip;q=0.5");
        assert_eq!(
            Encoding::choose(&accept, [Encoding::Gzip, Encoding::Identity].into_iter()),
            Encoding::Gzip
        );
        assert_eq!(Encoding::choose(&accept, [Encoding::Identity].into_iter()), Encoding::Identity);
    }

    #[test]
    fn html_is_accepted_unless_only_other_types_are_named() {
        assert!(accepts_html(&HeaderMap::new()));
        for accept in ["*/*", "text/html,application/xhtml+xml,*/*;q=0.8", "TEXT/HTML", "text/*;q=0.1"] {
            assert!(accepts_html(&headers(header::ACCEPT, accept)), "{accept}");
        }
        for accept in ["application/json", "text/event-stream", "text/html;q=0, */*", "image/*"] {
            assert!(!accepts_html(&headers(header::ACCEPT, accept)), "{accept}");
        }
    }

    #[test]
    fn etags_are_compared_weakly_and_in_lists() {
        for known in ["\"a\"", "W/\"a\"", "\"x\", \"a\"", "*"] {
            assert!(is_known(&headers(header::IF_NONE_MATCH, known), "\"a\""), "{known}");
        }
        for other in ["\"b\"", "a", "\"a-br\"", ""] {
            assert!(!is_known(&headers(header::IF_NONE_MATCH, other), "\"a\""), "{other}");
        }
    }
}
