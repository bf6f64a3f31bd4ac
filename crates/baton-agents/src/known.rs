//! What agent files may refer to besides each other: tools, models, MCP servers.

use std::collections::BTreeSet;

use baton_core::agent::{BUILT_IN_TOOLS, ENGINE_TOOLS};

/// Comes from the configuration; the default knows what is built in.
#[derive(Debug, Clone)]
pub struct Known {
    pub tools: BTreeSet<String>,
    pub model_aliases: BTreeSet<String>,
    pub providers: BTreeSet<String>,
    pub mcp_servers: BTreeSet<String>,
}

/// Providers that need no entry in `baton.toml`.
pub const PROVIDERS: &[&str] = &["anthropic", "gemini", "ollama", "openai"];

impl Default for Known {
    fn default() -> Self {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        Self {
            tools: owned(&[BUILT_IN_TOOLS, ENGINE_TOOLS].concat()),
            model_aliases: owned(&["offline", "default", "fast", "smart"]),
            providers: owned(PROVIDERS),
            mcp_servers: BTreeSet::new(),
        }
    }
}
