//! Two servers: the assistant of one hands the conversation to the skill creator of the other over A2A, and gets it back.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::person::Person;
use super::walk::{answer, slack_alert};
use super::{CONNECTING, LEFT, MODE, WISH, project, skill};
use crate::provider::{Provider, Reply};
use crate::served::Served;

/// A fixed address for a server that is started again on another port.
struct Proxy {
    address: String,
    target: Arc<Mutex<String>>,
}

impl Proxy {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let target = Arc::new(Mutex::new(String::new()));
        let current = Arc::clone(&target);
        // Its threads end with the test's process.
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let target = current.lock().unwrap().clone();
                std::thread::spawn(move || {
                    let Ok(server) = TcpStream::connect(target) else { return };
                    let (back, forth) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                    std::thread::spawn(move || copy(&client, &server));
                    copy(&back, &forth);
                });
            }
        });
        Self { address, target }
    }

    fn leads_to(&self, served: &Served) {
        self.target.lock().unwrap().clone_from(&served.address);
    }
}

fn copy(mut from: &TcpStream, mut to: &TcpStream) {
    let mut bytes = [0; 8192];
    while let Ok(count @ 1..) = from.read(&mut bytes) {
        if to.write_all(&bytes[..count]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

/// The folders of both servers, and what leads from the first to the second.
struct Pair {
    near: TempDir,
    far: TempDir,
    proxy: Proxy,
}

impl Pair {
    /// In the first folder, the skill creator is the one of the second server.
    fn new() -> Self {
        let proxy = Proxy::new();
        let far = project(&format!("[a2a]\npublic_url = \"http://{}\"\n", proxy.address));
        let near = project("");
        let file = near.path().join("agents/skill-creator.md");
        let local = std::fs::read_to_string(&file).unwrap();
        let from = local.find("accepts_handoff:").unwrap();
        let terms = &local[from..local.find("approvals:").unwrap()];
        let remote = format!(
            "---\nname: skill-creator\ndisplay_name: Skill Creation Assistant\ndescription: Builds skills.\nkind: remote\n\
             agent_card_url: http://{}/a2a/skill-creator\n{terms}---\n",
            proxy.address
        );
        std::fs::write(file, remote).unwrap();
        Self { near, far, proxy }
    }

    fn start_far(&self) -> Served {
        let served = Served::start_logged(self.far.path(), &[]);
        self.proxy.leads_to(&served);
        served
    }

    fn start_near(&self) -> Served {
        Served::start_logged(self.near.path(), &[])
    }

    fn skill(&self) -> Option<String> {
        skill(self.far.path(), "default", "slack-alert")
    }
}

fn kill(mut served: Served) {
    served.child.kill().unwrap();
    served.child.wait().unwrap();
}

/// C-3, C-4, C-5, C-9, D11: the user completes the workflow of the far agent through the near server; the thread and the artifact
/// return, and the cost is known.
#[test]
fn c03_skill_is_made_on_another_server() {
    let pair = Pair::new();
    let (far, near) = (pair.start_far(), pair.start_near());
    let ada = Person::new(&near);
    let begun = ada.say(WISH);
    assert!(begun.is_well(), "{:?}", begun.events);
    assert_eq!(begun.sentences(), [CONNECTING, MODE]);
    assert_eq!(begun.speakers(), ["Assistant", "Skill Creation Assistant"], "{:?}", begun.texts());
    assert!(begun.said().contains("Slack alerts"), "{}", begun.said());
    assert_eq!(ada.context()["handoff_target_agent"], "skill-creator");
    let (keys, last) = answer(&ada, &slack_alert("Slack Alert"), begun.said(), "");
    assert!(keys.len() >= 5, "one question at a time: {keys:?}");
    assert!(pair.skill().is_some(), "the far server saved it: {last}");
    let context = ada.context();
    assert_eq!(context["is_handoff_active"], false, "{context}");
    let handoffs = ada.get(&ada.path("/handoffs"));
    assert_eq!(handoffs["data"][0]["state"], "completed", "{handoffs}");
    assert!(last.to_lowercase().contains("slack"), "the result returns: {last}");
    let runs = ada.get(&format!("/api/v1/runs?thread_id={}", ada.thread));
    let costs_known = runs["data"].as_array().unwrap().iter().all(|run| run["usage"]["cost_known"] == true);
    assert!(costs_known, "the far server reports what its agent uses: {runs}");
    drop(far);
}

/// D11: each server is killed while the far agent holds the thread. The conversation goes on where it was.
#[test]
fn d11_handoff_survives_the_death_of_either_server() {
    let pair = Pair::new();
    let (far, near) = (pair.start_far(), pair.start_near());
    let ada = Person::new(&near);
    let first = ada.say(WISH).said();
    kill(far);
    let down = ada.say("Read the report");
    assert!(!down.is_well(), "the run fails because the agent is down: {:?}", down.events);
    let far = pair.start_far();
    kill(near);
    let near = pair.start_near();
    let ada = ada.at(&near);
    assert_eq!(ada.context()["handoff_target_agent"], "skill-creator");
    let (_, last) = answer(&ada, &slack_alert("Slack Alert"), first, "");
    assert!(pair.skill().is_some(), "{last}");
    assert_eq!(ada.context()["is_handoff_active"], false);
    drop(far);
}

/// C-3: an agent that declines leaves the thread where it is, and the user learns the reason.
#[test]
fn c03_far_agent_declines() {
    let pair = Pair::new();
    let far = pair.start_far();
    let near = pair.start_near();
    let ada = Person::new(&near);
    // The same conversation is in the hands of the far agent already.
    let there = Person::new(&far);
    let busy = there.say(WISH);
    assert!(busy.is_well());
    let card = there.get("/a2a/skill-creator/.well-known/agent-card.json");
    assert_eq!(card["name"], "Skill Creation Assistant", "{card}");
    let ada = ada.in_thread(&there.thread);
    let declined = ada.say(WISH);
    assert_eq!(ada.context()["is_handoff_active"], false);
    let heard = format!("{:?}", declined.events);
    assert!(heard.contains("finish that first"), "the answer has the reason: {heard}");
}

/// D11: the command line says whether the far agent can be reached.
#[test]
fn d11_agents_show_names_the_card() {
    let pair = Pair::new();
    let far = pair.start_far();
    let shown = crate::baton(pair.near.path(), &["agents", "show", "skill-creator"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(shown.stdout.contains("reachable at 127.0.0.1"), "{}", shown.stdout);
    assert!(shown.stdout.contains("Skill Creation Assistant"), "{}", shown.stdout);
    kill(far);
    let shown = crate::baton(pair.near.path(), &["agents", "show", "skill-creator"]).stdout;
    assert!(shown.contains("not reachable: "), "{shown}");
}

/// The user leaves while the far server is gone.
#[test]
fn leaving_needs_no_far_server() {
    let pair = Pair::new();
    let (far, near) = (pair.start_far(), pair.start_near());
    let ada = Person::new(&near);
    ada.say(WISH);
    kill(far);
    let left = ada.say("exit");
    assert_eq!(left.sentences(), [LEFT], "{:?}", left.events);
    assert_eq!(ada.context()["is_handoff_active"], false);
}

/// A project with one agent whose model has a price.
fn priced(provider: &Provider, head: &str) -> TempDir {
    let dir = crate::run::project(&provider.base_url, head);
    let config = dir.path().join("baton.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}price = {{ input = 1, output = 10 }}\n")).unwrap();
    dir
}

/// What the far server used is part of what the near server reports, in tokens and in money.
#[test]
fn d11_usage_of_another_server_adds_up() {
    let far_provider = Provider::start(vec![Reply::Text(&["Forty-two."])]);
    let far_dir = priced(&far_provider, "");
    let far = Served::start(far_dir.path());
    let call =
        Reply::Call { tool: "call_agent", arguments: r#"{"specialist": "far", "mission": "How many?"}"# };
    let near_provider = Provider::start(vec![call, Reply::Text(&["It is forty-two."])]);
    let near_dir = priced(&near_provider, "agents: [far]");
    let remote = format!(
        "---\ndescription: Elsewhere.\nkind: remote\nagent_card_url: http://{}/a2a/a\n---\n",
        far.address
    );
    std::fs::write(near_dir.path().join("agents/far.md"), remote).unwrap();
    let near = Served::start(near_dir.path());
    let path = format!("/api/v1/threads/{}/messages", uuid::Uuid::new_v4());
    let text = near.read("POST", &path, "application/json", r#"{"content": "How many?"}"#);
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    let answered: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {text}"));
    let own = |server: &Served| {
        let runs = server.get("/api/v1/runs");
        runs["data"][0]["usage"].clone()
    };
    let (far_usage, usage) = (own(&far), &answered["usage"]);
    assert_eq!(far_usage["input_tokens"], 12, "{far_usage}");
    assert_eq!((&usage["input_tokens"], &usage["output_tokens"]), (&json!(36), &json!(9)), "{answered}");
    assert_eq!((&usage["cost_known"], &usage["cost_usd"]), (&json!(true), &json!("0.000126")), "three calls");
    assert_eq!(far_usage["cost_usd"], "0.000042", "one of them");
    near_provider.finish();
    far_provider.finish();
}
