//! Tools of a team: `broadcast` and `vote_conclude` for members, `conclude_team` for the coordinator.

use std::sync::Arc;

use baton_core::HumanDuration;
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::channel::MAX_POST_CHARS;
use super::outbox::{MemberAction, MemberOutbox};
use crate::engine_tool::{CallSite, EngineTool, SessionEnding, ToolOutcome};
use crate::extensions::Vote;
use crate::failure::Failure;
use crate::redaction::{head, redact};

/// Maximum length of a vote's reason, in characters. Longer ones are cut.
const MAX_REASON_CHARS: usize = 1_000;
pub(super) const CONCLUDE: &str = "conclude_team";

/// The tools that a member has in addition to its own.
pub(super) fn of_member(outbox: &Arc<MemberOutbox>) -> Vec<Arc<dyn EngineTool>> {
    vec![Arc::new(Broadcast::new(outbox)), Arc::new(VoteConclude::new(outbox))]
}

fn spec(name: &str, description: &str, properties: &Value, required: &[&str]) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        parameters: json!({
            "type": "object", "properties": properties, "required": required, "additionalProperties": false,
        }),
        effect: Effect::ReadOnly,
        risk: Risk::Low,
        timeout: HumanDuration::from_secs(60),
    }
}

fn text(arguments: &Value, key: &str) -> String {
    arguments[key].as_str().unwrap_or_default().trim().to_owned()
}

/// The tool `broadcast`.
#[derive(Debug)]
struct Broadcast {
    spec: ToolSpec,
    outbox: Arc<MemberOutbox>,
}

impl Broadcast {
    fn new(outbox: &Arc<MemberOutbox>) -> Self {
        let message =
            json!({ "message": { "type": "string", "minLength": 1, "description": "What to tell them." } });
        let description =
            "Tells something to all other members of your team. They read it when this round is over.";
        Self { spec: spec("broadcast", description, &message, &["message"]), outbox: Arc::clone(outbox) }
    }
}

impl EngineTool for Broadcast {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        Box::pin(async move {
            let message = redact(site.scope.agent(), &text(&arguments, "message"));
            if message.is_empty() {
                return Ok(ToolOutcome::Refused(ToolError::InvalidArguments("the message is empty".into())));
            }
            let said = MemberAction::Posted { text: head(&message, MAX_POST_CHARS), at: Timestamp::now() };
            let kept = self.outbox.keep(&site.scope, said).await?;
            Ok(kept.map(|()| "the others will read it when the round is over".to_owned()).into())
        })
    }
}

/// The tool `vote_conclude`.
#[derive(Debug)]
struct VoteConclude {
    spec: ToolSpec,
    outbox: Arc<MemberOutbox>,
}

impl VoteConclude {
    fn new(outbox: &Arc<MemberOutbox>) -> Self {
        let properties = json!({
            "ready": { "type": "boolean", "description": "true: the discussion can end. false: it should go on." },
            "reason": { "type": "string", "description": "Why, in one sentence." },
        });
        let description = "Says whether the discussion of your team can end. It counts for this round only; the last one counts.";
        Self {
            spec: spec("vote_conclude", description, &properties, &["ready", "reason"]),
            outbox: Arc::clone(outbox),
        }
    }
}

impl EngineTool for VoteConclude {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        Box::pin(async move {
            let ready = arguments["ready"].as_bool().unwrap_or_default();
            let reason = head(&redact(site.scope.agent(), &text(&arguments, "reason")), MAX_REASON_CHARS);
            let kept = self.outbox.keep(&site.scope, MemberAction::Voted(Vote { ready, reason })).await?;
            let output = if ready { "you are ready to conclude" } else { "you want to go on" };
            Ok(kept.map(|()| format!("noted for this round: {output}")).into())
        })
    }
}

/// The tool `conclude_team`.
#[derive(Debug)]
pub(super) struct ConcludeTeam {
    spec: ToolSpec,
}

impl Default for ConcludeTeam {
    fn default() -> Self {
        let summary =
            json!({ "summary": { "type": "string", "minLength": 1, "description": "What the team found." } });
        let description = "Ends the discussion of your team. You answer the request next.";
        Self { spec: spec(CONCLUDE, description, &summary, &["summary"]) }
    }
}

impl EngineTool for ConcludeTeam {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn ends_with(&self, _arguments: &Value) -> Option<String> {
        Some(CONCLUDE.to_owned())
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        _site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        Box::pin(async move {
            let ending = SessionEnding::Concluded(text(&arguments, "summary"));
            Ok(ToolOutcome::Ended { output: "the discussion is over".to_owned(), ending })
        })
    }
}
