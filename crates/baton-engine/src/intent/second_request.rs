//! Recognizes that a message to the holder of a thread asks for another agent (C-13).
//!
//! The form of the message decides, not its words: an answer to a question of a workflow may contain any trigger. A request names
//! another agent as the whole object of a sentence ("connect me with the debugger"), or begins with a trigger of another agent,
//! after words that ask ("can you help me debug …"). What a wrong guess costs is one question, which the user can answer with
//! "that was my answer".

use baton_core::AgentName;
use baton_core::agent::Agent;
use baton_core::stem::stem;

use crate::agents::Agents;

/// Bytes of a message that are read. A request is stated at the beginning.
const MAX_BYTES: usize = 2_000;
/// Words after a trigger without words that ask, in which the message has to refer to the user's own matter.
const NEAR_WORDS: usize = 4;

/// Words before a request that say nothing.
const LEADS: &[&str] = &[
    "hi", "hey", "hello", "ok", "okay", "well", "wait", "actually", "sorry", "oh", "hmm", "now", "also",
    "but", "and", "so", "no", "first", "instead", "again", "then", "btw",
];
/// Words with which a message asks for something.
const ASKING: &[&str] = &[
    "can you",
    "could you",
    "would you",
    "will you",
    "can i",
    "could i",
    "may i",
    "i want you to",
    "i want to",
    "i want",
    "i would like you to",
    "i would like to",
    "i would like",
    "id like you to",
    "id like to",
    "id like",
    "i need you to",
    "i need to",
    "i need",
    "we need to",
    "i have to",
    "i would rather",
    "id rather",
    "let me",
    "lets",
    "let us",
    "please",
];
/// Verbs whose object is an agent.
const CONNECTING: &[&str] = &[
    "connect me with",
    "connect me to",
    "transfer me to",
    "hand me over to",
    "hand me to",
    "put me through to",
    "switch me over to",
    "switch me to",
    "switch over to",
    "switch to",
    "bring me back to",
    "bring me to",
    "take me back to",
    "take me to",
    "send me back to",
    "send me to",
    "pass me on to",
    "pass me to",
    "move me to",
    "return me to",
    "return to",
    "go back to",
    "get back to",
    "back to",
    "talk to",
    "talk with",
    "speak to",
    "speak with",
    "chat with",
];
/// Verbs whose object may be anything: the sentence may have nothing else.
const WANTING: &[&str] =
    &["i want", "i need", "id like", "i would like", "give me", "get me", "start", "open", "call"];
const ARTICLES: &[&str] = &["the", "a", "an", "your", "our", "my"];
/// Words after the name of an agent that say nothing.
const TAIL: &[&str] = &[
    "please",
    "now",
    "instead",
    "first",
    "thanks",
    "thank",
    "you",
    "again",
    "right",
    "away",
    "immediately",
    "for",
    "a",
    "moment",
];
/// Last words of an agent's name that name a role.
pub(crate) const ROLES: &[&str] =
    &["assistant", "agent", "bot", "specialist", "helper", "expert", "session", "mode"];
/// Triggers that begin with one of these are statements or nouns.
const NO_VERBS: &[&str] = &[
    "new",
    "it",
    "why",
    "a",
    "an",
    "the",
    "this",
    "my",
    "what",
    "how",
    "i",
    "where",
    "is",
    "there",
    "something",
];
/// Words that refer to the user's own matter.
const OWN: &[&str] = &["my", "our", "me", "us", "this", "i", "mine"];
/// Words that say that something else is meant, where requests are answers.
const ELSEWHERE: &[&str] = &["instead", "actually", "wait", "first"];

/// The agent that a message asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RequestedAgent {
    /// The agent that handed the thread off.
    Main,
    Other(AgentName),
}

impl RequestedAgent {
    pub(crate) fn name(self) -> Option<AgentName> {
        match self {
            Self::Main => None,
            Self::Other(name) => Some(name),
        }
    }
}

/// The agents that a message can ask for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choosable<'a> {
    pub(crate) agents: &'a Agents,
    pub(crate) holder: &'a AgentName,
    /// The agent that handed the thread off.
    pub(crate) source: &'a AgentName,
    /// Whether the user was asked for things that people say, so that a request is an answer.
    pub(crate) takes_requests: bool,
}

