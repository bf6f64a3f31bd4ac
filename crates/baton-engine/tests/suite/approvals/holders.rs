//! A run of a holder that waits for a person ends with the handoff, however that ends.

use std::time::Duration;

use baton_core::RunId;
use baton_core::model::ModelErrorKind;
use baton_core::store::{ApprovalStatus, RunStatus};
use baton_core::tool::Risk;
use baton_models::scripted::{Scripted, ScriptedTurn};
use jiff::Timestamp;
use serde_json::json;

use super::Written;
use crate::handoffs::{Talk, setup};
use crate::transfers::transfer;

/// `maker` holds the thread, and its run waits for `write`.
async fn parked() -> (Talk, RunId, Written) {
    let written = Written::default();
    let model = Scripted::default()
        .script("a", [transfer("maker")])
        .script("a", vec![ScriptedTurn::text("Back."); 3])
        .script("maker", [ScriptedTurn::text("Hi!"), ScriptedTurn::call("write", &json!({"n": 1}))])
        .script("maker", vec![ScriptedTurn::error(ModelErrorKind::Auth); 2]);
    let mut setup = setup(&model).tool(written.tool("write"));
    setup.ask_at = Some(Risk::High);
    let talk = Talk::new(setup).await;
    talk.say("Make me a skill").await;
    let ran = talk.say("Write it").await;
    assert_eq!(ran.end.status, RunStatus::Waiting, "{}", ran.log());
    (talk, ran.events[0].run_id, written)
}

async fn expire(talk: &Talk) {
    let mut handoff = talk.open().await.unwrap();
    handoff.expires_at = Some(Timestamp::now());
    talk.store().update_handoff(handoff).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
}

async fn must_have_ended(talk: &Talk, run: RunId, how: &str) {
    talk.rest().await;
    assert!(talk.open().await.is_none(), "{how}");
    let store = talk.store();
    assert_eq!(store.run(run).await.unwrap().status, RunStatus::Cancelled, "{how}");
    let asked = store.run_approvals(run).await.unwrap();
    assert!(asked.iter().all(|one| one.outcome.status == ApprovalStatus::Cancelled), "{how}: {asked:?}");
}

#[tokio::test]
async fn leaving_the_holder_ends_its_parked_run() {
    let (talk, run, _) = parked().await;
    talk.engine.exit_handoff(talk.leaving()).await.unwrap();
    must_have_ended(&talk, run, "by request").await;
    let (talk, run, _) = parked().await;
    talk.say("cancel").await;
    must_have_ended(&talk, run, "by an exit word").await;
}

#[tokio::test]
async fn expiry_of_the_handoff_ends_its_parked_run() {
    let (talk, run, _) = parked().await;
    expire(&talk).await;
    let (tenant, thread) = (&talk.request.caller.tenant, talk.request.caller.thread_id);
    assert!(talk.engine.open_handoff(tenant, thread).await.unwrap().is_none());
    must_have_ended(&talk, run, "found by a look").await;
    let (talk, run, _) = parked().await;
    expire(&talk).await;
    talk.say("Are you there?").await;
    must_have_ended(&talk, run, "found by a message").await;
    let (talk, run, _) = parked().await;
    expire(&talk).await;
    let maintenance = tokio::spawn(talk.engine.clone().run_maintenance(Duration::from_millis(10)));
    let ended = async {
        while talk.open().await.is_some() || talk.store().run(run).await.unwrap().status == RunStatus::Waiting
        {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(crate::LONG, ended).await.unwrap();
    maintenance.abort();
    must_have_ended(&talk, run, "found by maintenance").await;
}

/// Other runs of the holder fail too often.
#[tokio::test]
async fn end_by_another_run_ends_the_parked_one() {
    let (talk, run, written) = parked().await;
    talk.say("Hello?").await;
    assert_eq!(talk.store().run(run).await.unwrap().status, RunStatus::Waiting, "one failure is not the end");
    talk.say("Hello?").await;
    must_have_ended(&talk, run, "by failures").await;
    assert!(written.all().is_empty());
}
