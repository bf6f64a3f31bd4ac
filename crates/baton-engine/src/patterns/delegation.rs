//! `delegate`: sends the same message to several agents and collects their results. The caller keeps the baton.
//!
//! - [`fan_out`]: runs the agents in parallel, in sequence, or until the first success.
//! - [`buffer`]: the results in request order, and their concatenation.
//! - [`report`]: the result of the tool call.
//! - [`request`]: a delegation that a client requests, without a model's decision.

mod buffer;
mod fan_out;
mod report;
pub(crate) mod request;

use std::sync::Arc;

use baton_core::HumanDuration;
use baton_core::agent::{Agent, Delegation, Strategy};
use baton_core::choice::Choice as _;
use baton_core::store::ApprovalPreview;
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use self::fan_out::{FanOutOptions, ResultAudience};
use super::arguments::{normalize_integer, normalize_word, without_blank_values};
use super::calling::ask;
use super::calling::progress::ProgressNotifier;
use super::calling::targets::CallableAgents;
use crate::approvals::request::field;
use crate::bounds::InvocationKind;
use crate::engine_tool::{CallSite, EngineTool, ToolOutcome};
use crate::failure::Failure;
use crate::redaction::redact;
use crate::results;
use crate::scope::Scope;
use crate::telemetry;

const TOOL_NAME: &str = "delegate";
/// Maximum length of a message in an approval preview, in characters.
const MAX_PREVIEW_CHARS: usize = 150;

/// Returns the tool if the scope's agent may call at least one agent.
pub(crate) fn tools(scope: &Scope, notifier: &Arc<ProgressNotifier>) -> Vec<Arc<dyn EngineTool>> {
    let callable = CallableAgents::of(scope, InvocationKind::Delegate);
    if callable.is_empty() {
        return Vec::new();
    }
    let spec = spec(&callable, scope.agent());
    let agents = callable.names().len();
    // Several `ask_<agent>` in one turn do the same. An agent whose prompt names the tool needs it.
    let is_replaced = ask::is_offered(scope, callable.agents()) && !scope.agent().prompt.contains(TOOL_NAME);
    let is_hidden = agents < 2 || is_replaced;
    vec![Arc::new(Delegate { spec, callable, notifier: Arc::clone(notifier), is_hidden })]
}

/// The tool `delegate`.
#[derive(Debug)]
struct Delegate {
    spec: ToolSpec,
    callable: CallableAgents,
    notifier: Arc<ProgressNotifier>,
    is_hidden: bool,
}

/// Arguments of `delegate`.
#[derive(Debug, Deserialize)]
struct DelegateArguments {
    agents: Vec<String>,
    message: String,
    strategy: Option<Strategy>,
    timeout_ms: Option<u64>,
}

fn spec(callable: &CallableAgents, caller: &Agent) -> ToolSpec {
    let strategies: Vec<&str> = caller.delegation.strategies.iter().map(|strategy| strategy.word()).collect();
    let names = callable.names();
    ToolSpec {
        name: TOOL_NAME.to_owned(),
        description: format!(
            "Asks several agents the same question and returns all their answers. They see only `message`, nothing of this \
             conversation: write into it everything that they need. Agents:\n{}",
            callable.list()
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "agents": {
                    "type": "array", "items": { "type": "string", "enum": names }, "minItems": 1,
                    "description": "The agents to ask."
                },
                "message": {
                    "type": "string", "minLength": 1,
                    "description": super::calling::OWN_WORDS
                },
                "strategy": {
                    "type": "string", "enum": strategies,
                    "description": strategy_description(&caller.delegation)
                },
                "timeout_ms": {
                    "type": "integer", "minimum": 1,
                    "description": format!(
                        "Leave this out, unless the person named a time limit. How long each agent may take, in milliseconds. Default: {}.",
                        caller.delegation.timeout.get().as_millis()
                    )
                }
            },
            "required": ["agents", "message"],
            "additionalProperties": false
        }),
        effect: Effect::Writes,
        risk: Risk::Medium,
        timeout: caller.delegation.timeout,
    }
}

