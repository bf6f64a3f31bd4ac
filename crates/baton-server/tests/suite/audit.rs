//! Who did what: opinions, decisions, and the record of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_core::store::MessageQuery;
use baton_core::{TenantId, TenantStore, ThreadId};
use baton_engine::recorded::agent_of;
use baton_models::scripted::{Scripted, ScriptedTurn};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::described::{Visitor, body};
use crate::parked;
use crate::site::{Plan, Site};

const AUDIT: &str = "/api/v1/audit";
const APPROVALS: &str = "/api/v1/approvals";
const DECIDE: &str = "/api/v1/approvals/{approval_id}";
const FEEDBACK: &str = "/api/v1/messages/{message_id}/feedback";

async fn site(answers: usize) -> Site {
    let turns = vec![ScriptedTurn::text("Hello."); answers];
    Plan::new(&Scripted::default().script("assistant", turns)).required().start().await
}

fn acme(site: &Site) -> Arc<dyn TenantStore> {
    site.app.store().tenant(&TenantId::parse("acme").unwrap())
}

fn without_trace(mut problem: Value) -> Value {
    problem["trace_id"] = Value::Null;
    problem
}

async fn refused(visitor: &Visitor<'_>, route: &str, path: &str, what: &Value) -> (u16, Value) {
    let response = visitor.post(path, what).await;
    (response.status().as_u16(), without_trace(body(response, "post", route).await))
}

#[tokio::test]
async fn an_opinion_is_kept_and_on_record_and_only_about_ones_own_answers() {
    let site = site(1).await;
    let (ann, bob) = (site.visitor("ann", "user").await, site.visitor("bob", "user").await);
    let thread = ThreadId::random();
    let answer = ann.say(&thread.to_string(), "Hello").await;
    let message = answer["message"]["message_id"].as_str().unwrap().to_owned();
    let path = format!("/api/v1/messages/{message}/feedback");
    let opinion = json!({ "rating": -1, "comment": "  too short " });

    let foreign = refused(&bob, FEEDBACK, &path, &opinion).await;
    let unknown =
        refused(&bob, FEEDBACK, &format!("/api/v1/messages/{}/feedback", Uuid::new_v4()), &opinion).await;
    let no_id = refused(&bob, FEEDBACK, "/api/v1/messages/hello/feedback", &opinion).await;
    assert_eq!((foreign.0, foreign.1["code"].as_str()), (404, Some("not_found")));
    assert_eq!(foreign, unknown);
    assert_eq!(foreign, no_id);

    assert_eq!(ann.post(&path, &opinion).await.status(), 204);
    assert_eq!(ann.post(&path, &json!({ "rating": 1 })).await.status(), 204);
    let kept = acme(&site).feedback(message.parse().unwrap()).await.unwrap();
    assert_eq!((kept.len(), kept[0].rating.word(), &kept[0].comment), (1, "good", &None));

    let operator = site.visitor("olga", "operator").await;
    let (_, trail) = operator.see(AUDIT, "/api/v1/audit?action=feedback.give&actor=ann").await;
    assert_eq!(trail["data"].as_array().unwrap().len(), 2);
    let entry = &trail["data"][0];
    assert_eq!((&entry["thread_id"], &entry["run_id"]), (&json!(thread), &answer["run_id"]));
    assert_eq!((&entry["decision"], &entry["tenant_id"]), (&json!("allowed"), &json!("acme")));
    assert!(!trail.to_string().contains("too short"), "what was said is not on record");
    site.end().await;
}

#[tokio::test]
async fn an_opinion_that_is_none_is_refused_with_its_place() {
    let site = site(1).await;
    let ann = site.visitor("ann", "user").await;
    let thread = ThreadId::random().to_string();
    let answer = ann.say(&thread, "Hello").await;
    let path = format!("/api/v1/messages/{}/feedback", answer["message"]["message_id"].as_str().unwrap());
    for (opinion, pointer) in [
        (json!({ "rating": 0 }), "/rating"),
        (json!({ "rating": 1.0 }), "/rating"),
        (json!({ "rating": 1, "comment": "x".repeat(2001) }), "/comment"),
        (json!({ "rating": 1, "mood": "fine" }), "/mood"),
        (json!({}), ""),
    ] {
        let (status, problem) = refused(&ann, FEEDBACK, &path, &opinion).await;
        assert_eq!((status, problem["errors"][0]["pointer"].as_str()), (400, Some(pointer)), "{problem:#}");
    }
    assert_eq!(ann.post(&path, &json!({ "rating": 1, "comment": "ä".repeat(2000) })).await.status(), 204);
    let asked = acme(&site).messages(thread.parse().unwrap(), MessageQuery::default()).await.unwrap();
    let own = format!("/api/v1/messages/{}/feedback", asked[0].message.id);
    assert_eq!(refused(&ann, FEEDBACK, &own, &json!({ "rating": 1 })).await.0, 409);
    let viewer = site.visitor("ann", "viewer").await;
    assert_eq!(
        refused(&viewer, FEEDBACK, &path, &json!({ "rating": 1 })).await.1["permission"],
        "thread:write"
    );
    site.end().await;
}

