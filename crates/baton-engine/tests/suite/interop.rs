//! Agents written with the official SDKs of A2A, in patterns of the real engine, over both transports.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use baton_a2a::client::{A2aAgents, ClientTimeouts};
use baton_core::HumanDuration;
use baton_core::agent::{AcceptsHandoff, Advisor, Agent, AgentKind, RemoteCard, Return};
use baton_core::message::Part;
use baton_core::remote::{Reachability, RemoteAgents};
use baton_core::store::{HandoffState, RunStatus};
use baton_engine::{Engine, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::handoffs::Talk;
use super::transfers::{asked_of, collaborates, transfer};
use super::{Setup, name};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// A server of an SDK. It ends with the test.
struct SdkServer {
    process: Child,
    card: String,
}

impl Drop for SdkServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl SdkServer {
    async fn start(sdk: &str, transport: &str) -> Self {
        let scripts = root().join("interop").join(sdk);
        let (language, version) = sdk.split_once('-').unwrap();
        let installer = if language == "python" { "pip" } else { "npm" };
        let packages = root().join(format!("target/{installer}/a2a-{version}"));
        assert!(packages.is_dir(), "the SDKs of A2A are not installed: run scripts/setup.sh test");
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut command = if language == "python" {
            let mut command = Command::new(packages.join("bin/python"));
            command.arg(scripts.join("server.py"));
            command
        } else {
            // Node.js looks for packages next to the script.
            let script = packages.join(format!("server-{port}.mjs"));
            std::fs::copy(scripts.join("server.mjs"), &script).unwrap();
            let folder = Command::new(root().join("scripts/node.sh")).output().unwrap().stdout;
            let folder = String::from_utf8(folder).unwrap();
            let mut command = Command::new(Path::new(folder.trim()).join("node"));
            command.arg(script);
            command
        };
        command.args([&port.to_string(), transport]).stdout(Stdio::null()).stderr(Stdio::inherit());
        let server = Self {
            process: command.spawn().unwrap(),
            card: format!("http://127.0.0.1:{port}/.well-known/agent-card.json"),
        };
        let far = server.agent();
        super::eventually(async || {
            let remote = client().connect(&far).unwrap();
            matches!(remote.reachability().await, Reachability::Reachable { .. })
        })
        .await;
        server
    }

    fn agent(&self) -> Agent {
        let mut far = super::named("far");
        far.kind = AgentKind::Remote { card: RemoteCard::Url(self.card.clone()), auth: None };
        far
    }

    /// `a` may involve the agent of this server, which is called `far`.
    fn setup(&self, model: &Scripted) -> Setup {
        let kind = self.agent().kind;
        let mut setup = Setup::new(model)
            .agent(|a| a.agents = vec![name("far")])
            .with("far", |far| far.kind = kind)
            .asked("hello");
        setup.remotes = Some(Arc::new(client()));
        setup
    }
}

fn client() -> A2aAgents {
    let timeouts = ClientTimeouts { poll: Duration::from_millis(100), ..ClientTimeouts::default() };
    A2aAgents::new(Arc::new(|_: &str| None), timeouts)
}

fn calls(mission: &str) -> Scripted {
    let call = ScriptedTurn::call("call_agent", &json!({"mission": mission, "specialist": "far"}));
    Scripted::default().script("a", [call, ScriptedTurn::text("Done.")])
}

fn told(model: &Scripted) -> String {
    asked_of(model, "a").last().map(|last| format!("{:?}", last.messages)).unwrap_or_default()
}

async fn is_called(server: &SdkServer) {
    for (mission, expected) in [
        ("hello", "Echo: hello"),
        ("please-fail", "It broke."),
        ("please-reject", "Not my job."),
        ("äöü ✓", "Echo: äöü ✓"),
    ] {
        let model = calls(mission);
        let ran = server.setup(&model).run().await;
        assert_eq!(ran.answer(), "Done.");
        assert!(told(&model).contains(expected), "{mission}: {}", told(&model));
    }
}

async fn asks_the_user(server: &SdkServer) {
    let model = calls("please-ask");
    let (parts, request) = server.setup(&model).parts().await;
    let engine = Engine::new(parts);
    let end = engine.start(request.clone()).await.unwrap().finish().await;
    assert_eq!(end.status, RunStatus::Waiting, "{:?} {}", end.failure, told(&model));
    assert_eq!(end.waits_for[0].preview.heading, "Which colour?");
    let answer = RunRequest { input: vec![Part::text("blue")], ..request };
    let end = engine.start(answer).await.unwrap().finish().await;
    assert_eq!(end.status, RunStatus::Completed);
    assert!(told(&model).contains("You chose blue."), "{}", told(&model));
}

async fn works_in_patterns(server: &SdkServer) {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Advised.")]);
    let advisor = Advisor { agent: name("far"), required: true, timeout: HumanDuration::from_secs(30) };
    let advised = server.setup(&model).agent(|a| a.advisors.agents = vec![advisor]).run().await;
    assert_eq!(advised.answer(), "Advised.");
    assert!(told(&model).contains("Echo: "), "{}", told(&model));

    let model = Scripted::default().script("a", [ScriptedTurn::text("Agreed.")]);
    let team = server.setup(&model).agent(|a| {
        a.agents = Vec::new();
        a.team = Some(super::team::rounds(&["far"], 1));
    });
    let ran = team.run().await;
    assert_eq!(ran.answer(), "Agreed.");
    assert!(ran.log().contains("far in round 1: \"Echo: "), "{}", ran.log());

    let model = Scripted::default().script("a", [ScriptedTurn::text("A draft.")]);
    let ran = server.setup(&model).agent(|a| super::chain::hands_to(a, "far")).run().await;
    assert!(ran.answer().starts_with("Echo: ") && ran.answer().contains("A draft."), "{}", ran.answer());
}

async fn holds_a_thread(server: &SdkServer) {
    let model = Scripted::default().script("a", [transfer("far"), ScriptedTurn::text("Back.")]);
    let mut setup = server.setup(&model).agent(|a| collaborates(a, &["far"]));
    setup.others[0].accepts_handoff =
        Some(AcceptsHandoff { returns: Return::OnComplete, ..AcceptsHandoff::default() });
    let talk = Talk::new(setup).await;
    let first = talk.say("please-ask").await;
    assert!(first.answer().contains("Which colour?"), "{}", first.log());
    assert_eq!(talk.holder().await, "far");
    let last = talk.say("green").await;
    assert_eq!(last.answer(), "Back.", "{}", last.log());
    assert_eq!(talk.holder().await, "a");
    let ended = talk.store().handoffs(talk.request.caller.thread_id).await.unwrap().remove(0);
    assert_eq!(ended.state, HandoffState::Completed);
    assert_eq!(ended.result_summary.as_deref(), Some("You chose green."));
}

async fn is_cancelled(server: &SdkServer) {
    let mut setup = server.setup(&Scripted::default()).asked("please-wait");
    setup.agent = Agent { name: name("a"), ..server.agent() };
    let run = setup.start().await;
    tokio::time::sleep(Duration::from_millis(700)).await;
    run.cancel();
    assert_eq!(run.finish().await.status, RunStatus::Cancelled);
}

/// D11: an agent of each SDK works in the patterns, asks, holds a thread and is cancelled.
async fn every_pattern(sdk: &str, transport: &str) {
    let server = SdkServer::start(sdk, transport).await;
    is_called(&server).await;
    asks_the_user(&server).await;
    works_in_patterns(&server).await;
    holds_a_thread(&server).await;
    is_cancelled(&server).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_python_0_3_over_json_rpc() {
    every_pattern("python-0.3", "jsonrpc").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_python_0_3_over_rest() {
    every_pattern("python-0.3", "rest").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_python_1_over_json_rpc() {
    every_pattern("python-1.3", "jsonrpc").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_python_1_over_rest() {
    every_pattern("python-1.3", "rest").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_javascript_0_3_over_json_rpc() {
    every_pattern("js-0.3", "jsonrpc").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_javascript_0_3_over_rest() {
    every_pattern("js-0.3", "rest").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_javascript_1_over_json_rpc() {
    every_pattern("js-1.3", "jsonrpc").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn d11_javascript_1_over_rest() {
    every_pattern("js-1.3", "rest").await;
}
