//! What agent files may refer to besides each other (tools, models, MCP servers), and what the configuration allows them.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use baton_core::agent::{AgentPattern, BUILT_IN_TOOLS, ENGINE_TOOLS, ModelName};
use baton_core::{AgentName, choices};

choices! {
    /// What happens to the other agents when a file of another program cannot be used.
    pub enum OnError {
        /// The file is left out, and its problems are warnings. An error in a file of Baton still refuses the whole set.
        Skip = "skip",
        /// Any error refuses the whole set.
        Refuse = "refuse",
    }
}

/// Comes from the configuration; the default knows what is built in.
#[derive(Debug, Clone)]
pub struct KnownNames {
    pub tools: BTreeSet<String>,
    pub model_aliases: BTreeSet<String>,
    pub providers: BTreeSet<String>,
    pub mcp_servers: BTreeSet<String>,
    pub prices: Prices,
    pub on_error: OnError,
    /// Agents whose `sanitize: false` has an effect. `None`: all of them.
    pub allow_unmasked: Option<Vec<AgentPattern>>,
}

impl KnownNames {
    pub(crate) fn may_unmask(&self, agent: &AgentName) -> bool {
        self.allow_unmasked
            .as_ref()
            .is_none_or(|allowed| allowed.iter().any(|pattern| pattern.matches(agent)))
    }
}

type FirstUnknown = dyn Fn(&[ModelName]) -> Option<String> + Send + Sync;

/// Which models have a known price. The default takes all of them for known.
#[derive(Clone)]
pub struct Prices(Arc<FirstUnknown>);

impl Prices {
    /// `first_unknown` returns the first of an agent's models without a price. An agent without a model has the default one.
    pub fn new(first_unknown: impl Fn(&[ModelName]) -> Option<String> + Send + Sync + 'static) -> Self {
        Self(Arc::new(first_unknown))
    }

    pub(crate) fn first_unknown(&self, models: &[ModelName]) -> Option<String> {
        (self.0)(models)
    }
}

impl fmt::Debug for Prices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Prices")
    }
}

/// Providers that need no entry in `baton.toml`.
pub const PROVIDERS: &[&str] = &["anthropic", "gemini", "ollama", "openai"];

impl Default for KnownNames {
    fn default() -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            tools: owned(&[BUILT_IN_TOOLS, ENGINE_TOOLS].concat()),
            model_aliases: owned(&["offline", "default", "fast", "smart"]),
            providers: owned(PROVIDERS),
            mcp_servers: BTreeSet::new(),
            prices: Prices::new(|_| None),
            on_error: OnError::Refuse,
            allow_unmasked: None,
        }
    }
}
