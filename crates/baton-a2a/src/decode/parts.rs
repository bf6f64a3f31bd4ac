//! Reading parts: by `kind`, by member as in the proto of 0.3, or flat as in 1.0.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use serde_json::Value;

use crate::error::Invalid;
use crate::fields::Fields;
use crate::model::{Content, Part};
use crate::wire::WireForm;

/// `ProtoJSON` readers accept both alphabets, with or without padding.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

impl WireForm {
    pub fn decode_part(self, value: &Value) -> Result<Part, Invalid> {
        let fields = Fields::new(value)?;
        let mut part = match fields.get("kind").and_then(Value::as_str) {
            Some("text") => Part::text(required_text(fields)?),
            Some("file") => nested_file(fields)?,
            Some("data") => Part::data(fields.raw("data").cloned().ok_or_else(|| missing("data"))?),
            Some(_) => Part::new(Content::Unknown(value.clone())),
            None if self == Self::V10 => flat(fields, value)?,
            None => nested(self, fields, value)?,
        };
        part.metadata = fields.map("metadata")?;
        Ok(part)
    }
}

fn missing(member: &str) -> Invalid {
    Invalid::new("is required").within(member)
}

fn required_text(fields: Fields<'_>) -> Result<String, Invalid> {
    fields.text("text")?.ok_or_else(|| missing("text"))
}

/// A part of 1.0: the member of the content is the kind.
fn flat(fields: Fields<'_>, value: &Value) -> Result<Part, Invalid> {
    let content = if let Some(text) = fields.text("text")? {
        Content::Text(text)
    } else if let Some(raw) = fields.text("raw")? {
        Content::Bytes(bytes(&raw).map_err(|invalid| invalid.within("raw"))?)
    } else if let Some(url) = fields.text("url")? {
        Content::Uri(url)
    } else if fields.get("file").is_some() {
        // The form of 0.3, which some clients send with the names of 1.0.
        return nested_file(fields);
    } else if let Some(data) = fields.raw("data") {
        Content::Data(data.clone())
    } else {
        Content::Unknown(value.clone())
    };
    let filename = fields.nonempty("filename")?;
    Ok(Part { filename, media_type: fields.nonempty("mediaType")?, ..Part::new(content) })
}

/// A part of 0.3 without `kind`: the member is the kind, and on REST data is within data.
fn nested(form: WireForm, fields: Fields<'_>, value: &Value) -> Result<Part, Invalid> {
    if fields.get("text").is_some() {
        return Ok(Part::text(required_text(fields)?));
    }
    if fields.get("file").is_some() {
        return nested_file(fields);
    }
    let Some(data) = fields.get("data") else { return Ok(Part::new(Content::Unknown(value.clone()))) };
    let inner = data.get("data").filter(|_| form == WireForm::V03Rest);
    Ok(Part::data(inner.unwrap_or(data).clone()))
}

fn nested_file(fields: Fields<'_>) -> Result<Part, Invalid> {
    fields.object("file", file)?.ok_or_else(|| missing("file"))
}

fn file(value: &Value) -> Result<Part, Invalid> {
    let fields = Fields::new(value)?;
    let either = |schema: &str, proto: &str| match fields.text(schema)? {
        Some(text) => Ok(Some(text)),
        None => fields.text(proto),
    };
    let content = match either("bytes", "fileWithBytes")? {
        Some(encoded) => Content::Bytes(bytes(&encoded).map_err(|invalid| invalid.within("bytes"))?),
        None => {
            let uri = either("uri", "fileWithUri")?;
            Content::Uri(uri.ok_or_else(|| Invalid::new("needs bytes or uri"))?)
        }
    };
    let media_type = match fields.nonempty("mimeType")? {
        Some(media_type) => Some(media_type),
        None => fields.nonempty("mediaType")?,
    };
    Ok(Part { filename: fields.nonempty("name")?, media_type, ..Part::new(content) })
}

fn bytes(encoded: &str) -> Result<Vec<u8>, Invalid> {
    let engine = if encoded.contains(['-', '_']) { URL_SAFE } else { STANDARD };
    engine.decode(encoded).map_err(|_| Invalid::new("must be base64"))
}
