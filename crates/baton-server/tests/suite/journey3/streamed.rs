//! The same as it happens: server-sent events, read frame by frame.

use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use super::{QUERY, THREAD, delegates, plan, post, research};
use crate::client::{Frame, Frames, text_of};
use crate::site::Site;

async fn stream(site: &Site, route: &str, body: &Value) -> Frames {
    Frames::of(post(site, route, "text/event-stream", body).await)
}

fn asks() -> Value {
    json!({ "content": QUERY })
}

fn positions(frames: &[Frame], kind: &str) -> Vec<usize> {
    (0..frames.len()).filter(|at| frames[*at].kind() == kind).collect()
}

fn is_custom(frame: &Frame, name: &str) -> bool {
    frame.kind() == "CUSTOM" && frame.event["name"] == name
}

/// What an agent says behind the scenes.
fn behind_the_scenes(frames: &[Frame], agent: &str) -> String {
    let is_it = |frame: &&Frame| {
        let is_text = frame.kind() == "TEXT_MESSAGE_CONTENT" && frame.event["subagentRunId"].is_string();
        is_text && frame.event["metadata"]["baton"]["agent"] == agent
    };
    frames.iter().filter(is_it).filter_map(|frame| frame.event["delta"].as_str()).collect()
}

async fn get(site: &Site, path: &str) -> Value {
    let answer = reqwest::get(format!("http://{}{path}", site.address)).await.expect("an answer");
    assert_eq!(answer.status(), 200);
    answer.json().await.expect("JSON")
}

/// Everything that happens in a run, for those who may see it.
async fn trace(site: &Site, run: &str) -> Frames {
    let url = format!("http://{}/api/v1/runs/{run}/events?detail=trace", site.address);
    Frames::of(reqwest::get(url).await.expect("an answer"))
}

fn run_of(frames: &[Frame]) -> String {
    assert_eq!(frames[0].kind(), "RUN_STARTED");
    frames[0].event["runId"].as_str().expect("an id").to_owned()
}

async fn abort(site: &Site, run: &str) {
    let url = format!("http://{}/api/v1/runs/{run}/cancel", site.address);
    let answer =
        reqwest::Client::new().post(url).json(&json!({"mode": "abort"})).send().await.expect("an answer");
    assert!(answer.status().is_success(), "{}", answer.status());
}

/// J3.1, J3.2, J3.3, J3.5, J3.6, B3, B15: one message, and everything that comes of it.
#[tokio::test]
async fn j3_a_research_query_from_its_beginning_to_its_end() {
    let model = Scripted::default()
        .script("assistant", [delegates(), ScriptedTurn::default().say("It grows, ").say("and we sold 400.")])
        .script("web-research", [ScriptedTurn::default().say("The market ").say("grows.")])
        .script("internal-docs", [ScriptedTurn::text("We sold 400.")]);
    let site = plan(&model).start().await;
    let frames = stream(&site, "messages", &asks()).await.all().await;

    // J3.1: everything belongs to the thread of the query.
    let run = run_of(&frames);
    assert_eq!(frames[0].event["threadId"], THREAD);
    assert!(frames.iter().all(|frame| frame.event["metadata"]["baton"]["thread_id"] == THREAD));
    // J3.3: both at work, for the person to see.
    let (started, finished) =
        (positions(&frames, "SUBAGENT_STARTED"), positions(&frames, "SUBAGENT_FINISHED"));
    assert_eq!((started.len(), finished.len()), (2, 2));
    let mut names: Vec<&str> = started.iter().filter_map(|at| frames[*at].event["name"].as_str()).collect();
    names.sort_unstable();
    assert_eq!(names, ["Internal Docs", "Web Research"]);
    // J3.5: then one answer, which says where it comes from.
    let speaks = positions(&frames, "TEXT_MESSAGE_START")[0];
    assert_eq!(frames[speaks].event["name"], "Assistant");
    assert!(finished.iter().all(|at| *at < speaks));
    assert_eq!(text_of(&frames), "It grows, and we sold 400.");
    let usage = frames.iter().find(|frame| is_custom(frame, "baton.usage")).expect("what it took");
    let sources = usage.event["value"]["sources"].as_array().expect("sources").iter();
    let mut sources: Vec<&str> = sources.filter_map(|source| source["agent"].as_str()).collect();
    sources.sort_unstable();
    assert_eq!(sources, ["internal-docs", "web-research"]);
    assert_eq!(frames.last().map(Frame::kind), Some("RUN_FINISHED"));
    assert_eq!(frames.iter().filter(|frame| frame.is_end()).count(), 1);

    // J3.2, J3.3: what the main agent made of the query, and what each of them said, under its name.
    let traced = trace(&site, &run).await.all().await;
    let asks = traced.iter().find(|frame| frame.event["toolCallName"] == "delegate").expect("it delegates");
    assert_eq!(asks.event["metadata"]["baton"]["agent"], "assistant");
    assert_eq!(behind_the_scenes(&traced, "web-research"), "The market grows.");
    assert_eq!(behind_the_scenes(&traced, "internal-docs"), "We sold 400.");

    // J3.6: each result by itself, later too.
    let run = get(&site, &format!("/api/v1/runs/{run}")).await;
    let results = run["results"].as_array().expect("results").iter();
    let results: Vec<(&Value, &Value)> = results.map(|one| (&one["agent_id"], &one["response"])).collect();
    let (web, docs) = (json!("web-research"), json!("internal-docs"));
    assert_eq!(results, [(&web, &json!("The market grows.")), (&docs, &json!("We sold 400."))]);
    site.end().await;
}

