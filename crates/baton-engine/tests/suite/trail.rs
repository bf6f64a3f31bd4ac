//! Who did what: the audit trail of runs in which agents involve each other.

use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::{
    Advisor, Collaboration, Destination, Quorum, Router, RoutingMode, Strategy, Synthesis, Team,
    TerminationMode,
};
use baton_core::event::{Event, EventKind, RunOutcome};
use baton_core::message::{Part, Visibility};
use baton_core::store::{AuditQuery, AuditScope, AuditVerdict, Audited, PageRequest, RunStatus};
use baton_core::{HumanDuration, RunId, SubAgentResult, TraceParent};
use baton_engine::{DelegationPlan, Engine, RunRequest, RunTask, results};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use super::delegation::statuses;
use super::durability::{die, go_on, runtime};
use super::{Setup, name};

async fn trail(engine: &Engine, request: &RunRequest) -> Vec<Audited> {
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let query = AuditQuery { thread_id: Some(request.caller.thread_id), ..AuditQuery::default() };
    let page = PageRequest { limit: 200, cursor: None };
    store.audit(query, page).await.unwrap().data
}

/// One agent's part in a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Involved {
    run: RunId,
    path: String,
    how: String,
    from: String,
    to: String,
    end: Option<String>,
}

/// Who was asked by whom, in which order, and how it ended: from the trail alone.
fn rebuilt(trail: &[Audited]) -> Vec<Involved> {
    let mut parts: Vec<Involved> = Vec::new();
    for Audited { entry, .. } in trail {
        let Some(run) = entry.run_id else { continue };
        let word = |key: &str| entry.detail.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let decision = Some(entry.decision.clone());
        match (entry.action.as_str(), entry.decision.as_str()) {
            ("run.start", _) => parts.push(Involved {
                run,
                path: word("agent"),
                how: "run".to_owned(),
                from: entry.actor.clone(),
                to: word("agent"),
                end: None,
            }),
            ("run.end", _) => {
                parts.iter_mut().find(|part| part.run == run && part.how == "run").unwrap().end = decision;
            }
            (action, "allowed") if action.starts_with("agent.") => {
                assert_eq!(word("from"), entry.actor);
                let (path, to, from) = (word("path"), word("to"), entry.actor.clone());
                parts.push(Involved { run, path, how: action.to_owned(), from, to, end: None });
            }
            (action, "completed" | "failed" | "cancelled") if action.starts_with("agent.") => {
                let is_it =
                    |part: &&mut Involved| part.run == run && part.path == word("path") && part.how == action;
                parts.iter_mut().find(is_it).unwrap().end = decision;
            }
            _ => {}
        }
    }
    parts
}

/// The same from the events.
fn happened(events: &[Event], user: &str) -> Vec<Involved> {
    let mut parts: Vec<Involved> = Vec::new();
    let mut passed = String::new();
    for event in events {
        let (run, path) = (event.run_id, event.path.to_string());
        let mut end = |how: &str| {
            let is_it = |part: &&mut Involved| part.run == run && part.path == path;
            parts.iter_mut().find(is_it).unwrap().end = Some(how.to_owned());
        };
        match &event.kind {
            EventKind::RunFinished { outcome: RunOutcome::Success, .. }
            | EventKind::SessionFinished { .. } => {
                end("completed");
            }
            EventKind::RunFinished { .. } => end("cancelled"),
            EventKind::RunFailed { .. } => end("failed"),
            EventKind::SessionFailed { code, .. } => {
                end(if code == "cancelled" { "cancelled" } else { "failed" });
            }
            EventKind::Passed { from, .. } => passed = from.to_string(),
            EventKind::SessionStarted { parent, .. } => {
                let (above, last) = path.rsplit_once('/').unwrap_or_default();
                let how = match last.split_once(':').unwrap_or_default().0 {
                    _ if parent.is_none() => "run",
                    "call" => "agent.call",
                    "delegate" => "agent.delegate",
                    "advisor" => "agent.advise",
                    "member" => "agent.team",
                    "handoff" => "agent.chain",
                    "route" => "agent.route",
                    "transfer" => "agent.transfer",
                    other => panic!("{other}"),
                };
                let from = match how {
                    "run" => user.to_owned(),
                    "agent.chain" | "agent.route" | "agent.transfer" => std::mem::take(&mut passed),
                    _ => nearest(above),
                };
                let (how, to) = (how.to_owned(), event.agent.to_string());
                parts.push(Involved { run, path, how, from, to, end: None });
            }
            _ => {}
        }
    }
    parts
}

