//! `call_agent`: an agent as a tool. Whoever is called sees its mission and nothing else; what it brings is its result and
//! nothing else.
//!
//! - [`callable`]: whom an agent may call, and whether it may call at all.
//! - [`meant`]: what a call means that is not written quite right.
//! - [`callee`]: who takes a mission: an agent made for it, a specialist, or anybody.
//! - [`errand`]: one mission from its start to its result. [`cache`]: results that are used again.
//! - [`voice`]: what the person hears meanwhile. [`told`]: what the model is told in the end.

pub(crate) mod cache;
pub(crate) mod callable;
mod callee;
pub(crate) mod errand;
pub(crate) mod meant;
pub(crate) mod told;
pub(crate) mod voice;

use std::slice;
use std::sync::Arc;

use baton_core::agent::PlanningStrategy;
use baton_core::choice::Choice as _;
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use self::callable::Callable;
use self::errand::Errand;
use self::meant::{spell, without_blanks};
use self::voice::Voice;
use super::handover::{head, shared};
use super::transfers::REASON;
use crate::bounds::Edge;
use crate::failure::Failure;
use crate::given::{Done, Given, Site};
use crate::scope::Scope;
use crate::telemetry;

const NAME: &str = "call_agent";
/// Of a mission, in characters, where somebody has to say yes to it.
const PREVIEW: usize = 150;

/// The tool, if the scope's agent has anybody to call.
pub(crate) fn tools(scope: &Scope, voice: &Arc<Voice>) -> Vec<Arc<dyn Given>> {
    let callable = Callable::of(scope, Edge::Call);
    if callable.is_empty() {
        return Vec::new();
    }
    vec![Arc::new(CallAgent { spec: spec(&callable), callable, voice: Arc::clone(voice) })]
}

#[derive(Debug)]
struct CallAgent {
    spec: ToolSpec,
    callable: Callable,
    voice: Arc<Voice>,
}

/// What the model asks for.
#[derive(Debug, Deserialize)]
struct Call {
    mission: String,
    specialist: Option<String>,
    planning_strategy: Option<PlanningStrategy>,
    agent_definition: Option<Definition>,
    reason: Option<String>,
}

/// An agent that a model makes up for one mission.
#[derive(Debug, Deserialize)]
struct Definition {
    system_prompt: String,
    #[serde(default)]
    tool_allowlist: Vec<String>,
}

fn spec(callable: &Callable) -> ToolSpec {
    let strategies: Vec<&str> = PlanningStrategy::ALL.iter().map(|(word, _)| *word).collect();
    ToolSpec {
        name: NAME.to_owned(),
        description: format!(
            "Gives a task to another agent and returns its result. The agent sees only `mission`, nothing of this conversation: \
             write into it everything that it needs. For several tasks at once, call this tool several times in one turn. \
             Agents for `specialist`:\n{}\nWithout `specialist`, a general agent without tools does it.",
            callable.list()
        ),
        parameters: json!({
            "type": "object",
            "properties": {
                "mission": {
                    "type": "string", "minLength": 1,
                    "description": "The whole task, with every fact that is needed for it."
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
                            "type": "string", "minLength": 1, "description": "Who the new agent is and how it works."
                        },
                        "tool_allowlist": {
                            "type": "array", "items": { "type": "string" },
                            "description": "Names of your own tools that it may use."
                        }
                    },
                    "required": ["system_prompt"],
                    "additionalProperties": false
                },
                "reason": { "type": "string", "description": "Why another agent does it, in one sentence." }
            },
            "required": ["mission"],
            "additionalProperties": false
        }),
        effect: Effect::Writes,
        risk: Risk::Medium,
        timeout: baton_core::HumanDuration::from_mins(5),
    }
}

impl Given for CallAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, arguments: Value) -> Result<Value, ToolError> {
        let mut arguments = without_blanks(arguments);
        spell(arguments.get_mut("specialist"), self.callable.names());
        spell(arguments.get_mut("planning_strategy"), PlanningStrategy::ALL.iter().map(|(word, _)| *word));
        let mission = arguments.get("mission").and_then(Value::as_str).unwrap_or_default();
        if arguments.is_object() && mission.trim().is_empty() {
            return Err(ToolError::InvalidArguments("Missing required parameter: mission".to_owned()));
        }
        match arguments.get("specialist").and_then(Value::as_str) {
            Some(name) => self.callable.find(name).map(drop).map(|()| arguments),
            None => Ok(arguments),
        }
    }

    fn preview(&self, arguments: &Value) -> Option<String> {
        let mission = head(arguments.get("mission")?.as_str()?, PREVIEW);
        let made_up = arguments.get("agent_definition").map(|_| callee::CUSTOM);
        let specialist = arguments.get("specialist").and_then(Value::as_str);
        let who = made_up.or(specialist).unwrap_or(callee::GENERIC);
        Some(format!("agent: {who}, mission: {mission}"))
    }

    fn call<'a>(&'a self, arguments: Value, site: Site<'a>) -> BoxFuture<'a, Result<Done, Failure>> {
        let call = match serde_json::from_value::<Call>(arguments) {
            Ok(call) => call,
            Err(error) => {
                let refused = Done::Refused(ToolError::InvalidArguments(error.to_string()));
                return async { Ok(refused) }.boxed();
            }
        };
        self.perform(call, site.scope).boxed()
    }
}

impl CallAgent {
    async fn perform(&self, call: Call, scope: Scope) -> Result<Done, Failure> {
        let agent = match callee::choose(&scope, &call).await {
            Ok(agent) => agent,
            Err(error) => return Ok(Done::Refused(error)),
        };
        tracing::info!(
            thread_id = %scope.run.caller.thread_id, specialist = %agent.name, mission_length = call.mission.chars().count(),
            has_custom_definition = call.agent_definition.is_some(), "spawning_sub_agent"
        );
        let mission = shared(&scope.agent, call.mission.trim());
        let reason = call.reason.as_deref().map(|reason| head(&shared(&scope.agent, reason), REASON));
        let errand = Errand {
            edge: Edge::Call,
            reason: reason.unwrap_or_else(|| head(&mission, PREVIEW)),
            mission,
            limit: None,
            batch: None,
            agent,
        };
        telemetry::transfer(&scope, Edge::Call, slice::from_ref(&errand.agent));
        let patience = errand.agent.limits.timeout;
        let work = Box::pin(errand::run(&scope, errand));
        let report = self.voice.while_waiting(&scope, patience, work).await?;
        match &report.result {
            Err(Failure::Refused(refusal)) => Ok(Done::Refused(refusal.clone().into())),
            _ => {
                scope.keep_results(&[report.to_result()]).await?;
                Ok(Done::Told(told::call(&report)))
            }
        }
    }
}
