//! Teams that outlive their process.

use std::sync::{Arc, Mutex};

use baton_core::agent::{Team, TerminationMode};
use baton_core::event::EventKind;
use baton_core::ledger::{CallOutcome, Called};
use baton_core::store::RunStatus;
use baton_core::{Event, HumanDuration, LedgerRow};
use baton_engine::{Engine, TeamHooks};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::hooks::Heard;
use super::{asked, discussion, ended, ready, rounds, says, setup, team_of, text, vote, whole};
use crate::durability::{After, die, go_on, runtime};
use crate::{LONG, Setup, name};

fn team() -> Team {
    // Time before a crash counts, and a slow machine needs some.
    Team { member_timeout: HumanDuration::from_secs(600), ..rounds(&["b", "c"], 3) }
}

fn is_cut(event: &Event, path: &str) -> bool {
    matches!(event.kind, EventKind::TextDelta { .. }) && event.path.starts_with(path)
}

/// The first process dies in round 2, when `c` has finished and `b` has not.
fn crash_in_round_two() -> (Scripted, After, Arc<Heard>) {
    let with = |model: &Scripted, hooks: &Arc<Heard>| -> Setup {
        let mut setup = setup(model, team());
        setup.team_hooks = Some(Arc::clone(hooks) as Arc<dyn TeamHooks>);
        setup
    };
    let calls = ScriptedTurn::call("broadcast", &says("b two."))
        .and_call("vote_conclude", &vote(false, "not b"))
        .and_call("broadcast", &says("b two again."));
    let first = Scripted::default()
        .script(
            "b",
            [
                ScriptedTurn::call("broadcast", &says("b one.")),
                ScriptedTurn::text("told"),
                calls,
                ScriptedTurn::default().say("I am").hang(),
            ],
        )
        .script("c", [ScriptedTurn::text("c one.")].into_iter().chain(ready("c two.")));
    let seen = Mutex::new((false, false));
    let (engine, _, _) = die(with(&first, &Arc::default()), move |event| {
        let mut seen = seen.lock().unwrap();
        seen.0 |= is_cut(event, "a/round:2/member:b");
        let is_end = matches!(event.kind, EventKind::SessionFinished { .. });
        seen.1 |= is_end && &*event.path == "a/round:2/member:c";
        seen.0 && seen.1
    });
    let second = Scripted::default()
        .script("b", [ScriptedTurn::text("told again"), ScriptedTurn::text("b three.")])
        .script("c", [ScriptedTurn::text("c three.")])
        .script("a", [ScriptedTurn::text("All of it.")]);
    let hooks = Arc::new(Heard::default());
    let after = go_on(with(&second, &hooks), &engine);
    (second, after, hooks)
}

/// E7: who finished before the crash does not run again, and what was said is said once.
#[test]
fn round_resumes_where_its_process_died() {
    let (second, after, hooks) = crash_in_round_two();
    after.is_sound();
    assert_eq!(after.run.status, RunStatus::Completed);
    let (b, c) = (asked(&second, "b"), asked(&second, "c"));
    assert_eq!((b.len(), c.len(), asked(&second, "a").len()), (2, 1, 1), "the cut turn, and round 3");
    assert_eq!(b[0].messages.len(), 3 + 1 + 3, "the turn goes on after its calls");
    let said = discussion(&after.events);
    insta::assert_snapshot!(
        said.lines().filter(|line| !line.contains("status")).collect::<Vec<_>>().join("\n")
    );
    let third = text(c[0].messages.last().unwrap());
    assert!(
        third.contains("b two.") && third.contains("b two again.") && !third.contains("b one."),
        "{third}"
    );
    assert!(!third.contains("told again") && !third.contains("c two."));
    assert_eq!(text(&c[0].messages[3]), "c two.", "its own words from before the crash");
    assert!(whole(&c[0]).matches("## REQUEST").count() == 1);
    let dissent = after.run.end.as_ref().unwrap().dissent.clone();
    assert_eq!(dissent.len(), 1);
    assert_eq!((dissent[0].member.clone(), dissent[0].reason.as_str()), (name("b"), "not b"));
    let lines = hooks.lines.lock().unwrap().clone();
    assert!(
        !lines.iter().any(|line| line.starts_with('1') || line == "2 begins"),
        "nothing is asked twice: {lines:?}"
    );
    assert!(
        lines.contains(&"2 c: c two.".to_owned()) && lines.contains(&"2 of a is over".to_owned()),
        "{lines:?}"
    );
    assert_eq!(after.run.usage.tokens.total(), after.rows.iter().map(|row| row.tokens.total()).sum::<u64>());
    for path in ["a/round:1/member:b", "a/round:1/member:c", "a/round:2/member:b", "a/round:2/member:c"] {
        let begun = after
            .events
            .iter()
            .filter(|event| &*event.path == path && matches!(event.kind, EventKind::SessionStarted { .. }));
        assert_eq!(begun.count(), 1, "{path}");
    }
}

