//! Every key a frontmatter may hold, of Baton and of the tools whose files Baton reads.

/// What a top-level key is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgentKey {
    /// A key of the contract, by its canonical name.
    Own(&'static str),
    /// Another tool's word, which Baton understands: decoded in `decode/foreign.rs`.
    Foreign(&'static str),
    /// Another tool's word without a meaning in Baton.
    Unused { of: &'static str },
    /// Once had a meaning.
    Renamed { to: &'static str },
}

const OWN: &[&str] = &[
    "accepts_handoff",
    "advisors",
    "agent_card_url",
    "agents",
    "approvals",
    "auth",
    "can_be_orchestrated",
    "collaborations",
    "color",
    "delegation",
    "description",
    "disallowed_tools",
    "display_name",
    "effort",
    "grounding",
    "guardrails",
    "handoff",
    "handoffs",
    "history",
    "icon",
    "input_schema",
    "kind",
    "limits",
    "max_output_tokens",
    "mcp_servers",
    "model",
    "name",
    "output_schema",
    "planning_strategy",
    "router",
    "sanitize",
    "skills",
    "team",
    "temperature",
    "tools",
    "top_p",
    "version",
    "visible",
    "workflow",
];

/// Spelling → what `decode` knows it as.
const FOREIGN: &[(&str, &str)] = &[
    ("agent_card_json", "agent_card_json"),
    ("disable", "disable"),
    ("disable_model_invocation", "disable_model_invocation"),
    ("hidden", "hidden"),
    ("infer", "infer"),
    ("max_steps", "max_turns"),
    ("max_turns", "max_turns"),
    ("mode", "mode"),
    ("permission", "permission"),
    ("permission_mode", "permission_mode"),
    ("read_only", "readonly"),
    ("readonly", "readonly"),
    ("reasoning_effort", "effort"),
    ("steps", "max_turns"),
    ("timeout_mins", "timeout_mins"),
    ("user_invocable", "user_invocable"),
];

const UNUSED: &[(&str, &str)] = &[
    ("always_apply", "Cursor"),
    ("argument_hint", "VS Code"),
    ("auto_compact_window", "Claude Code"),
    ("background", "Claude Code"),
    ("globs", "Cursor"),
    ("hooks", "Claude Code"),
    ("initial_prompt", "Claude Code"),
    ("is_background", "Cursor"),
    ("isolation", "Claude Code"),
    ("memory", "Claude Code"),
    ("metadata", "other tools"),
    ("observer", "Claude Code"),
    ("omit_claude_md", "Claude Code"),
    ("target", "VS Code"),
];

const RENAMED: &[(&str, &str)] =
    &[("consult", "advisors"), ("subagents", "agents"), ("sub_agents", "agents")];

/// Looks up a key in snake case.
pub fn lookup(key: &str) -> Option<AgentKey> {
    let find = |table: &'static [(&'static str, &'static str)]| {
        table.iter().find(|(name, _)| *name == key).map(|(_, value)| *value)
    };
    OWN.iter()
        .find(|name| **name == key)
        .map(|name| AgentKey::Own(name))
        .or_else(|| find(FOREIGN).map(AgentKey::Foreign))
        .or_else(|| find(UNUSED).map(|of| AgentKey::Unused { of }))
        .or_else(|| find(RENAMED).map(|to| AgentKey::Renamed { to }))
}

/// The keys of the contract.
pub fn own() -> impl Iterator<Item = &'static str> + Clone {
    OWN.iter().copied()
}

/// Keys that a misspelling may have been meant as, each with what to write for it.
pub fn meant() -> impl Iterator<Item = (&'static str, &'static str)> + Clone {
    let foreign = FOREIGN.iter().map(|(name, _)| (*name, *name));
    own().map(|name| (name, name)).chain(foreign).chain(RENAMED.iter().copied())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_do_not_overlap() {
        let mut all: Vec<&str> = OWN.to_vec();
        all.extend(FOREIGN.iter().chain(UNUSED).chain(RENAMED).map(|(name, _)| *name));
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
