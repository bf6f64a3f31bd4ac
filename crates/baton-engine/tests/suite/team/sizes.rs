//! However many rounds, members and words: what somebody is told has a bound, and nobody is told anything twice.

use baton_core::agent::{Quorum, Team, TerminationMode};
use baton_core::chat::ChatMessage;
use baton_core::model::{ModelErrorKind, ModelFacts};
use baton_models::scripted::{RecordedRequest, Scripted, ScriptedTurn};

use super::{asked, discussion, ended, ready, rounds, says, setup, team_of, text, vote, whole};
use crate::name;

/// A post that can be told from every other.
fn post(member: &str, round: usize, length: usize) -> String {
    format!("<{member} in {round}>{}", "x".repeat(length))
}

fn talking(members: &[&str], held: usize, length: usize) -> Scripted {
    members.iter().fold(Scripted::default(), |model, member| {
        model.script(member, (1..=held).map(|round| ScriptedTurn::text(&post(member, round, length))))
    })
}

fn sizes(asked: &[RecordedRequest]) -> Vec<usize> {
    asked.iter().map(|asked| whole(asked).len()).collect()
}

/// E34, E30: five members over ten rounds read each word once; each round adds as much as was said in it.
#[tokio::test]
async fn member_input_grows_linearly() {
    let members = ["m1", "m2", "m3", "m4", "m5"];
    let model = talking(&members, 10, 200).script("a", [ScriptedTurn::text("Done.")]);
    let ran = setup(&model, rounds(&members, 10)).run().await;
    assert_eq!(ended(&ran.events).0, 10);
    for member in members {
        let asked = asked(&model, member);
        let sizes = sizes(&asked);
        let steps: Vec<usize> = sizes.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let (shortest, longest) = (steps.iter().min().unwrap(), steps.iter().max().unwrap());
        assert!(longest - shortest < 400, "{member}: {steps:?}");
        let last = whole(asked.last().unwrap());
        for other in members {
            for round in 1..10 {
                assert_eq!(last.matches(&post(other, round, 0)).count(), 1, "{member} of {other} in {round}");
            }
        }
        assert_eq!(last.matches("## REQUEST").count(), 1);
    }
}

/// E7, E34: in a discussion without end the first message and the newest are what is left.
#[tokio::test]
async fn member_memory_is_bounded_and_keeps_the_request() {
    let members = ["b", "c"];
    let model = talking(&members, 50, 8_000).script("a", [ScriptedTurn::text("Done.")]);
    setup(&model, rounds(&members, 50)).run().await;
    for member in members {
        let asked = asked(&model, member);
        let most = sizes(&asked).into_iter().max().unwrap();
        assert!(most < 130_000, "{most}");
        let last = whole(asked.last().unwrap());
        assert!(last.contains("What is up?"), "the request stays");
        assert!(last.contains(&post("b", 49, 0)) && last.contains(&post("c", 49, 0)), "and the newest");
        assert!(!last.contains(&post("c", 20, 0)) && !last.contains(&post("b", 20, 0)), "not the old ones");
    }
    let a = whole(&asked(&model, "a")[0]);
    assert!(a.len() < 110_000 && a.contains(&post("c", 50, 0)) && !a.contains(&post("c", 20, 0)));
    assert!(a.contains("messages of the discussion are left out"));
}

/// E34: a model with little room forgets old rounds, and never what was asked.
#[tokio::test]
async fn a_small_model_still_knows_the_request() {
    let members = ["b", "c"];
    let model = talking(&members, 12, 2_000).script("a", [ScriptedTurn::text("Done.")]);
    let facts = ModelFacts { price: None, context_window: Some(6_000), ..ModelFacts::default() };
    setup(&model.clone().with_facts(facts), rounds(&members, 12)).run().await;
    for member in members {
        let last = whole(asked(&model, member).last().unwrap());
        assert!(last.len() < 24_000 && last.contains("What is up?"), "{member}: {}", last.len());
        assert!(!last.contains(&post("b", 2, 0)) && !last.contains(&post("c", 2, 0)), "{member}");
    }
}

