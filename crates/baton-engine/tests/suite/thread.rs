//! What a conversation remembers of agents that worked behind the scenes.

use std::sync::Arc;

use baton_core::agent::{Advisor, Advisors, Destination, ModelName};
use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::message::{Role, Visibility};
use baton_core::model::{Model, ModelFacts, ModelRequest, ReplyStream};
use baton_core::store::{MessageQuery, ThreadMessage};
use baton_core::{HumanDuration, Part};
use baton_engine::{Engine, ModelRegistry, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::durability::{die, go_on};
use super::{Setup, name};

fn all() -> MessageQuery {
    MessageQuery { include_internal: true, ..MessageQuery::last(50) }
}

/// `(agent) text` for what only those see who may read traces, `agent text` for the others.
fn lines(messages: &[ThreadMessage]) -> Vec<String> {
    let line = |ThreadMessage { message, .. }: &ThreadMessage| {
        let agent = message.agent.as_ref().map_or("person", |agent| agent.as_str());
        assert_eq!(message.role == Role::User, agent == "person");
        match message.visibility {
            Visibility::Internal => format!("({agent}) {}", message.text()),
            Visibility::User => format!("{agent} {}", message.text()),
        }
    };
    messages.iter().map(line).collect()
}

/// A is advised by `l`, delegates to `b` and `c`, and `b` asks `d`.
fn busy(model: &Scripted) -> Setup {
    let setup = Setup::new(model).agent(|a| {
        let timeout = HumanDuration::from_secs(20);
        let agents = vec![Advisor { agent: name("l"), required: false, timeout }];
        a.advisors = Advisors { agents, ..Advisors::default() };
        a.agents = vec![name("b"), name("c")];
    });
    setup.with("b", |b| b.agents = vec![name("d")]).with("c", |_| {}).with("d", |_| {}).with("l", |_| {})
}

fn script() -> Scripted {
    let ask = json!({"agents": ["b", "c"], "message": "Look.", "strategy": "sequential"});
    Scripted::default()
        .script("l", [ScriptedTurn::text("Be careful.")])
        .script(
            "a",
            [
                ScriptedTurn::call("delegate", &ask),
                ScriptedTurn::text("All is well."),
                ScriptedTurn::text("As I said."),
            ],
        )
        .script(
            "b",
            [
                ScriptedTurn::call("call_agent", &json!({"mission": "Dig.", "specialist": "d"})),
                ScriptedTurn::text("Found by b."),
            ],
        )
        .script("c", [ScriptedTurn::text("Found by c.")])
        .script("d", [ScriptedTurn::text("Dug up.")])
}

const REMEMBERED: [&str; 6] = [
    "person What is up?",
    "(l) Be careful.",
    "(d) Dug up.",
    "(b) Found by b.",
    "(c) Found by c.",
    "a All is well.",
];

/// A13, X31: what every agent said is kept; a person and the models of the next run see what was said to them.
#[tokio::test]
async fn x31_internal_messages_are_stored_and_not_shown() {
    let model = script().script("l", [ScriptedTurn::text("Still.")]);
    let (parts, request) = busy(&model).parts().await;
    let engine = Engine::new(parts);
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let thread = request.caller.thread_id;
    engine.start(request.clone()).await.unwrap().finish().await;
    assert_eq!(lines(&store.messages(thread, all()).await.unwrap()), REMEMBERED);
    let seen = store.messages(thread, MessageQuery::last(50)).await.unwrap();
    assert_eq!(lines(&seen), ["person What is up?", "a All is well."]);
    assert_eq!(store.thread(thread, None).await.unwrap().total_messages, 6, "of every visibility");
    let again = RunRequest { input: vec![Part::text("Sure?")], ..request };
    engine.start(again).await.unwrap().finish().await;
    let asked = model.asked().into_iter().rfind(|asked| asked.agent == "a").unwrap().messages;
    assert_eq!(asked.len(), 3);
    assert_eq!(asked[0], ChatMessage::user("What is up?"));
    assert!(matches!(&asked[1], ChatMessage::Assistant(reply) if reply.text == "All is well."));
}

/// The same once, wherever the process dies.
#[test]
fn x31_nothing_is_stored_twice_after_a_crash() {
    for dies_at in
        ["a/advisor:l", "a/turn:1/tool:1/delegate:b/turn:1/tool:1/call:d", "a/turn:1/tool:1/delegate:b"]
    {
        let (engine, request, _) = die(steady(), move |event| {
            matches!(event.kind, EventKind::SessionFinished { .. }) && &*event.path == dies_at
        });
        go_on(steady(), &engine).is_sound();
        let store = engine.parts.store.tenant(&request.caller.tenant);
        let messages = super::durability::runtime().block_on(store.messages(request.caller.thread_id, all()));
        assert_eq!(lines(&messages.unwrap()), REMEMBERED, "died at {dies_at}");
    }
}

/// Says what there is to say next, whatever was said by a process that died.
#[derive(Debug)]
struct Steady;

impl Model for Steady {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        let has_results = request.messages.iter().any(|message| matches!(message, ChatMessage::Tool(_)));
        let script = script();
        if has_results {
            drop(script.stream(request));
        }
        script.stream(request)
    }

    fn facts(&self, _model: &str) -> ModelFacts {
        ModelFacts::default()
    }
}

fn steady() -> Setup {
    let mut setup = busy(&Scripted::default());
    setup.models =
        ModelRegistry::new(ModelName::parse("scripted/m").unwrap()).with_provider(Arc::new(Steady));
    setup
}

/// A13: a draft that is handed on belongs to the conversation, and the person gets the last word only.
#[tokio::test]
async fn x31_draft_is_stored_when_handed_on() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("A draft.")])
        .script("b", [ScriptedTurn::text("A text.")]);
    let to_b = Destination { to: name("b"), when: None };
    let (parts, request) =
        Setup::new(&model).agent(|a| a.handoff = vec![to_b]).with("b", |_| {}).parts().await;
    let engine = Engine::new(parts);
    let store = engine.parts.store.tenant(&request.caller.tenant);
    engine.start(request.clone()).await.unwrap().finish().await;
    let messages = store.messages(request.caller.thread_id, all()).await.unwrap();
    assert_eq!(lines(&messages), ["person What is up?", "(a) A draft.", "b A text."]);
}

/// A message that was seen growing is kept under the id that it was seen under, and so is one that was shown at once.
#[tokio::test]
async fn streamed_and_stored_message_have_one_id() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("Here.")])
        .script("b", [ScriptedTurn::text("There.")]);
    let chained = Setup::new(&model).agent(|a| a.handoff = vec![Destination { to: name("b"), when: None }]);
    for setup in [
        Setup::new(&Scripted::default().script("a", [ScriptedTurn::text("Here.")])),
        chained.with("b", |_| {}),
    ] {
        let (parts, request) = setup.parts().await;
        let engine = Engine::new(parts);
        let mut run = engine.start(request.clone()).await.unwrap();
        let mut heard = Vec::new();
        while let Some(event) = run.events.recv().await {
            if let (EventKind::TextFinished { message_id, .. }, Visibility::User) =
                (&event.kind, event.visibility)
            {
                heard.push(*message_id);
            }
        }
        run.join().await;
        let store = engine.parts.store.tenant(&request.caller.tenant);
        let kept = store.messages(request.caller.thread_id, MessageQuery::last(1)).await.unwrap();
        assert_eq!(heard, [kept[0].message.id]);
    }
}
