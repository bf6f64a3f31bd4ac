//! Parts of messages, in both directions.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_a2a::model::{Content, Part as A2aPart};
use baton_core::ThreadId;
use baton_core::message::{Image, ImageSource, Part};
use baton_core::store::Artifact;
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use super::exchange::Exchange;
use super::failure::{A2aFailure, A2aResult};
use crate::trail::{self, AuditRecord};
use crate::wire::artifact;
use crate::wire::message::PartView;

/// Parts of a message; checked before the first file is stored.
const MAX_PARTS: usize = 64;
/// The media types that cards name. Files of these and of related types are accepted.
pub const INPUT_MODES: [&str; 5] =
    ["text/plain", "application/json", "application/pdf", "image/png", "image/jpeg"];
/// Further types of documents that agents read or keep as files.
const DOCUMENTS: [&str; 6] = [
    "application/octet-stream",
    "application/rtf",
    "application/xml",
    "application/x-yaml",
    "application/yaml",
    "application/zip",
];

/// Refuses files of a type that no agent can use. A file without a type is accepted.
pub fn check_media_types(parts: &[A2aPart]) -> A2aResult<()> {
    let is_file = |part: &&A2aPart| matches!(part.content, Content::Bytes(_) | Content::Uri(_));
    let types = parts.iter().filter(is_file).filter_map(|part| part.media_type.as_deref());
    match types.into_iter().find(|media_type| !is_supported(media_type)) {
        None => Ok(()),
        Some(_) => {
            Err(A2aFailure::content_type("the agent reads text, images, JSON, PDF and office documents"))
        }
    }
}

fn is_supported(media_type: &str) -> bool {
    let essence = media_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence.starts_with("text/")
        || essence.starts_with("image/")
        || essence.starts_with("application/vnd.")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || INPUT_MODES.contains(&essence.as_str())
        || DOCUMENTS.contains(&essence.as_str())
}

/// Converts the parts of a client's message. Bytes of files become artifacts of the thread; pictures stay in the message.
pub async fn incoming(
    exchange: &Exchange,
    thread: ThreadId,
    parts: Vec<A2aPart>,
) -> A2aResult<Vec<PartView>> {
    if parts.len() > MAX_PARTS {
        return Err(A2aFailure::invalid(format!("message.parts must have at most {MAX_PARTS} parts")));
    }
    let mut converted = Vec::with_capacity(parts.len());
    for part in parts {
        converted.push(one(exchange, thread, part).await?);
    }
    Ok(converted)
}

async fn one(exchange: &Exchange, thread: ThreadId, part: A2aPart) -> A2aResult<PartView> {
    let A2aPart { content, filename, media_type, .. } = part;
    let media_type = media_type.filter(|text| artifact::is_media_type(text));
    let image = media_type.clone().filter(|text| artifact::is_image(text));
    Ok(match (content, image) {
        (Content::Text(text), _) => PartView::Text { text },
        (Content::Data(data), _) => PartView::Data { data },
        (Content::Bytes(bytes), Some(media_type)) => {
            PartView::Image { data: Some(STANDARD.encode(bytes)), uri: None, media_type, name: filename }
        }
        (Content::Bytes(bytes), None) => store(exchange, thread, filename, media_type, bytes).await?,
        (Content::Uri(uri), image) => linked(exchange, uri, filename, media_type, image),
        (Content::Unknown(_), _) => {
            return Err(A2aFailure::invalid("message.parts must be text, file or data"));
        }
    })
}

async fn store(
    exchange: &Exchange,
    thread_id: ThreadId,
    filename: Option<String>,
    media_type: Option<String>,
    bytes: Vec<u8>,
) -> A2aResult<PartView> {
    let Exchange { app, caller, trace, .. } = exchange;
    let stored = Artifact {
        artifact_id: Uuid::now_v7(),
        thread_id,
        run_id: None,
        name: artifact::clean_name(filename.as_deref().unwrap_or_default()),
        media_type: media_type.unwrap_or_else(|| artifact::ANY.to_owned()),
        size: bytes.len() as u64,
        created_at: Timestamp::now(),
    };
    app.engine.check_storage(&caller.tenant, &caller.user, stored.size).await?;
    let audit_record = AuditRecord {
        action: "artifact.create",
        thread_id: Some(thread_id),
        decision: "allowed",
        detail: json!({ "artifact_id": stored.artifact_id, "name": stored.name, "size": stored.size }),
        ..AuditRecord::default()
    };
    let data = trail::audited(app, caller, trace, audit_record);
    data.put_artifact(stored.clone(), Some(&caller.user), bytes).await?;
    let uri = artifact::uri(stored.artifact_id);
    Ok(PartView::File { name: stored.name, uri, media_type: Some(stored.media_type) })
}

/// A file by its address. One of this server is an artifact; others are named to the agent, and this server does not fetch them.
fn linked(
    exchange: &Exchange,
    uri: String,
    filename: Option<String>,
    media_type: Option<String>,
    image: Option<String>,
) -> PartView {
    let own = exchange.base.as_deref().and_then(|base| uri.strip_prefix(base)).unwrap_or(&uri);
    if artifact::id_in(own).is_some() {
        let name = artifact::clean_name(filename.as_deref().unwrap_or_default());
        return PartView::File { name, uri: own.to_owned(), media_type };
    }
    if let Some(media_type) = image {
        return PartView::Image { data: None, uri: Some(uri), media_type, name: filename };
    }
    let name = filename.map(|name| format!("{} ", artifact::clean_name(&name))).unwrap_or_default();
    let kind = media_type.map(|kind| format!("({kind}) ")).unwrap_or_default();
    PartView::Text { text: format!("File: {name}{kind}{uri}") }
}

/// Converts the parts of a stored message.
pub fn outgoing(parts: &[Part], base: Option<&str>) -> Vec<A2aPart> {
    parts.iter().map(|part| outgoing_part(part, base)).collect()
}

fn outgoing_part(part: &Part, base: Option<&str>) -> A2aPart {
    match part {
        Part::Text { text } => A2aPart::text(text.as_str()),
        Part::Data { data } => A2aPart::data(data.clone()),
        Part::Image(Image { source, media_type, name }) => {
            let content = match source {
                ImageSource::Base64(encoded) => Content::Bytes(STANDARD.decode(encoded).unwrap_or_default()),
                ImageSource::Uri(uri) => Content::Uri(absolute(base, uri)),
            };
            A2aPart { filename: name.clone(), media_type: Some(media_type.clone()), ..A2aPart::new(content) }
        }
        Part::File { name, uri, media_type } => A2aPart {
            filename: Some(name.clone()),
            media_type: media_type.clone(),
            ..A2aPart::new(Content::Uri(absolute(base, uri)))
        },
    }
}

/// An artifact of a run as a file that the client can download with its credential.
pub fn file(stored: &Artifact, base: Option<&str>) -> A2aPart {
    A2aPart {
        filename: Some(stored.name.clone()),
        media_type: Some(stored.media_type.clone()),
        ..A2aPart::new(Content::Uri(absolute(base, &artifact::uri(stored.artifact_id))))
    }
}

fn absolute(base: Option<&str>, uri: &str) -> String {
    match base {
        Some(base) if uri.starts_with('/') => format!("{base}{uri}"),
        _ => uri.to_owned(),
    }
}
