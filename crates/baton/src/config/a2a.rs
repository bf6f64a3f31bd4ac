//! The table `[a2a]`.

use baton_server::a2a::settings::{A2aSettings, CardForm};
use serde::Deserialize;
use std::path::PathBuf;

/// How the agents are served over A2A.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct A2aConfig {
    pub enabled: bool,
    /// Where clients reach this server.
    pub public_url: Option<PublicUrl>,
    pub card: CardForm,
    /// A file with a JWK set, relative to the project: cards of remote agents have to be signed by one of its keys.
    pub trusted_keys: Option<PathBuf>,
    /// Lets push notifications reach private addresses, also this machine.
    pub push_allow_private: bool,
}

impl Default for A2aConfig {
    fn default() -> Self {
        Self {
            enabled: true,
            public_url: None,
            card: CardForm::default(),
            trusted_keys: None,
            push_allow_private: false,
        }
    }
}

impl A2aConfig {
    /// `None` if A2A is not served.
    pub fn settings(&self) -> Option<A2aSettings> {
        let public_url = self.public_url.as_ref().map(|url| url.0.clone());
        self.enabled.then_some(A2aSettings { public_url, card: self.card, signer: None, push: None })
    }
}

/// An absolute address of HTTP without query and fragment, stored without a slash at its end.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct PublicUrl(String);

impl TryFrom<String> for PublicUrl {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let parsed = url::Url::parse(&text).ok().filter(|url| {
            let has_credentials = !url.username().is_empty() || url.password().is_some();
            let is_plain = url.query().is_none() && url.fragment().is_none() && !has_credentials;
            matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain
        });
        match parsed {
            Some(_) => Ok(Self(text.trim_end_matches('/').to_owned())),
            None => {
                Err("write the address of this server, such as \"https://agents.example.com\"".to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_public_url_is_an_address() {
        let parse = |text: &str| PublicUrl::try_from(text.to_owned());
        assert_eq!(parse("https://agents.example.com/").unwrap().0, "https://agents.example.com");
        assert_eq!(parse("http://host:8420/baton").unwrap().0, "http://host:8420/baton");
        for bad in ["agents.example.com", "ftp://x", "https://a:b@x", "https://x?a=1", "https://x/#a", ""] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }
}
