//! Two tenants of one server: what `[tenants.<name>]` gives to one of them, the other cannot see, name or use.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;
use uuid::Uuid;

use crate::baton;
use crate::provider::{Provider, Reply};
use crate::served::{Served, ask};

const AUTH: &str = "[auth]\nmode = \"required\"\n";

/// A person of a tenant, with an API key.
struct Client {
    address: String,
    key: String,
    thread: String,
}

struct Response {
    status: u16,
    head: String,
    body: String,
}

impl Client {
    fn new(dir: &Path, served: &Served, tenant: &str) -> Self {
        let made = baton(dir, &["keys", "create", "--tenant", tenant, "--user", "ada", "--role", "admin"]);
        assert_eq!(made.code, 0, "{}", made.stderr);
        let (address, thread) = (served.address.clone(), Uuid::new_v4().to_string());
        Self { address, key: made.stdout.trim().to_owned(), thread }
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> Response {
        let accept = format!("application/json\r\nAuthorization: Bearer {}", self.key);
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let mut text = String::new();
        ask(&self.address, method, path, &accept, &body).read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        Response { status, head: head.to_lowercase(), body: body.to_owned() }
    }

    fn get(&self, path: &str) -> Response {
        self.ask("GET", path, &Value::Null)
    }

    fn say(&self, message: &Value) -> Response {
        self.ask("POST", &format!("/api/v1/threads/{}/messages", self.thread), message)
    }
}

impl Response {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }
}

fn project(config: &str, agents: &[(&str, &str)]) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("baton.toml"), format!("{AUTH}{config}")).unwrap();
    fs::create_dir(dir.path().join("agents")).unwrap();
    for (name, head) in agents {
        let text =
            format!("---\nname: {name}\ndescription: Answers as {name}.\n{head}---\nYou are {name}.\n");
        fs::write(dir.path().join("agents").join(format!("{name}.md")), text).unwrap();
    }
    dir
}

/// `acme` has an agent that `globex` does not have, and the desk of both refers to it in every way.
fn two_tenants() -> TempDir {
    let desk = "agents: [acme-secret, globex-own, common-help]\n\
                collaborations:\n  - agent: acme-secret\n    when: it is a secret\n  - agent: common-help\n\
                handoffs:\n  - label: Go\n    agent: acme-secret\n";
    let config = "[agents]\nmain = \"common-desk\"\n\
                  [tenants.acme]\nagents = [\"acme-*\", \"common-*\"]\nmain = \"acme-secret\"\n\
                  [tenants.globex]\nagents = [\"globex-own\", \"common-*\"]\n";
    let takes = "accepts_handoff: true\n";
    project(
        config,
        &[("common-desk", desk), ("common-help", ""), ("acme-secret", takes), ("globex-own", takes)],
    )
}

