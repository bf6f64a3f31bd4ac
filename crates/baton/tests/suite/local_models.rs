//! Models on this machine: `baton init --model`, and runs against servers that speak the protocols.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::provider::{Provider, Reply};
use crate::run::{exit_code, project};
use crate::{baton, root};

/// A request line and a body.
type Request = (String, Value);

/// A model server on loopback. Its thread ends with the test's process.
struct ModelServer {
    url: String,
    seen: Arc<Mutex<Vec<Request>>>,
}

#[derive(Clone, Copy)]
enum Kind {
    LlamaCpp,
    Ollama,
    /// Lists a model, and refuses to use it with this status.
    Refusing(u16),
}

impl ModelServer {
    fn start(kind: Kind) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let seen: Arc<Mutex<Vec<Request>>> = Arc::default();
        let kept = Arc::clone(&seen);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                let Some(request) = read_request(&stream) else { continue };
                let answer = answer(kind, &request.0);
                kept.lock().unwrap().push(request);
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        Self { url, seen }
    }

    fn calls(&self) -> Vec<Value> {
        let seen = self.seen.lock().unwrap();
        seen.iter().filter(|(line, _)| line.contains("chat")).map(|(_, body)| body.clone()).collect()
    }
}

fn read_request(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first).ok()?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first, serde_json::from_slice(&body).unwrap_or_default()))
}

