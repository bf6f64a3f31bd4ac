//! Delegation that a caller asks for: no model decides who is asked.

use std::time::Duration;

use baton_core::agent::{AgentKind, RemoteCard, Strategy, Synthesis};
use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::message::{Role, Visibility};
use baton_core::model::ModelErrorKind;
use baton_core::store::{MessageQuery, RunStatus};
use baton_core::{HumanDuration, SubAgentResult};
use baton_engine::bounds::InvocationError;
use baton_engine::{
    DelegationPlan, Engine, Failure, OrchestrationError, RunRequest, RunResult, RunTask, results,
};
use baton_models::scripted::{Scripted, ScriptedTurn};
use tokio::time::Instant;

use super::delegation::{may_race, statuses};
use super::durability::{die, go_on, runtime};
use super::{Ran, Setup, name};

pub(super) fn delegation(agents: &[&str]) -> DelegationPlan {
    DelegationPlan {
        agents: agents.iter().map(|text| name(text)).collect(),
        strategy: Strategy::Parallel,
        timeout: HumanDuration::from_secs(30),
        synthesis: Synthesis::Concat,
    }
}

fn asks(model: &Scripted, delegation: DelegationPlan) -> Setup {
    let setup = Setup::new(model).agent(may_race).with("b", |_| {}).with("c", |_| {}).with("d", |_| {});
    setup.task(RunTask::Delegate(delegation))
}

fn after(millis: u64, text: &str) -> ScriptedTurn {
    ScriptedTurn::default().wait(Duration::from_millis(millis)).say(text)
}

fn b_and_c() -> Scripted {
    Scripted::default().script("b", [after(300, "30 °C.")]).script("c", [after(200, "Very.")])
}

/// A run with the engine that it happened in, for whoever looks at what was kept.
struct Kept {
    engine: std::sync::Arc<Engine>,
    request: RunRequest,
    ran: Ran,
}

impl Kept {
    async fn of(setup: Setup) -> Self {
        let (parts, request) = setup.parts().await;
        let engine = Engine::new(parts);
        let mut run = engine.start(request.clone()).await.unwrap();
        let mut events = Vec::new();
        while let Some(event) = run.events.recv().await {
            events.push(event);
        }
        Self { engine, request, ran: Ran { events, end: run.join().await } }
    }

    async fn results(&self) -> Vec<SubAgentResult> {
        let store = self.engine.parts.store.tenant(&self.request.caller.tenant);
        results(&*store, self.ran.events[0].run_id).await.unwrap()
    }

    /// What was said, by whom, and who sees it.
    async fn said(&self) -> Vec<(Role, String, Visibility)> {
        let store = self.engine.parts.store.tenant(&self.request.caller.tenant);
        let query = MessageQuery { include_internal: true, ..MessageQuery::last(50) };
        let messages = store.messages(self.request.caller.thread_id, query).await.unwrap();
        let said =
            messages.into_iter().map(|one| (one.message.role, one.message.text(), one.message.visibility));
        said.collect()
    }
}

/// B20, B5, B6: the library's own delegation gives one result for each agent, and its errors are of the family of delegations.
#[tokio::test(start_paused = true)]
async fn b20_delegation_errors_are_orchestration_errors() {
    let model = Scripted::default().script("b", [ScriptedTurn::text("30 °C.")]);
    let (parts, request) = asks(&model, delegation(&["b", "c"])).parts().await;
    let engine = Engine::new(parts);
    let mut found =
        baton_engine::delegate(&engine, request.clone(), delegation(&["b", "c"])).await.unwrap().into_iter();
    let (b, c) = (found.next().unwrap(), found.next().unwrap());
    assert_eq!((b.agent_id.as_str(), b.success), ("b", true));
    assert_eq!(baton_engine::response_of(b).unwrap(), "30 °C.");
    let error = OrchestrationError::from(baton_engine::response_of(c).unwrap_err());
    assert!(
        matches!(&error, OrchestrationError::Delegation(_)) && error.code() == "invalid_request",
        "{error}"
    );
    assert!(error.to_string().starts_with("`c` gave no response: "), "{error}");
    // One that cannot begin has no results.
    let error = baton_engine::delegate(&engine, request, delegation(&["nobody"])).await.unwrap_err();
    assert_eq!(OrchestrationError::from(error).code(), "agent_not_found");
}

