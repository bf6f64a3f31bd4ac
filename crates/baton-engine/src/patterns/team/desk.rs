//! What a member says to its team while its turn lasts.
//!
//! Each call is recorded at its own place before the model hears of it. A member that ended before a crash does not run again; its
//! desk is laid out from those records.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::store::{StepKind, StepState};
use baton_core::tool::ToolError;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::votes::Vote;
use crate::failure::Failure;
use crate::journal::Record;
use crate::scope::Scope;

/// Posts of one member in one round; more is noise.
const MOST_POSTS: usize = 16;
const SAID: &str = "said";

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Said {
    Posted { text: String, at: Timestamp },
    Voted(Vote),
}

/// Turn and number of a call within it: the order in which the member said things, however its calls were scheduled.
type Place = (u32, u32);

#[derive(Debug)]
pub(super) struct Desk {
    path: Arc<str>,
    said: Mutex<BTreeMap<Place, Said>>,
}

impl Desk {
    /// The desk of the member at this place, with what it said before a crash.
    pub(super) fn open(member: &Scope) -> Result<Self, Failure> {
        let path = member.shared_path();
        let mut said = BTreeMap::new();
        for step in member.run.steps.values().filter(|step| step.kind == StepKind::Round) {
            let own = step.path.strip_suffix(SAID).and_then(|call| call.strip_suffix('/'));
            let Some(place) = own.and_then(|call| place(&path, call)) else { continue };
            let one = serde_json::from_value(step.data.clone())
                .map_err(|error| Failure::Interrupted(format!("{} cannot be read: {error}", step.path)))?;
            said.insert(place, one);
        }
        Ok(Self { path, said: Mutex::new(said) })
    }

    /// Keeps what was said by the call at `site`. The same call says it once.
    pub(super) async fn keep(&self, site: &Scope, one: Said) -> Result<Result<(), ToolError>, Failure> {
        let Some(place) = place(&self.path, site.path()) else {
            return Ok(Err(ToolError::NotPermitted("only the member itself speaks to its team".into())));
        };
        {
            let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
            if said.contains_key(&place) {
                return Ok(Ok(()));
            }
            let posts = said.values().filter(|said| matches!(said, Said::Posted { .. })).count();
            if matches!(one, Said::Posted { .. }) && posts >= MOST_POSTS {
                let text = format!("at most {MOST_POSTS} messages in one round; end your turn");
                return Ok(Err(ToolError::Limit(text)));
            }
            said.insert(place, one.clone());
        }
        let step = site.at(SAID).step(StepKind::Round, StepState::Finished, &one)?;
        // The result of the call is kept after it, and waited for.
        site.run.journal.keep_soon(Record { steps: vec![step], ..Record::default() }).await;
        Ok(Ok(()))
    }

    pub(super) fn said(&self) -> Vec<Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }
}

/// `turn:2/tool:1` below a member's path. Deeper places belong to others, such as members of a member.
fn place(member: &str, call: &str) -> Option<Place> {
    let (turn, tool) = call.strip_prefix(member)?.strip_prefix("/turn:")?.split_once("/tool:")?;
    Some((turn.parse().ok()?, tool.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::place;

    #[test]
    fn only_the_members_own_calls_are_its_words() {
        let member = "a/round:1/member:b";
        assert_eq!(place(member, "a/round:1/member:b/turn:2/tool:10"), Some((2, 10)));
        assert_eq!(place(member, "a/round:1/member:bc/turn:2/tool:1"), None);
        assert_eq!(place(member, "a/round:1/member:b/round:1/member:c/turn:1/tool:1"), None);
        assert_eq!(place(member, "a/round:1/member:b/turn:1/tool:1/call:c/turn:1/tool:1"), None);
    }
}
