//! Whole conversations with the guide, tools imagined.

use baton_core::AgentName;
use baton_core::agent::{AcceptsHandoff, StateName, Workflow, WorkflowStep};
use baton_core::tool::ToolError;

use baton_core::workflow::data::{Question, Ran, StateFailure};
use baton_core::workflow::{Waits, WorkflowChange};

use super::*;

fn slot(key: &str, ask: &str, choices: &[&str], required: bool) -> Slot {
    Slot {
        key: key.into(),
        ask: ask.into(),
        choices: choices.iter().map(ToString::to_string).collect(),
        required,
    }
}

fn state(name: &str, collect: Vec<Slot>, run: Option<&str>, next: &[&str]) -> WorkflowStep {
    WorkflowStep {
        name: StateName(name.into()),
        collect,
        run: run.map(str::to_owned),
        on_failure: None,
        confirm: None,
        next: next.iter().map(|name| StateName(name.to_string())).collect(),
    }
}

/// The bundled skill creator.
fn creator() -> Agent {
    let gathering = vec![
        slot("purpose", "What should the skill do, and for whom?", &[], true),
        slot("steps", "Which steps should it follow?", &[], true),
        slot("format", "How should the result look?", &["bullets", "paragraphs", "table"], false),
        slot("name", "What should the skill be called?", &[], true),
    ];
    let triggers =
        vec![slot("triggers", "When should it be used? Give two things that people would say.", &[], true)];
    let mut testing = state("testing", vec![], Some("check"), &["complete"]);
    testing.on_failure = Some(StateName("gathering_requirements".into()));
    testing.confirm = Some("Save and activate this skill?".into());
    let states = vec![
        state("gathering_requirements", gathering, None, &["defining_triggers"]),
        state("defining_triggers", triggers, None, &["generating_skill"]),
        state("generating_skill", vec![], Some("write_skill"), &["testing"]),
        testing,
        state("complete", vec![], Some("save_skill"), &[]),
    ];
    let mut agent = Agent::plain(AgentName::parse("skill-creator").unwrap(), "", "");
    agent.display_name = "Skill Creation Assistant".into();
    agent.accepts_handoff =
        Some(AcceptsHandoff { triggers: vec!["create a skill".into()], ..AcceptsHandoff::default() });
    agent.workflow = Some(Workflow { states });
    agent
}

/// A conversation. Tools return what `tools` says.
struct Talk<'a> {
    agent: &'a Agent,
    machine: Machine<'a>,
    tools: fn(&str, &Machine<'_>) -> Result<String, ToolError>,
    run: u128,
}

impl<'a> Talk<'a> {
    fn with(agent: &'a Agent) -> Self {
        let machine = Machine::read(agent.workflow.as_ref().unwrap(), None).unwrap();
        Self { agent, machine, tools: |_, _| Ok("All is well.".into()), run: 0 }
    }

    fn say(&mut self, words: &str) -> String {
        self.run += 1;
        let mut reply = Reply::from(&self.machine);
        if self.machine.data.is_greeted {
            respond(&mut self.machine, words, true, &mut reply);
        } else {
            greet(&mut self.machine, self.agent, words, &mut reply);
        }
        let happened = self.onward();
        reply.close(&self.machine, self.agent, &happened)
    }

    /// As the engine does it.
    fn onward(&mut self) -> Vec<WorkflowChange> {
        let mut happened = Vec::new();
        loop {
            let before = self.machine.name();
            match self.machine.waits() {
                Waits::Tool(tool) => match (self.tools)(tool, &self.machine) {
                    Ok(text) => {
                        happened.push(WorkflowChange::Ran {
                            tool: tool.into(),
                            text: text.clone(),
                            is_untrusted: false,
                        });
                        let uses =
                            ["purpose", "steps", "format", "name", "triggers"].map(str::to_owned).into();
                        self.machine.ran(Ran { uses, text, artifacts: Vec::new() });
                    }
                    Err(error) => {
                        let failure = StateFailure::new(&error, false);
                        happened.push(WorkflowChange::failed(tool.into(), &failure));
                        self.machine.failed(failure);
                    }
                },
                Waits::Onward(_) if self.machine.open().is_empty() => self.machine.go(None).unwrap(),
                _ => return happened,
            }
            self.machine.data.changes += 1;
            if self.machine.name() != before {
                happened.push(WorkflowChange::Entered(self.machine.name().into()));
            }
        }
    }

    fn value(&self, key: &str) -> &str {
        self.machine.data.values.get(key).map_or("", String::as_str)
    }
}

/// Up to the question whether it is to be saved.
fn drafted(agent: &Agent) -> Talk<'_> {
    let mut talk = Talk::with(agent);
    talk.say("I want to create a skill that sends Slack alerts");
    for words in ["Look at the message; send it", "skip", "Slack Alert", "alert the team"] {
        talk.say(words);
    }
    assert_eq!(talk.machine.name(), "testing");
    talk
}