fn outcomes(results: &[SubAgentResult]) -> Vec<(&str, Option<&str>, Option<&str>)> {
    let each = |one: &SubAgentResult| one.error_type.is_some() != one.success;
    assert!(results.iter().all(each), "{results:?}");
    results
        .iter()
        .map(|one| (one.agent_id.as_str(), one.response.as_deref(), one.error_type.as_deref()))
        .collect()
}

/// B3, B5, B6, B8, J3.3: everybody works at the same time and is heard, and what they bring is one text with their names. The main
/// agent's model is not asked.
#[tokio::test(start_paused = true)]
async fn b5_delegation_by_request_needs_no_model_decision() {
    let model = b_and_c();
    let before = Instant::now();
    let kept = Kept::of(asks(&model, delegation(&["b", "c", "b"]))).await;
    assert_eq!(before.elapsed().as_millis(), 300, "at the same time, and each once");
    insta::assert_snapshot!(super::delegation::story(&kept.ran));
    assert_eq!(kept.ran.answer(), "From b:\n30 °C.\n\nFrom c:\nVery.");
    assert_eq!(kept.ran.end.answered_by, Some(name("a")));
    assert!(model.asked().iter().all(|asked| asked.agent != "a"));
    let results = kept.results().await;
    assert_eq!(outcomes(&results), [("b", Some("30 °C."), None), ("c", Some("Very."), None)]);
    assert_eq!(results.iter().map(|one| one.latency_ms).collect::<Vec<_>>(), [300, 200]);
    let said = kept.said().await;
    let (internal, user) = (Visibility::Internal, Visibility::User);
    let expected = [
        (Role::User, "What is up?", user),
        (Role::Assistant, "Very.", internal),
        (Role::Assistant, "30 °C.", internal),
        (Role::Assistant, "From b:\n30 °C.\n\nFrom c:\nVery.", user),
    ];
    assert_eq!(said, expected.map(|(role, text, seen)| (role, text.to_owned(), seen)));
}

/// B9: the main agent writes one answer of what they brought, without tools, and is heard as it does.
#[tokio::test(start_paused = true)]
async fn b9_the_main_agent_writes_one_answer() {
    let model = b_and_c().script("a", [ScriptedTurn::default().say("It is ").say("hot.")]);
    let wanted = DelegationPlan { synthesis: Synthesis::Model, ..delegation(&["b", "c", "d"]) };
    let ran = asks(&model, wanted).run().await;
    assert_eq!(ran.answer(), "It is hot.");
    assert!(ran.log().contains("text \"It is \""), "{}", ran.log());
    let asked = model.asked().into_iter().find(|asked| asked.agent == "a").unwrap();
    assert_eq!(asked.tools, Vec::<String>::new());
    let Some(ChatMessage::User { parts }) = asked.messages.last() else { panic!("{:?}", asked.messages) };
    let text = format!("{parts:?}");
    for piece in
        ["### From b", "30 °C.", "### From c", "### From d (no result)", "What is up?", "d gave no answer"]
    {
        assert!(text.contains(piece), "{piece}: {text}");
    }
}

/// What others found is not lost when nobody can write an answer of it, and half an answer is taken back.
#[tokio::test(start_paused = true)]
async fn results_are_concatenated_when_the_model_is_unavailable() {
    let cut = ScriptedTurn::default().say("It is").fail(ModelErrorKind::InvalidRequest);
    let wanted = DelegationPlan { synthesis: Synthesis::Model, ..delegation(&["b", "c"]) };
    let ran = asks(&b_and_c().script("a", [cut]), wanted).run().await;
    assert_eq!(ran.answer(), "From b:\n30 °C.\n\nFrom c:\nVery.");
    assert_eq!(
        ran.events.iter().filter(|event| matches!(event.kind, EventKind::TurnRestarted { .. })).count(),
        1
    );
    assert!(
        statuses(&ran, Visibility::Internal)[0].starts_with("no answer could be written"),
        "{}",
        ran.log()
    );
}

