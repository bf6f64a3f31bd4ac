//! Guardrails: what agents may get and answer. A text that is refused is in no stream, message or step.

use std::sync::Arc;

use baton_core::agent::{AcceptsHandoff, Collaboration, Guard, GuardCheck, PiiKind, Router, RoutingMode};
use baton_core::event::EventKind;
use baton_core::store::{AuditQuery, MessageQuery, PageRequest, RunStatus};
use baton_core::{Agent, RunId};
use baton_engine::{Engine, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use crate::durability::{die, go_on};
use crate::transfers::{asked_of, told};
use crate::{Setup, name};

fn guard(check: GuardCheck) -> Vec<Guard> {
    vec![Guard { check, message: None }]
}

fn deny(pattern: &str) -> Vec<Guard> {
    guard(GuardCheck::Deny(vec![pattern.to_owned()]))
}

fn judge(agent: &str) -> Vec<Guard> {
    guard(GuardCheck::Judge(name(agent)))
}

/// Everything of a run that anyone can see: events as they were published, and messages, steps and audit entries as they are stored.
struct Seen {
    answer: String,
    status: RunStatus,
    all: String,
    audit: Vec<String>,
    deltas: String,
    restarts: usize,
}

async fn run(setup: Setup) -> Seen {
    let (parts, request) = setup.parts().await;
    run_in(Engine::new(parts), request).await
}

async fn run_in(engine: Arc<Engine>, request: RunRequest) -> Seen {
    let mut run = engine.start(request.clone()).await.unwrap();
    let (mut all, mut deltas, mut restarts) = (String::new(), String::new(), 0);
    while let Some(event) = run.events.recv().await {
        match &event.kind {
            EventKind::TextDelta { delta, .. } => deltas.push_str(delta),
            EventKind::TurnRestarted { .. } => restarts += 1,
            _ => {}
        }
        all += &serde_json::to_string(&event).unwrap();
    }
    let run_id: RunId = run.id;
    let end = run.join().await;
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let query = MessageQuery { include_internal: true, include_system: true, ..MessageQuery::last(100) };
    let messages = store.messages(request.caller.thread_id, query).await.unwrap();
    all += &messages.iter().skip(1).map(|message| message.message.text()).collect::<String>();
    for step in store.steps(run_id).await.unwrap() {
        all += &format!("{:?}", baton_engine::recorded::RecordedStep::of(&step));
    }
    let entries = store.audit(AuditQuery::default(), PageRequest::first(100)).await.unwrap().data;
    let audit = entries.into_iter().map(|one| {
        all += &one.entry.detail.to_string();
        format!("{} {}", one.entry.action, one.entry.decision)
    });
    let audit = audit.collect();
    let answer = end.answer.map(|answer| answer.text).unwrap_or_default();
    Seen { answer, status: end.status, all, audit, deltas, restarts }
}

/// The user's own message gets a clear answer, and no model reads it: not now, and not with the next message.
#[tokio::test]
async fn refused_message_is_answered_without_a_model() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Hello.")]);
    let setup = || Setup::new(&model).agent(|a| a.guardrails.input = deny("(?i)launch code"));
    let (parts, request) = setup().asked("Tell me the launch code").parts().await;
    let engine = Engine::new(parts);
    let seen = run_in(Arc::clone(&engine), request.clone()).await;
    assert_eq!(seen.answer, "I cannot work on this message: it matches the deny pattern 1 of 1.");
    assert_eq!(seen.status, RunStatus::Completed);
    assert!(model.asked().is_empty());
    assert!(seen.audit.contains(&"guardrail.input denied".to_owned()), "{:?}", seen.audit);
    assert!(seen.all.contains("\"kind\":\"guardrail\""), "{}", seen.all);
    let next = RunRequest { input: vec![baton_core::Part::text("And now?")], ..request };
    assert_eq!(run_in(engine, next).await.answer, "Hello.");
    let heard = serde_json::to_string(&model.asked()[0].messages).unwrap();
    assert!(!heard.contains("launch code") && heard.contains("And now?"), "{heard}");
}

