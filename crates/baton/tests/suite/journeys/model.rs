//! A model that answers by what it is told, behind the wire of chat completions.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::{ACTIVE, UNAVAILABLE};
use crate::crash::wire::{self, Answer, HANG};

/// What stands in the prompt of an agent and of no other.
const AGENTS: &[(&str, &str)] = &[
    ("assistant", "You are the main assistant"),
    ("skill-creator", "You build a skill together"),
    ("agent-creator", "You create an agent together"),
    ("created", "You are Trip Planner"),
    ("debugger", "you find out why something does not work"),
    ("knowledge", "You are the documentation specialist"),
];

/// The provider of all agents.
pub(super) struct Model {
    pub(super) config: String,
    /// Who asked, one entry for each request.
    heard: Arc<Mutex<Vec<&'static str>>>,
    hang: Arc<Mutex<Option<String>>>,
    /// The tools that a created agent was offered last.
    tools: Arc<Mutex<Vec<String>>>,
    stopped: Receiver<()>,
}

impl Model {
    /// `slow` is what the knowledge agent takes before it says something.
    pub(super) fn start(slow: Duration) -> Self {
        let (tell, stopped) = channel();
        let heard: Arc<Mutex<Vec<&str>>> = Arc::default();
        let hang: Arc<Mutex<Option<String>>> = Arc::default();
        let tools: Arc<Mutex<Vec<String>>> = Arc::default();
        let mind = Mind {
            slow,
            heard: Arc::clone(&heard),
            hang: Arc::clone(&hang),
            tools: Arc::clone(&tools),
            tell,
        };
        let base_url = wire::serve(move |request| mind.answer(request));
        let config = format!(
            "[models]\ndefault = \"local/m\"\n[models.providers.local]\nbase_url = \"{base_url}\"\n\
                     [models.providers.local.models.m]\nassists = {{ workflow_values = false, workflow_evidence = false, agent_tools = false, search_first = false }}\n"
        );
        Self { config, heard, hang, tools, stopped }
    }

    /// The tools that a created agent was offered last.
    pub(super) fn tools_of_created(&self) -> Vec<String> {
        self.tools.lock().unwrap().clone()
    }

    /// Who asked since the last time.
    pub(super) fn heard(&self) -> Vec<&'static str> {
        std::mem::take(&mut *self.heard.lock().unwrap())
    }

    /// Once the maker of skills stands in this state, the answer begins and does not go on.
    pub(super) fn hang_in(&self, state: &str) {
        *self.hang.lock().unwrap() = Some(state.to_owned());
    }

    /// Whether it has begun to hang since the last time somebody looked.
    pub(super) fn is_hung(&self) -> bool {
        self.stopped.try_recv().is_ok()
    }

    /// Returns when it hangs.
    pub(super) fn until_hung(&self) {
        self.stopped.recv_timeout(crate::served::LONG).expect("it hangs");
    }
}

#[derive(Clone)]
struct Mind {
    slow: Duration,
    heard: Arc<Mutex<Vec<&'static str>>>,
    hang: Arc<Mutex<Option<String>>>,
    tools: Arc<Mutex<Vec<String>>>,
    tell: Sender<()>,
}

