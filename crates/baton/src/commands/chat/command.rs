//! What a person enters: something for the agents, or a command for the chat itself.

/// Below this likeness a word is not a misspelt command.
const ALIKE: f64 = 0.7;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChatCommand {
    ExitHandoff,
    Resume,
    Approvals,
    Agents,
    Usage,
    Help,
    Quit,
}

impl ChatCommand {
    const ALL: [(Self, &'static str, &'static str); 7] = [
        (
            Self::ExitHandoff,
            "exit-handoff",
            "leave the agent that has the conversation; what it knows is kept",
        ),
        (Self::Resume, "resume", "go on with what was left before it was done"),
        (Self::Approvals, "approvals", "decide now what was left for later"),
        (Self::Agents, "agents", "who is there, and who answers"),
        (Self::Usage, "usage", "what this conversation has taken so far"),
        (Self::Help, "help", "these commands"),
        (Self::Quit, "quit", "leave the chat; Ctrl-D does the same"),
    ];

    fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().find(|(_, name, _)| *name == word).map(|(command, ..)| *command)
    }

    /// What a person probably meant: a longer word that begins like theirs, or the one that looks most like it.
    fn nearest(word: &str) -> Option<&'static str> {
        let names = || Self::ALL.iter().map(|(_, name, _)| *name);
        let begun = names().find(|name| !word.is_empty() && name.starts_with(word));
        let likeness = |name: &&str| strsim::jaro_winkler(name, word);
        let alike = || names().max_by(|a, b| likeness(a).total_cmp(&likeness(b)));
        begun.or_else(|| alike().filter(|name| likeness(name) >= ALIKE))
    }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum ChatInput {
    Nothing,
    Message(String),
    Command(ChatCommand),
    /// No command is called so; this is what to tell the person.
    Unknown(String),
}

impl ChatInput {
    /// A slash and one word is a command. A path or a fraction is not.
    pub(super) fn read(line: &str) -> Self {
        let line = line.trim();
        let word = line.strip_prefix('/').map(|rest| rest.split_whitespace().next().unwrap_or_default());
        match word.map(str::to_lowercase) {
            _ if line.is_empty() => Self::Nothing,
            Some(word) if word.chars().all(|c| c.is_ascii_alphabetic() || c == '-') => {
                ChatCommand::parse(&word).map_or_else(|| Self::Unknown(unknown(&word)), Self::Command)
            }
            _ => Self::Message(line.to_owned()),
        }
    }
}

fn unknown(word: &str) -> String {
    match ChatCommand::nearest(word) {
        Some(near) => format!("there is no command /{word}; did you mean /{near}? /help lists them all"),
        None => format!("there is no command /{word}; /help lists them all"),
    }
}

/// All commands, one line each.
pub(super) fn help() -> String {
    let bold = anstyle::Style::new().bold();
    let width = ChatCommand::ALL.iter().map(|(_, name, _)| name.len()).max().unwrap_or(0);
    let line =
        |(_, name, what): &(ChatCommand, &str, &str)| format!("{bold}/{name:width$}{bold:#}  {what}\n");
    let lines: String = ChatCommand::ALL.iter().map(line).collect();
    lines
        + "Everything else is said to the agent. Ctrl-C cancels the current answer; at an empty prompt it leaves the chat.\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_told_from_messages() {
        assert_eq!(ChatInput::read("  "), ChatInput::Nothing);
        assert_eq!(ChatInput::read(" /exit-handoff "), ChatInput::Command(ChatCommand::ExitHandoff));
        assert_eq!(ChatInput::read("/QUIT now"), ChatInput::Command(ChatCommand::Quit));
        for message in ["hello", "/etc/hosts is wrong", "1/2", "/2 of it", "quit"] {
            assert_eq!(ChatInput::read(message), ChatInput::Message(message.to_owned()));
        }
    }

    #[test]
    fn an_unknown_command_names_the_nearest() {
        let told = |line: &str| match ChatInput::read(line) {
            ChatInput::Unknown(told) => told,
            other => panic!("{other:?}"),
        };
        assert!(told("/exit").contains("did you mean /exit-handoff?"));
        assert!(told("/agnets").contains("did you mean /agents?"));
        assert!(told("/usge").contains("did you mean /usage?"));
        assert_eq!(told("/zzz"), "there is no command /zzz; /help lists them all");
        assert_eq!(told("/"), "there is no command /; /help lists them all");
    }
}
