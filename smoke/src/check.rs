//! Compares what a case led to with what it expects.

use serde_json::Value;

use crate::cases::{Expect, Pattern};
use crate::observation::{Observation, SessionResult, ToolUse};

/// Length of quoted text in a reason, in characters.
const MAX_QUOTE_CHARS: usize = 160;

/// One check of a case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The key of the expectation.
    pub kind: &'static str,
    /// Why it failed.
    pub failure: Option<String>,
}

/// All checks of a case, in the order of its keys.
pub fn check(expect: &Expect, seen: &Observation) -> Vec<Check> {
    let mut checks = Checks { done: Vec::new(), seen };
    checks.status();
    checks.agents(expect);
    checks.tools(expect);
    checks.answer(expect);
    checks.handoff(expect);
    checks.tokens(expect);
    checks.done
}

struct Checks<'a> {
    done: Vec<Check>,
    seen: &'a Observation,
}

impl Checks<'_> {
    fn add(&mut self, kind: &'static str, is_met: bool, failure: impl FnOnce() -> String) {
        self.done.push(Check { kind, failure: (!is_met).then(failure) });
    }

    fn status(&mut self) {
        let bad = self.seen.messages.iter().find(|message| message.status != "completed");
        self.add("status", bad.is_none(), || {
            let (status, error) = bad.map_or(("", None), |bad| (bad.status.as_str(), bad.error.as_deref()));
            format!("the run is `{status}`: {}", quote(error.unwrap_or("no error")))
        });
    }

    fn agents(&mut self, expect: &Expect) {
        let seen = self.seen;
        if let Some(wanted) = &expect.answered_by {
            let found = seen.last().and_then(|message| message.answered_by.as_deref()).unwrap_or("no agent");
            self.add("answered_by", found == wanted, || format!("`{found}` answered, not `{wanted}`"));
        }
        for agent in &expect.agents {
            let mut statuses = seen.sessions().filter(|session| session.agent == *agent);
            let is_met = statuses.any(|session| session.status == "completed");
            self.add("agents", is_met, || {
                format!("`{agent}` did not complete; sessions: {}", sessions(seen.sessions()))
            });
        }
        for agent in &expect.no_agents {
            let is_met = seen.sessions().all(|session| session.agent != *agent);
            self.add("no_agents", is_met, || format!("`{agent}` was involved"));
        }
        if expect.alone {
            let is_met = seen.messages.iter().all(|message| message.sessions.len() <= 1);
            self.add("alone", is_met, || format!("sessions: {}", sessions(seen.sessions())));
        }
    }

    fn tools(&mut self, expect: &Expect) {
        let seen = self.seen;
        for tool in &expect.calls {
            let is_met = seen.tool_calls().any(|call| call.tool == *tool && !call.failed);
            self.add("calls", is_met, || {
                format!("`{tool}` was not called; calls: {}", tools(seen.tool_calls()))
            });
        }
        for tool in &expect.no_calls {
            let is_met = seen.tool_calls().all(|call| call.tool != *tool);
            self.add("no_calls", is_met, || format!("`{tool}` was called"));
        }
        if expect.rewrites {
            let repeats = seen.messages.iter().find_map(|message| {
                message.tool_calls.iter().find(|call| repeats(&call.arguments, &message.text))
            });
            self.add("rewrites", repeats.is_none(), || {
                let tool = repeats.map_or("", |call| call.tool.as_str());
                format!("`{tool}` got the user's message, word for word")
            });
        }
        for fact in &expect.grounded {
            let outputs = seen.tool_calls().filter_map(|call| call.output.as_deref());
            let is_found = outputs.into_iter().any(|output| states(output, fact));
            let is_said = states(seen.last_answer(), fact);
            self.add("grounded", is_found && is_said, || {
                if is_found {
                    format!("the answer lacks “{fact}”, which a tool returned")
                } else {
                    format!("no tool result contains “{fact}”; calls: {}", tools(seen.tool_calls()))
                }
            });
        }
    }

    fn answer(&mut self, expect: &Expect) {
        let answer = self.seen.last_answer();
        self.add("answer", !answer.trim().is_empty(), || "the answer is empty".to_owned());
        for text in &expect.contains {
            self.add("contains", contains(answer, text), || format!("the answer lacks “{text}”"));
        }
        for text in &expect.excludes {
            self.add("excludes", !contains(answer, text), || format!("the answer contains “{text}”"));
        }
        for pattern in &expect.matches {
            self.add("matches", pattern.0.is_match(answer), || {
                format!("the answer does not match `{pattern}`")
            });
        }
        for Pattern(pattern) in &expect.not_matches {
            let found = pattern.find(answer);
            self.add("not_matches", found.is_none(), || {
                format!("the answer says “{}”", quote(found.map_or("", |found| found.as_str())))
            });
        }
        let value: Value = serde_json::from_str(answer).unwrap_or_default();
        for key in &expect.json_keys {
            let is_met = value.get(key).is_some();
            self.add("json_keys", is_met, || format!("the answer is no JSON object with `{key}`"));
        }
    }

    fn handoff(&mut self, expect: &Expect) {
        let seen = self.seen;
        if let Some(wanted) = &expect.holder {
            let found = seen.holder.as_deref().unwrap_or_default();
            let name =
                |agent: &str| if agent.is_empty() { "no agent".to_owned() } else { format!("`{agent}`") };
            self.add("holder", found == wanted, || {
                let calls = tools(seen.tool_calls());
                format!("{} holds the thread, not {}; calls: {calls}", name(found), name(wanted))
            });
        }
        if let Some(agent) = &expect.completed_handoff {
            let state = seen.workflow_state.as_deref().unwrap_or("none");
            self.add("completed_handoff", seen.completed_handoffs.contains(agent), || {
                format!(
                    "`{agent}` did not complete the handoff; workflow state: {state}; values: {:?}",
                    seen.values
                )
            });
        }
        for (key, pattern) in &expect.values {
            let found = seen.values.get(key).map_or("", String::as_str);
            self.add("values", pattern.0.is_match(found), || {
                format!("`{key}` is “{}”, not `{pattern}`", quote(found))
            });
        }
        if let Some(pattern) = &expect.skill {
            let is_met = matches!(seen.skills.as_slice(), [skill] if pattern.0.is_match(skill));
            self.add("skill", is_met, || format!("the skills are {:?}, not `{pattern}`", seen.skills));
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "tokens of one call are few")]
    fn tokens(&mut self, expect: &Expect) {
        let seen = self.seen;
        if let Some(limit) = expect.input_at_most {
            let input = seen.model_calls().next().map_or(u64::MAX, |call| call.input_tokens);
            self.add("input_at_most", input <= limit, || {
                format!("the first request has {input} input tokens, more than {limit}")
            });
        }
        if let Some(least) = expect.cached_at_least {
            let call = seen.last().and_then(|message| message.model_calls.first());
            let share = call.map_or(0.0, |call| call.cached_tokens as f64 / call.input_tokens.max(1) as f64);
            self.add("cached_at_least", share >= least, || {
                format!(
                    "{:.0} % of the input tokens were cached, less than {:.0} %",
                    share * 100.0,
                    least * 100.0
                )
            });
        }
    }
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

