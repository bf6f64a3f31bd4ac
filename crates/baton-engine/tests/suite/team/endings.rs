//! How discussions end. A team answers if any member has contributed.

use baton_core::HumanDuration;
use baton_core::agent::{Quorum, TerminationMode};
use baton_core::choice::Choice as _;
use baton_core::event::{Dissent, EventKind};
use baton_core::model::ModelErrorKind;
use baton_core::store::{Cancel, RunStatus};
use baton_engine::{Engine, LimitKind};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::{asked, discussion, ended, ready, rounds, setup, team_of, text, vote, whole};
use crate::name;

fn dissent(member: &str, reason: &str) -> Dissent {
    Dissent { member: name(member), reason: reason.into() }
}

fn against(reason: &str) -> [ScriptedTurn; 2] {
    [ScriptedTurn::call("vote_conclude", &vote(false, reason)), ScriptedTurn::text("Not yet.")]
}

/// E37, I4 consensus: how many have to be ready, in one and the same round.
#[tokio::test]
async fn consensus_ends_when_the_quorum_is_ready() {
    for (quorum, rounds) in
        [(Quorum::All, 3), (Quorum::Majority, 2), (Quorum::AtLeast(1), 1), (Quorum::AtLeast(99), 3)]
    {
        let model = Scripted::default()
            .script("b", ready("1").into_iter().chain(ready("2")).chain(ready("3")))
            .script("c", against("no").into_iter().chain(ready("2")).chain(ready("3")))
            .script("d", against("no").into_iter().chain(against("still no")).chain(ready("3")))
            .script("a", [ScriptedTurn::text("So be it.")]);
        let mut team = team_of(&["b", "c", "d"], TerminationMode::Consensus, 10);
        team.quorum = quorum;
        let ran = setup(&model, team).run().await;
        let (held, by, dissent) = ended(&ran.events);
        assert_eq!((held, by.as_str(), ran.answer()), (rounds, "consensus", "So be it."), "{quorum:?}");
        let expected = match rounds {
            3 => vec![],
            2 => vec![self::dissent("d", "still no")],
            _ => vec![self::dissent("c", "no"), self::dissent("d", "no")],
        };
        assert_eq!(dissent, expected);
    }
}

/// E37: being ready once is not being ready now.
#[tokio::test]
async fn a_vote_counts_in_its_round_only() {
    let model = Scripted::default()
        .script("b", ready("1").into_iter().chain([ScriptedTurn::text("More to say.")]))
        .script("c", [ScriptedTurn::text("Hm.")].into_iter().chain(ready("2")))
        .script("a", [ScriptedTurn::text("No agreement.")]);
    let ran = setup(&model, team_of(&["b", "c"], TerminationMode::Consensus, 2)).run().await;
    assert_eq!(ended(&ran.events), (2, "max_rounds".into(), vec![]), "the maximum holds in every mode");
}

/// E37: who changes their mind in a round has one vote, the last.
#[tokio::test]
async fn the_last_vote_of_a_round_counts() {
    let both = ScriptedTurn::call("vote_conclude", &vote(true, "yes"))
        .and_call("vote_conclude", &vote(false, "wait"));
    let model = Scripted::default()
        .script("b", [both, ScriptedTurn::text("Wait.")])
        .script("c", ready("Yes."))
        .script("a", [ScriptedTurn::text("b waits.")]);
    let ran = setup(&model, team_of(&["b", "c"], TerminationMode::Consensus, 1)).run().await;
    assert_eq!(ended(&ran.events), (1, "max_rounds".into(), vec![dissent("b", "wait")]));
    assert!(whole(&asked(&model, "a")[0]).contains("`b`: wait"));
}

/// E37, E38: the default. It reads what is new, steers, and concludes.
#[tokio::test]
async fn the_coordinator_decides() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::text("Red."), ScriptedTurn::text("Green, then.")])
        .script("c", [ScriptedTurn::text("Blue."), ScriptedTurn::text("Green.")])
        .script(
            "a",
            [
                ScriptedTurn::text("Look for something between red and blue."),
                ScriptedTurn::call("conclude_team", &json!({ "summary": "Green." })),
                ScriptedTurn::text("It is green."),
            ],
        );
    let team = team_of(&["b", "c"], TerminationMode::CoordinatorDecides, 10);
    let ran = setup(&model, team).tool(crate::TestTool::echo("look")).run().await;
    assert_eq!(ran.answer(), "It is green.");
    insta::assert_snapshot!(discussion(&ran.events));
    let a = asked(&model, "a");
    assert_eq!(a[0].tools, ["conclude_team"]);
    assert_eq!(a[2].tools, ["look"], "its own tools, for the answer");
    assert!(text(&a[0].messages[0]).contains("What is up?") && whole(&a[0]).contains("Blue."));
    assert_eq!(a[1].messages.len(), 3);
    let news = text(&a[1].messages[2]);
    assert!(
        news.contains("Green, then.") && !news.contains("Blue.") && news.contains("What is up?"),
        "{news}"
    );
    assert_eq!(whole(&a[1]).matches("What is up?").count(), 1, "the request is there once");
    let b = whole(&asked(&model, "b")[1]);
    assert!(b.contains("`a`, the coordinator, after round 1") && b.contains("between red and blue"), "{b}");
    assert!(whole(&a[2]).contains("### Your summary\n\nGreen."), "{}", whole(&a[2]));
}

