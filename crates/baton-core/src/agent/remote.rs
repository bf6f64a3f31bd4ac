//! Remote agents, reached over A2A.

use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum AgentKind {
    Local,
    Remote {
        card: RemoteCard,
        #[serde(skip_serializing_if = "Option::is_none")]
        auth: Option<RemoteAuth>,
    },
}

impl AgentKind {
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Remote { .. })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteCard {
    Url(String),
    /// The agent card itself, in the file.
    Inline(Value),
}

/// Credentials for a remote agent. Files contain the names of secrets, never the secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum RemoteAuth {
    Bearer {
        token: SecretName,
    },
    ApiKey {
        header: String,
        key: SecretName,
    },
    Basic {
        username: String,
        password: SecretName,
    },
    /// The client credentials grant of OAuth 2.0.
    #[serde(rename = "oauth2")]
    OAuth2 {
        token_url: String,
        client_id: String,
        client_secret: SecretName,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        scopes: Vec<String>,
    },
}

/// The environment variable that contains a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretName(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is named, not written down: use `$NAME` for the environment variable that holds it")]
pub struct InvalidSecret;

impl SecretName {
    /// Parses `$NAME` or `${NAME}`. The error never repeats the text, which may be the secret itself.
    pub fn parse(text: &str) -> Result<Self, InvalidSecret> {
        let name = text.strip_prefix('$').ok_or(InvalidSecret)?;
        let name = name.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).unwrap_or(name);
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        if starts_well && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
            Ok(Self(name.to_owned()))
        } else {
            Err(InvalidSecret)
        }
    }

    pub fn variable(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::SecretName;

    #[test]
    fn secrets_are_named() {
        assert_eq!(SecretName::parse("$PARTNER_TOKEN").unwrap().variable(), "PARTNER_TOKEN");
        assert_eq!(SecretName::parse("${PARTNER_TOKEN}").unwrap().variable(), "PARTNER_TOKEN");
        for bad in ["sk-live-123", "$", "$1A", "${A", "$A-B"] {
            let error = SecretName::parse(bad).unwrap_err().to_string();
            assert!(!error.contains(bad) || bad == "$", "{error}");
        }
    }
}
