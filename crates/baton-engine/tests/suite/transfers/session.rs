//! What is kept of a thread whose baton goes from hand to hand: one record of it, and views made from that.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::Arc;

use baton_core::ThreadId;
use baton_core::event::{Event, EventKind};
use baton_core::message::Part;
use baton_core::store::{MessageQuery, PageRequest, RunQuery};
use baton_engine::{Agents, Engine, Failure, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use tokio::sync::watch;

use super::{Kept, asked_of, chain, transfer};
use crate::{Setup, named};

async fn on_file(setup: Setup, folder: &Path) -> (Arc<Engine>, RunRequest) {
    let (mut parts, request) = setup.parts().await;
    parts.store = Arc::new(baton_store::open("sqlite://baton.db", folder).await.unwrap());
    (Engine::new(parts), request)
}

/// G24: a pass is in the chain whenever the event log says that its receiver has ended: both are one write, and if one of them is
/// refused, neither is there.
#[tokio::test]
async fn g24_hops_are_stored_with_the_event_log() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::default().script("a", [transfer("b")]).script("b", [ScriptedTurn::text("I know.")]);
    let (engine, request) = on_file(chain(&model, &["b"]), folder.path()).await;
    let file = rusqlite::Connection::open(folder.path().join("baton.db")).unwrap();
    let stop = "CREATE TRIGGER stop BEFORE INSERT ON hops BEGIN SELECT RAISE(ABORT, 'no hop'); END";
    file.execute_batch(stop).unwrap();
    let run = engine.start(request.clone()).await.unwrap();
    let id = run.id;
    let finished = run.finish().await;
    assert!(matches!(finished.failure, Some(Failure::Store(_))), "{:?}", finished.failure);
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let events = store.run_events(id, 0, 100).await.unwrap();
    let has_ended = |event: &Event| {
        event.path.contains("/transfer:b") && matches!(event.kind, EventKind::SessionFinished { .. })
    };
    assert!(!events.is_empty() && !events.iter().any(has_ended), "{events:?}");
}

/// G9, G25: each thread has its own chain, appended to run by run, with who answers and what was asked; nobody else reads the file.
#[tokio::test]
async fn g25_each_thread_has_its_own_hops() {
    let folder = tempfile::tempdir().unwrap();
    let model = Scripted::default()
        .script("a", [transfer("b"), ScriptedTurn::text("Myself."), transfer("b")])
        .script("b", [ScriptedTurn::text("One."), ScriptedTurn::text("Three.")]);
    let (engine, request) = on_file(chain(&model, &["b"]), folder.path()).await;
    let (first, second) = (request.caller.thread_id, ThreadId::random());
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let mut chains = Vec::new();
    for (thread, question) in [(first, "first?"), (second, "second?"), (first, "third?")] {
        let mut request = RunRequest { input: vec![Part::text(question)], ..request.clone() };
        request.caller.thread_id = thread;
        engine.start(request).await.unwrap().finish().await;
        chains.push([store.hops(first).await.unwrap(), store.hops(second).await.unwrap_or_default()]);
    }
    let lengths: Vec<[usize; 2]> = chains.iter().map(|[first, second]| [first.len(), second.len()]).collect();
    assert_eq!(lengths, [[1, 0], [1, 0], [2, 0]]);
    let [whole, _] = chains.pop().unwrap();
    assert_eq!(whole[..1], chains[0][0][..], "what was written stays as it was");
    assert!(whole[0].at <= whole[1].at && whole[0].run_id != whole[1].run_id);
    let query = RunQuery { thread_id: Some(first), ..RunQuery::default() };
    let runs = store.runs(query, PageRequest::default()).await.unwrap().data;
    assert!(runs.iter().all(|run| run.thread_id == first) && runs.len() == 2);
    let said = store.messages(first, MessageQuery::last(9)).await.unwrap();
    let said: Vec<String> = said.iter().map(|one| one.message.text()).collect();
    assert_eq!(said, ["first?", "One.", "third?", "Three."], "what was asked and found is kept with it");
    let mode = std::fs::metadata(folder.path().join("baton.db")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

/// G12: a run asks for its agents once. Whoever gets the baton is as they were when it began, whatever the files say by then.
#[tokio::test]
async fn g12_run_keeps_its_roster() {
    let model = Scripted::default()
        .script("a", [transfer("b")])
        .script("b", [ScriptedTurn::text("Old."), ScriptedTurn::text("New.")]);
    let (mut parts, request) = chain(&model, &["b"]).parts().await;
    let before = Arc::clone(&parts.agents.borrow());
    let roster = watch::Sender::new(before);
    parts.agents = roster.subscribe();
    let engine = Engine::new(parts);
    let mut run = engine.start(request.clone()).await.unwrap();
    // The run has begun when its first event is there.
    run.events.recv().await.unwrap();
    let mut changed = named("b");
    changed.prompt = "You are another one.".into();
    let only: Agents = [(changed.name.clone(), Arc::new(changed))].into_iter().collect();
    roster.send(Arc::new(only)).unwrap();
    assert!(run.finish().await.answer.is_some());
    assert_eq!(asked_of(&model, "b")[0].system, "You help ada of acme.");
    let next = RunRequest { agent: crate::name("b"), ..request };
    engine.start(next).await.unwrap().finish().await;
    assert_eq!(asked_of(&model, "b")[1].system, "You are another one.");
}

/// G21: a hop costs the same however many came before: no model call of its own, and a constant number of records.
#[tokio::test]
async fn g21_transfer_cost_is_constant() {
    let names = ["b", "c", "d", "e", "f"];
    let mut costs = Vec::new();
    for hops in 1..=names.len() {
        let mut model = Scripted::default().script("a", [transfer("b")]);
        for at in 1..=hops {
            let turn = if at < hops { transfer(names[at]) } else { ScriptedTurn::text("Done.") };
            model = model.script(names[at - 1], [turn]);
        }
        let kept = Kept::of(chain(&model, &names[..hops])).await;
        assert_eq!((kept.ran.answer(), kept.hops.len()), ("Done.", hops));
        assert_eq!(
            model.asked().len(),
            hops + 1,
            "one turn for each who had the baton, and none for passing it"
        );
        let kept_events = kept.ran.events.iter().filter(|event| event.kind.is_kept()).count();
        costs.push((kept_events, kept.ran.end.rows.len()));
    }
    let differences: Vec<(usize, usize)> =
        costs.windows(2).map(|pair| (pair[1].0 - pair[0].0, pair[1].1 - pair[0].1)).collect();
    assert!(differences.windows(2).all(|pair| pair[0] == pair[1]), "{costs:?}");
    assert!(differences[0].0 <= 8 && differences[0].1 == 2, "a turn and a call: {costs:?}");
}
