//! Walks that outlive their process.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_core::agent::ModelName;
use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::message::Part;
use baton_core::model::{Model, ModelFacts, ModelRequest, ReplyStream};
use baton_core::store::{HandoffState, MessageQuery, PageRequest, RunQuery, RunStatus};
use baton_core::tool::{Effect, ToolError};
use baton_engine::{Engine, ModelRegistry, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::guided::{WORDS, guided};
use super::{Calls, advance, all, setup};
use crate::durability::{runtime, successor};
use crate::{Setup, TestTool};

fn saying(request: &RunRequest, words: &str) -> RunRequest {
    RunRequest { input: vec![Part::text(words)], ..request.clone() }
}

/// Holds the conversation in a process that dies after `cut` events, and the rest of it in the next one. `None` if it lived to the end.
fn cut_after(cut: usize, first: Setup, second: Setup, words: &[&str]) -> (bool, Vec<String>, Vec<String>) {
    let process = runtime();
    let (engine, request, done) = process.block_on(async {
        let (parts, request) = first.parts().await;
        let engine = Engine::new(parts);
        let mut seen = 0;
        for (nth, words) in words.iter().enumerate() {
            let mut run = engine.start(saying(&request, words)).await.unwrap();
            while run.events.recv().await.is_some() {
                seen += 1;
                if seen > cut {
                    // Whoever dies cancels nothing.
                    std::mem::forget(run);
                    return (engine, request, nth + 1);
                }
            }
            run.join().await;
        }
        (engine, request, words.len() + 1)
    });
    process.shutdown_timeout(crate::LONG);
    runtime().block_on(async {
        let (parts, _) = second.parts().await;
        let next = Engine::new(successor(parts, &engine.parts));
        next.recover().await.unwrap();
        for words in words.iter().skip(done) {
            next.start(saying(&request, words)).await.unwrap().finish().await;
        }
        let store = next.parts.store.tenant(&request.caller.tenant);
        let runs = store.runs(RunQuery::default(), PageRequest::default()).await.unwrap().data;
        for run in runs {
            assert_eq!(run.status, RunStatus::Completed, "cut after {cut}: {:?}", run.end);
        }
        let thread = request.caller.thread_id;
        let messages = store.messages(thread, MessageQuery::last(100)).await.unwrap();
        let events = store.events(thread, 0, 10_000).await.unwrap();
        let told = events.iter().filter_map(|event| match &event.kind {
            EventKind::Progress(at) => Some(format!("at {} {}/{}", at.label, at.answered, at.questions)),
            EventKind::ToolCalled { tool, .. } => Some(format!("calls {tool}")),
            EventKind::ToolReturned { .. } => Some("returns".to_owned()),
            EventKind::TextFinished { text, .. } => Some(format!("says {text}")),
            EventKind::Approval(approval) => {
                let (question, status) = (&approval.request.preview.heading, approval.outcome.status);
                Some(format!("{status} {question}"))
            }
            _ => None,
        });
        let messages = messages.into_iter().map(|message| message.message.text()).collect();
        (done > words.len(), messages, told.collect())
    })
}

/// C-24, J2.5: wherever the process dies, the conversation is the same: nothing is asked twice, nothing lost, nothing done twice.
#[test]
fn c_24_guided_workflow_survives_a_crash_anywhere() {
    let setup = || guided(&Calls::default());
    let (lived, messages, told) = cut_after(usize::MAX, setup(), setup(), WORDS);
    assert!(lived && messages.len() >= 2 * WORDS.len(), "{messages:#?}");
    for cut in 0.. {
        let (lived, again, heard) = cut_after(cut, setup(), setup(), WORDS);
        assert_eq!((&again, &heard), (&messages, &told), "cut after {cut} events");
        if lived {
            assert!(cut > 20, "{cut}");
            break;
        }
    }
}

/// Says the same to the same, whatever was said to it before.
#[derive(Debug)]
struct Sensible;

impl Model for Sensible {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        let turn = match request.messages.last() {
            Some(ChatMessage::Tool(result)) if result.content.contains("\"is_done\":true") => {
                ScriptedTurn::text("Saved.")
            }
            Some(ChatMessage::Tool(_)) => ScriptedTurn::text("Save it?"),
            Some(ChatMessage::User { parts }) if format!("{parts:?}").contains("Yes") => {
                advance(json!({"values": {"confirmed": true}}))
            }
            _ => advance(all()),
        };
        let turn = if request.agent.as_str() == "a" { ScriptedTurn::text("Great.") } else { turn };
        Scripted::default().script(request.agent.as_str(), [turn]).stream(request)
    }

    fn facts(&self, _model: &str) -> ModelFacts {
        ModelFacts::default()
    }
}

