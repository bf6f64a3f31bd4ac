//! `ask_<agent>`: one tool for each agent that may be called. Small models choose among tools by their names far better than by the
//! value of a parameter (`docs/models.md` has the measurement), and the request is shorter. `call_agent` is accepted all the same.

use std::collections::BTreeSet;
use std::sync::Arc;

use baton_core::agent::{Agent, ToolPattern};
use baton_core::store::ApprovalPreview;
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::targets::schema_note;
use super::{CallAgent, CallAgentArguments, TOOL_NAME};
use crate::engine_tool::{CallSite, EngineTool, ToolOutcome};
use crate::failure::Failure;
use crate::scope::Scope;

/// With more agents than this, one tool that lists them all is shorter.
const MAX_AGENTS: usize = 8;
/// A tool that asks the user. No agent's tool has its name.
const ASK_USER: &str = "ask_user";
/// Other names that models give the only parameter.
const ALIASES: &[&str] = &["question", "message", "query", "task", "request"];

/// Whether the agents are offered as one tool each: the model's facts say so, their names differ, neither the agent nor a caller has a
/// rule about these tools, and the prompt does not name `call_agent`.
pub(crate) fn is_offered(scope: &Scope, targets: &[Arc<Agent>]) -> bool {
    let agent = scope.agent();
    let names: BTreeSet<String> = targets.iter().map(|target| target.name.ask_tool()).collect();
    // A rule about one of the names would not apply to the other, because both are accepted.
    let matches =
        |pattern: &ToolPattern| pattern.matches(TOOL_NAME) || names.iter().any(|name| pattern.matches(name));
    let mut approvals =
        scope.session.bounds.approval_rules().flat_map(|rules| [&rules.deny, &rules.ask, &rules.auto]);
    let has_rule = agent.tools.deny.iter().any(matches) || approvals.any(|rule| rule.iter().any(matches));
    let has_clash = names.len() < targets.len() || names.contains(ASK_USER);
    let candidates = scope.models().candidates(agent).unwrap_or_default();
    let assists = candidates.first().is_some_and(|first| first.facts.assists.agent_tools);
    let is_named = agent.prompt.contains(TOOL_NAME);
    assists
        && !has_rule
        && !is_named
        && !has_clash
        && targets.len() <= MAX_AGENTS
        && !scope.run.policy.offer_custom_agents
}

/// The tool `ask_<agent>`.
#[derive(Debug)]
pub(super) struct AskAgent {
    spec: ToolSpec,
    target: Arc<Agent>,
    call: Arc<CallAgent>,
}

impl AskAgent {
    pub(super) fn new(target: &Arc<Agent>, call: &Arc<CallAgent>) -> Self {
        let words: Vec<&str> = target.description.split_whitespace().collect();
        let spec = ToolSpec {
            name: target.name.ask_tool(),
            description: format!("{}{}", words.join(" "), schema_note(target)),
            parameters: json!({
                "type": "object",
                "properties": {
                    "mission": {
                        "type": "string", "minLength": 1,
                        "description": super::OWN_WORDS
                    },
                },
                "required": ["mission"],
                "additionalProperties": false
            }),
            effect: Effect::Writes,
            risk: Risk::Medium,
            timeout: call.spec.timeout,
        };
        Self { spec, target: Arc::clone(target), call: Arc::clone(call) }
    }
}

impl EngineTool for AskAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn gives_evidence(&self) -> bool {
        true
    }

    /// Accepts the mission under other names, and leaves out everything else.
    fn prepare(&self, arguments: Value) -> Result<Value, ToolError> {
        let Value::Object(mut object) = arguments else { return Ok(arguments) };
        let keys = ["mission"].iter().chain(ALIASES);
        let mission = keys
            .filter_map(|key| object.remove(*key))
            .find(|value| value.as_str().is_some_and(|text| !text.trim().is_empty()));
        match mission {
            Some(mission) => Ok(json!({ "mission": mission })),
            None => Err(ToolError::InvalidArguments("Missing required parameter: mission".to_owned())),
        }
    }

    fn preview(&self, arguments: &Value) -> Option<ApprovalPreview> {
        let mission = arguments.get("mission")?.as_str()?;
        Some(super::preview(&self.spec.name, self.target.name.as_str(), mission))
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        let call = CallAgentArguments {
            mission: arguments["mission"].as_str().unwrap_or_default().to_owned(),
            specialist: Some(self.target.name.to_string()),
            planning_strategy: None,
            agent_definition: None,
            reason: None,
        };
        self.call.perform(call, site.scope).boxed()
    }
}
