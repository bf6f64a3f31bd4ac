//! Members that are more than one agent: the end of the chain, the coordinator of a team below, an agent with advice.

use baton_core::HumanDuration;
use baton_core::agent::{Advisor, Collaboration, Destination, Router, RoutingMode, TerminationMode};
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_models::scripted::{Scripted, ScriptedTurn};

use serde_json::json;

use super::{asked, discussion, ready, rounds, says, setup, team_of, text, vote, whole};
use crate::advisors::{blocks, heard_by_the_person};
use crate::{Setup, name};

/// E9, E20: a member that is a team speaks with its coordinator's words, and has the tools of a member then.
#[tokio::test]
async fn a_member_may_be_a_team() {
    let model = Scripted::default()
        .script(
            "b",
            [
                ScriptedTurn::call("broadcast", &says("We say yes."))
                    .and_call("vote_conclude", &vote(true, "we agree")),
                ScriptedTurn::text("told"),
            ],
        )
        .script("d", [ScriptedTurn::call("broadcast", &says("d says yes.")), ScriptedTurn::text("said")])
        .script("e", ready("e says yes."))
        .script("c", ready("c says yes."))
        .script("a", [ScriptedTurn::text("Yes.")]);
    let mut setup = setup(&model, team_of(&["b", "c"], TerminationMode::Consensus, 3))
        .with("d", |_| {})
        .with("e", |_| {});
    let inner = setup.others.iter_mut().find(|other| other.name == name("b")).unwrap();
    inner.team = Some(rounds(&["d", "e"], 1));
    let ran = setup.run().await;
    assert_eq!(ran.answer(), "Yes.");
    insta::assert_snapshot!(discussion(&ran.events));
    let c = asked(&model, "c");
    assert!(!whole(&c[0]).contains("d says"), "another channel");
    let b = asked(&model, "b");
    assert!(whole(&b[0]).contains("d says yes.") && b[0].tools.contains(&"broadcast".to_owned()));
    let seen = ran.events.iter().filter(|event| event.visibility == Visibility::User);
    let said = seen.filter(|event| matches!(event.kind, EventKind::TextFinished { .. }));
    assert_eq!(said.count(), 1, "only the coordinator of all");
}

/// E9, E20, X8: the end of a member's chain speaks for it, also when the member itself said something to the others.
#[tokio::test]
async fn last_stage_of_a_members_chain_speaks_for_it() {
    let model = Scripted::default()
        .script(
            "b",
            [
                ScriptedTurn::text("A draft of b."),
                ScriptedTurn::call("broadcast", &says("b itself."))
                    .and_call("vote_conclude", &vote(true, "done")),
                ScriptedTurn::text("Another draft."),
            ],
        )
        .script("e", [ScriptedTurn::text("Edited one."), ScriptedTurn::text("Edited two.")])
        .script("c", [ScriptedTurn::text("c one."), ScriptedTurn::text("c two.")])
        .script("a", [ScriptedTurn::text("Edited.")]);
    let mut setup = setup(&model, rounds(&["b", "c"], 2)).with("e", |_| {});
    let b = setup.others.iter_mut().find(|other| other.name == name("b")).unwrap();
    b.handoff = vec![Destination { to: name("e"), when: None }];
    let ran = setup.run().await;
    insta::assert_snapshot!(discussion(&ran.events));
    let c = whole(&asked(&model, "c")[1]);
    assert!(c.contains("Edited one.") && !c.contains("draft"), "{c}");
    let e = asked(&model, "e");
    assert!(e.iter().all(|asked| !asked.tools.contains(&"broadcast".to_owned())), "it is not the member");
    assert!(ran.end.rows.iter().any(|row| row.path == "a/round:1/member:b/handoff:e/turn:1"));
}

/// E9: a member takes advice before each of its turns; the advice is its own business.
#[tokio::test]
async fn a_member_may_have_advisors() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::text("b knows."), ScriptedTurn::text("b still knows.")])
        .script("e", [ScriptedTurn::text("Advice one."), ScriptedTurn::text("Advice two.")])
        .script("c", [ScriptedTurn::text("c one."), ScriptedTurn::text("c two.")])
        .script("a", [ScriptedTurn::text("Known.")]);
    let mut setup = setup(&model, rounds(&["b", "c"], 2)).with("e", |_| {});
    let b = setup.others.iter_mut().find(|other| other.name == name("b")).unwrap();
    let advisor = Advisor { agent: name("e"), required: false, timeout: HumanDuration::from_secs(60) };
    b.advisors.agents = vec![advisor];
    let ran = setup.run().await;
    assert_eq!(ran.answer(), "Known.");
    let b = asked(&model, "b");
    assert!(whole(&b[0]).contains("Advice one.") && whole(&b[1]).contains("Advice two."));
    assert!(whole(&b[1]).contains("c one."));
    let others = ["a", "c"].map(|agent| asked(&model, agent).iter().map(whole).collect::<String>());
    assert!(others.iter().all(|told| !told.contains("Advice")), "{others:?}");
    assert!(!discussion(&ran.events).contains("Advice"));
}

