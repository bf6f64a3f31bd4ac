//! What was spent and what was learnt, as the API adds it up.

use baton_core::ThreadId;
use baton_core::store::{Hop, HopKind};
use baton_core::{RunId, TenantId, Usd};
use baton_models::scripted::{Scripted, ScriptedTurn};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::site::Plan;

const USAGE: &str = "/api/v1/usage";
const PATTERNS: &str = "/api/v1/patterns";

fn thread() -> String {
    ThreadId::random().to_string()
}

/// H16
#[tokio::test]
async fn what_was_spent_is_added_up_by_agent_user_model_and_day() {
    let turns = [
        ScriptedTurn::text("One.").tokens(9, 2),
        ScriptedTurn::text("Two.").tokens(11, 3),
        ScriptedTurn::text("Three.").tokens(1, 1),
    ];
    let site = Plan::new(&Scripted::default().script("assistant", turns)).required().start().await;
    let (ann, bob) = (site.visitor("ann", "user").await, site.visitor("bob", "user").await);
    let operator = site.visitor("olga", "operator").await;
    ann.say(&thread(), "One?").await;
    ann.say(&thread(), "Two?").await;
    bob.say(&thread(), "Three?").await;
    let (_, by_agent) = operator.see(USAGE, USAGE).await;
    let line = &by_agent["data"][0];
    assert_eq!(
        (&line["key"], &line["runs"], &line["model_calls"]),
        (&json!("assistant"), &json!(3), &json!(3))
    );
    assert_eq!((&line["usage"]["input_tokens"], &line["usage"]["output_tokens"]), (&json!(21), &json!(6)));
    assert_eq!(line["usage"]["cost_usd"], "0.000027");
    let keys = |listed: &Value| -> Vec<String> {
        let mut keys: Vec<String> = listed["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| line["key"].as_str().unwrap().into())
            .collect();
        keys.sort();
        keys
    };
    assert_eq!(keys(&operator.see(USAGE, "/api/v1/usage?by=user").await.1), ["ann", "bob"]);
    assert_eq!(keys(&operator.see(USAGE, "/api/v1/usage?by=model").await.1), ["scripted/m"]);
    let day = Timestamp::now().strftime("%Y-%m-%d").to_string();
    let days = keys(&operator.see(USAGE, "/api/v1/usage?by=day").await.1);
    assert!(days.last().is_some_and(|last| *last <= day), "{days:?}");
    let (_, of_bob) = operator.see(USAGE, "/api/v1/usage?user_id=bob").await;
    assert_eq!(of_bob["data"][0]["usage"]["input_tokens"], 1);
    let (_, none) = operator.see(USAGE, "/api/v1/usage?until=2020-01-01T00:00:00Z").await;
    assert_eq!(none["data"], json!([]));
    for bad in ["by=colour", "since=yesterday", "day=1"] {
        assert_eq!(operator.see(USAGE, &format!("{USAGE}?{bad}")).await.0, 400, "{bad}");
    }
    site.end().await;
}

#[tokio::test]
async fn money_and_learning_are_for_those_who_may_see_them() {
    let site = Plan::new(&Scripted::default()).required().start().await;
    let user = site.visitor("ann", "user").await;
    for (path, permission) in [
        (USAGE, "usage:read"),
        (PATTERNS, "trace:read"),
        ("/api/v1/audit", "audit:read"),
        ("/api/v1/audit/verify", "audit:read"),
    ] {
        let (status, problem) = user.see(path, path).await;
        assert_eq!((status, &problem["permission"]), (403, &json!(permission)), "{path}");
        assert_eq!(site.visitor("olga", "operator").await.see(path, path).await.0, 200, "{path}");
    }
    site.end().await;
}

/// G14
#[tokio::test]
async fn the_ways_of_the_baton_are_listed_with_how_well_they_end() {
    let model = Scripted::default().script("assistant", [ScriptedTurn::text("One.")]);
    let site = Plan::new(&model).start().await;
    let (thread, visitor) = (thread(), site.anybody());
    let answer = visitor.say(&thread, "One?").await;
    let data = site.app.store().tenant(&TenantId::parse("default").unwrap());
    for success in [true, false] {
        let hop = Hop {
            hop_id: uuid::Uuid::now_v7(),
            thread_id: thread.parse().unwrap(),
            run_id: RunId::parse(answer["run_id"].as_str().unwrap()).unwrap(),
            kind: HopKind::Transfer,
            from: "assistant".parse().unwrap(),
            to: "research".parse().unwrap(),
            reason: "more to know".to_owned(),
            query_class: "question".to_owned(),
            success,
            latency_ms: 40,
            cost: Usd::from_nanos(500_000_000),
            at: Timestamp::now(),
        };
        data.record_hop(hop).await.unwrap();
    }
    let (_, patterns) = visitor.see(PATTERNS, PATTERNS).await;
    let way = &patterns["data"][0];
    assert_eq!((&way["count"], &way["successes"], &way["success_rate"]), (&json!(2), &json!(1), &json!(0.5)));
    assert_eq!((&way["average_cost_usd"], &way["kind"]), (&json!(0.5), &json!("transfer")));
    site.end().await;
}
