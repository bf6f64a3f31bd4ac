//! The ledger of hops: every way in which one agent involves another, with its outcome, latency and cost.

use std::sync::Arc;

use baton_core::TenantStore;
use baton_core::agent::{Agent, Destination, RoutingMode, Strategy};
use baton_core::event::EventKind;
use baton_core::model::ModelErrorKind;
use baton_core::store::{Cancel, Hop, HopKind, RunStatus};
use baton_engine::{Engine, HandoffResult, ReturnStatus, RunTask};
use baton_models::scripted::{Scripted, ScriptedTurn};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;

use crate::advisors::consults;
use crate::by_request::delegation;
use crate::calling::{call, logged};
use crate::delegation::may_ask;
use crate::durability::{die, runtime, successor};
use crate::handoffs::{Talk, complete, setup};
use crate::router::{choose, routes};
use crate::team::rounds;
use crate::transfers::{Kept, collaborates, transfer};
use crate::{Setup, eventually, name};

/// `delegation a → b completed`
fn line(hop: &Hop) -> String {
    format!("{} {} → {} {}", hop.kind, hop.from, hop.to, hop.outcome)
}

fn lines(hops: &[Hop]) -> Vec<String> {
    let mut lines: Vec<String> = hops.iter().map(line).collect();
    lines.sort();
    lines
}

async fn hops_of(talk: &Talk) -> Vec<Hop> {
    talk.store().hops(talk.request.caller.thread_id).await.unwrap()
}

/// How many hops the thread has, which may not have begun.
async fn hops_of_known(talk: &Talk) -> usize {
    talk.store().hops(talk.request.caller.thread_id).await.map_or(0, |hops| hops.len())
}

fn text(text: &str) -> ScriptedTurn {
    ScriptedTurn::text(text).tokens(100, 10)
}

/// `a` asks `legal` for advice, delegates to `b`, passes the baton to the router `r`, which chooses the team of `t`; `d` is next in the
/// chain of `a`.
fn everything(model: &Scripted) -> Setup {
    let main = |a: &mut Agent| {
        consults(a, &["legal"]);
        may_ask(&["b"])(a);
        collaborates(a, &["r"]);
        a.handoff = vec![Destination { to: name("d"), when: None }];
    };
    Setup::new(model)
        .agent(main)
        .with("legal", |_| {})
        .with("b", |_| {})
        .with("r", |r| routes(r, RoutingMode::Pure, &["t"]))
        .with("t", |t| t.team = Some(rounds(&["m"], 1)))
        .with("m", |_| {})
        .with("d", |_| {})
}

/// G7, G24, X1: one ledger has all six kinds of a run, and the cost of each hop is that of the ledger rows below it.
#[tokio::test]
async fn g_7_x_1_every_kind_of_hop_is_recorded_with_its_cost() {
    let model = Scripted::default()
        .script("legal", [text("It is legal.")])
        .script("a", [call("b"), transfer("r")])
        .script("b", [text("Hot.")])
        .script("r", [choose("t")])
        .script("m", [ScriptedTurn::call("broadcast", &json!({ "message": "Mine." })), text("Said.")])
        .script("t", [text("We agree.")])
        .script("d", [text("Approved.")]);
    let kept = Kept::of(everything(&model)).await;
    assert_eq!(kept.ran.answer(), "Approved.", "{}", kept.ran.log());
    let expected = [
        "advice a → legal completed",
        "chain a → d completed",
        "delegation a → b completed",
        "route r → t completed",
        "team t → m completed",
        "transfer a → r completed",
    ];
    assert_eq!(lines(&kept.hops), expected);
    for hop in &kept.hops {
        let path = |row: &&baton_core::LedgerRow| {
            let segment = match hop.kind {
                HopKind::Advice => "/advisor:legal",
                HopKind::Chain => "/handoff:d",
                HopKind::Delegation => "/call:b",
                HopKind::Route => "/route:t",
                HopKind::Team => "/member:m",
                HopKind::Transfer => "/transfer:r",
                HopKind::Handoff => "-",
            };
            row.path.contains(segment)
        };
        let below: i64 = kept.ran.end.rows.iter().filter(path).map(|row| row.cost.known_part().nanos()).sum();
        assert!(below > 0 && hop.cost.nanos() == below, "{}: {} and {below}", line(hop), hop.cost);
        assert!(!hop.reason.is_empty(), "{}", line(hop));
    }
    let transfer = kept.hops.iter().find(|hop| hop.kind == HopKind::Transfer).unwrap();
    let route = kept.hops.iter().find(|hop| hop.kind == HopKind::Route).unwrap();
    assert!(transfer.cost >= route.cost && transfer.at <= route.at, "a hop includes those below it");
}

