//! Who gets what from whom: every route of the description with every wrong credential. A route that comes later is in the matrix
//! as soon as it is described; if it needs something to point at, the matrix says what is missing.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;

use baton_core::store::{HandoffNotes, HandoffSession, HandoffState, NewHandoff};
use baton_core::{AgentName, HandoffId, TenantId, ThreadId, UserId};
use baton_models::scripted::{Scripted, ScriptedTurn};
use baton_server::identity::roles::{INSTALLATION, Roles};
use http::Method;
use jiff::{SignedDuration, Timestamp};
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::parked;
use crate::site::{Plan, Site};
use crate::skills::Made;

/// Said and written only by Ada. Whoever else gets to see it has found a leak.
const SECRET: &str = "pineapple-7731";

/// A skill that people of her tenant made.
const SKILL: &str = "grow-pineapples";

/// Somebody who asks, and what they are to Ada.
struct Asker {
    who: &'static str,
    key: Option<String>,
}

/// What one request came to.
#[derive(Debug, PartialEq)]
struct Seen {
    status: u16,
    headers: BTreeMap<String, String>,
    body: String,
}

/// A route of the description.
struct Route {
    method: Method,
    path: String,
    requirement: String,
}

/// What Ada owns, by the names of parameters.
type Belongings = BTreeMap<&'static str, String>;

/// A8, A9, A11, A17, A20, H1, H9, I3, I11
#[tokio::test]
async fn no_route_gives_anybody_what_is_not_theirs() {
    let site = site().await;
    let ada = site.key("acme", "ada", &["user", "builder"]).await;
    let admin = site.key("acme", "root", &["admin"]).await;
    let askers = [
        Asker { who: "nobody", key: None },
        Asker { who: "wrong tenant", key: Some(site.key("globex", "ada", &["admin"]).await) },
        Asker { who: "wrong user", key: Some(site.key("acme", "bob", &["user", "builder"]).await) },
        Asker { who: "no permission", key: Some(site.key("acme", "ada", &["powerless"]).await) },
    ];
    let owned = belongings(&site, &ada).await;
    let document: Value =
        authorized(&site, Some(&admin), Method::GET, "/openapi.json", None).await.json().await.unwrap();
    let routes = routes(&document);
    assert!(routes.len() > 20, "the description is nearly empty");
    for route in &routes {
        for asker in &askers {
            check(&site, route, asker, &owned).await;
        }
    }
    // After all that, what is hers is still there.
    for (path, status) in [
        ("/api/v1/threads/{thread_id}", 200),
        ("/api/v1/runs/{run_id}", 200),
        ("/api/v1/artifacts/{artifact_id}", 200),
        ("/api/v1/skills/{skill}", 200),
    ] {
        let mine = authorized(&site, Some(&ada), Method::GET, &filled(path, &owned), None).await;
        assert_eq!(mine.status(), status, "{path}");
    }
    let carols = authorized(&site, Some(&admin), Method::GET, "/api/v1/threads?user_id=carol", None).await;
    let carols: Value = carols.json().await.unwrap();
    assert_eq!(carols["data"].as_array().map(Vec::len), Some(1), "she was not erased: {carols}");
    site.end().await;
}

async fn site() -> Site {
    let model =
        Scripted::default().script("assistant", [ScriptedTurn::text(SECRET), ScriptedTurn::text(SECRET)]);
    let nobody = |settings: &mut baton_server::ServerSettings| {
        settings.auth.roles.insert("powerless".to_owned(), Vec::new());
        settings.limits.requests_per_minute = NonZeroU32::MAX;
    };
    let skills = Arc::new(Made::by("acme", SKILL, &format!("Grows {SECRET}.")));
    Plan::new(&model).required().settings(nobody).skills(skills).start().await
}

/// A user of her tenant with a thread of their own, to erase and export.
async fn other_user(site: &Site) -> String {
    let key = site.key("acme", "carol", &["user"]).await;
    let path = format!("/api/v1/threads/{}/messages", Uuid::new_v4());
    let sent = site.http.post(site.url(&path)).bearer_auth(key).header("accept", "application/json");
    sent.json(&json!({ "content": SECRET })).send().await.unwrap().error_for_status().unwrap();
    "carol".to_owned()
}

