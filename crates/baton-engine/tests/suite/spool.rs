//! Tool output that is too long for a model is in the store with the step that recorded the tool's result.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::store::{
    OutputHandle, OutputSlice, PageRequest, RunQuery, RunStatus, Step, StepKind, StepState,
};
use baton_core::tool::{Effect, SHOWN_OUTPUT_BYTES};
use baton_core::{RunId, StoreError};
use baton_engine::{Engine, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::durability::{die, go_on, runtime};
use super::mortal::{Life, Mortal};
use super::{Setup, TestTool};

const BYTES: usize = 200_000;

/// Returns more than a model is shown, and counts how often it was called.
fn long_tool(calls: &Arc<AtomicUsize>) -> TestTool {
    let calls = Arc::clone(calls);
    let mut tool = TestTool::new("look", move |_| {
        calls.fetch_add(1, Ordering::SeqCst);
        async { Ok("x".repeat(BYTES)) }
    });
    tool.spec.effect = Effect::Writes;
    tool
}

/// The handle in the result that the model got last.
fn handle(model: &Scripted) -> OutputHandle {
    let asked = model.asked();
    let Some(ChatMessage::Tool(result)) = asked.last().and_then(|asked| asked.messages.last()) else {
        panic!("no tool result: {asked:?}");
    };
    assert!(result.content.len() < SHOWN_OUTPUT_BYTES + 200, "{} bytes are shown", result.content.len());
    handle_in(&result.content)
}

fn handle_in(content: &str) -> OutputHandle {
    let start = content.find("out_").expect("a handle");
    OutputHandle::parse(&content[start..start + 36]).expect("a valid handle")
}

async fn read(
    engine: &Engine,
    request: &RunRequest,
    run: RunId,
    handle: OutputHandle,
) -> Result<OutputSlice, StoreError> {
    let store = engine.parts.store.tenant(&request.caller.tenant);
    store.output_slice(run, handle, BYTES as u64 - 10, 100).await
}

/// The tool ran, so its result is no failure: the model gets the beginning, and reads why there is no more.
#[tokio::test]
async fn a_tenant_with_too_much_spooled_output_gets_the_beginning_only() {
    let calls: Arc<AtomicUsize> = Arc::default();
    let twice = [ScriptedTurn::call("look", &json!({})), ScriptedTurn::call("look", &json!({}))];
    let turns = twice.into_iter().chain([ScriptedTurn::text("Done")]);
    let model = Scripted::default().script("a", turns);
    let setup = Setup::new(&model).tool(long_tool(&calls));
    let ran = setup.policy(|policy| policy.max_spooled_bytes = BYTES as u64 + 10).run().await;
    assert_eq!((ran.answer(), calls.load(Ordering::SeqCst)), ("Done", 2));
    let asked = model.asked();
    let results: Vec<_> = asked
        .last()
        .unwrap()
        .messages
        .iter()
        .filter_map(|message| match message {
            ChatMessage::Tool(result) => Some(result.clone()),
            _ => None,
        })
        .collect();
    assert!(results[0].content.contains("Read on with read_output"), "{}", results[0].content);
    let refused =
        "The rest was not kept: the tenant's limit of 200010 bytes for long tool output is reached.";
    assert!(results[1].content.contains(refused) && !results[1].failed, "{}", results[1].content);
}

#[tokio::test]
async fn long_output_is_in_the_store_before_the_model_is_called_again() {
    let calls = Arc::default();
    let gate = Arc::new(tokio::sync::Semaphore::new(0));
    let turns = [ScriptedTurn::call("look", &json!({})), ScriptedTurn::default().say("Half").until(&gate)];
    let model = Scripted::default().script("a", turns);
    let (mut parts, request) = Setup::new(&model).tool(long_tool(&calls)).parts().await;
    // Nothing is written for any other reason.
    parts.flush = super::LONG;
    let engine = Engine::new(parts);
    let mut run = engine.start(request.clone()).await.unwrap();
    while let Some(event) = run.events.recv().await {
        if matches!(event.kind, EventKind::TextDelta { .. }) {
            break;
        }
    }
    let slice = read(&engine, &request, run.id, handle(&model)).await.unwrap();
    assert_eq!((slice.bytes, slice.size), (vec![b'x'; 10], BYTES as u64));
    gate.add_permits(1);
    assert_eq!(run.finish().await.answer.unwrap().text, "Half");
}

#[test]
fn long_output_is_readable_after_a_crash() {
    let calls = Arc::default();
    let first = Scripted::default().script(
        "a",
        [ScriptedTurn::call("look", &json!({})), ScriptedTurn::default().say("Half an an").hang()],
    );
    let (engine, request, _) = die(Setup::new(&first).tool(long_tool(&calls)), |event| {
        matches!(event.kind, EventKind::TextDelta { .. })
    });
    let second = Scripted::default().script("a", [ScriptedTurn::text("A whole answer.")]);
    let after = go_on(Setup::new(&second).tool(long_tool(&calls)), &engine);
    after.is_sound();
    assert_eq!((after.run.status, calls.load(Ordering::SeqCst)), (RunStatus::Completed, 1));
    assert_eq!(handle(&second), handle(&first), "the model gets the same handle again");
    let slice = runtime().block_on(read(&engine, &request, after.run.run_id, handle(&second))).unwrap();
    assert_eq!((slice.bytes, slice.size), (vec![b'x'; 10], BYTES as u64));
}

/// Killed before or after each write: where the tool's result is on record, its output can be read.
#[test]
fn a_recorded_result_and_its_output_are_never_apart() {
    let lives = (2..=6).flat_map(|writes| [(writes, false), (writes, true)]);
    let recorded = lives.filter(|(writes, is_last_made)| is_on_record_with_output(*writes, *is_last_made));
    assert!((1..10).contains(&recorded.count()), "some kills come before the record and some after it");
}

/// Whether a process recorded the tool's result before it died at this write.
fn is_on_record_with_output(writes: u32, is_last_made: bool) -> bool {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::call("look", &json!({})), ScriptedTurn::text("Done.")]);
    let (process, life) = (runtime(), Life::of(writes, is_last_made));
    let (store, request) = process.block_on(async {
        let (mut parts, request) = Setup::new(&model).tool(long_tool(&Arc::default())).parts().await;
        let store = Arc::clone(&parts.store);
        parts.store = Arc::new(Mortal { inner: Arc::clone(&store), life: Arc::clone(&life) });
        let mut run = Engine::new(parts).start(request.clone()).await.unwrap();
        let ends = async { while run.events.recv().await.is_some() {} };
        tokio::select! {
            () = ends => {}
            () = life.end.cancelled() => {}
        }
        std::mem::forget(run);
        (store, request)
    });
    process.shutdown_timeout(super::LONG);
    runtime().block_on(async {
        let store = store.tenant(&request.caller.tenant);
        let run = store.runs(RunQuery::default(), PageRequest::default()).await.unwrap().data[0].run_id;
        let steps = store.steps(run).await.unwrap();
        let finished = |step: &&Step| step.kind == StepKind::Tool && step.state == StepState::Finished;
        let Some(step) = steps.iter().find(finished) else { return false };
        let handle = handle_in(step.data.json()["content"].as_str().unwrap());
        assert_eq!(store.output_slice(run, handle, 0, 10).await.unwrap().size, BYTES as u64);
        true
    })
}
