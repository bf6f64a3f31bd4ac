//! Chains: what an agent answers goes to the stage that its file names, and only the last one speaks.

use std::collections::HashSet;
use std::time::Duration;

use baton_core::agent::{Advisor, Agent, AgentKind, Destination, RemoteCard};
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::model::ModelErrorKind;
use baton_core::store::{HopKind, RunStatus};
use baton_core::{Event, HumanDuration};
use baton_engine::{Engine, EnrichFormat, Failure};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use crate::advisors::{adds_up, attacks, blocks, heard_by_the_person, task, without_nonce};
use crate::durability::{die, go_on};
use crate::{Ran, Setup, name};

pub(super) fn hands_to(agent: &mut Agent, to: &str) {
    agent.handoff = vec![Destination { to: name(to), when: None }];
}

fn hands_if(agent: &mut Agent, entries: &[(&str, Option<&str>)]) {
    let entry =
        |(to, when): &(&str, Option<&str>)| Destination { to: name(to), when: when.map(str::to_owned) };
    agent.handoff = entries.iter().map(entry).collect();
}

/// `a` hands on to `b`, `b` to `c`.
fn three(model: &Scripted) -> Setup {
    Setup::new(model).agent(|a| hands_to(a, "b")).with("b", |b| hands_to(b, "c")).with("c", |_| {})
}

fn spoken() -> Scripted {
    Scripted::default()
        .script("a", [ScriptedTurn::text("A draft.").tokens(10, 1)])
        .script("b", [ScriptedTurn::text("A better draft.").tokens(20, 2)])
        .script("c", [ScriptedTurn::text("The answer.").tokens(30, 3)])
}

/// The visible text, as a person reads it.
fn seen(ran: &Ran) -> Vec<&str> {
    let texts = ran.events.iter().filter(|event| event.visibility == Visibility::User);
    texts
        .filter_map(|event| match &event.kind {
            EventKind::TextFinished { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect()
}

/// E3, I4: one hop.
#[tokio::test]
async fn target_answers_instead_of_the_source() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("A draft.")])
        .script("b", [ScriptedTurn::text("Final.")]);
    let ran = Setup::new(&model).agent(|a| hands_to(a, "b")).with("b", |_| {}).run().await;
    assert_eq!((ran.answer(), ran.end.answered_by.clone()), ("Final.", Some(name("b"))));
    assert_eq!(seen(&ran), ["Final."]);
}

/// E4, E8, E15, E17, E19, E30, I4: events, texts and cost of a chain of three stages.
#[tokio::test]
async fn a_chain_ends_with_its_last_stage() {
    let model = spoken();
    let ran = three(&model).run().await;
    assert_eq!(ran.answer(), "The answer.");
    assert_eq!(heard_by_the_person(&ran.events), HashSet::from(["c".to_owned()]));
    insta::assert_snapshot!("chain_run", format!("{}\n{}", ran.log(), ran.ledger()));
    insta::assert_snapshot!("stage_fenced", without_nonce(&task(&model, "c")));
    adds_up(&ran);
    assert_eq!(ran.end.usage.tokens.input_tokens, 60);
}

/// X33
#[tokio::test]
async fn stage_input_in_tags() {
    let model = spoken();
    three(&model).policy(|policy| policy.enrich_format = EnrichFormat::Tags).run().await;
    insta::assert_snapshot!("stage_tags", without_nonce(&task(&model, "c")));
}

/// X9: the passes are remembered, and no stage but the first sees what was said before.
#[tokio::test]
async fn stage_sees_only_the_answer_and_the_request() {
    let model = spoken()
        .script("a", [ScriptedTurn::text("Another draft.")])
        .script("b", [ScriptedTurn::text("Better.")])
        .script("c", [ScriptedTurn::text("Another answer.")]);
    let (parts, request) = three(&model).parts().await;
    let engine = Engine::new(parts);
    for answer in ["The answer.", "Another answer."] {
        let finished = engine.start(request.clone()).await.unwrap().finish().await;
        assert_eq!(finished.answer.unwrap().text, answer);
    }
    let lengths: Vec<_> = model.asked().iter().map(|asked| asked.messages.len()).collect();
    assert_eq!(lengths, [1, 1, 1, 3, 1, 1]);
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let hops = store.hops(request.caller.thread_id).await.unwrap();
    let ways: Vec<_> = hops.iter().map(|hop| (hop.kind, hop.from.as_str(), hop.to.as_str())).collect();
    let ways_of_one = [(HopKind::Chain, "a", "b"), (HopKind::Chain, "b", "c")];
    assert_eq!(ways, [ways_of_one, ways_of_one].concat());
    let reasons: HashSet<_> = hops.iter().map(|hop| hop.reason.as_str()).collect();
    assert_eq!(reasons.len(), 1, "E15: the same reason for all: {reasons:?}");
}