fn strategy_description(delegation: &Delegation) -> String {
    let meaning = |strategy: &Strategy| match strategy {
        Strategy::Parallel => "parallel: all at once.",
        Strategy::Sequential => "sequential: one after the other.",
        Strategy::FirstSuccess => "first_success: stop at the first answer.",
    };
    let meanings: Vec<&str> = delegation.strategies.iter().map(meaning).collect();
    format!("{} Default: {}.", meanings.join(" "), delegation.strategy)
}

impl EngineTool for Delegate {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn gives_evidence(&self) -> bool {
        true
    }

    /// One agent is asked with `call_agent`.
    fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    fn prepare(&self, arguments: Value) -> Result<Value, ToolError> {
        let mut arguments = without_blank_values(arguments);
        let message = arguments.get("message").and_then(Value::as_str).unwrap_or_default();
        if arguments.is_object() && message.trim().is_empty() {
            return Err(ToolError::InvalidArguments("Missing required parameter: message".to_owned()));
        }
        // Models often write a single agent without the array.
        if let Some(agents @ Value::String(_)) = arguments.get_mut("agents") {
            *agents = json!([agents.take()]);
        }
        for agent in arguments.get_mut("agents").and_then(Value::as_array_mut).into_iter().flatten() {
            normalize_word(Some(agent), self.callable.names());
        }
        normalize_word(arguments.get_mut("strategy"), Strategy::ALL.iter().map(|(word, _)| *word));
        normalize_integer(arguments.get_mut("timeout_ms"));
        let agents = arguments.get("agents").and_then(Value::as_array);
        for name in agents.into_iter().flatten().filter_map(Value::as_str) {
            self.callable.find(name)?;
        }
        Ok(arguments)
    }

    fn preview(&self, arguments: &Value) -> Option<ApprovalPreview> {
        let agents: Vec<&str> =
            arguments.get("agents")?.as_array()?.iter().filter_map(Value::as_str).collect();
        let message = field("message", arguments.get("message")?.as_str()?);
        let fields = vec![field("tool", TOOL_NAME), field("agents", &agents.join(", ")), message];
        Some(ApprovalPreview { heading: "Ask several agents".to_owned(), fields })
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        match serde_json::from_value::<DelegateArguments>(arguments) {
            Ok(call) => self.perform(call, site.scope).boxed(),
            Err(error) => {
                let refused = ToolOutcome::Refused(ToolError::InvalidArguments(error.to_string()));
                async { Ok(refused) }.boxed()
            }
        }
    }
}

impl Delegate {
    async fn perform(&self, call: DelegateArguments, scope: Scope) -> Result<ToolOutcome, Failure> {
        let agents = match resolve_agents(&scope, &call.agents) {
            Ok(agents) => agents,
            Err(error) => return Ok(ToolOutcome::Refused(error)),
        };
        let delegation = &scope.agent().delegation;
        let options = FanOutOptions {
            strategy: call.strategy.unwrap_or(delegation.strategy),
            limit: call.timeout_ms.map_or_else(
                || scope.run.models.for_sub_agents().scaled_timeout(delegation.timeout, &agents),
                HumanDuration::from_millis,
            ),
            max_parallel: max_parallel(&scope),
            audience: ResultAudience::Model,
        };
        let message = redact(scope.agent(), call.message.trim());
        telemetry::transfer(&scope, InvocationKind::Delegate, &agents);
        let work = fan_out::run(&scope, &agents, &message, options);
        let buffer = self.notifier.while_waiting(&scope, options.limit, work).await?;
        results::keep_results(&scope, &buffer.results()).await?;
        Ok(ToolOutcome::Output(report::render(&buffer, delegation.synthesis)))
    }
}

/// Resolves the names, without duplicates.
fn resolve_agents(scope: &Scope, names: &[String]) -> Result<Vec<Arc<Agent>>, ToolError> {
    let callable = CallableAgents::of(scope, InvocationKind::Delegate);
    let mut agents: Vec<Arc<Agent>> = Vec::new();
    for name in names {
        let agent = callable.find(name)?;
        if !agents.iter().any(|known| known.name == agent.name) {
            agents.push(Arc::clone(agent));
        }
    }
    Ok(agents)
}

/// Maximum number of agents that run at the same time.
fn max_parallel(scope: &Scope) -> usize {
    let policy = &scope.run.policy;
    let most = policy.max_concurrent_delegations.min(policy.max_live_children);
    scope.agent().delegation.max_concurrent.min(most).max(1) as usize
}