/// A coordinator whose answers must be JSON decides in words.
#[tokio::test]
async fn schema_applies_to_the_answer_only() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::text("One."), ScriptedTurn::text("Two.")])
        .script("c", [ScriptedTurn::text("One."), ScriptedTurn::text("Two.")])
        .script("a", [ScriptedTurn::text("Go on."), ScriptedTurn::text(r#"{"n":2}"#)]);
    let team = team_of(&["b", "c"], TerminationMode::CoordinatorDecides, 2);
    let schema = json!({ "type": "object", "required": ["n"] });
    let ran = setup(&model, team).agent(|agent| agent.output_schema = Some(schema)).run().await;
    assert_eq!(ran.end.answer.unwrap().value, Some(json!({ "n": 2 })));
    let schemas: Vec<bool> =
        model.asked().iter().filter(|asked| asked.agent == "a").map(|a| a.output_schema).collect();
    assert_eq!(schemas, [false, true]);
}

/// A team whose coordinator cannot decide answers all the same.
#[tokio::test]
async fn a_coordinator_that_fails_between_rounds_answers_in_the_end() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::text("One.")])
        .script("c", [ScriptedTurn::text("Two.")])
        .script("a", [ScriptedTurn::error(ModelErrorKind::Auth), ScriptedTurn::text("Three.")]);
    let ran = setup(&model, team_of(&["b", "c"], TerminationMode::CoordinatorDecides, 9)).run().await;
    assert_eq!(ran.answer(), "Three.");
    assert_eq!(ended(&ran.events), (1, "coordinator_failed".into(), vec![]));
}

/// An answer of the coordinator alone would look like one of the team.
#[tokio::test]
async fn a_team_without_any_contribution_fails() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::error(ModelErrorKind::Auth)])
        .script("c", [ScriptedTurn::text("pass")])
        .script("a", [ScriptedTurn::text("never")]);
    let ran = setup(&model, rounds(&["b", "c"], 1)).run().await;
    assert_eq!((ran.end.status, ran.answer()), (RunStatus::Failed, ""));
    let failure = ran.end.failure.unwrap();
    assert_eq!(failure.code(), "no_contribution");
    assert_eq!(
        failure.to_string(),
        "no member of the team of `a` contributed: `b` could not take part in round 1: scripted: auth: as the script says; \
         `c` had nothing to say"
    );
    assert!(asked(&model, "a").is_empty());
}

/// A member that failed in the last round may have contributed before.
#[tokio::test]
async fn members_that_fail_later_have_contributed() {
    let fails_later = || [ScriptedTurn::text("One."), ScriptedTurn::error(ModelErrorKind::Auth)];
    let model = Scripted::default()
        .script("b", fails_later())
        .script("c", fails_later())
        .script("a", [ScriptedTurn::text("From the first round.")]);
    let ran = setup(&model, rounds(&["b", "c"], 9)).run().await;
    assert_eq!((ran.end.status, ran.answer()), (RunStatus::Completed, "From the first round."));
    let (held, by, dissent) = ended(&ran.events);
    assert_eq!((held, by.as_str(), dissent.len()), (2, "members_failed", 2));
    assert!(dissent[0].reason.starts_with("could not take part in round 2: "), "{dissent:?}");
    assert!(whole(&asked(&model, "a")[0]).contains("no member could take part any more"));
}