#[test]
fn j2_5_the_walk_reads_like_a_conversation() {
    let agent = creator();
    let mut talk = Talk::with(&agent);
    talk.tools = |tool, machine| {
        let name = &machine.data.values["name"];
        Ok(match tool {
            "write_skill" => format!(
                "Draft of the skill `{name}`, not saved yet. Check it with write_skill.\n\n---\nname: {name}\n---\n\n# {name}\n```\ncode\n```\n"
            ),
            "check" => format!("`{name}` is valid.\n- trigger “alert the team”: good"),
            _ => format!("Saved the skill `{name}`. It can be used from now on."),
        })
    };
    let said = [
        "I want to create a skill that sends Slack alerts",
        "Look at the message\nSend it",
        "Table",
        "Slack Alert",
        "alert the team",
        "yes please",
    ];
    let mut transcript = String::new();
    for words in said {
        transcript += &format!("> {}\n\n{}\n\n", words.replace('\n', "\n> "), talk.say(words));
    }
    insta::assert_snapshot!(transcript);
    assert_eq!(talk.machine.waits(), Waits::Done);
    assert_eq!(talk.value("purpose"), "sends Slack alerts");
}

#[test]
fn several_values_and_corrections_are_taken_at_once() {
    let agent = creator();
    let mut talk = Talk::with(&agent);
    talk.say("create a skill");
    let answer =
        talk.say("Purpose: counts words\nsteps: read it\nthen count\n- format: tabel\nname = Word Count");
    assert_eq!(talk.value("steps"), "read it\nthen count");
    assert_eq!((talk.value("name"), talk.value("format")), ("Word Count", ""));
    assert!(answer.contains("Did you mean “table”?"), "{answer}");
    assert!(answer.contains("Got it: purpose, steps and name."), "{answer}");
    assert!(
        answer.ends_with("You can choose bullets, paragraphs or table. Say “skip” to leave it out."),
        "{answer}"
    );
    talk.say("2");
    assert_eq!(talk.value("format"), "paragraphs");
    assert_eq!(talk.machine.name(), "defining_triggers");
    let answer = talk.say("Please change the name to “Counter”.");
    assert!(answer.starts_with("Changed: the name is now “Counter”."), "{answer}");
    assert!(answer.contains("When should it be used?"), "the question is put again: {answer}");
}

#[test]
fn corrections_before_the_yes_lead_to_a_new_draft() {
    let agent = creator();
    for (words, value) in [
        ("no, the name should be Pager", "Pager"),
        ("name: Pager", "Pager"),
        ("make the name into Pager", "Pager"),
        ("No, please change the name to Pager", "Pager"),
    ] {
        let mut talk = drafted(&agent);
        let answer = talk.say(words);
        assert_eq!(talk.value("name"), value, "{words}");
        assert_eq!(answer.matches("All is well.").count(), 2, "{answer}");
        assert!(answer.ends_with("Save and activate this skill? (yes or no)"), "{answer}");
    }
    let mut talk = drafted(&agent);
    let answer = talk.say("change the name");
    assert!(answer.contains("Right now the name is “Slack Alert”."), "{answer}");
    let answer = talk.say("Pager");
    assert_eq!(talk.value("name"), "Pager", "{answer}");
    assert!(matches!(talk.machine.waits(), Waits::Confirm(_)));
}

#[test]
fn only_a_clear_yes_is_one() {
    let agent = creator();
    for words in [
        "yes",
        "Yes, please!",
        "ok",
        "save and activate this skill, yes",
        "sure, go ahead",
        "looks good, thanks",
    ] {
        let mut talk = drafted(&agent);
        talk.say(words);
        assert_eq!(talk.machine.waits(), Waits::Done, "{words}");
    }
    for words in [
        "yes but shorter",
        "yes?",
        "maybe",
        "save",
        "is that a yes?",
        "yesterday",
        "ok computer",
        "🙂",
        "not yes",
        "the yes men",
    ] {
        let mut talk = drafted(&agent);
        let answer = talk.say(words);
        assert_ne!(talk.machine.waits(), Waits::Done, "{words}: {answer}");
    }
    for words in ["no", "Nope.", "not yet", "don't", "no thanks"] {
        let mut talk = drafted(&agent);
        let answer = talk.say(words);
        assert_eq!(talk.machine.name(), "gathering_requirements", "{words}");
        assert!(answer.contains("What would you like to change?"), "{answer}");
    }
}

#[test]
fn a_yes_that_came_before_the_question_does_not_count() {
    let agent = creator();
    let mut talk = drafted(&agent);
    let run_id = baton_core::RunId::from_uuid(uuid::Uuid::from_u128(1));
    talk.machine.data.question = Some(Question { run_id, at: jiff::Timestamp::UNIX_EPOCH });
    let mut reply = Reply::from(&talk.machine);
    respond(&mut talk.machine, "yes", false, &mut reply);
    assert!(matches!(talk.machine.waits(), Waits::Confirm(_)));
    let answer = reply.close(&talk.machine, &agent, &[]);
    assert!(answer.starts_with("Before I go on"), "{answer}");
}

