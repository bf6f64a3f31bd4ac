//! `transfer_to_<x>`: the agent passes the baton to a colleague for the rest of the run.

use std::slice;
use std::sync::Arc;

use baton_core::agent::{Agent, Collaboration};
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use self::passing::{Pass, onward};
use crate::bounds::{Edge, Refusal};
use crate::failure::Failure;
use crate::given::{Done, Ending, Given, Site};
use crate::handoff::opening::{self, Opened};
use crate::handoff::{telling, wording};
use crate::patterns::calling::meant::without_blanks;
use crate::patterns::handover::shared;
use crate::patterns::past::last;
use crate::run::{self, Input};
use crate::scope::Scope;
use crate::telemetry;

mod passing;

pub(super) use passing::REASON;

/// One tool for each collaborator that the agent's file names, and for nobody else.
pub(crate) fn tools(scope: &Scope, input: &Input) -> Vec<Arc<dyn Given>> {
    if !scope.run.engine.parts.policy.transfers.is_on(&scope.run.caller.tenant) {
        return Vec::new();
    }
    let targets = scope.agent.collaborations.iter().filter_map(|collaboration| {
        let target = scope.run.agents.get(&collaboration.agent)?;
        Some(Arc::new(TransferTo::new(scope, collaboration, target, input)) as Arc<dyn Given>)
    });
    targets.collect()
}

/// What the receiver is told when the giver says no more than why it passes the baton.
pub(crate) async fn told(site: &Site<'_>, input: &Input, reason: String) -> Result<Input, Failure> {
    onward(site, input, &Pass::because(reason)).await
}

/// What people say who want this agent, as a hint.
fn triggers(target: &Agent) -> String {
    let terms = target.accepts_handoff.as_ref().filter(|terms| !terms.triggers.is_empty());
    terms.map(|terms| format!(" People say: {}.", terms.triggers.join("; "))).unwrap_or_default()
}

/// Whoever gets a whole thread sees no more of what was said before than it needs.
fn recent(scope: &Scope, input: Input) -> Input {
    let most = scope.run.engine.parts.policy.recent_messages;
    Input { history: last(input.history.to_vec(), most).into(), ..input }
}

#[derive(Debug)]
struct TransferTo {
    spec: ToolSpec,
    target: Arc<Agent>,
    /// What the giver was asked.
    input: Input,
    /// Why a call would be refused, as far as that was known when the giver's session began.
    refusal: Option<Refusal>,
}

impl TransferTo {
    fn new(scope: &Scope, collaboration: &Collaboration, target: &Arc<Agent>, input: &Input) -> Self {
        let when =
            collaboration.when.as_ref().map(|when| format!(" Use it when {when}.")).unwrap_or_default();
        let said = triggers(target);
        let spec = ToolSpec {
            name: target.name.transfer_tool(),
            description: format!(
                "Passes the conversation to {}, who then answers in your place. {}{when}{said}",
                target.display_name, target.description
            ),
            parameters: json!({
                "type": "object",
                "properties": {
                    "reason": { "type": "string", "description": "Why they take over, in one sentence." },
                    "context": { "type": "object", "description": "Facts that they need, such as {\"order\": \"A-17\"}." },
                    "message": { "type": "string", "description": "Only if something has to be added: they get the request itself." },
                },
                "required": ["reason"],
                "additionalProperties": false,
            }),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: scope.agent.limits.timeout,
        };
        let refusal = scope.admits(target, Edge::Transfer).err();
        Self { spec, target: Arc::clone(target), input: input.clone(), refusal }
    }