/// The agent at whose place something happens.
fn nearest(path: &str) -> String {
    let words = ["turn", "tool", "round"];
    let agent = |segment: &str| match segment.split_once(':') {
        None => Some(segment.to_owned()),
        Some((word, _)) if words.contains(&word) => None,
        Some((_, agent)) => Some(agent.to_owned()),
    };
    path.rsplit('/').find_map(agent).unwrap()
}

fn advised_by(text: &str) -> Advisor {
    Advisor { agent: name(text), required: false, timeout: HumanDuration::from_secs(30) }
}

fn hands_on_to(text: &str) -> Vec<Destination> {
    vec![Destination { to: name(text), when: None }]
}

fn transfers_to(text: &str) -> Vec<Collaboration> {
    vec![Collaboration { agent: name(text), when: None, allow_revisit: 0 }]
}

fn picks(text: &str) -> Router {
    Router { mode: RoutingMode::Pure, destinations: vec![name(text)], fallback: None, may_answer: false }
}

fn one_round_of(members: &[&str]) -> Team {
    Team {
        members: members.iter().map(|member| name(member)).collect(),
        termination_mode: TerminationMode::MaxRounds,
        max_rounds: 1,
        quorum: Quorum::All,
        member_timeout: HumanDuration::from_secs(30),
    }
}

/// Every way in which agents involve each other.
fn everybody(model: &Scripted) -> Setup {
    let setup = Setup::new(model).agent(|agent| {
        agent.advisors.agents = vec![advised_by("v")];
        agent.agents = vec![name("b"), name("c")];
        agent.handoff = hands_on_to("r");
    });
    let setup =
        ["b", "c", "r", "v", "u", "m", "n"].into_iter().fold(setup, |setup, one| setup.with(one, |_| {}));
    setup
        .with("g", |agent| agent.router = Some(picks("t")))
        .with("t", |agent| agent.collaborations = transfers_to("u"))
        .with("l", |agent| agent.team = Some(one_round_of(&["m", "n"])))
}

fn script() -> Scripted {
    let ask = json!({"agents": ["b", "c"], "message": "secret-of-ada"});
    Scripted::default()
        .script("v", [ScriptedTurn::text("Careful.")])
        .script(
            "a",
            [
                ScriptedTurn::call("delegate", &ask),
                ScriptedTurn::call("call_agent", &json!({"mission": "m", "specialist": "b"})),
                ScriptedTurn::text("So."),
            ],
        )
        .script("b", [ScriptedTurn::text("B."), ScriptedTurn::text("B again.")])
        .script("r", [ScriptedTurn::text("Reviewed.")])
        .script("g", [ScriptedTurn::call("route_to", &json!({"agent": "t", "reason": "fits"}))])
        .script("t", [ScriptedTurn::call("transfer_to_u", &json!({"reason": "knows"}))])
        .script("u", [ScriptedTurn::text("I am U.")])
        .script("m", [ScriptedTurn::text("M.")])
        .script("n", [ScriptedTurn::text("N.")])
        .script("l", [ScriptedTurn::text("We say so.")])
}

