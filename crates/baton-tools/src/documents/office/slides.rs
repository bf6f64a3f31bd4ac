//! PowerPoint: the text of each slide.

use super::super::xml::{XmlPart, walk};
use super::super::{DocumentError, DocumentText};
use super::Archive;

pub(super) fn text(archive: &mut Archive<'_>) -> Result<String, DocumentError> {
    let mut text = DocumentText::default();
    for (index, name) in archive.numbered("ppt/slides/slide", ".xml").iter().enumerate() {
        text.heading(&format!("Slide {}", index + 1));
        slide(&archive.part(name)?, &mut text);
    }
    Ok(text.text)
}

fn slide(xml: &str, text: &mut DocumentText) {
    let (mut in_text, mut in_cell) = (false, false);
    walk(xml, |part| {
        match part {
            XmlPart::Open(tag) => match tag.name.as_str() {
                "a:t" => in_text = !tag.is_closed,
                "a:tc" => in_cell = !tag.is_closed,
                "a:br" | "a:tab" => text.push(" "),
                _ => {}
            },
            XmlPart::Text(found) if in_text => text.push(found),
            XmlPart::Text(_) => {}
            XmlPart::Close(name) => match name {
                "a:t" => in_text = false,
                "a:p" if in_cell => text.push(" "),
                "a:p" | "a:tr" => text.end_line(),
                "a:tc" => {
                    in_cell = false;
                    text.push("| ");
                }
                _ => {}
            },
        }
        !text.is_full
    });
}
