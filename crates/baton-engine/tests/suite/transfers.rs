//! Transfers: who may pass the baton to whom, what goes with it, and what the person sees of it.

mod crashes;
mod handed_over;
mod session;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use baton_core::agent::{AcceptsHandoff, Agent, Collaboration, ModelName};
use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::model::{Model, ModelErrorKind, ModelFacts, ModelRequest, ReplyStream};
use baton_core::store::{MessageQuery, RunStatus};
use baton_engine::{Engine, ModelRegistry, Switch};
use baton_models::scripted::{RecordedRequest, Scripted, ScriptedTurn};
use serde_json::json;

use crate::{Ran, Setup, TestTool, name};

/// Lets an agent pass the baton to these.
pub(super) fn collaborates(agent: &mut Agent, names: &[&str]) {
    let to = |text: &&str| Collaboration { agent: name(text), when: None, allow_revisit: 0 };
    agent.collaborations = names.iter().map(to).collect();
}

pub(super) fn transfer(to: &str) -> ScriptedTurn {
    ScriptedTurn::call(&format!("transfer_to_{to}"), &json!({ "reason": format!("{to} knows") }))
}

/// Keeps what models are told about tools.
#[derive(Debug)]
pub(super) struct Spy {
    model: Scripted,
    pub(super) described: Mutex<BTreeMap<String, String>>,
}

impl Model for Spy {
    fn provider(&self) -> &str {
        self.model.provider()
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        let tools = request.tools.iter().map(|tool| (tool.name.clone(), tool.description.clone()));
        self.described.lock().unwrap().extend(tools);
        self.model.stream(request)
    }

    fn facts(&self, model: &str) -> ModelFacts {
        self.model.facts(model)
    }
}

/// Runs with a model that is watched, and returns how the tool was described.
pub(super) async fn described(mut setup: Setup, model: &Scripted, tool: &str) -> String {
    let spy = Arc::new(Spy { model: model.clone(), described: Mutex::default() });
    let provider: Arc<dyn Model> = Arc::<Spy>::clone(&spy);
    setup.models = ModelRegistry::new(ModelName::parse("scripted/m").unwrap()).with_provider(provider);
    Box::pin(setup.run()).await;
    let described = spy.described.lock().unwrap();
    described[tool].clone()
}

/// What the model of `agent` was asked, turn by turn.
pub(super) fn asked_of(model: &Scripted, agent: &str) -> Vec<RecordedRequest> {
    model.asked().into_iter().filter(|asked| asked.agent == agent).collect()
}

/// The results of tools that a model was told last.
pub(super) fn told(asked: &RecordedRequest) -> Vec<String> {
    let last = asked.messages.iter().rev().map_while(|message| match message {
        ChatMessage::Tool(result) => Some(result.content.to_string()),
        _ => None,
    });
    let mut last: Vec<String> = last.collect();
    last.reverse();
    last
}

/// A run and what is left of it in the store.
pub(super) struct Kept {
    pub(super) ran: Ran,
    pub(super) hops: Vec<baton_core::store::Hop>,
    pub(super) messages: Vec<baton_core::store::ThreadMessage>,
}

impl Kept {
    pub(super) async fn of(setup: Setup) -> Self {
        let (parts, request) = setup.parts().await;
        let engine = Engine::new(parts);
        let mut run = engine.start(request.clone()).await.unwrap();
        let mut events = Vec::new();
        while let Some(event) = run.events.recv().await {
            events.push(event);
        }
        let ran = Ran { events, end: run.join().await };
        let store = engine.parts.store.tenant(&request.caller.tenant);
        let thread = request.caller.thread_id;
        let hops = store.hops(thread).await.unwrap();
        Self { ran, hops, messages: store.messages(thread, MessageQuery::last(50)).await.unwrap() }
    }

    /// `transfer a → b: "why" ok`, one line each.
    pub(super) fn ways(&self) -> String {
        let lines = self.hops.iter().map(|hop| {
            let end = hop.outcome;
            format!("{} {} → {}: {:?} {end}\n", hop.kind, hop.from, hop.to, hop.reason)
        });
        lines.collect()
    }
}

