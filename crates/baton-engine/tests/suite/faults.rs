//! What must not happen happens: an agent's part panics, a child is late at the very moment it ends, a run is cancelled while others
//! are at work.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_core::agent::{Advisor, Advisors, ModelName};
use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::ledger::CallOutcome;
use baton_core::model::{Model, ModelFacts, ModelRequest, ReplyStream};
use baton_core::store::RunStatus;
use baton_core::{Event, HumanDuration, LedgerRow, TenantId};
use baton_engine::{Engine, HeartbeatConfig, ModelRegistry, Observer};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::durability::{die, go_on};
use super::{Setup, TestTool, name};

/// Plays a script, except that one agent's calls are a fault in this program.
#[derive(Debug)]
struct Fragile {
    script: Scripted,
    breaks: &'static str,
}

impl Model for Fragile {
    fn provider(&self) -> &str {
        self.script.provider()
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        assert_ne!(request.agent.as_str(), self.breaks, "a fault in an adapter");
        self.script.stream(request)
    }

    fn facts(&self, model: &str) -> ModelFacts {
        self.script.facts(model)
    }
}

fn breaking(script: &Scripted, breaks: &'static str) -> Setup {
    let mut setup = Setup::new(script);
    let model = Arc::new(Fragile { script: script.clone(), breaks });
    setup.models = ModelRegistry::new(ModelName::parse("scripted/m").unwrap()).with_provider(model);
    setup
}

/// An agent that panics fails like any other: it is told, paid for and recorded, and the others go on.
#[tokio::test]
async fn panicking_child_counts_as_failed() {
    let ask = ScriptedTurn::call("delegate", &json!({"agents": ["b", "c"], "message": "Look."}));
    let model = Scripted::default()
        .script("a", [ask, ScriptedTurn::text("Without b.")])
        .script("c", [ScriptedTurn::text("Looked.")]);
    let setup = breaking(&model, "b").agent(|a| a.agents = vec![name("b"), name("c")]);
    let ran = setup.with("b", |_| {}).with("c", |_| {}).run().await;
    assert_eq!((ran.answer(), ran.end.status), ("Without b.", RunStatus::Completed));
    let told = model.asked().into_iter().rfind(|asked| asked.agent == "a").unwrap().messages;
    let Some(ChatMessage::Tool(result)) = told.last() else { panic!("{told:?}") };
    assert!(result.content.contains("`b` stopped with an internal error"), "{}", result.content);
    assert!(result.content.contains("Looked."), "{}", result.content);
    assert!(ran.log().contains("session failed: internal"), "{}", ran.log());
    assert_eq!(ran.end.rows.iter().filter(|row| row.agent == name("b")).count(), 1);
}

/// A run that panics has failed, is said to have, once, and leaves its thread to the next.
#[tokio::test]
async fn panicking_run_fails() {
    let model = Scripted::default().script("b", [ScriptedTurn::text("Here.")]);
    let (parts, request) = breaking(&model, "a").with("b", |_| {}).parts().await;
    let engine = Engine::new(parts);
    let mut run = engine.start(request.clone()).await.unwrap();
    let mut ends = 0;
    while let Some(event) = run.events.recv().await {
        ends += usize::from(event.kind.is_end());
    }
    let end = run.join().await;
    assert_eq!((ends, end.status), (1, RunStatus::Failed));
    assert_eq!(end.failure.unwrap().code(), "internal");
    assert_eq!(end.rows.len(), 1, "the call that broke is on the books");
    let next = engine.start(baton_engine::RunRequest { agent: name("b"), ..request }).await.unwrap();
    assert_eq!(next.finish().await.status, RunStatus::Completed);
}

/// Whoever is late is recorded as late, and so is whoever worked for them; that somebody cancelled is not true.
#[tokio::test(start_paused = true)]
async fn timeout_is_not_cancellation() {
    let call = ScriptedTurn::call("call_agent", &json!({"mission": "Look.", "specialist": "c"}));
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("Done.")])
        .script("b", [call])
        .script("c", [ScriptedTurn::default().say("Let me").hang()]);
    let timeout = HumanDuration::from_secs(5);
    let setup = Setup::new(&model).agent(|a| {
        let agents = vec![Advisor { agent: name("b"), required: false, timeout }];
        a.advisors = Advisors { agents, ..Advisors::default() };
    });
    let ran = setup.with("b", |b| b.agents = vec![name("c")]).with("c", |_| {}).run().await;
    assert_eq!(ran.answer(), "Done.");
    let failed = ran.events.iter().filter_map(|event| match &event.kind {
        EventKind::SessionFailed { code, message, .. } => Some(format!("{} {code} {message}", event.agent)),
        _ => None,
    });
    let failed: Vec<String> = failed.collect();
    assert_eq!(failed, ["c timeout no answer within 5s", "b timeout no answer within 5s"]);
}

