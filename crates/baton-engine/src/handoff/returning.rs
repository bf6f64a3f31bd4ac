//! The holder gives the thread back: done, or undone.

use std::sync::Arc;

use baton_core::agent::Return;
use baton_core::store::{HandoffEnd, HandoffSession, HandoffState};
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use super::lease::Lease;
use crate::failure::Failure;
use crate::given::{Done, Ending, Given, Site};
use crate::patterns::handover::{head, shared};
use crate::scope::Scope;

/// Of what came of it, in characters.
const SUMMARY: usize = 2000;
const MOST_ARTIFACTS: usize = 50;
const COMPLETE: &str = "complete_handoff";
const DECLINE: &str = "decline_handoff";

/// What a holder has to end its part with.
pub(crate) fn tools(scope: &Scope) -> Vec<Arc<dyn Given>> {
    let Some(lease) = &scope.lease else { return Vec::new() };
    let stays = scope.agent.accepts_handoff.as_ref().is_some_and(|terms| terms.returns == Return::Never);
    let complete = (!stays).then(|| GiveBack::completed(scope, lease));
    complete.into_iter().chain([GiveBack::declined(scope, lease)]).map(|tool| Arc::new(tool) as _).collect()
}

/// From now on it is on its way back, also after a crash.
pub(crate) async fn give_back(
    scope: &Scope,
    lease: &Lease,
    end: HandoffEnd,
    summary: &str,
    artifacts: &[String],
) {
    let run = scope.run.run_id;
    if lease.session().notes.ended_in == Some(run) {
        return;
    }
    let summary = head(&shared(&scope.agent, summary.trim()), SUMMARY);
    let given_back = |handoff: &mut HandoffSession| {
        handoff.state = HandoffState::Returning;
        handoff.notes.end = Some(end);
        handoff.notes.ended_in = Some(run);
        handoff.result_summary = (!summary.is_empty()).then(|| summary.clone());
        handoff.artifacts_created = artifacts.iter().take(MOST_ARTIFACTS).cloned().collect();
    };
    scope.change(lease, given_back).await;
}

#[derive(Debug)]
struct GiveBack {
    spec: ToolSpec,
    end: HandoffEnd,
    lease: Arc<Lease>,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    #[serde(default, alias = "reason")]
    result_summary: String,
    #[serde(default)]
    artifacts: Vec<String>,
}

impl GiveBack {
    fn completed(scope: &Scope, lease: &Arc<Lease>) -> Self {
        let description = "Gives the conversation back because your work with the person is done. Call it once the person has what \
                           they came for; they are then told that they are back with whoever sent them.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "result_summary": { "type": "string", "minLength": 1, "description": "What came of it, in one or two sentences." },
                "artifacts": { "type": "array", "items": { "type": "string" }, "description": "Names of what was made, such as skill:slack-alert." },
            },
            "required": ["result_summary"],
            "additionalProperties": false,
        });
        Self::new(scope, lease, COMPLETE, description, parameters, HandoffEnd::Completed)
    }

    fn declined(scope: &Scope, lease: &Arc<Lease>) -> Self {
        let description = "Gives the conversation back without a result, because the request is not yours or cannot be done. What \
                           was collected so far is kept.";
        let parameters = json!({
            "type": "object",
            "properties": { "reason": { "type": "string", "minLength": 1, "description": "Why, in one sentence." } },
            "required": ["reason"],
            "additionalProperties": false,
        });
        Self::new(scope, lease, DECLINE, description, parameters, HandoffEnd::Declined)
    }

    fn new(
        scope: &Scope,
        lease: &Arc<Lease>,
        name: &str,
        description: &str,
        parameters: Value,
        end: HandoffEnd,
    ) -> Self {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters,
            effect: Effect::Writes,
            risk: Risk::Low,
            timeout: scope.agent.limits.timeout,
        };
        Self { spec, end, lease: Arc::clone(lease) }
    }
}

impl Given for GiveBack {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn ends_with(&self, _arguments: &Value) -> Option<String> {
        Some(self.spec.name.clone())
    }

    fn call<'a>(&'a self, arguments: Value, site: Site<'a>) -> BoxFuture<'a, Result<Done, Failure>> {
        Box::pin(async move {
            let Ok(said) = serde_json::from_value::<Arguments>(arguments) else {
                return Ok(Done::Refused(ToolError::InvalidArguments(
                    "say in a sentence what came of it".into(),
                )));
            };
            give_back(&site.scope, &self.lease, self.end, &said.result_summary, &said.artifacts).await;
            let told = "The conversation goes back to whoever gave it to you.".to_owned();
            Ok(Done::Ended { told, ending: Ending::Returned })
        })
    }
}