/// The way to another agent over HTTP is a hop like that of a model.
#[tokio::test]
async fn g_7_delegation_by_request_is_recorded() {
    let model = Scripted::default()
        .script("b", [text("B.")])
        .script("c", [ScriptedTurn::error(ModelErrorKind::InvalidRequest)]);
    let setup = Setup::new(&model).with("b", |_| {}).with("c", |_| {});
    let kept = Kept::of(setup.task(RunTask::Delegate(delegation(&["b", "c"])))).await;
    assert_eq!(lines(&kept.hops), ["delegation a → b completed", "delegation a → c failed"]);
}

/// G14: the loser of a race was cancelled, which is no success.
#[tokio::test(start_paused = true)]
async fn g_14_cancelled_delegation_is_no_success() {
    let model = Scripted::default().script("b", [text("B.")]).script("c", [ScriptedTurn::default().hang()]);
    let setup = Setup::new(&model).agent(crate::delegation::may_race).with("b", |_| {}).with("c", |_| {});
    let plan = baton_engine::DelegationPlan { strategy: Strategy::FirstSuccess, ..delegation(&["b", "c"]) };
    let (parts, request) = setup.task(RunTask::Delegate(plan)).parts().await;
    let engine = Engine::new(parts);
    engine.start(request.clone()).await.unwrap().finish().await;
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let hops = store.hops(request.caller.thread_id).await.unwrap();
    assert_eq!(lines(&hops), ["delegation a → b completed", "delegation a → c cancelled"]);
    let patterns = store.patterns().await.unwrap();
    let counts: Vec<_> = patterns.iter().map(|one| (one.to.as_str(), one.count, one.successes)).collect();
    assert_eq!(counts, [("b", 1, 1), ("c", 1, 0)]);
}

/// G14: agents at work when the run is cancelled are cancelled hops, with what they had cost.
#[tokio::test]
async fn g_14_cancelled_run_records_its_open_hops() {
    let model = Scripted::default()
        .script("a", [transfer("b")])
        .script("b", [ScriptedTurn::default().say("on and on").hang()]);
    let setup = Setup::new(&model).agent(|a| collaborates(a, &["b"])).with("b", |_| {});
    let (parts, request) = setup.parts().await;
    let engine = Engine::new(parts);
    let mut run = engine.start(request.clone()).await.unwrap();
    while !matches!(run.events.recv().await.unwrap().kind, EventKind::TextDelta { .. }) {}
    run.cancel();
    assert_eq!(run.finish().await.status, RunStatus::Cancelled);
    let hops =
        engine.parts.store.tenant(&request.caller.tenant).hops(request.caller.thread_id).await.unwrap();
    assert_eq!(lines(&hops), ["transfer a → b cancelled"]);
    assert!(hops[0].cost.nanos() > 0, "{hops:?}");
}

/// The process dies while `b` works, and the run is cancelled before another process takes it over: the store records the hop.
#[test]
fn g_22_hop_of_a_dead_process_is_recorded_when_its_run_is_cancelled() {
    let model = || {
        Scripted::default()
            .script("a", [transfer("b")])
            .script("b", [ScriptedTurn::default().say("on and on").hang()])
    };
    let setup = |model: &Scripted| Setup::new(model).agent(|a| collaborates(a, &["b"])).with("b", |_| {});
    let first = model();
    let is_answering = |event: &baton_core::Event| {
        matches!(event.kind, EventKind::TextDelta { .. }) && event.path.contains("transfer:b")
    };
    let (engine, request, events) = die(setup(&first), is_answering);
    let hops = runtime().block_on(async {
        let parts = setup(&model()).parts().await.0;
        let next = Engine::new(successor(parts, &engine.parts));
        next.parts.store.release(&engine.parts.identity.owner).await.unwrap();
        let store = next.parts.store.tenant(&request.caller.tenant);
        store.cancel_run(events[0].run_id, Cancel::Abort).await.unwrap();
        store.hops(request.caller.thread_id).await.unwrap()
    });
    assert_eq!(lines(&hops), ["transfer a → b cancelled"]);
}