/// Whether a text in `arguments` contains the message. Case, punctuation and line breaks are ignored.
fn repeats(arguments: &Value, message: &str) -> bool {
    match arguments {
        Value::String(text) => {
            let message = spaced_words(message);
            !message.trim().is_empty() && spaced_words(text).contains(&message)
        }
        Value::Array(items) => items.iter().any(|item| repeats(item, message)),
        Value::Object(fields) => fields.values().any(|field| repeats(field, message)),
        _ => false,
    }
}

/// The words in lower case, each between two spaces.
fn spaced_words(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<String> = words.map(str::to_lowercase).collect();
    format!(" {} ", words.join(" "))
}

/// Whether a text states a fact. A number counts as a whole, with or without a separator of thousands.
fn states(text: &str, fact: &str) -> bool {
    let (text, fact) = (plain_numbers(text), plain_numbers(fact));
    let is_number = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
    text.match_indices(&fact).any(|(at, found)| {
        let before = text[..at].chars().next_back();
        let after = text[at + found.len()..].chars().next();
        let ends_open = fact.ends_with(|last: char| !last.is_ascii_digit());
        !is_number(before) && (ends_open || !is_number(after))
    })
}

/// Lower-case, and without commas between digits.
fn plain_numbers(text: &str) -> String {
    let chars: Vec<char> = text.to_lowercase().chars().collect();
    let is_digit = |at: Option<usize>| at.and_then(|at| chars.get(at)).is_some_and(char::is_ascii_digit);
    let is_separator = |at: usize| chars[at] == ',' && is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
    (0..chars.len()).filter(|at| !is_separator(*at)).map(|at| chars[at]).collect()
}

/// The beginning of a text on one line.
pub fn quote(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_QUOTE_CHARS) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: Vec<String> = items.collect();
    if items.is_empty() { "none".to_owned() } else { items.join(", ") }
}

