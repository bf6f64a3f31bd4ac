//! The answer of a tool as text for a model.

use rmcp::model::{CallToolResult, ContentBlock, Resource, ResourceContents};
use serde_json::Value;

/// More than any model reads; the engine stores long text and pages through it.
pub(crate) const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

pub(crate) fn text(result: &CallToolResult) -> String {
    let mut parts: Vec<String> = result.content.iter().map(block).collect();
    if let Some(structured) = &result.structured_content
        && !repeats(&result.content, structured)
    {
        parts.push(structured.to_string());
    }
    let text = parts.join("\n");
    if text.is_empty() { "(the tool gave an empty answer)".to_owned() } else { cut(text) }
}

/// Servers repeat structured content as text, for clients that do not know it.
fn repeats(content: &[ContentBlock], structured: &Value) -> bool {
    content
        .iter()
        .filter_map(ContentBlock::as_text)
        .any(|block| serde_json::from_str::<Value>(&block.text).is_ok_and(|value| value == *structured))
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => binary("image", Some(&image.mime_type), &image.data),
        ContentBlock::Audio(audio) => binary("audio", Some(&audio.mime_type), &audio.data),
        ContentBlock::Resource(embedded) => resource(&embedded.resource),
        ContentBlock::ResourceLink(resource) => link(resource),
        _ => "[content of an unknown kind]".to_owned(),
    }
}

fn resource(contents: &ResourceContents) -> String {
    match contents {
        ResourceContents::TextResourceContents { uri, text, .. } => format!("[resource {uri}]\n{text}"),
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            binary(&format!("resource {uri}"), mime_type.as_deref(), blob)
        }
        _ => "[a resource of an unknown kind]".to_owned(),
    }
}

fn link(resource: &Resource) -> String {
    let mut text = format!("[link to resource {} ({}", resource.uri, resource.name);
    if let Some(mime_type) = &resource.mime_type {
        text.push_str(&format!(", {mime_type}"));
    }
    if let Some(size) = resource.size {
        text.push_str(&format!(", {size} bytes"));
    }
    text + ")]"
}

fn binary(what: &str, mime_type: Option<&str>, base64: &str) -> String {
    let padding = base64.bytes().rev().take_while(|byte| *byte == b'=').count();
    let bytes = (base64.len() / 4 * 3).saturating_sub(padding);
    format!("[{what}: {}, {bytes} bytes]", mime_type.unwrap_or("unknown type"))
}

fn cut(mut text: String) -> String {
    let whole = text.len();
    if whole > MAX_TEXT_BYTES {
        text.truncate(text.floor_char_boundary(MAX_TEXT_BYTES));
        text.push_str(&format!(
            "\n[cut: the answer has {whole} bytes, and these are the first {MAX_TEXT_BYTES}]"
        ));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(result: Value) -> String {
        text(&serde_json::from_value(result).unwrap())
    }

    #[test]
    fn every_kind_of_content() {
        let content = json!([
            { "type": "text", "text": "Hello." },
            { "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" },
            { "type": "audio", "data": "aGVsbG8h", "mimeType": "audio/wav" },
            { "type": "resource", "resource": { "uri": "a:b", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "a:c", "blob": "aGk=", "mimeType": "x/y" } },
            { "type": "resource_link", "uri": "a:d", "name": "d", "mimeType": "text/plain", "size": 3 },
        ]);
        assert_eq!(
            read(json!({ "content": content, "structuredContent": { "a": 1 } })),
            "Hello.\n[image: image/png, 5 bytes]\n[audio: audio/wav, 6 bytes]\n[resource a:b]\ninside\n\
             [resource a:c: x/y, 2 bytes]\n[link to resource a:d (d, text/plain, 3 bytes)]\n{\"a\":1}"
        );
        assert_eq!(read(json!({ "content": [] })), "(the tool gave an empty answer)");
    }

    #[test]
    fn structured_content_is_not_said_twice() {
        let content = json!([{ "type": "text", "text": "{ \"a\": 1 }" }]);
        assert_eq!(read(json!({ "content": content, "structuredContent": { "a": 1 } })), "{ \"a\": 1 }");
    }

    #[test]
    fn long_text_is_cut_between_characters() {
        let text = cut("ä".repeat(MAX_TEXT_BYTES / 2) + "x");
        assert!(text.ends_with("ä\n[cut: the answer has 8388609 bytes, and these are the first 8388608]"));
        let text = cut("x".to_owned() + &"ä".repeat(MAX_TEXT_BYTES / 2));
        assert!(text.contains("ä\n[cut"));
    }
}
