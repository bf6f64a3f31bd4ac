//! Posts and votes of a member during its turn.
//!
//! Each call is journaled under its own path before the model gets its result. A member that finished before a crash does not run
//! again; its outbox is rebuilt from these records.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::store::{StepKind, StepState};
use baton_core::tool::ToolError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::extensions::Vote;
use crate::failure::Failure;
use crate::journal::Record;
use crate::scope::Scope;

/// Maximum number of posts of one member in one round.
const MAX_POSTS: usize = 16;
const SEGMENT: &str = "said";

/// A post or vote of a member.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum MemberAction {
    Posted { text: String, at: Timestamp },
    Voted(Vote),
}

/// Turn and index of a call: the order in which the member spoke, however its calls were scheduled.
type CallPosition = (u32, u32);

/// The actions of one member in one round, in the order of its calls.
#[derive(Debug)]
pub(super) struct MemberOutbox {
    path: Arc<str>,
    said: Mutex<BTreeMap<CallPosition, MemberAction>>,
}

impl MemberOutbox {
    /// Opens the outbox of the member at this scope, with its journaled actions.
    pub(super) fn open(member: &Scope) -> Result<Self, Failure> {
        let path = member.shared_path();
        let mut said = BTreeMap::new();
        for step in member.run.recorder.steps.values().filter(|step| step.kind == StepKind::Round) {
            let own = step.path.strip_suffix(SEGMENT).and_then(|call| call.strip_suffix('/'));
            let Some(place) = own.and_then(|call| call_position(&path, call)) else { continue };
            let one = step
                .data
                .read()
                .map_err(|error| Failure::Interrupted(format!("{} cannot be read: {error}", step.path)))?;
            said.insert(place, one);
        }
        Ok(Self { path, said: Mutex::new(said) })
    }

    /// Stores the action of the call at `site`. A repeated call has no effect. The inner error is for the model.
    pub(super) async fn keep(
        &self,
        site: &Scope,
        one: MemberAction,
    ) -> Result<Result<(), ToolError>, Failure> {
        let Some(place) = call_position(&self.path, site.path()) else {
            return Ok(Err(ToolError::NotPermitted("only the member itself speaks to its team".into())));
        };
        {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.contains_key(&place) {
                return Ok(Ok(()));
            }
            let posts = said.values().filter(|said| matches!(said, MemberAction::Posted { .. })).count();
            if matches!(one, MemberAction::Posted { .. }) && posts >= MAX_POSTS {
                let text = format!("at most {MAX_POSTS} messages in one round; end your turn");
                return Ok(Err(ToolError::Limit(text)));
            }
            said.insert(place, one.clone());
        }
        let step = site.at(SEGMENT).step().build(StepKind::Round, StepState::Finished, &one)?;
        // Not awaited: the result of the call is journaled after it, and that is awaited.
        site.run.recorder.journal.commit_soon(Record { steps: vec![step], ..Record::default() }).await;
        Ok(Ok(()))
    }

    pub(super) fn said(&self) -> Vec<MemberAction> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// Parses `turn:2/tool:1` below the member's path. Deeper paths belong to other agents, such as members of a nested team.
fn call_position(member: &str, call: &str) -> Option<CallPosition> {
    let (turn, tool) = call.strip_prefix(member)?.strip_prefix("/turn:")?.split_once("/tool:")?;
    Some((turn.parse().ok()?, tool.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::call_position;

    #[test]
    fn only_a_members_own_calls_count_as_its_actions() {
        let member = "a/round:1/member:b";
        assert_eq!(call_position(member, "a/round:1/member:b/turn:2/tool:10"), Some((2, 10)));
        assert_eq!(call_position(member, "a/round:1/member:bc/turn:2/tool:1"), None);
        assert_eq!(call_position(member, "a/round:1/member:b/round:1/member:c/turn:1/tool:1"), None);
        assert_eq!(call_position(member, "a/round:1/member:b/turn:1/tool:1/call:c/turn:1/tool:1"), None);
    }
}
