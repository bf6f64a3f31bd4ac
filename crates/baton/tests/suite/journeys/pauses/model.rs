//! The model of a server. Its reply depends only on the request, so both servers get the same reply to the same request. It can stop in
//! the middle of a reply and continue later.

use std::collections::HashMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::crash::wire;

/// How long a condition is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

/// What the last message of a request is.
#[derive(Clone, Copy)]
pub(super) enum After {
    Message,
    ToolResult,
}

/// The request of a scenario whose reply stops after its first piece.
#[derive(Clone, Copy)]
pub(super) struct Stop {
    pub(super) agent: &'static str,
    pub(super) after: After,
}

/// The provider of one server.
#[derive(Clone)]
pub(super) struct Model {
    pub(super) base_url: String,
    state: Arc<(Mutex<State>, Condvar)>,
}

#[derive(Default)]
struct State {
    stops: HashMap<&'static str, Stop>,
    /// Scenarios whose reply has stopped.
    stopped: Vec<&'static str>,
    /// How many of these replies were completed, and how many of their connections the server has closed since.
    completed: usize,
    closed: usize,
    is_released: bool,
}

impl Model {
    /// `tool` is the shell command that agents call, without its argument, the scenario.
    pub(super) fn start(tool: &str) -> Self {
        let state: Arc<(Mutex<State>, Condvar)> = Arc::default();
        let (known, tool) = (Arc::clone(&state), tool.to_owned());
        let base_url = wire::listen(move |request, stream| respond(request, stream, &known, &tool));
        Self { base_url, state }
    }

    /// Stops the next reply of the scenario that matches.
    pub(super) fn stop(&self, scenario: &'static str, stop: Stop) {
        self.state.0.lock().unwrap().stops.insert(scenario, stop);
    }

    pub(super) fn wait_until_stopped(&self, scenario: &'static str) {
        self.wait(&format!("{scenario}: no such model call"), |state| state.stopped.contains(&scenario));
    }

    /// Completes all replies that have stopped. They are in the socket buffers when this returns, even if the server is paused.
    pub(super) fn release(&self) {
        change(&self.state, |state| state.is_released = true);
        self.wait("replies are not completed", |state| state.completed == state.stopped.len());
    }

    /// Waits until the server has closed the connection of every reply that had stopped.
    pub(super) fn wait_until_closed(&self) {
        self.wait("replies are not read", |state| state.closed == state.stopped.len());
    }

    fn wait(&self, problem: &str, is_done: impl Fn(&State) -> bool) {
        let state = self.state.0.lock().unwrap();
        let (state, waited) =
            self.state.1.wait_timeout_while(state, PATIENCE, |state| !is_done(state)).unwrap();
        drop(state);
        assert!(!waited.timed_out(), "{problem}");
    }
}

fn respond(
    request: &Value,
    stream: &mut TcpStream,
    known: &(Mutex<State>, Condvar),
    tool: &str,
) -> Option<()> {
    let messages = request["messages"].as_array()?;
    let system = text_of(messages.first()?);
    let agent = system.strip_prefix("You are ")?.split('.').next()?;
    let (last, texts) = (messages.last()?, messages.iter().map(text_of).collect::<Vec<_>>());
    let scenario = texts.iter().rev().find_map(|text| scenario_of(text)).unwrap_or_default();
    let is_result = last["role"] == "tool";
    let (text, call) = reply(agent, texts.last()?, is_result, scenario, tool);
    if agent == "broken" {
        return stream
            .write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .ok();
    }
    stream.write_all((wire::HEAD.to_owned() + &wire::text("Well. ")).as_bytes()).ok()?;
    let had_to_stop = stop(known, agent, scenario, is_result);
    let (frame, finish) = match call {
        Some((name, arguments)) => {
            (wire::calls(&[(name, format!("call_{}", messages.len()), arguments)]), "tool_calls")
        }
        None => (wire::text(text), "stop"),
    };
    let written = stream.write_all((frame + &wire::end(finish)).as_bytes());
    if had_to_stop {
        let _ = stream.shutdown(std::net::Shutdown::Write);
        change(known, |state| state.completed += 1);
        let _ = stream.read_to_end(&mut Vec::new());
        change(known, |state| state.closed += 1);
    }
    written.ok()
}

