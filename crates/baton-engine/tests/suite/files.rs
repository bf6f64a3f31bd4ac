//! D8: files that tools and models produce are artifacts of the thread and parts of the answer.

use std::sync::Arc;

use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::media::artifact_uri;
use baton_core::message::{ImageSource, Part, Role};
use baton_core::model::{ModelFacts, ModelSupport};
use baton_core::store::{Artifact, MessageQuery, PageRequest, RunQuery, RunStatus, StepKind, StepState};
use baton_core::{Message, ProducedFile, TenantStore, ToolResult};
use baton_engine::storage::StorageLimits;
use baton_engine::{Engine, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::durability::{die, go_on, runtime};
use super::mortal::{Life, Mortal};
use super::{Setup, TestTool};

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and so on";

/// Draws a picture, claims the wrong type for it, and writes a report.
fn draw() -> TestTool {
    TestTool::echo("draw").returns(|| {
        vec![
            ProducedFile::new(PNG).named("../chart.png").claimed("text/html"),
            ProducedFile::new(*b"a,b\n1,2\n").claimed("text/csv"),
        ]
    })
}

fn drawing() -> Scripted {
    let turns =
        [ScriptedTurn::call("draw", &json!({})), ScriptedTurn::text("Here is the chart you asked for.")];
    Scripted::default().script("a", turns)
}

/// The last result that the model got.
fn last_result(model: &Scripted) -> ToolResult {
    let asked = model.asked();
    match asked.last().and_then(|asked| asked.messages.last()) {
        Some(ChatMessage::Tool(result)) => result.clone(),
        other => panic!("no tool result: {other:?}"),
    }
}

/// What the store has of a run: its answer and the files of its thread, oldest first.
async fn stored(
    store: &dyn TenantStore,
    request: &RunRequest,
) -> (Option<Message>, Vec<(Artifact, Vec<u8>)>) {
    let thread = request.caller.thread_id;
    let messages = store.messages(thread, MessageQuery::last(10)).await.unwrap();
    let answers = messages.into_iter().map(|one| one.message).filter(|one| one.role == Role::Assistant);
    let mut files = Vec::new();
    for artifact in store.artifacts(thread).await.unwrap().into_iter().rev() {
        files.push(store.artifact(artifact.artifact_id).await.unwrap());
    }
    files.sort_by_key(|(artifact, _)| artifact.artifact_id);
    (answers.last(), files)
}

async fn run_to_end(engine: &Arc<Engine>, request: &RunRequest) -> (baton_engine::RunResult, Vec<EventKind>) {
    let mut run = engine.start(request.clone()).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = run.events.recv().await {
        events.push(event.kind.clone());
    }
    (run.join().await, events)
}

/// D8: the bytes are stored once, with a verified type and a clean name; the answer's message and the last events refer to them.
#[tokio::test]
async fn d8_files_of_a_tool_are_artifacts_and_parts_of_the_answer() {
    let model = drawing();
    let (parts, request) = Setup::new(&model).tool(draw()).parts().await;
    let store = parts.store.tenant(&request.caller.tenant);
    let (end, events) = run_to_end(&Engine::new(parts), &request).await;
    let (answer, files) = stored(&*store, &request).await;
    let [(chart, png), (report, csv)] = &files[..] else { panic!("two files were expected: {files:?}") };
    assert_eq!((png.as_slice(), csv.as_slice()), (PNG, b"a,b\n1,2\n".as_slice()));
    assert_eq!(
        (chart.name.as_str(), chart.media_type.as_str()),
        ("chart.png", "image/png"),
        "the content decides"
    );
    assert_eq!((report.name.as_str(), report.media_type.as_str()), ("file-2.csv", "text/csv"));
    let answer = answer.unwrap();
    assert_eq!(chart.run_id, Some(answer.run_id));
    let uris = files.iter().map(|(file, _)| artifact_uri(file.artifact_id)).collect::<Vec<_>>();
    let expected = json!([
        { "type": "text", "text": "Here is the chart you asked for." },
        { "type": "image", "uri": uris[0], "media_type": "image/png", "name": "chart.png" },
        { "type": "file", "name": "file-2.csv", "uri": uris[1], "media_type": "text/csv" },
    ]);
    assert_eq!(serde_json::to_value(&answer.parts).unwrap(), expected);
    let announced = events.iter().filter_map(|kind| match kind {
        EventKind::Files { message_id, files } => Some((*message_id, files.len())),
        _ => None,
    });
    assert_eq!(announced.collect::<Vec<_>>(), [(answer.id, 2)]);
    assert_eq!(end.answer.unwrap().files.len(), 2);
    let told = last_result(&model);
    assert!(told.content.contains("[image chart.png: image/png, 18 bytes]"), "{}", told.content);
    assert!(told.images.is_empty(), "this model reads no images");
}

/// D8: a model that accepts images gets them with the result, others a line with name, type and size.
#[tokio::test]
async fn d8_a_model_that_reads_images_gets_those_of_tools() {
    let supports = ModelSupport { images: true, ..ModelSupport::default() };
    let model = drawing().with_facts(ModelFacts { supports, ..ModelFacts::default() });
    let ran = Setup::new(&model).tool(draw()).run().await;
    assert_eq!(ran.answer(), "Here is the chart you asked for.");
    let told = last_result(&model);
    let [image] = &told.images[..] else { panic!("one image was expected: {told:?}") };
    assert_eq!((image.media_type.as_str(), image.name.as_deref()), ("image/png", Some("chart.png")));
    let ImageSource::Base64(data) = &image.source else { panic!("{image:?}") };
    assert_eq!(data_encoding::BASE64.decode(data.as_bytes()).unwrap(), PNG);
}

/// D8: an image that a model makes is kept like one of a tool, also if the reply has no text.
#[tokio::test]
async fn d8_images_that_a_model_makes_are_parts_of_its_answer() {
    for (turn, text) in [
        (ScriptedTurn::text("A cat.").make(ProducedFile::new(PNG).claimed("image/png")), "A cat."),
        (ScriptedTurn::default().make(ProducedFile::new(PNG)), "(image)"),
    ] {
        let model = Scripted::default().script("a", [turn]);
        let (parts, request) = Setup::new(&model).parts().await;
        let store = parts.store.tenant(&request.caller.tenant);
        let (end, _) = run_to_end(&Engine::new(parts), &request).await;
        assert_eq!((end.status, end.answer.unwrap().text.as_str()), (RunStatus::Completed, text));
        let (answer, files) = stored(&*store, &request).await;
        assert_eq!(files.len(), 1);
        assert!(matches!(&answer.unwrap().parts[..], [Part::Text { .. }, Part::Image(image)]
            if image.name.as_deref() == Some("image-1.png")));
    }
}

/// D8: the same content is stored once, a file for the model alone is no part of the answer, and empty or too large files are named.
#[tokio::test]
async fn d8_files_are_bounded() {
    let tool = TestTool::echo("draw").returns(|| {
        let hidden = ProducedFile { is_for_user: false, ..ProducedFile::new(*b"notes") };
        let large = ProducedFile::new(vec![0; 16 * 1024 * 1024 + 1]);
        let many = (0..140_u8).map(|n| ProducedFile::new(vec![n, 0xff]));
        [ProducedFile::new(PNG), ProducedFile::new(PNG), hidden, large, ProducedFile::new([])]
            .into_iter()
            .chain(many)
            .collect()
    });
    let model = drawing();
    let (parts, request) = Setup::new(&model).tool(tool).parts().await;
    let store = parts.store.tenant(&request.caller.tenant);
    run_to_end(&Engine::new(parts), &request).await;
    let (answer, files) = stored(&*store, &request).await;
    assert_eq!(files.len(), 64);
    assert_eq!(answer.unwrap().parts.len(), 1 + 63, "the notes are for the model");
    let told = last_result(&model).content;
    for line in [
        "it is empty]",
        "files up to 16777216 bytes are kept]",
        "a run keeps up to 64 files]",
        "[17 more files",
    ] {
        assert!(told.contains(line), "{line}: {told}");
    }
}

/// D8: files count towards the stored bytes of the user; one that does not fit is named and the run goes on.
#[tokio::test]
async fn d8_files_respect_the_storage_limit() {
    let model = drawing();
    let (mut parts, request) = Setup::new(&model).tool(draw()).parts().await;
    parts.storage = StorageLimits { per_user: Some(30), per_tenant: None };
    let store = parts.store.tenant(&request.caller.tenant);
    let (end, _) = run_to_end(&Engine::new(parts), &request).await;
    assert_eq!(end.status, RunStatus::Completed);
    let (_, files) = stored(&*store, &request).await;
    assert_eq!(files.len(), 1, "the message and the first file have 29 bytes");
    let told = last_result(&model).content;
    assert!(told.contains("the user's limit of 30 stored bytes is reached]"), "{told}");
}

/// D8: after a crash the files are read back, not stored again, and are parts of the answer.
#[test]
fn d8_files_survive_a_crash_and_are_stored_once() {
    let turns = [ScriptedTurn::call("draw", &json!({})), ScriptedTurn::default().say("Half an an").hang()];
    let first = Scripted::default().script("a", turns);
    let (engine, request, _) =
        die(Setup::new(&first).tool(draw()), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let supports = ModelSupport { images: true, ..ModelSupport::default() };
    let facts = ModelFacts { supports, ..ModelFacts::default() };
    let second = Scripted::default().with_facts(facts).script("a", [ScriptedTurn::text("A whole answer.")]);
    let after = go_on(Setup::new(&second).tool(draw()), &engine);
    after.is_sound();
    assert_eq!(last_result(&second).images.len(), 1);
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let (answer, files) = runtime().block_on(stored(&*store, &request));
    assert_eq!((answer.unwrap().parts.len(), files.len()), (3, 2));
}

/// D8: killed before or after each write, the step of a call and its files are never apart.
#[test]
fn d8_a_recorded_result_and_its_files_are_never_apart() {
    let lives = (2..=6).flat_map(|writes| [(writes, false), (writes, true)]);
    let recorded = lives.filter(|(writes, is_last_made)| is_on_record_with_files(*writes, *is_last_made));
    assert!((1..10).contains(&recorded.count()), "some kills come before the record and some after it");
}

fn is_on_record_with_files(writes: u32, is_last_made: bool) -> bool {
    let (process, life) = (runtime(), Life::of(writes, is_last_made));
    let (store, request) = process.block_on(async {
        let (mut parts, request) = Setup::new(&drawing()).tool(draw()).parts().await;
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
        let is_recorded =
            steps.iter().any(|step| step.kind == StepKind::Tool && step.state == StepState::Finished);
        let files = store.artifacts(request.caller.thread_id).await.unwrap();
        assert_eq!(files.len(), if is_recorded { 2 } else { 0 });
        is_recorded
    })
}