/// Text that the person saw, with who said it: finished texts that were not taken back.
pub(super) fn seen(ran: &Ran) -> Vec<(String, String)> {
    let visible = ran.events.iter().filter(|event| event.visibility == Visibility::User);
    let texts = visible.filter_map(|event| match &event.kind {
        EventKind::TextFinished { speaker, text, .. } => Some((speaker.clone(), text.clone())),
        _ => None,
    });
    texts.collect()
}

/// Everything that went to the person in any form.
fn shown(ran: &Ran) -> String {
    let visible = ran.events.iter().filter(|event| event.visibility == Visibility::User);
    visible.map(|event| serde_json::to_string(&event.kind).unwrap()).collect()
}

fn chain(model: &Scripted, names: &[&str]) -> Setup {
    let mut setup = Setup::new(model).agent(|a| collaborates(a, &names[..1]));
    for (at, text) in names.iter().enumerate() {
        let next = names.get(at + 1..at + 2).unwrap_or_default().to_vec();
        setup = setup.with(text, |agent| collaborates(agent, &next));
    }
    setup
}

/// G1, G2, G7, X29: one pass; the receiver's words are the only ones that the person sees, and they are its own.
#[tokio::test]
async fn g1_transfer_target_answers() {
    let give = transfer("b").say("Let me hand you over.");
    let model =
        Scripted::default().script("a", [give]).script("b", [ScriptedTurn::text("I know.").tokens(100, 10)]);
    let kept = Kept::of(chain(&model, &["b"])).await;
    assert_eq!(kept.ran.answer(), "I know.");
    assert_eq!(seen(&kept.ran), [("B".to_owned(), "I know.".to_owned())]);
    assert!(!shown(&kept.ran).contains("hand you over"), "{}", shown(&kept.ran));
    assert_eq!(kept.ran.end.answered_by, Some(name("b")));
    let said: Vec<_> =
        kept.messages.iter().map(|one| (one.message.agent.clone(), one.message.text())).collect();
    assert_eq!(said, [(None, "What is up?".to_owned()), (Some(name("b")), "I know.".to_owned())]);
    assert_eq!(kept.ways(), "transfer a → b: \"b knows\" completed\n");
    assert_eq!(kept.hops[0].cost.nanos(), 110_000, "what the receiver cost");
    insta::assert_snapshot!(kept.ran.log() + "\n" + &kept.ran.ledger());
}

/// G1: the tool says who it is, what for and when; G20: there is one for each declared collaborator and nobody else.
#[tokio::test]
async fn g20_only_declared_collaborators_are_offered() {
    let model = Scripted::default().script("a", [transfer("c"), ScriptedTurn::text("Myself.")]);
    let setup = Setup::new(&model)
        .agent(|a| {
            a.collaborations = vec![Collaboration {
                agent: name("skill-creator"),
                when: Some("a skill is wanted".into()),
                allow_revisit: 0,
            }];
        })
        .with("skill-creator", |b| b.description = "Builds skills.".into())
        .with("c", |_| {});
    let description = described(setup, &model, "transfer_to_skill_creator").await;
    insta::assert_snapshot!(description, @"Passes the conversation to SKILL-CREATOR, who then answers in your place. Builds skills. Use it when a skill is wanted.");
    assert_eq!(model.left(), 0, "it went on by itself");
    assert_eq!(asked_of(&model, "a")[0].tools, ["transfer_to_skill_creator"]);
    assert_eq!(
        told(&asked_of(&model, "a")[1]),
        ["error: there is no tool `transfer_to_c` (the tool was not run)"]
    );
    assert!(asked_of(&model, "c").is_empty());
}

