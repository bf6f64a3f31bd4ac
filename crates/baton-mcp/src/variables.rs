//! `${VAR}` and `${VAR:-default}` in the description of a server.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use baton_core::agent::{McpServer, StdioAccess};
use indexmap::IndexMap;

/// Where variables come from. Given by the caller, so that tests and tenants can have their own.
#[derive(Clone)]
pub struct Environment {
    lookup: Arc<Lookup>,
    /// Whether the server is described in an agent file.
    is_described: bool,
}

type Lookup = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Environment {
    pub fn new(lookup: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self { lookup: Arc::new(lookup), is_described: false }
    }

    /// The environment of this process.
    pub fn of_process() -> Self {
        Self::new(|name| std::env::var(name).ok())
    }

    pub fn get(&self, name: &str) -> Option<String> {
        (self.lookup)(name)
    }

    /// The same for a server that an agent file describes: it gets no key of a model.
    #[must_use]
    pub(crate) fn for_described(&self) -> Self {
        Self { is_described: true, ..self.clone() }
    }

    /// Whether a server must not get this variable by `${NAME}`.
    fn refuses(&self, name: &str) -> bool {
        name.starts_with("BATON_") || self.is_described && name.ends_with("_API_KEY")
    }

    /// The same with `WORKSPACE`, the folder that a server can write to.
    #[must_use]
    pub(crate) fn with_workspace(&self, folder: &Path) -> Self {
        let (others, folder) = (self.clone(), folder.display().to_string());
        let is_described = self.is_described;
        let lookup = move |name: &str| {
            if name == "WORKSPACE" { Some(folder.clone()) } else { others.get(name) }
        };
        Self { is_described, ..Self::new(lookup) }
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Environment")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidVariable {
    #[error("the environment variable `{0}` is not set; set it, or write `${{{0}:-default}}`")]
    Missing(String),
    #[error("`${{{0}}}` is not a variable: write `${{NAME}}` or `${{NAME:-default}}`")]
    Name(String),
    #[error(
        "`${{{0}}}` is not given to this server: none gets variables named BATON_…, and one that an agent file describes gets none \
         named …_API_KEY; describe it in baton.toml or .mcp.json"
    )]
    Refused(String),
    #[error("`${{` is not closed by `}}`")]
    Unclosed,
}

/// A server's description with every variable filled in. It has no `Debug`: its values may be secrets.
pub(crate) struct Resolved {
    pub server: McpServer,
    pub secrets: Secrets,
}

impl Resolved {
    pub fn new(server: &McpServer, environment: &Environment) -> Result<Self, InvalidVariable> {
        let mut secrets = Secrets::default();
        let mut fill = |text: &String| expand(text, environment, &mut secrets);
        let server = match server {
            McpServer::Configured => McpServer::Configured,
            McpServer::Stdio { command, args, env, access } => McpServer::Stdio {
                command: fill(command)?,
                args: args.iter().map(&mut fill).collect::<Result<_, _>>()?,
                env: fill_values(env, &mut fill)?,
                access: StdioAccess {
                    network: access.network,
                    read: access.read.iter().map(&mut fill).collect::<Result<_, _>>()?,
                },
            },
            McpServer::Http { url, headers } => {
                McpServer::Http { url: fill(url)?, headers: fill_values(headers, &mut fill)? }
            }
        };
        // A header or a variable that is written out in the file is just as secret.
        if let McpServer::Stdio { env: values, .. } | McpServer::Http { headers: values, .. } = &server {
            values.values().for_each(|value| secrets.add(value));
        }
        Ok(Self { server, secrets })
    }
}

fn fill_values(
    values: &IndexMap<String, String>,
    fill: &mut impl FnMut(&String) -> Result<String, InvalidVariable>,
) -> Result<IndexMap<String, String>, InvalidVariable> {
    values.iter().map(|(name, value)| Ok((name.clone(), fill(value)?))).collect()
}

