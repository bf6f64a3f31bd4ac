//! Calls and questions that wait for a person.

mod decisions;
mod endings;
mod fan_out;
mod holders;
mod policy;
mod questions;
mod races;

use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_core::event::EventKind;
use baton_core::store::{
    Approval, ApprovalQuery, ApprovalRequest, ApprovalStatus, PageRequest, RunStatus, Store,
};
use baton_core::tool::{Effect, Risk};
use baton_core::{RunId, TenantId, ThreadId, UserId};
use baton_engine::{DecisionInput, Engine, RunHandle, RunRequest, RunResult, Verdict};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::{Setup, TestTool};

/// Servers that share a store: each [`Site::restart`] is a new process.
struct Site {
    make: Box<dyn Fn() -> Setup>,
    store: Arc<dyn Store>,
    engine: Arc<Engine>,
    request: RunRequest,
    processes: usize,
}

impl Site {
    async fn new(make: impl Fn() -> Setup + 'static) -> Self {
        let (parts, request) = make().parts().await;
        let store = Arc::clone(&parts.store);
        Self { make: Box::new(make), store, engine: Engine::new(parts), request, processes: 1 }
    }

    /// Ends the process and starts another one.
    async fn restart(&mut self) {
        let (mut parts, _) = (self.make)().parts().await;
        parts.store = Arc::clone(&self.store);
        self.processes += 1;
        parts.identity.owner = baton_core::store::Owner(format!("process-{}", self.processes).into());
        self.engine = Engine::new(parts);
    }

    fn tenant(&self) -> &TenantId {
        &self.request.caller.tenant
    }

    fn thread(&self) -> ThreadId {
        self.request.caller.thread_id
    }

    async fn start(&self) -> RunHandle {
        self.engine.start(self.request.clone()).await.unwrap()
    }

    /// Runs until the run ends or waits.
    async fn run(&self) -> (RunId, RunResult) {
        let run = self.start().await;
        (run.id, run.finish().await)
    }

    async fn decide(&self, approval: Uuid, input: DecisionInput) -> Approval {
        self.engine.decide(self.tenant(), approval, &ada(), input).await.unwrap()
    }

    /// Waits until the run ends or waits again, however often it was decided about.
    async fn attend(&self, run: RunId) -> RunResult {
        self.engine.attend(self.tenant(), self.thread(), run, 0).finish().await
    }

    async fn status(&self, run: RunId) -> RunStatus {
        self.store.tenant(self.tenant()).run(run).await.unwrap().status
    }

    async fn approvals(&self) -> Vec<Approval> {
        let tenant = self.store.tenant(self.tenant());
        tenant.approvals(ApprovalQuery::default(), PageRequest::first(200)).await.unwrap().data
    }
}

fn ada() -> UserId {
    UserId::parse("ada").unwrap()
}

fn approve() -> DecisionInput {
    DecisionInput::new(Verdict::Approve)
}

fn deny(reason: &str) -> DecisionInput {
    DecisionInput { reason: Some(reason.to_owned()), ..DecisionInput::new(Verdict::Deny) }
}

/// A tool that must not run twice and needs approval. Counts its calls and keeps their arguments.
#[derive(Debug, Clone, Default)]
struct Written(Arc<Mutex<Vec<Value>>>);

impl Written {
    fn tool(&self, name: &str) -> TestTool {
        let written = Arc::clone(&self.0);
        let write = move |arguments: Value| {
            written.lock().unwrap().push(arguments);
            async { Ok("written".to_owned()) }
        };
        TestTool::new(name, write).spec(|spec| {
            spec.risk = Risk::High;
            spec.effect = Effect::Writes;
        })
    }

    fn all(&self) -> Vec<Value> {
        self.0.lock().unwrap().clone()
    }
}

/// The texts that an agent's model got as results of its calls.
fn results(model: &Scripted, agent: &str) -> Vec<String> {
    let asked = model.asked();
    let Some(last) = asked.iter().rev().find(|asked| asked.agent == agent) else { return Vec::new() };
    let results = last.messages.iter().filter_map(|message| match message {
        baton_core::chat::ChatMessage::Tool(result) => Some(result.content.to_string()),
        _ => None,
    });
    results.collect()
}