/// X23: with `allow_revisit: 1` an agent of the chain is entered once more, and then no more.
#[tokio::test]
async fn x23_allow_revisit_permits_re_entry_up_to_its_number() {
    let model = Scripted::default()
        .script("a", [transfer("b"), transfer("b")])
        .script("b", [transfer("a"), transfer("a"), ScriptedTurn::text("Then I answer.")]);
    let revisits = |agent: &mut Agent, to: &str| {
        agent.collaborations = vec![Collaboration { agent: name(to), when: None, allow_revisit: 1 }];
    };
    let setup = Setup::new(&model).agent(|a| revisits(a, "b")).with("b", |b| revisits(b, "a"));
    let kept = Kept::of(setup).await;
    assert_eq!(kept.ran.answer(), "Then I answer.");
    insta::assert_snapshot!(kept.ways(), @r#"
    transfer a → b: "b knows" completed
    transfer b → a: "a knows" completed
    transfer a → b: "b knows" completed
    "#);
    let last = asked_of(&model, "b");
    assert_eq!(last[0].tools, ["transfer_to_a"]);
    assert!(last[1].tools.is_empty(), "the second revisit is not offered: {:?}", last[1].tools);
    let said = told(&last[2]).join("");
    assert!(said.contains("`a` is already active above (a → b → a → b)"), "{said}");
}

/// X23: `allow_revisit` is about the transfer chain. An agent that waits for a result above it is not entered again.
#[tokio::test]
async fn x23_caller_that_waits_is_never_revisited() {
    let call = ScriptedTurn::call("call_agent", &json!({"mission": "Look.", "specialist": "b"}));
    let model = Scripted::default()
        .script("a", [call, ScriptedTurn::text("Done.")])
        .script("b", [transfer("a"), ScriptedTurn::text("Myself.")]);
    let setup = Setup::new(&model).agent(|a| a.agents = vec![name("b")]).with("b", |b| {
        b.collaborations = vec![Collaboration { agent: name("a"), when: None, allow_revisit: 5 }];
    });
    let ran = setup.run().await;
    assert_eq!(ran.answer(), "Done.");
    assert!(asked_of(&model, "b")[0].tools.is_empty());
    assert!(told(&asked_of(&model, "b")[1]).join("").contains("already active above"));
}

/// G5: five hops, and the sixth is not offered, and told why when it is tried all the same.
#[tokio::test]
async fn g5_five_transfers_are_the_limit() {
    let model = Scripted::default()
        .script("a", [transfer("b")])
        .script("b", [transfer("c")])
        .script("c", [transfer("d")])
        .script("d", [transfer("e")])
        .script("e", [transfer("f")])
        .script("f", [transfer("g"), ScriptedTurn::text("Then I answer.")]);
    let kept = Kept::of(chain(&model, &["b", "c", "d", "e", "f", "g"])).await;
    assert_eq!(kept.ran.answer(), "Then I answer.");
    assert_eq!(seen(&kept.ran), [("F".to_owned(), "Then I answer.".to_owned())]);
    let sixth = asked_of(&model, "f");
    assert!(sixth[0].tools.is_empty(), "{:?}", sixth[0].tools);
    let said = told(&sixth[1]).join("");
    assert!(said.contains("limit reached: the baton is passed on at most 5 times"), "{said}");
    assert!(asked_of(&model, "g").is_empty());
    insta::assert_snapshot!(kept.ways(), @r#"
    transfer a → b: "b knows" completed
    transfer b → c: "c knows" completed
    transfer c → d: "d knows" completed
    transfer d → e: "e knows" completed
    transfer e → f: "f knows" completed
    "#);
}

/// G5: a file may ask for fewer, and that holds for everybody who gets the baton from there on; so does the operator's number.
#[tokio::test]
async fn g5_limit_can_be_lowered() {
    for by_operator in [false, true] {
        let model = Scripted::default()
            .script("a", [transfer("b")])
            .script("b", [transfer("c"), ScriptedTurn::text("From b.")]);
        let setup = chain(&model, &["b", "c"]);
        let setup = if by_operator {
            setup.policy(|policy| policy.max_transfers = 1)
        } else {
            setup.agent(|a| a.limits.max_transfers = 1)
        };
        let ran = setup.run().await;
        assert_eq!(ran.answer(), "From b.");
        let said = told(&asked_of(&model, "b")[1]).join("");
        assert!(said.contains("at most 1 times"), "{said}");
    }
}

/// G6, X23: collaborations may be mutual, but nobody gets the baton back within a run.
#[tokio::test]
async fn g6_transfer_back_is_refused() {
    let model = Scripted::default()
        .script("a", [transfer("b")])
        .script("b", [transfer("a"), ScriptedTurn::text("Then I answer.")]);
    let setup = Setup::new(&model).agent(|a| collaborates(a, &["b"])).with("b", |b| collaborates(b, &["a"]));
    let kept = Kept::of(setup).await;
    assert_eq!(kept.ran.answer(), "Then I answer.");
    let back = asked_of(&model, "b");
    assert!(back[0].tools.is_empty());
    let said = told(&back[1]).join("");
    assert!(said.contains("not permitted: `a` is already active above (a → b)"), "{said}");
    assert_eq!(kept.ways(), "transfer a → b: \"b knows\" completed\n");
    assert!(
        kept.ran.log().contains(" text \"Then I answer.\""),
        "nobody else can speak any more, so it is seen as it grows"
    );
}

/// X24: the giver hears what failed and what else there is, and goes on.
#[tokio::test]
async fn x24_failed_transfer_returns_alternatives() {
    let half = ScriptedTurn::default().say("Half an").fail(ModelErrorKind::InvalidRequest);
    let model = Scripted::default()
        .script("a", [transfer("b"), transfer("c")])
        .script("b", [half])
        .script("c", [ScriptedTurn::text("From c.")]);
    let setup =
        Setup::new(&model).agent(|a| collaborates(a, &["b", "c"])).with("b", |_| {}).with("c", |_| {});
    let kept = Kept::of(setup).await;
    assert_eq!(kept.ran.answer(), "From c.");
    let said = told(&asked_of(&model, "a")[1]).join("");
    assert!(said.starts_with("error: failed: `b` could not take over: "), "{said}");
    assert!(said.ends_with("answer yourself, or pass it on with `transfer_to_c`"), "{said}");
    assert_eq!(kept.ways(), "transfer a → b: \"b knows\" failed\ntransfer a → c: \"c knows\" completed\n");
    assert_eq!(seen(&kept.ran), [("C".to_owned(), "From c.".to_owned())], "the half is taken back");
    insta::assert_snapshot!(kept.ran.log());
}

/// X24: nobody else is left, so only its own answer is.
#[tokio::test]
async fn x24_agent_answers_itself_without_alternatives() {
    let model = Scripted::default().script("a", [transfer("b"), ScriptedTurn::text("Myself.")]);
    let kept = Kept::of(chain(&model, &["b"])).await;
    assert_eq!(seen(&kept.ran), [("A".to_owned(), "Myself.".to_owned())]);
    let said = told(&asked_of(&model, "a")[1]).join("");
    assert!(said.ends_with("The conversation is yours again: answer yourself"), "{said}");
    assert_eq!(kept.ran.end.answered_by, Some(name("a")));
}

/// X24: one that failed was made all the same.
#[tokio::test]
async fn failed_transfer_counts_towards_the_limit() {
    let model =
        Scripted::default().script("a", [transfer("b"), transfer("b"), ScriptedTurn::text("Myself.")]);
    let ran = chain(&model, &["b"]).agent(|a| a.limits.max_transfers = 1).run().await;
    assert_eq!(ran.answer(), "Myself.");
    let said = told(&asked_of(&model, "a")[2]).join("");
    assert!(said.contains("at most 1 times"), "{said}");
}

/// The same one twice counts once, each call has its answer; two different ones are a contradiction.
#[tokio::test]
async fn one_turn_makes_one_transfer() {
    let reason = json!({"reason": "b knows"});
    let twice = ScriptedTurn::call("transfer_to_b", &reason).and_call("transfer_to_b", &reason);
    let both = ScriptedTurn::call("transfer_to_b", &reason).and_call("transfer_to_c", &reason);
    let model = Scripted::default().script("a", [both, twice]).script("b", [ScriptedTurn::text("From b.")]);
    let setup =
        Setup::new(&model).agent(|a| collaborates(a, &["b", "c"])).with("b", |_| {}).with("c", |_| {});
    let kept = Kept::of(setup).await;
    assert_eq!(kept.ran.answer(), "From b.");
    let said = told(&asked_of(&model, "a")[1]);
    assert_eq!(said.len(), 2, "each call has its answer");
    assert!(said.iter().all(|one| one.contains("only one of transfer_to_b, transfer_to_c")), "{said:?}");
    assert_eq!(kept.ways(), "transfer a → b: \"b knows\" completed\n");
    insta::assert_snapshot!(kept.ran.log());
}

/// X29
#[tokio::test]
async fn x29_a_reason_is_required() {
    let without = ScriptedTurn::call("transfer_to_b", &json!({"message": "please"}));
    let model = Scripted::default().script("a", [without, ScriptedTurn::text("Myself.")]);
    let ran = chain(&model, &["b"]).run().await;
    let said = told(&asked_of(&model, "a")[1]).join("");
    assert!(said.contains("invalid arguments") && said.contains("reason"), "{said}");
    assert_eq!(ran.answer(), "Myself.");
    assert!(asked_of(&model, "b").is_empty());
}

/// G3: of all that a model says, the call is found, with its target and its context. One that cannot be read is told, and nothing
/// is passed; facts that come as a text are facts.
#[tokio::test]
async fn g3_transfer_is_parsed_from_model_output() {
    let broken =
        ScriptedTurn::text("I pass to transfer_to_b.").and_raw_call("transfer_to_b", "{\"reason\": ");
    let blank = ScriptedTurn::call("transfer_to_b", &json!({"reason": " ", "context": {}}));
    let give = |context: &serde_json::Value| json!({"reason": "b knows", "context": context, "message": ""});
    for (context, found) in [
        (json!({"order": "A-17"}), "{\\n  \\\"order\\\": \\\"A-17\\\"\\n}"),
        (json!("{\"order\": \"A-17\"}"), "{\\n  \\\"order\\\": \\\"A-17\\\"\\n}"),
        (json!("The order is A-17."), "\\\"facts\\\": \\\"The order is A-17.\\\""),
    ] {
        let passes = ScriptedTurn::text("Let me see.").and_call("transfer_to_b", &give(&context));
        let model = Scripted::default()
            .script("a", [broken.clone(), blank.clone(), passes])
            .script("b", [ScriptedTurn::text("I know.")]);
        let kept = Kept::of(chain(&model, &["b"])).await;
        let asked = asked_of(&model, "a");
        assert!(told(&asked[1])[0].contains("they are not JSON"), "{:?}", told(&asked[1]));
        assert!(told(&asked[2])[0].contains("\"reason\" is a required property"), "{:?}", told(&asked[2]));
        assert_eq!(kept.ways(), "transfer a → b: \"b knows\" completed\n");
        let heard = serde_json::to_string(&asked_of(&model, "b")[0].messages).unwrap();
        assert!(heard.contains(found), "{found} in {heard}");
    }
}

/// G11: off means that no model hears of it.
#[tokio::test]
async fn g11_disabled_transfers_are_hidden() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Myself.")]);
    let ran = chain(&model, &["b"]).policy(|policy| policy.transfers = Switch::Off).run().await;
    assert!(asked_of(&model, "a")[0].tools.is_empty());
    assert!(ran.log().contains(" text \"Myself.\""), "{}", ran.log());
}

/// What is said is held back until it is certain whose answer it is; then it is seen once.
#[tokio::test]
async fn answer_of_an_agent_with_transfers_is_shown_once() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("My")]);
    let ran = chain(&model, &["b"]).run().await;
    assert_eq!(seen(&ran), [("A".to_owned(), "My".to_owned())]);
    insta::assert_snapshot!(ran.log());
}