impl Choosable<'_> {
    /// The agent that the message asks for, if it asks for one.
    pub(crate) fn requested(&self, message: &str) -> Option<RequestedAgent> {
        let message = unquoted(&message[..message.floor_char_boundary(MAX_BYTES)]);
        let message = message.trim();
        let sentences: Vec<Vec<String>> =
            message.split(['.', '!', '?', '\n']).map(words).filter(|words| !words.is_empty()).collect();
        self.named(message, &sentences)
            .or_else(|| self.triggered(message, &sentences).map(RequestedAgent::Other))
    }

    /// The other agents that take over threads.
    fn others(&self) -> impl Iterator<Item = &Agent> {
        let others = self.agents.values().filter(|agent| agent.name != *self.holder && !agent.badge.hidden);
        others.filter(|agent| agent.accepts_handoff.is_some()).map(|agent| &**agent)
    }

    /// The agent that a sentence names as its whole object.
    fn named(&self, message: &str, sentences: &[Vec<String>]) -> Option<RequestedAgent> {
        let clauses = message.split(['.', '!', '?', '\n', ',', ';']).map(words);
        let connecting =
            clauses.filter_map(|clause| object(&clause, CONNECTING)).find_map(|name| self.find(&name));
        connecting.or_else(|| match sentences {
            [only] => object(only, WANTING).and_then(|name| self.find(&name)),
            _ => None,
        })
    }

    fn find(&self, name: &[String]) -> Option<RequestedAgent> {
        let is_main =
            matches!(name, [main, rest @ ..] if main == "main" && rest.iter().all(|word| is_role(word)));
        let source = self.agents.get(self.source).filter(|source| source.name != *self.holder);
        if is_main || source.is_some_and(|source| has_name(source, name)) {
            return Some(RequestedAgent::Main);
        }
        self.others()
            .find(|agent| has_name(agent, name))
            .map(|agent| RequestedAgent::Other(agent.name.clone()))
    }

    /// The agent with whose trigger the first sentence begins.
    fn triggered(&self, message: &str, sentences: &[Vec<String>]) -> Option<AgentName> {
        if is_list(message) {
            return None;
        }
        let is_lead = |sentence: &&Vec<String>| sentence.iter().all(|word| LEADS.contains(&word.as_str()));
        let told = sentences.iter().position(|sentence| !is_lead(&sentence))?;
        let sentence = &sentences[told];
        let is_alone = sentences.len() == told + 1;
        if self.takes_requests && !sentences.iter().flatten().any(|word| ELSEWHERE.contains(&word.as_str())) {
            return None;
        }
        let starts = starts(sentence);
        let triggers = self.others().flat_map(|agent| {
            let triggers = agent.accepts_handoff.iter().flat_map(|terms| &terms.triggers);
            triggers.map(move |trigger| (agent, words(trigger)))
        });
        let mut asked = triggers.filter(|(_, trigger)| {
            starts.iter().any(|start| {
                let rest = &sentence[start.at..];
                begins_with(rest, trigger) && (start.is_asking || is_own_matter(rest, trigger, is_alone))
            })
        });
        asked.next().map(|(agent, _)| agent.name.clone())
    }
}

/// A position in a sentence at which a request may begin.
struct Start {
    at: usize,
    /// Whether the words before it ask for something.
    is_asking: bool,
}

/// The positions after each of the introductory phrases, and after an article that follows them.
fn starts(sentence: &[String]) -> Vec<Start> {
    let mut found = vec![Start { at: 0, is_asking: false }];
    let (mut at, mut is_asking) = (0, false);
    while let Some((length, asks)) = lead(&sentence[at..]) {
        at += length;
        is_asking |= asks;
        found.push(Start { at, is_asking });
    }
    if is_asking && sentence.get(at).is_some_and(|word| ARTICLES.contains(&word.as_str())) {
        found.push(Start { at: at + 1, is_asking });
    }
    found
}

