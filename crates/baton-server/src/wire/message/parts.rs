//! What may be sent as a part of a message, and what becomes of it.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_core::message::{Image, ImageSource, Part};
use baton_core::store::Artifact;
use baton_core::{StoreError, ThreadId};
use uuid::Uuid;

use super::PartView;
use crate::app::App;
use crate::identity::Principal;
use crate::problem::{ApiResult, Code, FieldError, Problem};
use crate::wire::artifact;

/// Of one message.
const MOST_PARTS: usize = 64;
const LONGEST_URI: usize = 2048;
pub(super) const ONE_SOURCE: &str = "an image has either `data` (base64) or `uri`";

/// Everything that is wrong with the parts themselves, below `at`.
pub fn check(parts: &[PartView], at: &str) -> Vec<FieldError> {
    let wrong = |place: String, detail: &str| FieldError { pointer: place, detail: detail.to_owned() };
    if parts.is_empty() || parts.len() > MOST_PARTS {
        return vec![wrong(at.to_owned(), &format!("a message has between 1 and {MOST_PARTS} parts"))];
    }
    if parts.iter().all(is_blank) {
        return vec![wrong(at.to_owned(), "a message says something")];
    }
    let parts = parts.iter().enumerate();
    let found = parts.filter_map(|(number, part)| Some((number, mistake(part)?)));
    found.map(|(number, (field, detail))| wrong(format!("{at}/{number}{field}"), detail)).collect()
}

fn is_blank(part: &PartView) -> bool {
    matches!(part, PartView::Text { text } if text.trim().is_empty())
}

/// In which field, and what.
fn mistake(part: &PartView) -> Option<(&'static str, &'static str)> {
    match part {
        PartView::Text { .. } | PartView::Data { .. } => None,
        PartView::Image { media_type, .. } if !artifact::is_image(media_type) => {
            Some(("/media_type", "the media type of an image, such as `image/png`"))
        }
        PartView::Image { data: Some(data), uri: None, .. } => {
            let is_base64 = !data.is_empty() && STANDARD.decode(data).is_ok();
            (!is_base64).then_some(("/data", "the bytes of the image in base64 (RFC 4648, with padding)"))
        }
        PartView::Image { data: None, uri: Some(uri), .. } => {
            let is_fine = is_on_the_web(uri) || artifact::id_in(uri).is_some();
            (!is_fine).then_some((
                "/uri",
                "an address that begins with `https://` or `http://`, or that of an artifact",
            ))
        }
        PartView::Image { .. } => Some(("", ONE_SOURCE)),
        PartView::File { uri, .. } => artifact::id_in(uri)
            .is_none()
            .then_some(("/uri", "the `uri` of an artifact: upload the file first")),
    }
}

/// Without a password in it: it would be kept, and shown to others.
fn is_on_the_web(uri: &str) -> bool {
    let parsed = reqwest::Url::parse(uri).ok().filter(|_| uri.len() <= LONGEST_URI);
    parsed.is_some_and(|url| {
        let is_plain = url.username().is_empty() && url.password().is_none();
        matches!(url.scheme(), "http" | "https") && url.has_host() && is_plain
    })
}

/// The parts of a message that the caller sends into a thread, as they are kept. What they say about an artifact is not believed: it
/// has to be one of this thread, and its name and media type are its own. A picture among them is put into the message, because no
/// model can download it from here.
pub async fn resolve(
    app: &App,
    caller: &Principal,
    thread: ThreadId,
    parts: Vec<PartView>,
) -> ApiResult<Vec<Part>> {
    let wrong = check(&parts, "/content");
    if !wrong.is_empty() {
        let problem = Problem::new(Code::InvalidRequest, "the message cannot be sent; `errors` says why");
        return Err(wrong.into_iter().fold(problem, |problem, at| problem.at(at.pointer, at.detail)));
    }
    let refers = parts.iter().any(|part| reference(part).is_some());
    let artifacts = if refers { of_thread(app, caller, thread).await? } else { HashMap::new() };
    let mut room = app.settings.limits.max_body_bytes;
    let mut resolved = Vec::with_capacity(parts.len());
    for (number, part) in parts.into_iter().enumerate() {
        let place = format!("/content/{number}");
        resolved.push(match reference(&part) {
            None => part.try_into().map_err(|detail| refused(&place, detail))?,
            Some(id) => {
                let artifact = artifacts.get(&id).ok_or_else(|| {
                    refused(&format!("{place}/uri"), "there is no such artifact in this thread")
                })?;
                fill(app, caller, &part, artifact, &place, &mut room).await?
            }
        });
    }
    Ok(resolved)
}