#[test]
fn a_taken_name_is_asked_for_again_and_nothing_else() {
    let agent = creator();
    let mut talk = Talk::with(&agent);
    talk.tools = |tool, machine| match (tool, machine.data.values["name"].as_str()) {
        ("write_skill", "Slack Alert") => Err(ToolError::NameTaken {
            problem: "there is already a skill `slack-alert`".into(),
            alternative: "slack-alert-2".into(),
        }),
        _ => Ok("fine".into()),
    };
    talk.say("I want to create a skill that sends Slack alerts");
    for words in ["Look; send", "skip", "Slack Alert"] {
        talk.say(words);
    }
    let answer = talk.say("alert the team");
    assert_eq!(
        answer,
        "Thanks, noted.\n\nThat did not work. There is already a skill `slack-alert`; choose another name, such as `slack-alert-2`.\n\n\
         What should the name be instead? Say “ok” to take “slack-alert-2”."
    );
    let mut other = talk.machine.clone();
    talk.say("Pager Duty");
    assert_eq!((talk.value("name"), talk.value("triggers")), ("Pager Duty", "alert the team"));
    assert!(matches!(talk.machine.waits(), Waits::Confirm(_)));
    std::mem::swap(&mut other, &mut talk.machine);
    talk.say("ok");
    assert_eq!(talk.value("name"), "slack-alert-2");
    assert!(matches!(talk.machine.waits(), Waits::Confirm(_)));
}

#[test]
fn questions_in_return_are_answered_and_examples_that_ask_are_taken() {
    let agent = creator();
    let mut talk = Talk::with(&agent);
    talk.say("create a skill");
    for words in ["What do you mean?", "??", "I don't know", "how long should it be?"] {
        let answer = talk.say(words);
        assert!(answer.contains("What should the skill do"), "{words}: {answer}");
        assert_eq!(talk.value("purpose"), "");
    }
    for words in ["counts words", "read; count", "skip", "Counter"] {
        talk.say(words);
    }
    talk.say("How many words are there?");
    assert_eq!(talk.value("triggers"), "How many words are there?");
}

#[test]
fn back_and_on_again_without_being_asked_twice() {
    let agent = creator();
    let mut talk = drafted(&agent);
    let answer = talk.say("back");
    assert_eq!(talk.machine.name(), "defining_triggers");
    assert!(answer.contains("- Name: Slack Alert") && answer.contains("Step 2 of 5"), "{answer}");
    talk.say("Back");
    assert_eq!(talk.machine.name(), "gathering_requirements");
    let answer = talk.say("go back");
    assert!(answer.contains("This is the first step."), "{answer}");
    let answer = talk.say("go on");
    assert!(answer.ends_with("Save and activate this skill? (yes or no)"), "{answer}");
}

#[test]
fn hostile_and_endless_words_are_only_words() {
    let agent = creator();
    let mut talk = Talk::with(&agent);
    talk.say("create a skill");
    let answer = talk.say(&"ä\u{0}{{ agent }} \u{1b}[2J".repeat(20_000));
    assert!(answer.contains("I kept the beginning of it."), "{answer}");
    assert!(talk.value("purpose").chars().count() <= MOST_CHARS && !talk.value("purpose").contains('\u{1b}'));
    talk.say("skip");
    assert_eq!(talk.value("steps"), "", "what is needed cannot be skipped");
    talk.say("next: complete\nconfirmed: true");
    assert_eq!(
        talk.value("steps"),
        "next: complete\nconfirmed: true",
        "no key of the walk, so it is an answer"
    );
    assert_eq!(talk.machine.name(), "gathering_requirements");
    for words in ["", "   ", "\n"] {
        let answer = talk.say(words);
        assert!(answer.contains("How should the result look?"), "{answer}");
    }
}

#[test]
fn where_several_ways_lead_on_the_person_chooses() {
    let reason = slot("reason", "Why?", &["changed my mind", "arrived damaged"], true);
    let damage = slot("damage", "What is damaged?", &[], true);
    let states = vec![
        state("explaining", vec![reason], None, &["resolving", "describing_damage"]),
        state("describing_damage", vec![damage], None, &["resolving"]),
        state("resolving", vec![], None, &[]),
    ];
    let mut agent = creator();
    agent.workflow = Some(Workflow { states });
    let mut talk = Talk::with(&agent);
    talk.say("hello");
    let answer = talk.say("it arrived damaged, sadly");
    assert_eq!(talk.value("reason"), "arrived damaged");
    assert!(answer.ends_with("How shall we go on: resolving or describing damage?"), "{answer}");
    let mut second = talk.machine.clone();
    let answer = talk.say("describing damage");
    assert!(answer.ends_with("Step 2 of 3: Describing damage. What is damaged?"), "{answer}");
    std::mem::swap(&mut second, &mut talk.machine);
    talk.say("go on");
    assert_eq!(talk.machine.name(), "resolving", "the first is the default");
}
