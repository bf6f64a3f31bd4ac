//! `read_thread`: what was said earlier in the thread, for agents whose file names the tool.

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

use super::fence::Fence;
use super::handover::{indented, shared};
use crate::again::again;
use crate::failure::Failure;
use crate::given::{Done, Given, Site};
use crate::scope::Scope;
use crate::toolset;

pub(crate) const NAME: &str = "read_thread";
const MOST: u32 = 50;
/// Read at once, whatever is wanted of it: messages of people who did not wait for their answer are not this run's business.
const PAGE: u32 = 70;
const TRIES: u32 = 3;
const PAUSE: Duration = Duration::from_millis(300);

pub(crate) fn tools(scope: &Scope) -> Option<Arc<dyn Given>> {
    let tool = ReadThread { spec: spec() };
    let is_allowed = scope.agent.tools.names(NAME) && toolset::permitted(scope, &tool.spec);
    is_allowed.then(|| Arc::new(tool) as Arc<dyn Given>)
}

#[derive(Debug)]
struct ReadThread {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize)]
struct Wanted {
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
                "count": { "type": "integer", "minimum": 1, "maximum": MOST },
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

async fn read(arguments: Value, scope: &Scope) -> Done {
    let Ok(Wanted { count, before }) = serde_json::from_value(arguments) else {
        return Done::Refused(ToolError::InvalidArguments("`count` is a number of messages".into()));
    };
    let found = tokio::select! {
        biased;
        () = scope.cancel.cancelled() => return Done::Refused(ToolError::Cancelled),
        found = earlier(scope, count as usize, before) => found,
    };
    match found {
        Ok(messages) => Done::Told(told(scope, &messages)),
        Err(error) => Done::Refused(ToolError::Transport(error.to_string())),
    }
}

/// The last `count` earlier messages, page by page, however many came in meanwhile.
async fn earlier(
    scope: &Scope,
    count: usize,
    mut before: Option<u64>,
) -> Result<Vec<ThreadMessage>, StoreError> {
    let (store, thread) = (&scope.run.store, scope.run.caller.thread_id);
    let mut found = VecDeque::new();
    loop {
        let query = MessageQuery { before, ..MessageQuery::last(PAGE) };
        let page = again(TRIES, PAUSE, || store.messages(thread, query)).await?;
        before = page.first().map(|message| message.number);
        let is_last = page.len() < PAGE as usize;
        for message in page.into_iter().rev().filter(|message| is_earlier(scope, message)) {
            found.push_front(message);
        }
        if is_last || found.len() >= count {
            let skipped = found.len().saturating_sub(count);
            return Ok(found.into_iter().skip(skipped).collect());
        }
    }
}

/// Whether it was said before this run, or answers something that was.
fn is_earlier(scope: &Scope, message: &ThreadMessage) -> bool {
    let is_later = message.message.role == Role::User && message.number >= scope.run.message_number;
    !is_later && message.message.run_id != scope.run.run_id
}

fn told(scope: &Scope, messages: &[ThreadMessage]) -> String {
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
    let lines = shared(&scope.agent, &lines.collect::<Vec<_>>().join("\n\n"));
    let fence = Fence::new();
    format!("{}\n\n{}", fence.material(), fence.block("thread", "## EARLIER MESSAGES", &lines))
}

impl Given for ReadThread {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call<'a>(&'a self, arguments: Value, site: Site<'a>) -> BoxFuture<'a, Result<Done, Failure>> {
        Box::pin(async move { Ok(read(arguments, &site.scope).await) })
    }
}