/// C-37, G7: the hop of a thread handoff lasts from its start to its end and costs what its holder spent in all its runs.
#[tokio::test]
async fn g_7_thread_handoff_is_one_hop_with_the_cost_of_its_holder() {
    let model = Scripted::default()
        .script("a", [transfer("maker"), text("Great.")])
        .script("maker", [text("What should it do?"), text("And when?"), complete()]);
    let talk = Talk::new(setup(&model)).await;
    let mut rows = Vec::new();
    for words in ["I want to create a skill", "Send a message", "On errors"] {
        assert_eq!(hops_of_known(&talk).await, 0, "it is recorded when it ends");
        rows.extend(talk.say(words).await.end.rows);
    }
    let hops = hops_of(&talk).await;
    assert_eq!(lines(&hops), ["handoff a → maker completed"]);
    let spent: i64 =
        rows.iter().filter(|row| row.agent == name("maker")).map(|row| row.cost.known_part().nanos()).sum();
    assert_eq!(hops[0].cost.nanos(), spent);
    assert!(rows.iter().any(|row| row.agent == name("a") && row.cost.known_part().nanos() > 0));
    let opened_in = hops[0].run_id.unwrap().to_string();
    assert!(rows[0].session_id.as_str().starts_with(&opened_in), "the run that opened it");
}

/// G7, C-8: handoffs that a program starts and ends.
#[tokio::test]
async fn g_7_handoff_by_request_is_recorded_with_its_outcome() {
    for (status, outcome) in [
        (Some(ReturnStatus::Completed), "completed"),
        (Some(ReturnStatus::Cancelled), "declined"),
        (Some(ReturnStatus::Error), "failed"),
        (None, "cancelled"),
    ] {
        let model = Scripted::default()
            .script("a", vec![text("Hello."); 3])
            .script("maker", [text("Hi! Alerts, then?"), text("Good.")]);
        let talk = Talk::new(setup(&model)).await;
        talk.say("I have an idea").await;
        talk.engine.start_handoff(talk.asking_for("maker")).await.unwrap();
        talk.rest().await;
        talk.say("Yes").await;
        match status {
            Some(status) => {
                let result = HandoffResult { status, ..HandoffResult::default() };
                talk.engine.return_handoff(talk.leaving(), result).await.unwrap();
            }
            None => drop(talk.engine.exit_handoff(talk.leaving()).await.unwrap()),
        }
        talk.rest().await;
        let hops = hops_of(&talk).await;
        assert_eq!(lines(&hops), [format!("handoff a → maker {outcome}")]);
        assert_eq!(hops[0].reason, "a button was pressed");
        let one_turn = 100 * 1_000 + 10 * 1_000;
        assert_eq!(hops[0].cost.nanos(), 2 * one_turn, "two answers of the holder, and none of `a`");
        assert!(hops[0].run_id.is_some());
    }
}

/// C-21: a thread that its target does not accept is a declined hop.
#[tokio::test]
async fn g_7_refused_handoff_is_a_declined_hop() {
    let model = Scripted::default().script("a", [transfer("maker"), text("Myself.")]);
    let talk = Talk::new(setup(&model).rights(&["handoff:initiate"])).await;
    let ran = talk.say("I want to create a skill").await;
    assert_eq!(ran.answer(), "Myself.", "{}", ran.log());
    assert_eq!(lines(&hops_of(&talk).await), ["handoff a → maker declined"]);
}

