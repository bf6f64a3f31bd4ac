//! The runs of a task.
//!
//! A task begins with one run, whose id it has. It has more if that run ended with a question of a workflow, or handed the thread over:
//! the answer is a message, and so another run. Such a run is found by the question, which records the run of its answer, or by the task
//! id that the run's metadata names. Nothing else is stored.

use baton_a2a::model::Metadata;
use baton_core::store::{
    Approval, ApprovalStatus, HandoffSession, PageRequest, RunQuery, RunRecord, RunStatus,
};
use baton_core::{HandoffId, RunId, StoreError, TenantStore};
use baton_engine::request;
use serde::Deserialize as _;
use serde_json::{Value, json};

use super::failure::{A2aFailure, A2aResult};
use crate::app::App;
use crate::identity::Principal;
use crate::trail;

/// The member of a run's metadata that belongs to A2A.
const MEMBER: &str = "a2a";
/// The most runs that one task is read from, and that are searched for them.
const MAX_RUNS: usize = 500;

/// What a run keeps of the message that began it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct MessageRecord {
    /// The task that the message continues.
    pub task_id: Option<String>,
    pub message_id: Option<String>,
    /// The client's own context id, if it is not the thread id.
    pub context_id: Option<String>,
    pub parent_task_id: Option<String>,
    pub reference_task_ids: Vec<String>,
}

impl MessageRecord {
    pub fn to_metadata(&self) -> Metadata {
        let mut inner = Metadata::new();
        let texts = [
            ("task_id", &self.task_id),
            ("message_id", &self.message_id),
            ("context_id", &self.context_id),
            ("parent_task_id", &self.parent_task_id),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                inner.insert(name.to_owned(), json!(text));
            }
        }
        if !self.reference_task_ids.is_empty() {
            inner.insert("reference_task_ids".to_owned(), json!(self.reference_task_ids));
        }
        Metadata::from_iter([(MEMBER.to_owned(), Value::Object(inner))])
    }

    /// What the metadata of a run or a handoff says.
    pub fn read(metadata: Option<&Value>) -> Self {
        let inner = metadata.and_then(|metadata| metadata.get(MEMBER)).unwrap_or(&Value::Null);
        let text = |name: &str| inner[name].as_str().map(str::to_owned);
        let references = inner["reference_task_ids"].as_array().into_iter().flatten();
        Self {
            task_id: text("task_id"),
            message_id: text("message_id"),
            context_id: text("context_id"),
            parent_task_id: text("parent_task_id"),
            reference_task_ids: references.filter_map(|id| id.as_str().map(str::to_owned)).collect(),
        }
    }

    pub fn of_run(run: &RunRecord) -> Self {
        Self::read(request::metadata(&run.request))
    }
}

/// A task's runs, and what it waits for.
#[derive(Debug)]
pub struct Chain {
    /// Oldest first; never empty.
    pub runs: Vec<RunRecord>,
    /// The approvals of the last run, in order.
    pub approvals: Vec<Approval>,
    /// The handoff that the task is about, if its first run began one at a client's request.
    pub handoff: Option<HandoffSession>,
    /// The handoff whose end withdrew the last question.
    pub withdrawn_by: Option<HandoffSession>,
}

impl Chain {
    pub fn first(&self) -> &RunRecord {
        &self.runs[0]
    }

    pub fn last(&self) -> &RunRecord {
        self.runs.last().unwrap_or(&self.runs[0])
    }

    /// The question of a workflow that the last run ended with.
    pub fn question(&self) -> Option<&Approval> {
        self.approvals.iter().rev().find(|approval| approval.request.is_workflow_question())
    }

    /// The calls and questions that the last run waits for.
    pub fn pending(&self) -> impl Iterator<Item = &Approval> {
        let is_open = |approval: &&Approval| {
            approval.outcome.status == ApprovalStatus::Pending && !approval.request.is_workflow_question()
        };
        self.approvals.iter().filter(is_open)
    }
}

