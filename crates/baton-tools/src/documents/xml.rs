//! The XML of office documents: tags and text from left to right, in linear time, however broken it is.

use crate::web::html::entity::decode;
use crate::web::html::markup::{Markup, Tag};

pub(super) enum XmlPart<'a> {
    /// A start tag; one that is closed at once, `<x/>`, is followed by no end.
    Open(&'a Tag<'a>),
    /// The name of an end tag, in lower case.
    Close(&'a str),
    Text(&'a str),
}

/// Calls `visit` for each part until it returns false.
pub(super) fn walk(xml: &str, mut visit: impl FnMut(XmlPart<'_>) -> bool) {
    let mut rest = xml;
    while !rest.is_empty() {
        let Some(at) = rest.find('<') else { return };
        if at > 0 && !visit(XmlPart::Text(&decode(&rest[..at]))) {
            return;
        }
        rest = &rest[at..];
        if let Some(data) = rest.strip_prefix("<![CDATA[") {
            let end = data.find("]]>").unwrap_or(data.len());
            if !visit(XmlPart::Text(&data[..end])) {
                return;
            }
            rest = data.get(end + 3..).unwrap_or_default();
            continue;
        }
        let (length, goes_on) = match Markup::read(rest) {
            Markup::Text(length) => (length, visit(XmlPart::Text(&rest[..length]))),
            Markup::Nothing(length) => (length, true),
            Markup::Tag(tag) if tag.is_end => (tag.length, visit(XmlPart::Close(&tag.name))),
            Markup::Tag(tag) => (tag.length, visit(XmlPart::Open(&tag))),
        };
        if !goes_on {
            return;
        }
        rest = &rest[length..];
    }
}