fn expand(text: &str, environment: &Environment, secrets: &mut Secrets) -> Result<String, InvalidVariable> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (inside, after) = after.split_once('}').ok_or(InvalidVariable::Unclosed)?;
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        if !is_name(name) {
            return Err(InvalidVariable::Name(inside.to_owned()));
        }
        if environment.refuses(name) {
            return Err(InvalidVariable::Refused(name.to_owned()));
        }
        filled.push_str(before);
        // As in a shell, an empty variable counts as missing when there is a default.
        match (environment.get(name), default) {
            (Some(value), default) if default.is_none() || !value.is_empty() => {
                secrets.add(&value);
                filled.push_str(&value);
            }
            (_, Some(default)) => filled.push_str(default),
            (_, None) => return Err(InvalidVariable::Missing(name.to_owned())),
        }
        rest = after;
    }
    filled.push_str(rest);
    Ok(filled)
}

fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// Values that must not appear in a message, even when a server prints them.
#[derive(Clone, Default)]
pub(crate) struct Secrets(Vec<String>);

impl Secrets {
    /// Shorter values (`1`, `true`, `dev`) are no secrets, and hiding them would garble the text.
    const MIN_BYTES: usize = 8;

    fn add(&mut self, value: &str) {
        // `Bearer abc` must also be recognised when only `abc` is printed.
        for part in [value, value.rsplit(' ').next().unwrap_or(value)] {
            if part.len() >= Self::MIN_BYTES && !self.0.iter().any(|known| known == part) {
                self.0.push(part.to_owned());
            }
        }
        // The longest first, so that no secret is left half visible.
        self.0.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    pub fn hide(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, secret| text.replace(secret, "***"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment() -> Environment {
        Environment::new(|name| match name {
            "TOKEN" => Some("s3cr3t-token".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        })
    }

    fn filled(text: &str) -> Result<String, String> {
        expand(text, &environment(), &mut Secrets::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn variables_are_filled_in() {
        for (text, expected) in [
            ("plain $HOME {x}", "plain $HOME {x}"),
            ("Bearer ${TOKEN}!", "Bearer s3cr3t-token!"),
            ("${MISSING:-a:-b}${EMPTY:-c}${TOKEN:-d}", "a:-bcs3cr3t-token"),
            ("<${EMPTY}${MISSING:-}>", "<>"),
        ] {
            assert_eq!(filled(text).as_deref(), Ok(expected));
        }
        for (text, expected) in [
            (
                "${MISSING}",
                "the environment variable `MISSING` is not set; set it, or write `${MISSING:-default}`",
            ),
            ("${input:token}", "`${input:token}` is not a variable: write `${NAME}` or `${NAME:-default}`"),
            ("${", "`${` is not closed by `}`"),
        ] {
            assert_eq!(filled(text).unwrap_err(), expected);
        }
    }

    #[test]
    fn keys_of_the_server_are_refused() {
        let all = Environment::new(|name| Some(format!("value of {name}")));
        let described = all.for_described().with_workspace(Path::new("/srv/w"));
        let is_refused = |environment: &Environment, text: &str| {
            let expanded = expand(text, environment, &mut Secrets::default());
            matches!(expanded, Err(InvalidVariable::Refused(_)))
        };
        for text in ["${BATON_DATABASE_URL}", "x ${BATON_KEY:-y}"] {
            assert!(is_refused(&all, text) && is_refused(&described, text), "{text}");
        }
        assert!(!is_refused(&all, "${OPENAI_API_KEY}") && is_refused(&described, "${OPENAI_API_KEY:-}"));
        assert!(!is_refused(&described, "${TICKET_TOKEN} ${WORKSPACE}"));
    }

    #[test]
    fn secrets_are_hidden() {
        let server = McpServer::Http {
            url: "https://x/${TOKEN}".into(),
            headers: [("a".into(), "Bearer written-out".into()), ("b".into(), "1".into())].into(),
        };
        let secrets = Resolved::new(&server, &environment()).ok().unwrap().secrets;
        let said = "https://x/s3cr3t-token: 1 Bearer written-out, written-out";
        assert_eq!(secrets.hide(said), "https://x/***: 1 ***, ***");
        assert_eq!(format!("{:?}", environment()), "Environment");
    }
}
