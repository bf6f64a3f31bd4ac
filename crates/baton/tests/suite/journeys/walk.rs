//! Somebody who makes a skill: they answer what they are asked, whatever the order, and nothing else.

use std::collections::BTreeMap;

use super::person::Person;

/// What is asked for, and how the question is recognised.
const QUESTIONS: &[(&str, &str)] = &[
    ("purpose", "What should the skill do"),
    ("steps", "How is it done, step by step?"),
    ("format", "How should the result look?"),
    ("name", "What shall we call it?"),
    ("triggers", "What would people say"),
    ("non_triggers", "Which requests sound similar"),
    ("yes", "Save and activate this skill?"),
];

/// Answers by what is asked for.
pub(super) type Answers<'a> = BTreeMap<&'a str, &'a str>;

pub(super) fn slack_alert(name: &str) -> Answers<'_> {
    [
        ("steps", "Read the report\nWrite the alert\nSend it to the channel"),
        ("format", "message"),
        ("name", name),
        ("triggers", "alert the team on Slack; send a Slack alert"),
        ("non_triggers", "summarize a Slack channel"),
        ("yes", "yes"),
    ]
    .into()
}

/// What a text asks for: it stands in its last paragraph.
pub(super) fn asked(text: &str) -> Option<&'static str> {
    let last = text.trim().rsplit("\n\n").next()?;
    QUESTIONS.iter().find(|(_, question)| last.contains(question)).map(|(key, _)| *key)
}

/// What was asked for in a whole conversation, as often as it was.
pub(super) fn all_asked(person: &Person) -> Vec<&'static str> {
    person.history().iter().filter(|(who, _)| who != "user").filter_map(|(_, text)| asked(text)).collect()
}

/// Answers from `text` on until nothing is asked any more, or until what `before` names is asked. Returns what was answered, and the
/// last text.
pub(super) fn answer(
    person: &Person,
    answers: &Answers<'_>,
    text: String,
    before: &str,
) -> (Vec<&'static str>, String) {
    let (mut text, mut answered) = (text, Vec::new());
    while let Some(key) = asked(&text).filter(|key| *key != before) {
        let turn = person.say(answers.get(key).unwrap_or_else(|| panic!("{key} is asked for: {text}")));
        assert!(turn.is_well(), "{key}: {:?}", turn.events);
        answered.push(key);
        assert!(answered.len() < 20, "it does not end: {answered:?}: {text}");
        text = turn.said();
    }
    (answered, text)
}