/// H3: each delegation and each handoff is logged exactly once, also those that a program starts.
#[tokio::test]
async fn h_3_delegations_and_handoffs_are_logged_once() {
    let count = |lines: &[String], words: &str| lines.iter().filter(|line| line.contains(words)).count();
    let lines = logged(Box::pin(async {
        let model = Scripted::default()
            .script("a", [call("b"), transfer("maker")])
            .script("b", [text("B.")])
            .script("maker", [text("Hi!"), text("Hi again!")]);
        let both = setup(&model).agent(may_ask(&["b"])).with("b", |_| {});
        let talk = Talk::new(both).await;
        talk.say("create a skill").await;
        talk.say("Go on").await;
    }))
    .await;
    assert_eq!(count(&lines, "Delegation started"), 1, "{lines:#?}");
    assert_eq!(count(&lines, "Handoff initiated"), 1, "{lines:#?}");
    let lines = logged(Box::pin(async {
        let model =
            Scripted::default().script("a", [text("Hello.")]).script("maker", [text("Hi!"), text("Good.")]);
        let talk = Talk::new(setup(&model)).await;
        talk.say("I have an idea").await;
        talk.engine.start_handoff(talk.asking_for("maker")).await.unwrap();
        talk.rest().await;
        talk.say("Yes").await;
    }))
    .await;
    assert_eq!(count(&lines, "Handoff initiated"), 1, "{lines:#?}");
    let line = lines.iter().find(|line| line.contains("Handoff initiated")).unwrap();
    for field in ["thread_id=550e8400", "target_agent=maker", "handoff_reason=a button was pressed"] {
        assert!(line.contains(field), "{line}");
    }
}

/// H3: a process that takes a run over does not log again what the one before it has.
#[test]
fn h_3_resumed_run_logs_its_delegation_once() {
    let dies =
        Scripted::default().script("a", [call("b")]).script("b", [ScriptedTurn::default().say("B").hang()]);
    let setup = |model: &Scripted| Setup::new(model).agent(may_ask(&["b"])).with("b", |_| {});
    let is_asked = |event: &baton_core::Event| {
        matches!(event.kind, EventKind::TextDelta { .. }) && event.path.contains("call:b")
    };
    let (engine, request, _) = die(setup(&dies), is_asked);
    let goes_on = Scripted::default().script("a", [text("Done.")]).script("b", [text("B.")]);
    // On one thread, so that everything is logged where it is listened to.
    let process = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let lines = process.block_on(logged(Box::pin(async {
        let parts = setup(&goes_on).parts().await.0;
        let next = Engine::new(successor(parts, &engine.parts));
        next.recover().await.unwrap();
        let store: Arc<dyn TenantStore> = next.parts.store.tenant(&request.caller.tenant);
        eventually(async || store.thread(request.caller.thread_id, None).await.unwrap().active_run.is_none())
            .await;
        let hops = store.hops(request.caller.thread_id).await.unwrap();
        assert_eq!(lines(&hops), ["delegation a → b completed"]);
    })));
    let has = |words: &str| lines.iter().any(|line| line.contains(words));
    assert!(has("sub_agent_ended") && !has("Delegation started"), "{lines:#?}");
}

/// G14: sums are the same before and after hops are added to them, and after their thread is deleted.
#[tokio::test]
async fn g_14_settled_hops_stay_in_the_sums() {
    let model = Scripted::default().script("b", vec![text("B."); 3]);
    let setup = Setup::new(&model).with("b", |_| {}).task(RunTask::Delegate(delegation(&["b"])));
    let talk = Talk::new(setup).await;
    for _ in 0..3 {
        talk.say("Again").await;
    }
    let store = talk.store();
    let before = store.patterns().await.unwrap();
    assert_eq!((before.len(), before[0].count, before[0].kind), (1, 3, HopKind::Delegation));
    assert_eq!(store.settle_hops(Timestamp::now() - SignedDuration::from_mins(1), 10).await, Ok(0));
    assert_eq!(store.settle_hops(Timestamp::now(), 1).await, Ok(1));
    assert_eq!(store.patterns().await.unwrap(), before);
    assert_eq!(store.settle_hops(Timestamp::now(), 10).await, Ok(2));
    assert_eq!(store.settle_hops(Timestamp::now(), 10).await, Ok(0));
    assert_eq!(store.patterns().await.unwrap(), before);
    talk.say("And again").await;
    store.delete_thread(talk.request.caller.thread_id, None).await.unwrap();
    let after = store.patterns().await.unwrap();
    assert_eq!((after[0].count, after[0].successes), (4, 3), "the fourth had no reply left");
    assert!(after.iter().all(|one| one.kind != HopKind::Handoff));
}