/// The stage of a chain that is cut off is late after a crash as it was before it, in the same words.
#[test]
fn chain_timeout_survives_a_crash() {
    let first = Scripted::default()
        .script("b", [ScriptedTurn::text("Half.")])
        .script("c", [ScriptedTurn::default().say("Let").hang()])
        .script("a", [ScriptedTurn::default().say("I").hang()]);
    let with = |model: &Scripted| {
        let setup = Setup::new(model).agent(|a| {
            let timeout = HumanDuration::from_millis(200);
            let agents = vec![Advisor { agent: name("b"), required: false, timeout }];
            a.advisors = Advisors { agents, ..Advisors::default() };
        });
        let to_c = baton_core::agent::Destination { to: name("c"), when: None };
        setup.with("b", |b| b.handoff = vec![to_c]).with("c", |_| {})
    };
    let (engine, _, _) = die(with(&first), |event| {
        event.agent.as_str() == "a" && matches!(event.kind, EventKind::TextDelta { .. })
    });
    let second = Scripted::default().script("a", [ScriptedTurn::text("Alone.")]);
    go_on(with(&second), &engine).is_sound();
    let task = |model: &Scripted| {
        let asked = model.asked().into_iter().find(|asked| asked.agent == "a").unwrap();
        let Some(ChatMessage::User { parts }) = asked.messages.last() else { panic!("no task") };
        serde_json::to_string(parts).unwrap()
    };
    for model in [&first, &second] {
        assert!(task(model).contains("no answer within 200ms"), "{}", task(model));
        assert!(!task(model).contains("stage"), "{}", task(model));
    }
}

/// Everybody who is at work when a run is cancelled ends, promptly, and what they spent is kept before the run's end is told.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn running_agents_of_a_cancelled_run_are_billed() {
    let names: Vec<String> = (0..20).map(|number| format!("n{number}")).collect();
    let fan = |names: &[String]| json!({"agents": names, "message": "Look."});
    let first =
        names.chunks(5).fold(ScriptedTurn::default(), |turn, names| turn.and_call("delegate", &fan(names)));
    let model = Scripted::default().script("a", [first]);
    let model =
        names.iter().fold(model, |model, name| model.script(name, [ScriptedTurn::default().say("I").hang()]));
    let setup = Setup::new(&model).policy(|policy| policy.max_live_children = 100);
    let setup = setup.agent(|a| {
        a.agents = names.iter().map(|text| name(text)).collect();
        a.limits.max_parallel_tools = 8;
    });
    let setup = names.iter().fold(setup, |setup, name| setup.with(name, |_| {}));
    let (parts, request) = setup.parts().await;
    let engine = Engine::new(parts);
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let mut run = engine.start(request).await.unwrap();
    let id = run.id;
    super::eventually(async || {
        while run.events.try_recv().is_ok() {}
        model.asked().len() == 21
    })
    .await;
    run.cancel();
    let end = run.finish().await;
    assert_eq!(end.status, RunStatus::Cancelled);
    let rows = store.ledger(id).await.unwrap();
    let cut = rows.iter().filter(|row| row.path.contains("/delegate:")).collect::<Vec<_>>();
    assert_eq!(cut.len(), 20, "each of them once");
    assert!(cut.iter().all(|row| row.outcome == CallOutcome::Cancelled && row.tokens.input_tokens > 0));
    assert_eq!(store.run(id).await.unwrap().usage, end.usage);
}