/// Whoever may hold the thread takes over in the open: what is said before is seen.
#[tokio::test]
async fn announced_handoff_streams_at_once() {
    let give = transfer("b").say("I call B.");
    let model = Scripted::default().script("a", [give]).script("b", [ScriptedTurn::text("Hello.")]);
    let setup = Setup::new(&model)
        .agent(|a| collaborates(a, &["b"]))
        .with("b", |b| b.accepts_handoff = Some(AcceptsHandoff::default()));
    let ran = setup.run().await;
    let said = |speaker: &str, text: &str| (speaker.to_owned(), text.to_owned());
    assert_eq!(seen(&ran), [said("A", "I call B."), said("B", "Hello.")]);
}

/// Normal tools of the turn come first, and the receiver hears what they brought.
#[tokio::test]
async fn g4_other_tools_run_first_and_their_results_are_passed_on() {
    let give = transfer("b").and_call("look", &json!({}));
    let model = Scripted::default().script("a", [give]).script("b", [ScriptedTurn::text("I see.")]);
    let look = TestTool::new("look", |_| async { Ok("a red house".to_owned()) });
    let ran = chain(&model, &["b"]).tool(look).run().await;
    assert_eq!(ran.answer(), "I see.");
    let log = ran.log();
    assert!(log.find("returns \"a red house\"").unwrap() < log.find("transfer a → b").unwrap(), "{log}");
    let asked = format!("{:?}", asked_of(&model, "b")[0].messages);
    assert!(asked.contains("look returned: a red house"), "{asked}");
}

