//! `broadcast` and `vote_conclude` for members, `conclude_team` for the coordinator.

use std::sync::Arc;

use baton_core::HumanDuration;
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::channel::LONGEST_POST;
use super::desk::{Desk, Said};
use super::votes::Vote;
use crate::failure::Failure;
use crate::given::{Done, Ending, Given, Site};
use crate::patterns::handover::{head, shared};

/// In characters. Longer ones are cut.
const LONGEST_REASON: usize = 1_000;
pub(super) const CONCLUDE: &str = "conclude_team";

/// What a member can do besides its own tools.
pub(super) fn of_member(desk: &Arc<Desk>) -> Vec<Arc<dyn Given>> {
    vec![Arc::new(Broadcast::new(desk)), Arc::new(VoteConclude::new(desk))]
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

#[derive(Debug)]
struct Broadcast {
    spec: ToolSpec,
    desk: Arc<Desk>,
}

impl Broadcast {
    fn new(desk: &Arc<Desk>) -> Self {
        let message =
            json!({ "message": { "type": "string", "minLength": 1, "description": "What to tell them." } });
        let description =
            "Tells something to all other members of your team. They read it when this round is over.";
        Self { spec: spec("broadcast", description, &message, &["message"]), desk: Arc::clone(desk) }
    }
}

impl Given for Broadcast {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, site: Site<'a>) -> BoxFuture<'a, Result<Done, Failure>> {
        Box::pin(async move {
            let message = shared(&site.scope.agent, &text(&arguments, "message"));
            if message.is_empty() {
                return Ok(Done::Refused(ToolError::InvalidArguments("the message is empty".into())));
            }
            let said = Said::Posted { text: head(&message, LONGEST_POST), at: Timestamp::now() };
            let kept = self.desk.keep(&site.scope, said).await?;
            Ok(kept.map(|()| "the others will read it when the round is over".to_owned()).into())
        })
    }
}

#[derive(Debug)]
struct VoteConclude {
    spec: ToolSpec,
    desk: Arc<Desk>,
}

impl VoteConclude {
    fn new(desk: &Arc<Desk>) -> Self {
        let properties = json!({
            "ready": { "type": "boolean", "description": "true: the discussion can end. false: it should go on." },
            "reason": { "type": "string", "description": "Why, in one sentence." },
        });
        let description = "Says whether the discussion of your team can end. It counts for this round only; the last one counts.";
        Self {
            spec: spec("vote_conclude", description, &properties, &["ready", "reason"]),
            desk: Arc::clone(desk),
        }
    }
}

impl Given for VoteConclude {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, site: Site<'a>) -> BoxFuture<'a, Result<Done, Failure>> {
        Box::pin(async move {
            let ready = arguments["ready"].as_bool().unwrap_or_default();
            let reason = head(&shared(&site.scope.agent, &text(&arguments, "reason")), LONGEST_REASON);
            let kept = self.desk.keep(&site.scope, Said::Voted(Vote { ready, reason })).await?;
            let told = if ready { "you are ready to conclude" } else { "you want to go on" };
            Ok(kept.map(|()| format!("noted for this round: {told}")).into())
        })
    }
}

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

impl Given for ConcludeTeam {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn ends_with(&self, _arguments: &Value) -> Option<String> {
        Some(CONCLUDE.to_owned())
    }

    fn call<'a>(&'a self, arguments: Value, _site: Site<'a>) -> BoxFuture<'a, Result<Done, Failure>> {
        Box::pin(async move {
            let ending = Ending::Concluded(text(&arguments, "summary"));
            Ok(Done::Ended { told: "the discussion is over".to_owned(), ending })
        })
    }
}