/// What is said, and what is called after it.
struct Says(String, Option<(&'static str, Value)>);

fn text(text: impl Into<String>) -> Says {
    Says(text.into(), None)
}

fn call(tool: &'static str, arguments: Value) -> Says {
    Says(String::new(), Some((tool, arguments)))
}

impl Mind {
    fn answer(&self, request: &Value) -> Option<Answer> {
        let messages = request["messages"].as_array()?;
        let system = words(messages.iter().find(|message| message["role"] == "system")?);
        let (agent, _) = AGENTS.iter().find(|(_, mark)| system.contains(mark))?;
        self.heard.lock().unwrap().push(agent);
        let last = messages.last()?;
        let (told, is_tool) = (words(last), last["role"] == "tool");
        // What the engine notes before the person's words.
        let (note, told) = match told.split_once("The message follows.\n") {
            Some((note, told)) if !is_tool => (note.to_owned(), told.trim_start().to_owned()),
            _ => (String::new(), told),
        };
        if *agent == "skill-creator" && self.hangs(&note, &told, is_tool) {
            self.tell.send(()).ok()?;
            return Some(Answer { frames: vec![wire::text("I was about to")], finish: HANG });
        }
        let Says(said, called) = match *agent {
            "assistant" => assistant(&told, is_tool),
            "skill-creator" | "agent-creator" => creator(&note, &told, is_tool),
            "created" => {
                let tools = request["tools"].as_array().into_iter().flatten();
                let names = tools.filter_map(|tool| tool["function"]["name"].as_str().map(str::to_owned));
                *self.tools.lock().unwrap() = names.collect();
                text("Take the night train.")
            }
            "debugger" => text("What goes wrong? If there is a message, please paste it exactly."),
            _ => self.knowledge(&told, is_tool),
        };
        let pieces: Vec<&str> =
            said.split_inclusive('\n').flat_map(|line| line.split_inclusive(". ")).collect();
        let mut frames: Vec<String> = pieces.into_iter().map(wire::text).collect();
        let id = format!("call_{}", messages.len());
        frames.extend(
            called.iter().map(|(tool, arguments)| wire::calls(&[(tool, id.clone(), arguments.clone())])),
        );
        Some(Answer { frames, finish: if called.is_some() { "tool_calls" } else { "stop" } })
    }

    /// Where the maker of skills stands, the result of its tool says, or else the engine's note.
    fn hangs(&self, note: &str, told: &str, is_tool: bool) -> bool {
        let mut hang = self.hang.lock().unwrap();
        let Some(state) = hang.as_deref() else { return false };
        let is_there = if is_tool {
            result(told)["state"] == state
        } else {
            note.contains(&format!("(`{state}`)")) && values(told).is_empty()
        };
        if is_there {
            *hang = None;
        }
        is_there
    }

    fn knowledge(&self, told: &str, is_tool: bool) -> Says {
        if is_tool {
            return text(format!(
                "Set it in the configuration. [1]\n\nSources\n[1] {}",
                told.lines().next().unwrap_or_default()
            ));
        }
        std::thread::sleep(self.slow);
        call("search_docs", json!({ "query": "How do I configure rate limiting?" }))
    }
}

fn assistant(told: &str, is_tool: bool) -> Says {
    const EXAMPLE: &str = "Set `requests_per_minute`. \nIt counts for each tenant. \n\n```toml\n[limits]\nrequests_per_minute = 600\n```\n";
    match told {
        _ if is_tool && told.contains("currently unavailable") => text(UNAVAILABLE),
        _ if is_tool && told.contains("skill:create") => {
            text("You need the permission `skill:create` for this. Your administrator can grant it.")
        }
        _ if is_tool => text(EXAMPLE),
        _ if told.contains("The conversation is yours again") => text(ACTIVE),
        _ if told.contains("create an agent") => {
            let why = json!({ "reason": "an agent is wanted", "context": { "purpose": "plans trips" } });
            call("transfer_to_agent_creator", why)
        }
        _ if told.contains("create a skill") => {
            let why =
                json!({ "reason": "a skill is wanted", "context": { "purpose": "sends Slack alerts" } });
            Says("I'll connect you. ".to_owned(), Some(("transfer_to_skill_creator", why)))
        }
        _ => call(
            "call_agent",
            json!({ "specialist": "knowledge", "mission": "How is rate limiting configured?" }),
        ),
    }
}

fn creator(note: &str, told: &str, is_tool: bool) -> Says {
    if is_tool {
        let told = result(told);
        let ask = told["missing"][0]["ask"].as_str().or(told["confirm"].as_str());
        return match (told["problem"].as_str(), ask) {
            _ if told["is_done"] == true => {
                let done =
                    json!({ "result_summary": "The skill is saved.", "artifacts": ["skill:slack-alert"] });
                call("complete_handoff", done)
            }
            (Some(problem), _) => text(format!("That did not work: {problem}")),
            (None, Some(ask)) => text(format!("Good. \n\n{ask}")),
            _ => text("All right."),
        };
    }
    let values = values(told);
    if !values.is_empty() {
        return call("advance_workflow", json!({ "values": values }));
    }
    let open = note.split_once("\nNow: ").map_or("", |(_, rest)| rest.lines().next().unwrap_or_default());
    text(format!("I know what you want. \n\n{}", open.trim_start_matches("Ask the person: ")))
}

/// What free words say: several values at once, and corrections.
fn values(told: &str) -> Map<String, Value> {
    const LEADS: &[(&str, &str)] = &[
        ("steps", "do this: "),
        ("tools", "use the tools "),
        ("examples", "people ask "),
        ("name", "call it "),
        ("triggers", "people say "),
        ("non_triggers", "not when they say "),
    ];
    let mut found = Map::new();
    for (key, lead) in LEADS {
        if let Some(at) = told.to_lowercase().find(lead) {
            let rest = &told[at + lead.len()..];
            found.insert((*key).to_owned(), json!(rest.split('.').next().unwrap_or_default()));
        }
    }
    if told.contains("as a message") {
        found.insert("format".to_owned(), json!("message"));
    }
    if told.trim() == "yes" {
        found.insert("confirmed".to_owned(), json!(true));
    }
    found
}

fn result(told: &str) -> Value {
    serde_json::from_str(told).unwrap_or_default()
}

/// The text of a message, whole or in parts.
fn words(message: &Value) -> String {
    let parts = message["content"].as_array().into_iter().flatten();
    let parts: String = parts.filter_map(|part| part["text"].as_str()).collect();
    let words = message["content"].as_str().map_or(parts, str::to_owned);
    // What a tool returned stands between marks.
    match words.split_once("` returned:\n\n").and_then(|(_, rest)| rest.rsplit_once("\n<<<end ")) {
        Some((output, _)) => output.to_owned(),
        None => words,
    }
}