#[tokio::test]
async fn first_true_condition_decides() {
    let entries = [
        ("b", Some("'reject' in output|lower")),
        ("c", Some("output is endingwith('!') and user == 'ada' and 'up' in input")),
        ("d", None),
    ];
    for (said, chosen) in [("REJECTED!", "b"), ("Fine!", "c"), ("Fine.", "d"), ("I reject nothing", "b")] {
        let model = ["b", "c", "d"]
            .into_iter()
            .fold(Scripted::default(), |model, stage| model.script(stage, [ScriptedTurn::text(stage)]))
            .script("a", [ScriptedTurn::text(said)]);
        let setup = Setup::new(&model).agent(|a| hands_if(a, &entries));
        let ran = setup.with("b", |_| {}).with("c", |_| {}).with("d", |_| {}).run().await;
        assert_eq!(ran.answer(), chosen, "after {said:?}");
    }
}

/// E8: a chain that ends before it was certain that it does.
#[tokio::test]
async fn without_a_true_condition_the_source_answers() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("A draft.")])
        .script("b", [ScriptedTurn::default().say("All ").say("good.")]);
    let ran = Setup::new(&model)
        .agent(|a| hands_to(a, "b"))
        .with("b", |b| hands_if(b, &[("c", Some("'bad' in output"))]))
        .with("c", |_| {})
        .run()
        .await;
    assert_eq!((ran.answer(), ran.end.answered_by.clone()), ("All good.", Some(name("b"))));
    assert_eq!(seen(&ran), ["All good."]);
    insta::assert_snapshot!("chain_without_match", ran.log());
}

#[tokio::test]
async fn a_condition_that_cannot_be_evaluated_ends_the_run() {
    for condition in ["output + 1", "output is nonsense", "output|"] {
        let model = Scripted::default().script("a", [ScriptedTurn::text("A draft.")]);
        let setup = Setup::new(&model).agent(|a| hands_if(a, &[("b", Some(condition)), ("b", None)]));
        let ran = setup.with("b", |_| {}).run().await;
        let failure = ran.end.failure.clone().unwrap();
        assert_eq!(failure.code(), "invalid_condition", "{condition}: {failure}");
        assert!(failure.to_string().contains("condition of `a`") && failure.to_string().contains(condition));
        assert_eq!(seen(&ran), [""; 0]);
    }
}

/// E16, E29, X24: whoever fails is named, and nobody comes after them.
#[tokio::test]
async fn failure_names_its_stage() {
    for (at, stage) in ["a", "b", "c"].into_iter().enumerate() {
        let before = ["a", "b", "c"].into_iter().take(at);
        let model = before
            .fold(Scripted::default(), |model, stage| model.script(stage, [ScriptedTurn::text("Well.")]))
            .script(stage, [ScriptedTurn::error(ModelErrorKind::Auth)]);
        let ran = three(&model).run().await;
        assert_eq!((ran.end.status, model.asked().len()), (RunStatus::Failed, at + 1));
        let failure = ran.end.failure.clone().unwrap();
        assert_eq!(
            failure.to_string(),
            format!("stage `{stage}` failed: scripted: auth: as the script says")
        );
        assert_eq!(failure.code(), "auth");
        assert!(matches!(failure.cause(), Failure::Model(_)));
        assert!(ran.log().contains(&format!("run failed: auth: stage `{stage}` failed")), "{}", ran.log());
        assert_eq!(seen(&ran), [""; 0], "nothing of what was not the answer");
    }
}

/// E16: an agent that hands nothing on is no stage.
#[tokio::test]
async fn failure_without_a_chain_names_no_stage() {
    let model = Scripted::default().script("a", [ScriptedTurn::error(ModelErrorKind::Auth)]);
    let failure = Setup::new(&model).run().await.end.failure.unwrap();
    assert!(matches!(failure, Failure::Model(_)), "{failure}");
}

