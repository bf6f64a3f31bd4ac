//! `call_agent`: an agent as a tool. The called agent sees only its mission; the caller sees only the result.
//!
//! - [`ask`]: one tool for each agent, for models that choose better among tools.
//! - [`targets`]: the agents that may be called, and the choice among a custom agent, a specialist and a generic agent.
//! - [`task`]: one task from start to result. [`cache`]: reuse of results. [`resume`]: sessions that continue from call to call.
//! - [`progress`]: status messages to the user during a call.

pub(crate) mod ask;
pub(crate) mod cache;
pub(crate) mod progress;
pub(crate) mod resume;
pub(crate) mod targets;
pub(crate) mod task;

use std::slice;
use std::sync::Arc;

use baton_core::agent::PlanningStrategy;
use baton_core::choice::Choice as _;
use baton_core::store::ApprovalPreview;
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use self::ask::AskAgent;
use self::progress::ProgressNotifier;
use self::targets::CallableAgents;
use self::task::SubAgentTask;
use super::transfers::MAX_REASON_CHARS;
use crate::approvals::request::field;
use crate::bounds::InvocationKind;
use crate::engine_tool::{CallSite, EngineTool, ToolOutcome};
use crate::failure::Failure;
use crate::patterns::arguments::{normalize_word, without_blank_values};
use crate::redaction::{head, redact};
use crate::results;
use crate::scope::Scope;
use crate::telemetry;

const TOOL_NAME: &str = "call_agent";
/// What a mission has to be (K8): the called agent sees nothing else.
pub(super) const OWN_WORDS: &str = "The whole task in words of your own, clear to someone who has not read this conversation, with every fact \
                         that matters. Not the person's message itself.";
/// Maximum length of a mission that serves as a reason, in characters.
const MAX_PREVIEW_CHARS: usize = 150;

/// Returns the tools with which the scope's agent calls others; none if it may call no agent.
pub(crate) fn tools(scope: &Scope, notifier: &Arc<ProgressNotifier>) -> Vec<Arc<dyn EngineTool>> {
    let callable = CallableAgents::of(scope, InvocationKind::Call);
    if callable.is_empty() {
        return Vec::new();
    }
    let accepted_parameters = parameters(&callable);
    let mut spec = spec(&callable, accepted_parameters.clone());
    if !scope.run.policy.offer_custom_agents {
        leave_out_rare_parameters(&mut spec.parameters);
    }
    let notifier = Arc::clone(notifier);
    let is_hidden = ask::is_offered(scope, callable.agents());
    let call = Arc::new(CallAgent { spec, accepted_parameters, callable, notifier, is_hidden });
    let asked = if is_hidden { call.callable.agents() } else { &[] };
    let asks = asked.iter().map(|agent| Arc::new(AskAgent::new(agent, &call)) as Arc<dyn EngineTool>);
    let mut tools: Vec<Arc<dyn EngineTool>> = asks.collect();
    tools.push(call);
    tools
}

/// The tool `call_agent`.
#[derive(Debug)]
struct CallAgent {
    spec: ToolSpec,
    accepted_parameters: Value,
    callable: CallableAgents,
    notifier: Arc<ProgressNotifier>,
    /// Whether each agent has its own tool instead.
    is_hidden: bool,
}

/// Arguments of `call_agent`.
#[derive(Debug, Deserialize)]
struct CallAgentArguments {
    mission: String,
    specialist: Option<String>,
    planning_strategy: Option<PlanningStrategy>,
    agent_definition: Option<AgentDefinition>,
    reason: Option<String>,
}

/// An agent that the model defines for one mission: a custom one with a prompt, or the generic one with tools.
#[derive(Debug, Deserialize)]
struct AgentDefinition {
    system_prompt: Option<String>,
    #[serde(default)]
    tool_allowlist: Vec<String>,
}

/// Removes the parameters that models seldom need and weak ones use wrongly. Calls that have them are accepted.
fn leave_out_rare_parameters(parameters: &mut Value) {
    if let Some(properties) = parameters["properties"].as_object_mut() {
        properties.retain(|name, _| name != "planning_strategy" && name != "agent_definition");
    }
}

fn spec(callable: &CallableAgents, parameters: Value) -> ToolSpec {
    ToolSpec {
        name: TOOL_NAME.to_owned(),
        description: format!(
            "Gives a task to another agent and returns its result. The agent sees only `mission`, nothing of this conversation: \
             write into it everything that it needs. For several tasks at once, call this tool several times in one turn. \
             Agents for `specialist`:\n{}\nWithout `specialist`, a general agent without tools does it.",
            callable.list()
        ),
        parameters,
        effect: Effect::Writes,
        risk: Risk::Medium,
        timeout: baton_core::HumanDuration::from_mins(5),
    }
}

