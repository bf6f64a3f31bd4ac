//! Agents that run elsewhere and are reached over A2A.

use serde::Serialize;
use serde_json::Value;

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "kind")]
pub enum Kind {
    Local,
    Remote {
        card: RemoteCard,
        #[serde(skip_serializing_if = "Option::is_none")]
        auth: Option<RemoteAuth>,
    },
}

impl Kind {
    pub fn is_remote(&self) -> bool {
        matches!(self, Self::Remote { .. })
    }
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RemoteCard {
    Url(String),
    /// The card itself, in the file.
    Inline(Value),
}

/// How Baton proves who it is. Files name secrets; they never hold them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "type")]
pub enum RemoteAuth {
    Bearer { token: SecretName },
    ApiKey { header: String, key: SecretName },
    Basic { username: String, password: SecretName },
}

/// The environment variable that holds a secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SecretName(String);

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a secret is named, not written down: use `$NAME` for the environment variable that holds it")]
pub struct InvalidSecret;

impl SecretName {
    /// `$NAME` or `${NAME}`. The text itself is never repeated in the error: it may be the secret.
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