/// E13, E31: what validation refuses is refused here too, with the name of who could not be reached.
#[tokio::test]
async fn unreachable_stage_is_named() {
    for (to, expected) in [
        ("nobody", "stage `nobody` failed: there is no agent `nobody`"),
        ("shy", "stage `shy` failed: `shy` may not be involved by other agents"),
        ("far", "stage `far` failed: `far` cannot be reached"),
    ] {
        let model = Scripted::default().script("a", [ScriptedTurn::text("A draft.")]);
        let card = RemoteCard::Url("https://far.example/card".into());
        let setup = Setup::new(&model)
            .agent(|a| hands_to(a, to))
            .with("shy", |shy| shy.can_be_orchestrated = false)
            .with("far", |far| far.kind = AgentKind::Remote { card, auth: None });
        let failure = setup.run().await.end.failure.unwrap().to_string();
        assert!(failure.starts_with(expected), "{failure}");
    }
}

/// E12, I4: files with a cycle are refused; a run that meets one all the same ends.
#[tokio::test]
async fn cycle_ends_with_a_clear_failure() {
    for (last, expected) in [
        ("a", "stage `a` failed: `a` is already active above (a)"),
        ("b", "stage `b` failed: `b` is already active above (a → b → c)"),
        ("c", "stage `c` failed: `c` is already active above (a → b → c)"),
    ] {
        let model = spoken();
        let ran = Setup::new(&model)
            .agent(|a| hands_to(a, "b"))
            .with("b", |b| hands_to(b, "c"))
            .with("c", |c| hands_to(c, last))
            .run()
            .await;
        let failure = ran.end.failure.clone().unwrap();
        assert!(failure.to_string().starts_with(expected), "{failure}");
        assert_eq!((failure.code(), model.asked().len()), ("refused", 3));
        assert_eq!(seen(&ran), [""; 0]);
    }
}

/// E4: any length, without growing any stack.
#[tokio::test]
async fn a_chain_of_two_hundred_stages() {
    let stage = |n: usize| if n == 0 { "a".to_owned() } else { format!("s{n}") };
    let mut model = Scripted::default();
    let mut setup = Setup::new(&model).agent(|a| hands_to(a, "s1"));
    for n in 0..200 {
        model = model.script(&stage(n), [ScriptedTurn::text(&format!("Draft {n}.")).tokens(10, 1)]);
        if n > 0 {
            setup = setup.with(&stage(n), |agent| {
                if n < 199 {
                    hands_to(agent, &stage(n + 1));
                }
            });
        }
    }
    let ran = setup.run().await;
    assert_eq!(ran.answer(), "Draft 199.", "{:?}", ran.end.failure);
    assert_eq!(seen(&ran), ["Draft 199."]);
    adds_up(&ran);
    assert_eq!((ran.end.rows.len(), ran.end.usage.tokens.input_tokens), (200, 2000));
    assert!(task(&model, "s199").contains("Draft 198."));
}

/// E15: only who answers the caller answers in the caller's form; a stage has its own.
#[tokio::test]
async fn only_the_last_stage_uses_the_callers_schema() {
    let schema = |key: &str| json!({"type": "object", "required": [key]});
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("Words.")])
        .script("b", [ScriptedTurn::text("{\"b\": 1}")])
        .script("c", [ScriptedTurn::text("{\"n\": 1}")]);
    let mut setup = three(&model);
    setup.others[0].output_schema = Some(schema("b"));
    setup.overrides.output_schema = Some(schema("n"));
    let ran = setup.run().await;
    assert_eq!(ran.end.answer.clone().and_then(|answer| answer.value), Some(json!({"n": 1})));
    let asked: Vec<_> = model.asked().iter().map(|asked| asked.output_schema).collect();
    assert_eq!(asked, [false, true, true]);
    assert_eq!(model.left(), 0, "nobody was told to answer again");
}

/// E15: a stage whose input is not what its `input_schema` describes fails before its model is asked, and is named.
#[tokio::test]
async fn e15_input_of_a_stage_satisfies_its_schema() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
    for (answer, expected) in [
        ("{\"n\": 1}", None),
        (
            "{\"n\": \"one\"}",
            Some(
                "stage `b` failed: the input of `b` does not satisfy its input schema: at `/n`: \"one\" is not of type \"integer\"",
            ),
        ),
        (
            "Words.",
            Some("stage `b` failed: the input of `b` does not satisfy its input schema: it is not JSON"),
        ),
    ] {
        let model = Scripted::default()
            .script("a", [ScriptedTurn::text(answer)])
            .script("b", [ScriptedTurn::text("B.")])
            .script("c", [ScriptedTurn::text("C.")]);
        let mut setup = three(&model);
        setup.others[0].input_schema = Some(schema.clone());
        let ran = setup.run().await;
        let Some(expected) = expected else {
            assert_eq!(ran.answer(), "C.");
            continue;
        };
        let failure = ran.end.failure.expect("it failed");
        assert!(failure.to_string().starts_with(expected), "{failure}");
        assert_eq!((failure.code(), model.asked().len()), ("invalid_input", 1), "only `a` was asked");
    }
}