fn ids(requests: &[ApprovalRequest]) -> Vec<Uuid> {
    requests.iter().map(|request| request.approval_id).collect()
}

/// `a` calls `b` and `d`, `b` calls `c`, and `c` writes beside a free call.
fn three_levels() -> Scripted {
    Scripted::default()
        .script(
            "a",
            [
                ScriptedTurn::call("call_agent", &json!({"mission": "deep", "specialist": "b"}))
                    .and_call("call_agent", &json!({"mission": "beside", "specialist": "d"})),
                ScriptedTurn::text("Done."),
            ],
        )
        .script(
            "b",
            [
                ScriptedTurn::call("call_agent", &json!({"mission": "deeper", "specialist": "c"})),
                ScriptedTurn::text("B is done."),
            ],
        )
        .script(
            "c",
            [
                ScriptedTurn::call("write", &json!({"n": 1})).and_call("free", &json!({})),
                ScriptedTurn::text("C is done."),
            ],
        )
        .script("d", [ScriptedTurn::text("D is done.")])
}

/// F21, F26, F34, X19: three levels deep, with siblings at each level. The root sees the approval with its path; after a restart
/// the decision makes the call once, and no model is asked again.
#[tokio::test]
async fn f21_deep_approval_survives_a_restart() {
    let written = Written::default();
    let model = three_levels();
    let free = Arc::new(AtomicUsize::new(0));
    let (tools, scripted, count) = (written.clone(), model.clone(), Arc::clone(&free));
    let make = move || {
        let count = Arc::clone(&count);
        let free = TestTool::new("free", move |_| {
            count.fetch_add(1, Ordering::SeqCst);
            async { Ok("seen".to_owned()) }
        });
        let mut setup = Setup::new(&scripted)
            .agent(|a| a.agents = vec![crate::name("b"), crate::name("d")])
            .with("b", |b| b.agents = vec![crate::name("c")])
            .with("c", |_| {})
            .with("d", |_| {})
            .tool(tools.tool("write"))
            .tool(free);
        setup.ask_at = Some(Risk::High);
        setup
    };
    let mut site = Site::new(make).await;
    let (run, end) = site.run().await;
    assert_eq!(end.status, RunStatus::Waiting);
    let [request] = &end.waits_for[..] else { panic!("{:?}", end.waits_for) };
    assert_eq!(request.path, "a/turn:1/tool:1/call:b/turn:1/tool:1/call:c/turn:1/tool:1");
    assert_eq!((request.agent.as_str(), request.tool.as_str()), ("c", "write"));
    assert_eq!(
        (model.asked().len(), free.load(Ordering::SeqCst)),
        (4, 1),
        "each model once, the free sibling too"
    );
    assert_eq!((written.all().len(), site.engine.active_threads()), (0, 0), "nothing is left in memory");

    site.restart().await;
    assert_eq!(site.status(run).await, RunStatus::Waiting);
    site.decide(request.approval_id, approve()).await;
    let end = site.attend(run).await;
    assert_eq!((end.status, end.answer.unwrap().text.as_str()), (RunStatus::Completed, "Done."));
    assert_eq!(written.all(), [json!({"n": 1})]);
    assert_eq!(
        (model.asked().len(), free.load(Ordering::SeqCst)),
        (7, 1),
        "only the turns after the call are new"
    );
    let paid = end.rows.iter().filter(|row| row.path.contains("/tool:1") && row.path.ends_with("/tool:1"));
    assert_eq!(paid.count(), 3, "each call is in the ledger once");
    let events = site.store.tenant(site.tenant()).run_events(run, 0, 500).await.unwrap();
    let said = events.iter().filter_map(|event| match &event.kind {
        EventKind::Approval(approval) => Some(approval.outcome.status),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), [ApprovalStatus::Pending, ApprovalStatus::Approved]);
}