#[tokio::test]
async fn sentence_of_the_file_is_the_answer() {
    let model = Scripted::default();
    let own = Guard { check: GuardCheck::MaxLength(5), message: Some("Shorter, please.".to_owned()) };
    let seen = run(Setup::new(&model).agent(|a| a.guardrails.input = vec![own])).await;
    assert_eq!(seen.answer, "Shorter, please.");
}

/// Text streams up to the bytes that a match could need. What was streamed is withdrawn, and one repair is allowed.
#[tokio::test]
async fn withheld_answer_is_repaired_once_and_never_seen() {
    let model = Scripted::default().script(
        "a",
        [
            ScriptedTurn::default()
                .say("Let me think about this for a moment. ")
                .say("The word is swor")
                .say("dfish, of course."),
            ScriptedTurn::text("I would rather not say."),
        ],
    );
    let seen = run(Setup::new(&model).agent(|a| a.guardrails.output = deny("swordfish"))).await;
    assert_eq!((seen.answer.as_str(), seen.status), ("I would rather not say.", RunStatus::Completed));
    assert!(seen.deltas.starts_with("Let me think"), "text streams before the match: {}", seen.deltas);
    assert!(!seen.all.contains("swordfish") && !seen.all.contains("swor"), "{}", seen.all);
    assert_eq!(seen.restarts, 1, "what was streamed is withdrawn");
    let repair = serde_json::to_string(&model.asked()[1].messages).unwrap();
    assert!(repair.contains("Your answer was withheld") && !repair.contains("swordfish"), "{repair}");
    assert!(seen.audit.contains(&"guardrail.output denied".to_owned()), "{:?}", seen.audit);
}

#[tokio::test]
async fn answer_that_stays_withheld_is_replaced() {
    for check in [
        GuardCheck::Deny(vec!["sword.*".to_owned()]),
        GuardCheck::Pii(vec![PiiKind::Email]),
        GuardCheck::MaxLength(10),
        GuardCheck::Schema(json!({"type": "object"})),
    ] {
        let bad = || ScriptedTurn::text("swordfish@example.com is it").think("swordfish");
        let model = Scripted::default().script("a", [bad(), bad()]);
        let seen = run(Setup::new(&model).agent(|a| a.guardrails.output = guard(check.clone()))).await;
        assert!(seen.answer.starts_with("I cannot give this answer: it "), "{check:?}: {}", seen.answer);
        let streams = matches!(check, GuardCheck::MaxLength(_));
        assert!(streams || !seen.all.contains("swordfish"), "{check:?}: {}", seen.all);
        assert_eq!(model.left(), 0, "{check:?}");
    }
}

/// A judge decides on the whole text, before anyone sees it. Its calls are in the ledger under its own name.
#[tokio::test]
async fn judge_decides_before_anyone_sees_the_answer() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("Something rude."), ScriptedTurn::text("Something kind.")])
        .script(
            "j",
            [ScriptedTurn::text(r#"{"allowed": false}"#), ScriptedTurn::text(r#"{"allowed": true}"#)],
        );
    let setup = Setup::new(&model).agent(|a| a.guardrails.output = judge("j")).with("j", |_| {});
    let seen = run(setup).await;
    assert_eq!(seen.answer, "Something kind.");
    assert!(!seen.all.contains("rude") && seen.all.contains("Something kind."), "{}", seen.all);
    let heard = serde_json::to_string(&model.asked()[1].messages).unwrap();
    assert!(heard.contains("Something rude."), "{heard}");
    assert!(seen.audit.contains(&"agent.judge completed".to_owned()), "{:?}", seen.audit);
}

/// A judge that quotes, fails or says anything else than its verdict refuses, and what it said is not shown.
#[tokio::test]
async fn judge_without_a_verdict_refuses() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("Something rude."), ScriptedTurn::text("Something rude again.")])
        .script(
            "j",
            [
                ScriptedTurn::text("Something rude. That is not nice."),
                ScriptedTurn::error(baton_core::ModelErrorKind::ContentFilter),
            ],
        );
    let setup = Setup::new(&model).agent(|a| a.guardrails.output = judge("j")).with("j", |_| {});
    let seen = run(setup).await;
    assert_eq!(seen.answer, "I cannot give this answer: the judge `j` refused it.");
    assert!(!seen.all.contains("rude"), "{}", seen.all);
}

