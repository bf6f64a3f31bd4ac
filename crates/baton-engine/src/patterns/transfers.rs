//! `transfer_to_<agent>`: tools that pass the baton to a collaborator for the rest of the run, or the whole thread if the target
//! accepts handoffs. [`mod@transfer_input`] builds the receiver's input.

use std::slice;
use std::sync::Arc;

use baton_core::agent::{Agent, Collaboration};
use baton_core::store::ApprovalPreview;
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use self::transfer_input::{TransferArguments, receiver_input};
use crate::approvals::request::field;
use crate::bounds::{InvocationError, InvocationKind};
use crate::engine_tool::{CallSite, EngineTool, SessionEnding, ToolOutcome};
use crate::failure::Failure;
use crate::fence::Fence;
use crate::guard::GuardSide;
use crate::guardrails;
use crate::handoff::start::{self, StartOutcome};
use crate::handoff::{finish, messages};
use crate::input::Input;
use crate::invocation;
use crate::lease::HandoffLease;
use crate::patterns::arguments::without_blank_values;
use crate::patterns::shared_history::last_messages;
use crate::redaction::redact;
use crate::run;
use crate::scope::Scope;
use crate::telemetry;

mod transfer_input;

pub(super) use transfer_input::MAX_REASON_CHARS;

/// One tool for each agent in `collaborations`. Empty if transfers are disabled for the tenant.
pub(crate) fn tools(scope: &Scope, input: &Input) -> Vec<Arc<dyn EngineTool>> {
    if !scope.run.policy.transfers.is_on(&scope.run.caller.tenant) {
        return Vec::new();
    }
    let targets = scope.agent().collaborations.iter().filter_map(|collaboration| {
        let target = scope.run.agents.get(&collaboration.agent)?;
        Some(Arc::new(TransferTo::new(scope, collaboration, target, input)) as Arc<dyn EngineTool>)
    });
    targets.collect()
}

/// The receiver's input for a transfer with only a reason.
pub(crate) async fn transfer_input(
    site: &CallSite<'_>,
    input: &Input,
    reason: String,
) -> Result<Input, Failure> {
    receiver_input(site, input, &TransferArguments::because(reason)).await
}

/// The lease and the receiver's input for a transfer of the whole thread with only a reason. Nothing is stored.
pub(crate) async fn handoff_input(
    site: &CallSite<'_>,
    target: &Arc<Agent>,
    input: &Input,
    reason: String,
) -> Result<(HandoffLease, Input), Failure> {
    let pass = TransferArguments::because(reason);
    let received = recent(&site.scope, receiver_input(site, input, &pass).await?);
    let (lease, _) = start::new_lease(&site.scope, &pass.offer(site, target, input));
    Ok((lease, received))
}

/// Hint for the tool's description: the phrases that trigger a handoff to this agent.
fn triggers(target: &Agent) -> String {
    let terms = target.accepts_handoff.as_ref().filter(|terms| !terms.triggers.is_empty());
    terms.map(|terms| format!(" People say: {}.", terms.triggers.join("; "))).unwrap_or_default()
}

/// The arguments of the tool. A transfer of the whole thread is announced to the user.
fn parameters(scope: &Scope, target: &Agent) -> Value {
    let mut parameters = json!({
        "type": "object",
        "properties": {
            "reason": { "type": "string", "description": "Why they take over, in one sentence." },
            "context": { "type": "object", "description": "Facts that they need, by name." },
            "message": { "type": "string", "description": "Only if something has to be added: they get the request itself." },
        },
        "required": ["reason"],
        "additionalProperties": false,
    });
    // The user is not told of an agent that is not visible.
    if start::is_thread_handoff(scope, target) && !target.is_hidden() {
        parameters["properties"]["announcement"] = json!({
            "type": "string",
            "description": "One sentence to the person, in their language: whom you connect them with, and what for.",
        });
    }
    parameters
}

/// Limits the history for the receiver of a thread to `recent_messages`.
fn recent(scope: &Scope, input: Input) -> Input {
    let most = scope.run.policy.recent_messages;
    Input { history: last_messages(input.history.to_vec(), most).into(), ..input }
}