/// Ada's thread with a message, its run, a file, and whatever else a route can point at.
async fn belongings(site: &Site, ada: &str) -> Belongings {
    let thread = Uuid::new_v4().to_string();
    let body = json!({ "content": SECRET });
    let path = format!("/api/v1/threads/{thread}/messages");
    let answer =
        site.http.post(site.url(&path)).bearer_auth(ada).header("accept", "application/json").json(&body);
    let answer: Value = answer.send().await.unwrap().json().await.unwrap();
    let file = upload(site, "/api/v1/artifacts", Some(ada), &thread, SECRET).await;
    let file: Value = file.json().await.unwrap();
    let text =
        |value: &Value| value.as_str().unwrap_or_else(|| panic!("an id in {answer} or {file}")).to_owned();
    BTreeMap::from([
        ("thread_id", thread.clone()),
        ("run_id", text(&answer["run_id"])),
        ("message_id", text(&answer["message"]["message_id"])),
        ("artifact_id", text(&file["artifact_id"])),
        ("approval_id", approval(site, &thread).await),
        ("handoff_id", handoff(site, &thread).await),
        ("agent", "assistant".to_owned()),
        ("tool", "shell".to_owned()),
        ("file", "style.css".to_owned()),
        ("skill", SKILL.to_owned()),
        ("user_id", other_user(site).await),
        ("key_id", key_id(site).await),
    ])
}

/// The first key of Ada's tenant.
async fn key_id(site: &Site) -> String {
    let store = site.app.store().tenant(&TenantId::parse("acme").unwrap());
    store.keys().await.unwrap()[0].key_id.to_string()
}

/// A handoff of Ada's that has ended.
async fn handoff(site: &Site, thread: &str) -> String {
    let (store, agent) =
        (site.app.store().tenant(&TenantId::parse("acme").unwrap()), AgentName::parse("assistant"));
    let agent = agent.unwrap();
    let new = NewHandoff {
        handoff_id: HandoffId::from_uuid(Uuid::now_v7()),
        thread_id: ThreadId::parse(thread).unwrap(),
        user_id: UserId::parse("ada").unwrap(),
        source_agent_id: agent.clone(),
        target_agent_id: agent,
        context_summary: SECRET.to_owned(),
        handoff_reason: SECRET.to_owned(),
        metadata: Value::Null,
        notes: HandoffNotes::default(),
        max_open: None,
        activation: None,
    };
    let open = store.open_handoff(new).await.unwrap();
    let ended = HandoffSession { state: HandoffState::Cancelled, ..open };
    store.update_handoff(ended).await.unwrap().handoff_id.to_string()
}

/// A call of Ada's that waits for approval.
async fn approval(site: &Site, thread: &str) -> String {
    let until = Timestamp::now() + SignedDuration::from_hours(1);
    let request = parked::shell("assistant/turn:1/tool:1", "assistant", json!({ "command": SECRET }), until);
    parked::park(&**site.app.store(), "acme", "ada", ThreadId::parse(thread).unwrap(), request).await
}

fn routes(document: &Value) -> Vec<Route> {
    let paths = document["paths"].as_object().expect("paths");
    let operations = paths.iter().flat_map(|(path, item)| {
        item.as_object().expect("operations").iter().map(move |(method, operation)| Route {
            method: Method::from_bytes(method.to_uppercase().as_bytes()).expect("a method"),
            path: path.clone(),
            requirement: operation["x-permission"].as_str().expect("a demand").to_owned(),
        })
    });
    operations.collect()
}

/// Parameters whose value belongs to somebody.
fn is_owned(path: &str) -> bool {
    ["{thread_id}", "{run_id}", "{message_id}", "{artifact_id}", "{approval_id}", "{skill}", "{key_id}"]
        .iter()
        .any(|name| path.contains(name))
}

fn filled(path: &str, values: &Belongings) -> String {
    let mut path = path.to_owned();
    for (name, value) in values {
        path = path.replace(&format!("{{{name}}}"), value);
    }
    if path.ends_with("/files/content") {
        path += "?path=notes.md";
    }
    assert!(!path.contains('{'), "{path}: tell the matrix what to point at");
    path
}

