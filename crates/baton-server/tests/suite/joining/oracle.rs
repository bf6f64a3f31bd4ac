//! What a client must have been sent, whatever the interleaving.

use std::collections::BTreeMap;

use baton_agui::Detail;
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_server::stream::follow::Of;
use serde_json::Value;

use super::script::Script;

/// One message as a client has it.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    opened: usize,
    ended: usize,
    text: String,
}

/// Every text that ends after `after` is there once, whole, opened once and ended once; nothing is said outside of a message.
pub fn check(script: &Script, of: Of, after: u64, detail: Detail, sent: &[Value], context: &str) {
    let mut seen: BTreeMap<&str, Seen> = BTreeMap::new();
    for event in sent {
        read(&mut seen, event, context);
    }
    for (id, one) in &seen {
        assert_eq!((one.opened, one.ended), (1, 1), "message {id}, {context}: {sent:#?}");
    }
    for event in script.of(of).filter(|event| event.seq > after) {
        let is_seen = detail == Detail::Trace || event.visibility == Visibility::User;
        if let EventKind::TextFinished { message_id, text, .. } = &event.kind
            && is_seen
        {
            let said = seen.get(message_id.to_string().as_str()).map(|one| &one.text);
            assert_eq!(said, Some(text), "message {message_id}, {context}: {sent:#?}");
        }
    }
}

fn read<'a>(seen: &mut BTreeMap<&'a str, Seen>, event: &'a Value, context: &str) {
    let id = event["messageId"].as_str().unwrap_or_default();
    match event["type"].as_str().expect("a type") {
        "TEXT_MESSAGE_START" => seen.entry(id).or_default().opened += 1,
        "TEXT_MESSAGE_CONTENT" => {
            let one = seen.get_mut(id).unwrap_or_else(|| panic!("a piece before its start, {context}"));
            assert_eq!(one.ended, 0, "a piece after the end, {context}");
            one.text.push_str(event["delta"].as_str().expect("a delta"));
        }
        "TEXT_MESSAGE_END" => {
            seen.get_mut(id).unwrap_or_else(|| panic!("an end before its start, {context}")).ended += 1;
        }
        _ => {}
    }
}
