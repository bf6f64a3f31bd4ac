//! Word: paragraphs, headings, lists and tables of `word/document.xml`, then headers, footers and notes.

use super::super::xml::{XmlPart, walk};
use super::super::{DocumentError, DocumentText};
use super::Archive;

pub(super) fn text(archive: &mut Archive<'_>) -> Result<String, DocumentError> {
    let mut text = DocumentText::default();
    paragraphs(&archive.part("word/document.xml")?, &mut text);
    let beside = ["header", "footer", "footnotes", "endnotes"];
    let names = beside.iter().flat_map(|kind| archive.numbered(&format!("word/{kind}"), ".xml"));
    for name in names.collect::<Vec<_>>() {
        text.end_line();
        paragraphs(&archive.part(&name)?, &mut text);
    }
    Ok(text.text)
}

#[derive(Debug, Default)]
struct Paragraph {
    text: String,
    /// Of a heading.
    level: Option<usize>,
    is_item: bool,
}

fn paragraphs(xml: &str, text: &mut DocumentText) {
    let mut paragraph = Paragraph::default();
    let (mut in_text, mut cells) = (false, 0_usize);
    walk(xml, |part| {
        match part {
            XmlPart::Open(tag) => match tag.name.as_str() {
                "w:t" => in_text = !tag.is_closed,
                "w:tab" | "w:ptab" => paragraph.text.push('\t'),
                "w:br" | "w:cr" => paragraph.text.push(if cells > 0 { ' ' } else { '\n' }),
                "w:nobreakhyphen" => paragraph.text.push('-'),
                "w:pstyle" => paragraph.level = level(&tag.attribute("w:val").unwrap_or_default()),
                "w:numpr" => paragraph.is_item = true,
                "w:tc" if !tag.is_closed => cells += 1,
                _ => {}
            },
            XmlPart::Text(found) if in_text => paragraph.text += found,
            XmlPart::Text(_) => {}
            XmlPart::Close(name) => match name {
                "w:t" => in_text = false,
                "w:p" => write(&std::mem::take(&mut paragraph), cells > 0, text),
                "w:tc" => {
                    cells = cells.saturating_sub(1);
                    text.push(" | ");
                }
                "w:tr" | "w:tbl" => text.push("\n"),
                _ => {}
            },
        }
        !text.is_full
    });
}

fn write(paragraph: &Paragraph, in_cell: bool, text: &mut DocumentText) {
    let content = paragraph.text.trim();
    if in_cell {
        if !content.is_empty() {
            let gap = if text.text.ends_with([' ', '\n']) { "" } else { " " };
            text.push(&format!("{gap}{content}"));
        }
        return;
    }
    match (paragraph.level, paragraph.is_item) {
        (Some(level), _) if !content.is_empty() => {
            text.push(&format!("\n{} {content}\n\n", "#".repeat(level)));
        }
        (_, true) if !content.is_empty() => text.push(&format!("- {content}\n")),
        _ => text.push(&format!("{content}\n")),
    }
}

/// The level of a heading's style: `Heading2`, or `berschrift2` in German, where ids lose their umlauts.
fn level(style: &str) -> Option<usize> {
    let style = style.to_lowercase();
    if style == "title" || style == "titel" {
        return Some(1);
    }
    let is_heading = ["heading", "berschrift", "titre", "kop"].iter().any(|word| style.contains(word));
    let digit =
        style.chars().last().and_then(|last| last.to_digit(10)).filter(|digit| (1..=6).contains(digit));
    if is_heading { digit.map(|digit| digit as usize) } else { None }
}
