//! Transfers that outlive their process.

use std::sync::Arc;

use baton_core::event::EventKind;
use baton_core::store::{HopOutcome, RunStatus};
use baton_engine::Engine;
use baton_models::scripted::{Scripted, ScriptedTurn};

use super::{asked_of, chain, told, transfer};
use crate::Setup;
use crate::durability::{die, go_on, runtime};

fn hops(engine: &Engine, setup: Setup) -> Vec<(String, String, bool)> {
    runtime().block_on(async {
        let (_, request) = setup.parts().await;
        let store = engine.parts.store.tenant(&request.caller.tenant);
        let hops = store.hops(request.caller.thread_id).await.unwrap();
        hops.into_iter()
            .map(|hop| (hop.from.to_string(), hop.to.to_string(), hop.outcome == HopOutcome::Completed))
            .collect()
    })
}

/// G22: nobody who finished runs again, the baton stays with whom it was, and each pass is remembered once.
#[test]
fn g22_run_resumes_with_the_current_agent() {
    let first = Scripted::default()
        .script("a", [transfer("b")])
        .script("b", [transfer("c")])
        .script("c", [ScriptedTurn::default().say("Half an").hang()]);
    let (engine, _, _) =
        die(chain(&first, &["b", "c"]), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let second = Scripted::default().script("c", [ScriptedTurn::text("A whole answer.")]);
    let after = go_on(chain(&second, &["b", "c"]), &engine);
    after.is_sound();
    assert_eq!(after.run.status, RunStatus::Completed);
    assert_eq!(second.asked().len(), 1, "only who was interrupted is asked again");
    assert_eq!(after.count(|kind| matches!(kind, EventKind::Passed { .. })), 2);
    assert_eq!(after.count(|kind| matches!(kind, EventKind::ToolCalled { .. })), 2);
    assert_eq!(after.count(|kind| matches!(kind, EventKind::ToolReturned { .. })), 2);
    assert_eq!(after.messages.last().unwrap().message.agent.as_ref().unwrap().as_str(), "c");
    let way = |from: &str, to: &str| (from.to_owned(), to.to_owned(), true);
    assert_eq!(hops(&engine, chain(&second, &["b", "c"])), [way("a", "b"), way("b", "c")]);
}

/// G5, X24: a pass that failed before the crash still counts after it, and stays failed.
#[test]
fn g5_transfers_before_a_crash_count() {
    let limited = |model: &Scripted| chain(model, &["b"]).agent(|a| a.limits.max_transfers = 1);
    let first =
        Scripted::default().script("a", [transfer("b"), ScriptedTurn::default().say("I go on").hang()]);
    let (engine, _, _) = die(limited(&first), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let second = Scripted::default().script("a", [transfer("b"), ScriptedTurn::text("Myself.")]);
    let after = go_on(limited(&second), &engine);
    after.is_sound();
    assert_eq!(after.run.end.as_ref().unwrap().answer.as_deref(), Some("Myself."));
    assert!(told(&asked_of(&second, "a")[1]).join("").contains("at most 1 times"));
    assert!(asked_of(&second, "b").is_empty());
    assert_eq!(hops(&engine, limited(&second)), [("a".to_owned(), "b".to_owned(), false)]);
}

/// At the limit, those who passed the baton are walked through again without counting twice.
#[test]
fn five_transfers_are_replayed() {
    let names = ["b", "c", "d", "e", "f"];
    let mut first = Scripted::default().script("a", [transfer("b")]);
    for (from, to) in names.iter().zip(&names[1..]) {
        first = first.script(from, [transfer(to)]);
    }
    let first = first.script("f", [ScriptedTurn::default().say("Half an").hang()]);
    let (engine, _, _) =
        die(chain(&first, &names), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let second = Scripted::default().script("f", [ScriptedTurn::text("A whole answer.")]);
    let after = go_on(chain(&second, &names), &engine);
    after.is_sound();
    assert_eq!(after.run.end.as_ref().unwrap().answer.as_deref(), Some("A whole answer."));
    assert_eq!(hops(&engine, chain(&second, &names)).len(), 5);
    drop(Arc::clone(&engine));
}