/// On any cap the coordinator gets one closing turn, so a team always answers.
#[tokio::test]
async fn exhausted_budget_ends_the_discussion() {
    for (_, mode) in TerminationMode::ALL.iter().copied() {
        let model = Scripted::default()
            .script("b", [ScriptedTurn::text("Long.").tokens(900, 100), ScriptedTurn::text("never")])
            .script("c", [ScriptedTurn::text("Short.").tokens(10, 1), ScriptedTurn::text("never")])
            .script("a", [ScriptedTurn::text("From what is there."), ScriptedTurn::text("never")]);
        let ran = setup(&model, team_of(&["b", "c"], mode, 10))
            .agent(|agent| agent.limits.max_tokens = Some(1000))
            .run()
            .await;
        let answer = ran.end.answer.clone().unwrap();
        assert_eq!(
            (answer.text.as_str(), answer.limit),
            ("From what is there.", Some(LimitKind::Tokens)),
            "{mode}"
        );
        // A member that begins after the other one has used the budget up makes no call.
        let (rounds, by, _) = ended(&ran.events);
        assert_eq!((rounds, by), (1, "tokens".into()), "{mode}");
        assert!(model.left() >= 3, "one closing turn and nothing else");
    }
}

/// The coordinator's time is over in the middle of its decision: no closing turn there, one in the end.
#[tokio::test]
async fn timeout_in_a_decision_closes_once() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::text("One.")])
        .script("c", [ScriptedTurn::text("Two.")])
        .script("a", [ScriptedTurn::default().say("Let me see").hang(), ScriptedTurn::text("Quickly then.")]);
    let team = team_of(&["b", "c"], TerminationMode::CoordinatorDecides, 9);
    // Less than a model may be silent.
    let timeout = HumanDuration::from_secs(30);
    let mut run = setup(&model, team).agent(|agent| agent.limits.timeout = timeout).start().await;
    let mut events = Vec::new();
    while let Some(event) = run.events.recv().await {
        let decides = matches!(event.kind, EventKind::TextDelta { .. })
            && &*event.path == "a/round:1/coordinator/turn:1";
        if decides {
            tokio::time::pause();
        }
        if matches!(event.kind, EventKind::TeamEnded { .. }) {
            tokio::time::resume();
        }
        events.push(event);
    }
    let answer = run.join().await.answer.unwrap();
    assert_eq!((answer.text.as_str(), answer.limit), ("Quickly then.", Some(LimitKind::Time)));
    assert_eq!(ended(&events), (1, "time".into(), vec![]));
    assert_eq!(model.left(), 0);
}

/// `stop`: members close, no round follows, the coordinator answers from what is there.
#[tokio::test]
async fn a_stop_ends_the_discussion_with_an_answer() {
    let model = Scripted::default()
        .script("b", [ScriptedTurn::call("look", &json!({})), ScriptedTurn::text("Half.")])
        .script("c", [ScriptedTurn::text("Done.")])
        .script("a", [ScriptedTurn::text("Half an answer.")]);
    let look = crate::TestTool::new("look", |_| async {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        Ok("seen".to_owned())
    });
    let (mut parts, request) = setup(&model, rounds(&["b", "c"], 9)).tool(look).parts().await;
    parts.lease.beat = std::time::Duration::from_millis(10);
    let engine = Engine::new(parts);
    let mut run = engine.start(request.clone()).await.unwrap();
    while !matches!(run.events.recv().await.unwrap().kind, EventKind::ToolCalled { .. }) {}
    let store = engine.parts.store.tenant(&request.caller.tenant);
    store.cancel_run(run.id, Cancel::Stop).await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = run.events.recv().await {
        events.push(event);
    }
    let end = run.join().await;
    assert_eq!(end.status, RunStatus::Completed);
    let answer = end.answer.unwrap();
    assert_eq!((answer.text.as_str(), answer.limit), ("Half an answer.", Some(LimitKind::Stopped)));
    assert_eq!(ended(&events), (1, "stopped".into(), vec![]));
}

/// E18: a cancelled team leaves nothing at work and no barrier behind.
#[tokio::test]
async fn a_cancelled_run_ends_all_members() {
    let hang = || ScriptedTurn::default().say("On and on").hang();
    let model = Scripted::default().script("b", [hang()]).script("c", [hang()]);
    let mut run = setup(&model, rounds(&["b", "c"], 9)).start().await;
    let mut at_work = 0;
    while at_work < 2 {
        at_work += usize::from(matches!(run.events.recv().await.unwrap().kind, EventKind::TextDelta { .. }));
    }
    run.cancel();
    let mut events = Vec::new();
    while let Some(event) = run.events.recv().await {
        events.push(event);
    }
    let end = run.join().await;
    assert_eq!(end.status, RunStatus::Cancelled);
    assert_eq!(end.rows.len(), 2, "both are paid for");
    assert_eq!(discussion(&events), "");
}
