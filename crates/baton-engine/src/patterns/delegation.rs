//! `delegate`: the same message to several agents, and what they make of it. The caller keeps the baton.
//!
//! - [`fan`]: all at once, one after the other, or until one succeeds.
//! - [`buffer`]: what each of them brought, and one text of it.
//! - [`report`]: what the model is told.
//! - [`request`]: the same without a model that asks for it.

mod buffer;
mod fan;
mod report;
pub(crate) mod request;

use std::sync::Arc;

use baton_core::HumanDuration;
use baton_core::agent::{Agent, Strategy};
use baton_core::choice::Choice as _;
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use self::fan::{Hearer, Terms};
use super::calling::callable::Callable;
use super::calling::meant::{spell, whole, without_blanks};
use super::calling::voice::Voice;
use super::handover::{head, shared};
use crate::bounds::Edge;
use crate::failure::Failure;
use crate::given::{Done, Given, Site};
use crate::scope::Scope;
use crate::telemetry;

const NAME: &str = "delegate";
/// Of a message, in characters, where somebody has to say yes to it.
const PREVIEW: usize = 150;

/// The tool, if the scope's agent has anybody to ask.
pub(crate) fn tools(scope: &Scope, voice: &Arc<Voice>) -> Vec<Arc<dyn Given>> {
    let callable = Callable::of(scope, Edge::Delegate);
    if callable.is_empty() {
        return Vec::new();
    }
    let spec = spec(&callable, &scope.agent);
    vec![Arc::new(Delegate { spec, callable, voice: Arc::clone(voice) })]
}

#[derive(Debug)]
struct Delegate {
    spec: ToolSpec,
    callable: Callable,
    voice: Arc<Voice>,
}

/// What the model asks for.
#[derive(Debug, Deserialize)]
struct Call {
    agents: Vec<String>,
    message: String,
    strategy: Option<Strategy>,
    timeout_ms: Option<u64>,
}

fn spec(callable: &Callable, caller: &Agent) -> ToolSpec {
    let strategies: Vec<&str> = Strategy::ALL.iter().map(|(word, _)| *word).collect();
    let names = callable.names();
    ToolSpec {
        name: NAME.to_owned(),
        description: format!(
            "Asks one or more agents the same question and returns all their answers. They see only `message`, nothing of this \
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
                    "description": "The question, with every fact that is needed for it."
                },
                "strategy": {
                    "type": "string", "enum": strategies,
                    "description": format!(
                        "parallel: all at once. sequential: one after the other. first_success: stop at the first answer. Default: {}.",
                        caller.delegation.strategy
                    )
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

impl Given for Delegate {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn prepare(&self, arguments: Value) -> Result<Value, ToolError> {
        let mut arguments = without_blanks(arguments);
        let message = arguments.get("message").and_then(Value::as_str).unwrap_or_default();
        if arguments.is_object() && message.trim().is_empty() {
            return Err(ToolError::InvalidArguments("Missing required parameter: message".to_owned()));
        }
        // One agent is often written without the list around it.
        if let Some(agents @ Value::String(_)) = arguments.get_mut("agents") {
            *agents = json!([agents.take()]);
        }
        for agent in arguments.get_mut("agents").and_then(Value::as_array_mut).into_iter().flatten() {
            spell(Some(agent), self.callable.names());
        }
        spell(arguments.get_mut("strategy"), Strategy::ALL.iter().map(|(word, _)| *word));
        whole(arguments.get_mut("timeout_ms"));
        let agents = arguments.get("agents").and_then(Value::as_array);
        for name in agents.into_iter().flatten().filter_map(Value::as_str) {
            self.callable.find(name)?;
        }
        Ok(arguments)
    }

    fn preview(&self, arguments: &Value) -> Option<String> {
        let agents: Vec<&str> =
            arguments.get("agents")?.as_array()?.iter().filter_map(Value::as_str).collect();
        let message = head(arguments.get("message")?.as_str()?, PREVIEW);
        Some(format!("agents: {}, message: {message}", agents.join(", ")))
    }

    fn call<'a>(&'a self, arguments: Value, site: Site<'a>) -> BoxFuture<'a, Result<Done, Failure>> {
        match serde_json::from_value::<Call>(arguments) {
            Ok(call) => self.perform(call, site.scope).boxed(),
            Err(error) => {
                let refused = Done::Refused(ToolError::InvalidArguments(error.to_string()));
                async { Ok(refused) }.boxed()
            }
        }
    }
}

impl Delegate {
    async fn perform(&self, call: Call, scope: Scope) -> Result<Done, Failure> {
        let agents = match asked(&scope, &call.agents) {
            Ok(agents) => agents,
            Err(error) => return Ok(Done::Refused(error)),
        };
        let delegation = &scope.agent.delegation;
        let terms = Terms {
            strategy: call.strategy.unwrap_or(delegation.strategy),
            limit: call.timeout_ms.map_or(delegation.timeout, HumanDuration::from_millis),
            at_once: at_once(&scope),
            hearer: Hearer::Model,
        };
        let message = shared(&scope.agent, call.message.trim());
        telemetry::transfer(&scope, Edge::Delegate, &agents);
        let work = fan::out(&scope, &agents, &message, terms);
        let buffer = self.voice.while_waiting(&scope, terms.limit, work).await?;
        scope.keep_results(&buffer.results()).await?;
        Ok(Done::Told(report::of(&buffer, delegation.synthesis)))
    }
}

/// Those who are meant, each once.
fn asked(scope: &Scope, names: &[String]) -> Result<Vec<Arc<Agent>>, ToolError> {
    let callable = Callable::of(scope, Edge::Delegate);
    let mut agents: Vec<Arc<Agent>> = Vec::new();
    for name in names {
        let agent = callable.find(name)?;
        if !agents.iter().any(|known| known.name == agent.name) {
            agents.push(Arc::clone(agent));
        }
    }
    Ok(agents)
}

/// How many may be at work at the same time.
fn at_once(scope: &Scope) -> usize {
    let policy = &scope.run.engine.parts.policy;
    let most = policy.max_concurrent_delegations.min(policy.max_live_children);
    scope.agent.delegation.max_concurrent.min(most).max(1) as usize
}
