//! The sequence rules that clients enforce.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

type Owner = Option<String>;

#[derive(Default)]
struct State {
    is_started: bool,
    is_ended: bool,
    /// Open texts, thoughts and calls, by what they are and their id.
    open: BTreeMap<(&'static str, String), Owner>,
    /// Who opened each of them first.
    owners: BTreeMap<(&'static str, String), Owner>,
    subagents: BTreeSet<String>,
    ended_subagents: BTreeSet<String>,
}

/// The first rule that is broken.
pub fn check(events: &[Value]) -> Result<(), String> {
    let mut state = State::default();
    for event in events {
        state.take(event).map_err(|rule| format!("{rule}: {event}"))?;
    }
    if state.is_ended { Ok(()) } else { Err("the run has no end".into()) }
}

impl State {
    fn take(&mut self, event: &Value) -> Result<(), String> {
        let kind = text_of(event, "type").unwrap_or_default();
        ensure(has_no_null(event), "a field is null")?;
        ensure(self.is_started != (kind == "RUN_STARTED"), "the run starts first and once")?;
        ensure(!self.is_ended, "nothing follows the end")?;
        self.is_started = true;
        match kind.as_str() {
            "TEXT_MESSAGE_START" => self.start("text", "messageId", event),
            "TEXT_MESSAGE_CONTENT" => self.go_on("text", "messageId", event),
            "TEXT_MESSAGE_END" => self.end("text", "messageId", event),
            "REASONING_START" => self.start("span", "messageId", event),
            "REASONING_MESSAGE_START" => self.start("thought", "messageId", event),
            "REASONING_MESSAGE_CONTENT" => self.go_on("thought", "messageId", event),
            "REASONING_MESSAGE_END" => self.end("thought", "messageId", event),
            "REASONING_END" => self.end("span", "messageId", event),
            "TOOL_CALL_START" => self.start("call", "toolCallId", event),
            "TOOL_CALL_ARGS" => self.go_on("call", "toolCallId", event),
            "TOOL_CALL_END" => self.end("call", "toolCallId", event),
            "TOOL_CALL_RESULT" => self.result(event),
            "SUBAGENT_STARTED" => self.subagent(event),
            "SUBAGENT_FINISHED" | "SUBAGENT_ERROR" => self.end_subagent(event),
            "RUN_FINISHED" | "RUN_ERROR" => self.end_run(),
            "MESSAGES_SNAPSHOT" => self.recall(event),
            "STATE_SNAPSHOT" | "STATE_DELTA" => ensure(owner(event).is_none(), "the state is the run's"),
            "RUN_STARTED" | "CUSTOM" | "ACTIVITY_SNAPSHOT" => self.owner_is_at_work(event),
            other => Err(format!("`{other}` is not expected")),
        }
    }

    /// Whose everything is that was said before.
    fn recall(&mut self, event: &Value) -> Result<(), String> {
        for message in event["messages"].as_array().ok_or("no messages")? {
            let (id, owner) = (text_of(message, "id").ok_or("a message without an id")?, owner(message));
            let whats: &[_] = if message["role"] == "reasoning" { &["span", "thought"] } else { &["text"] };
            for what in whats {
                self.owners.insert((what, id.clone()), owner.clone());
            }
            for call in message["toolCalls"].as_array().into_iter().flatten() {
                let id = text_of(call, "id").ok_or("a call without an id")?;
                self.owners.insert(("call", id), owner.clone());
            }
        }
        Ok(())
    }

    fn start(&mut self, what: &'static str, field: &str, event: &Value) -> Result<(), String> {
        let (key, owner) = (key(what, field, event)?, owner(event));
        self.owner_is_at_work(event)?;
        ensure(!self.open.contains_key(&key), "an id is open once")?;
        let first = self.owners.entry(key.clone()).or_insert_with(|| owner.clone());
        ensure(*first == owner, "an id stays with who opened it")?;
        self.open.insert(key, owner);
        Ok(())
    }

    fn go_on(&mut self, what: &'static str, field: &str, event: &Value) -> Result<(), String> {
        let opened = self.open.get(&key(what, field, event)?).ok_or("nothing of this id is open")?;
        ensure(*opened == owner(event), "what goes on belongs to who opened it")
    }

    fn end(&mut self, what: &'static str, field: &str, event: &Value) -> Result<(), String> {
        self.go_on(what, field, event)?;
        self.open.remove(&key(what, field, event)?);
        Ok(())
    }

    fn result(&mut self, event: &Value) -> Result<(), String> {
        let called = self.owners.get(&key("call", "toolCallId", event)?).ok_or("a result without a call")?;
        ensure(*called == owner(event), "a result belongs to who called")
    }

    fn subagent(&mut self, event: &Value) -> Result<(), String> {
        let id = text_of(event, "subagentRunId").ok_or("a subagent without an id")?;
        ensure(text_of(event, "name").is_some(), "a subagent without a name")?;
        if let Some(parent) = text_of(event, "parentSubagentRunId") {
            ensure(self.subagents.contains(&parent), "a parent that never started")?;
        }
        if text_of(event, "parentToolCallId").is_some() {
            let call = key("call", "parentToolCallId", event)?;
            ensure(self.owners.contains_key(&call), "a call that nobody saw")?;
        }
        ensure(self.subagents.insert(id), "a subagent starts once")
    }

    fn end_subagent(&mut self, event: &Value) -> Result<(), String> {
        let id = text_of(event, "subagentRunId").ok_or("a subagent without an id")?;
        ensure(self.subagents.contains(&id), "a subagent that never started")?;
        ensure(!self.open.values().any(|owner| owner.as_ref() == Some(&id)), "it left something open")?;
        ensure(self.ended_subagents.insert(id), "a subagent ends once")
    }

    fn owner_is_at_work(&self, event: &Value) -> Result<(), String> {
        let is_there = |id: String| self.subagents.contains(&id) && !self.ended_subagents.contains(&id);
        ensure(owner(event).is_none_or(is_there), "its subagent is not at work")
    }

    fn end_run(&mut self) -> Result<(), String> {
        self.is_ended = true;
        ensure(self.open.is_empty(), "something is open at the end")?;
        ensure(self.subagents == self.ended_subagents, "a subagent is at work at the end")
    }
}

fn ensure(holds: bool, rule: &str) -> Result<(), String> {
    if holds { Ok(()) } else { Err(rule.to_owned()) }
}

fn key(what: &'static str, field: &str, event: &Value) -> Result<(&'static str, String), String> {
    Ok((what, text_of(event, field).ok_or_else(|| format!("`{field}` is missing"))?))
}

fn owner(event: &Value) -> Owner {
    text_of(event, "subagentRunId")
}

fn text_of(event: &Value, field: &str) -> Option<String> {
    Some(event.get(field)?.as_str()?.to_owned())
}

fn has_no_null(event: &Value) -> bool {
    event.as_object().unwrap().values().all(|value| !value.is_null())
}

/// What came of a text or a thought, and whose work it is.
pub fn text(events: &[Value], id: &str) -> (Option<String>, Owner) {
    let recalled = events.iter().flat_map(|event| event["messages"].as_array().into_iter().flatten());
    let recalled = recalled.filter(|message| message["id"] == id);
    let mut found = (None, None);
    for event in recalled.chain(events.iter().filter(|event| event["messageId"] == id)) {
        let delta = event.get("delta").or_else(|| event.get("content"));
        let delta = delta.and_then(Value::as_str).unwrap_or_default();
        found.0.get_or_insert_with(String::new).push_str(delta);
        found.1 = owner(event);
    }
    found
}