    async fn pass(&self, arguments: Value, site: Site<'_>) -> Result<Done, Failure> {
        let Ok(pass) = serde_json::from_value::<Pass>(arguments) else {
            return Ok(Done::Refused(ToolError::InvalidArguments("`reason` is needed".into())));
        };
        let scope = &site.scope;
        if opening::is_for_thread(scope, &self.target) {
            return self.hand_over(pass, site).await;
        }
        let child = match scope.enter(&self.target, Edge::Transfer).await {
            Ok(child) => child,
            Err(refusal) => return Ok(Done::Refused(refusal.into())),
        };
        telemetry::transfer(scope, Edge::Transfer, slice::from_ref(&self.target));
        let input = onward(&site, &self.input, &pass).await?;
        match run::run(child, input).await {
            Ok(outcome) => {
                let told = format!("`{}` took over, and `{}` answered.", self.target.name, outcome.agent);
                Ok(Done::Ended { told, ending: Ending::Passed(Box::new(outcome)) })
            }
            Err(failure) if failure.ends_the_run(scope) => Err(failure),
            Err(failure) => Ok(Done::Refused(ToolError::Execution(self.alternatives(scope, &failure)))),
        }
    }

    /// The target gets the whole thread, if nobody has it yet.
    async fn hand_over(&self, pass: Pass, site: Site<'_>) -> Result<Done, Failure> {
        let scope = &site.scope;
        if let Some(holder) = scope.run.holder().filter(|_| !opening::is_begun(scope)) {
            return Ok(Done::Refused(ToolError::NotPermitted(wording::occupied(holder))));
        }
        let child = match scope.enter(&self.target, Edge::Transfer).await {
            Ok(child) => child,
            Err(refusal) => return Ok(Done::Refused(refusal.into())),
        };
        telemetry::transfer(scope, Edge::Transfer, slice::from_ref(&self.target));
        let input = recent(scope, onward(&site, &self.input, &pass).await?);
        let offer = pass.offer(&self.target, &self.input);
        match opening::open(scope, child, &offer, input).await? {
            Opened::Answered(outcome) => {
                let told = format!("`{}` has the conversation now.", self.target.name);
                Ok(Done::Ended { told, ending: Ending::Passed(outcome) })
            }
            Opened::Back(lease) => Ok(Done::Told(telling::back_at_once(scope, &lease).await?)),
            Opened::Refused(failure) => {
                Ok(Done::Refused(ToolError::Execution(self.alternatives(scope, &failure))))
            }
        }
    }

    /// What failed, and what the giver can do now.
    fn alternatives(&self, scope: &Scope, failure: &Failure) -> String {
        let others = scope.agent.collaborations.iter().filter_map(|collaboration| {
            let other =
                scope.run.agents.get(&collaboration.agent).filter(|other| other.name != self.target.name)?;
            scope.admits(other, Edge::Transfer).ok()?;
            Some(format!("`{}`", other.name.transfer_tool()))
        });
        let others: Vec<String> = others.collect();
        let or_others = if others.is_empty() {
            String::new()
        } else {
            format!(", or pass it on with {}", others.join(" or "))
        };
        let failure = shared(&self.target, &failure.to_string());
        format!(
            "`{}` could not take over: {failure}. The conversation is yours again: answer yourself{or_others}",
            self.target.name
        )
    }
}

impl Given for TransferTo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Facts are often written as a text.
    fn prepare(&self, arguments: Value) -> Result<Value, ToolError> {
        let mut arguments = without_blanks(arguments);
        if let Some(context @ Value::String(_)) = arguments.get_mut("context") {
            let text = context.take();
            let written = text.as_str().and_then(|text| serde_json::from_str(text).ok());
            *context = written.filter(Value::is_object).unwrap_or_else(|| json!({ "facts": text }));
        }
        Ok(arguments)
    }

    fn ends_with(&self, _arguments: &Value) -> Option<String> {
        Some(self.spec.name.clone())
    }

    /// A thread that is handed over is announced to the person. Whether the limit of transfers is met does not matter here: it may
    /// look different when the same session goes on after a crash.
    fn may_silence(&self) -> bool {
        let is_at_work = matches!(self.refusal, Some(Refusal::ReEntry { .. }));
        self.target.accepts_handoff.is_none() && !is_at_work
    }

    fn is_hidden(&self) -> bool {
        self.refusal.is_some()
    }

    fn preview(&self, arguments: &Value) -> Option<String> {
        Some(format!("to {}: {}", self.target.display_name, arguments["reason"].as_str()?))
    }

    fn call<'a>(&'a self, arguments: Value, site: Site<'a>) -> BoxFuture<'a, Result<Done, Failure>> {
        Box::pin(self.pass(arguments, site))
    }
}
