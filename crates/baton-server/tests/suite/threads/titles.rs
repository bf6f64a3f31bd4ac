//! Titles: renaming threads and finding them by a part of it.

use baton_models::scripted::{Scripted, ScriptedTurn};
use http::Method;
use serde_json::{Value, json};

use super::{counting, ids, start};
use crate::described::body;
use crate::person::{Person, new_thread};

const ROUTE: &str = "/api/v1/threads/{thread_id}";

async fn rename(person: &Person<'_>, thread: &str, title: &str) -> reqwest::Response {
    let request = person.request(Method::PATCH, &format!("/api/v1/threads/{thread}"));
    request.json(&json!({ "title": title })).send().await.expect("an answer")
}

#[tokio::test]
async fn a_renamed_title_survives_later_messages_and_is_audited() {
    let site = start(&counting()).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    ada.ask(&thread, "Hello").await;
    let before = ada.see(&format!("/api/v1/threads/{thread}")).await;
    let renamed = body(rename(&ada, &thread, "  Trip to Rome ").await, "patch", ROUTE).await;
    assert_eq!(renamed["title"], "Trip to Rome");
    assert_eq!((&renamed["updated_at"], &renamed["last_seq"]), (&before["updated_at"], &before["last_seq"]));
    ada.ask(&thread, "And Naples?").await;
    assert_eq!(ada.see(&format!("/api/v1/threads/{thread}")).await["title"], "Trip to Rome");
    let trail = ada.trail("acme", "thread.rename").await;
    assert_eq!(trail, [("ada".to_owned(), "allowed".to_owned())]);
    for wrong in ["", "  ", "a\nb", "a\u{7}b", &"x".repeat(201)] {
        let response = rename(&ada, &thread, wrong).await;
        assert_eq!(response.status(), 400, "{wrong:?}");
        let problem: Value = response.json().await.unwrap();
        assert_eq!(problem["errors"][0]["pointer"], "/title", "{problem}");
    }
    site.end().await;
}

#[tokio::test]
async fn only_an_administrator_renames_threads_of_others() {
    let site = start(&counting()).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    ada.ask(&thread, "Hello").await;
    for (user, roles, status) in [
        ("bob", &["user"][..], 404),
        ("olga", &["operator", "user"], 403),
        ("vera", &["viewer"], 403),
        ("root", &["admin"], 200),
    ] {
        let person = site.person("acme", user, roles).await;
        assert_eq!(rename(&person, &thread, "Mine").await.status(), status, "{user}");
    }
    let stranger = site.person("globex", "ada", &["admin"]).await;
    assert_eq!(rename(&stranger, &thread, "Mine").await.status(), 404);
    site.end().await;
}

#[tokio::test]
async fn threads_are_found_by_a_part_of_their_title() {
    let site = start(&counting()).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let bob = site.person("acme", "bob", &["user"]).await;
    let threads: Vec<String> = (0..4).map(|_| new_thread()).collect();
    for (thread, text) in threads.iter().zip(["A TRIP", "50% off", "My trip", "trips"]) {
        ada.ask(thread, text).await;
    }
    bob.ask(&new_thread(), "trip of Bob").await;
    let first = ada.see("/api/v1/threads?q=trip&limit=2").await;
    assert_eq!(ids(&first), [&threads[3], &threads[2]]);
    let cursor = first["next_cursor"].as_str().expect("there is more");
    let second = ada.see(&format!("/api/v1/threads?q=trip&limit=2&cursor={cursor}")).await;
    assert_eq!((ids(&second), &second["next_cursor"]), (vec![threads[0].as_str()], &Value::Null));
    assert_eq!(ids(&ada.see("/api/v1/threads?q=0%25%20o").await), [&threads[1]]);
    assert_eq!(ids(&ada.see("/api/v1/threads?q=_").await), Vec::<&str>::new());
    for wrong in ["q=", "q=%20", "q=a%0Ab", &format!("q={}", "x".repeat(201))] {
        let problem = ada.refused(Method::GET, &format!("/api/v1/threads?{wrong}")).await;
        assert_eq!((&problem["status"], &problem["errors"][0]["pointer"]), (&json!(400), &json!("q")));
    }
    site.end().await;
}

#[tokio::test]
async fn a_thread_counts_the_runs_that_wait() {
    let site = start(&Scripted::default().script("assistant", [ScriptedTurn::text("").hang()])).await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let run = ada.begin(&thread, "Hello").await;
    ada.until(&run, baton_core::store::RunStatus::Running).await;
    ada.begin(&thread, "And?").await;
    assert_eq!(ada.see(&format!("/api/v1/threads/{thread}")).await["queued"], 1);
    assert_eq!(ada.see("/api/v1/threads").await["data"][0]["queued"], 1);
    ada.delete(&format!("/api/v1/threads/{thread}")).await;
    site.end().await;
}
