//! OpenDocument (text, spreadsheet, presentation): everything is in `content.xml`.

use super::super::xml::{XmlPart, walk};
use super::super::{DocumentError, DocumentText};
use super::Archive;
use crate::web::html::markup::Tag;

/// Cells and rows may be repeated by a number, which must not size memory.
const MAX_REPEATED: usize = 50;

pub(super) fn text(archive: &mut Archive<'_>) -> Result<String, DocumentError> {
    let manifest = archive.part("META-INF/manifest.xml")?;
    if manifest.contains("manifest:encryption-data") {
        return Err(DocumentError::Encrypted);
    }
    let mut reader = Reader::default();
    walk(&archive.part("content.xml")?, |part| {
        reader.part(&part);
        !reader.text.is_full
    });
    Ok(reader.text.text)
}

#[derive(Debug, Default)]
struct Reader {
    text: DocumentText,
    /// Text counts inside of paragraphs and headings only.
    paragraphs: usize,
    /// Inside of elements whose text is not part of the document: comments, deleted text.
    skipped: usize,
    /// The cell and its repetitions.
    cell: Option<usize>,
    slides: usize,
    level: usize,
}

impl Reader {
    fn part(&mut self, part: &XmlPart<'_>) {
        match part {
            XmlPart::Open(tag) if is_skipped(&tag.name) => self.skipped += usize::from(!tag.is_closed),
            XmlPart::Close(name) if is_skipped(name) => self.skipped = self.skipped.saturating_sub(1),
            _ if self.skipped > 0 => {}
            XmlPart::Open(tag) => self.open(tag),
            XmlPart::Close(name) => self.close(name),
            XmlPart::Text(found) if self.paragraphs > 0 => self.text.push(found),
            XmlPart::Text(_) => {}
        }
    }

    fn open(&mut self, tag: &Tag<'_>) {
        let number = |name: &str| tag.attribute(name).and_then(|number| number.parse::<usize>().ok());
        match tag.name.as_str() {
            "text:p" if !tag.is_closed => self.paragraphs += 1,
            "text:h" if !tag.is_closed => {
                self.paragraphs += 1;
                self.level = number("text:outline-level").unwrap_or(1).clamp(1, 6);
                self.text.end_line();
                self.text.push(&format!("\n{} ", "#".repeat(self.level)));
            }
            "text:tab" => self.text.push("\t"),
            "text:line-break" => self.text.push(if self.cell.is_some() { " " } else { "\n" }),
            "text:s" => self.text.push(&" ".repeat(number("text:c").unwrap_or(1).min(MAX_REPEATED))),
            "text:list-item" if self.cell.is_none() => self.text.push("- "),
            "table:table" => {
                let name = tag.attribute("table:name").unwrap_or_default();
                self.text.heading(name.trim());
            }
            "draw:page" => {
                self.slides += 1;
                self.text.heading(&format!("Slide {}", self.slides));
            }
            "table:table-cell" | "table:covered-table-cell" => {
                let repeated = number("table:number-columns-repeated").unwrap_or(1).min(MAX_REPEATED);
                self.cell = Some(repeated);
                if tag.is_closed {
                    self.end_cell();
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, name: &str) {
        match name {
            "text:p" | "text:h" => {
                self.paragraphs = self.paragraphs.saturating_sub(1);
                self.text.push(if self.cell.is_some() { " " } else { "\n" });
            }
            "table:table-cell" | "table:covered-table-cell" => self.end_cell(),
            "table:table-row" => {
                // Cells at the end of a row are empty, up to the last column of the sheet.
                let end = self.text.text.trim_end_matches([' ', '|']).len();
                self.text.text.truncate(end);
                self.text.end_line();
            }
            _ => {}
        }
    }

    fn end_cell(&mut self) {
        for _ in 0..self.cell.take().unwrap_or(1) {
            self.text.push("| ");
        }
    }
}

fn is_skipped(name: &str) -> bool {
    matches!(name, "office:annotation" | "text:tracked-changes" | "office:settings" | "presentation:notes")
}
