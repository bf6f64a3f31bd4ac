//! The pieces of a message, as most providers want them.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_core::message::{Image, ImageSource};
use baton_core::{Part, ProducedFile};

/// A piece is text or a picture; nothing else is understood everywhere.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum MessagePiece<'a> {
    Text(Cow<'a, str>),
    Picture(Picture<'a>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Picture<'a> {
    Inline { media_type: &'a str, base64: &'a str },
    Linked { media_type: &'a str, uri: &'a str },
}

/// As an address that holds the picture itself, where there is no other.
impl fmt::Display for Picture<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Inline { media_type, base64 } => write!(f, "data:{media_type};base64,{base64}"),
            Self::Linked { uri, .. } => f.write_str(uri),
        }
    }
}

/// Leaves out texts without a word: some providers refuse them.
pub(crate) fn pieces(parts: &[Part]) -> impl Iterator<Item = MessagePiece<'_>> {
    parts
        .iter()
        .map(piece)
        .filter(|piece| !matches!(piece, MessagePiece::Text(text) if text.trim().is_empty()))
}

fn piece(part: &Part) -> MessagePiece<'_> {
    match part {
        Part::Text { text } => MessagePiece::Text(text.into()),
        Part::Image(image) => MessagePiece::Picture(picture(image)),
        Part::File { name, uri, media_type } => {
            let media_type =
                media_type.as_deref().map(|media_type| format!(", {media_type}")).unwrap_or_default();
            MessagePiece::Text(format!("[file {name}{media_type}: {uri}]").into())
        }
        Part::Data { data } => MessagePiece::Text(data.to_string().into()),
    }
}

pub(crate) fn picture(image: &Image) -> Picture<'_> {
    match &image.source {
        ImageSource::Base64(base64) => Picture::Inline { media_type: &image.media_type, base64 },
        ImageSource::Uri(uri) => {
            let inline = uri.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
            match inline {
                Some((media_type, base64)) => Picture::Inline { media_type, base64 },
                None => Picture::Linked { media_type: &image.media_type, uri },
            }
        }
    }
}

/// What a model reads before the images of tool results, where results themselves are text.
pub(crate) const IMAGES_OF_RESULTS: &str = "The images in the tool results above:";

/// The file of a `data:` address, as some servers send images.
pub(crate) fn data_url(url: &str) -> Option<ProducedFile> {
    let (media_type, base64) = url.strip_prefix("data:")?.split_once(";base64,")?;
    inline_file(media_type, base64)
}

/// A file that a model sent as base64.
pub(crate) fn inline_file(media_type: &str, base64: &str) -> Option<ProducedFile> {
    let bytes = STANDARD.decode(base64).ok()?;
    Some(ProducedFile::new(bytes).claimed(media_type))
}

/// Whether there is a picture among the pieces.
pub(crate) fn has_picture(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::Image(_)))
}

/// All texts of a message, a line for each.
pub(crate) struct TextLines<'a>(pub &'a [Part]);

impl fmt::Display for TextLines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts = pieces(self.0).filter_map(|piece| match piece {
            MessagePiece::Text(text) => Some(text),
            MessagePiece::Picture(_) => None,
        });
        for (at, text) in texts.enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            f.write_str(&text)?;
        }
        Ok(())
    }
}