/// A call of Ann's run that waits for a yes until then.
async fn asked(site: &Site, ann: &Visitor<'_>, until: Timestamp) -> String {
    asked_at(site, ann, until, "assistant/turn:1/tool:1").await
}

async fn asked_at(site: &Site, ann: &Visitor<'_>, until: Timestamp, path: &str) -> String {
    let thread = ThreadId::random();
    ann.say(&thread.to_string(), "Hello").await;
    let request = parked::shell(path, agent_of(path), json!({ "command": "make" }), until);
    parked::park(&**site.app.store(), "acme", "ann", thread, request).await
}

fn values<'a>(list: &'a Value, field: &str) -> Vec<&'a str> {
    list["data"].as_array().unwrap().iter().map(|one| one[field].as_str().unwrap()).collect()
}

#[tokio::test]
async fn approvals_are_listed_decided_and_newest_first() {
    let site = site(4).await;
    let ann = site.visitor("ann", "user").await;
    let soon = Timestamp::now() + SignedDuration::from_hours(1);
    let denied = asked(&site, &ann, soon).await;
    let expired = asked(&site, &ann, Timestamp::now() - SignedDuration::from_secs(1)).await;
    let (pending, approved) = (asked(&site, &ann, soon).await, asked(&site, &ann, soon).await);
    for (id, decision) in [(&denied, "deny"), (&approved, "approve")] {
        let decided = ann.post(&format!("/api/v1/approvals/{id}"), &json!({ "decision": decision })).await;
        assert_eq!(decided.status(), 200);
    }
    let list = async |query: &str| ann.see(APPROVALS, &format!("{APPROVALS}?{query}")).await.1;
    assert_eq!(values(&list("").await, "approval_id"), [denied.as_str(), &expired, &pending, &approved]);
    let decided = list("status=decided").await;
    assert_eq!(values(&decided, "approval_id"), [denied.as_str(), &expired, &approved]);
    assert_eq!(values(&decided, "status"), ["denied", "expired", "approved"]);
    let newest = list("status=decided&order=desc&limit=2").await;
    assert_eq!(values(&newest, "approval_id"), [approved.as_str(), &expired]);
    let cursor = newest["next_cursor"].as_str().unwrap();
    let rest = list(&format!("status=decided&order=desc&limit=2&cursor={cursor}")).await;
    assert_eq!((values(&rest, "approval_id"), &rest["next_cursor"]), (vec![denied.as_str()], &Value::Null));
    assert_eq!(values(&list("status=pending&order=desc").await, "approval_id"), [pending.as_str()]);
    for bad in [format!("cursor={cursor}"), "order=newest".to_owned(), "status=open".to_owned()] {
        assert_eq!(ann.see(APPROVALS, &format!("{APPROVALS}?{bad}")).await.0, 400, "{bad}");
    }
    site.end().await;
}

#[tokio::test]
async fn an_approval_names_the_agent_that_wants_to_make_the_call() {
    let site = site(3).await;
    let ann = site.visitor("ann", "user").await;
    let soon = Timestamp::now() + SignedDuration::from_hours(1);
    let paths = [
        ("assistant/turn:1/tool:1", "assistant"),
        ("assistant/turn:1/tool:1/call:research/turn:2/tool:1", "research"),
        ("assistant/round:1/member:writer/turn:1/tool:2", "writer"),
    ];
    for (path, agent) in paths {
        let id = asked_at(&site, &ann, soon, path).await;
        let yes = json!({ "decision": "approve" });
        let decided = body(ann.post(&format!("/api/v1/approvals/{id}"), &yes).await, "post", DECIDE).await;
        assert_eq!((&decided["path"], &decided["agent"]), (&json!(path), &json!(agent)));
    }
    let (_, list) = ann.see(APPROVALS, APPROVALS).await;
    assert_eq!(values(&list, "agent"), paths.map(|(_, agent)| agent));
    site.end().await;
}

