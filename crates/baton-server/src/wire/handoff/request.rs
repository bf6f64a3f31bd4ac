//! What people send about handoffs.

use baton_core::{HandoffId, TenantId, ThreadId, UserId};
use baton_engine::{OnConflict, ReturnStatus};
use serde::Deserialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::problem::FieldError;
use crate::strict::Checked;
use crate::wire::schema::words;

const LONGEST_NAME: usize = 255;
const LONGEST_REASON: usize = 500;
const LONGEST_SUMMARY: usize = 2000;
/// Of `handoff_metadata`, as JSON.
const MOST_METADATA: usize = 16 * 1024;
const MOST_RECENT: u32 = 20;
const USUAL_RECENT: u32 = 5;
const MOST_ARTIFACTS: usize = 100;

/// Gives the thread to another agent.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({ "target_agent_id": "skill-creator", "handoff_reason": "the person wants a new skill" })))]
pub struct HandoffRequest {
    /// Who is to have the thread.
    #[schema(min_length = 1, max_length = 255)]
    pub target_agent_id: String,
    /// The agent that gives the thread away and gets it back; by default its holder.
    #[schema(nullable = false, min_length = 1, max_length = 255)]
    pub source_agent_id: Option<String>,
    /// Why.
    #[schema(min_length = 1, max_length = 500)]
    pub handoff_reason: String,
    /// What the target has to know; otherwise it is made from the thread.
    #[schema(nullable = false, min_length = 1, max_length = 2000)]
    pub context_summary: Option<String>,
    /// How many of the last messages the target sees. `conversation_history_count` is an older name for it.
    #[serde(default = "usual_recent", alias = "conversation_history_count")]
    #[schema(minimum = 1, maximum = 20, default = 5)]
    pub recent_message_count: u32,
    /// Whether what the target has collected is kept when the person leaves before it is done.
    #[serde(default = "yes")]
    #[schema(default = true)]
    pub preserve_state: bool,
    /// Whether the agent that gave the thread away comments on the result.
    #[serde(default = "yes")]
    #[schema(default = true)]
    pub return_expected: bool,
    /// Anything the caller wants to find again with the handoff; up to 16 KiB.
    #[schema(nullable = false)]
    pub handoff_metadata: Option<Map<String, Value>>,
    /// What happens while another handoff is active: `reject` (the default), or `queue` until it has ended.
    #[schema(required = false, schema_with = words::<OnConflict>)]
    pub on_conflict: Option<OnConflict>,
    /// If it is said, it is the one of the path.
    #[schema(nullable = false, format = Uuid)]
    pub thread_id: Option<String>,
    /// If it is said, it is the caller's.
    #[schema(nullable = false)]
    pub tenant_id: Option<String>,
    /// If it is said, it is the caller.
    #[schema(nullable = false)]
    pub user_id: Option<String>,
    /// If it is said, it is `handoff`.
    #[serde(rename = "type")]
    #[schema(nullable = false)]
    pub kind: Option<String>,
}

fn yes() -> bool {
    true
}

fn usual_recent() -> u32 {
    USUAL_RECENT
}

impl Checked for HandoffRequest {
    fn check(&self) -> Vec<FieldError> {
        let mut found = Mistakes::default();
        found.text("/target_agent_id", &self.target_agent_id, LONGEST_NAME);
        found.text("/handoff_reason", &self.handoff_reason, LONGEST_REASON);
        if let Some(source) = &self.source_agent_id {
            found.text("/source_agent_id", source, LONGEST_NAME);
        }
        if let Some(summary) = &self.context_summary {
            found.text("/context_summary", summary, LONGEST_SUMMARY);
        }
        found.unless(
            (1..=MOST_RECENT).contains(&self.recent_message_count),
            "/recent_message_count",
            "1 to 20",
        );
        let size = self.handoff_metadata.clone().map_or(0, |map| Value::Object(map).to_string().len());
        found.unless(size <= MOST_METADATA, "/handoff_metadata", "it may have up to 16 KiB as JSON");
        let is_handoff = self.kind.as_deref().is_none_or(|kind| kind == "handoff");
        found.unless(is_handoff, "/type", "this route takes a `handoff`");
        found.0
    }
}

impl HandoffRequest {
    /// What the request says about things that the credential and the path have said already, where it is something else.
    pub fn untruths(&self, thread: ThreadId, tenant: &TenantId, user: &UserId) -> Vec<FieldError> {
        let mut found = Mistakes::default();
        let is = |said: &Option<String>, truth: &str| said.as_deref().is_none_or(|said| said == truth);
        found.unless(is(&self.thread_id, &thread.to_string()), "/thread_id", "the path names another thread");
        found.unless(
            is(&self.tenant_id, tenant.as_str()),
            "/tenant_id",
            "the credential is of another tenant",
        );
        found.unless(is(&self.user_id, user.as_str()), "/user_id", "the credential is of another user");
        found.0
    }
}

/// The holder gives the thread back.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({ "completion_status": "completed", "result_summary": "The skill is there.", "artifacts_created": ["slack-alert"] })))]
pub struct ReturnBody {
    #[schema(schema_with = words::<ReturnStatus>)]
    pub completion_status: ReturnStatus,
    /// The result, for the next holder of the thread.
    #[schema(nullable = false, min_length = 1, max_length = 2000)]
    pub result_summary: Option<String>,
    /// Names of what was made.
    #[serde(default)]
    #[schema(max_items = 100)]
    pub artifacts_created: Vec<String>,
}

impl Checked for ReturnBody {
    fn check(&self) -> Vec<FieldError> {
        let mut found = Mistakes::default();
        if let Some(summary) = &self.result_summary {
            found.text("/result_summary", summary, LONGEST_SUMMARY);
        }
        let count = self.artifacts_created.len();
        found.unless(count <= MOST_ARTIFACTS, "/artifacts_created", "it may name up to 100");
        for (at, name) in self.artifacts_created.iter().enumerate().take(MOST_ARTIFACTS) {
            found.text(&format!("/artifacts_created/{at}"), name, LONGEST_NAME);
        }
        found.0
    }
}

/// Which one goes on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ResumeBody {
    /// One of the thread's `resumable_handoffs`.
    #[schema(value_type = Uuid)]
    pub handoff_id: HandoffId,
}

impl Checked for ResumeBody {}

#[derive(Default)]
struct Mistakes(Vec<FieldError>);

impl Mistakes {
    fn unless(&mut self, is_right: bool, pointer: &str, detail: &str) {
        if !is_right {
            self.0.push(FieldError { pointer: pointer.to_owned(), detail: detail.to_owned() });
        }
    }

    /// Something has to be said, and not too much.
    fn text(&mut self, pointer: &str, text: &str, longest: usize) {
        let is_right = !text.trim().is_empty() && text.chars().count() <= longest;
        self.unless(is_right, pointer, &format!("1 to {longest} characters, not only spaces"));
    }
}