/// E15: a message, a routed request and a mission are inputs too. The caller of an agent is told its schema, and gets the error as
/// the result of the call.
#[tokio::test]
async fn e15_messages_and_missions_satisfy_the_input_schema() {
    let schema = json!({"type": "object", "required": ["n"]});
    let model = Scripted::default().script("a", [ScriptedTurn::text("A.")]);
    let typed = |text: &str| Setup::new(&model).agent(|a| a.input_schema = Some(schema.clone())).asked(text);
    let failure = typed("What is up?").run().await.end.failure.expect("it failed");
    assert!(
        failure.to_string().starts_with("the input of `a` does not satisfy its input schema"),
        "{failure}"
    );
    assert_eq!(typed("{\"n\": 1}").run().await.answer(), "A.");

    let call =
        |mission: &str| ScriptedTurn::call("call_agent", &json!({"mission": mission, "specialist": "b"}));
    let model = Scripted::default()
        .script("a", [call("Count."), call("{\"n\": 1}"), ScriptedTurn::text("Done.")])
        .script("b", [ScriptedTurn::text("B.")]);
    let setup = Setup::new(&model).agent(|a| a.agents = vec![name("b")]);
    let setup = setup.with("b", |b| b.input_schema = Some(schema.clone()));
    let described = crate::transfers::described(setup, &model, "call_agent").await;
    assert!(
        described.contains("Its task is JSON of this schema: {\"type\":\"object\",\"required\":[\"n\"]}"),
        "{described}"
    );
    let told = crate::transfers::told(&model.asked()[1]).join("");
    assert!(told.contains("\"error_type\":\"invalid_input\""), "{told}");
    assert_eq!(model.left(), 0, "the second mission was accepted");
}

/// The same when a stage may be the last: its answer is good for the caller.
#[tokio::test]
async fn possibly_last_stage_uses_the_callers_schema() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("{\"n\": 1}")]);
    let mut setup = Setup::new(&model).agent(|a| hands_if(a, &[("b", Some("'2' in output"))]));
    setup.overrides.output_schema = Some(json!({"type": "object", "required": ["n"]}));
    let ran = setup.with("b", |_| {}).run().await;
    assert_eq!(ran.end.answer.and_then(|answer| answer.value), Some(json!({"n": 1})));
}

/// E10, E17: at each stage first its advisors, then itself, then who comes next.
#[tokio::test]
async fn advisors_precede_their_stage_and_stages_are_sequential() {
    let advises = |agent: &mut Agent, by: &str| {
        let timeout = HumanDuration::from_secs(60);
        agent.advisors.agents = vec![Advisor { agent: name(by), required: false, timeout }];
    };
    let model = spoken()
        .script("x", [ScriptedTurn::text("About the request.").tokens(1, 1)])
        .script("y", [ScriptedTurn::text("About the draft.").tokens(2, 1)]);
    let ran = Setup::new(&model)
        .agent(|a| hands_to(a, "b"))
        .agent(|a| advises(a, "x"))
        .with("b", |b| hands_to(b, "c"))
        .with("c", |c| advises(c, "y"))
        .with("x", |_| {})
        .with("y", |_| {})
        .run()
        .await;
    let order: Vec<_> = model.asked().into_iter().map(|asked| asked.agent).collect();
    assert_eq!(order, ["x", "a", "b", "y", "c"]);
    assert_eq!((ran.answer(), seen(&ran)), ("The answer.", vec!["The answer."]));
    insta::assert_snapshot!("advised_chain_run", format!("{}\n{}", ran.log(), ran.ledger()));
    adds_up(&ran);
    let request = &blocks(&task(&model, "b"))[0].1;
    assert_eq!(request, "## ORIGINAL USER REQUEST\n\nWhat is up?", "advice stays with whom it was for");
    let told = blocks(&task(&model, "c"));
    let kinds: Vec<_> = told.iter().map(|(what, _)| what.as_str()).collect();
    assert_eq!(kinds, ["request", "answer", "advice"], "side by side, not one within the other");
    assert_eq!(&told[0].1, request);
    insta::assert_snapshot!("stage_with_advice", without_nonce(&task(&model, "c")));
}

