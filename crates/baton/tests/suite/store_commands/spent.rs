//! What was spent, as `baton usage` adds it up.

use serde_json::{Value, json};

use super::{ok, redacted, say, with_a_tool_call};
use crate::baton;
use crate::provider::{Provider, Reply};
use crate::run::{piped, project};

/// H14: a model whose price nobody knows costs something, never nothing.
#[test]
fn what_was_spent_is_added_up_and_unknown_prices_stay_unknown() {
    let dir = with_a_tool_call();
    for by in ["agent", "user", "model", "day"] {
        let shown = redacted(&ok(dir.path(), &["usage", "--by", by]), &[]);
        insta::assert_snapshot!(format!("usage-{by}"), shown);
    }
    assert_eq!(ok(dir.path(), &["usage"]), ok(dir.path(), &["usage", "--by", "agent"]));
    let spent = super::json(dir.path(), &["usage"]);
    assert_eq!(spent["next_cursor"], Value::Null);
    let line = &spent["data"][0];
    let numbers = ["runs", "model_calls", "tool_calls", "input_tokens"].map(|name| &line[name]);
    assert_eq!(numbers, [&json!(1), &json!(2), &json!(1), &json!(24)]);
    assert_eq!((&line["key"], &line["cost"]["price"]), (&json!("a"), &json!("unknown")));
    assert_eq!(super::json(dir.path(), &["usage", "--since", "1h"]), spent);
    let later = super::json(dir.path(), &["usage", "--since", "2126-01-01"]);
    assert_eq!(later, json!({"data": [], "next_cursor": null}));
    let later = baton(dir.path(), &["usage", "--since", "2126-01-01"]);
    assert_eq!((later.code, later.stdout.as_str(), later.stderr.as_str()), (0, "", "no calls\n"));
}

#[test]
fn several_lines_have_a_total() {
    let provider = Provider::start(vec![Reply::Text(&["One."]), Reply::Text(&["Two."])]);
    let dir = project(&provider.base_url, "");
    let other =
        std::fs::read_to_string(dir.path().join("agents/a.md")).unwrap().replace("name: a", "name: b");
    std::fs::write(dir.path().join("agents/b.md"), other).unwrap();
    say(dir.path(), "First");
    assert_eq!(piped(dir.path(), &["run", "-a", "b", "Second"], "").code, 0);
    provider.finish();
    let shown = redacted(&ok(dir.path(), &["usage"]), &[]);
    insta::assert_snapshot!("usage-total", shown);
    assert_eq!(super::json(dir.path(), &["usage"])["data"].as_array().unwrap().len(), 2, "only for people");
}

#[test]
fn where_nothing_was_spent_that_is_said() {
    let dir = project("http://127.0.0.1:1", "");
    let ran = baton(dir.path(), &["usage"]);
    assert_eq!((ran.code, ran.stdout.as_str(), ran.stderr.as_str()), (0, "", "nothing was kept yet\n"));
    assert_eq!(super::json(dir.path(), &["usage"]), json!({"data": [], "next_cursor": null}));
    assert!(!dir.path().join("baton.db").exists(), "nothing is created");
    let wrong = baton(dir.path(), &["usage", "--by", "colour"]);
    assert_eq!(wrong.code, 2, "{}", wrong.stderr);
    assert!(wrong.stderr.contains("agent, user, model, day"), "{}", wrong.stderr);
}

/// Spent and remaining amounts of the budgets follow the sums. A budget that is used up ends the run with its own exit code.
#[test]
fn budgets_are_shown_with_what_is_left() {
    let provider = Provider::start(vec![Reply::Text(&["One."])]);
    let dir = project(&provider.base_url, "");
    let config = std::fs::read_to_string(dir.path().join("baton.toml")).unwrap();
    let with_budget = |most: u32| {
        let budget = format!("{config}\n[budgets.tenant.day]\nmax_tokens = {most}\n");
        std::fs::write(dir.path().join("baton.toml"), budget).unwrap();
    };
    with_budget(20_000);
    assert_eq!(say(dir.path(), "First").code, 0);
    let shown = ok(dir.path(), &["usage"]);
    for part in ["tenant per day", "20000 tokens", "15 tokens", "19985 tokens"] {
        assert!(shown.contains(part), "{shown}");
    }
    let budget = &super::json(dir.path(), &["usage"])["budgets"][0];
    assert_eq!(
        (&budget["spent"]["tokens"], &budget["remaining"]["max_tokens"]),
        (&json!(15), &json!(19_985))
    );
    provider.finish();
    with_budget(16);
    let refused = say(dir.path(), "Second");
    assert_eq!((refused.code, refused.stdout.as_str()), (6, ""), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("the budget of the tenant for this day is used up"),
        "{}",
        refused.stderr
    );
    assert!(
        refused.stderr.contains("warning: 93 % of the budget of the tenant for this day is used"),
        "{}",
        refused.stderr
    );
}
