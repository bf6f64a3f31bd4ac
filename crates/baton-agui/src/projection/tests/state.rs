//! The state `activeAgent`.

use baton_core::HandoffId;
use baton_core::event::{HandoffEvent, HandoffPhase};

use super::*;

const MODE: &str = "[Skill Creator Mode]";

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

fn profiles() -> AgentProfiles {
    let creator = AgentProfile {
        display_name: "Skill Creator".into(),
        color: Some("#15803d".into()),
        exitable: true,
        mode: Some(MODE.into()),
    };
    let clerk = AgentProfile { display_name: "Clerk".into(), color: None, exitable: false, mode: None };
    [(name("creator"), creator), (name("clerk"), clerk)].into_iter().collect()
}

fn person() -> Projection {
    Projection::new(Detail::Person).with_profiles(profiles())
}

fn heard(projection: &mut Projection, events: &[Event]) -> Vec<Value> {
    essence(events.iter().flat_map(|event| projection.project(event)).collect())
}

fn passed(path: &str, to: &str, heard_by: Visibility) -> Event {
    let (by, from) = (HopKind::Transfer, name("assistant"));
    let passed = EventKind::Passed { by, from, to: name(to), reason: "r".into(), heard_by };
    at(path, to, Visibility::Internal, passed)
}

fn handoff(phase: HandoffPhase) -> Event {
    let handoff = HandoffEvent {
        handoff_id: HandoffId::parse("01890a5d-ac96-774b-bcce-b302099a8058").unwrap(),
        phase,
        from: name("assistant"),
        to: name("creator"),
        reason: "a skill is wanted".into(),
        message: "Connecting you with Skill Creator…".into(),
        estimated_duration_seconds: None,
    };
    event(Visibility::User, EventKind::Handoff(handoff))
}

fn started() -> Event {
    event(Visibility::User, EventKind::RunStarted { is_held: false })
}

fn delta(active: &Value) -> Value {
    json!({"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/activeAgent", "value": active}]})
}

fn assistant() -> Value {
    json!({"id": "assistant", "display_name": "assistant", "exitable": false})
}

#[test]
fn run_starts_with_the_answering_agent() {
    let heard = heard(&mut person(), &[started()]);
    assert_eq!(heard[0], json!({"type": "RUN_STARTED", "protocolVersion": "1.0"}));
    assert_eq!(heard[1], json!({"type": "STATE_SNAPSHOT", "snapshot": {"activeAgent": assistant()}}));
    assert_eq!(heard.len(), 2);
}

#[test]
fn run_that_ends_before_its_start_has_no_holder() {
    let (code, message) = ("interrupted".to_owned(), "gone".to_owned());
    let failed = EventKind::RunFailed { code, message, usage: Usage::default(), by_agent: Vec::new() };
    let mut projection = person();
    let types: Vec<Value> = heard(&mut projection, &[event(Visibility::User, failed)])
        .into_iter()
        .map(|event| event["type"].clone())
        .collect();
    assert_eq!(types, ["RUN_STARTED", "CUSTOM", "RUN_ERROR"]);
    assert!(projection.is_over());
}

/// The user sees who speaks now, but not the internal pass that caused it.
#[test]
fn baton_returns_when_a_transfer_fails() {
    let (to_clerk, to_creator) =
        ("assistant/turn:1/tool:1/transfer:clerk", "assistant/turn:2/tool:1/transfer:creator");
    let run = RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
    let session_id = SessionId::root(run).child(&name("clerk"), 1);
    let failed = EventKind::SessionFailed { session_id, code: "late".into(), message: "too late".into() };
    let events = [
        started(),
        passed("assistant/turn:1/tool:1/call:x/transfer:y", "y", Visibility::Internal),
        passed(to_clerk, "clerk", Visibility::User),
        at(to_clerk, "clerk", Visibility::Internal, failed),
        passed(to_creator, "creator", Visibility::User),
    ];
    let clerk = json!({"id": "clerk", "display_name": "Clerk", "exitable": false});
    let creator =
        json!({"id": "creator", "display_name": "Skill Creator", "color": "#15803d", "exitable": false});
    assert_eq!(heard(&mut person(), &events)[2..], [delta(&clerk), delta(&assistant()), delta(&creator)]);
}

/// C-19: the holder of a thread can be left while it holds it.
#[test]
fn active_handoff_is_exitable() {
    let mut projection = person();
    let phases =
        [HandoffPhase::Connecting, HandoffPhase::Active, HandoffPhase::Returning, HandoffPhase::Completed];
    let events: Vec<Event> = [started()].into_iter().chain(phases.map(handoff)).collect();
    let heard = heard(&mut projection, &events);
    let states: Vec<&Value> = heard.iter().filter(|event| event["type"] == "STATE_DELTA").collect();
    let creator = json!({
        "id": "creator", "display_name": "Skill Creator", "color": "#15803d", "exitable": true, "mode": MODE,
    });
    assert_eq!(states, [&delta(&creator), &delta(&assistant())]);
    assert_eq!(
        heard[2],
        json!({"type": "CUSTOM", "name": "baton.handoff", "value": {
            "handoff_id": "01890a5d-ac96-774b-bcce-b302099a8058", "phase": "connecting",
            "from": "assistant", "to": "creator", "display_name": "Skill Creator",
            "reason": "a skill is wanted", "message": "Connecting you with Skill Creator…",
        }})
    );
}

/// C-19: a pass to the target of a handoff does not end the handoff.
#[test]
fn c_19_thread_transfer_is_exitable() {
    let place = "assistant/turn:1/tool:1/transfer:creator";
    let events = [started(), handoff(HandoffPhase::Active), passed(place, "creator", Visibility::User)];
    let heard = heard(&mut person(), &events);
    let states: Vec<&Value> = heard.iter().filter(|event| event["type"] == "STATE_DELTA").collect();
    assert_eq!(states.len(), 1, "{states:?}");
    assert_eq!(states[0]["delta"][0]["value"]["exitable"], true);
}

/// The next message of the thread goes to its holder, in a new run.
#[test]
fn run_within_a_handoff_is_exitable_from_its_start() {
    let exitable = |agent: &str| active(agent, true)["exitable"].clone();
    assert_eq!((exitable("creator"), exitable("stranger")), (json!(true), json!(true)));
    assert_eq!(exitable("clerk"), json!(false), "nobody hands a thread to it");
}

/// The state at the start of a run that the agent answers.
fn active(agent: &str, is_held: bool) -> Value {
    let mut projection = person();
    let started = at(agent, agent, Visibility::User, EventKind::RunStarted { is_held });
    heard(&mut projection, &[started])[1]["snapshot"]["activeAgent"].clone()
}

/// K7: each run of a holder begins with its mode, with a workflow or without one.
#[test]
fn k_7_run_within_a_handoff_begins_with_the_mode() {
    assert_eq!(active("creator", true)["mode"], MODE);
    assert_eq!(active("creator", false).get("mode"), None, "only while it holds the thread");
    assert_eq!(active("clerk", true).get("mode"), None);
}