/// X33
#[tokio::test]
async fn stage_cannot_impersonate_the_person() {
    for attack in attacks() {
        let model = Scripted::default()
            .script("a", [ScriptedTurn::text(&attack)])
            .script("b", [ScriptedTurn::text("No.")]);
        Setup::new(&model).agent(|a| hands_to(a, "b")).with("b", |_| {}).run().await;
        let expected = [
            ("request".to_owned(), "## ORIGINAL USER REQUEST\n\nWhat is up?".to_owned()),
            ("answer".to_owned(), format!("### From a\n\n{attack}")),
        ];
        assert_eq!(blocks(&task(&model, "b")), expected);
    }
}

/// E18
#[tokio::test]
async fn cancelling_the_run_ends_the_chain() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("A draft.")])
        .script("b", [ScriptedTurn::default().say("I").hang()]);
    let mut run = three(&model).start().await;
    loop {
        let event = run.events.recv().await.unwrap();
        if event.agent.as_str() == "b" && matches!(event.kind, EventKind::TextDelta { .. }) {
            break;
        }
    }
    run.cancel();
    let finished = run.finish().await;
    assert_eq!(finished.status, RunStatus::Cancelled);
    assert!(matches!(finished.failure, Some(Failure::Cancelled)), "{:?}", finished.failure);
    assert_eq!(model.asked().len(), 2);
}

/// The chain's time is that of the agent that it began with: each stage closes in time, so there is an answer.
#[tokio::test(start_paused = true)]
async fn chain_has_the_timeout_of_its_first_agent() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("A draft.")])
        .script(
            "b",
            [
                ScriptedTurn::default().wait(Duration::from_hours(1)).say("Late."),
                ScriptedTurn::text("In short."),
            ],
        )
        .script("c", [ScriptedTurn::text("The answer."), ScriptedTurn::text("The answer.")]);
    let ran = three(&model).agent(|a| a.limits.timeout = HumanDuration::from_secs(60)).run().await;
    assert_eq!(ran.answer(), "The answer.", "{:?}", ran.end.failure);
    let told = serde_json::to_string(&model.asked().last().unwrap().messages).unwrap();
    assert!(told.contains("In short.") && told.contains("the limit of time was met"), "{told}");
}

fn is_said_by(agent: &'static str) -> impl Fn(&Event) -> bool + Send + 'static {
    move |event| event.agent.as_str() == agent && matches!(event.kind, EventKind::TextDelta { .. })
}

/// Stages that have answered do not answer again, wherever the process dies.
#[test]
fn chain_resumes_at_the_interrupted_stage() {
    for (at, dies) in ["a", "b", "c"].into_iter().enumerate() {
        let (before, rest) = ["a", "b", "c"].split_at(at);
        let first = before
            .iter()
            .fold(Scripted::default(), |model, stage| {
                model.script(stage, [ScriptedTurn::text(&format!("By {stage}."))])
            })
            .script(dies, [ScriptedTurn::default().say("Half an").hang()]);
        let (engine, _, _) = die(three(&first), is_said_by(dies));
        let second = rest.iter().fold(Scripted::default(), |model, stage| {
            model.script(stage, [ScriptedTurn::text(&format!("By {stage}."))])
        });
        let after = go_on(three(&second), &engine);
        after.is_sound();
        assert_eq!((after.recovered, after.run.status), (1, RunStatus::Completed));
        let asked: Vec<_> = second.asked().into_iter().map(|asked| asked.agent).collect();
        assert_eq!(asked, rest);
        assert!(task(&second, "c").contains("By b."));
        assert_eq!(after.messages.last().unwrap().message.text(), "By c.");
        assert_eq!(after.rows.len(), 4, "three calls and the one that was cut");
        let passes = after.count(|kind| matches!(kind, EventKind::Passed { .. }));
        assert_eq!(passes, 2, "each pass is told of once");
        assert_eq!(heard_by_the_person(&after.events), HashSet::from(["c".to_owned()]));
    }
}

/// A text that goes from one agent to another goes through the same hands as every other.
#[tokio::test]
async fn unmasked_answer_arrives_whole() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("Write to a plain box.")])
        .script("b", [ScriptedTurn::text("Sent.")]);
    let setup = Setup::new(&model).agent(|a| hands_to(a, "b")).agent(|a| a.sanitize = false);
    setup.with("b", |_| {}).asked("Whom do I write to?").run().await;
    let told = blocks(&task(&model, "b"));
    assert!(told[0].1.ends_with("Whom do I write to?") && told[1].1.ends_with("Write to a plain box."));
}
