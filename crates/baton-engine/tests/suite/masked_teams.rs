//! What belongs to people and what is secret stays with whoever was told it: no other agent's model sees it, and the person
//! always sees the whole answer.

use baton_core::agent::{Advisor, Agent, Destination, Quorum, Router, RoutingMode, Team, TerminationMode};
use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::{HumanDuration, Part};
use baton_engine::Engine;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use crate::{Ran, Setup, name};

/// Personal data, then secrets.
const PERSONAL: [&str; 2] = ["ada@example.com", "4111 1111 1111 1111"];
const SECRET: [&str; 2] = ["sk-proj-Ab12Cd34Ef56Gh78", "hunter2"];
const ALL: &str =
    "Mail ada@example.com, card 4111 1111 1111 1111, key sk-proj-Ab12Cd34Ef56Gh78, password: hunter2.";
const MASKED: &str = "Mail [EMAIL], card [CARD], key [REDACTED], password: [REDACTED].";

/// Everything an agent's model was ever asked, as text.
fn seen_by(model: &Scripted, agent: &str) -> String {
    let asked = model.asked().into_iter().filter(|asked| asked.agent == agent);
    let messages = asked.flat_map(|asked| asked.messages);
    let texts = messages.map(|message| match message {
        ChatMessage::User { parts } => serde_json::to_string(&parts).unwrap(),
        ChatMessage::Assistant(reply) => reply.text,
        ChatMessage::Tool(result) => result.content.to_string(),
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[track_caller]
fn sees_masks(model: &Scripted, agent: &str) {
    let seen = seen_by(model, agent);
    assert!(seen.contains(MASKED), "{agent} should have seen it: {seen}");
    sees_nothing(model, agent);
}

#[track_caller]
fn sees_nothing(model: &Scripted, agent: &str) {
    let seen = seen_by(model, agent);
    for text in PERSONAL.iter().chain(&SECRET) {
        assert!(!seen.contains(text), "{agent} saw {text}: {seen}");
    }
}

/// `sanitize: false`: what is personal passes, what is secret does not.
#[track_caller]
fn sees_what_is_personal(model: &Scripted, agent: &str) {
    let seen = seen_by(model, agent);
    assert!(PERSONAL.iter().all(|text| seen.contains(text)), "{agent} needs it: {seen}");
    assert!(!SECRET.iter().any(|text| seen.contains(text)), "{agent} saw a secret: {seen}");
}

/// What the person read is the answer as it was given.
#[track_caller]
fn person_reads(ran: &Ran, text: &str) {
    assert_eq!(ran.answer(), text);
    let seen = ran.events.iter().filter(|event| event.visibility == Visibility::User);
    let texts: Vec<&str> = seen
        .filter_map(|event| match &event.kind {
            EventKind::TextFinished { text, .. } => Some(text.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(texts, [text]);
}

fn advised_by(agent: &mut Agent, advisor: &str) {
    let timeout = HumanDuration::from_secs(60);
    agent.advisors.agents = vec![Advisor { agent: name(advisor), required: false, timeout }];
}

fn to(agent: &mut Agent, stage: &str, when: Option<&str>) {
    agent.handoff.push(Destination { to: name(stage), when: when.map(str::to_owned) });
}

fn team(members: &[&str], max_rounds: u32) -> Team {
    Team {
        members: members.iter().map(|member| name(member)).collect(),
        termination_mode: TerminationMode::MaxRounds,
        max_rounds,
        quorum: Quorum::All,
        member_timeout: HumanDuration::from_secs(60),
    }
}

/// X9, X32: the request for advisors, the advice for the agent, nothing for the person.
#[tokio::test]
async fn x32_advisors_and_their_agent_see_masked_text() {
    for lets_through in [false, true] {
        let model = Scripted::default()
            .script("legal", [ScriptedTurn::text(ALL)])
            .script("a", [ScriptedTurn::text(&format!("It is {ALL}"))]);
        let setup =
            Setup::new(&model).agent(|a| advised_by(a, "legal")).agent(|a| a.sanitize = !lets_through);
        let ran = setup.with("legal", |_| {}).asked(&format!("About {ALL}")).run().await;
        if lets_through {
            sees_what_is_personal(&model, "legal");
        } else {
            sees_masks(&model, "legal");
        }
        let a = seen_by(&model, "a");
        assert!(a.contains(&format!("About {ALL}")), "its own request is whole: {a}");
        assert!(a.contains(&format!("### From legal\\n\\n{MASKED}")), "{a}");
        person_reads(&ran, &format!("It is {ALL}"));
    }
}

/// X32: also what a provider says when an advisor fails, and what is not text.
#[tokio::test]
async fn x32_data_is_masked_as_text_is() {
    let model = Scripted::default()
        .script("legal", [ScriptedTurn::text("Yes.")])
        .script("a", [ScriptedTurn::text("Done.")]);
    let setup = Setup::new(&model).agent(|a| advised_by(a, "legal")).with("legal", |_| {});
    let (parts, mut request) = setup.parts().await;
    let data = json!({ "to": PERSONAL[0], "token": SECRET[1], "note": format!("card {}", PERSONAL[1]) });
    request.input = vec![Part::text("Send it."), Part::Data { data }];
    Engine::new(parts).start(request).await.unwrap().finish().await;
    sees_nothing(&model, "legal");
    assert!(seen_by(&model, "legal").contains("[EMAIL]") && seen_by(&model, "a").contains(PERSONAL[0]));
}

/// X9, X32: what a stage was asked and answered, for the next one; and what one stage masks stays masked.
#[tokio::test]
async fn x32_stage_sees_a_masked_answer() {
    for lets_through in [false, true] {
        let model = Scripted::default()
            .script("a", [ScriptedTurn::text(&format!("Draft: {ALL}"))])
            .script("b", [ScriptedTurn::text("Better.")])
            .script("c", [ScriptedTurn::text(&format!("Final: {ALL}"))]);
        let setup = Setup::new(&model).agent(|a| to(a, "b", None)).agent(|a| a.sanitize = !lets_through);
        let setup = setup.with("b", |b| to(b, "c", None)).with("c", |_| {});
        let ran = setup.asked(&format!("About {ALL}")).run().await;
        if lets_through {
            sees_what_is_personal(&model, "b");
        } else {
            sees_masks(&model, "b");
        }
        sees_masks(&model, "c");
        person_reads(&ran, &format!("Final: {ALL}"));
    }
}

/// E8, X32: an answer that could have been handed on and was not is the person's, as it is.
#[tokio::test]
async fn x32_an_answer_that_is_not_handed_on_is_not_masked() {
    let model = Scripted::default().script("a", [ScriptedTurn::text(ALL)]);
    let setup = Setup::new(&model).agent(|a| to(a, "b", Some("'never' in output"))).with("b", |_| {});
    person_reads(&setup.run().await, ALL);
}

/// X32: the condition is about what was really said.
#[tokio::test]
async fn x32_conditions_see_the_whole_answer() {
    let model =
        Scripted::default().script("a", [ScriptedTurn::text(ALL)]).script("b", [ScriptedTurn::text("Done.")]);
    let setup = Setup::new(&model)
        .agent(|a| to(a, "b", Some("'ada@example.com' in output and 'hunter2' in input")))
        .with("b", |_| {});
    let ran = setup.asked("password: hunter2").run().await;
    assert_eq!(ran.answer(), "Done.");
    sees_nothing(&model, "b");
}

fn routes(agent: &mut Agent, destination: &str) {
    agent.router = Some(Router {
        mode: RoutingMode::Pure,
        destinations: vec![name(destination)],
        fallback: None,
        may_answer: false,
    });
}

fn chooses(agent: &str) -> ScriptedTurn {
    ScriptedTurn::call("route_to", &json!({ "agent": agent, "reason": format!("because {ALL}") }))
}

/// X32: the chosen agent gets a masked request and gives its answer to the person as it is.
#[tokio::test]
async fn x32_the_answer_of_a_chosen_agent_is_not_masked() {
    let model = Scripted::default().script("a", [chooses("b")]).script("b", [ScriptedTurn::text(ALL)]);
    let setup = Setup::new(&model).agent(|a| routes(a, "b")).with("b", |_| {});
    let ran = setup.asked(ALL).run().await;
    sees_masks(&model, "b");
    person_reads(&ran, ALL);
}

/// X32: whoever spoke for the giver decides too what others may see of it.
#[tokio::test]
async fn x32_stage_after_a_router_sees_a_masked_answer() {
    let model = Scripted::default()
        .script("a", [chooses("b")])
        .script("b", [ScriptedTurn::text(&format!("b: {ALL}"))])
        .script("last", [ScriptedTurn::text("Done.")]);
    let setup = Setup::new(&model)
        .agent(|a| routes(a, "b"))
        .agent(|a| to(a, "last", None))
        .agent(|a| a.sanitize = false)
        .with("b", |_| {})
        .with("last", |_| {});
    setup.run().await;
    sees_masks(&model, "last");
}

/// X9, X32: what is said to the team, in whatever way, and why somebody votes.
#[tokio::test]
async fn x32_team_members_see_masked_posts() {
    let vote = json!({ "ready": false, "reason": format!("Vote: {ALL}") });
    let model = Scripted::default()
        .script(
            "b",
            [
                ScriptedTurn::call("broadcast", &json!({ "message": format!("Said: {ALL}") }))
                    .and_call("vote_conclude", &vote),
                ScriptedTurn::text("told"),
                ScriptedTurn::text("pass"),
            ],
        )
        .script("c", [ScriptedTurn::text(&format!("Last: {ALL}")), ScriptedTurn::text("pass")])
        .script("a", [ScriptedTurn::text(&format!("All in all: {ALL}"))]);
    let setup = Setup::new(&model).agent(|a| a.team = Some(team(&["b", "c"], 2)));
    let ran = setup.with("b", |_| {}).with("c", |_| {}).asked(&format!("About {ALL}")).run().await;
    for agent in ["b", "c"] {
        let others = if agent == "b" { "Last: " } else { "Said: " };
        let asked = model.asked().into_iter().rfind(|asked| asked.agent == agent).unwrap();
        let ChatMessage::User { parts } = asked.messages.last().unwrap() else { panic!("not a task") };
        assert!(format!("{parts:?}").contains(&format!("{others}{MASKED}")), "{parts:?}");
        assert!(format!("{parts:?}").contains(&format!("About {MASKED}")), "{parts:?}");
    }
    let a = seen_by(&model, "a");
    assert!(a.contains(&format!("About {ALL}")), "its own request is whole");
    for what in ["Said", "Last", "Vote"] {
        assert!(a.contains(&format!("{what}: {MASKED}")) && !a.contains(&format!("{what}: {ALL}")), "{a}");
    }
    person_reads(&ran, &format!("All in all: {ALL}"));
}

/// X8, X32: whoever speaks for a member is somebody else, also for the member itself in the next round.
#[tokio::test]
async fn x32_member_sees_a_masked_chain_answer() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::text("A draft."), ScriptedTurn::text("Another.")])
        .script("e", [ScriptedTurn::text(ALL), ScriptedTurn::text("pass")])
        .script("c", [ScriptedTurn::text("pass"), ScriptedTurn::text("pass")])
        .script("a", [ScriptedTurn::text("Done.")]);
    let setup = Setup::new(&model).agent(|a| a.team = Some(team(&["b", "c"], 2)));
    let setup = setup.with("b", |b| to(b, "e", None)).with("e", |_| {}).with("c", |_| {});
    setup.run().await;
    for agent in ["a", "b", "c"] {
        sees_masks(&model, agent);
    }
}

/// X9, X32, E20: an advisor of a stage of a member's chain is far away, and still nothing gets there.
#[tokio::test]
async fn x32_masks_hold_at_any_depth() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::text(&format!("Draft: {ALL}"))])
        .script("x", [ScriptedTurn::text(&format!("Advice: {ALL}"))])
        .script("e", [ScriptedTurn::text("Edited.")])
        .script("c", [ScriptedTurn::text("pass")])
        .script("a", [ScriptedTurn::text("Done.")]);
    let setup = Setup::new(&model)
        .agent(|a| a.team = Some(team(&["b", "c"], 1)))
        .with("b", |b| to(b, "e", None))
        .with("e", |e| advised_by(e, "x"))
        .with("x", |_| {})
        .with("c", |_| {});
    setup.asked(&format!("About {ALL}")).run().await;
    for agent in ["b", "c", "x", "e"] {
        sees_masks(&model, agent);
    }
    let e = seen_by(&model, "e");
    assert_eq!(e.matches("<<<request ").count(), 1, "{e}");
}