/// The same with a model: what it recorded is recorded once, and tools are not run again.
#[test]
fn c_24_model_workflow_survives_a_crash_anywhere() {
    let words = ["create a skill", "Yes"];
    let setup = || {
        let mut setup = setup(&Scripted::default(), &Calls::default());
        setup.models =
            ModelRegistry::new(ModelName::parse("scripted/m").unwrap()).with_provider(Arc::new(Sensible));
        setup
    };
    let (_, messages, told) = cut_after(usize::MAX, setup(), setup(), &words);
    assert_eq!(messages.last().unwrap(), "Great.");
    for cut in 0.. {
        let (lived, again, heard) = cut_after(cut, setup(), setup(), &words);
        assert_eq!((&again, &heard), (&messages, &told), "cut after {cut} events");
        if lived {
            break;
        }
    }
}

/// Never calls `advance_workflow`, but fills in a form.
#[derive(Debug)]
struct Forgetful;

impl Model for Forgetful {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        let form = json!({"purpose": "alerts", "name": "Alert", "triggers": "alert us"});
        let text = match (request.agent.as_str(), request.output_schema) {
            ("a", _) => "Great.".to_owned(),
            (_, Some(_)) => form.to_string(),
            _ => "It is done.".to_owned(),
        };
        Scripted::default().script(request.agent.as_str(), [ScriptedTurn::text(&text)]).stream(request)
    }

    fn facts(&self, _model: &str) -> ModelFacts {
        ModelFacts::default()
    }
}

/// What the engine reads in place of a model is read once, wherever the process dies.
#[test]
fn values_read_by_the_engine_survive_a_crash_anywhere() {
    let words = ["create a skill: alerts. Its name is Alert. People say \"alert us\".", "Yes"];
    let setup = || {
        let mut setup = setup(&Scripted::default(), &Calls::default());
        setup.models =
            ModelRegistry::new(ModelName::parse("scripted/m").unwrap()).with_provider(Arc::new(Forgetful));
        setup
    };
    let (_, messages, told) = cut_after(usize::MAX, setup(), setup(), &words);
    assert_eq!(messages.last().unwrap(), "Great.", "{messages:#?}");
    assert!(told.iter().any(|told| told == "calls save"), "{told:#?}");
    for cut in 0.. {
        let (lived, again, heard) = cut_after(cut, setup(), setup(), &words);
        assert_eq!((&again, &heard), (&messages, &told), "cut after {cut} events");
        if lived {
            assert!(cut > 20, "{cut}");
            break;
        }
    }
}

/// A tool that writes and was cut is not repeated unasked: the person says whether.
#[test]
fn tool_with_unknown_outcome_needs_confirmation_to_rerun() {
    let hangs = Arc::new(AtomicBool::new(true));
    let with = |calls: &Calls| {
        let mut setup = guided(calls);
        setup.tools.retain(|tool| tool.spec().name != "write");
        let (hangs, counted) = (Arc::clone(&hangs), calls.clone());
        let [write, ..] = calls.tools();
        let mut tool = TestTool::new("write", move |_| {
            // Before it counts: whoever waits for the count lets the next one return.
            let hangs = hangs.load(Ordering::SeqCst);
            counted.0[0].fetch_add(1, Ordering::SeqCst);
            async move {
                if hangs {
                    std::future::pending::<Result<String, ToolError>>().await
                } else {
                    Ok("Draft.".to_owned())
                }
            }
        });
        tool.spec.parameters = write.spec.parameters;
        tool.spec.effect = Effect::Writes;
        setup.tool(tool)
    };
    let calls = Calls::default();
    let process = runtime();
    let (engine, request) = process.block_on(async {
        let (parts, request) = with(&calls).parts().await;
        let engine = Engine::new(parts);
        for words in &WORDS[..3] {
            engine.start(saying(&request, words)).await.unwrap().finish().await;
        }
        let run = engine.start(saying(&request, WORDS[3])).await.unwrap();
        while calls.count()[0] == 0 {
            tokio::task::yield_now().await;
        }
        std::mem::forget(run);
        (engine, request)
    });
    process.shutdown_timeout(crate::LONG);
    hangs.store(false, Ordering::SeqCst);
    runtime().block_on(async {
        let (parts, _) = with(&calls).parts().await;
        let next = Engine::new(successor(parts, &engine.parts));
        next.recover().await.unwrap();
        assert_eq!(calls.count(), [1, 0, 0], "not unasked");
        let store = next.parts.store.tenant(&request.caller.tenant);
        let said = store.messages(request.caller.thread_id, MessageQuery::last(1)).await.unwrap();
        let said = said.last().unwrap().message.text();
        assert!(said.contains("say “again”"), "{said}");
        let on = next.start(saying(&request, "again")).await.unwrap().finish().await.answer.unwrap().text;
        assert!(on.ends_with("Save it? (yes or no)"), "{on}");
        assert_eq!(calls.count(), [2, 1, 0]);
        let open = store.open_handoff_of(request.caller.thread_id).await.unwrap().unwrap();
        assert_eq!(
            (open.state, open.workflow.unwrap().data["values"].as_object().unwrap().len()),
            (HandoffState::Active, 4)
        );
    });
}
