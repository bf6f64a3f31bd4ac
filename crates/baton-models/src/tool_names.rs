//! How tools are called on the wire.
//!
//! Agents know tools as `mcp:github/create_issue`; providers accept `[a-zA-Z_][a-zA-Z0-9_-]{0,63}`.

use baton_core::hash::fnv1a_32;
use baton_core::{ChatMessage, ModelRequest};

const MAX_BYTES: usize = 64;

/// The spelling of every tool name in one request, both ways. The same tools are always spelt the same way, so that
/// providers can reuse what they have cached. Most names need no other spelling, and only the others are kept.
#[derive(Debug, Default)]
pub(crate) struct ToolNames {
    respelt: Vec<Respelt>,
}

#[derive(Debug)]
struct Respelt {
    own: String,
    wire: String,
}

impl ToolNames {
    /// Also spells the names in the conversation: it may hold calls of tools that are no longer offered.
    pub fn of(request: &ModelRequest<'_>) -> Self {
        let mut names = Self::default();
        for name in all(request).filter(|name| !is_accepted(name)) {
            if !names.respelt.iter().any(|respelt| respelt.own == name) {
                let wire = names.free_spelling(name, request);
                names.respelt.push(Respelt { own: name.to_owned(), wire });
            }
        }
        names
    }

    pub fn wire<'a>(&'a self, own: &'a str) -> &'a str {
        self.respelt.iter().find(|respelt| respelt.own == own).map_or(own, |respelt| &respelt.wire)
    }

    /// A name that was not offered is passed on as it is; the caller then finds no such tool.
    pub fn own<'a>(&'a self, wire: &'a str) -> &'a str {
        self.respelt.iter().find(|respelt| respelt.wire == wire).map_or(wire, |respelt| &respelt.own)
    }

    /// A name that needs no other spelling keeps it, whatever the others would become.
    fn free_spelling(&self, name: &str, request: &ModelRequest<'_>) -> String {
        let is_free = |spelling: &str| {
            let is_taken = self.respelt.iter().any(|respelt| respelt.wire == spelling);
            !is_taken && !all(request).any(|other| other == spelling)
        };
        let plain = spell(name);
        if plain.len() <= MAX_BYTES && is_free(&plain) {
            return plain;
        }
        let stem = &plain[..plain.len().min(MAX_BYTES - 9)];
        let mut hash = fnv1a_32(name);
        loop {
            let spelling = format!("{stem}_{hash:08x}");
            if is_free(&spelling) {
                return spelling;
            }
            hash = hash.wrapping_add(1);
        }
    }
}

fn all<'a>(request: &ModelRequest<'a>) -> impl Iterator<Item = &'a str> {
    let offered = request.tools.iter().map(|tool| tool.name.as_str());
    let called = request.messages.iter().filter_map(|message| match message {
        ChatMessage::Assistant(reply) => Some(reply.calls.iter().map(|call| call.name.as_str())),
        _ => None,
    });
    offered.chain(called.flatten())
}

fn is_accepted(name: &str) -> bool {
    let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    starts_well && name.len() <= MAX_BYTES && name.bytes().all(is_accepted_byte)
}

fn is_accepted_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-')
}

fn spell(name: &str) -> String {
    let mut spelling = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        match c {
            ':' | '/' => spelling.push_str("__"),
            c if c.is_ascii() && is_accepted_byte(c as u8) => spelling.push(c),
            _ => spelling.push('_'),
        }
    }
    if !spelling.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') {
        spelling.insert(0, '_');
    }
    spelling
}

#[cfg(test)]
mod tests {
    use baton_core::agent::Sampling;
    use baton_core::chat::Messages;
    use baton_core::model::{ModelSupport, ToolChoice};
    use baton_core::tool::{Effect, Risk};
    use baton_core::{AgentName, HumanDuration, ToolSpec};
    use proptest::prelude::*;

    use super::*;

    fn names(tools: &[&str]) -> ToolNames {
        let specs: Vec<ToolSpec> = tools
            .iter()
            .map(|name| ToolSpec {
                name: (*name).to_owned(),
                description: String::new(),
                parameters: serde_json::json!({"type": "object"}),
                effect: Effect::ReadOnly,
                risk: Risk::Low,
                timeout: HumanDuration::parse("1s").unwrap(),
            })
            .collect();
        let tools: Vec<&ToolSpec> = specs.iter().collect();
        ToolNames::of(&ModelRequest {
            agent: &AgentName::parse("a").unwrap(),
            model: "m",
            system: "",
            messages: Messages::default(),
            tools: &tools,
            tool_choice: ToolChoice::Auto,
            sampling: &Sampling::default(),
            output_schema: None,
            supports: ModelSupport::default(),
            trace: None,
        })
    }

    #[test]
    fn spellings() {
        let names = names(&["mcp:github/create_issue", "search_docs", "mcp__a__b", "mcp:a/b", "7zip", ""]);
        assert_eq!(names.wire("search_docs"), "search_docs");
        assert_eq!(names.wire("mcp:github/create_issue"), "mcp__github__create_issue");
        assert_eq!(names.own("mcp__github__create_issue"), "mcp:github/create_issue");
        assert_eq!(names.wire("mcp__a__b"), "mcp__a__b");
        assert!(names.wire("mcp:a/b").starts_with("mcp__a__b_"), "{}", names.wire("mcp:a/b"));
        assert_eq!(names.wire("7zip"), "_7zip");
        assert_eq!(names.own("never_offered"), "never_offered");
    }

    proptest! {
        #[test]
        fn every_name_comes_back(tools in prop::collection::vec("[a-z:/_ä.-]{0,80}", 0..12)) {
            let tools: Vec<&str> = tools.iter().map(String::as_str).collect();
            let names = names(&tools);
            for tool in tools {
                prop_assert!(is_accepted(names.wire(tool)), "{}", names.wire(tool));
                prop_assert_eq!(names.own(names.wire(tool)), tool);
            }
        }
    }
}
