//! Attacks on other tenants and on the server, against the built server. Each attack is a message: its JSON lists the tools that
//! the scripted model calls, and the answer is what they returned.

mod audit;
mod flood;
mod identity;
mod installation;
mod issuer;
mod mcp;
mod proxy;
mod sandbox;
mod target;
mod tenants;
mod workspaces;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::crash::wire::{self, Answer};
use crate::served::{LONG, Served};
use crate::{baton, fixtures};

/// In everything that an attack must not reach.
const SECRET: &str = "SWORDFISH";
/// Between the results of two calls.
const NEXT: &str = "\n\n--- next result ---\n\n";
/// What a command of an attack prints first, as it is written and as it is printed.
const RAN: (&str, &str) = ("echo attack-$((6 * 7))-ran", "attack-42-ran");
/// An environment variable of the server.
const SERVER_SECRET: (&str, &str) = ("BATON_TEST_SECRET", "ENV-SWORDFISH");

/// A project with agents, MCP servers and a scripted model.
struct Installation {
    dir: tempfile::TempDir,
}

impl Installation {
    /// `config` is added to a configuration for tenants with keys.
    fn new(config: &str) -> Self {
        Self::with_mode("required", config)
    }

    fn with_mode(mode: &str, config: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let agent = format!(
            "---\ndescription: Runs the requested tools.\ntools: [read_file, write_file, list_files, search_docs, shell, \"mcp:probe/*\"]\n\
             ---\nYou know AGENT-{SECRET}.\n"
        );
        write("agents/a.md", &agent);
        let provider = wire::serve(play);
        let config = format!(
            "# TOML-{SECRET}\n[agents]\nmain = \"a\"\n[auth]\nmode = \"{mode}\"\n[approvals]\nask_at = \"never\"\n[models]\n\
             default = \"local/m\"\n[models.providers.local]\nbase_url = \"{provider}\"\n[tools.shell]\nenabled = true\n{config}"
        );
        write("baton.toml", &config);
        let mut probe = probe();
        probe["network"] = json!(false);
        let unused = json!({"command": "node", "env": {"TOKEN": format!("MCP-{SECRET}")}});
        let servers = json!({"mcpServers": {"probe": probe, "unused": unused}});
        write(".mcp.json", &servers.to_string());
        Self { dir }
    }

    fn path(&self) -> &Path {
        self.dir.path()
    }

    fn serve(&self) -> Served {
        Served::start_with(self.path(), &[], &[SERVER_SECRET])
    }

    fn person(&self, served: &Served, tenant: &str, user: &str) -> Person {
        let args = ["keys", "create", "--tenant", tenant, "--user", user, "--role", "user"];
        let made = baton(self.path(), &args);
        assert_eq!(made.code, 0, "{}", made.stderr);
        Person::new(served, tenant, Some(made.stdout.trim().to_owned()))
    }

    /// The folder of a thread's files.
    fn workspace(&self, person: &Person) -> PathBuf {
        let threads = self.path().canonicalize().unwrap().join("data/tenants").join(&person.tenant);
        threads.join("threads").join(&person.thread)
    }
}

/// The MCP server of the attacks. Node may be installed outside of the folders of the system.
fn probe() -> Value {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let node = std::env::split_paths(&folders).map(|folder| folder.join("node")).find(|path| path.is_file());
    let installed = node.expect("node is installed").canonicalize().unwrap();
    let installed = installed.ancestors().nth(2).unwrap().to_owned();
    let script = fixtures().join("attacks").canonicalize().unwrap();
    json!({"command": "node", "args": [script.join("server.mjs")], "read": [script, installed]})
}

/// The model: calls the tools of a message one after another, then answers with what they returned.
fn play(request: &Value) -> Option<Answer> {
    let messages = request["messages"].as_array()?;
    let last_user = messages.iter().rposition(|message| message["role"] == "user")?;
    let results: Vec<String> = messages[last_user..]
        .iter()
        .filter(|message| message["role"] == "tool")
        .map(|message| message["content"].to_string())
        .collect();
    let text = messages[last_user]["content"].to_string();
    let text: String = serde_json::from_str(&text).unwrap_or(text);
    let script = text.get(text.find('[')?..=text.rfind(']')?)?;
    let calls: Vec<(String, Value)> = serde_json::from_str(script).ok()?;
    let at = results.len();
    let Some((tool, arguments)) = calls.get(at) else {
        return Some(Answer { frames: vec![wire::text(&results.join(NEXT))], finish: "stop" });
    };
    let call = (tool.as_str(), format!("call_{at}"), arguments.clone());
    Some(Answer { frames: vec![wire::calls(&[call])], finish: "tool_calls" })
}

