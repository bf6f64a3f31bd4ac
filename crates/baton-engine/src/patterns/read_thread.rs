//! `read_thread`: reads earlier messages of the thread. Only for agents whose file names the tool, in runs of users who may read
//! threads.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use baton_core::message::Role;
use baton_core::store::{MessageQuery, ThreadMessage};
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use baton_core::{HumanDuration, StoreError};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::engine_tool::{CallSite, EngineTool, ToolOutcome};
use crate::failure::Failure;
use crate::redaction::{indented, redact};
use crate::retry::retry;
use crate::scope::Scope;
use crate::toolset;

pub(crate) const NAME: &str = "read_thread";
/// The permission that the user of the run needs. It is stored with the run, so a run that resumes has the same.
const READ_PERMISSION: &str = "thread:read";
const MAX_MESSAGES: u32 = 50;
/// Messages per query. Larger than [`MAX_MESSAGES`], because messages that are queued for later runs are filtered out.
const PAGE_SIZE: u32 = 70;
const MAX_ATTEMPTS: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_millis(300);

pub(crate) fn tools(scope: &Scope) -> Option<Arc<dyn EngineTool>> {
    if !scope.agent().tools.names(NAME) || !scope.run.request.rights.allow(READ_PERMISSION) {
        return None;
    }
    let tool = ReadThread { spec: spec() };
    toolset::permitted(scope, &tool.spec).then(|| Arc::new(tool) as Arc<dyn EngineTool>)
}

#[derive(Debug)]
struct ReadThread {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize)]
struct ReadThreadArguments {
    count: u32,
    before: Option<u64>,
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description:
            "Reads earlier messages of this conversation, with their numbers. Without `before`, the newest."
                .into(),
        parameters: json!({
            "type": "object",
            "properties": {
                "count": { "type": "integer", "minimum": 1, "maximum": MAX_MESSAGES },
                "before": { "type": "integer", "minimum": 1, "description": "Only messages with a smaller number." },
            },
            "required": ["count"],
            "additionalProperties": false,
        }),
        effect: Effect::ReadOnly,
        risk: Risk::Low,
        timeout: HumanDuration::from_secs(30),
    }
}

async fn read(arguments: Value, scope: &Scope) -> ToolOutcome {
    let Ok(ReadThreadArguments { count, before }) = serde_json::from_value(arguments) else {
        return ToolOutcome::Refused(ToolError::InvalidArguments("`count` is a number of messages".into()));
    };
    let found = tokio::select! {
        biased;
        () = scope.cancel.cancelled() => return ToolOutcome::Refused(ToolError::Cancelled),
        found = earlier(scope, count as usize, before) => found,
    };
    match found {
        Ok(messages) => ToolOutcome::Output(render_messages(scope, &messages)),
        Err(error) => ToolOutcome::Refused(ToolError::Transport(error.to_string())),
    }
}

/// The last `count` earlier messages, read page by page until enough pass the filter.
async fn earlier(
    scope: &Scope,
    count: usize,
    mut before: Option<u64>,
) -> Result<Vec<ThreadMessage>, StoreError> {
    let (store, thread) = (&scope.run.store, scope.run.caller.thread_id);
    let mut found = VecDeque::new();
    loop {
        let query = MessageQuery { before, ..MessageQuery::last(PAGE_SIZE) };
        let page = retry(MAX_ATTEMPTS, RETRY_DELAY, || store.messages(thread, query)).await?;
        before = page.first().map(|message| message.number);
        let is_last = page.len() < PAGE_SIZE as usize;
        for message in page.into_iter().rev().filter(|message| is_earlier(scope, message)) {
            found.push_front(message);
        }
        if is_last || found.len() >= count {
            let skipped = found.len().saturating_sub(count);
            return Ok(found.into_iter().skip(skipped).collect());
        }
    }
}

/// Whether the message precedes this run: not of this run, and not a user message that is queued behind it.
fn is_earlier(scope: &Scope, message: &ThreadMessage) -> bool {
    let is_later = message.message.role == Role::User && message.number >= scope.run.request.message_number;
    !is_later && message.message.run_id != scope.run.run_id
}

fn render_messages(scope: &Scope, messages: &[ThreadMessage]) -> String {
    if messages.is_empty() {
        return "There are no earlier messages.".to_owned();
    }
    let lines = messages.iter().map(|one| {
        let who = match (&one.message.role, &one.message.agent) {
            (Role::User, _) => "person",
            (_, Some(agent)) => agent.as_str(),
            (role, None) => role.word(),
        };
        format!("{}. {who}: {}", one.number, indented(&one.message.text()))
    });
    redact(scope.agent(), &lines.collect::<Vec<_>>().join("\n\n"))
}

impl EngineTool for ReadThread {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_untrusted(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        Box::pin(async move { Ok(read(arguments, &site.scope).await) })
    }
}