/// The same places, as nobody has them.
fn unknown(path: &str, values: &Belongings) -> String {
    let nobodys = |name: &str| match name {
        "agent" | "file" | "tool" => values[name].clone(),
        _ => Uuid::new_v4().to_string(),
    };
    let ids = values.keys().map(|name| (*name, nobodys(name)));
    filled(path, &ids.collect())
}

/// A body that the route takes, so that it is not the body that is refused.
fn body(route: &Route, owned: &Belongings, thread: &str) -> Option<Value> {
    let path = route.path.as_str();
    if route.method != Method::POST && route.method != Method::PATCH {
        return None;
    }
    Some(match path {
        "/api/v1/threads/{thread_id}" => json!({ "title": "Mine now" }),
        "/api/v1/threads/{thread_id}/messages" => json!({ "content": "Hello", "on_busy": "reject" }),
        "/api/v1/threads/{thread_id}/delegations" => json!({ "agents": ["assistant"], "message": "Hello" }),
        "/api/v1/threads/{thread_id}/handoff" => {
            json!({ "target_agent_id": "assistant", "handoff_reason": "Hello" })
        }
        "/api/v1/threads/{thread_id}/handoff/return" => json!({ "completion_status": "completed" }),
        "/api/v1/threads/{thread_id}/handoff/resume" => json!({ "handoff_id": Uuid::now_v7() }),
        "/api/v1/runs/{run_id}/cancel" => json!({ "mode": "abort" }),
        "/api/v1/approvals/{approval_id}" => json!({ "decision": "deny" }),
        "/api/v1/messages/{message_id}/feedback" => json!({ "rating": -1 }),
        "/api/v1/keys" => json!({ "name": "mine", "roles": ["viewer"] }),
        "/api/v1/artifacts" => json!({ "thread_id": thread, "of": owned["thread_id"] }),
        other => panic!("{} {other}: tell the matrix what it takes", route.method),
    })
}

