//! Coming in the middle of a run, and falling behind in it.

use baton_agui::{AguiEvent, AguiMessage, Detail};
use baton_core::event::{Event, EventKind, Growing};
use baton_core::message::{Image, ImageSource, Message, Part, Role, Visibility};
use baton_core::{AgentName, MessageId, RunId};
use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::stories::{self, Story};
use crate::{lines, projection, rules};

/// What somebody gets who comes when `seen` has happened and then hears `rest`.
pub fn joined(detail: Detail, seen: &[Event], growing: &[Growing], rest: &[Event]) -> Vec<AguiEvent> {
    let mut projection = projection(detail);
    for event in seen {
        projection.replay(event);
    }
    let mut told = projection.preamble(history());
    told.extend(growing.iter().flat_map(|text| projection.grown(text)));
    told.extend(rest.iter().flat_map(|event| projection.project(event)));
    told
}

/// The conversation before, to the message that the run answers, with everything that messages can have.
pub fn history() -> Vec<AguiMessage> {
    let image = |source| Part::Image(Image { source, media_type: "image/png".into(), name: None });
    let file = |media_type: Option<&str>| {
        let (name, uri) = ("a file".to_owned(), "/api/v1/artifacts/1".to_owned());
        Part::File { name, uri, media_type: media_type.map(str::to_owned) }
    };
    let parts = vec![
        Part::text("Go"),
        image(ImageSource::Base64("aGk=".into())),
        image(ImageSource::Uri("https://x/y.png".into())),
        file(None),
        file(Some("audio/mpeg")),
        file(Some("video/mp4")),
        Part::Data { data: json!({ "n": 1 }) },
    ];
    let message = |number, role, agent, parts| Message {
        id: MessageId::from_uuid(Uuid::from_u128(number)),
        run_id: RunId::from_uuid(Uuid::nil()),
        role,
        agent,
        visibility: Visibility::User,
        parts,
        created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
    };
    let agent = AgentName::parse("a1").unwrap();
    let messages = [
        message(u128::MAX, Role::System, None, vec![Part::text("Be kind")]),
        message(u128::MAX - 1, Role::Assistant, Some(agent), parts.clone()),
        message(u128::MAX - 2, Role::User, None, parts),
    ];
    messages.iter().filter_map(|one| AguiMessage::of(one, Detail::Person, &stories::profiles())).collect()
}

/// Only what can be read again.
pub fn kept(events: &[Event]) -> Vec<Event> {
    events.iter().filter(|event| event.kind.is_kept()).cloned().collect()
}

/// What is growing after `seen`.
pub fn growing(seen: &[Event]) -> Vec<Growing> {
    let mut growing = Vec::new();
    for event in seen {
        Growing::follow(&mut growing, event);
    }
    growing
}

/// How much can have happened when the run has begun and has not ended.
pub fn middle(events: &[Event]) -> std::ops::Range<usize> {
    let end = events.iter().position(|event| event.kind.is_end()).unwrap();
    1..end + 1
}

fn cut(events: &[Event], at: Index) -> (&[Event], &[Event]) {
    let middle = middle(events);
    events.split_at(middle.start + at.index(middle.len()))
}

fn written(events: &[AguiEvent]) -> Vec<Value> {
    events.iter().map(|event| serde_json::to_value(event).unwrap()).collect()
}

/// Everything that was said is there once, whole and where it belongs.
fn check(story: &Story, detail: Detail, told: &[AguiEvent]) -> Result<(), String> {
    let told = written(told);
    rules::check(&told).map_err(|broken| format!("{broken}\n{}", lines(&told)))?;
    for said in story.said.iter().filter(|said| said.is_shown || detail == Detail::Trace) {
        let (text, owner) = rules::text(&told, &said.id);
        if (text.as_deref(), owner.as_deref()) != (Some(said.text.as_str()), said.owner.as_deref()) {
            return Err(format!("{said:?} is {text:?} of {owner:?}\n{}", lines(&told)));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whoever remembers goes on exactly like whoever was told.
    #[test]
    fn events_after_a_replay_are_the_same(story in stories::story(), at: Index, is_kept: bool) {
        let events = if is_kept { kept(&story.events) } else { story.events };
        let (seen, rest) = cut(&events, at);
        for detail in [Detail::Person, Detail::Trace] {
            let (mut there, mut late) = (projection(detail), projection(detail));
            for event in seen {
                there.project(event);
                late.replay(event);
            }
            late.preamble(Vec::new());
            for event in rest {
                prop_assert_eq!(there.project(event), late.project(event));
            }
            prop_assert!(late.is_over());
            prop_assert_eq!(late.run(), Some(events[0].run_id));
        }
    }

    /// From what is kept, what is growing and what follows.
    #[test]
    fn late_client_gets_every_event_once(story in stories::story(), at: Index) {
        let (seen, rest) = cut(&story.events, at);
        for detail in [Detail::Person, Detail::Trace] {
            let told = joined(detail, &kept(seen), &growing(seen), rest);
            if let Err(broken) = check(&story, detail, &told) {
                prop_assert!(false, "{detail}: {broken}");
            }
            let told = written(&told);
            for text in growing(seen).iter().filter(|text| text.is_thought() && detail == Detail::Trace) {
                let whole = whole_thought(&story.events, text.message_id);
                let id = text.message_id.to_string();
                prop_assert_eq!(rules::text(&told, &id).0, Some(whole));
            }
        }
    }

    /// A listener that is too slow misses pieces, reads what was kept and gets exactly the rest of what is growing; as often as that
    /// happens.
    #[test]
    fn lagging_client_misses_and_repeats_nothing(
        story in stories::story(),
        at in prop::collection::vec(any::<Index>(), 1..6),
    ) {
        let mut cuts: Vec<usize> = at.iter().map(|at| at.index(story.events.len() + 1)).collect();
        cuts.sort_unstable();
        for detail in [Detail::Person, Detail::Trace] {
            let told = behind(detail, &story.events, &cuts);
            if let Err(broken) = check(&story, detail, &told) {
                prop_assert!(false, "{detail} {cuts:?}: {broken}");
            }
        }
    }
}

/// Hears everything up to the first cut, only what is kept up to the second, everything up to the third, and so on.
fn behind(detail: Detail, events: &[Event], cuts: &[usize]) -> Vec<AguiEvent> {
    let mut projection = projection(detail);
    let mut told = Vec::new();
    let (mut from, mut misses) = (0, false);
    for to in cuts.iter().copied().chain([events.len()]) {
        let stretch = &events[from..to];
        if misses && from > 0 {
            told.extend(kept(stretch).iter().flat_map(|event| projection.project(event)));
            told.extend(growing(&events[..to]).iter().flat_map(|text| projection.grown(text)));
        } else {
            told.extend(stretch.iter().flat_map(|event| projection.project(event)));
        }
        (from, misses) = (to, !misses);
    }
    told
}

fn whole_thought(events: &[Event], id: MessageId) -> String {
    let deltas = events.iter().filter_map(|event| match &event.kind {
        EventKind::Reasoning { message_id, delta } if *message_id == id => Some(delta.as_str()),
        _ => None,
    });
    deltas.collect()
}
