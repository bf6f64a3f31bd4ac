//! Cards of both versions, and hybrid ones.

use baton_a2a::card::{AgentCard, Interface};
use baton_a2a::{WireForm, wire};
use serde_json::json;

use crate::objects;

/// The card with the shorter version numbers that 1.0 writes.
fn short(mut card: AgentCard) -> AgentCard {
    let shorten = |interface: &mut Interface| {
        if interface.protocol_version == "0.3.0" {
            "0.3".clone_into(&mut interface.protocol_version);
        }
    };
    card.interfaces.iter_mut().for_each(shorten);
    card
}

#[test]
fn cards_survive_each_form() {
    let old = objects::card(&["0.3.0"]);
    assert_eq!(wire::decode_card(&WireForm::V03.encode_card(&old)), Ok(old));
    let new = objects::card(&["1.0", "0.3.0"]);
    assert_eq!(wire::decode_card(&WireForm::V10.encode_card(&new)), Ok(short(new.clone())));
    assert_eq!(wire::decode_card(&wire::encode_hybrid_card(&new)), Ok(short(new)));
}

#[test]
fn d11_a_hybrid_card_lists_both_versions() {
    let card = wire::encode_hybrid_card(&objects::card(&["1.0", "0.3.0"]));
    assert_eq!(card["protocolVersion"], "0.3.0");
    assert_eq!(card["preferredTransport"], "JSONRPC");
    assert_eq!(card["url"], "https://example.com/a2a");
    assert_eq!(card["additionalInterfaces"].as_array().unwrap().len(), 2);
    let versions: Vec<_> = card["supportedInterfaces"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["protocolVersion"].clone())
        .collect();
    assert_eq!(versions, ["1.0", "1.0", "0.3", "0.3"]);
    assert_eq!(card["securitySchemes"]["bearer"]["type"], "http");
    assert_eq!(card["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"], "bearer");
}

#[test]
fn a_card_of_1_0_has_no_member_of_0_3() {
    let card = WireForm::V10.encode_card(&objects::card(&["1.0"]));
    for member in ["url", "protocolVersion", "preferredTransport", "additionalInterfaces", "security"] {
        assert!(card.get(member).is_none(), "{member}");
    }
}

#[test]
fn a_card_with_unknown_members_and_schemes_is_read() {
    let card = wire::decode_card(&json!({
        "name": "n", "url": "https://example.com/", "future": { "a": 1 },
        "capabilities": { "streaming": true, "telepathy": true },
        "securitySchemes": { "new": { "type": "quantum", "qubits": 3 } },
        "skills": [{ "id": "s", "name": "S", "description": "", "tags": [] }],
    }))
    .unwrap();
    assert_eq!(card.interfaces[0].transport, "JSONRPC");
    assert_eq!(card.interfaces[0].protocol_version, "0.3.0");
    assert!(card.capabilities.streaming);
    assert_eq!(card.skills.len(), 1);
}

#[test]
fn a_card_without_an_interface_is_refused() {
    assert!(wire::decode_card(&json!({ "name": "n" })).is_err());
}
