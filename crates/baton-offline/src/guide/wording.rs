//! What the person is told. Short, and as somebody would say it.

use baton_core::agent::{Agent, Return, Slot};
use baton_core::workflow::data::Held;
use baton_core::workflow::{Machine, Refusal, WorkflowChange};

use super::opening::Opening;
use super::reading::Topic;
pub(super) use phrases::suspect;
use phrases::{ask, display, example, exit_word, list, place, sentence, series, shown, spoken, tool_text};

mod phrases;

const THANKS: &[&str] = &["Got it.", "Thanks, noted.", "Good.", "All right."];

/// An answer as it grows.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    /// Where the walk was before.
    from: String,
    paragraphs: Vec<String>,
    /// What is there has been shown.
    is_listed: bool,
    /// Where the walk is, is said although it is where it was.
    is_placed: bool,
}

impl Reply {
    pub(crate) fn from(machine: &Machine<'_>) -> Self {
        Self { from: machine.name().to_owned(), ..Self::default() }
    }

    fn say(&mut self, text: impl Into<String>) {
        self.paragraphs.push(text.into());
    }

    pub(crate) fn greet(&mut self, agent: &Agent, opening: &Opening) {
        let first = match opening {
            Opening { wish: Some(wish), .. } => format!("Hi! I'm here to help you {wish}."),
            Opening { said: Some(said), .. } => format!("Hi! I'm {}. You said: “{said}”", display(agent)),
            _ => format!("Hi! I'm {}.", display(agent)),
        };
        let leave = exit_word(agent);
        self.say(format!(
            "{first} I'll ask a few short questions. Say “back” to go back one step or “{leave}” to leave; what we have so far is \
             kept."
        ));
        self.is_placed = true;
    }

    /// What the request said already.
    pub(crate) fn noted(&mut self, slot: &Slot, text: &str) {
        self.say(format!("I've noted the {} already: “{}”.", spoken(&slot.key), shown(text)));
    }

    /// It goes on after a while.
    pub(crate) fn resume(&mut self, machine: &Machine<'_>) {
        if machine.data.values.is_empty() {
            self.say("Let's go on where we were.");
        } else {
            self.say(format!("Let's go on where we were. So far I have:\n\n{}", list(machine)));
            self.is_listed = true;
        }
        self.is_placed = true;
    }

    pub(crate) fn status(&mut self, machine: &Machine<'_>) {
        let text = if machine.data.values.is_empty() {
            "There is nothing yet.".to_owned()
        } else {
            format!("This is what I have:\n\n{}", list(machine))
        };
        self.say(text);
        (self.is_listed, self.is_placed) = (true, true);
    }

    pub(crate) fn help(&mut self, topic: &Topic<'_>) {
        self.say(match topic {
            Topic::Value(slot) | Topic::Instead(slot) if !slot.choices.is_empty() => "One of these words is enough.",
            Topic::Value(_) | Topic::Instead(_) => "A few words of your own are enough; you can change them later.",
            Topic::Confirm(_) => {
                "“Yes” goes on. With “no” nothing happens, and you can change what you like, for example with “change the …”."
            }
            Topic::Change(..) => "Tell me which value should be different, or that it should stay as it is.",
            Topic::Way(_) => "Tell me where you would like to go next.",
            Topic::Onward | Topic::Done => "There is nothing to answer at the moment.",
        });
    }

    pub(crate) fn unclear(&mut self, topic: &Topic<'_>) {
        self.say(match topic {
            Topic::Confirm(_) => "I'm not sure whether that is a yes.",
            Topic::Change(..) => "I'm not sure what should change.",
            _ => "I'm not sure what you mean.",
        });
    }

    pub(crate) fn back(&mut self, machine: &Machine<'_>) {
        self.say(format!("We're one step back. This is what I have:\n\n{}", list(machine)));
        self.is_listed = true;
    }

    pub(crate) fn at_the_beginning(&mut self, machine: &Machine<'_>) {
        let example = machine.keys().into_iter().find(|key| machine.data.values.contains_key(*key));
        self.say(match example {
            Some(key) => {
                format!("This is the first step. To change an answer, write for example “{key}: …”.")
            }
            None => "This is the first step.".to_owned(),
        });
    }

    pub(crate) fn needed(&mut self) {
        self.say("I do need this one to go on.");
    }

    pub(crate) fn agreed(&mut self) {
        self.say("Great.");
    }

    pub(crate) fn look_first(&mut self) {
        self.say("Before I go on, please have a look.");
    }

    pub(crate) fn was_cut(&mut self) {
        self.say("That was long; I kept the beginning of it.");
    }

    pub(crate) fn acknowledge(&mut self, machine: &Machine<'_>) {
        let at = usize::try_from(machine.data.changes).unwrap_or_default() % THANKS.len();
        self.say(THANKS[at]);
    }

    pub(crate) fn taken(&mut self, slot: &Slot, before: Option<&str>, machine: &Machine<'_>) {
        let Some(now) = machine.data.values.get(&slot.key) else { return self.acknowledge(machine) };
        match before {
            Some(before) if before == now => self.say(format!("The {} stays as it is.", spoken(&slot.key))),
            Some(_) => self.say(format!("Changed: the {} is now “{}”.", spoken(&slot.key), shown(now))),
            None => self.acknowledge(machine),
        }
    }

