//! Members that are more than one agent: the end of the chain, the coordinator of a team below, an agent with advice.

use baton_core::HumanDuration;
use baton_core::agent::{Advisor, Destination, TerminationMode};
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_models::scripted::{Scripted, Turn};

use super::{asked, discussion, ready, rounds, says, setup, team_of, vote, whole};
use crate::{Setup, name};

/// E9, E20: a member that is a team speaks with its coordinator's words, and has the tools of a member then.
#[tokio::test]
async fn a_member_may_be_a_team() {
    let model = Scripted::default()
        .script(
            "b",
            [
                Turn::call("broadcast", &says("We say yes."))
                    .and_call("vote_conclude", &vote(true, "we agree")),
                Turn::text("told"),
            ],
        )
        .script("d", [Turn::call("broadcast", &says("d says yes.")), Turn::text("said")])
        .script("e", ready("e says yes."))
        .script("c", ready("c says yes."))
        .script("a", [Turn::text("Yes.")]);
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
async fn the_end_of_a_members_chain_speaks_for_it() {
    let model = Scripted::default()
        .script(
            "b",
            [
                Turn::text("A draft of b."),
                Turn::call("broadcast", &says("b itself.")).and_call("vote_conclude", &vote(true, "done")),
                Turn::text("Another draft."),
            ],
        )
        .script("e", [Turn::text("Edited one."), Turn::text("Edited two.")])
        .script("c", [Turn::text("c one."), Turn::text("c two.")])
        .script("a", [Turn::text("Edited.")]);
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
        .script("b", [Turn::text("b knows."), Turn::text("b still knows.")])
        .script("e", [Turn::text("Advice one."), Turn::text("Advice two.")])
        .script("c", [Turn::text("c one."), Turn::text("c two.")])
        .script("a", [Turn::text("Known.")]);
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
        .script("a", [Turn::text("A draft.")])
        .script("t", [Turn::text("Reviewed.")])
        .script("b", [Turn::text("b one.")])
        .script("c", [Turn::text("c one.")]);
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