/// Whoever has the baton is cancelled with the run.
#[tokio::test]
async fn a_cancelled_run_cancels_the_receiver() {
    let model = Scripted::default()
        .script("a", [transfer("b")])
        .script("b", [ScriptedTurn::default().say("on and on").hang()]);
    let mut run = chain(&model, &["b"]).start().await;
    while !matches!(run.events.recv().await.unwrap().kind, EventKind::TextDelta { .. }) {}
    run.cancel();
    let finished = run.finish().await;
    assert_eq!(finished.status, RunStatus::Cancelled);
    assert!(finished.rows.iter().any(|row| row.agent == name("b")), "what it spent is on the books");
}

/// The receiver's time is the giver's: it closes with what it has, and that is the answer.
#[tokio::test(start_paused = true)]
async fn target_with_an_expired_time_limit_closes_itself() {
    let model = Scripted::default()
        .script("a", [transfer("b")])
        .script("b", [ScriptedTurn::default().hang(), ScriptedTurn::text("What I have.")]);
    let ran = chain(&model, &["b"])
        .agent(|a| a.limits.timeout = baton_core::HumanDuration::from_secs(30))
        .run()
        .await;
    assert_eq!(ran.answer(), "What I have.");
    assert_eq!(ran.end.answer.as_ref().unwrap().limit, Some(baton_engine::LimitKind::Time));
    assert_eq!(ran.end.answered_by, Some(name("b")));
}

/// H3: who passed the baton to whom, and why, is in the log.
#[tokio::test]
async fn h3_handoffs_are_logged() {
    let lines = super::calling::logged(Box::pin(async {
        let model = Scripted::default().script("a", [transfer("b")]).script("b", [ScriptedTurn::text("B.")]);
        Setup::new(&model).agent(|agent| collaborates(agent, &["b"])).with("b", |_| {}).run().await;
    }))
    .await;
    let line = lines.iter().find(|line| line.contains("Handoff initiated")).expect("it is logged");
    let thread = "thread_id=550e8400-e29b-41d4-a716-446655440000";
    for field in [thread, "source_agent=a", "target_agent=b", "tenant_id=acme", "handoff_reason=b knows"] {
        assert!(line.contains(field), "{line}");
    }
}