#[test]
fn a8_agent_of_another_tenant_is_not_seen() {
    let dir = two_tenants();
    let served = Served::start(dir.path());
    let [acme, globex] = ["acme", "globex"].map(|tenant| Client::new(dir.path(), &served, tenant));
    let names = |client: &Client| -> Vec<String> {
        let listed = client.get("/api/v1/agents?all=true").json();
        listed["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&acme), ["acme-secret", "common-desk", "common-help"]);
    assert_eq!(names(&globex), ["common-desk", "common-help", "globex-own"]);
    for path in [
        "/api/v1/agents?all=true",
        "/api/v1/agents/common-desk",
        "/api/v1/agents/common-desk/prompt",
        "/api/v1/agents/common-desk/card",
        "/api/v1/graph",
        "/api/v1/graph?agent=common-desk",
        "/api/v1/roster",
        "/api/v1/system",
        "/api/v1/agents/acme-secre",
        "/.well-known/agent-card.json",
        "/a2a/common-desk/.well-known/agent-card.json",
    ] {
        let seen = globex.get(path);
        assert!(!seen.body.contains("acme-secret"), "{path}: {}", seen.body);
        assert!(seen.status == 200 || path.ends_with("secre"), "{path}: {} {}", seen.status, seen.body);
    }
    assert!(acme.get("/api/v1/agents/common-desk/prompt").body.contains("acme-secret"));
    assert_eq!(globex.get("/api/v1/roster").json()["agents"], 3);
}

#[test]
fn a8_agent_of_another_tenant_cannot_be_used() {
    let dir = two_tenants();
    let served = Served::start(dir.path());
    let [acme, globex] = ["acme", "globex"].map(|tenant| Client::new(dir.path(), &served, tenant));
    assert_eq!(acme.get("/api/v1/agents/acme-secret").status, 200);
    let thread = format!("/api/v1/threads/{}", globex.thread);
    assert_eq!(globex.say(&json!({ "content": "Hello" })).status, 200, "the thread exists");
    let rpc = json!({
        "jsonrpc": "2.0", "id": 1, "method": "message/send",
        "params": { "message": { "kind": "message", "role": "user", "messageId": "m1", "parts": [{ "kind": "text", "text": "Hi" }] } },
    });
    for (method, path, body) in [
        ("GET", "/api/v1/agents/acme-secret".to_owned(), Value::Null),
        ("GET", "/api/v1/agents/acme-secret/prompt".to_owned(), Value::Null),
        ("GET", "/api/v1/agents/acme-secret/card".to_owned(), Value::Null),
        ("GET", "/api/v1/agents/common-desk/prompt?from=acme-secret".to_owned(), Value::Null),
        ("GET", "/api/v1/graph?agent=acme-secret".to_owned(), Value::Null),
        ("GET", "/a2a/acme-secret/.well-known/agent-card.json".to_owned(), Value::Null),
        ("POST", "/a2a/acme-secret".to_owned(), rpc),
        ("POST", format!("{thread}/messages"), json!({ "content": "Hi", "agent": "acme-secret" })),
        ("POST", format!("{thread}/delegations"), json!({ "agents": ["acme-secret"], "message": "Hi" })),
        (
            "POST",
            format!("{thread}/handoff"),
            json!({ "target_agent_id": "acme-secret", "handoff_reason": "wanted" }),
        ),
    ] {
        let refused = globex.ask(method, &path, &body);
        assert_eq!(refused.status, 404, "{method} {path}: {}", refused.body);
        assert!(refused.body.contains("agent_not_found"), "{method} {path}: {}", refused.body);
        let unknown = refused.body.replace("acme-secret", "NAME");
        let path = path.replace("acme-secret", "no-such-agent");
        let body = serde_json::from_str(&body.to_string().replace("acme-secret", "no-such-agent")).unwrap();
        let other = globex.ask(method, &path, &body).body.replace("no-such-agent", "NAME");
        let without_trace = |text: &str| {
            let mut value: Value = serde_json::from_str(text).unwrap();
            value.as_object_mut().unwrap().retain(|key, _| key != "trace_id" && key != "instance");
            value
        };
        assert_eq!(without_trace(&unknown), without_trace(&other), "{path}: as for one that does not exist");
    }
    let answered = acme.say(&json!({ "content": "Hello" }));
    assert_eq!(
        (answered.status, &answered.json()["agent"]),
        (200, &json!("acme-secret")),
        "{}",
        answered.body
    );
}

#[test]
fn rate_limit_and_concurrent_runs_are_those_of_the_tenant() {
    let config =
        "[tenants.acme.limits]\nrequests_per_minute = 3\n[tenants.idle.limits]\nmax_concurrent_runs = 0\n";
    let dir = project(config, &[("assistant", "")]);
    let served = Served::start(dir.path());
    let client = |tenant| Client::new(dir.path(), &served, tenant);
    let (acme, idle, globex) = (client("acme"), client("idle"), client("globex"));
    let first = acme.get("/api/v1/agents");
    assert!(first.head.contains("ratelimit-policy: \"tenant\";q=3;w=60"), "{}", first.head);
    let rest: Vec<u16> = (0..3).map(|_| acme.get("/api/v1/agents").status).collect();
    assert_eq!(rest, [200, 200, 429]);
    assert!((0..5).all(|_| globex.get("/api/v1/agents").status == 200));
    let refused = idle.say(&json!({ "content": "Hello" }));
    assert_eq!((refused.status, &refused.json()["code"]), (429, &json!("too_many_runs")), "{}", refused.body);
    assert_eq!(globex.say(&json!({ "content": "Hello" })).status, 200);
}

#[test]
fn budgets_and_default_model_are_those_of_the_tenant() {
    let provider = Provider::start(vec![Reply::Text(&["From the small model."])]);
    let config = format!(
        "[models.providers.local]\nbase_url = \"{}\"\n[budgets.tenant]\nday = {{ max_tokens = 1_000_000 }}\n\
         [tenants.acme]\nmodel = \"local/small\"\n\
         [tenants.poor.budgets.tenant]\nday = {{ max_tokens = 0 }}\n",
        provider.base_url
    );
    let dir = project(&config, &[("assistant", "")]);
    let served = Served::start(dir.path());
    let client = |tenant| Client::new(dir.path(), &served, tenant);
    let (acme, poor, globex) = (client("acme"), client("poor"), client("globex"));
    let small = acme.say(&json!({ "content": "Hello" }));
    assert!(small.body.contains("From the small model."), "{}", small.body);
    let offline = globex.say(&json!({ "content": "Hello" }));
    assert!(offline.status == 200 && !offline.body.contains("small model"), "{}", offline.body);
    let model = |client: &Client| client.get("/api/v1/system").json()["default_model"].clone();
    assert_eq!((model(&acme), model(&globex)), (json!("local/small"), json!("offline/offline")));

    let limit = |client: &Client| client.get("/api/v1/usage").json()["budgets"][0]["max_tokens"].clone();
    assert_eq!((limit(&poor), limit(&globex)), (json!(0), json!(1_000_000)));
    let refused = poor.say(&json!({ "content": "Hello" }));
    assert!(refused.body.contains("budget"), "{}", refused.body);
    provider.finish();
}

/// On both stores: a skill that another process saves is there at once, for its tenant and for no other.
#[test]
fn a19_skill_of_another_tenant_is_not_there() {
    for store in [String::new(), format!("[store]\nurl = \"{}\"\n", crate::postgres::new_span_id())] {
        let dir = project(&store, &[("assistant", "skills: all\n")]);
        let served = Served::start(dir.path());
        let [acme, globex] = ["acme", "globex"].map(|tenant| Client::new(dir.path(), &served, tenant));
        let folder = dir.path().join("made/secret-sauce");
        fs::create_dir_all(&folder).unwrap();
        let text = "---\nname: secret-sauce\ndescription: Cooks the secret sauce.\n---\nStir.\n";
        fs::write(folder.join("SKILL.md"), text).unwrap();
        let imported = baton(dir.path(), &["skills", "import", "made/secret-sauce", "--tenant", "acme"]);
        assert_eq!(imported.code, 0, "{}", imported.stderr);
        assert_eq!(acme.get("/api/v1/skills/secret-sauce").json()["text"], json!(text));
        for path in ["/api/v1/skills", "/api/v1/agents/assistant/prompt"] {
            assert!(acme.get(path).body.contains("secret-sauce"), "{path}");
            assert!(!globex.get(path).body.contains("secret-sauce"), "{path}");
        }
        let foreign = globex.get("/api/v1/skills/secret-sauce");
        assert_eq!((foreign.status, &foreign.json()["code"]), (404, &json!("not_found")));
        let answered = globex.say(&json!({ "content": "Please cook the secret sauce" }));
        assert!(!answered.body.contains("secret-sauce"), "{}", answered.body);
        let stolen = baton(dir.path(), &["skills", "export", "secret-sauce", "out", "--tenant", "globex"]);
        assert_eq!(stolen.code, 1, "{}", stolen.stdout);
    }
}

/// A section that cannot work is refused at the start, with its line.
#[test]
fn mistakes_in_a_tenants_section_name_their_line() {
    let dir = project(
        "[tenants.acme]\nmodel = \"fast\"\nagents = [\"assistant\", \"suport\"]\n",
        &[("assistant", "")],
    );
    for args in [&["serve", "--listen", "127.0.0.1:0"][..], &["run", "Hello"], &["validate"]] {
        let ran = baton(dir.path(), args);
        let said = format!("{}{}", ran.stdout, ran.stderr);
        assert_eq!(ran.code, 3, "{args:?}: {said}");
        assert!(said.contains("there is no agent `suport`"), "{args:?}: {said}");
        assert!(said.contains("line 5") || said.contains("baton.toml:5:"), "{args:?}: {said}");
    }
    for (wrong, expected) in [
        ("[tenants.acme]\nagent = []\n", "unknown field `agent`"),
        ("[tenants.acme.limits]\nrequests_per_minute = 0\n", "nonzero"),
        ("[tenants.acme]\nagents = [\"Not A Name\"]\n", "is not the name of an agent"),
        ("[tenants.\"\"]\nmodel = \"fast\"\n", "tenant"),
    ] {
        fs::write(dir.path().join("baton.toml"), wrong).unwrap();
        let ran = baton(dir.path(), &["validate"]);
        assert!(ran.code != 0 && ran.stderr.contains(expected), "{wrong}: {}", ran.stderr);
    }
}

fn add_agent(dir: &Path, folder: &str, name: &str) {
    fs::create_dir_all(dir.join(folder)).unwrap();
    let text = format!("---\nname: {name}\ndescription: Answers as {name}.\n---\nYou are {name}.\n");
    fs::write(dir.join(folder).join(format!("{name}.md")), text).unwrap();
}

fn listed(client: &Client) -> Vec<String> {
    let listed = client.get("/api/v1/agents?all=true").json();
    listed["data"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

fn until_listed(client: &Client, expected: &[&str]) {
    let until = std::time::Instant::now() + crate::served::LONG;
    while listed(client) != expected {
        assert!(std::time::Instant::now() < until, "{:?} is never {expected:?}", listed(client));
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

fn until_status(client: &Client, expected: &str) {
    let until = std::time::Instant::now() + crate::served::LONG;
    while client.get("/api/v1/roster").json()["status"] != expected {
        assert!(std::time::Instant::now() < until, "the roster is never {expected}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

const OWN_FOLDER: &str = "[agents]\nmain = \"desk\"\n[tenants.acme]\nagent_dirs = [\"of-acme\"]\n";

/// A8: the agents of a tenant's folder are seen and used by this tenant only, together with those for all, and follow their files.
#[test]
fn a8_agents_of_a_tenants_folder_are_its_own() {
    let dir = project(OWN_FOLDER, &[("desk", "")]);
    add_agent(dir.path(), "of-acme", "acme-own");
    let served = Served::start(dir.path());
    let [acme, globex] = ["acme", "globex"].map(|tenant| Client::new(dir.path(), &served, tenant));
    assert_eq!(listed(&acme), ["acme-own", "desk"]);
    assert_eq!(listed(&globex), ["desk"]);
    assert_eq!(globex.get("/api/v1/agents/acme-own").status, 404);
    assert!(!globex.get("/api/v1/agents/acme-ow").body.contains("acme-own"), "not even as a similar name");
    for path in ["/api/v1/graph", "/api/v1/roster", "/api/v1/system"] {
        assert!(!globex.get(path).body.contains("acme-own"), "{path}");
    }
    assert_eq!(acme.get("/api/v1/agents/acme-own").status, 200);
    assert!(acme.get("/api/v1/graph").body.contains("acme-own"));
    let message = json!({ "content": "Hello", "agent": "acme-own" });
    let answered = acme.say(&message);
    assert_eq!(
        (answered.status, &answered.json()["status"]),
        (200, &json!("completed")),
        "{}",
        answered.body
    );
    assert_eq!(globex.say(&message).status, 404);
    // New files of either folder.
    add_agent(dir.path(), "of-acme", "acme-second");
    until_listed(&acme, &["acme-own", "acme-second", "desk"]);
    add_agent(dir.path(), "agents", "help");
    until_listed(&globex, &["desk", "help"]);
    until_listed(&acme, &["acme-own", "acme-second", "desk", "help"]);
}

/// A8: a tenant's folder that is broken or missing concerns no other tenant, also at the start.
#[test]
fn a8_broken_folder_of_a_tenant_concerns_no_other() {
    let dir = project(OWN_FOLDER, &[("desk", "")]);
    // The name of an agent for all.
    add_agent(dir.path(), "of-acme", "desk");
    let checked = baton(dir.path(), &["validate"]);
    assert!(checked.code != 0 && checked.stdout.contains("of-acme"), "{}", checked.stdout);
    let served = Served::start(dir.path());
    let [acme, globex] = ["acme", "globex"].map(|tenant| Client::new(dir.path(), &served, tenant));
    assert_eq!((listed(&acme), listed(&globex)), (vec!["desk".to_owned()], vec!["desk".to_owned()]));
    until_status(&acme, "last_good");
    let globex_roster = globex.get("/api/v1/roster");
    assert_eq!(globex_roster.json()["status"], "current");
    assert!(!globex_roster.body.contains("of-acme"), "{}", globex_roster.body);
    let answered = globex.say(&json!({ "content": "Hello" }));
    assert_eq!(
        (answered.status, &answered.json()["status"]),
        (200, &json!("completed")),
        "{}",
        answered.body
    );
    fs::remove_file(dir.path().join("of-acme/desk.md")).unwrap();
    add_agent(dir.path(), "of-acme", "acme-own");
    until_listed(&acme, &["acme-own", "desk"]);
    until_status(&acme, "current");
    // Broken again while it runs: the last good ones stay, and changes for all reach the others.
    add_agent(dir.path(), "of-acme", "desk");
    until_status(&acme, "last_good");
    add_agent(dir.path(), "agents", "help");
    until_listed(&globex, &["desk", "help"]);
    assert_eq!(listed(&acme), ["acme-own", "desk"]);
    fs::remove_dir_all(dir.path().join("of-acme")).unwrap();
    assert_eq!(globex.get("/api/v1/roster").json()["status"], "current");
    add_agent(dir.path(), "of-acme", "acme-new");
    until_listed(&acme, &["acme-new", "desk", "help"]);
}