fn tools<'a>(calls: impl Iterator<Item = &'a ToolUse>) -> String {
    list(calls.map(|call| format!("{}{}", call.tool, if call.failed { " (failed)" } else { "" })))
}

fn sessions<'a>(sessions: impl Iterator<Item = &'a SessionResult>) -> String {
    list(sessions.map(|session| format!("{} ({})", session.agent, session.status)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::observation::MessageResult;

    /// The kinds of the checks that fail.
    fn failed(expect: &str, seen: &Observation) -> Vec<&'static str> {
        let expect: Expect = toml::from_str(expect).unwrap();
        let failed = check(&expect, seen).into_iter().filter(|check| check.failure.is_some());
        failed.map(|check| check.kind).collect()
    }

    fn seen(answer: &str) -> Observation {
        let call = ToolUse {
            agent: "a".into(),
            tool: "search_docs".into(),
            arguments: Value::Null,
            output: Some("It runs at 1,350 rpm and 47.3 bar.".into()),
            failed: false,
        };
        let message = MessageResult {
            status: "completed".into(),
            answered_by: Some("a".into()),
            answer: answer.into(),
            sessions: vec![SessionResult { agent: "a".into(), status: "completed".into() }],
            tool_calls: vec![call],
            ..MessageResult::default()
        };
        Observation { messages: vec![message], ..Observation::default() }
    }

    #[test]
    fn text_checks_ignore_case() {
        let expect =
            "contains = [\"BAR\"]\nexcludes = [\"pound\"]\nmatches = ['^it']\nnot_matches = ['rpm$']";
        assert_eq!(failed(expect, &seen("It is 47.3 bar.")), [""; 0]);
        assert_eq!(failed(expect, &seen("Pound rpm")), ["contains", "excludes", "matches", "not_matches"]);
        assert_eq!(failed("", &seen(" ")), ["answer"]);
        assert_eq!(failed("json_keys = ['a']", &seen("{\"a\": 1}")), [""; 0]);
        assert_eq!(failed("json_keys = ['a']", &seen("a")), ["json_keys"]);
    }

    #[test]
    fn grounded_facts_are_whole_numbers_of_a_tool_result() {
        assert_eq!(failed("grounded = ['1,350']", &seen("1350 rpm")), [""; 0]);
        assert_eq!(failed("grounded = ['47.3']", &seen("47.35 bar")), ["grounded"]);
        assert_eq!(failed("grounded = ['47.3 b']", &seen("47.3 Bars")), [""; 0]);
        assert_eq!(failed("grounded = ['50']", &seen("50 bar")), ["grounded"], "no tool said so");
    }

    #[test]
    fn agents_tools_and_handoffs_are_compared() {
        let expect = "answered_by = 'a'\nagents = ['a']\ncalls = ['search_docs']\nalone = true\nholder = ''";
        assert_eq!(failed(expect, &seen("x")), [""; 0]);
        let expect = "answered_by = 'b'\nagents = ['b']\nno_agents = ['a']\ncalls = ['x']\nno_calls = ['search_docs']\n\
                      holder = 'b'\ncompleted_handoff = 'b'\nskill = 's'\nvalues = { k = 'v' }";
        let all = [
            "answered_by",
            "agents",
            "no_agents",
            "calls",
            "no_calls",
            "holder",
            "completed_handoff",
            "values",
            "skill",
        ];
        assert_eq!(failed(expect, &seen("x")), all);
    }

    /// K8: a caller that passes the user's message on is found, whatever it adds around it.
    #[test]
    fn k_8_message_in_the_arguments_of_a_tool_is_found() {
        let asked = |message: &str, arguments: Value| {
            let mut seen = seen("x");
            message.clone_into(&mut seen.messages[0].text);
            seen.messages[0].tool_calls[0].arguments = arguments;
            failed("rewrites = true", &seen)
        };
        let mission = |text: &str| json!({ "specialist": "knowledge", "mission": text });
        let message = "And how do I\nswitch it off?";
        assert_eq!(asked(message, mission("How is rate limiting switched off?")), [""; 0]);
        assert_eq!(asked(message, mission("Question: “and how do I switch it off”.")), ["rewrites"]);
        assert_eq!(asked(message, json!({ "tasks": [mission(message)] })), ["rewrites"]);
        assert_eq!(asked("Hi", mission("Which limits exist?")), [""; 0], "a part of a word is no repetition");
        assert_eq!(asked("?", mission("Which limits exist?")), [""; 0]);
    }

    #[test]
    fn failed_run_is_a_failure() {
        let mut seen = seen("x");
        seen.messages[0].status = "failed".into();
        assert_eq!(failed("", &seen), ["status"]);
    }
}