/// The artifact that a part is about.
fn reference(part: &PartView) -> Option<Uuid> {
    match part {
        PartView::Image { uri: Some(uri), .. } | PartView::File { uri, .. } => artifact::id_in(uri),
        _ => None,
    }
}

/// Those that the caller can refer to. In a thread that is not there, or is another's, there are none.
async fn of_thread(app: &App, caller: &Principal, thread: ThreadId) -> ApiResult<HashMap<Uuid, Artifact>> {
    let data = app.data(caller);
    let found = match data.thread(thread, Some(&caller.user)).await {
        Ok(_) => data.artifacts(thread).await,
        Err(error) => Err(error),
    };
    match found {
        Ok(all) => Ok(all.into_iter().map(|artifact| (artifact.artifact_id, artifact)).collect()),
        Err(StoreError::ThreadNotFound) => Ok(HashMap::new()),
        Err(error) => Err(error.into()),
    }
}

/// A part that says what the artifact says.
async fn fill(
    app: &App,
    caller: &Principal,
    part: &PartView,
    artifact: &Artifact,
    place: &str,
    room: &mut usize,
) -> ApiResult<Part> {
    let media_type = artifact.media_type.clone();
    if matches!(part, PartView::File { .. }) {
        let (name, uri) = (artifact.name.clone(), artifact::uri(artifact.artifact_id));
        return Ok(Part::File { name, uri, media_type: Some(media_type) });
    }
    if !artifact::is_image(&media_type) {
        return Err(refused(&format!("{place}/uri"), "this artifact is no image: send it as a file"));
    }
    let left = usize::try_from(artifact.size).ok().and_then(|size| room.checked_sub(size));
    *room = left.ok_or_else(|| {
        let detail =
            "the images of this message are too large together: make them smaller, or send them as files";
        refused(&format!("{place}/uri"), detail)
    })?;
    let (_, bytes) = app.data(caller).artifact(artifact.artifact_id).await?;
    let name = Some(artifact.name.clone());
    Ok(Part::Image(Image { source: ImageSource::Base64(STANDARD.encode(bytes)), media_type, name }))
}

fn refused(place: &str, detail: &str) -> Problem {
    Problem::new(Code::InvalidRequest, "the message cannot be sent; `errors` says why").at(place, detail)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mistakes(parts: serde_json::Value) -> Vec<String> {
        let parts: Vec<PartView> = serde_json::from_value(parts).unwrap();
        check(&parts, "/content").into_iter().map(|error| error.pointer).collect()
    }

    /// D8
    #[test]
    fn parts_that_cannot_be_are_pointed_at() {
        let id = Uuid::nil();
        let fine = json!([
            { "type": "text", "text": "Look:" },
            { "type": "image", "media_type": "image/png", "data": "aGk=" },
            { "type": "image", "media_type": "image/svg+xml", "uri": "https://example.com/a.svg" },
            { "type": "image", "media_type": "image/png", "uri": format!("/api/v1/artifacts/{id}") },
            { "type": "file", "name": "a.pdf", "uri": format!("/api/v1/artifacts/{id}") },
            { "type": "data", "data": null },
        ]);
        assert_eq!(mistakes(fine), Vec::<String>::new());
        assert_eq!(mistakes(json!([])), ["/content"]);
        assert_eq!(mistakes(json!([{ "type": "text", "text": " \n" }])), ["/content"]);
        assert_eq!(mistakes(json!(vec![json!({ "type": "text", "text": "a" }); 65])), ["/content"]);
        let bad = json!([
            { "type": "image", "media_type": "text/plain", "data": "aGk=" },
            { "type": "image", "media_type": "image/png", "data": "no base64" },
            { "type": "image", "media_type": "image/png", "data": "" },
            { "type": "image", "media_type": "image/png" },
            { "type": "image", "media_type": "image/png", "data": "aGk=", "uri": "https://example.com" },
            { "type": "image", "media_type": "image/png", "uri": "file:///etc/passwd" },
            { "type": "image", "media_type": "image/png", "uri": "data:image/png;base64,aGk=" },
            { "type": "image", "media_type": "image/png", "uri": "https://me:secret@example.com/a" },
            { "type": "file", "name": "a", "uri": "https://example.com/a" },
            { "type": "file", "name": "a", "uri": "/api/v1/artifacts/../threads" },
        ]);
        let places = ["/media_type", "/data", "/data", "", "", "/uri", "/uri", "/uri", "/uri", "/uri"];
        let places = places.iter().enumerate().map(|(number, field)| format!("/content/{number}{field}"));
        assert_eq!(mistakes(bad), places.collect::<Vec<_>>());
    }
}