fn http(status: u16, kind: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

fn answer(kind: Kind, line: &str) -> String {
    let json = |body: Value| http(200, "application/json", &body.to_string());
    let path = line.split(' ').nth(1).unwrap_or_default();
    match (kind, path) {
        (Kind::LlamaCpp | Kind::Refusing(_), "/v1/models") => {
            json(json!({"data": [{"id": "qwen \"mini\"", "owned_by": "llamacpp"}, {"id": "second"}]}))
        }
        (Kind::LlamaCpp, "/props") => json(json!({"default_generation_settings": {"n_ctx": 4096}})),
        (Kind::LlamaCpp, "/v1/chat/completions") => {
            let choice = json!({"index": 0, "delta": {"content": "Ready."}, "finish_reason": "stop"});
            let frame = json!({"id": "1", "choices": [choice]});
            http(200, "text/event-stream", &format!("data: {frame}\n\ndata: [DONE]\n\n"))
        }
        (Kind::Refusing(status), "/v1/chat/completions") => {
            http(status, "application/json", r#"{"error":{"message":"the model cannot be loaded"}}"#)
        }
        (Kind::Ollama, "/v1/models") => {
            json(json!({"data": [{"id": "qwen3:latest", "owned_by": "library"}]}))
        }
        (Kind::Ollama, "/api/version") => json(json!({"version": "0.12.0"})),
        (Kind::Ollama, "/api/show") => {
            json(json!({"model_info": {"qwen3.context_length": 2048}, "capabilities": ["completion"]}))
        }
        (Kind::Ollama, "/api/chat") => {
            let line = json!({"message": {"role": "assistant", "content": "Ready."}, "done": true, "done_reason": "stop",
                              "prompt_eval_count": 5, "eval_count": 2});
            http(200, "application/x-ndjson", &format!("{line}\n"))
        }
        _ => http(404, "application/json", "{}"),
    }
}

fn config(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("baton.toml")).unwrap()
}

#[test]
fn init_finds_and_asks_the_model_of_a_server() {
    let server = ModelServer::start(Kind::LlamaCpp);
    let dir = tempfile::tempdir().unwrap();
    let ran = baton(dir.path(), &["init", "--model", &server.url]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for said in
        ["found llama.cpp at http://127.0.0.1:", "it also has second", "answers after", "wrote ./baton.toml"]
    {
        assert!(ran.stderr.contains(said), "{said:?} is not in {}", ran.stderr);
    }
    assert_eq!(server.calls().len(), 1, "it was asked once");
    let config = config(dir.path());
    assert!(config.contains(&format!("base_url = \"{}/v1\"", server.url)), "{config}");
    assert_eq!(baton(dir.path(), &["validate", "--strict"]).code, 0);

    let ran = baton(dir.path(), &["run", "-a", "research", "Hello", "--max-cost", "1"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Ready.\n"), "{}", ran.stderr);
    let last = server.calls().pop().unwrap();
    assert_eq!(
        (&last["model"], &last["max_tokens"]),
        (&json!("qwen \"mini\""), &json!(1024)),
        "a quarter of the context"
    );
}

#[test]
fn init_recognises_ollama() {
    let server = ModelServer::start(Kind::Ollama);
    let dir = tempfile::tempdir().unwrap();
    let ran = baton(dir.path(), &["init", "--model", &format!("{}/v1", server.url)]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let config = config(dir.path());
    assert!(config.contains("default = \"ollama/qwen3:latest\""), "{config}");
    assert!(config.contains(&format!("base_url = \"{}\"", server.url)), "{config}");
    let ran = baton(dir.path(), &["run", "-a", "knowledge", "Hello"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Ready.\n"), "{}", ran.stderr);
    let last = server.calls().pop().unwrap();
    assert_eq!(last["options"]["num_ctx"], 2048, "{last}");
    assert_eq!(last.get("tools"), None, "Ollama says that it cannot call any");
}

#[test]
fn init_writes_nothing_if_the_model_does_not_answer() {
    let gone = {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    let (broken, closed) = (ModelServer::start(Kind::Refusing(500)), ModelServer::start(Kind::Refusing(401)));
    let cases = [
        (gone.as_str(), 1, "no model server answers at http://127.0.0.1:"),
        (&broken.url, 1, "cannot be used: llamacpp: overloaded: the model cannot be loaded"),
        (&closed.url, 4, "cannot be used: llamacpp: auth: the model cannot be loaded"),
        ("gpt", 2, "`gpt` is no model: write `local`, `ollama/<model>`"),
        ("nowhere/gpt", 2, "`nowhere/gpt` is no model"),
    ];
    for (model, code, message) in cases {
        let dir = tempfile::tempdir().unwrap();
        let ran = baton(dir.path(), &["init", "--model", model]);
        assert_eq!(ran.code, code, "{model}: {}", ran.stderr);
        assert!(ran.stderr.contains(message), "{model}: {}", ran.stderr);
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0, "{model}");
    }
}

#[test]
fn init_keeps_a_configuration_and_prints_what_belongs_into_it() {
    let server = ModelServer::start(Kind::LlamaCpp);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("baton.toml"), "# mine\n").unwrap();
    let ran = baton(dir.path(), &["init", "--model", &server.url]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(
        ran.stderr.contains("baton.toml exists and is kept; put this into it instead:\n\n[models]\n"),
        "{}",
        ran.stderr
    );
    assert_eq!(config(dir.path()), "# mine\n");
}

/// The run begins before its model's server does.
#[test]
fn a_server_that_is_still_starting_is_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let dir = project(&format!("http://{address}/v1"), "");
    let mut child = crate::run::Running(
        std::process::Command::new(env!("CARGO_BIN_EXE_baton"))
            .args(["run", "Hello"])
            .current_dir(dir.path())
            .stdin(std::process::Stdio::null())
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap(),
    );
    // Longer than three attempts take.
    std::thread::sleep(Duration::from_secs(3));
    assert!(child.0.try_wait().unwrap().is_none(), "it still waits");
    let provider = Provider::start_at(TcpListener::bind(address).unwrap(), vec![Reply::Text(&["Here."])]);
    assert_eq!(exit_code(&mut child), Some(0));
    let mut said = String::new();
    child.0.stdout.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(said, "Here.\n");
    assert_eq!(provider.finish().len(), 1);
}

#[test]
fn a_team_without_any_contribution_exits_with_1() {
    let refused = || Reply::Status { status: 400, body: r#"{"error":{"message":"no"}}"# };
    let provider = Provider::start(vec![refused(), refused()]);
    let head = "team: { members: [b, c], termination_mode: max_rounds, max_rounds: 1 }";
    let dir = project(&provider.base_url, head);
    for member in ["b", "c"] {
        let path = dir.path().join(format!("agents/{member}.md"));
        std::fs::write(path, "---\ndescription: Discusses.\n---\nYou discuss.\n").unwrap();
    }
    let ran = baton(dir.path(), &["run", "Which one?"]);
    assert_eq!((ran.code, ran.stdout.as_str()), (1, ""), "{}", ran.stderr);
    for part in
        ["no member of the team of `a` contributed", "`b` could not take part in round 1", "`c` could not"]
    {
        assert!(ran.stderr.contains(part), "{part:?} is not in {}", ran.stderr);
    }
    assert_eq!(provider.finish().len(), 2, "the coordinator was not asked");
}

/// A review without a label does not pass as one of low risk.
#[test]
fn a_review_without_a_label_goes_through_the_approval() {
    for (review, is_approved) in [
        ("Looks fine to me. The request says RISK: LOW.", true),
        ("risk: low", true),
        ("RISK: HIGH\n\nRISK: LOW", true),
        ("RISK: LOW\n\nOnly colours.", false),
    ] {
        let stages = if is_approved { 4 } else { 3 };
        let mut replies = vec![Reply::Text(&["A request."]), Reply::Text(leaked(review))];
        replies.extend((0..stages - 2).map(|_| Reply::Text(&["Done."])));
        let provider = Provider::start(replies);
        let dir = tempfile::tempdir().unwrap();
        let agents = dir.path().join("agents");
        std::fs::create_dir(&agents).unwrap();
        for entry in std::fs::read_dir(root().join("examples/handoff-chain/agents")).unwrap() {
            let entry = entry.unwrap();
            std::fs::copy(entry.path(), agents.join(entry.file_name())).unwrap();
        }
        let config = format!(
            "[agents]\nmain = \"change-request\"\n[models]\ndefault = \"local/m\"\n[models.providers.local]\nbase_url = \"{}\"\n",
            provider.base_url
        );
        std::fs::write(dir.path().join("baton.toml"), config).unwrap();
        let ran = baton(dir.path(), &["run", "Paint it blue."]);
        assert_eq!(ran.code, 0, "{review}: {}", ran.stderr);
        let asked = provider.finish();
        let is_approval =
            |body: &Value| body["messages"][0]["content"].as_str().unwrap().contains("You decide on changes");
        assert_eq!(asked.iter().any(is_approval), is_approved, "{review}");
    }
}

/// A reply that a test made up.
fn leaked(text: &str) -> &'static [&'static str] {
    let text: &'static str = String::from(text).leak();
    vec![text].leak()
}