/// J3.6: the same message, for whoever wants only the end of it.
#[tokio::test]
async fn j3_6_the_answer_as_json_has_the_results_beside_it() {
    let model = Scripted::default()
        .script("assistant", [delegates(), ScriptedTurn::text("It grows.")])
        .script("web-research", [ScriptedTurn::text("The market grows.")]);
    let site = plan(&model).start().await;
    let answer = post(&site, "messages", "application/json", &asks()).await;
    assert_eq!(answer.status(), 200);
    let answer: Value = answer.json().await.expect("JSON");
    assert_eq!((&answer["status"], &answer["agent"]), (&json!("completed"), &json!("assistant")));
    let found = answer["results"].as_array().expect("results").iter();
    let found: Vec<(&Value, &Value)> = found.map(|one| (&one["agent_id"], &one["success"])).collect();
    assert_eq!(found, [(&json!("web-research"), &json!(true)), (&json!("internal-docs"), &json!(false))]);
    site.end().await;
}

/// J3.4, B15: what one agent says is heard while another one is still at work.
#[tokio::test]
async fn j3_4_words_come_while_others_are_still_at_work() {
    let model = Scripted::default()
        .script("assistant", [delegates()])
        .script("web-research", [ScriptedTurn::default().say("The mar").hang()])
        .script("internal-docs", [ScriptedTurn::text("We sold 400.")]);
    let site = plan(&model).start().await;
    let mut frames = stream(&site, "messages", &asks()).await;
    let run = run_of(&frames.until(|frame| frame.kind() == "RUN_STARTED").await);
    let mut traced = trace(&site, &run).await;
    let heard = traced.until(|frame| frame.kind() == "SUBAGENT_FINISHED").await;
    assert_eq!(behind_the_scenes(&heard, "internal-docs"), "We sold 400.");
    frames.until(|frame| frame.kind() == "SUBAGENT_FINISHED").await;
    assert_eq!(get(&site, &format!("/api/v1/runs/{run}")).await["status"], "running");
    abort(&site, &run).await;
    let rest = frames.all().await;
    assert_eq!(rest.last().expect("an end").event["outcome"]["type"], "cancelled");
    site.end().await;
}

/// J3.4, J3.5: whoever names the agents gets each result as soon as it is there, without a right to traces, then the combined text
/// that says who said what.
#[tokio::test]
async fn j3_4_results_come_as_soon_as_they_are_there() {
    let model = Scripted::default()
        .script(
            "web-research",
            [ScriptedTurn::default().say("The mar").hang(), ScriptedTurn::text("The market grows.")],
        )
        .script("internal-docs", [ScriptedTurn::text("We sold 400."), ScriptedTurn::text("We sold 400.")]);
    let site = plan(&model).required().start().await;
    let key = site.key("acme", "ada", &["user"]).await;
    let ask = async || {
        let url = format!("http://{}/api/v1/threads/{THREAD}/delegations", site.address);
        let request = reqwest::Client::new().post(url).bearer_auth(&key).json(&research());
        Frames::of(request.send().await.expect("an answer"))
    };
    let mut frames = ask().await;
    let heard = frames.until(|frame| is_custom(frame, "baton.result")).await;
    let first = &heard.last().expect("a result").event["value"];
    assert_eq!((&first["agent_id"], &first["response"]), (&json!("internal-docs"), &json!("We sold 400.")));
    let url = format!("http://{}/api/v1/runs/{}/cancel", site.address, run_of(&heard));
    let cancel = reqwest::Client::new().post(url).bearer_auth(&key).json(&json!({"mode": "abort"}));
    assert!(cancel.send().await.expect("an answer").status().is_success(), "their own run");
    let rest = frames.all().await;
    assert!(
        !rest.iter().any(|frame| is_custom(frame, "baton.result")),
        "who was told to end brought nothing"
    );

    let frames = ask().await.all().await;
    assert_eq!(
        text_of(&frames),
        "From web-research:\nThe market grows.\n\nFrom internal-docs:\nWe sold 400."
    );
    assert_eq!(frames.iter().filter(|frame| is_custom(frame, "baton.result")).count(), 2);
    assert_eq!(
        behind_the_scenes(&frames, "web-research"),
        "",
        "how they came to it is for those who read traces"
    );
    assert_eq!(frames.last().map(Frame::kind), Some("RUN_FINISHED"));
    site.end().await;
}

/// B7, B13: one that fails is announced as failed, and the answer comes all the same.
#[tokio::test]
async fn j3_one_that_fails_does_not_keep_the_answer_away() {
    let model = Scripted::default()
        .script("assistant", [delegates(), ScriptedTurn::text("We sold 400; the web is not available.")])
        .script("internal-docs", [ScriptedTurn::text("We sold 400.")]);
    let site = plan(&model).start().await;
    let frames = stream(&site, "messages", &asks()).await.all().await;
    assert_eq!(positions(&frames, "SUBAGENT_ERROR").len(), 1);
    assert_eq!(text_of(&frames), "We sold 400; the web is not available.");
    assert_eq!(frames.last().map(Frame::kind), Some("RUN_FINISHED"));
    site.end().await;
}
