//! The answer of a tool: text for a model, and files.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_core::{ProducedFile, ToolOutput};
use rmcp::model::{Annotations, CallToolResult, ContentBlock, Resource, ResourceContents, Role};
use serde_json::Value;

/// More than any model reads; the engine stores long text and pages through it.
pub(crate) const MAX_TEXT_BYTES: usize = 8 * 1024 * 1024;

/// The answer of a tool. Images, sound and embedded resources are files; the engine describes them in the text.
pub(crate) fn output(result: &CallToolResult) -> ToolOutput {
    let (mut files, mut described) = (Vec::new(), Vec::new());
    for block in &result.content {
        let found = file(block);
        if found.is_none() || !is_binary(block) {
            described.push(block);
        }
        files.extend(found);
    }
    let text = joined(&described, result);
    let text = match (text.is_empty(), files.is_empty()) {
        (true, true) => EMPTY.to_owned(),
        _ => cut(text),
    };
    ToolOutput { files, ..ToolOutput::from(text) }
}

const EMPTY: &str = "(the tool gave an empty answer)";

/// The answer as text alone, as errors have it.
pub(crate) fn text(result: &CallToolResult) -> String {
    let text = joined(&result.content.iter().collect::<Vec<_>>(), result);
    if text.is_empty() { EMPTY.to_owned() } else { cut(text) }
}

fn joined(blocks: &[&ContentBlock], result: &CallToolResult) -> String {
    let mut parts: Vec<String> = blocks.iter().map(|one| block(one)).collect();
    if let Some(structured) = &result.structured_content
        && !repeats(&result.content, structured)
    {
        parts.push(structured.to_string());
    }
    parts.join("\n")
}

/// Whether a block is a file that the text does not contain.
fn is_binary(block: &ContentBlock) -> bool {
    match block {
        ContentBlock::Image(_) | ContentBlock::Audio(_) => true,
        ContentBlock::Resource(embedded) => {
            matches!(embedded.resource, ResourceContents::BlobResourceContents { .. })
        }
        _ => false,
    }
}

/// The file that a block contains. `None` if it has none, or none that can be decoded.
fn file(block: &ContentBlock) -> Option<ProducedFile> {
    let (file, annotations) = match block {
        ContentBlock::Image(image) => (decoded(&image.data, Some(&image.mime_type))?, &image.annotations),
        ContentBlock::Audio(audio) => (decoded(&audio.data, Some(&audio.mime_type))?, &audio.annotations),
        ContentBlock::Resource(embedded) => (resource_file(&embedded.resource)?, &embedded.annotations),
        _ => return None,
    };
    Some(ProducedFile { is_for_user: is_for_user(annotations.as_ref()), ..file })
}

/// The content of a resource as a file, with the last part of its address as name.
pub(crate) fn resource_file(contents: &ResourceContents) -> Option<ProducedFile> {
    let (file, uri) = match contents {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            let file = ProducedFile::new(text.as_bytes());
            (ProducedFile { media_type: mime_type.clone(), ..file }, uri)
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            (decoded(blob, mime_type.as_deref())?, uri)
        }
        _ => return None,
    };
    let path = uri.split(['?', '#']).next().unwrap_or_default();
    let name = path.rsplit('/').next().filter(|name| !name.is_empty());
    Some(ProducedFile { name: name.map(str::to_owned), ..file })
}

fn decoded(base64: &str, mime_type: Option<&str>) -> Option<ProducedFile> {
    let file = ProducedFile::new(STANDARD.decode(base64).ok()?);
    Some(ProducedFile { media_type: mime_type.map(str::to_owned), ..file })
}

/// Servers can mark content as made for the model alone.
fn is_for_user(annotations: Option<&Annotations>) -> bool {
    let audience = annotations.and_then(|annotations| annotations.audience.as_ref());
    audience.is_none_or(|audience| audience.is_empty() || audience.contains(&Role::User))
}

/// The resources that an answer links to.
pub(crate) fn links(result: &CallToolResult) -> impl Iterator<Item = &Resource> {
    result.content.iter().filter_map(|block| match block {
        ContentBlock::ResourceLink(resource) => Some(resource),
        _ => None,
    })
}

/// Whether a link is for the user.
pub(crate) fn is_link_for_user(link: &Resource) -> bool {
    is_for_user(link.annotations.as_ref())
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

    /// D8: images, sound and embedded resources are files; what cannot be decoded is described.
    #[test]
    fn d8_files_of_an_answer() {
        let audience = |roles: Value| json!({ "audience": roles });
        let content = json!([
            { "type": "text", "text": "Hello." },
            { "type": "image", "data": "aGVsbG8=", "mimeType": "image/png" },
            { "type": "audio", "data": "aGVsbG8h", "mimeType": "audio/wav", "annotations": audience(json!(["assistant"])) },
            { "type": "image", "data": "?", "mimeType": "image/png" },
            { "type": "resource", "resource": { "uri": "a://b/notes.md?x=1", "mimeType": "text/markdown", "text": "inside" } },
            { "type": "resource", "resource": { "uri": "a:c", "blob": "aGk=", "mimeType": "x/y" } },
        ]);
        let output = output(&serde_json::from_value(json!({ "content": content })).unwrap());
        assert_eq!(output.text, "Hello.\n[image: image/png, 0 bytes]\n[resource a://b/notes.md?x=1]\ninside");
        let files: Vec<_> = output
            .files
            .iter()
            .map(|file| (file.name.as_deref(), file.media_type.as_deref(), &*file.bytes, file.is_for_user))
            .collect();
        assert_eq!(
            files,
            [
                (None, Some("image/png"), b"hello".as_slice(), true),
                (None, Some("audio/wav"), b"hello!", false),
                (Some("notes.md"), Some("text/markdown"), b"inside", true),
                (Some("a:c"), Some("x/y"), b"hi", true),
            ]
        );
        let only_image = json!({ "content": [{ "type": "image", "data": "aGk=", "mimeType": "image/png" }] });
        assert_eq!(super::output(&serde_json::from_value(only_image).unwrap()).text, "");
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