fn change((state, changed): &(Mutex<State>, Condvar), change: impl FnOnce(&mut State)) {
    change(&mut state.lock().unwrap());
    changed.notify_all();
}

/// Waits for the release if the reply has to stop here. Returns whether it had to.
fn stop((state, changed): &(Mutex<State>, Condvar), agent: &str, scenario: &str, is_result: bool) -> bool {
    let mut state = state.lock().unwrap();
    let is_here = |stop: &Stop| stop.agent == agent && matches!(stop.after, After::ToolResult) == is_result;
    let Some((name, _)) = state.stops.get_key_value(scenario).filter(|(_, stop)| is_here(stop)) else {
        return false;
    };
    let name = *name;
    state.stops.remove(name);
    state.stopped.push(name);
    changed.notify_all();
    drop(changed.wait_while(state, |state| !state.is_released).unwrap());
    true
}

/// Messages of a scenario end with its name.
pub(super) fn tagged(text: &str, scenario: &str) -> String {
    format!("{text} #{scenario}")
}

fn scenario_of(text: &str) -> Option<&str> {
    // A heading begins with the same character.
    let names = text.rmatch_indices('#').map(|(at, _)| {
        text[at + 1..].split(|c: char| !c.is_ascii_lowercase() && c != '_').next().unwrap_or_default()
    });
    names.into_iter().find(|name| !name.is_empty())
}

/// A text, and a tool with its arguments.
type Reply = (&'static str, Option<(&'static str, Value)>);

fn reply(agent: &str, message: &str, is_result: bool, scenario: &str, tool: &str) -> Reply {
    let command = || json!({ "command": format!("{tool} {scenario}") });
    let call = |name, arguments| ("", Some((name, arguments)));
    let advance = |arguments| call("advance_workflow", arguments);
    match agent {
        _ if is_result => ("Noted.", None),
        "assistant" if message.contains("yours again") => ("You are back.", None),
        "assistant" => {
            const TRANSFERS: &[(&str, &str)] = &[
                ("to the maker", "transfer_to_maker"),
                ("to the closer", "transfer_to_closer"),
                ("to the guest", "transfer_to_guest"),
                ("to the brief one", "transfer_to_brief"),
                ("to the broken one", "transfer_to_broken"),
            ];
            match TRANSFERS.iter().find(|(words, _)| message.contains(words)) {
                Some((_, name)) => call(name, json!({ "reason": "the person asked for it" })),
                None if message.contains("use the shell") => call("shell", command()),
                None if message.contains("ask the helper") => call(
                    "call_agent",
                    json!({ "specialist": "helper", "mission": tagged("Look.", scenario) }),
                ),
                None => ("Hello.", None),
            }
        }
        "maker" if message.contains("build it") => advance(json!({ "values": command() })),
        "maker" if message.contains("I agree") => advance(json!({ "values": { "confirmed": true } })),
        "maker" if message.contains("not like this") => advance(json!({ "values": { "confirmed": false } })),
        "maker" if message.contains("publish it") => advance(json!({ "next": "publishing" })),
        "maker" | "closer" if message.contains("that is all") => {
            call("complete_handoff", json!({ "result_summary": "It is made." }))
        }
        "maker" if message.contains("it is not yours") => {
            call("decline_handoff", json!({ "reason": "The request is not mine." }))
        }
        _ => ("What next?", None),
    }
}

/// The text of a message, whole or in parts.
fn text_of(message: &Value) -> String {
    let parts = message["content"].as_array().into_iter().flatten();
    let parts: String = parts.filter_map(|part| part["text"].as_str()).collect();
    message["content"].as_str().map_or(parts, str::to_owned)
}
