//! `kind: remote` and what belongs to it.

use baton_core::agent::{AgentKind, RemoteAuth, RemoteCard, SecretName};
use baton_core::choices;

use super::AgentDecoder;
use super::section::{FrontmatterMap, MapSection};
use crate::problem::{Diagnostic, Rule};
use crate::secrets::is_short_word;
use crate::yaml::{YamlNode, YamlValue};

choices! {
    enum KindWord {
        Local = "local",
        Remote = "remote",
    }
}

choices! {
    enum AuthType {
        Bearer = "bearer",
        ApiKey = "api_key",
        Basic = "basic",
        OAuth2 = "oauth2",
        /// Gemini CLI: `scheme: Bearer | Basic`.
        Http = "http",
    }
}

/// What a remote agent brings along by itself.
const UNUSED_BY_REMOTE: &[&str] = &[
    "model",
    "temperature",
    "top_p",
    "max_output_tokens",
    "effort",
    "tools",
    "disallowed_tools",
    "mcp_servers",
    "skills",
    "planning_strategy",
    "grounding",
    "agents",
    "delegation",
    "team",
    "router",
    "workflow",
    "collaborations",
];

impl<'a> AgentDecoder<'a> {
    pub(super) fn kind(&mut self, head: &mut FrontmatterMap<'a>) -> AgentKind {
        if self.choice_at(head, "kind", KindWord::Local) == KindWord::Local {
            for key in ["agent_card_url", "agent_card_json", "auth"] {
                if let Some(node) = head.get(key) {
                    let message = format!("`{key}` belongs to a remote agent");
                    self.report(Rule::MissingKey, node.span, message, "add `kind: remote`, or remove it");
                }
            }
            return AgentKind::Local;
        }
        for key in UNUSED_BY_REMOTE.iter().filter(|key| head.has(key)) {
            let span = head.get(key).map(|node| node.span).unwrap_or_default();
            let message = format!("`{key}` has no effect: a remote agent has its own");
            self.report(
                Rule::RemoteUnused,
                span,
                message,
                "remove it, or use it in a local agent that calls this one",
            );
        }
        head.remove(UNUSED_BY_REMOTE);
        let auth = head.get("auth").and_then(|node| self.auth(node));
        AgentKind::Remote { card: self.card(head), auth }
    }

    fn card(&mut self, head: &FrontmatterMap<'a>) -> RemoteCard {
        if let Some(node) = head.get("agent_card_url") {
            let url = self.text(node, "a URL").unwrap_or_default();
            let address = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            if address.is_none_or(|rest| {
                rest.is_empty() || rest.starts_with('/') || url.contains(char::is_whitespace)
            }) {
                let help = "write the address of its card, such as `https://agents.example.com/.well-known/agent-card.json`";
                self.report(
                    Rule::InvalidUrl,
                    node.span,
                    format!("`{url}` is not an http or https URL"),
                    help,
                );
            }
            return RemoteCard::Url(url);
        }
        if let Some(node) = head.get("agent_card_json") {
            return RemoteCard::Inline(self.inline_card(node));
        }
        self.problems.push(Diagnostic::new(
            Rule::MissingKey,
            self.document.top(),
            "a remote agent needs `agent_card_url`",
            "add the address of its A2A agent card",
        ));
        RemoteCard::Url(String::new())
    }

    /// A map, or JSON as text (Gemini CLI).
    fn inline_card(&mut self, node: &YamlNode) -> serde_json::Value {
        match &node.value {
            YamlValue::Map(_) => node.to_json(),
            YamlValue::Scalar(scalar) => serde_json::from_str(&scalar.text).unwrap_or_else(|error| {
                let message = format!("`agent_card_json` is not JSON: {error}");
                self.report(Rule::WrongType, node.span, message, "write the card as JSON or as a map");
                serde_json::Value::Null
            }),
            YamlValue::List(_) => {
                self.wrong_type(node, "an agent card as a map");
                serde_json::Value::Null
            }
        }
    }