/// A tool call of an attack.
type Call = (&'static str, Value);

fn read_file(path: impl AsRef<Path>) -> Call {
    ("read_file", json!({"path": path.as_ref()}))
}

fn list_files(path: impl AsRef<Path>) -> Call {
    ("list_files", json!({"path": path.as_ref(), "recursive": true}))
}

fn write_file(path: &str, content: &str) -> Call {
    ("write_file", json!({"path": path, "content": content}))
}

fn shell(command: impl Into<String>) -> Call {
    ("shell", json!({"command": command.into()}))
}

fn mcp(tool: &'static str, path: impl AsRef<Path>) -> Call {
    (tool, json!({"path": path.as_ref()}))
}

/// The arguments of a call; a command also says that it runs.
fn announced(arguments: &Value) -> Value {
    let mut arguments = arguments.clone();
    let command = arguments["command"].as_str().map(|command| format!("{}; {command}", RAN.0));
    if let Some(command) = command {
        arguments["command"] = json!(command);
    }
    arguments
}

/// Whether a result is that of the program, or that of a file tool, which may refuse the path.
fn has_run(tool: &str, result: &str) -> bool {
    match tool.strip_prefix("mcp__probe__") {
        Some(name) => {
            result.contains(&format!("`mcp:probe/{name}` returned:")) && !result.contains("\\n\\nerror: ")
        }
        None if tool == "shell" => result.contains(RAN.1),
        None => !result.contains("there is no tool"),
    }
}

/// A user with a key and a thread.
struct Person {
    address: String,
    tenant: String,
    key: Option<String>,
    thread: String,
}

impl Person {
    fn new(served: &Served, tenant: &str, key: Option<String>) -> Self {
        let thread = Uuid::new_v4().to_string();
        Self { address: served.address.clone(), tenant: tenant.to_owned(), key, thread }
    }

    /// The same person in another conversation.
    fn elsewhere(&self) -> Self {
        let (address, tenant, key) = (self.address.clone(), self.tenant.clone(), self.key.clone());
        Self { address, tenant, key, thread: Uuid::new_v4().to_string() }
    }

    /// The same person and conversation at a server that was started again.
    fn at(&self, served: &Served) -> Self {
        let (tenant, key, thread) = (self.tenant.clone(), self.key.clone(), self.thread.clone());
        Self { address: served.address.clone(), tenant, key, thread }
    }

    /// What the tools returned.
    fn calls(&self, calls: &[Call]) -> String {
        let script = serde_json::to_string(calls).unwrap();
        let path = format!("/api/v1/threads/{}/messages", self.thread);
        let (status, _, body) = self.ask("POST", &path, &json!({"content": script}).to_string());
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["status"], "completed", "{body}");
        answer["message"].to_string()
    }

    /// Makes calls none of which may return a secret, a few at a time. Each has to run.
    fn attack(&self, calls: &[Call]) {
        let calls: Vec<Call> = calls.iter().map(|(tool, arguments)| (*tool, announced(arguments))).collect();
        for some in calls.chunks(6) {
            let answer = self.calls(some);
            assert!(!answer.contains(SECRET), "{some:?}: {answer}");
            let message: Value = serde_json::from_str(&answer).unwrap();
            let results: Vec<&str> = message["parts"][0]["text"].as_str().unwrap().split(NEXT).collect();
            assert_eq!(results.len(), some.len(), "{some:?}: {answer}");
            for ((tool, arguments), result) in some.iter().zip(results) {
                assert!(has_run(tool, result), "{tool} {arguments}: {result}");
            }
        }
    }

    /// Status, head and body of a response.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        let key = self.key.as_ref().map(|key| format!("Authorization: Bearer {key}\r\n")).unwrap_or_default();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\nContent-Type: application/json\r\n{key}\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.address,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut response = Vec::new();
        stream.read_to_end(&mut response).unwrap();
        let response = String::from_utf8_lossy(&response).into_owned();
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), body.to_owned())
    }

    fn files(&self, thread: &str) -> (u16, String, String) {
        self.ask("GET", &format!("/api/v1/threads/{thread}/files"), "")
    }

    fn download(&self, thread: &str, path: &str) -> (u16, String, String) {
        self.ask("GET", &format!("/api/v1/threads/{thread}/files/content?path={path}"), "")
    }
}
