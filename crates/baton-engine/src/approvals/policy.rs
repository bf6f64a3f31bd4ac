//! Whether a call runs, waits for a person, or is denied.

use baton_core::agent::{ApprovalRules, ToolPattern};
use baton_core::tool::{Effect, Risk, ToolSpec};

use crate::request::PreApproval;
use crate::scope::Scope;

/// Asks the person a question. It always waits, unless it is denied.
pub(crate) const ASK_USER: &str = "ask_user";

/// The policy for a tool, from the weakest to the strictest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CallPolicy {
    Auto,
    Ask,
    Deny,
}

/// The policy for a tool at this scope: the strictest of the agent's own and those of the agents that called it. An agent that
/// received the baton is not bound by the giver's rules, but by those of the giver's callers.
pub(crate) fn of_tool(scope: &Scope, spec: &ToolSpec) -> CallPolicy {
    let ask_at = scope.run.extensions.approvals.of(&scope.run.caller.tenant).ask_at;
    let strictest = scope.session.bounds.approval_rules().map(|rules| by_rules(rules, ask_at, spec)).max();
    match strictest.unwrap_or(CallPolicy::Auto) {
        CallPolicy::Deny => CallPolicy::Deny,
        _ if spec.name == ASK_USER => CallPolicy::Ask,
        CallPolicy::Ask if is_pre_approved(scope, spec) => CallPolicy::Auto,
        policy => policy,
    }
}

/// Whether the tool is denied at this scope, so that models do not see it.
pub(crate) fn is_denied(scope: &Scope, spec: &ToolSpec) -> bool {
    scope.session.bounds.approval_rules().any(|rules| matches(&rules.deny, spec))
}

fn by_rules(rules: &ApprovalRules, ask_at: Option<Risk>, spec: &ToolSpec) -> CallPolicy {
    let is_risky = ask_at.is_some_and(|level| spec.risk >= level);
    if matches(&rules.deny, spec) {
        CallPolicy::Deny
    } else if matches(&rules.ask, spec) || (is_risky && !matches(&rules.auto, spec)) {
        CallPolicy::Ask
    } else {
        CallPolicy::Auto
    }
}

fn matches(patterns: &[ToolPattern], spec: &ToolSpec) -> bool {
    patterns.iter().any(|pattern| pattern.matches(&spec.name))
}

/// Whether the caller of the run has approved such calls in advance.
fn is_pre_approved(scope: &Scope, spec: &ToolSpec) -> bool {
    match scope.session.bounds.approve {
        PreApproval::All => true,
        PreApproval::Read => spec.effect == Effect::ReadOnly,
        PreApproval::None => false,
    }
}

#[cfg(test)]
mod tests {
    use baton_core::HumanDuration;
    use serde_json::json;

    use super::*;

    fn patterns(names: &[&str]) -> Vec<ToolPattern> {
        names.iter().map(|name| ToolPattern::parse(name).unwrap()).collect()
    }

    fn spec(name: &str, risk: Risk) -> ToolSpec {
        ToolSpec {
            name: name.to_owned(),
            description: String::new(),
            parameters: json!({}),
            effect: Effect::Writes,
            risk,
            timeout: HumanDuration::from_secs(1),
        }
    }

    /// `deny` wins over `ask`, and `ask` over `auto`; risk decides about the rest.
    #[test]
    fn rules_have_precedence() {
        let rules = ApprovalRules {
            ask: patterns(&["read_*", "both"]),
            auto: patterns(&["write_*", "both"]),
            deny: patterns(&["*_secret"]),
        };
        let level = |name, risk| by_rules(&rules, Some(Risk::High), &spec(name, risk));
        assert_eq!(level("read_file", Risk::Low), CallPolicy::Ask);
        assert_eq!(level("write_file", Risk::High), CallPolicy::Auto);
        assert_eq!(level("both", Risk::Low), CallPolicy::Ask);
        assert_eq!(level("read_secret", Risk::Low), CallPolicy::Deny);
        assert_eq!(level("shell", Risk::High), CallPolicy::Ask);
        assert_eq!(level("call_agent", Risk::Medium), CallPolicy::Auto);
        assert_eq!(by_rules(&rules, None, &spec("shell", Risk::High)), CallPolicy::Auto);
        assert_eq!(by_rules(&rules, Some(Risk::Low), &spec("other", Risk::Low)), CallPolicy::Ask);
    }
}
