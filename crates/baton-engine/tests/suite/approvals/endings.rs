//! Stop and cancel reach runs that wait.

use baton_core::event::EventKind;
use baton_core::store::{ApprovalStatus, Cancel, RunStatus};
use baton_core::tool::Risk;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::{Site, Written, ada, approve, results};
use crate::Setup;

/// `a` and its sub-agent `b` wait for `write` each.
fn waiting(written: &Written) -> (Scripted, impl Fn() -> Setup + 'static) {
    let both = ScriptedTurn::call("call_agent", &json!({"mission": "x", "specialist": "b"}))
        .and_call("write", &json!({"n": 1}));
    let model = Scripted::default()
        .script("a", [both, ScriptedTurn::text("Closing.")])
        .script("b", [ScriptedTurn::call("write", &json!({"n": 2})), ScriptedTurn::text("B closes.")]);
    let (scripted, written) = (model.clone(), written.clone());
    let make = move || {
        let setup = Setup::new(&scripted).agent(|a| a.agents = vec![crate::name("b")]);
        let mut setup = setup.with("b", |_| {}).tool(written.tool("write"));
        setup.ask_at = Some(Risk::High);
        setup
    };
    (model, make)
}

/// One closing turn for each session, no tool, and nothing is left open.
#[tokio::test]
async fn stopping_a_parked_run_allows_one_closing_turn() {
    let written = Written::default();
    let (model, make) = waiting(&written);
    let mut site = Site::new(make).await;
    let (run, end) = site.run().await;
    assert_eq!(end.waits_for.len(), 2);
    site.restart().await;
    assert_eq!(site.engine.cancel(site.tenant(), run, Cancel::Stop).await, Ok(RunStatus::Queued));
    let end = site.attend(run).await;
    assert_eq!((end.status, end.answer.unwrap().text.as_str()), (RunStatus::Completed, "Closing."));
    assert_eq!((written.all().len(), model.asked().len()), (0, 4));
    assert!(results(&model, "b")[0].contains("a stop was requested"));
    assert!(site.approvals().await.iter().all(|one| one.outcome.status == ApprovalStatus::Cancelled));
}

/// No worker has the run, and it ends nevertheless.
#[tokio::test]
async fn aborting_a_parked_run_ends_it_at_once() {
    let written = Written::default();
    let (model, make) = waiting(&written);
    let mut site = Site::new(make).await;
    let (run, end) = site.run().await;
    site.restart().await;
    assert_eq!(site.engine.cancel(site.tenant(), run, Cancel::Abort).await, Ok(RunStatus::Cancelled));
    assert!(site.approvals().await.iter().all(|one| one.outcome.status == ApprovalStatus::Cancelled));
    let late = site.engine.decide(site.tenant(), end.waits_for[0].approval_id, &ada(), approve()).await;
    assert!(late.is_err());
    let events = site.store.tenant(site.tenant()).run_events(run, 0, 200).await.unwrap();
    let last = &events.last().unwrap().kind;
    assert!(matches!(last, EventKind::RunFinished { usage, .. } if *usage == end.usage), "{last:?}");
    assert_eq!((site.engine.recover().await, model.asked().len()), (Ok(0), 2));
}