fn parameters(callable: &CallableAgents) -> Value {
    let strategies: Vec<&str> = PlanningStrategy::ALL.iter().map(|(word, _)| *word).collect();
    json!({
        "type": "object",
        "properties": {
            "mission": {
                "type": "string", "minLength": 1,
                "description": OWN_WORDS
            },
            "specialist": {
                "type": "string", "enum": callable.names(), "description": "The agent that does it."
            },
            "planning_strategy": {
                "type": "string", "enum": strategies, "description": "How it works on the task. Usually left out."
            },
            "agent_definition": {
                "type": "object",
                "description": "Only when no specialist fits: a new agent for this task. Otherwise leave it out.",
                "properties": {
                    "system_prompt": {
                        "type": "string", "minLength": 1,
                        "description": "Who the new agent is and how it works. Without it, a general agent does the task."
                    },
                    "tool_allowlist": {
                        "type": "array", "items": { "type": "string" },
                        "description": "Names of your own tools that it may use."
                    }
                },
                "additionalProperties": false
            },
            "reason": { "type": "string", "description": "Why another agent does it, in one sentence." }
        },
        "required": ["mission"],
        "additionalProperties": false
    })
}

/// Whether the definition in a call is that of a custom agent.
fn has_prompt(definition: &Value) -> bool {
    definition.get("system_prompt").is_some()
}

/// A call as the person who approves it sees it. The mission is cut at 150 characters.
fn preview(tool: &str, specialist: &str, mission: &str) -> ApprovalPreview {
    let fields = vec![field("tool", tool), field("specialist", specialist), field("mission", mission)];
    ApprovalPreview { heading: "Call a specialist".to_owned(), fields }
}

impl EngineTool for CallAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn accepted_parameters(&self) -> &Value {
        &self.accepted_parameters
    }

    fn is_hidden(&self) -> bool {
        self.is_hidden
    }

    fn gives_evidence(&self) -> bool {
        true
    }

    fn prepare(&self, arguments: Value) -> Result<Value, ToolError> {
        let mut arguments = without_blank_values(arguments);
        normalize_word(arguments.get_mut("specialist"), self.callable.names());
        normalize_word(
            arguments.get_mut("planning_strategy"),
            PlanningStrategy::ALL.iter().map(|(word, _)| *word),
        );
        let mission = arguments.get("mission").and_then(Value::as_str).unwrap_or_default();
        if arguments.is_object() && mission.trim().is_empty() {
            return Err(ToolError::InvalidArguments("Missing required parameter: mission".to_owned()));
        }
        let Some(name) = arguments.get("specialist").and_then(Value::as_str) else { return Ok(arguments) };
        let agent = self.callable.find(name)?;
        let definition = arguments.get("agent_definition");
        if definition.is_some_and(|definition| !has_prompt(definition)) {
            return Err(ToolError::InvalidArguments(format!(
                "`{}` has tools of its own; leave out `agent_definition`, or `specialist` for a general agent with these tools",
                agent.name
            )));
        }
        Ok(arguments)
    }

    fn preview(&self, arguments: &Value) -> Option<ApprovalPreview> {
        let mission = arguments.get("mission")?.as_str()?;
        let definition = arguments.get("agent_definition");
        let defined = definition
            .map(|definition| if has_prompt(definition) { targets::CUSTOM } else { targets::GENERIC });
        let specialist = arguments.get("specialist").and_then(Value::as_str);
        let who = defined.or(specialist).unwrap_or(targets::GENERIC);
        let mut shown = preview(TOOL_NAME, who, mission);
        // Approving the call approves the tools that it lends.
        let lent = definition.and_then(|definition| definition.get("tool_allowlist"));
        shown.fields.extend(lent.map(|tools| field("tools", &tools.to_string())));
        Some(shown)
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        let call = match serde_json::from_value::<CallAgentArguments>(arguments) {
            Ok(call) => call,
            Err(error) => {
                let refused = ToolOutcome::Refused(ToolError::InvalidArguments(error.to_string()));
                return async { Ok(refused) }.boxed();
            }
        };
        self.perform(call, site.scope).boxed()
    }
}

impl CallAgent {
    async fn perform(&self, call: CallAgentArguments, scope: Scope) -> Result<ToolOutcome, Failure> {
        let agent = match targets::choose_agent(&scope, &call).await {
            Ok(agent) => agent,
            Err(error) => return Ok(ToolOutcome::Refused(error)),
        };
        tracing::info!(
            thread_id = %scope.run.caller.thread_id, specialist = %agent.name, mission_length = call.mission.chars().count(),
            has_custom_definition = call.agent_definition.is_some(), "spawning_sub_agent"
        );
        let mission = redact(scope.agent(), call.mission.trim());
        let reason =
            call.reason.as_deref().map(|reason| head(&redact(scope.agent(), reason), MAX_REASON_CHARS));
        let task = SubAgentTask {
            invocation: InvocationKind::Call,
            reason: reason.unwrap_or_else(|| head(&mission, MAX_PREVIEW_CHARS)),
            mission,
            limit: None,
            batch: None,
            agent,
        };
        telemetry::transfer(&scope, InvocationKind::Call, slice::from_ref(&task.agent));
        let limit =
            scope.run.models.for_sub_agents().scaled_timeout(task.agent.limits.timeout, [&task.agent]);
        let work = Box::pin(task::run(&scope, task));
        let report = self.notifier.while_waiting(&scope, limit, work).await?;
        match &report.result {
            Err(Failure::Refused(refusal)) => Ok(ToolOutcome::Refused(refusal.clone().into())),
            _ => {
                results::keep_results(&scope, &[report.to_result()]).await?;
                Ok(ToolOutcome::Output(task::call_result_json(&report)))
            }
        }
    }
}