/// F21
#[tokio::test]
async fn a_waiting_call_is_decided_once_by_its_person_or_an_operator() {
    let site = site(3).await;
    let (ann, bob) = (site.visitor("ann", "user").await, site.visitor("bob", "user").await);
    let operator = site.visitor("olga", "operator").await;
    let soon = Timestamp::now() + SignedDuration::from_hours(1);
    let (first, second) = (asked(&site, &ann, soon).await, asked(&site, &ann, soon).await);
    let late = asked(&site, &ann, Timestamp::now() - SignedDuration::from_secs(1)).await;

    let (_, waiting) = ann.see(APPROVALS, "/api/v1/approvals?status=pending").await;
    let ids: Vec<&str> =
        waiting["data"].as_array().unwrap().iter().map(|one| one["approval_id"].as_str().unwrap()).collect();
    assert_eq!(ids, [first.as_str(), &second]);
    assert_eq!(bob.see(APPROVALS, APPROVALS).await.1["data"], json!([]));
    let (_, page) = operator.see(APPROVALS, "/api/v1/approvals?limit=2").await;
    let next = format!("/api/v1/approvals?limit=2&cursor={}", page["next_cursor"].as_str().unwrap());
    assert_eq!(operator.see(APPROVALS, &next).await.1["data"][0]["status"], "expired");

    let yes = json!({ "decision": "approve", "reason": "checked" });
    let path = |id: &str| format!("/api/v1/approvals/{id}");
    let foreign = refused(&bob, DECIDE, &path(&first), &yes).await;
    assert_eq!(foreign.0, 404);
    assert_eq!(foreign, refused(&bob, DECIDE, &path(&Uuid::new_v4().to_string()), &yes).await);
    assert_eq!(foreign, refused(&bob, DECIDE, &path("hello"), &yes).await);
    let viewer = site.visitor("ann", "viewer").await;
    assert_eq!(refused(&viewer, DECIDE, &path(&first), &yes).await.0, 403);
    assert_eq!(refused(&ann, DECIDE, &path(&first), &json!({ "decision": "maybe" })).await.0, 400);

    let decided = body(ann.post(&path(&first), &yes).await, "post", DECIDE).await;
    assert_eq!((&decided["status"], &decided["decided_by"]), (&json!("approved"), &json!("ann")));
    let no = json!({ "decision": "deny" });
    let (status, again) = refused(&operator, DECIDE, &path(&first), &no).await;
    assert_eq!((status, &again["approval_status"]), (409, &json!("approved")));
    assert_eq!(again["code"], "approval_decided");
    let too_late = refused(&ann, DECIDE, &path(&late), &yes).await.1;
    assert_eq!(
        (&too_late["code"], &too_late["approval_status"]),
        (&json!("approval_expired"), &json!("expired"))
    );
    let other = json!({ "decision": "approve", "digest": "1".repeat(64) });
    let (status, changed) = refused(&ann, DECIDE, &path(&second), &other).await;
    assert_eq!((status, &changed["code"]), (409, &json!("approval_changed")));
    let wrong = json!({ "decision": "approve", "arguments": { "command": 1 } });
    let (status, wrong) = refused(&ann, DECIDE, &path(&second), &wrong).await;
    assert_eq!((status, &wrong["errors"][0]["pointer"]), (400, &json!("/arguments/command")));
    assert_eq!(operator.post(&path(&second), &no).await.status(), 200);

    let (_, trail) = operator.see(AUDIT, "/api/v1/audit?action=approval.decide").await;
    let decisions: Vec<_> = trail["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["actor"].as_str(), one["decision"].as_str()))
        .collect();
    let by =
        |actor, decision: &str| decisions.iter().filter(|one| **one == (Some(actor), Some(decision))).count();
    assert_eq!((by("ann", "approved"), by("olga", "denied")), (1, 1));
    // Foreign and unknown; expired, changed and wrong arguments; decided before. Without the permission it is a refusal of its own.
    assert_eq!((by("bob", "refused"), by("ann", "refused"), by("olga", "refused")), (2, 3, 1));
    assert_eq!(decisions.len(), 8);
    site.end().await;
}

#[tokio::test]
async fn the_trail_is_read_newest_first_and_until_a_moment() {
    let site = site(3).await;
    let (ann, operator) = (site.visitor("ann", "user").await, site.visitor("olga", "operator").await);
    for _ in 0..3 {
        ann.say(&ThreadId::random().to_string(), "Hello").await;
    }
    let list = async |query: &str| operator.see(AUDIT, &format!("{AUDIT}?{query}")).await.1;
    let oldest = list("limit=200").await;
    assert_eq!(list("limit=200&order=asc").await, oldest, "as it is without an order");
    let mut entries = oldest["data"].as_array().unwrap().clone();
    let until = entries.last().unwrap()["at"].as_str().unwrap().to_owned();
    entries.reverse();
    let (mut backwards, mut query) = (Vec::new(), "limit=2&order=desc".to_owned());
    loop {
        let page = list(&query).await;
        backwards.extend(page["data"].as_array().unwrap().clone());
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        query = format!("limit=2&order=desc&cursor={cursor}");
    }
    assert_eq!(backwards, entries);
    let before: Vec<Value> = entries.into_iter().filter(|one| one["at"] != until.as_str()).collect();
    assert!(!before.is_empty());
    assert_eq!(list(&format!("limit=200&order=desc&until={until}")).await["data"], json!(before));
    assert_eq!(list("until=1999-01-01T00:00:00Z").await["data"], json!([]));
    for (order, other) in [("asc", "desc"), ("desc", "asc")] {
        let page = list(&format!("limit=1&order={order}")).await;
        let cursor = page["next_cursor"].as_str().unwrap();
        let (status, problem) = operator.see(AUDIT, &format!("{AUDIT}?order={other}&cursor={cursor}")).await;
        let (code, detail) = (&problem["code"], problem["detail"].as_str().unwrap());
        assert_eq!((status, code), (400, &json!("invalid_request")), "{order} in {other}");
        assert!(detail.contains("cursor"), "{detail}");
    }
    for bad in ["order=newest", "order=", "until=now"] {
        assert_eq!(operator.see(AUDIT, &format!("{AUDIT}?{bad}")).await.0, 400, "{bad}");
    }
    site.end().await;
}

/// A7, A16
#[tokio::test]
async fn the_trail_is_read_in_pages_narrowed_and_verified() {
    let site = site(2).await;
    let (ann, operator) = (site.visitor("ann", "user").await, site.visitor("olga", "operator").await);
    let thread = ThreadId::random().to_string();
    for _ in 0..2 {
        ann.say(&thread, "Hello").await;
    }
    // A refusal is on record too.
    ann.get(AUDIT).await;
    let (_, all) = operator.see(AUDIT, AUDIT).await;
    let entries = all["data"].as_array().unwrap();
    assert!(entries.iter().any(|entry| entry["action"] == "permission.refuse" && entry["actor"] == "ann"));
    let mut last = BTreeMap::new();
    for entry in entries {
        let (chain, number) = (entry["chain"].as_u64().unwrap(), entry["number"].as_u64().unwrap());
        assert_eq!(last.insert(chain, number).unwrap_or_default() + 1, number, "in order, without gaps");
    }
    let (_, first) = operator.see(AUDIT, "/api/v1/audit?limit=1").await;
    let rest = format!("/api/v1/audit?limit=200&cursor={}", first["next_cursor"].as_str().unwrap());
    assert_eq!(operator.see(AUDIT, &rest).await.1["data"].as_array().unwrap()[..], entries[1..]);
    let (_, of_thread) = operator.see(AUDIT, &format!("/api/v1/audit?thread_id={thread}")).await;
    assert!(of_thread["data"].as_array().unwrap().iter().all(|entry| entry["thread_id"] == *thread));
    let (_, future) = operator.see(AUDIT, "/api/v1/audit?since=2999-01-01T00:00:00Z").await;
    assert_eq!(future["data"], json!([]));
    for bad in ["thread_id=1", "since=now", "cursor=x", "limit=0", "verify=true"] {
        assert_eq!(operator.see(AUDIT, &format!("{AUDIT}?{bad}")).await.0, 400, "{bad}");
    }
    let (_, verdict) = operator.see("/api/v1/audit/verify", "/api/v1/audit/verify").await;
    assert_eq!((&verdict["verdict"], &verdict["entries"]), (&json!("intact"), &json!(entries.len())));
    assert_eq!(verdict["head"].as_str().unwrap().len(), 64);
    site.app.store().seal_audit().await.unwrap();
    let (_, sealed) = operator.see("/api/v1/audit/verify", "/api/v1/audit/verify").await;
    assert_eq!((&sealed["head"], &sealed["seal"]["entries"]), (&verdict["head"], &json!(entries.len())));
    assert_eq!(sealed["seal"]["hash"].as_str().unwrap().len(), 64);
    // Another tenant has a trail of its own, which nobody has written to.
    let stranger = site.key("globex", "olga", &["operator"]).await;
    let request = site.http.get(site.url(AUDIT)).bearer_auth(stranger);
    let theirs: Value = request.send().await.unwrap().json().await.unwrap();
    assert_eq!(theirs["data"], json!([]));
    site.end().await;
}