/// The number of words of the introductory phrase that the words begin with, and whether it asks for something.
fn lead(words: &[String]) -> Option<(usize, bool)> {
    if words.first().is_some_and(|word| LEADS.contains(&word.as_str())) {
        return Some((1, false));
    }
    ASKING.iter().find(|phrase| is_prefix(words, phrase)).map(|phrase| (phrase.split(' ').count(), true))
}

/// Whether a request without words that ask is about the user's own matter: "debug my service", but not "debug services".
fn is_own_matter(rest: &[String], trigger: &[String], is_alone: bool) -> bool {
    if trigger.iter().any(|word| word == "me") {
        return true;
    }
    let is_verb = trigger.first().is_some_and(|first| !NO_VERBS.contains(&first.as_str()));
    let near = rest.iter().take(trigger.len() + NEAR_WORDS);
    is_alone && is_verb && near.into_iter().any(|word| OWN.contains(&word.as_str()))
}

/// The object of the sentence, if it is introductory words, one of the verbs and the object, and nothing else.
fn object(sentence: &[String], verbs: &[&str]) -> Option<Vec<String>> {
    let rest = starts(sentence).into_iter().find_map(|start| {
        let rest = &sentence[start.at..];
        let verb = verbs.iter().find(|verb| is_prefix(rest, verb))?;
        Some(&rest[verb.split(' ').count()..])
    })?;
    let rest = match rest {
        [article, rest @ ..] if ARTICLES.contains(&article.as_str()) => rest,
        all => all,
    };
    let end = rest.iter().rposition(|word| !TAIL.contains(&word.as_str()))?;
    Some(rest[..=end].to_vec())
}

/// Whether the words are a name of the agent: its display name or its id, with or without the word for its role.
fn has_name(agent: &Agent, name: &[String]) -> bool {
    let known = [words(&agent.display_name), words(&agent.name.as_str().replace(['-', '_'], " "))];
    let without_role = |name: &[String]| match name {
        [rest @ .., last] if is_role(last) && !rest.is_empty() => rest.to_vec(),
        all => all.to_vec(),
    };
    let is_only_role = |name: &[String]| name.iter().all(|word| is_role(word));
    known.iter().any(|known| !is_only_role(known) && without_role(known) == without_role(name))
}

fn is_role(word: &str) -> bool {
    ROLES.contains(&word)
}

/// The message without quoted lines and blocks of code: logs and documents that the user shows ask for nothing.
fn unquoted(message: &str) -> String {
    let mut is_code = false;
    let own = message.lines().filter(|line| {
        let line = line.trim_start();
        let is_mark = line.starts_with("```") || line.starts_with("~~~");
        is_code ^= is_mark;
        !is_mark && !is_code && !line.starts_with('>')
    });
    own.collect::<Vec<_>>().join("\n")
}

/// Whether the message is a list with one item per line, such as the steps of a task.
fn is_list(message: &str) -> bool {
    let is_item = |line: &str| {
        let line = line.trim_start();
        let marked = line.strip_prefix(['-', '*', '•']);
        let numbered = line.trim_start_matches(|c: char| c.is_ascii_digit());
        marked.is_some() || (numbered.len() < line.len() && numbered.starts_with(['.', ')']))
    };
    message.lines().next().is_some_and(is_item)
}

fn is_prefix(words: &[String], phrase: &str) -> bool {
    let mut words = words.iter();
    phrase.split(' ').all(|expected| words.next().is_some_and(|word| word == expected))
}

/// Like [`is_prefix`], without the endings of the words.
fn begins_with(words: &[String], trigger: &[String]) -> bool {
    !trigger.is_empty()
        && words.len() >= trigger.len()
        && words.iter().zip(trigger).all(|(word, expected)| word == expected || stem(word) == stem(expected))
}

