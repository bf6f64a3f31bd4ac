//! What clients of AG-UI insist on, checked over many runs that nobody wrote by hand: agents that work side by side and below
//! each other, are cut off, fail, and pass the baton.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod joining;
mod npm;
mod page;
mod rules;
mod stories;

use baton_agui::{Detail, EventWriter, Projection};
use proptest::prelude::*;
use serde_json::Value;

use stories::Story;

fn projection(detail: Detail) -> Projection {
    Projection::new(detail).with_profiles(stories::profiles())
}

/// The story as a listener hears it.
fn heard(story: &Story, detail: Detail) -> Vec<Value> {
    let mut projection = projection(detail);
    let events = story.events.iter().flat_map(|event| projection.project(event));
    events.map(|event| serde_json::to_value(event).unwrap()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Every stream keeps the rules, whatever happened and wherever it was cut.
    #[test]
    fn every_stream_follows_the_protocol(story in stories::story()) {
        for detail in [Detail::Person, Detail::Trace] {
            let events = heard(&story, detail);
            if let Err(broken) = rules::check(&events) {
                prop_assert!(false, "{detail}: {broken}\n{}", lines(&events));
            }
        }
    }

    /// Events and deltas that are written directly are the bytes that serializing the events yields.
    #[test]
    fn events_are_written_as_they_are_serialized(story in stories::story()) {
        for detail in [Detail::Person, Detail::Trace] {
            let (mut direct, mut usual) = (projection(detail), projection(detail));
            let mut writer = EventWriter::default();
            for event in &story.events {
                let (mut written, mut expected) = (Vec::new(), Vec::new());
                let piece = direct.piece(event).map(|piece| piece.write_json(&mut written));
                if piece.is_none() {
                    direct.project(event).iter().for_each(|event| writer.write(event, &mut written));
                }
                usual.project(event).iter().for_each(|event| serde_json::to_writer(&mut expected, event).unwrap());
                prop_assert_eq!(String::from_utf8(written), String::from_utf8(expected));
            }
        }
    }

    /// Whole texts arrive, each as the work of who wrote it, and those for the person as nobody's.
    #[test]
    fn texts_arrive_whole_under_their_author(story in stories::story()) {
        let trace = heard(&story, Detail::Trace);
        let person = heard(&story, Detail::Person);
        for said in &story.said {
            let (text, owner) = rules::text(&trace, &said.id);
            prop_assert_eq!((text.as_deref(), owner.as_deref()), (Some(said.text.as_str()), said.owner.as_deref()));
            let (seen, owner) = rules::text(&person, &said.id);
            prop_assert_eq!(seen.as_deref(), said.is_shown.then_some(said.text.as_str()));
            prop_assert_eq!(owner, None);
        }
    }

    /// A person hears who is at work, and not a word of theirs.
    #[test]
    fn person_gets_no_internal_events(story in stories::story()) {
        let tagged = |event: &&Value| {
            let kind = event["type"].as_str().unwrap_or_default();
            event.get("subagentRunId").is_some() && !kind.starts_with("SUBAGENT_")
        };
        let person = heard(&story, Detail::Person);
        prop_assert_eq!(person.iter().find(tagged), None);
        let calls = person.iter().filter(|event| event["type"].as_str().unwrap_or_default().starts_with("TOOL_"));
        prop_assert_eq!(calls.count(), 0);
        let begun = person.iter().filter(|event| event["type"] == "SUBAGENT_STARTED").count();
        prop_assert_eq!(begun, if story.is_told_of_subagents { story.subagents } else { 0 });
    }
}

fn lines(events: &[Value]) -> String {
    events.iter().map(|event| format!("{event}\n")).collect()
}