/// What the coordinator decided stays decided.
#[test]
fn decision_is_not_repeated() {
    let team = || team_of(&["b", "c"], TerminationMode::CoordinatorDecides, 9);
    let first = Scripted::default()
        .script("b", [ScriptedTurn::text("b one."), ScriptedTurn::default().say("b").hang()])
        .script("c", [ScriptedTurn::text("c one."), ScriptedTurn::default().say("c").hang()])
        .script("a", [ScriptedTurn::text("Be brief.")]);
    let (engine, _, _) = die(setup(&first, team()), |event| is_cut(event, "a/round:2/"));
    let second = Scripted::default()
        .script("b", [ScriptedTurn::text("b two.")])
        .script("c", [ScriptedTurn::text("c two.")])
        .script(
            "a",
            [ScriptedTurn::call("conclude_team", &json!({ "summary": "Two." })), ScriptedTurn::text("Two.")],
        );
    let after = go_on(setup(&second, team()), &engine);
    after.is_sound();
    assert_eq!(after.run.end.as_ref().unwrap().answer.as_deref(), Some("Two."));
    let guided = |kind: &EventKind| matches!(kind, EventKind::Broadcast { text, .. } if text == "Be brief.");
    assert_eq!(after.count(guided), 1);
    assert!(whole(&asked(&second, "b")[0]).contains("Be brief."));
    let a = asked(&second, "a");
    assert_eq!(a.len(), 2);
    assert!(whole(&a[0]).contains("Be brief.") && whole(&a[0]).contains("c two."));
    assert_eq!(ended(&after.events), (2, "coordinator".into(), vec![]));
}

/// The answer is cut: the discussion is not held again, and its end is announced once.
#[test]
fn discussion_end_survives_a_crash() {
    let team = || team_of(&["b", "c"], TerminationMode::Consensus, 9);
    let first = Scripted::default()
        .script("b", ready("b one."))
        .script("c", ready("c one."))
        .script("a", [ScriptedTurn::default().say("So").hang()]);
    let (engine, _, _) = die(setup(&first, team()), |event| is_cut(event, "a/turn:1"));
    let second = Scripted::default().script("a", [ScriptedTurn::text("So be it.")]);
    let after = go_on(setup(&second, team()), &engine);
    after.is_sound();
    assert_eq!(second.asked().len(), 1);
    assert!(whole(&second.asked()[0]).contains("c one."));
    assert_eq!(ended(&after.events), (1, "consensus".into(), vec![]));
    assert_eq!(after.count(|kind| matches!(kind, EventKind::Broadcast { .. })), 2);
    assert_eq!(after.count(|kind| matches!(kind, EventKind::Voted { .. })), 2);
}

/// What each agent says in a whole discussion. The members need the calls of their tools to be heard.
fn scripts() -> [(&'static str, Vec<ScriptedTurn>); 3] {
    let calls =
        ScriptedTurn::call("broadcast", &says("b two.")).and_call("vote_conclude", &vote(false, "not b"));
    let b = [
        ScriptedTurn::call("broadcast", &says("b one.")),
        ScriptedTurn::text("told"),
        calls,
        ScriptedTurn::text("told again"),
    ];
    let c = [ScriptedTurn::text("c one.")].into_iter().chain(ready("c two."));
    let end = ScriptedTurn::call("conclude_team", &json!({ "summary": "Two." }));
    [
        ("a", vec![ScriptedTurn::text("Be brief."), end, ScriptedTurn::text("All of it.")]),
        ("b", b.into()),
        ("c", c.collect()),
    ]
}

/// What is left to say when so many turns of each were taken.
fn model(taken: impl Fn(&str) -> usize) -> Scripted {
    let left = scripts().map(|(agent, turns)| (agent, turns.into_iter().skip(taken(agent))));
    left.into_iter().fold(Scripted::default(), |model, (agent, turns)| model.script(agent, turns))
}

fn decided() -> Team {
    team_of(&["b", "c"], TerminationMode::CoordinatorDecides, 9)
}

/// The engine of a process that died when so many events had been heard, and the rows it left; nothing if the run ended before.
fn die_after(events: usize) -> Option<(Arc<Engine>, Vec<LedgerRow>)> {
    let process = runtime();
    let (engine, request, id, is_over) = process.block_on(async {
        let (parts, request) = setup(&model(|_| 0), decided()).parts().await;
        let engine = Engine::new(parts);
        let mut run = engine.start(request.clone()).await.unwrap();
        let mut heard = 0;
        while heard < events && run.events.recv().await.is_some() {
            heard += 1;
        }
        let id = run.id;
        std::mem::forget(run);
        (engine, request, id, heard < events)
    });
    process.shutdown_timeout(LONG);
    let rows = runtime().block_on(async {
        let store = engine.parts.store.tenant(&request.caller.tenant);
        // Whoever writes comes after what the dead had queued.
        store.keep("none", json!(null), jiff::Timestamp::UNIX_EPOCH).await.unwrap();
        store.ledger(id).await.unwrap()
    });
    (!is_over).then_some((engine, rows))
}

/// E7: wherever the process dies, the discussion is the same, and everything is said once.
#[test]
fn team_resumes_after_a_crash_at_any_moment() {
    let told = |events: &[Event]| {
        let said = discussion(events);
        said.lines().filter(|line| !line.contains(" status ")).collect::<Vec<_>>().join("\n")
    };
    let mut crashes = 0;
    for events in 1.. {
        let Some((engine, rows)) = die_after(events) else { break };
        let taken = |agent: &str| {
            let turns = rows.iter().filter(|row| row.agent == name(agent) && row.outcome == CallOutcome::Ok);
            turns.filter(|row| matches!(row.call, Called::Model { .. })).count()
        };
        let second = model(taken);
        let after = go_on(setup(&second, decided()), &engine);
        // It was faster than who listened.
        if after.recovered == 0 {
            continue;
        }
        crashes += 1;
        after.is_sound();
        assert_eq!(after.run.end.as_ref().unwrap().answer.as_deref(), Some("All of it."), "{events}");
        assert_eq!(second.left(), 0, "{events}");
        insta::assert_snapshot!("crash_anywhere", told(&after.events));
    }
    assert!(crashes > 0);
}
