//! What one agent gives to another goes without secrets, and without what belongs to people unless the giver's file says so.

use baton_core::agent::{Agent, HistoryAccess, Router, RoutingMode, ToolPattern};
use baton_core::message::Part;
use baton_engine::{Engine, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use crate::calling::logged;
use crate::transfers::{asked_of, collaborates};
use crate::{Setup, TestTool, name};

const SENSITIVE: &str =
    "jane@example.com paid with 4111 1111 1111 1111; password=hunter2, sk-abcdefghijklmnopqrstuvwx123456.";
const PERSONAL: [&str; 2] = ["jane@example.com", "4111"];
const SECRET: [&str; 2] = ["hunter2", "sk-abcdef"];

/// Asks these questions one after the other, each with the sensitive words, and returns all that the model of `agent` heard.
async fn heard(setup: Setup, model: &Scripted, questions: u32, agent: &str) -> String {
    let (parts, request) = setup.parts().await;
    let engine = Engine::new(parts);
    for number in 1..=questions {
        let parts = vec![
            Part::text(format!("Question {number}. {SENSITIVE}")),
            Part::Data { data: json!({"note": SENSITIVE, "password": "hunter2"}) },
        ];
        let finished =
            engine.start(RunRequest { input: parts, ..request.clone() }).await.unwrap().finish().await;
        assert!(finished.answer.is_some(), "{:?}", finished.failure);
    }
    let asked = asked_of(model, agent);
    assert!(!asked.is_empty(), "`{agent}` heard nothing");
    asked
        .iter()
        .map(|asked| format!("{}\n{}\n", asked.system, serde_json::to_string(&asked.messages).unwrap()))
        .collect()
}

/// Runs it with a giver that masks and with one that does not.
async fn check(invocation: &str, questions: u32, receiver: &str, play: impl Fn() -> (Scripted, Setup)) {
    for sanitize in [true, false] {
        let (model, setup) = play();
        let setup = setup.agent(|a| a.sanitize = sanitize);
        let heard = heard(setup, &model, questions, receiver).await;
        for word in SECRET {
            assert!(!heard.contains(word), "{invocation}, sanitize: {sanitize}: {word} in {heard}");
        }
        for word in PERSONAL {
            assert_eq!(
                heard.contains(word),
                !sanitize,
                "{invocation}, sanitize: {sanitize}: {word} in {heard}"
            );
        }
        assert!(heard.contains("[REDACTED]"), "{invocation}: {heard}");
    }
}

fn calls(agent: &mut Agent) {
    agent.agents = vec![name("b"), name("c")];
}

fn three(model: &Scripted) -> Setup {
    Setup::new(model).agent(calls).with("b", |_| {}).with("c", |_| {})
}

fn pass(arguments: &Value) -> ScriptedTurn {
    ScriptedTurn::call("transfer_to_b", arguments)
}

/// H2, G19, X32: a mission, why it is given, and the prompt of an agent that is made up for it.
#[tokio::test]
async fn x32_missions_are_masked() {
    let call = json!({"mission": SENSITIVE, "specialist": "b", "reason": SENSITIVE});
    check("mission", 1, "b", || {
        let model = Scripted::default()
            .script("a", [ScriptedTurn::call("call_agent", &call), ScriptedTurn::text("ok")])
            .script("b", [ScriptedTurn::text("B.")]);
        let setup = three(&model);
        (model, setup)
    })
    .await;
    let made = json!({"mission": "Look.", "agent_definition": {"system_prompt": SENSITIVE}});
    check("made up", 1, "custom", || {
        let model = Scripted::default()
            .script("a", [ScriptedTurn::call("call_agent", &made), ScriptedTurn::text("ok")])
            .script("custom", [ScriptedTurn::text("C.")]);
        let setup = three(&model);
        (model, setup)
    })
    .await;
    check("delegate", 1, "c", || {
        let call = json!({"agents": ["b", "c"], "message": SENSITIVE});
        let model = Scripted::default()
            .script("a", [ScriptedTurn::call("delegate", &call), ScriptedTurn::text("ok")])
            .script("b", [ScriptedTurn::text("B.")])
            .script("c", [ScriptedTurn::text("C.")]);
        let setup = three(&model);
        (model, setup)
    })
    .await;
}

/// H2, X32: the request, what was said before, and what a router adds.
#[tokio::test]
async fn x32_routes_are_masked() {
    let note = json!({"agent": "b", "reason": SENSITIVE, "message": SENSITIVE});
    for history in
        [HistoryAccess::Conversation, HistoryAccess::Summary, HistoryAccess::Full, HistoryAccess::Last(4)]
    {
        check("route", 2, "b", || {
            let model = Scripted::default()
                .script("a", [1, 2].map(|_| ScriptedTurn::call("route_to", &note)))
                .script("b", [1, 2].map(|_| ScriptedTurn::text(SENSITIVE)));
            let destinations = vec![name("b"), name("c")];
            let router = Router { mode: RoutingMode::Pure, destinations, fallback: None, may_answer: false };
            let setup = Setup::new(&model).with("b", |_| {}).with("c", |_| {}).agent(|a| {
                a.history = history;
                a.router = Some(router.clone());
            });
            (model, setup)
        })
        .await;
    }
}

/// G19, H2, X32: whatever goes with the baton: the request, why, what the giver adds, said and found, and what was said before.
#[tokio::test]
async fn x32_transfers_are_masked() {
    let give = json!({
        "reason": SENSITIVE, "message": SENSITIVE,
        "context": {"note": SENSITIVE, "password": "x\"hunter2", "deep": [{"api_key": "sk-abcdef"}]}
    });
    let histories = [
        HistoryAccess::Conversation,
        HistoryAccess::Summary,
        HistoryAccess::Full,
        HistoryAccess::Last(4),
        HistoryAccess::Brief,
    ];
    for history in histories {
        check("transfer", 2, "b", || {
            let look = ScriptedTurn::call("look", &json!({})).say(SENSITIVE);
            let model = Scripted::default()
                .script("a", [ScriptedTurn::text(SENSITIVE), look, pass(&give).say(SENSITIVE)])
                .script("b", [ScriptedTurn::text("B.")]);
            let look = TestTool::new("look", |_| async { Ok(SENSITIVE.to_owned()) });
            let setup = Setup::new(&model).with("b", |_| {}).tool(look).agent(|a| {
                a.history = history;
                collaborates(a, &["b"]);
            });
            (model, setup)
        })
        .await;
    }
}

/// X28, G17: masked first, cut afterwards: no cut leaves the half of a secret that nobody would know for one.
#[tokio::test]
async fn x28_text_is_masked_before_it_is_cut() {
    let key = format!("password=\"{}hunter2hunter2\"", "x".repeat(40));
    for most in 1..60 {
        let model = Scripted::default()
            .script(
                "a",
                [pass(&json!({"reason": "b knows", "context": {"note": key}, "message": key})).say(&key)],
            )
            .script("b", [ScriptedTurn::text("B.")]);
        let setup = Setup::new(&model)
            .with("b", |_| {})
            .agent(|a| collaborates(a, &["b"]))
            .policy(|policy| policy.context_max_chars = most);
        setup.run().await;
        let heard = serde_json::to_string(&asked_of(&model, "b")[0].messages).unwrap();
        assert!(!heard.contains("hunter") && !heard.contains("unter2"), "{most}: {heard}");
    }
}

/// X32: what an agent brings goes back to whoever called it by its own setting, also as a summary or an error.
#[tokio::test]
async fn x32_returned_results_are_masked() {
    let call = ScriptedTurn::call("call_agent", &json!({"mission": "Look.", "specialist": "b"}));
    let delegate = ScriptedTurn::call("delegate", &json!({"agents": ["b"], "message": "Look."}));
    for (turn, summarize) in [(call.clone(), false), (delegate, false), (call, true)] {
        for sanitize in [true, false] {
            // `b` hands on to `c`, whose words the result is.
            let model = Scripted::default()
                .script("a", [turn.clone(), ScriptedTurn::text("In short."), ScriptedTurn::text("ok")])
                .script("b", [ScriptedTurn::text("Draft.")])
                .script("c", [ScriptedTurn::text(SENSITIVE)]);
            let mut setup = three(&model).asked("Hello.");
            setup.others[0].handoff = vec![baton_core::agent::Destination { to: name("c"), when: None }];
            setup.others[1].sanitize = sanitize;
            setup.agent.delegation.summarize_results = summarize;
            setup.agent.delegation.summary_max_length = 50;
            let ran = setup.run().await;
            let heard: String = asked_of(&model, "a")
                .iter()
                .map(|asked| serde_json::to_string(&asked.messages).unwrap())
                .collect();
            // An id may have the digits of a card by chance.
            let heard = heard.replace(&ran.events[0].run_id.to_string(), "");
            for word in SECRET {
                assert!(!heard.contains(word), "{word} in {heard}");
            }
            for word in PERSONAL {
                assert_eq!(heard.contains(word), !sanitize, "sanitize: {sanitize}: {word} in {heard}");
            }
        }
    }
    // The words of a router that chose nobody are in its error.
    let model = Scripted::default()
        .script(
            "a",
            [
                ScriptedTurn::call("call_agent", &json!({"mission": "Look.", "specialist": "b"})),
                ScriptedTurn::text("ok"),
            ],
        )
        .script("b", [1, 2, 3].map(|_| ScriptedTurn::text(SENSITIVE)));
    let mut setup = three(&model);
    setup.others[0].router = Some(Router {
        mode: RoutingMode::Pure,
        destinations: vec![name("c")],
        fallback: None,
        may_answer: false,
    });
    setup.run().await;
    let heard = serde_json::to_string(&asked_of(&model, "a")[1].messages).unwrap();
    assert!(heard.contains("routing_failed") && heard.contains("[EMAIL]"), "{heard}");
    assert!(!heard.contains("jane@") && !heard.contains("hunter2"), "{heard}");
}

/// A6, H2, X32: what was said earlier is read as masked as the reader's file says.
#[tokio::test]
async fn x32_read_thread_is_masked() {
    for sanitize in [true, false] {
        let model = Scripted::default()
            .script("a", [ScriptedTurn::text(SENSITIVE), pass(&json!({"reason": "b reads"}))])
            .script("b", [ScriptedTurn::call("read_thread", &json!({"count": 9})), ScriptedTurn::text("B.")]);
        let setup = Setup::new(&model)
            .agent(|a| {
                a.history = HistoryAccess::Brief;
                collaborates(a, &["b"]);
            })
            .with("b", |b| {
                b.tools.allow = vec![ToolPattern::parse("read_thread").unwrap()];
                b.sanitize = sanitize;
            });
        let heard = heard(setup, &model, 2, "b").await;
        assert!(heard.contains("1. person: Question 1."), "{heard}");
        assert_eq!(heard.contains("jane@example.com"), !sanitize, "{heard}");
        assert!(!heard.contains("hunter2") && !heard.contains("sk-abcdef"), "{heard}");
    }
}

/// H2, G7: neither the chain that is kept nor the stream says what a receiver must not hear.
#[tokio::test]
async fn g7_stored_reasons_are_masked() {
    let model = Scripted::default()
        .script("a", [pass(&json!({"reason": SENSITIVE}))])
        .script("b", [ScriptedTurn::text("B.")]);
    let setup = Setup::new(&model).with("b", |_| {}).agent(|a| collaborates(a, &["b"]));
    let kept = crate::transfers::Kept::of(setup).await;
    assert!(kept.hops[0].reason.contains("[EMAIL]") && !kept.hops[0].reason.contains("hunter2"));
    let passed = kept.ran.events.iter().filter(|event| event.path.contains("/transfer:b"));
    let passed: String = passed.map(|event| serde_json::to_string(&event.kind).unwrap()).collect();
    assert!(passed.contains("[EMAIL]") && !passed.contains("jane@"), "{passed}");
}

/// X32: who passes personal data on is in the log.
#[tokio::test]
async fn x32_disabled_masking_is_logged() {
    let lines = logged(Box::pin(async {
        let call = ScriptedTurn::call("call_agent", &json!({"mission": "Look.", "specialist": "b"}));
        let model = Scripted::default()
            .script("a", [call, pass(&json!({"reason": "b knows"}))])
            .script("b", [ScriptedTurn::text("B."), ScriptedTurn::text("B.")]);
        let setup = three(&model).agent(|a| {
            a.sanitize = false;
            collaborates(a, &["b"]);
        });
        setup.run().await;
    }))
    .await;
    for words in ["Delegation started", "Baton passed on with personal data"] {
        let line = lines.iter().find(|line| line.contains(words)).expect("it is logged");
        assert!(line.contains("sanitized=false") && line.contains("source_agent=a"), "{line}");
    }
}