/// A team that ends a chain: members see what was asked and the answer so far, each in its place.
#[tokio::test]
async fn a_team_may_end_a_chain() {
    let model = Scripted::default()
        .script("a", [ScriptedTurn::text("A draft.")])
        .script("t", [ScriptedTurn::text("Reviewed.")])
        .script("b", [ScriptedTurn::text("b one.")])
        .script("c", [ScriptedTurn::text("c one.")]);
    let ran = Setup::new(&model)
        .agent(|agent| agent.handoff = vec![Destination { to: name("t"), when: None }])
        .with("t", |agent| agent.team = Some(rounds(&["b", "c"], 1)))
        .with("b", |_| {})
        .with("c", |_| {})
        .run()
        .await;
    assert_eq!((ran.answer(), ran.end.answered_by.clone()), ("Reviewed.", Some(name("t"))));
    let b = whole(&asked(&model, "b")[0]);
    assert!(b.contains("What is up?") && b.contains("A draft."), "{b}");
    assert_eq!(
        b.matches("<<<request").count(),
        1,
        "the answer so far does not stand where the request stands: {b}"
    );
    let seen = ran.events.iter().filter(|event| event.visibility == Visibility::User);
    let said = seen.filter(|event| matches!(event.kind, EventKind::TextFinished { .. }));
    assert!(said.map(|event| event.agent.clone()).eq([name("t")]), "only who ends the chain");
}

/// E9, E20, X8: whoever a member asks or hands on to gets the request and what is new in every round, each in its place, and
/// nothing of what is said to members.
#[tokio::test]
async fn agents_called_by_a_member_know_the_request() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::text("b one."), ScriptedTurn::text("b two.")])
        .script("x", [ScriptedTurn::text("Advice one."), ScriptedTurn::text("Advice two.")])
        .script("e", [ScriptedTurn::text("e one."), ScriptedTurn::text("e two.")])
        .script("c", [ScriptedTurn::text("c one."), ScriptedTurn::text("c two.")])
        .script("a", [ScriptedTurn::text("Done.")]);
    let mut setup = setup(&model, rounds(&["b", "c"], 2)).with("e", |_| {}).with("x", |_| {});
    let b = setup.others.iter_mut().find(|other| other.name == name("b")).unwrap();
    b.handoff = vec![Destination { to: name("e"), when: None }];
    let advisor = Advisor { agent: name("x"), required: false, timeout: HumanDuration::from_secs(60) };
    b.advisors.agents = vec![advisor];
    setup.run().await;
    assert_eq!(whole(&asked(&model, "x")[0]), "What is up?", "advisors get what was asked, as it was asked");
    let kinds = |agent: &str, round: usize| -> Vec<String> {
        let told = blocks(&whole(&asked(&model, agent)[round]));
        assert_eq!(told[0].1, "## ORIGINAL USER REQUEST\n\nWhat is up?");
        told.into_iter().map(|(what, _)| what).collect()
    };
    assert_eq!(kinds("x", 1), ["request", "post"]);
    assert_eq!(kinds("e", 0), ["request", "answer"]);
    assert_eq!(kinds("e", 1), ["request", "post", "answer"]);
    for agent in ["x", "e"] {
        let told: String = asked(&model, agent).iter().map(whole).collect();
        assert!(told.contains("c one.") && !told.contains("broadcast"), "{told}");
    }
    let b = text(asked(&model, "b")[1].messages.last().unwrap());
    assert!(b.contains("Advice two.") && b.contains("c one.") && b.contains("`broadcast`"), "{b}");
}

/// E5, E9: a member that chooses somebody is represented by them.
#[tokio::test]
async fn a_member_may_be_a_router() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::call("route_to", &json!({ "agent": "e", "reason": "it knows" }))])
        .script("e", [ScriptedTurn::text("e knows.")])
        .script("c", [ScriptedTurn::text("c one.")])
        .script("a", [ScriptedTurn::text("Done.")]);
    let mut setup = setup(&model, rounds(&["b", "c"], 1)).with("e", |_| {});
    let b = setup.others.iter_mut().find(|other| other.name == name("b")).unwrap();
    let (destinations, fallback) = (vec![name("e")], None);
    b.router = Some(Router { mode: RoutingMode::Pure, destinations, fallback, may_answer: false });
    let ran = setup.run().await;
    assert_eq!(ran.answer(), "Done.");
    assert!(discussion(&ran.events).contains("b in round 1: \"e knows.\""), "{}", discussion(&ran.events));
    let e = asked(&model, "e");
    assert_eq!(whole(&e[0]), "What is up?", "the original input");
    assert!(!e[0].tools.contains(&"broadcast".to_owned()), "it is not the member");
    assert!(heard_by_the_person(&ran.events).into_iter().eq(["a".to_owned()]));
}

/// X8: a member that passes its part on is represented by whoever has it then.
#[tokio::test]
async fn a_member_may_transfer() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::call("transfer_to_e", &json!({ "reason": "it knows" }))])
        .script("e", [ScriptedTurn::text("e knows.")])
        .script("c", [ScriptedTurn::text("c one.")])
        .script("a", [ScriptedTurn::text("Done.")]);
    let mut setup = setup(&model, rounds(&["b", "c"], 1)).with("e", |_| {});
    let b = setup.others.iter_mut().find(|other| other.name == name("b")).unwrap();
    b.collaborations = vec![Collaboration { agent: name("e"), when: None, allow_revisit: 0 }];
    let ran = setup.run().await;
    assert_eq!(ran.answer(), "Done.");
    assert!(discussion(&ran.events).contains("b in round 1: \"e knows.\""), "{}", discussion(&ran.events));
    assert!(!asked(&model, "e")[0].tools.contains(&"broadcast".to_owned()), "it is not the member");
}
