//! Reads the reply to "Would you like to finish that first?" (C-13).

use baton_core::agent::Agent;

use super::is_yes;
use super::second_request::words;
use crate::classifier;

/// Longer replies say something else.
const MAX_WORDS: usize = 12;
const YES: &[&str] = &["yes", "y", "yep", "yeah", "yup", "sure", "ok", "okay"];
const NO: &[&str] = &["no", "n", "nope", "nah"];
const NOT: &[&str] = &["not", "dont"];
const FINISH: &[&str] = &["finish", "continue", "stay", "keep", "complete", "resume"];
const SWITCH: &[&str] = &["switch", "pause", "instead", "change"];
const LATER: &[&str] =
    &["later", "after", "afterwards", "afterward", "then", "queue", "queued", "next", "once", "when"];
/// Words that a reply may have besides.
const OTHERS: &[&str] = &[
    "please", "thanks", "thank", "you", "i", "want", "to", "would", "like", "lets", "let", "us", "me",
    "that", "this", "it", "the", "first", "now", "one", "with", "skill", "session", "work", "we", "were",
    "are", "am", "im", "done", "here", "right", "away", "ahead", "go", "going", "on", "do", "and", "my",
    "other", "request", "thing", "of", "course", "id", "rather", "for", "a", "moment", "over", "be", "can",
    "will", "should", "just", "have", "finished", "ready", "is", "come", "back",
];

/// What the user wants to do about a second request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ConflictReply {
    /// Go on with the holder.
    Finish,
    /// Pause the handoff and carry the request out now.
    Switch,
    /// Carry the request out when the handoff has ended.
    Later,
    /// The request was an answer to the holder's question.
    WasAnswer,
    /// Anything else.
    Other {
        /// Whether it can be an answer to the holder's question.
        may_answer: bool,
    },
}

/// Reads a reply. `target` is the agent that the second request is for, if it is not the main agent.
pub(crate) fn conflict_reply(message: &str, target: Option<&Agent>) -> ConflictReply {
    let said = words(message);
    let names_target = |word: &str| {
        let is_id = |target: &Agent| target.name.as_str().split(['-', '_']).any(|part| part == word);
        target.is_some_and(|target| is_id(target) || classifier::mentions_agent(word, target))
    };
    let has = |known: &[&str]| said.iter().any(|word| known.contains(&word.as_str()));
    let is_known = |word: &String| {
        let all = [YES, NO, NOT, FINISH, SWITCH, LATER, OTHERS];
        all.iter().any(|known| known.contains(&word.as_str())) || names_target(word)
    };
    if is_was_answer(&said) {
        return ConflictReply::WasAnswer;
    }
    if is_yes(message) {
        return ConflictReply::Finish;
    }
    if said.is_empty() || said.len() > MAX_WORDS || !said.iter().all(is_known) {
        return by_first_word(message, &said, said.iter().any(|word| names_target(word)));
    }
    let is_refused = has(NOT) || has(NO);
    match () {
        () if has(SWITCH) && has(NOT) => ConflictReply::Finish,
        () if has(SWITCH) => ConflictReply::Switch,
        // "Finish it later" and "no, later" are about the work of the holder.
        () if has(LATER) && (is_refused || finishes_later(&said)) => ConflictReply::Switch,
        () if has(LATER) => ConflictReply::Later,
        () if has(FINISH) && has(NO) && !has(NOT) => ConflictReply::Other { may_answer: false },
        () if is_refused => ConflictReply::Switch,
        () if has(FINISH) || has(YES) => ConflictReply::Finish,
        () if said.iter().any(|word| names_target(word)) => ConflictReply::Switch,
        () => ConflictReply::Other { may_answer: false },
    }
}

/// Reads a reply with other words by its first one: what follows explains it.
fn by_first_word(message: &str, said: &[String], names_target: bool) -> ConflictReply {
    let first = said.first().map(String::as_str).unwrap_or_default();
    let follows =
        |mark: char| message.trim_start().get(first.len()..).is_some_and(|rest| rest.starts_with(mark));
    let is_set_off = [',', '.', ';', ':', '!'].into_iter().any(follows);
    match () {
        () if is_set_off && NO.contains(&first) => ConflictReply::Switch,
        () if is_set_off && YES.contains(&first) => ConflictReply::Finish,
        () => {
            let is_question = message.trim_end().ends_with('?');
            let is_vague = said.len() < 2 && !is_specific(said);
            let is_about_request = names_target && said.len() <= MAX_WORDS / 2;
            ConflictReply::Other { may_answer: !is_question && !is_vague && !is_about_request }
        }
    }
}

/// Whether a single word can be an answer: words that express doubt cannot.
fn is_specific(said: &[String]) -> bool {
    const VAGUE: &[&str] =
        &["maybe", "perhaps", "hm", "hmm", "what", "huh", "why", "whatever", "dunno", "idk", "help"];
    said.first().is_some_and(|word| !VAGUE.contains(&word.as_str()))
}

/// Whether the reply postpones the holder's work, as in "finish that later".
fn finishes_later(said: &[String]) -> bool {
    let at = |known: &[&str]| said.iter().position(|word| known.contains(&word.as_str()));
    let is_yes = said.iter().any(|word| YES.contains(&word.as_str()));
    !is_yes && at(FINISH).zip(at(&["later"])).is_some_and(|(finish, later)| finish < later)
}

/// Whether the reply says that the request was an answer, as in "that was my answer".
fn is_was_answer(said: &[String]) -> bool {
    const WITH: &[&str] = &[
        "answer", "that", "thats", "this", "was", "is", "it", "its", "my", "the", "an", "no", "yes", "to",
        "your", "question", "i", "meant", "as", "already",
    ];
    said.iter().any(|word| word == "answer") && said.iter().all(|word| WITH.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use baton_core::AgentName;
    use baton_core::agent::AcceptsHandoff;

    use super::*;

    fn reply(message: &str) -> ConflictReply {
        let mut agent = Agent::plain(AgentName::parse("debugger").unwrap(), "", "");
        "Debugging Assistant".clone_into(&mut agent.display_name);
        let triggers = vec!["help me debug".to_owned()];
        agent.accepts_handoff = Some(AcceptsHandoff { triggers, ..AcceptsHandoff::default() });
        conflict_reply(message, Some(&agent))
    }

    #[test]
    fn c_13_replies_are_read_as_the_user_means_them() {
        use ConflictReply::{Finish, Later, Other, Switch, WasAnswer};
        let replies: &[(ConflictReply, &[&str])] = &[
            (
                Finish,
                &[
                    "yes",
                    "Yes, please",
                    "finish that first",
                    "Let's finish this first",
                    "ok",
                    "don't switch",
                    "yes, of course",
                ],
            ),
            (Finish, &["Yes, the skill matters more to me"]),
            (
                Switch,
                &[
                    "no",
                    "No thanks",
                    "switch",
                    "pause it",
                    "no, help me with the crash now",
                    "not now",
                    "finish it later",
                ],
            ),
            (Switch, &["no, later", "debug first", "the debugger please", "switch now please"]),
            (Later, &["later", "after that", "yes, and then debug", "afterwards please", "when we are done"]),
            (WasAnswer, &["that was my answer", "No, that's the answer", "it was an answer"]),
            (
                Other { may_answer: false },
                &["hmm", "what?", "Which one do you mean?", "", "debug the crashing thing today"],
            ),
            (Other { may_answer: true }, &["Read the report and post it", "Slack Alert", "message"]),
        ];
        for (expected, messages) in replies {
            for message in *messages {
                assert_eq!(reply(message), *expected, "{message}");
            }
        }
    }
}