/// A hundred at once are no slower than one, beside the work itself.
#[tokio::test(start_paused = true)]
async fn a_hundred_children_run_in_parallel() {
    let names: Vec<String> = (0..100).map(|number| format!("n{number}")).collect();
    let ask = ScriptedTurn::call("delegate", &json!({"agents": names, "message": "Look."}));
    let look = || [ScriptedTurn::call("look", &json!({})), ScriptedTurn::text("Looked.")];
    let model = Scripted::default().script("a", [ask, ScriptedTurn::text("Done.")]);
    let model = names.iter().fold(model, |model, name| model.script(name, look()));
    let slow = TestTool::new("look", |_| async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        Ok("seen".to_owned())
    });
    let setup = Setup::new(&model).tool(slow.clone()).policy(|policy| {
        policy.max_live_children = 100;
        policy.max_concurrent_delegations = 100;
    });
    let setup = setup.agent(|a| {
        a.agents = names.iter().map(|text| name(text)).collect();
        a.delegation.max_concurrent = 100;
        a.limits.max_tokens = Some(u64::MAX);
    });
    let setup = names.iter().fold(setup, |setup, name| setup.with(name, |_| {}));
    let ran = setup.run().await;
    assert_eq!((ran.answer(), slow.most_at_once()), ("Done.", 100));
    assert_eq!(ran.end.rows.len(), 2 + 1 + 100 * 3);
}

/// Who got the baton before a crash answers after it, also when the giver's time was over meanwhile.
#[test]
fn transfer_persists_after_a_timeout() {
    let first = Scripted::default()
        .script("a", [ScriptedTurn::call("transfer_to_c", &json!({"reason": "it is theirs"}))])
        .script("c", [ScriptedTurn::call("look", &json!({})), ScriptedTurn::default().say("Let").hang()]);
    let with = |model: &Scripted, timeout: HumanDuration| {
        let look = TestTool::new("look", |_| async {
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok("seen".to_owned())
        });
        let setup = Setup::new(model).tool(look).agent(move |a| {
            a.collaborations =
                vec![baton_core::agent::Collaboration { agent: name("c"), when: None, allow_revisit: 0 }];
            a.limits.timeout = timeout;
        });
        setup.with("c", |_| {})
    };
    let (engine, _, _) = die(with(&first, HumanDuration::from_mins(5)), |event| {
        event.agent.as_str() == "c" && matches!(event.kind, EventKind::TextDelta { .. })
    });
    let second = Scripted::default()
        .script("c", [ScriptedTurn::text("In short.")])
        .script("a", [ScriptedTurn::text("Me too.")]);
    let mut setup = with(&second, HumanDuration::from_millis(1)).agent(|a| {
        a.mcp_servers.insert("x".into(), baton_core::agent::McpServer::Configured);
    });
    // Nothing is quicker than the end of a time that is over.
    setup.servers = Some(Arc::new(super::sessions::Hangs));
    let after = go_on(setup, &engine);
    after.is_sound();
    let end = after.run.end.unwrap();
    assert_eq!((end.answer.as_deref(), end.answered_by), (Some("In short."), Some(name("c"))));
    assert_eq!(second.left(), 1, "the giver is not asked again");
}

/// What breaks beside the walk costs the lease's time: then the run is taken up again, and whoever waits hears its one end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn side_failure_does_not_fail_the_run() {
    #[derive(Debug)]
    struct BreaksOnce(AtomicBool);

    impl Observer for BreaksOnce {
        fn on_event(&self, _: &TenantId, _: &Event) {
            assert!(self.0.swap(true, Ordering::SeqCst), "a fault in an observer");
        }

        fn on_ledger_rows(&self, _: &TenantId, _: &[LedgerRow]) {}
    }

    let model = Scripted::default().script("a", [ScriptedTurn::text("Done.")]);
    let (mut parts, request) = Setup::new(&model).parts().await;
    parts.observer = Some(Arc::new(BreaksOnce(AtomicBool::new(false))));
    parts.lease = HeartbeatConfig { length: Duration::from_millis(300), beat: Duration::from_millis(50) };
    let mut run = Engine::new(parts).start(request).await.unwrap();
    let mut ends = 0;
    let heard = async {
        while let Some(event) = run.events.recv().await {
            ends += usize::from(event.kind.is_end());
        }
    };
    tokio::time::timeout(super::LONG, heard).await.expect("nobody took the run up again");
    let end = run.join().await;
    assert_eq!((ends, end.status), (1, RunStatus::Completed), "{:?}", end.failure);
    assert_eq!(end.answer.unwrap().text, "Done.");
}
