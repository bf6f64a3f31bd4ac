//! Journey 1: a question, answered from the documents by somebody behind the scenes.

use serde_json::json;

use super::person::Person;
use super::{QUESTION, project};
use crate::served::Served;

/// I3, J0a: a question is answered in one voice, with progress and without a visible switch.
#[test]
fn j1_a_question_is_answered_and_nobody_sees_who_was_asked() {
    let dir = project("");
    let served = Served::start(dir.path());
    let ada = Person::new(&served);
    let turn = ada.say(QUESTION);
    assert!(turn.is_well(), "J1.1: {:?}", turn.events);
    let asked: Vec<_> = turn.of_type("SUBAGENT_STARTED").map(|event| event["name"].clone()).collect();
    assert_eq!(asked, ["Knowledge"], "J1.2: it needs the knowledge base");
    let begun = turn.of_type("SUBAGENT_STARTED").next().unwrap();
    let query = "how to configure rate limiting for the agent";
    assert_eq!(
        begun["description"], query,
        "J1.3, K8: the knowledge agent is asked in words of the main agent"
    );
    let finished = turn.of_type("SUBAGENT_FINISHED").next().expect("J1.3: it answers");
    assert_eq!(finished["outcome"], json!({ "type": "success" }), "J1.3");
    assert!(
        turn.place("SUBAGENT_STARTED") < turn.place("TEXT_MESSAGE_START"),
        "J1.3: before anything is said"
    );

    let traced = ada.run(turn.run_id(), "?detail=trace");
    let hidden: String = traced
        .of_type("TEXT_MESSAGE_CONTENT")
        .filter(|event| event.get("subagentRunId").is_some())
        .filter_map(|event| event["delta"].as_str())
        .collect();
    assert!(hidden.contains("requests_per_minute"), "J1.4: the relevant documentation: {hidden}");

    let answer = turn.said();
    assert!(answer.contains("set `requests_per_minute` in the section `[limits]`"), "J1.5: {answer}");
    assert!(
        answer.contains("```toml\n[limits]\nrequests_per_minute = 600"),
        "J1.5: with an example: {answer}"
    );
    // The offline model has its whole text at once; that pieces come as they are made, the same journey with a model shows.
    let (start, end) = (turn.place("TEXT_MESSAGE_START"), turn.place("TEXT_MESSAGE_END"));
    let pieces = (start + 1..end).filter(|at| turn.events[*at]["type"] == "TEXT_MESSAGE_CONTENT").count();
    assert!(pieces > 0 && pieces == turn.of_type("TEXT_MESSAGE_CONTENT").count(), "J1.6: it is streamed");
    assert!(answer.contains("docs/configuration.md › Configuration › Rate limiting"), "J1.6: {answer}");

    assert_eq!(
        ada.history(),
        [("user".to_owned(), QUESTION.to_owned()), ("assistant".to_owned(), answer)],
        "J1.7: the whole exchange is under the thread's id"
    );
    assert_eq!(ada.context()["thread_id"], json!(ada.thread), "J1.7");
    assert_eq!(turn.speakers(), ["Assistant"], "J1.7: one voice");
    let hidden = turn.events.iter().filter(|event| event["type"].as_str().unwrap().starts_with("TEXT"));
    assert!(hidden.into_iter().all(|event| event.get("subagentRunId").is_none()), "J1.7: no text of others");
    assert_eq!(turn.of_type("STATE_DELTA").count(), 0, "J1.7: the baton stays where it is");
    assert_eq!(turn.holder()["id"], "assistant", "J1.7");
}