/// E37: the same for a coordinator that is asked after every round. It reads each post once, and its own never as news.
#[tokio::test]
async fn the_coordinator_reads_every_post_once() {
    let members = ["b", "c"];
    let guidance = (1..10).map(|round| ScriptedTurn::text(&format!("<guidance after {round}>")));
    let model = talking(&members, 10, 50).script("a", guidance.chain([ScriptedTurn::text("Done.")]));
    let ran = setup(&model, team_of(&members, TerminationMode::CoordinatorDecides, 10)).run().await;
    assert_eq!((ran.answer(), ended(&ran.events).0), ("Done.", 10));
    let a = asked(&model, "a");
    let last = whole(&a[8]);
    for round in 1..10 {
        for member in members {
            assert_eq!(last.matches(&post(member, round, 0)).count(), 1, "{member} in {round}");
        }
        let times = usize::from(round < 9);
        assert_eq!(last.matches(&format!("<guidance after {round}>")).count(), times, "{round}");
    }
    for member in members {
        let read = whole(asked(&model, member).last().unwrap());
        assert!((1..10).all(|round| read.matches(&format!("<guidance after {round}>")).count() == 1));
    }
}

/// E34, X33: a megabyte in one breath neither fills anybody's prompt nor pushes out everything else.
#[tokio::test]
async fn long_post_is_cut() {
    let megabyte = format!("begins {}", "x".repeat(1 << 20));
    let model = Scripted::default()
        .script(
            "b",
            [
                ScriptedTurn::text(&megabyte),
                ScriptedTurn::call("broadcast", &says(&megabyte)),
                ScriptedTurn::text("pass"),
            ],
        )
        .script("c", [ScriptedTurn::text("Short."), ScriptedTurn::text("Short again.")])
        .script("a", [ScriptedTurn::text("Done.")]);
    let ran = setup(&model, rounds(&["b", "c"], 2)).run().await;
    assert_eq!(ran.answer(), "Done.");
    for (agent, call) in [("a", 0), ("b", 1), ("c", 1)] {
        let read = whole(&asked(&model, agent)[call]);
        assert!(
            read.len() < 100_000 && read.contains("begins x") && read.contains("Short."),
            "{agent} {}",
            read.len()
        );
    }
}

/// E37: what the file reader would have refused is harmless.
#[tokio::test]
async fn unusual_teams_terminate() {
    for quorum in [Quorum::AtLeast(0), Quorum::AtLeast(99)] {
        let model = Scripted::default()
            .script("b", ready("One."))
            .script("c", ready("Two."))
            .script("a", [ScriptedTurn::text("Done.")]);
        let team = Team { quorum, ..team_of(&["b", "c"], TerminationMode::Consensus, 5) };
        let ran = setup(&model, team).run().await;
        assert_eq!(ended(&ran.events), (1, "consensus".into(), vec![]), "{quorum:?}");
    }
    // The coordinator as a member, and nobody at all.
    let model = Scripted::default()
        .script("b", [ScriptedTurn::text("One.")])
        .script("a", [ScriptedTurn::text("Done.")]);
    let mut setup = setup(&model, rounds(&["b", "a", "nobody"], 1));
    setup.others.retain(|other| other.name == name("b"));
    let ran = setup.run().await;
    assert_eq!(ran.answer(), "Done.");
    let (_, by, dissent) = ended(&ran.events);
    assert_eq!((by.as_str(), dissent.len()), ("max_rounds", 2), "{dissent:?}");
    let said = discussion(&ran.events);
    assert!(
        said.contains("`a` is already active above") && said.contains("there is no agent `nobody`"),
        "{said}"
    );
}

/// E37: whoever voted in an earlier round and fails now has no vote now.
#[tokio::test]
async fn a_vote_of_an_earlier_round_is_not_counted_again() {
    let yes = || ScriptedTurn::call("vote_conclude", &vote(true, "done"));
    let model = Scripted::default()
        .script(
            "b",
            [
                yes(),
                ScriptedTurn::text("One."),
                ScriptedTurn::error(ModelErrorKind::Auth),
                yes(),
                ScriptedTurn::text("Three."),
            ],
        )
        .script(
            "c",
            [
                ScriptedTurn::text("Wait."),
                yes(),
                ScriptedTurn::text("Now."),
                yes(),
                ScriptedTurn::text("Still."),
            ],
        )
        .script("a", [ScriptedTurn::text("Done.")]);
    let ran = setup(&model, team_of(&["b", "c"], TerminationMode::Consensus, 9)).run().await;
    assert_eq!(ended(&ran.events), (3, "consensus".into(), vec![]));
    let b = asked(&model, "b");
    let third = text(b[3].messages.last().unwrap());
    assert!(third.contains("Wait.") && third.contains("Now."), "it reads on from where it stopped: {third}");
    let ChatMessage::User { .. } = &b[3].messages[0] else { panic!("not what it was told first") };
    assert_eq!(whole(&b[3]).matches("Wait.").count(), 1);
}
