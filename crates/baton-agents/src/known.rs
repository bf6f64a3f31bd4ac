//! What agent files may refer to besides each other: tools, models, MCP servers.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use baton_core::agent::{BUILT_IN_TOOLS, ENGINE_TOOLS, ModelName};

/// Comes from the configuration; the default knows what is built in.
#[derive(Debug, Clone)]
pub struct KnownNames {
    pub tools: BTreeSet<String>,
    pub model_aliases: BTreeSet<String>,
    pub providers: BTreeSet<String>,
    pub mcp_servers: BTreeSet<String>,
    pub prices: Prices,
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
        }
    }
}