/// The tool `transfer_to_<agent>`.
#[derive(Debug)]
struct TransferTo {
    spec: ToolSpec,
    target: Arc<Agent>,
    /// The giver's input.
    input: Input,
    /// Why a call would be refused, as of the start of the giver's session. A refused tool is hidden from the model.
    refusal: Option<InvocationError>,
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
            parameters: parameters(scope, target),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: scope.agent().limits.timeout,
        };
        let refusal = invocation::admits(scope, target, InvocationKind::Transfer).err();
        Self { spec, target: Arc::clone(target), input: input.clone(), refusal }
    }

    async fn pass(&self, arguments: Value, site: CallSite<'_>) -> Result<ToolOutcome, Failure> {
        let Ok(pass) = serde_json::from_value::<TransferArguments>(arguments) else {
            return Ok(ToolOutcome::Refused(ToolError::InvalidArguments("`reason` is needed".into())));
        };
        let scope = &site.scope;
        if let Some(refused) = guardrails::check_brief(scope, &pass.text()).await? {
            return Ok(refused);
        }
        if start::is_thread_handoff(scope, &self.target) {
            return self.hand_over(pass, site).await;
        }
        let child = match invocation::enter(scope, &self.target, InvocationKind::Transfer).await {
            Ok(child) => child,
            Err(refusal) => return Ok(ToolOutcome::Refused(refusal.into())),
        };
        telemetry::transfer(scope, InvocationKind::Transfer, slice::from_ref(&self.target));
        let input = receiver_input(&site, &self.input, &pass).await?;
        match run::run(child, input).await {
            Ok(outcome) => {
                let output = format!("`{}` took over, and `{}` answered.", self.target.name, outcome.agent);
                Ok(ToolOutcome::Ended { output, ending: SessionEnding::Passed(Box::new(outcome)) })
            }
            Err(failure) if failure.is_fatal(&scope.run.control.cancel) => Err(failure),
            Err(failure) => {
                Ok(ToolOutcome::Refused(ToolError::Execution(self.alternatives(scope, &failure))))
            }
        }
    }

    /// Hands the whole thread to the target. Refused if another agent holds it.
    async fn hand_over(&self, pass: TransferArguments, site: CallSite<'_>) -> Result<ToolOutcome, Failure> {
        let scope = &site.scope;
        if let Some(holder) = scope.run.holder().filter(|_| !start::is_started(scope)) {
            return Ok(ToolOutcome::Refused(ToolError::NotPermitted(messages::occupied_message(holder))));
        }
        let child = match invocation::enter(scope, &self.target, InvocationKind::Transfer).await {
            Ok(child) => child,
            Err(refusal) => return Ok(ToolOutcome::Refused(refusal.into())),
        };
        telemetry::transfer(scope, InvocationKind::Transfer, slice::from_ref(&self.target));
        let mut input = recent(scope, receiver_input(&site, &self.input, &pass).await?);
        // Before the thread changes hands: the source agent keeps it.
        if let Some(violation) = Box::pin(guardrails::check_target(scope, &self.target, &input)).await? {
            let failure = guardrails::failure(&self.target.name, GuardSide::Input, violation);
            return Ok(ToolOutcome::Refused(ToolError::NotPermitted(self.alternatives(scope, &failure))));
        }
        input.is_guarded = true;
        let offer = pass.offer(&site, &self.target, &self.input);
        match start::start(scope, child, &offer, input).await? {
            StartOutcome::Answered(outcome) => {
                let output = format!("`{}` has the conversation now.", self.target.name);
                Ok(ToolOutcome::Ended { output, ending: SessionEnding::Passed(outcome) })
            }
            StartOutcome::Returned(lease) => {
                Ok(ToolOutcome::Output(finish::finish_in_call(scope, &lease).await?))
            }
            StartOutcome::Refused(failure) => {
                Ok(ToolOutcome::Refused(ToolError::Execution(self.alternatives(scope, &failure))))
            }
        }
    }

    /// Error text for the giver, with the tools that it can still use.
    fn alternatives(&self, scope: &Scope, failure: &Failure) -> String {
        let others = scope.agent().collaborations.iter().filter_map(|collaboration| {
            let other =
                scope.run.agents.get(&collaboration.agent).filter(|other| other.name != self.target.name)?;
            invocation::admits(scope, other, InvocationKind::Transfer).ok()?;
            Some(format!("`{}`", other.name.transfer_tool()))
        });
        let others: Vec<String> = others.collect();
        let or_others = if others.is_empty() {
            String::new()
        } else {
            format!(", or pass it on with {}", others.join(" or "))
        };
        let mut failure = redact(&self.target, &failure.to_string());
        if self.target.kind.is_remote() {
            // The reason is text of another server.
            failure = Fence::new().output(&self.spec.name, &failure);
        }
        // Some refusals are sentences of their own.
        let stop = if failure.ends_with(['.', '?', '!']) { "" } else { "." };
        format!(
            "`{}` could not take over: {failure}{stop} The conversation is yours again: answer yourself{or_others}",
            self.target.name
        )
    }
}

impl EngineTool for TransferTo {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Accepts `context` as JSON text or plain text, which models often write.
    fn prepare(&self, arguments: Value) -> Result<Value, ToolError> {
        let mut arguments = without_blank_values(arguments);
        if let Some(context @ Value::String(_)) = arguments.get_mut("context") {
            let text = context.take();
            let written = text.as_str().and_then(|text| crate::json::parse(text).ok());
            *context = written.filter(Value::is_object).unwrap_or_else(|| json!({ "facts": text }));
        }
        Ok(arguments)
    }

    fn ends_with(&self, _arguments: &Value) -> Option<String> {
        Some(self.spec.name.clone())
    }

    /// False for a handoff, which is announced to the user, and for a target that is refused as a re-entry. Ignores the limit on
    /// transfers, which can differ when the session resumes after a crash.
    fn may_change_speaker(&self) -> bool {
        let is_at_work = matches!(self.refusal, Some(InvocationError::ReEntry { .. }));
        self.target.accepts_handoff.is_none() && !is_at_work
    }

    fn is_hidden(&self) -> bool {
        self.refusal.is_some()
    }

    fn preview(&self, arguments: &Value) -> Option<ApprovalPreview> {
        let fields = vec![
            field("tool", &self.spec.name),
            field("to", &self.target.display_name),
            field("reason", arguments["reason"].as_str()?),
        ];
        Some(ApprovalPreview { heading: "Pass the conversation on".to_owned(), fields })
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        Box::pin(self.pass(arguments, site))
    }
}