/// J3.6: results and nothing else.
#[tokio::test(start_paused = true)]
async fn no_synthesis_returns_only_results() {
    let wanted = DelegationPlan { synthesis: Synthesis::None, ..delegation(&["b", "c"]) };
    let kept = Kept::of(asks(&b_and_c(), wanted)).await;
    assert_eq!((kept.ran.end.status, kept.ran.end.answer.is_none()), (RunStatus::Completed, true));
    assert_eq!(kept.results().await.len(), 2);
    let seen = kept.said().await.into_iter().filter(|(_, _, visibility)| *visibility == Visibility::User);
    assert_eq!(seen.count(), 1, "the question");
}

/// B4
#[tokio::test(start_paused = true)]
async fn b4_sequential_and_first_success_strategies() {
    let wanted = DelegationPlan { strategy: Strategy::Sequential, ..delegation(&["c", "b"]) };
    let before = Instant::now();
    let kept = Kept::of(asks(&b_and_c(), wanted)).await;
    assert_eq!(before.elapsed().as_millis(), 500);
    assert_eq!(outcomes(&kept.results().await), [("c", Some("Very."), None), ("b", Some("30 °C."), None)]);

    let wanted = DelegationPlan { strategy: Strategy::FirstSuccess, ..delegation(&["d", "b", "c"]) };
    let kept = Kept::of(asks(&b_and_c(), wanted)).await;
    assert_eq!(kept.ran.answer(), "Very.", "one is given as it is");
    let results = kept.results().await;
    let codes: Vec<Option<&str>> = results.iter().map(|one| one.error_type.as_deref()).collect();
    assert_eq!(codes[1..], [Some("not_used"), None]);
    assert!(!results[0].success);
}

/// B7, B8, B13, B14: whoever fails, is late or cannot be reached is a result; when all do, a sentence says so.
#[tokio::test(start_paused = true)]
async fn b7_failures_are_results() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::text("B.")])
        .script("c", [ScriptedTurn::default().hang()]);
    let wanted =
        DelegationPlan { timeout: HumanDuration::from_millis(1_500), ..delegation(&["b", "c", "d"]) };
    let mut setup = asks(&model, wanted);
    let card = RemoteCard::Url("https://example.com/card.json".into());
    setup.others[2].kind = AgentKind::Remote { card, auth: None };
    let before = Instant::now();
    let kept = Kept::of(setup).await;
    assert_eq!(before.elapsed().as_millis(), 1_500);
    assert_eq!((kept.ran.answer(), kept.ran.end.status), ("B.", RunStatus::Completed));
    let results = kept.results().await;
    let expected =
        [("b", Some("B."), None), ("c", None, Some("timeout")), ("d", None, Some("agent_unavailable"))];
    assert_eq!(outcomes(&results), expected);
    assert_eq!(
        (results[1].latency_ms, results[1].error.as_deref()),
        (1_500, Some("no answer within 1500ms"))
    );

    let ran = asks(&Scripted::default(), delegation(&["b", "c"])).run().await;
    assert_eq!(ran.answer(), "All sub-agents failed to provide responses.");
    assert_eq!(ran.end.status, RunStatus::Completed);
}