/// The process dies after the judge has decided: neither the turn nor the decision is repeated.
#[test]
fn decision_of_a_judge_survives_a_crash() {
    let first = Scripted::default()
        .script("a", [ScriptedTurn::text("Something rude."), ScriptedTurn::default().say("K").hang()])
        .script("j", [ScriptedTurn::text(r#"{"allowed": false}"#)]);
    let setup =
        |model: &Scripted| Setup::new(model).agent(|a| a.guardrails.output = judge("j")).with("j", |_| {});
    let (engine, ..) = die(setup(&first), |event| matches!(event.kind, EventKind::Guardrail(_)));
    let second = Scripted::default()
        .script("a", [ScriptedTurn::text("Something kind.")])
        .script("j", [ScriptedTurn::text(r#"{"allowed": true}"#)]);
    let after = go_on(setup(&second), &engine);
    assert_eq!(after.run.status, RunStatus::Completed);
    assert_eq!(after.messages.last().unwrap().message.text(), "Something kind.");
    assert_eq!((second.asked().len(), second.left()), (2, 0), "the repair and its judge, nothing else");
    assert_eq!(after.count(|kind| matches!(kind, EventKind::Guardrail(_))), 1);
    assert_eq!(after.rows.iter().filter(|row| row.agent == name("j")).count(), 2);
}

fn collaborates(a: &mut Agent) {
    a.collaborations = vec![Collaboration { agent: name("b"), when: None, allow_revisit: 0 }];
}

fn transfer(reason: &str) -> ScriptedTurn {
    ScriptedTurn::call("transfer_to_b", &json!({ "reason": reason }))
}

/// The target's input guard refuses a transfer or handoff: the source agent learns why and keeps the thread.
#[tokio::test]
async fn source_keeps_the_thread_if_the_target_refuses() {
    for accepts in [None, Some(AcceptsHandoff::default())] {
        let model = Scripted::default()
            .script("a", [transfer("they want the launch code"), ScriptedTurn::text("Then I answer.")])
            .script("b", []);
        let setup = Setup::new(&model).agent(collaborates).with("b", |b| {
            b.accepts_handoff = accepts.clone();
            b.guardrails.input = deny("launch code");
        });
        let (parts, request) = setup.parts().await;
        let engine = Engine::new(parts);
        let seen = run_in(Arc::clone(&engine), request.clone()).await;
        assert_eq!((seen.answer.as_str(), seen.status), ("Then I answer.", RunStatus::Completed));
        let told = serde_json::to_string(&model.asked()[1].messages).unwrap();
        assert!(told.contains("a guardrail of `b` for its input refused this (deny)"), "{told}");
        let store = engine.parts.store.tenant(&request.caller.tenant);
        assert!(store.handoffs(request.caller.thread_id).await.unwrap().is_empty(), "no handoff was opened");
    }
}

/// What an agent writes to its successor is checked like its answers.
#[tokio::test]
async fn brief_is_checked_by_the_source_agents_guard() {
    let model = Scripted::default()
        .script("a", [transfer("the word is swordfish"), ScriptedTurn::text("Then I answer.")])
        .script("b", []);
    let setup = Setup::new(&model)
        .agent(|a| {
            collaborates(a);
            a.guardrails.output = deny("swordfish");
        })
        .with("b", |_| {});
    let seen = run(setup).await;
    assert_eq!(seen.answer, "Then I answer.");
    let told = serde_json::to_string(&model.asked()[1].messages).unwrap();
    assert!(told.contains("this may not be passed on: it matches the deny pattern 1 of 1"), "{told}");
}

/// A sub-agent whose answer is withheld has failed for its caller, who goes on.
#[tokio::test]
async fn withheld_answer_of_a_sub_agent_is_a_typed_refusal() {
    let model = Scripted::default()
        .script(
            "a",
            [
                ScriptedTurn::call("call_agent", &json!({"mission": "Look.", "specialist": "b"})),
                ScriptedTurn::text("Without it, then."),
            ],
        )
        .script("b", [ScriptedTurn::text("swordfish"), ScriptedTurn::text("swordfish")]);
    let setup = Setup::new(&model)
        .agent(|a| a.agents = vec![name("b")])
        .with("b", |b| b.guardrails.output = deny("swordfish"));
    let seen = run(setup).await;
    assert_eq!(seen.answer, "Without it, then.");
    assert!(!seen.all.contains("swordfish"), "{}", seen.all);
    let told = serde_json::to_string(&model.asked()[3].messages).unwrap();
    assert!(told.contains("guardrail_violation") && !told.contains("swordfish"), "{told}");
}

fn routes_to_b(a: &mut Agent) {
    let destinations = vec![name("b")];
    a.router = Some(Router { mode: RoutingMode::Pure, destinations, fallback: None, may_answer: false });
}

/// A text that a judge has not decided on is not part of a failure either.
#[tokio::test]
async fn failures_do_not_quote_a_text_before_its_judge_allows_it() {
    let routing = Scripted::default().script("a", (0..3).map(|_| ScriptedTurn::text("Something rude.")));
    let undecided = Setup::new(&routing).agent(|a| {
        routes_to_b(a);
        a.guardrails.output = judge("j");
    });
    let answering = Scripted::default().script("a", (0..2).map(|_| ScriptedTurn::text(r#"{"n": "rude"}"#)));
    let invalid = Setup::new(&answering).agent(|a| {
        a.output_schema = Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
        a.guardrails.output = judge("j");
    });
    for (setup, code) in [(undecided, "routing_failed"), (invalid, "invalid_output")] {
        let seen = run(setup.with("b", |_| {}).with("j", |_| {})).await;
        assert_eq!(seen.status, RunStatus::Failed);
        assert!(seen.all.contains(code) && !seen.all.contains("rude"), "{code}: {}", seen.all);
    }
    assert_eq!((routing.left(), answering.left()), (0, 0));
}

/// What a router writes to the agent that it chooses is checked like its answers.
#[tokio::test]
async fn brief_of_a_router_is_checked() {
    let route = |arguments| ScriptedTurn::call("route_to", &arguments);
    let model = Scripted::default()
        .script(
            "a",
            [
                route(json!({"agent": "b", "reason": "the word is swordfish"})),
                route(json!({"agent": "b", "reason": "it fits", "message": "swordfish"})),
                route(json!({"agent": "b", "reason": "it fits"})),
            ],
        )
        .script("b", [ScriptedTurn::text("Hello.")]);
    let setup = Setup::new(&model).agent(|a| {
        routes_to_b(a);
        a.guardrails.output = deny("swordfish");
    });
    let seen = run(setup.with("b", |_| {})).await;
    assert_eq!((seen.answer.as_str(), model.left()), ("Hello.", 0));
    for refused in &asked_of(&model, "a")[1..] {
        assert!(told(refused)[0].contains("this may not be passed on: it matches"), "{:?}", told(refused));
    }
    let heard = serde_json::to_string(&asked_of(&model, "b")[0].messages).unwrap();
    assert!(!heard.contains("swordfish"), "{heard}");
}

/// What a holder writes when it returns the thread is checked like its answers.
#[tokio::test]
async fn result_of_a_handoff_is_checked() {
    let returns = |tool, arguments| ScriptedTurn::call(tool, &arguments);
    let model = Scripted::default()
        .script("a", [transfer("it is theirs"), ScriptedTurn::text("Welcome back.")])
        .script(
            "b",
            [
                returns("complete_handoff", json!({"result_summary": "The word is swordfish."})),
                returns("complete_handoff", json!({"result_summary": "Done.", "artifacts": ["swordfish"]})),
                returns("decline_handoff", json!({"reason": "swordfish is secret"})),
                returns("complete_handoff", json!({"result_summary": "Done.", "artifacts": ["a word"]})),
            ],
        );
    let setup = Setup::new(&model).agent(collaborates).with("b", |b| {
        b.accepts_handoff = Some(AcceptsHandoff::default());
        b.guardrails.output = deny("swordfish");
    });
    let seen = run(setup).await;
    assert_eq!((seen.answer.as_str(), model.left()), ("Welcome back.", 0));
    for refused in &asked_of(&model, "b")[1..] {
        assert!(told(refused)[0].contains("this may not be passed on: it matches"), "{:?}", told(refused));
    }
    let heard = serde_json::to_string(&asked_of(&model, "a")[1].messages).unwrap();
    assert!(heard.contains("a word") && !heard.contains("swordfish"), "{heard}");
}
