//! Deltas of open texts, written from templates.

use super::*;

fn piece(delta: &str) -> Event {
    let message_id = MessageId::parse("01890a5d-ac96-774b-bcce-b30200000001").unwrap();
    event(Visibility::User, EventKind::TextDelta { message_id, delta: delta.into() })
}

fn open() -> Projection {
    let mut projection = Projection::new(Detail::Person);
    let message_id = MessageId::parse("01890a5d-ac96-774b-bcce-b30200000001").unwrap();
    projection.project(&event(Visibility::User, EventKind::RunStarted { is_held: false }));
    projection.project(&event(Visibility::User, EventKind::TextStarted { message_id, speaker: "A".into() }));
    projection
}

fn written(projection: &mut Projection, event: &Event) -> Option<String> {
    let piece = projection.piece(event)?;
    let mut out = Vec::new();
    piece.write_json(&mut out);
    Some(String::from_utf8(out).unwrap())
}

#[test]
fn text_delta_is_the_json_of_its_event() {
    for delta in
        ["plain", "\"quoted\" \\ back", "line\nbreak\t\u{0}\u{1f}", "ü 🦀 \u{2028}", "\"delta\":\"\"", "0}}}"]
    {
        let (mut direct, mut usual) = (open(), open());
        for (at, seq) in [("1969-12-31T23:59:59.5Z", 0), ("2026-01-02T03:04:05.678Z", u64::MAX)] {
            let event = Event { at: at.parse().unwrap(), seq, ..piece(delta) };
            let expected = serde_json::to_string(&usual.project(&event)[0]).unwrap();
            assert_eq!(written(&mut direct, &event), Some(expected));
        }
    }
}

#[test]
fn event_with_other_than_one_delta_is_not_written_directly() {
    let mut projection = open();
    assert!(projection.piece(&piece("")).is_none(), "nothing is sent for it");
    let hidden = Event { visibility: Visibility::Internal, ..piece("x") };
    assert!(projection.piece(&hidden).is_none(), "not for this listener");
    let message_id = MessageId::parse("01890a5d-ac96-774b-bcce-b30200000002").unwrap();
    let other = event(Visibility::User, EventKind::TextDelta { message_id, delta: "x".into() });
    assert!(projection.piece(&other).is_none(), "its text is not open");
    assert!(Projection::new(Detail::Person).piece(&piece("x")).is_none(), "the run has not begun");
    projection.project(&event(Visibility::User, EventKind::Reasoning { message_id, delta: "hm".into() }));
    assert!(projection.piece(&piece("x")).is_none(), "it ends a thought");
    projection.project(&piece("x"));
    assert!(projection.piece(&piece("y")).is_some());
}