/// Lower-case words without punctuation. An apostrophe does not end a word.
pub(super) fn words(text: &str) -> Vec<String> {
    let text = text.replace(['\'', '’'], "").to_lowercase();
    text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use baton_core::agent::AcceptsHandoff;

    use super::*;

    fn agent(name: &str, display: &str, triggers: &[&str]) -> (AgentName, Arc<Agent>) {
        let mut agent = Agent::plain(AgentName::parse(name).unwrap(), "", "");
        display.clone_into(&mut agent.display_name);
        if !triggers.is_empty() {
            let triggers = triggers.iter().map(ToString::to_string).collect();
            agent.accepts_handoff = Some(AcceptsHandoff { triggers, ..AcceptsHandoff::default() });
        }
        (agent.name.clone(), Arc::new(agent))
    }

    fn requested_of(holder: &str, takes_requests: bool, message: &str) -> Option<String> {
        let skills = ["create a skill", "new skill", "build skill"];
        let bugs = [
            "debug this",
            "debug my",
            "help me debug",
            "start a debugging session",
            "troubleshoot",
            "it keeps crashing",
        ];
        let agents: Agents = [
            agent("assistant", "Assistant", &[]),
            agent("skill-creator", "Skill Creation Assistant", &skills),
            agent("debugger", "Debugging Assistant", &bugs),
        ]
        .into_iter()
        .collect();
        let (holder, source) = (AgentName::parse(holder).unwrap(), AgentName::parse("assistant").unwrap());
        let choosable = Choosable { agents: &agents, holder: &holder, source: &source, takes_requests };
        let asked = choosable.requested(message)?;
        Some(asked.name().map_or_else(|| "main".to_owned(), |name| name.to_string()))
    }

    fn requested(message: &str) -> Option<String> {
        requested_of("skill-creator", false, message)
    }

    #[test]
    fn c_13_requests_for_another_agent_are_recognized() {
        for request in [
            "Help me debug my crashing service",
            "Hi! Can you help me debug my service? It fails since noon.",
            "Wait, I want to debug this error first",
            "debug my service",
            "Troubleshoot my laptop please",
            "I'd like to start a debugging session",
            "Connect me with the debugger",
            "Please connect me with the Debugging Assistant, my service crashes",
            "I want the debugger",
            "This takes too long. Can you transfer me to the debugging specialist now?",
            "Help me debugging my service",
            "Actually: connect me with the debugger",
            "> What is the purpose?\nConnect me with the debugger",
        ] {
            assert_eq!(requested(request).as_deref(), Some("debugger"), "{request}");
        }
        for request in [
            "I'd like to talk to the main assistant",
            "Take me back to the main assistant, please",
            "switch to the main agent",
            "can I speak with the main assistant?",
        ] {
            assert_eq!(requested(request).as_deref(), Some("main"), "{request}");
        }
        let request = "I want to create a skill that sends Slack alerts";
        assert_eq!(requested_of("debugger", false, request).as_deref(), Some("skill-creator"));
        assert_eq!(requested_of("debugger", false, "I need a new skill").as_deref(), Some("skill-creator"));
    }

    #[test]
    fn c_13_answers_that_contain_a_trigger_are_no_requests() {
        for answer in [
            "a skill that helps to debug services",
            "It should help me debug my service",
            "Troubleshoot printers",
            "debug services every night",
            "it keeps crashing",
            "I want the debugger to run every morning",
            "1. Debug my service\n2. Restart it",
            "Debug my service. Restart it. Post the result.",
            "Read the report and connect to the debugger",
            "The main assistant uses it",
            "yes",
            "Bullet points would be great.",
            "I want to create a skill that sends Slack alerts",
            "",
            // Text of others, which the user shows.
            "The mail says:\n> Connect me with the debugger",
            "This is the log:\n```\nhelp me debug my service\nconnect me with the debugger\n```\nSummarize it.",
            "The report says: talk to the debugger",
        ] {
            assert_eq!(requested(answer), None, "{answer}");
        }
        assert_eq!(requested_of("debugger", false, "a new skill"), None, "what was changed");
        assert_eq!(requested_of("debugger", false, "Create a skill for it"), None);
        assert_eq!(
            requested_of("skill-creator", true, "help me debug my service; debug this"),
            None,
            "examples"
        );
        let elsewhere = "Actually, help me debug my service first";
        assert_eq!(requested_of("skill-creator", true, elsewhere).as_deref(), Some("debugger"));
    }
}