/// The task of an id, if the caller may see it. Anything else is the same error as an unknown id.
pub async fn find(app: &App, caller: &Principal, task_id: &str) -> A2aResult<Chain> {
    let run_id = RunId::parse(task_id).map_err(|_| A2aFailure::task_not_found())?;
    let store = app.data(caller);
    let first = match store.run(run_id).await {
        Err(StoreError::NotFound(_) | StoreError::ThreadNotFound) => return Err(A2aFailure::task_not_found()),
        found => found?,
    };
    if caller.scope().is_some_and(|user| *user != first.user_id) {
        return Err(A2aFailure::task_not_found());
    }
    trail::read(app, caller, first.thread_id, &first.user_id).await?;
    complete(&*store, first).await
}

/// Adds the later runs of a task to its first one.
pub async fn complete(store: &dyn TenantStore, first: RunRecord) -> A2aResult<Chain> {
    let handoff = match handoff_id(&first) {
        Some(id) => Some(store.handoff(id).await?),
        None => None,
    };
    let mut chain = Chain { runs: vec![first], approvals: Vec::new(), handoff, withdrawn_by: None };
    chain.approvals = approvals(store, chain.last()).await?;
    if chain.handoff.is_some() || chain.question().is_some() {
        let later = continued(store, chain.first()).await?;
        chain.runs.extend(later);
        chain.approvals = approvals(store, chain.last()).await?;
        follow_answers(store, &mut chain).await?;
    }
    Ok(chain)
}

/// The handoff whose beginning a run announces.
pub fn handoff_id(run: &RunRecord) -> Option<HandoffId> {
    let task = run.request.get("task")?.get("handoff")?;
    let has_begun = task.get("change")?.as_str() == Some("begun");
    HandoffId::deserialize(task.get("handoff_id")?).ok().filter(|_| has_begun)
}

/// A run without a question or a wait has none, so a plain run in progress costs no query.
async fn approvals(store: &dyn TenantStore, run: &RunRecord) -> Result<Vec<Approval>, StoreError> {
    match run.status {
        RunStatus::Completed | RunStatus::Waiting => store.run_approvals(run.run_id).await,
        _ => Ok(Vec::new()),
    }
}

/// The later runs whose metadata names the task, oldest first.
async fn continued(store: &dyn TenantStore, first: &RunRecord) -> Result<Vec<RunRecord>, StoreError> {
    let task_id = first.run_id.to_string();
    let query =
        RunQuery { thread_id: Some(first.thread_id), since: Some(first.created_at), ..RunQuery::default() };
    let (mut found, mut seen, mut cursor) = (Vec::new(), 0, None);
    loop {
        let page = store.runs(query.clone(), PageRequest { limit: PageRequest::MAX_LIMIT, cursor }).await?;
        seen += page.data.len();
        let is_ours = |run: &RunRecord| MessageRecord::of_run(run).task_id.as_ref() == Some(&task_id);
        found.extend(page.data.into_iter().filter(is_ours));
        cursor = page.next_cursor;
        if cursor.is_none() || seen >= MAX_RUNS {
            break;
        }
    }
    found.reverse();
    Ok(found)
}

/// Follows answers that came without the task id, such as those of the web page.
async fn follow_answers(store: &dyn TenantStore, chain: &mut Chain) -> Result<(), StoreError> {
    while chain.runs.len() < MAX_RUNS {
        chain.withdrawn_by = withdrawal(store, chain.question()).await?;
        let ended_in = chain.withdrawn_by.as_ref().and_then(|handoff| handoff.notes.ended_in);
        let answered_in = chain.question().and_then(|question| question.outcome.answer_run_id);
        let Some(answer) = answered_in.or(ended_in) else { break };
        if chain.runs.iter().any(|run| run.run_id == answer) {
            break;
        }
        let run = store.run(answer).await?;
        chain.approvals = approvals(store, &run).await?;
        chain.runs.push(run);
    }
    Ok(())
}

/// The handoff of a question that is closed without an answer. A run that answers it and ends the handoff leaves it like that.
async fn withdrawal(
    store: &dyn TenantStore,
    question: Option<&Approval>,
) -> Result<Option<HandoffSession>, StoreError> {
    let is_withdrawn = |question: &&Approval| {
        question.outcome.status != ApprovalStatus::Pending && question.outcome.answer_run_id.is_none()
    };
    match question.filter(is_withdrawn).and_then(|question| question.request.handoff_id) {
        Some(id) => store.handoff(id).await.map(Some),
        None => Ok(None),
    }
}
