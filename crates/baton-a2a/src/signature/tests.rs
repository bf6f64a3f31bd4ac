use aws_lc_rs::encoding::AsDer as _;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair};
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::card::{Capabilities, HTTP_JSON, Interface, JSONRPC, VERSION_03, VERSION_10};
use crate::wire::encode_hybrid_card;

fn pem(der: &[u8]) -> String {
    format!("-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n", STANDARD.encode(der))
}

fn ecdsa() -> CardSigner {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    CardSigner::from_pem(pem(pair.to_pkcs8v1().unwrap().as_ref()).as_bytes()).unwrap()
}

fn card() -> AgentCard {
    let interface = |version: &str, transport: &str| Interface {
        url: "https://example.com/a2a/a".to_owned(),
        transport: transport.to_owned(),
        protocol_version: version.to_owned(),
        tenant: None,
    };
    AgentCard {
        name: "Müller & Söhne".to_owned(),
        description: "Answers questions.".to_owned(),
        version: "1.0.0".to_owned(),
        interfaces: vec![interface(VERSION_10, JSONRPC), interface(VERSION_03, HTTP_JSON)],
        provider: None,
        documentation_url: None,
        icon_url: None,
        capabilities: Capabilities {
            streaming: true,
            push_notifications: false,
            state_transition_history: false,
            extended_card: true,
            extensions: Vec::new(),
        },
        security_schemes: indexmap::IndexMap::new(),
        security: Vec::new(),
        default_input_modes: vec!["text/plain".to_owned()],
        default_output_modes: vec!["text/plain".to_owned()],
        skills: Vec::new(),
        signatures: Vec::new(),
    }
}

fn signed(signer: &CardSigner) -> AgentCard {
    let mut card = card();
    for form in [WireForm::V10, WireForm::V03] {
        card.signatures.push(signer.sign(&card, form, "https://example.com/keys").unwrap());
    }
    card
}

#[test]
fn signed_cards_of_every_form_are_verified() {
    let signer = ecdsa();
    let card = signed(&signer);
    let written =
        [WireForm::V10.encode_card(&card), WireForm::V03.encode_card(&card), encode_hybrid_card(&card)];
    for card in written {
        assert!(verify(&card, &signer.key_set()).is_ok(), "{card}");
        assert_eq!(verify(&card, &ecdsa().key_set()), Err(SignatureError::Untrusted), "another key");
    }
}

#[test]
fn changed_cards_are_refused() {
    let signer = ecdsa();
    let original = WireForm::V10.encode_card(&signed(&signer));
    for (member, value) in [
        ("name", json!("Other")),
        (
            "supportedInterfaces",
            json!([{"url": "https://evil.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}]),
        ),
        ("capabilities", json!({"streaming": false})),
    ] {
        let mut card = original.clone();
        card[member] = value;
        assert_eq!(verify(&card, &signer.key_set()), Err(SignatureError::Untrusted), "{member}");
    }
    let mut unsigned = original.clone();
    unsigned["signatures"] = json!([]);
    assert_eq!(verify(&unsigned, &signer.key_set()), Err(SignatureError::Unsigned));
    let mut damaged = original;
    damaged["signatures"] =
        json!([{"protected": "e30", "signature": "x"}, {"protected": "!", "signature": "y"}]);
    assert_eq!(verify(&damaged, &signer.key_set()), Err(SignatureError::Untrusted));
}

#[test]
fn keys_of_the_common_kinds_are_read() {
    let ed25519 = Ed25519KeyPair::generate().unwrap();
    let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
    let rsa: aws_lc_rs::encoding::Pkcs8V1Der = rsa.as_der().unwrap();
    for der in [ed25519.to_pkcs8v1().unwrap().as_ref(), rsa.as_ref()] {
        let signer = CardSigner::from_pem(pem(der).as_bytes()).unwrap();
        let card = WireForm::V03.encode_card(&signed(&signer));
        assert!(verify(&card, &signer.key_set()).is_ok());
        assert!(!format!("{signer:?}").contains(&STANDARD.encode(der)));
    }
    assert_eq!(CardSigner::from_pem(b"secret").unwrap_err(), SignatureError::Key);
}

/// A signature for the members of one version says nothing about those of the other.
#[test]
fn only_what_is_signed_is_returned() {
    let signer = ecdsa();
    let mut card = encode_hybrid_card(&signed(&signer));
    let evil = json!({"url": "https://evil.example", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    card["supportedInterfaces"] = json!([evil]);
    let trusted = verify(&card, &signer.key_set()).unwrap();
    assert!(!trusted.to_string().contains("evil"), "{trusted}");
    assert_eq!(trusted["url"], "https://example.com/a2a/a");
}
