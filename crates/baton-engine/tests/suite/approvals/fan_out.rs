//! Ten approvals at once, decided in any order, with restarts in between.

use std::time::Duration;

use baton_core::event::EventKind;
use baton_core::store::{ApprovalStatus, RunStatus};
use baton_core::tool::Risk;
use baton_models::scripted::{Scripted, ScriptedTurn};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::json;

use super::{Site, Written, ada, approve, deny, ids};
use crate::Setup;

const AGENTS: usize = 10;

fn names() -> Vec<String> {
    (0..AGENTS).map(|n| format!("w{n}")).collect()
}

/// `a` delegates to ten agents, and each writes its number.
fn ten(written: &Written) -> (Scripted, impl Fn() -> Setup + 'static) {
    let delegate = ScriptedTurn::call("delegate", &json!({"agents": names(), "message": "write"}));
    let mut model = Scripted::default().script("a", [delegate, ScriptedTurn::text("Done.")]);
    for (n, name) in names().iter().enumerate() {
        let write = ScriptedTurn::call("write", &json!({"n": n}));
        model = model.script(name, [write, ScriptedTurn::text("ok")]);
    }
    let (scripted, written) = (model.clone(), written.clone());
    let make = move || {
        let agents = names().iter().map(|one| crate::name(one)).collect();
        let mut setup = Setup::new(&scripted).agent(|a| a.agents = agents).tool(written.tool("write"));
        for name in names() {
            setup = setup.with(&name, |_| {});
        }
        setup.ask_at = Some(Risk::High);
        setup
    };
    (model, make)
}

/// Decides in this order, each with a yes or a no, and restarts before the decisions at these positions.
async fn decide_all(order: Vec<usize>, yes: Vec<bool>, restarts: [usize; 2]) {
    let written = Written::default();
    let (model, make) = ten(&written);
    let mut site = Site::new(make).await;
    let (run, end) = site.run().await;
    let open = ids(&end.waits_for);
    assert_eq!((end.status, open.len(), model.asked().len()), (RunStatus::Waiting, AGENTS, AGENTS + 1));
    for (nth, at) in order.iter().enumerate() {
        if restarts.contains(&nth) {
            site.engine.idle().await;
            site.restart().await;
        }
        let decision = if yes[*at] { approve() } else { deny("no") };
        site.decide(open[*at], decision).await;
        // Some decisions arrive while the run is active, others after it has parked.
        if at % 3 == 0 {
            site.engine.idle().await;
        }
    }
    crate::eventually(async || site.status(run).await == RunStatus::Completed).await;
    let numbers = |mut all: Vec<u64>| {
        all.sort_unstable();
        all
    };
    let calls = numbers(written.all().iter().map(|one| one["n"].as_u64().unwrap()).collect());
    let of = |at: usize| end.waits_for[at].arguments["n"].as_u64().unwrap();
    let expected = numbers((0..AGENTS).filter(|at| yes[*at]).map(of).collect());
    assert_eq!(calls, expected, "each approved call is made once, and no other");
    assert_eq!(model.asked().len(), 2 * (AGENTS + 1), "no model is asked twice");
    for approval in site.approvals().await {
        let at = open.iter().position(|id| *id == approval.request.approval_id).unwrap();
        let expected = if yes[at] { ApprovalStatus::Approved } else { ApprovalStatus::Denied };
        assert_eq!(approval.outcome.status, expected);
    }
}

/// The loser of a race waits when the winner answers: its approval is closed, and those who listen hear of it.
#[tokio::test]
async fn withdrawn_approval_of_a_race_is_published() {
    let written = Written::default();
    let race = json!({"agents": ["b", "c"], "message": "write", "strategy": "first_success"});
    let late = ScriptedTurn::default().wait(Duration::from_millis(200)).say("Mine.");
    let model = Scripted::default()
        .script("a", [ScriptedTurn::call("delegate", &race), ScriptedTurn::text("Done.")])
        .script("b", [ScriptedTurn::call("write", &json!({"n": 1}))])
        .script("c", [late]);
    let tools = written.clone();
    let make = move || {
        let mut setup = Setup::new(&model).agent(|a| a.agents = vec![crate::name("b"), crate::name("c")]);
        setup = setup
            .agent(crate::delegation::may_race)
            .with("b", |_| {})
            .with("c", |_| {})
            .tool(tools.tool("write"));
        setup.ask_at = Some(Risk::High);
        setup
    };
    let site = Site::new(make).await;
    let (run, end) = site.run().await;
    assert_eq!((end.status, written.all().len()), (RunStatus::Completed, 0));
    let [closed] = &site.approvals().await[..] else { panic!("one approval") };
    assert_eq!(closed.outcome.status, ApprovalStatus::Cancelled);
    let events = site.store.tenant(site.tenant()).run_events(run, 0, 500).await.unwrap();
    let said = events.iter().filter_map(|event| match &event.kind {
        EventKind::Approval(approval) => Some((event.path.to_string(), approval.outcome.status)),
        _ => None,
    });
    let (path, statuses): (Vec<_>, Vec<_>) = said.unzip();
    assert_eq!(statuses, [ApprovalStatus::Pending, ApprovalStatus::Cancelled], "{path:?}");
    let id = closed.request.approval_id;
    let refused = site.engine.decide(site.tenant(), id, &ada(), approve()).await.unwrap_err().to_string();
    assert_eq!(refused, "withdrawn: its result is no longer needed, or the run has ended");
}

/// F26: each call settles exactly once.
#[test]
fn f26_ten_approvals_settle_once_in_any_order() {
    let order = Just((0..AGENTS).collect::<Vec<_>>()).prop_shuffle();
    let cases = (order, proptest::collection::vec(any::<bool>(), AGENTS), [0..AGENTS, 0..AGENTS]);
    let config = ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let outcome = TestRunner::new(config).run(&cases, |(order, yes, restarts)| {
        runtime.block_on(decide_all(order, yes, restarts));
        Ok(())
    });
    outcome.unwrap();
}