    pub(crate) fn several<'a>(&mut self, slots: impl Iterator<Item = &'a Slot>) {
        let names: Vec<String> = slots.map(|slot| spoken(&slot.key)).collect();
        self.say(format!("Got it: {}.", series(&names, "and")));
    }

    /// They want to change this one.
    pub(crate) fn instead(&mut self, slot: &Slot, machine: &Machine<'_>) {
        if let Some(now) = machine.data.values.get(&slot.key) {
            self.say(format!("Right now the {} is “{}”.", spoken(&slot.key), shown(now)));
        }
    }

    pub(crate) fn refused(&mut self, refusal: &Refusal) {
        self.say(match refusal {
            Refusal::NotAChoice { key, choices, nearest } => {
                let meant =
                    nearest.as_ref().map(|near| format!(" Did you mean “{near}”?")).unwrap_or_default();
                format!("The {} can be {}.{meant}", spoken(key), series(choices, "or"))
            }
            Refusal::OnlyYesOrNo { key, text } => {
                let text = text.trim_end_matches(['.', '!']);
                format!(
                    "“{text}” is not a {} that I can use; please tell me the {} itself.",
                    spoken(key),
                    spoken(key)
                )
            }
            Refusal::Empty(key) => format!("The {} can't be empty.", spoken(key)),
            other => sentence(&other.to_string()),
        });
    }

    /// The whole answer: what was said so far, what happened, where we are, and what comes next.
    pub(crate) fn close(
        mut self,
        machine: &Machine<'_>,
        agent: &Agent,
        changes: &[WorkflowChange],
    ) -> String {
        for change in changes {
            if let WorkflowChange::Ran { text, .. } = change {
                let text = tool_text(text, machine);
                if !text.is_empty() {
                    self.say(text);
                    self.is_listed = true;
                }
            }
        }
        let topic = Topic::of(machine);
        let question = self.question(&topic, machine, agent);
        let place = (self.from != machine.name() || self.is_placed).then(|| place(machine));
        let last: Vec<String> =
            place.into_iter().chain(Some(question).filter(|text| !text.is_empty())).collect();
        if !last.is_empty() {
            self.say(last.join(" "));
        }
        self.paragraphs.join("\n\n")
    }

    fn question(&mut self, topic: &Topic<'_>, machine: &Machine<'_>, agent: &Agent) -> String {
        match topic {
            Topic::Value(slot) | Topic::Instead(slot) => ask(slot),
            Topic::Change(held, suspect) => self.change(held, *suspect, machine),
            Topic::Confirm(question) => {
                if !self.is_listed && !machine.data.values.is_empty() {
                    self.say(format!("This is what I have:\n\n{}", list(machine)));
                }
                format!("{question} (yes or no)")
            }
            Topic::Way(ways) => {
                let ways: Vec<String> = ways.iter().map(|way| way.0.replace(['_', '-'], " ")).collect();
                format!("How shall we go on: {}?", series(&ways, "or"))
            }
            Topic::Onward => "Say “go on” to continue.".to_owned(),
            Topic::Done if self.is_listed => String::new(),
            Topic::Done => {
                let stays =
                    agent.accepts_handoff.as_ref().is_some_and(|terms| terms.returns == Return::Never);
                let thanks = "That's everything, thank you.";
                if stays { format!("{thanks} {}", Self::staying(machine, agent)) } else { thanks.to_owned() }
            }
        }
    }

    /// Nobody goes back anywhere by themselves.
    fn staying(machine: &Machine<'_>, agent: &Agent) -> String {
        let (key, leave) = (example(machine), exit_word(agent));
        format!("To change something write for example “{key}: …”, or say “{leave}” to leave.")
    }

    /// What has to change before it goes on.
    fn change(&mut self, held: &Held, suspect: Option<&Slot>, machine: &Machine<'_>) -> String {
        match held {
            Held::Failed { failure, .. } => {
                self.say(format!("That did not work. {}", sentence(failure.detail())));
                match (suspect, &failure.alternative) {
                    (Some(slot), Some(other)) => {
                        format!(
                            "What should the {} be instead? Say “ok” to take “{other}”.",
                            spoken(&slot.key)
                        )
                    }
                    (Some(slot), None) => format!("What should the {} be instead?", spoken(&slot.key)),
                    (None, _) => {
                        self.values(machine);
                        format!(
                            "What should change? Write for example “{}: …”, or say “again” to try once more.",
                            example(machine)
                        )
                    }
                }
            }
            Held::Declined { .. } => {
                self.say("No problem, nothing has been done.");
                self.values(machine);
                format!(
                    "What would you like to change? Write for example “{}: …”, or say “go on” to leave it as it is.",
                    example(machine)
                )
            }
            Held::Back => {
                format!("Change what you like, for example “{}: …”, or say “go on”.", example(machine))
            }
        }
    }

    fn values(&mut self, machine: &Machine<'_>) {
        if !self.is_listed && !machine.data.values.is_empty() {
            self.say(list(machine));
            self.is_listed = true;
        }
    }
}
