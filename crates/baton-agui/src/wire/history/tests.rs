use baton_core::{AgentName, MessageId, RunId};
use serde_json::Value;

use super::*;
use crate::AgentProfile;

fn message(role: Role, visibility: Visibility, parts: Vec<Part>) -> Message {
    let agent = (role == Role::Assistant).then(|| AgentName::parse("legal").unwrap());
    Message {
        id: MessageId::parse("01890a5d-ac96-774b-bcce-b30200000001").unwrap(),
        run_id: RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap(),
        role,
        agent,
        visibility,
        parts,
        created_at: "2026-01-02T03:04:05Z".parse().unwrap(),
    }
}

fn profiles() -> AgentProfiles {
    let face = AgentProfile { display_name: "Legal Counsel".into(), color: None, exitable: true, mode: None };
    [(AgentName::parse("legal").unwrap(), face)].into_iter().collect()
}

fn wire(message: &Message) -> Value {
    serde_json::to_value(AguiMessage::of(message, Detail::Trace, &profiles()).unwrap()).unwrap()
}

fn image(source: ImageSource) -> Part {
    Part::Image(Image { source, media_type: "image/png".into(), name: None })
}

fn file(name: &str, media_type: Option<&str>) -> Part {
    let uri = format!("/api/v1/artifacts/{name}");
    Part::File { name: name.into(), uri, media_type: media_type.map(str::to_owned) }
}

#[test]
fn answer_names_its_agent_and_is_text() {
    let parts = vec![Part::text("No."), Part::Data { data: json!({"n": 1}) }, file("a.pdf", None)];
    let answer = wire(&message(Role::Assistant, Visibility::User, parts));
    assert_eq!(
        answer,
        json!({
            "id": "01890a5d-ac96-774b-bcce-b30200000001",
            "role": "assistant",
            "name": "Legal Counsel",
            "content": "No.\n{\"n\":1}\n[a.pdf](/api/v1/artifacts/a.pdf)",
            "metadata": {"baton": {"run_id": "01890a5d-ac96-774b-bcce-b302099a8057", "agent": "legal"}},
        })
    );
}

#[test]
fn user_message_keeps_its_parts() {
    let words = wire(&message(Role::User, Visibility::User, vec![Part::text("Hello"), Part::text("there")]));
    assert_eq!(words["content"], "Hello\nthere");
    assert_eq!(words.get("name"), None);
    let parts = vec![
        Part::text("Look"),
        image(ImageSource::Base64("aGk=".into())),
        image(ImageSource::Uri("https://x/y.png".into())),
        file("a.pdf", Some("application/pdf")),
        file("b.mp3", Some("audio/mpeg")),
        file("c", None),
        Part::Data { data: json!([1]) },
    ];
    let sent = wire(&message(Role::User, Visibility::User, parts));
    let named = |name: &str| json!({ "name": name });
    let url = |name: &str| json!({"type": "url", "value": format!("/api/v1/artifacts/{name}")});
    let typed = |name: &str, kind: &str| {
        let mut source = url(name);
        source["mimeType"] = json!(kind);
        source
    };
    assert_eq!(
        sent["content"],
        json!([
            {"type": "text", "text": "Look"},
            {"type": "image", "source": {"type": "data", "value": "aGk=", "mimeType": "image/png"}},
            {"type": "image", "source": {"type": "url", "value": "https://x/y.png", "mimeType": "image/png"}},
            {"type": "document", "source": typed("a.pdf", "application/pdf"), "metadata": named("a.pdf")},
            {"type": "audio", "source": typed("b.mp3", "audio/mpeg"), "metadata": named("b.mp3")},
            {"type": "document", "source": url("c"), "metadata": named("c")},
            {"type": "text", "text": "[1]"},
        ])
    );
}

#[test]
fn person_does_not_get_internal_messages() {
    let internal = message(Role::Assistant, Visibility::Internal, vec![Part::text("Hm.")]);
    assert_eq!(AguiMessage::of(&internal, Detail::Person, &profiles()), None);
    assert_eq!(wire(&internal)["content"], "Hm.");
}