async fn check(site: &Site, route: &Route, asker: &Asker, owned: &Belongings) {
    let Route { method, path, requirement } = route;
    let what = format!("{method} {path} for {}", asker.who);
    // Uploads name their thread in the body; everything else in the path.
    let thread = &owned["thread_id"];
    // In another tenant her id would be another thread, which begins with the request.
    let begins_own = begins_threads(route) && asker.who == "wrong tenant";
    let target = if begins_own { unknown(path, owned) } else { filled(path, owned) };
    let new_span_id = Uuid::new_v4().to_string();
    let seen = ask(site, route, asker, &target, owned, if begins_own { &new_span_id } else { thread }).await;
    let elsewhere = ask(site, route, asker, &unknown(path, owned), owned, &Uuid::new_v4().to_string()).await;
    // Whoever has no role is Ada still: what everybody may do with their own, she may. Skills are the whole tenant's.
    let is_skill = path.starts_with("/api/v1/skills") && asker.who == "wrong user";
    let is_hers = is_skill || asker.who == "no permission" && requirement == "signed-in";
    for secret in [SECRET].into_iter().filter(|_| !is_hers).chain(
        owned
            .iter()
            .filter(|(name, _)| !matches!(**name, "agent" | "file" | "tool"))
            // The caller names the user, and gets that name back with what the own tenant has of them.
            .filter(|(name, _)| **name != "user_id" || !path.contains("{user_id}"))
            .filter(|_| !is_hers)
            .map(|(_, value)| value.as_str()),
    ) {
        assert!(!seen.body.contains(secret), "{what} leaks {secret}: {}", seen.body);
        assert!(
            !seen.headers.values().any(|value| value.contains(secret)),
            "{what} leaks {secret} in a header"
        );
    }
    let code = || {
        serde_json::from_str::<Value>(&seen.body).unwrap_or_default()["code"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    };
    match (requirement.as_str(), asker.who) {
        ("public", _) => assert!(seen.status < 400, "{what}: {seen:?}"),
        (_, "nobody") => {
            assert_eq!((seen.status, code().as_str()), (401, "unauthenticated"), "{what}: {seen:?}");
        }
        (permission, _) if is_refused(permission, asker) => {
            assert_eq!((seen.status, code().as_str()), (403, "permission_denied"), "{what}: {seen:?}");
            assert!(seen.body.contains(permission), "{what} does not name the permission: {}", seen.body);
        }
        // Ada herself without a role: what is hers she may always end, and nothing else.
        (_, "no permission") => {}
        _ if begins_own => {
            assert!(seen.status < 300, "{what}: {seen:?}");
        }
        // A thread that nobody has begins with its first message, so those routes are only asked about hers.
        _ if begins_threads(route) => assert_eq!(seen.status, 404, "{what}: {seen:?}"),
        _ if is_skill => assert_eq!(seen.status, 200, "{what}: {seen:?}"),
        _ if is_owned(path) => {
            assert_eq!(seen.status, 404, "{what}: {seen:?}");
            assert_eq!(seen, elsewhere, "{what}: hers looks different from nobody's");
        }
        _ => assert!(seen.status < 500, "{what}: {seen:?}"),
    }
}

fn begins_threads(route: &Route) -> bool {
    let begins = matches!(
        route.path.as_str(),
        "/api/v1/threads/{thread_id}/messages"
            | "/api/v1/threads/{thread_id}/delegations"
            | "/api/v1/artifacts"
    );
    begins && route.method == Method::POST
}

/// Whether none of the asker's roles has the permission.
fn is_refused(permission: &str, asker: &Asker) -> bool {
    let of_users = Roles::new(&BTreeMap::new()).rights(&["user".to_owned(), "builder".to_owned()]);
    match asker.who {
        _ if permission == "signed-in" => false,
        "wrong tenant" => INSTALLATION.contains(&permission),
        "wrong user" => !of_users.allow(permission),
        _ => true,
    }
}

async fn ask(
    site: &Site,
    route: &Route,
    asker: &Asker,
    path: &str,
    owned: &Belongings,
    thread: &str,
) -> Seen {
    let key = asker.key.as_deref();
    let response = if route.path == "/api/v1/artifacts" {
        upload(site, path, key, thread, "mine").await
    } else {
        authorized(site, key, route.method.clone(), path, body(route, owned, thread)).await
    };
    see(response).await
}

/// A file with this name and content.
async fn upload(site: &Site, path: &str, key: Option<&str>, thread: &str, text: &str) -> reqwest::Response {
    let field = |head: &str, body: &str| {
        format!("--edge\r\nContent-Disposition: form-data; {head}\r\n\r\n{body}\r\n")
    };
    let thread = field("name=\"thread_id\"", thread);
    let file = field(&format!("name=\"file\"; filename=\"{text}.txt\"\r\nContent-Type: text/plain"), text);
    let request = site.http.post(site.url(path)).header(CONTENT_TYPE, "multipart/form-data; boundary=edge");
    let request = request.body(format!("{thread}{file}--edge--\r\n"));
    let request = match key {
        Some(key) => request.bearer_auth(key),
        None => request,
    };
    request.send().await.expect("an answer")
}

async fn authorized(
    site: &Site,
    key: Option<&str>,
    method: Method,
    path: &str,
    body: Option<Value>,
) -> reqwest::Response {
    let mut request = site
        .http
        .request(method, site.url(path))
        .header("accept", "application/json, text/event-stream;q=0.5, */*;q=0.1");
    if let Some(key) = key {
        request = request.bearer_auth(key);
    }
    if let Some(body) = body {
        request = request.json(&body);
    }
    request.send().await.expect("an answer")
}

/// Without what differs from request to request.
async fn see(response: reqwest::Response) -> Seen {
    let status = response.status().as_u16();
    let headers = plain(response.headers());
    // A stream has no end; whoever gets one has got in.
    let is_stream = response.headers().get(CONTENT_TYPE).is_some_and(|kind| kind == "text/event-stream");
    let body = if is_stream { "a stream".to_owned() } else { response.text().await.unwrap() };
    let mut body: Value = match serde_json::from_str(&body) {
        Ok(value) => value,
        Err(_) => return Seen { status, headers, body },
    };
    if let Some(problem) = body.as_object_mut() {
        problem.remove("trace_id");
    }
    Seen { status, headers, body: body.to_string() }
}

fn plain(headers: &HeaderMap) -> BTreeMap<String, String> {
    let changing = ["date", "x-trace-id", "traceparent", "ratelimit"];
    let kept = headers.iter().filter(|(name, _)| !changing.contains(&name.as_str()));
    kept.map(|(name, value)| (name.to_string(), value.to_str().unwrap_or_default().to_owned())).collect()
}
