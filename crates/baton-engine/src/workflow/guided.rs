//! Answers for a holder whose model delegates its workflow to a [`WorkflowGuide`].

use std::sync::Arc;

use baton_core::store::StepKind;
use baton_core::workflow::{GuideMessage, WorkflowGuide};

use super::walk::{OptionalSlots, WorkflowWalk};
use crate::failure::Failure;
use crate::input::Input;
use crate::outcome::Answer;
use crate::outcome::Outcome;
use crate::scope::Scope;

/// Passes the user's message to the guide and returns its reply. After a crash the guide reads the message again from the
/// recorded state, which yields the same reply.
pub(crate) async fn answer(
    scope: &Scope,
    guide: &dyn WorkflowGuide,
    input: &Input,
) -> Result<Outcome, Failure> {
    let place = scope.at("guide");
    let text = match place.step().finished::<String>()? {
        Some(text) => text,
        None => {
            let text = reply(scope, guide, place.clone(), input).await?;
            place.step().finish(StepKind::Note, &text, Vec::new(), Vec::new()).await?;
            text
        }
    };
    let answer = Answer::without_turn(text);
    Ok(Outcome { answer, agent: scope.name().clone(), is_shown: false, dissent: Vec::new() })
}

async fn reply(
    scope: &Scope,
    guide: &dyn WorkflowGuide,
    place: Scope,
    input: &Input,
) -> Result<String, Failure> {
    let agent = Arc::clone(scope.agent());
    let Some(lease) = &scope.session.lease else {
        return Err(Failure::NoHandoff("no handoff is active on this thread"));
    };
    let Some(mut walk) = WorkflowWalk::begin(place, lease, &agent).await? else {
        return Err(Failure::NoHandoff("there is no workflow to walk through"));
    };
    let was_asked = walk.machine.was_asked(scope.run.run_id, scope.run.request.said_at);
    let (text, request) = (input.words(), request(scope, input));
    let message = GuideMessage { text: &text, request: &request, was_asked };
    let reply = guide.read(&agent, &mut walk.machine, &message);
    walk.onward(OptionalSlots::Asked).await?;
    let text = reply.finish(&agent, &walk.machine, &walk.changes);
    walk.settle().await?;
    Ok(text)
}

/// The user's message that began the run. Text from other agents does not count as the user's request.
fn request(scope: &Scope, input: &Input) -> String {
    let words = scope.run.request.words();
    if words.trim().is_empty() { input.words() } else { words }
}