    fn auth(&mut self, node: &'a YamlNode) -> Option<RemoteAuth> {
        const KEYS: &[&str] = &[
            "type",
            "scheme",
            "token",
            "header",
            "name",
            "key",
            "username",
            "password",
            "token_url",
            "client_id",
            "client_secret",
            "scopes",
        ];
        let section = self.section(node, "`auth`", KEYS)?;
        let Some(kind) = section.get("type") else {
            let help = "write for example `auth: { type: bearer, token: $PARTNER_TOKEN }`";
            self.report(Rule::MissingKey, node.span, "`auth` needs a `type`", help);
            return None;
        };
        let scheme =
            section.get("scheme").and_then(YamlNode::scalar).map(|scalar| scalar.text.to_lowercase());
        // A choice repeats what was written, which must not be a secret.
        if kind.scalar().is_none_or(|scalar| !is_short_word(&scalar.text)) {
            self.wrong_type(kind, "`bearer`, `api_key`, `basic` or `oauth2`");
            return None;
        }
        match self.choice::<AuthType>(kind)? {
            AuthType::Basic => self.basic(&section),
            AuthType::OAuth2 => self.oauth2(&section),
            AuthType::Http if scheme.as_deref() == Some("basic") => self.basic(&section),
            AuthType::Bearer | AuthType::Http => {
                Some(RemoteAuth::Bearer { token: self.secret(&section, "token")? })
            }
            AuthType::ApiKey => {
                let header =
                    section.get("header").or(section.get("name")).and_then(|n| self.text(n, "a header"));
                let key = self.secret(&section, "key")?;
                Some(RemoteAuth::ApiKey { header: header.unwrap_or_else(|| "X-API-Key".to_owned()), key })
            }
        }
    }

    fn basic(&mut self, section: &MapSection<'a>) -> Option<RemoteAuth> {
        let username = section.get("username").and_then(|n| self.text(n, "a user name")).unwrap_or_default();
        Some(RemoteAuth::Basic { username, password: self.secret(section, "password")? })
    }

    fn oauth2(&mut self, section: &MapSection<'a>) -> Option<RemoteAuth> {
        let client_secret = self.secret(section, "client_secret");
        let token_url = self.required_text(section, "token_url", "the address that gives out tokens");
        if let (Some(url), Some(node)) = (&token_url, section.get("token_url"))
            && !url.starts_with("https://")
            && !url.starts_with("http://")
        {
            let help =
                "write the address of the token endpoint, such as `https://login.example.com/oauth/token`";
            self.report(Rule::InvalidUrl, node.span, "`token_url` is not an http or https URL", help);
        }
        let client_id = self.required_text(section, "client_id", "the id that Baton has there");
        let scopes = section.get("scopes").map(|node| self.texts(node)).unwrap_or_default();
        Some(RemoteAuth::OAuth2 {
            token_url: token_url?,
            client_id: client_id?,
            client_secret: client_secret?,
            scopes,
        })
    }

    fn required_text(&mut self, section: &MapSection<'a>, key: &str, what: &str) -> Option<String> {
        let Some(node) = section.get(key) else {
            let help = format!("add `{key}`: {what}");
            self.report(Rule::MissingKey, section.span, format!("`auth` needs `{key}`"), help);
            return None;
        };
        self.text(node, what)
    }

    /// The name of an environment variable. The text is not repeated: it may be the secret itself.
    fn secret(&mut self, section: &MapSection<'a>, key: &str) -> Option<SecretName> {
        let Some(node) = section.get(key) else {
            let help = format!("add `{key}: $NAME`, where NAME is an environment variable");
            self.report(Rule::MissingKey, section.span, format!("`auth` needs `{key}`"), help);
            return None;
        };
        let text = self.text(node, "`$NAME`")?;
        match SecretName::parse(&text) {
            Ok(name) => Some(name),
            Err(error) => {
                let help = format!("put it into an environment variable and write `{key}: $NAME`");
                self.report(Rule::LiteralSecret, node.span, error.to_string(), help);
                None
            }
        }
    }
}
