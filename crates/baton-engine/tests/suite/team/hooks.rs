//! Code that accompanies teams.

use std::sync::{Arc, Mutex};

use baton_core::AgentName;
use baton_core::agent::TerminationMode;
use baton_engine::{TeamHooks, TeamRound, Vote};
use baton_models::scripted::{Scripted, ScriptedTurn};

use super::{asked, ended, ready, rounds, setup, team_of, text};

#[derive(Debug, Default)]
pub(super) struct Heard {
    pub(super) lines: Mutex<Vec<String>>,
    pub(super) last_round: Option<u32>,
}

impl Heard {
    fn add(&self, line: String) {
        self.lines.lock().unwrap().push(line);
    }
}

impl TeamHooks for Heard {
    fn on_broadcast(&self, at: &TeamRound, member: &AgentName, text: &str) {
        self.add(format!("{} {member}: {text}", at.round));
    }

    fn on_vote(&self, at: &TeamRound, member: &AgentName, vote: &Vote) {
        self.add(format!("{} {member}: {}", at.round, vote.ready));
    }

    fn inject(&self, at: &TeamRound) -> Vec<String> {
        self.add(format!("{} begins", at.round));
        if at.round == 2 { vec!["The budget is 4.".into()] } else { Vec::new() }
    }

    fn should_continue(&self, at: &TeamRound) -> bool {
        self.add(format!("{} of {} is over", at.round, at.coordinator));
        self.last_round != Some(at.round)
    }
}

/// E22
#[tokio::test]
async fn hooks_observe_inject_and_end() {
    let model = Scripted::default()
        .script("b", ready("It costs 5.").into_iter().chain([ScriptedTurn::text("4, then.")]))
        .script("c", [ScriptedTurn::text("A week."), ScriptedTurn::text("pass")])
        .script("a", [ScriptedTurn::text("4 and a week.")]);
    let hooks = Arc::new(Heard { last_round: Some(2), ..Heard::default() });
    let mut setup = setup(&model, rounds(&["b", "c"], 9));
    setup.team_hooks = Some(Arc::clone(&hooks) as Arc<dyn TeamHooks>);
    let ran = setup.run().await;
    assert_eq!((ran.answer(), ended(&ran.events)), ("4 and a week.", (2, "hook".into(), vec![])));
    let lines = hooks.lines.lock().unwrap().clone();
    assert_eq!(
        lines,
        [
            "1 begins",
            "1 b: It costs 5.",
            "1 b: true",
            "1 c: A week.",
            "1 of a is over",
            "2 begins",
            "2 b: 4, then.",
            "2 of a is over"
        ]
    );
    for member in ["b", "c"] {
        let asked = asked(&model, member);
        let news = text(asked.last().unwrap().messages.last().unwrap());
        assert!(news.contains("### Notice, round 2") && news.contains("The budget is 4."), "{news}");
    }
}

#[derive(Debug)]
struct Panics;

impl TeamHooks for Panics {
    fn should_continue(&self, _at: &TeamRound) -> bool {
        panic!("as the test says")
    }
}

/// E22: a mistake of the hook is not one of the run.
#[tokio::test]
async fn panicking_hook_is_ignored() {
    let model = Scripted::default()
        .script("b", ready("Yes."))
        .script("c", ready("Yes."))
        .script("a", [ScriptedTurn::text("Yes.")]);
    let mut setup = setup(&model, team_of(&["b", "c"], TerminationMode::Consensus, 9));
    setup.team_hooks = Some(Arc::new(Panics));
    let ran = setup.run().await;
    assert_eq!((ran.answer(), ended(&ran.events).1.as_str()), ("Yes.", "consensus"));
}