/// A7, A15, H3, H16, J0c: from the trail of a thread alone it can be said who asked whom, in which order, on whose behalf and how it ended;
/// and it is what was heard. It never holds what was said.
#[tokio::test(start_paused = true)]
async fn a7_whole_conversation_is_audited() {
    let (parts, request) = everybody(&script()).parts().await;
    let engine = Engine::new(parts);
    let trace = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").ok();
    for agent in ["a", "g", "l"] {
        let input = vec![Part::text("secret-of-ada")];
        let request = RunRequest { agent: name(agent), input, trace: trace.clone(), ..request.clone() };
        let end = engine.start(request).await.unwrap().finish().await;
        assert_eq!(end.status, RunStatus::Completed, "{:?}", end.failure);
    }
    let trail = trail(&engine, &request).await;
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let events = store.events(request.caller.thread_id, 0, 1000).await.unwrap();
    let rebuilt = rebuilt(&trail);
    assert_eq!(rebuilt, happened(&events, "ada"));
    let lines = rebuilt.iter().map(|part| {
        format!("{} {} → {}: {}", part.how, part.from, part.to, part.end.as_deref().unwrap_or("open"))
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
    for Audited { entry, .. } in &trail {
        let text = json!(entry).to_string();
        assert!(!text.contains("secret-of-ada") && !text.contains("Reviewed"), "{text}");
        if entry.action.starts_with("agent.") {
            assert_eq!(entry.on_behalf_of.as_deref(), Some("ada"));
        }
        if entry.action != "message.send" {
            assert_eq!(entry.trace_id.as_deref(), Some("4bf92f3577b34da6a3ce929d0e0e4736"), "{text}");
        }
    }
    assert!(matches!(store.verify_audit(AuditScope::Full).await.unwrap(), AuditVerdict::Intact { .. }));
}

#[tokio::test(start_paused = true)]
async fn maintenance_seals_the_audit_trail() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Hello.")]);
    let (parts, request) = Setup::new(&model).parts().await;
    let engine = Engine::new(parts);
    engine.start(request.clone()).await.unwrap().finish().await;
    let tenant = engine.parts.store.tenant(&request.caller.tenant);
    let watching = tokio::spawn(Arc::clone(&engine).run_maintenance(Duration::from_secs(1)));
    let sealed = loop {
        match tenant.verify_audit(AuditScope::Full).await.unwrap() {
            AuditVerdict::Intact { entries, seal: Some(seal), .. } => break (entries, seal.entries),
            AuditVerdict::Intact { seal: None, .. } => tokio::time::sleep(Duration::from_millis(100)).await,
            broken @ AuditVerdict::Broken { .. } => panic!("{broken:?}"),
        }
    };
    watching.abort();
    assert_eq!(sealed, (3, 3), "the message, and the start and the end of its run");
}

/// A7: a delegation that a caller asked for is rebuilt the same way.
#[tokio::test(start_paused = true)]
async fn a7_delegation_by_request_is_audited() {
    let model = Scripted::default().script("b", [ScriptedTurn::text("B.")]);
    let delegation = DelegationPlan {
        agents: vec![name("b"), name("c")],
        strategy: Strategy::Parallel,
        timeout: HumanDuration::from_secs(30),
        synthesis: Synthesis::Concat,
    };
    let (parts, mut request) = everybody(&model).task(RunTask::Delegate(delegation)).parts().await;
    let trace = TraceParent::parse("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01").unwrap();
    let trace_id = trace.trace_id();
    request.trace = Some(trace);
    let engine = Engine::new(parts);
    engine.start(request.clone()).await.unwrap().finish().await;
    let trail = trail(&engine, &request).await;
    let ends: Vec<(String, Option<String>)> =
        rebuilt(&trail).into_iter().map(|part| (part.to, part.end)).collect();
    let how = |text: &str| Some(text.to_owned());
    assert_eq!(
        ends,
        [("a".into(), how("completed")), ("b".into(), how("completed")), ("c".into(), how("failed"))]
    );
    let start = trail.iter().find(|one| one.entry.action == "run.start").unwrap();
    assert_eq!(start.entry.detail["agents"], json!(["b", "c"]));
    assert_eq!(start.entry.trace_id, Some(trace_id));
}

/// H2, X32: agents that pass on personal data as it is are on record, in the entries of the invocation itself.
#[tokio::test(start_paused = true)]
async fn h2_disabled_masking_is_audited() {
    let call = ScriptedTurn::call("call_agent", &json!({"mission": "Look.", "specialist": "b"}));
    for (a, b, expected) in
        [(true, true, json!(null)), (false, true, json!(["a"])), (false, false, json!(["a", "b"]))]
    {
        let model = Scripted::default()
            .script("a", [call.clone(), ScriptedTurn::text("A.")])
            .script("b", [ScriptedTurn::text("B.")]);
        let setup = Setup::new(&model).with("b", |agent| agent.sanitize = b);
        let setup = setup.agent(|agent| {
            agent.agents = vec![name("b")];
            agent.sanitize = a;
        });
        let (parts, request) = setup.parts().await;
        let engine = Engine::new(parts);
        engine.start(request.clone()).await.unwrap().finish().await;
        let trail = trail(&engine, &request).await;
        let calls: Vec<_> = trail.iter().filter(|one| one.entry.action == "agent.call").collect();
        assert_eq!(calls.len(), 2, "{trail:?}");
        for one in calls {
            assert_eq!(one.entry.detail["unmasked"], expected, "{:?}", one.entry);
        }
    }
}

/// How often each thing is on record.
fn twice(trail: &[Audited]) -> Vec<String> {
    let keys: Vec<String> = trail
        .iter()
        .filter(|one| one.entry.action != "run.resume")
        .map(|one| format!("{} {} {}", one.entry.action, one.entry.decision, one.entry.detail))
        .collect();
    keys.iter().filter(|key| keys.iter().filter(|other| other == key).count() > 1).cloned().collect()
}

/// A7: wherever the process dies, nothing is on record twice, and nothing is missing.
#[test]
fn a7_crash_neither_duplicates_nor_loses_an_entry() {
    let is_begun: fn(&Event) -> bool =
        |event| event.agent.as_str() == "b" && matches!(event.kind, EventKind::SessionStarted { .. });
    let is_ended: fn(&Event) -> bool =
        |event| event.agent.as_str() == "b" && matches!(event.kind, EventKind::SessionFinished { .. });
    let is_told: fn(&Event) -> bool = |event| matches!(event.kind, EventKind::ToolReturned { .. });
    let setup = |model: &Scripted| {
        let setup = Setup::new(model).with("b", |_| {}).with("c", |_| {}).with("r", |_| {});
        setup.agent(|agent| {
            agent.agents = vec![name("b"), name("c")];
            agent.handoff = hands_on_to("r");
        })
    };
    for cut in [is_begun, is_ended, is_told] {
        let ask = json!({"agents": ["b", "c"], "message": "m"});
        let hang = ScriptedTurn::default().say("I").hang();
        let first = Scripted::default()
            .script("a", [ScriptedTurn::call("delegate", &ask), hang])
            .script("b", [ScriptedTurn::text("B.")])
            .script("c", [ScriptedTurn::text("C.")]);
        let (engine, request, _) = die(setup(&first), cut);
        let second = Scripted::default()
            .script("a", [ScriptedTurn::text("So.")])
            .script("b", [ScriptedTurn::text("B.")])
            .script("c", [ScriptedTurn::text("C.")])
            .script("r", [ScriptedTurn::text("Reviewed.")]);
        let after = go_on(setup(&second), &engine);
        after.is_sound();
        assert_eq!(after.run.status, RunStatus::Completed);
        let trail = runtime().block_on(trail(&engine, &request));
        assert_eq!(twice(&trail), Vec::<String>::new());
        assert_eq!(trail.iter().filter(|one| one.entry.action == "run.resume").count(), 1);
        let rebuilt = rebuilt(&trail);
        assert_eq!(rebuilt, happened(&after.events, "ada"));
        assert_eq!(rebuilt.len(), 4);
    }
}

/// H16: what is refused is on record, once, with the reason as a code.
#[tokio::test(start_paused = true)]
async fn h16_refusals_are_audited() {
    let back = ScriptedTurn::call("transfer_to_a", &json!({"reason": "yours"}));
    let model = Scripted::default()
        .script("a", [ScriptedTurn::call("transfer_to_b", &json!({"reason": "knows"}))])
        .script("b", [back, ScriptedTurn::text("Then I do.")]);
    let setup = Setup::new(&model).agent(|agent| agent.collaborations = transfers_to("b"));
    let (parts, request) = setup.with("b", |agent| agent.collaborations = transfers_to("a")).parts().await;
    let engine = Engine::new(parts);
    engine.start(request.clone()).await.unwrap().finish().await;
    let denied: Vec<Audited> =
        trail(&engine, &request).await.into_iter().filter(|one| one.entry.decision == "denied").collect();
    assert_eq!(denied.len(), 1);
    let entry = &denied[0].entry;
    assert_eq!((entry.actor.as_str(), entry.action.as_str()), ("b", "agent.transfer"));
    assert_eq!((&entry.detail["to"], &entry.detail["code"]), (&json!("a"), &json!("re_entry")));
}

fn asks_without_permission(model: &Scripted) -> Setup {
    let setup = Setup::new(model).agent(|agent| {
        agent.agents = vec![name("b")];
        agent.advisors.agents = vec![advised_by("v")];
        agent.handoff = hands_on_to("r");
    });
    let setup = setup.with("b", |_| {}).with("v", |_| {}).with("r", |agent| agent.agents = vec![name("b")]);
    setup.rights(&["thread:read", "thread:write"])
}

/// B18, H1: for a person without the permission no agent asks others, and that is on record once. What files declare is their
/// author's decision and happens all the same.
#[tokio::test(start_paused = true)]
async fn b18_delegation_needs_the_permission() {
    let model = Scripted::default()
        .script("v", [ScriptedTurn::text("Careful.")])
        .script("a", [ScriptedTurn::text("Alone.")])
        .script("r", [ScriptedTurn::text("Reviewed.")]);
    let (parts, request) = asks_without_permission(&model).parts().await;
    let engine = Engine::new(parts);
    let mut run = engine.start(request.clone()).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = run.events.recv().await {
        events.push(event);
    }
    let ran = super::Ran { events, end: run.join().await };
    assert_eq!(ran.answer(), "Reviewed.");
    for asked in model.asked() {
        assert!(
            !asked.tools.iter().any(|tool| tool == "delegate" || tool == "call_agent"),
            "{:?}",
            asked.tools
        );
    }
    let said = statuses(&ran, Visibility::Internal);
    let expected =
        "`a` calls no other agent: the person does not have the permission `orchestration:delegate`";
    assert_eq!(said, [expected]);
    let denied: Vec<Audited> =
        trail(&engine, &request).await.into_iter().filter(|one| one.entry.decision == "denied").collect();
    assert_eq!(denied.len(), 1);
    assert_eq!((denied[0].entry.action.as_str(), denied[0].entry.actor.as_str()), ("agent.delegate", "a"));
    assert_eq!(denied[0].entry.detail["permission"], "orchestration:delegate");
}

/// B18: also when the run is walked again after a crash.
#[test]
fn b18_denied_delegation_is_audited_once() {
    let model = |last: ScriptedTurn| {
        Scripted::default()
            .script("v", [ScriptedTurn::text("Careful.")])
            .script("a", [ScriptedTurn::text("Alone.")])
            .script("r", [last])
    };
    let is_reviewed =
        |event: &Event| event.agent.as_str() == "r" && matches!(event.kind, EventKind::TextDelta { .. });
    let (engine, request, _) =
        die(asks_without_permission(&model(ScriptedTurn::default().say("Half").hang())), is_reviewed);
    go_on(asks_without_permission(&model(ScriptedTurn::text("Reviewed."))), &engine);
    let trail = runtime().block_on(trail(&engine, &request));
    assert_eq!(trail.iter().filter(|one| one.entry.decision == "denied").count(), 1);
}

/// J3.6, B15: what models had others do can be read as well, whichever tool they used; but not what those had done by others.
#[tokio::test(start_paused = true)]
async fn j3_6_sub_agent_results_can_be_read() {
    let ask = |agents: &[&str]| ScriptedTurn::call("delegate", &json!({"agents": agents, "message": "m"}));
    let call = |who: &str| ScriptedTurn::call("call_agent", &json!({"mission": "m", "specialist": who}));
    let model = Scripted::default()
        .script("a", [ask(&["b", "c"]), call("b"), ScriptedTurn::text("So.")])
        .script("b", [call("d"), ScriptedTurn::text("B."), ScriptedTurn::text("B again.")])
        .script("d", [ScriptedTurn::text("D.")]);
    let setup = Setup::new(&model).agent(|agent| agent.agents = vec![name("b"), name("c")]);
    let setup = setup.with("b", |agent| agent.agents = vec![name("d")]).with("c", |_| {}).with("d", |_| {});
    let (parts, request) = setup.parts().await;
    let engine = Engine::new(parts);
    let run = engine.start(request.clone()).await.unwrap();
    let run_id = run.id;
    run.finish().await;
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let found: Vec<SubAgentResult> = results(&*store, run_id).await.unwrap();
    let found: Vec<(&str, Option<&str>, bool)> = found
        .iter()
        .map(|one| (one.agent_id.as_str(), one.response.as_deref(), one.session_id.is_some()))
        .collect();
    assert_eq!(found, [("b", Some("B."), true), ("c", None, true), ("b", Some("B again."), true)]);
}
