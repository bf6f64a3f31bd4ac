//! Decisions: edited arguments, denial, memory, and what is refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_core::store::{ApprovalStatus, AuditQuery, PageRequest, Revocation, RunStatus};
use baton_core::tool::Risk;
use baton_engine::{DecideError, DecisionInput};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;
use tokio::sync::Notify;

use super::{Site, Written, ada, approve, deny, results};
use crate::{Setup, TestTool};

/// Runs of `a` that call `write` and then answer.
fn writing(written: &Written, runs: usize) -> (Scripted, impl Fn() -> Setup + 'static) {
    let one = || [ScriptedTurn::call("write", &json!({"n": 1})), ScriptedTurn::text("Done.")];
    let model = Scripted::default().script("a", (0..runs).flat_map(|_| one()));
    let (scripted, written) = (model.clone(), written.clone());
    let make = move || {
        let mut setup = Setup::new(&scripted).tool(written.tool("write"));
        setup.ask_at = Some(Risk::High);
        setup
    };
    (model, make)
}

#[tokio::test]
async fn edited_arguments_are_validated_and_used() {
    let written = Written::default();
    let (model, make) = writing(&written, 1);
    let site = Site::new(make).await;
    let (run, end) = site.run().await;
    let id = end.waits_for[0].approval_id;
    let edited = |arguments| DecisionInput { arguments: Some(arguments), ..approve() };
    let wrong =
        [(json!({"n": "x"}), "/arguments/n"), (json!({"m": 1}), "/arguments"), (json!([]), "/arguments")];
    for (bad, pointer) in wrong {
        let refused = site.engine.decide(site.tenant(), id, &ada(), edited(bad)).await;
        let is_expected = matches!(&refused, Err(DecideError::Invalid { pointer: at, .. }) if at == pointer);
        assert!(is_expected, "{refused:?}");
    }
    let other = DecisionInput { digest: Some("0".repeat(64)), ..approve() };
    let changed = site.engine.decide(site.tenant(), id, &ada(), other).await;
    assert!(matches!(changed, Err(DecideError::Changed(_))), "{changed:?}");
    let answer = DecisionInput { answer: Some(json!("yes")), ..approve() };
    let no_question = site.engine.decide(site.tenant(), id, &ada(), answer).await;
    assert!(matches!(no_question, Err(DecideError::Invalid { .. })), "{no_question:?}");
    let seen = DecisionInput { digest: Some(end.waits_for[0].digest.clone()), ..edited(json!({"n": 7})) };
    assert_eq!(site.decide(id, seen).await.outcome.edited, Some(json!({"n": 7})));
    assert_eq!(site.attend(run).await.status, RunStatus::Completed);
    assert_eq!(written.all(), [json!({"n": 7})]);
    let told = results(&model, "a");
    assert!(told[0].contains(r#"with other arguments: {"n":7}"#) && told[0].ends_with("written"), "{told:?}");
    let again = site.engine.decide(site.tenant(), id, &ada(), deny("no")).await;
    assert!(matches!(again, Err(DecideError::Settled(of)) if of.outcome.status == ApprovalStatus::Approved));
}

/// F26: the model reads the denial with its reason, and the tool is not run.
#[tokio::test]
async fn f26_denial_is_text_for_the_model() {
    let written = Written::default();
    let (model, make) = writing(&written, 1);
    let site = Site::new(make).await;
    let (run, end) = site.run().await;
    site.decide(end.waits_for[0].approval_id, deny("not on a Friday")).await;
    assert_eq!(site.attend(run).await.status, RunStatus::Completed);
    let told = results(&model, "a");
    assert!(told[0].contains("a person denied this: not on a Friday"), "{told:?}");
    assert!(told[0].contains("not run") && written.all().is_empty(), "{told:?}");
}

/// A denial counts although the rules have been relaxed since the call was asked about.
#[tokio::test]
async fn denial_counts_after_the_rules_were_relaxed() {
    let written = Written::default();
    let (model, make) = writing(&written, 1);
    let is_relaxed = Arc::new(AtomicBool::new(false));
    let relaxed = Arc::clone(&is_relaxed);
    let make = move || {
        let mut setup = make();
        setup.ask_at = (!relaxed.load(Ordering::SeqCst)).then_some(Risk::High);
        setup
    };
    let mut site = Site::new(make).await;
    let (run, end) = site.run().await;
    is_relaxed.store(true, Ordering::SeqCst);
    site.restart().await;
    site.decide(end.waits_for[0].approval_id, deny("not now")).await;
    assert_eq!(site.attend(run).await.status, RunStatus::Completed);
    assert!(written.all().is_empty() && results(&model, "a")[0].contains("not now"));
}

#[tokio::test]
async fn remembered_decision_holds_for_the_thread() {
    for (decision, calls) in [(approve(), 2), (deny("never"), 0)] {
        let written = Written::default();
        let (model, make) = writing(&written, 3);
        let mut site = Site::new(make).await;
        let (run, end) = site.run().await;
        let remember = DecisionInput { remember: true, ..decision };
        site.decide(end.waits_for[0].approval_id, remember).await;
        assert_eq!(site.attend(run).await.status, RunStatus::Completed);
        let (_, end) = site.run().await;
        let told = results(&model, "a");
        assert_eq!((end.status, written.all().len()), (RunStatus::Completed, calls), "{told:?}");
        assert_eq!(site.approvals().await.len(), 1, "it is not asked again");
        let query = AuditQuery { action: Some("approval.remembered".to_owned()), ..AuditQuery::default() };
        let tenant = site.store.tenant(site.tenant());
        let trail = tenant.audit(query, PageRequest::first(10)).await.unwrap().data;
        assert_eq!(trail.len(), 1, "the trail says why it ran or not");
        site.request.caller.thread_id = baton_core::ThreadId::random();
        assert_eq!(site.run().await.1.status, RunStatus::Waiting, "another thread asks");
    }
}

#[tokio::test]
async fn revoked_decision_is_asked_for_again() {
    let written = Written::default();
    let (_, make) = writing(&written, 3);
    let site = Site::new(make).await;
    let (run, end) = site.run().await;
    site.decide(end.waits_for[0].approval_id, DecisionInput { remember: true, ..approve() }).await;
    assert_eq!(site.attend(run).await.status, RunStatus::Completed);
    let (thread_id, tool, by) = (site.thread(), "write".to_owned(), ada());
    let revocation = Revocation { thread_id, tool, by, trace_id: None };
    assert_eq!(site.store.tenant(site.tenant()).forget_decisions(revocation).await, Ok(true));
    assert_eq!(site.run().await.1.status, RunStatus::Waiting);
    assert_eq!(written.all().len(), 1);
}

/// A decision that comes while a sibling still runs is found when the run parks.
#[tokio::test]
async fn early_decision_is_not_lost() {
    let (written, release) = (Written::default(), Arc::new(Notify::new()));
    let both = ScriptedTurn::call("write", &json!({"n": 1})).and_call("slow", &json!({}));
    let model = Scripted::default().script("a", [both, ScriptedTurn::text("Done.")]);
    let (scripted, write, gate) = (model.clone(), written.clone(), Arc::clone(&release));
    let make = move || {
        let gate = Arc::clone(&gate);
        let slow = TestTool::new("slow", move |_| {
            let gate = Arc::clone(&gate);
            async move {
                gate.notified().await;
                Ok("at last".to_owned())
            }
        });
        let mut setup = Setup::new(&scripted).tool(write.tool("write")).tool(slow);
        setup.ask_at = Some(Risk::High);
        setup
    };
    let site = Site::new(make).await;
    let run = site.start().await;
    let id = run.id;
    crate::eventually(async || !site.approvals().await.is_empty()).await;
    let asked = site.approvals().await.remove(0);
    site.decide(asked.request.approval_id, approve()).await;
    assert_eq!(site.status(id).await, RunStatus::Running, "the sibling is not cancelled");
    release.notify_one();
    crate::eventually(async || site.status(id).await == RunStatus::Completed).await;
    assert_eq!((written.all().len(), results(&model, "a").len()), (1, 2));
    drop(run);
}

/// A run that waits does not keep the thread from other messages.
#[tokio::test]
async fn thread_goes_on_while_a_run_waits() {
    let written = Written::default();
    let (_, make) = writing(&written, 2);
    let site = Site::new(make).await;
    let (first, asked) = site.run().await;
    let (second, other) = site.run().await;
    assert_ne!(first, second);
    assert_eq!(other.answer.unwrap().text, "Done.", "the next turn of the script");
    site.decide(asked.waits_for[0].approval_id, approve()).await;
    let end = site.attend(first).await;
    assert_eq!((end.status, written.all().len()), (RunStatus::Waiting, 1), "its next turn asks again");
    assert_ne!(end.waits_for[0].approval_id, asked.waits_for[0].approval_id);
}

/// Without a decision in time the call is denied, whichever process finds out.
#[tokio::test]
async fn expiry_is_a_denial() {
    let written = Written::default();
    let (model, make) = writing(&written, 1);
    let make = move || {
        let mut setup = make();
        setup.expiry = Duration::from_millis(30);
        setup
    };
    let mut site = Site::new(make).await;
    let (run, end) = site.run().await;
    let id = end.waits_for[0].approval_id;
    tokio::time::sleep(Duration::from_millis(60)).await;
    let late = site.engine.decide(site.tenant(), id, &ada(), approve()).await;
    assert!(matches!(late, Err(DecideError::Settled(of)) if of.outcome.status == ApprovalStatus::Expired));
    site.restart().await;
    site.engine.recover().await.unwrap();
    assert_eq!(site.status(run).await, RunStatus::Completed);
    assert!(results(&model, "a")[0].contains("the approval expired; the call was not made"));
    assert!(written.all().is_empty());
}