/// B14: the main agent's own time is all the time there is.
#[tokio::test(start_paused = true)]
async fn b14_sub_agents_share_the_main_agents_time() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::default().hang()])
        .script("c", [ScriptedTurn::default().hang()]);
    let wanted = DelegationPlan {
        strategy: Strategy::Sequential,
        timeout: HumanDuration::from_secs(40),
        ..delegation(&["b", "c", "d"])
    };
    let before = Instant::now();
    let kept =
        Kept::of(asks(&model, wanted).agent(|agent| agent.limits.timeout = HumanDuration::from_secs(50)))
            .await;
    assert_eq!(before.elapsed().as_secs(), 50);
    let codes: Vec<String> = kept.results().await.into_iter().filter_map(|one| one.error_type).collect();
    assert_eq!(codes, ["timeout", "timeout", "cancelled"]);
}

/// B11: no more at once than the operator and the main agent's file allow.
#[tokio::test(start_paused = true)]
async fn b11_delegation_limits_apply() {
    for (own, for_all) in [(1, 5), (5, 1)] {
        let setup = asks(&b_and_c(), delegation(&["b", "c"]));
        let setup = setup.agent(|agent| agent.delegation.max_concurrent = own);
        let before = Instant::now();
        setup.policy(|policy| policy.max_concurrent_delegations = for_all).run().await;
        assert_eq!(before.elapsed().as_millis(), 500);
    }
}

/// Whoever asks for others may ask for the main agent too: it does not work itself.
#[tokio::test(start_paused = true)]
async fn main_agent_may_be_one_of_the_targets() {
    let model = b_and_c().script("a", [ScriptedTurn::text("Warm.")]);
    let ran = asks(&model, delegation(&["a", "c"])).run().await;
    assert_eq!(ran.answer(), "From a:\nWarm.\n\nFrom c:\nVery.");
}

/// B11, B18, H1: who does not exist, may not be asked, or is asked by somebody who may not, is refused before anything is kept.
#[tokio::test(start_paused = true)]
async fn h1_invalid_request_is_rejected_at_once() {
    let refused = async |setup: Setup| {
        let (parts, request) = setup.parts().await;
        let engine = Engine::new(parts);
        let failure = engine.start(request.clone()).await.unwrap_err();
        let store = engine.parts.store.tenant(&request.caller.tenant);
        assert!(store.thread(request.caller.thread_id, None).await.is_err(), "nothing is kept");
        failure
    };
    let model = Scripted::default();
    let unknown = refused(asks(&model, delegation(&["b", "x"]))).await;
    assert!(matches!(&unknown, Failure::NoAgent(missing) if missing.as_str() == "x"), "{unknown}");
    let mut setup = asks(&model, delegation(&["b"]));
    setup.others[0].can_be_orchestrated = false;
    let alone = refused(setup).await;
    assert!(matches!(&alone, Failure::Refused(InvocationError::NotOrchestrated(_))), "{alone}");
    let viewer = refused(asks(&model, delegation(&["b"])).rights(&["thread:read", "thread:write"])).await;
    assert_eq!(viewer.code(), "permission_denied");
    assert!(viewer.to_string().contains("`orchestration:delegate`"), "{viewer}");
}

/// B11: the main agent's file says which strategies a client may request.
#[tokio::test]
async fn b11_requested_strategy_has_to_be_supported() {
    let wanted = DelegationPlan { strategy: Strategy::FirstSuccess, ..delegation(&["b"]) };
    let mut setup = asks(&Scripted::default(), wanted);
    setup.agent.delegation.strategies = vec![Strategy::Parallel, Strategy::Sequential];
    let (parts, request) = setup.parts().await;
    let failure = Engine::new(parts).start(request).await.unwrap_err();
    assert!(matches!(&failure, Failure::Refused(InvocationError::UnsupportedStrategy { .. })), "{failure}");
    assert_eq!(
        failure.to_string(),
        "`a` does not delegate with the strategy `first_success`; its file allows `parallel`, `sequential`"
    );
}

