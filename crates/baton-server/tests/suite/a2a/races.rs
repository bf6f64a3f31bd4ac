//! Cancellation against completion.

use std::time::Duration;

use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::{plan, text, with};

const RACES: usize = 1000;

/// Both may win, but a task has one end, and the answer to the cancellation is true.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_against_completion_yields_one_terminal_state() {
    let turn = || ScriptedTurn::default().wait(Duration::from_millis(5)).say("Done.");
    let model = Scripted::default().script("assistant", (0..RACES).map(|_| turn()));
    let site = plan(&model).start().await;
    let params = with(text("Hello"), "/configuration", json!({ "blocking": false }));
    let mut cancelled = 0;
    for round in 0..RACES {
        let task = site.a2a_ok("message/send", &params).await;
        let id = json!({ "id": task["id"] });
        // The run takes about 6 ms; the cancellation comes before, during and after its end.
        tokio::time::sleep(Duration::from_micros(u64::try_from(round % 40).unwrap() * 250)).await;
        let (first, second) = tokio::join!(site.a2a("tasks/cancel", &id), site.a2a("tasks/cancel", &id));
        let found = site.a2a_ok("tasks/get", &id).await;
        let state = found["status"]["state"].as_str().unwrap().to_owned();
        let won = [&first, &second].iter().filter(|answer| answer.get("result").is_some()).count();
        if won > 0 {
            assert_eq!(state, "canceled", "{first} {second}");
            cancelled += 1;
        } else {
            assert_eq!(first["error"]["code"], -32002, "{first}");
            assert_eq!(state, "completed", "{first} {second}");
        }
        let again = site.a2a_ok("tasks/get", &id).await;
        assert_eq!(again, found, "an end is final");
    }
    assert!(cancelled > 0 && cancelled < RACES, "{cancelled} of {RACES}: both outcomes happen");
    site.end().await;
}
