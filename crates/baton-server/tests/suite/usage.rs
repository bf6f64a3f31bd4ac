//! What was spent and what was learnt, as the API adds it up.

use baton_core::ThreadId;
use baton_core::budget::BudgetLimit;
use baton_core::store::{Hop, HopKind, HopOutcome};
use baton_core::{RunId, TenantId, Usd};
use baton_models::scripted::{Scripted, ScriptedTurn};
use http::Method;
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

/// Spent and remaining amounts are in the report. A run that meets the limit answers 402, with what its closing turn said.
#[tokio::test]
async fn budgets_are_reported_and_an_exhausted_one_is_402() {
    let turns = [ScriptedTurn::text("One.").tokens(0, 1_000), ScriptedTurn::text("Never.").tokens(0, 1_000)];
    let file = "---\ndescription: Helps.\nmax_output_tokens: 1000\n---\nYou help.\n";
    let mut plan = Plan::new(&Scripted::default().script("assistant", turns)).agent("assistant", file);
    plan.policy.budgets.tenant.day = BudgetLimit { max_cost_usd: None, max_tokens: Some(1_300) };
    plan.policy.budgets.thread = BudgetLimit { max_cost_usd: Some("1".parse().unwrap()), max_tokens: None };
    let site = plan.required().start().await;
    let ann = site.person("acme", "ann", &["user", "operator"]).await;
    let thread = thread();
    let messages = format!("/api/v1/threads/{thread}/messages");
    assert_eq!(ann.ask(&thread, "One?").await["status"], "completed");
    let report = ann.see(&format!("{USAGE}?thread_id={thread}")).await;
    let budgets = report["budgets"].as_array().unwrap();
    assert_eq!(budgets.len(), 2, "{report}");
    let of = |scope: &str| budgets.iter().find(|one| one["scope"] == scope).unwrap();
    let day = of("tenant");
    assert_eq!(
        (&day["period"], &day["max_tokens"], &day["spent_tokens"]),
        (&json!("day"), &json!(1_300), &json!(1_000))
    );
    assert_eq!(
        (&day["remaining_tokens"], &day["percent"], &day["reserved_tokens"]),
        (&json!(300), &json!(76), &json!(0))
    );
    assert!(day["ends_at"].as_str().unwrap().ends_with("T00:00:00Z"), "{day}");
    let own = of("thread");
    assert_eq!(
        (&own["subject"], &own["spent_usd"], &own["remaining_usd"]),
        (&json!(thread), &json!("0.001"), &json!("0.999"))
    );
    for _ in 0..2 {
        let asked = ann.request(Method::POST, &messages).header("accept", "application/json");
        let refused = asked.json(&json!({"content": "More?"})).send().await.unwrap();
        assert_eq!(refused.status(), 402);
        let problem: Value = refused.json().await.unwrap();
        assert_eq!(problem["code"], "budget_exhausted", "{problem}");
        assert!(problem["run_id"].is_string() && problem["usage"].is_object(), "{problem}");
        assert!(problem["message"].is_null(), "no call is made: {problem}");
    }
    let eve = site.person("other", "eve", &["operator"]).await;
    let foreign = eve.get(&format!("{USAGE}?thread_id={thread}")).await;
    assert_eq!(foreign.status(), 404, "a foreign thread is an unknown one");
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
            run_id: RunId::parse(answer["run_id"].as_str().unwrap()).ok(),
            kind: HopKind::Transfer,
            from: "assistant".parse().unwrap(),
            to: "research".parse().unwrap(),
            reason: "more to know".to_owned(),
            query_class: "question".to_owned(),
            outcome: if success { HopOutcome::Completed } else { HopOutcome::Failed },
            latency_ms: 40,
            cost: Usd::from_nanos(500_000_000),
            at: Timestamp::now(),
            request: 0,
        };
        data.record_hop(hop).await.unwrap();
    }
    let (_, patterns) = visitor.see(PATTERNS, PATTERNS).await;
    let way = &patterns["data"][0];
    assert_eq!((&way["count"], &way["successes"], &way["success_rate"]), (&json!(2), &json!(1), &json!(0.5)));
    assert_eq!((&way["average_cost_usd"], &way["kind"]), (&json!(0.5), &json!("transfer")));
    site.end().await;
}