/// Whoever is done before the process dies is not asked again, and neither are all others once the answer is written.
#[test]
fn finished_sub_agents_are_not_asked_again_after_a_crash() {
    // Nobody else may be done before the process dies.
    let hang = || [ScriptedTurn::default().say("I").hang()];
    let first =
        Scripted::default().script("b", [ScriptedTurn::text("B.")]).script("c", hang()).script("d", hang());
    let setup = |model: &Scripted| asks(model, delegation(&["b", "c", "d"]));
    let b_is_done = |event: &baton_core::Event| {
        event.agent.as_str() == "b" && matches!(event.kind, EventKind::SessionFinished { .. })
    };
    let (engine, request, _) = die(setup(&first), b_is_done);
    let second = Scripted::default().script("c", [ScriptedTurn::text("C.")]);
    // The third is gone when the run goes on.
    let mut left = setup(&second);
    left.others.retain(|agent| agent.name.as_str() != "d");
    let after = go_on(left, &engine);
    after.is_sound();
    assert_eq!(after.run.status, RunStatus::Completed);
    let asked: Vec<String> = second.asked().into_iter().map(|asked| asked.agent).collect();
    assert_eq!(asked, ["c"]);
    assert_eq!(after.count(|kind| matches!(kind, EventKind::SubAgentFinished(_))), 2, "each is told once");
    assert_eq!(after.run.end.unwrap().answer.as_deref(), Some("From b:\nB.\n\nFrom c:\nC."));
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let kept = runtime().block_on(results(&*store, after.run.run_id)).unwrap();
    let expected = [("b", Some("B."), None), ("c", Some("C."), None), ("d", None, Some("agent_not_found"))];
    assert_eq!(outcomes(&kept), expected);
}

/// All results are kept before the answer is written: a crash then costs nothing but the answer.
#[test]
fn results_are_kept_before_the_answer_is_written() {
    let wanted = || DelegationPlan { synthesis: Synthesis::Model, ..delegation(&["b", "c"]) };
    let first = Scripted::default()
        .script("b", [ScriptedTurn::text("B.")])
        .script("c", [ScriptedTurn::error(ModelErrorKind::InvalidRequest)])
        .script("a", [ScriptedTurn::default().say("Half").hang()]);
    let is_written = |event: &baton_core::Event| matches!(&event.kind, EventKind::TextDelta { delta, .. } if delta == "Half");
    let (engine, _, _) = die(asks(&first, wanted()), is_written);
    let second = Scripted::default().script("a", [ScriptedTurn::text("Whole.")]);
    let after = go_on(asks(&second, wanted()), &engine);
    after.is_sound();
    assert_eq!(after.run.end.unwrap().answer.as_deref(), Some("Whole."));
    assert_eq!(second.asked().len(), 1, "the one that failed is not asked again either");
}

/// Everybody is told to end, and paid for.
#[tokio::test(start_paused = true)]
async fn cancelling_ends_all_sub_agents() {
    let hang = || [ScriptedTurn::default().say("I am").hang()];
    let model = Scripted::default().script("b", hang()).script("c", hang());
    let mut run = asks(&model, delegation(&["b", "c"])).start().await;
    let mut heard = 0;
    while let Some(event) = run.events.recv().await {
        heard += usize::from(matches!(event.kind, EventKind::TextDelta { .. }));
        if heard == 2 {
            run.cancel();
        }
    }
    let RunResult { status, rows, .. } = run.join().await;
    assert_eq!((status, rows.len()), (RunStatus::Cancelled, 2));
}

/// The conversation stays with whoever has it.
#[tokio::test(start_paused = true)]
async fn delegation_does_not_change_the_holder() {
    let model = Scripted::default()
        .script("d", [ScriptedTurn::text("I am D.")])
        .script("b", [ScriptedTurn::text("B.")]);
    let (parts, request) = asks(&model, delegation(&["b"])).parts().await;
    let engine = Engine::new(parts);
    let to_d = RunRequest { agent: name("d"), task: RunTask::Answer, ..request.clone() };
    engine.start(to_d).await.unwrap().finish().await;
    engine.start(request.clone()).await.unwrap().finish().await;
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let thread = store.thread(request.caller.thread_id, None).await.unwrap();
    assert_eq!(thread.holder, Some(name("d")));
}
