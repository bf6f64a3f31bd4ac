//! Excel: each sheet as rows of cells.

use std::collections::HashMap;

use jiff::civil::{Date, DateTime};
use jiff::{SignedDuration, ToSpan as _};

use super::super::xml::{XmlPart, walk};
use super::super::{DocumentError, DocumentText};
use super::Archive;

/// Beyond it a column is left out: its number comes from the file and must not size memory.
const MAX_COLUMNS: usize = 256;

pub(super) fn text(archive: &mut Archive<'_>) -> Result<String, DocumentError> {
    let shared = shared_strings(&archive.part("xl/sharedStrings.xml")?);
    let dates = date_styles(&archive.part("xl/styles.xml")?);
    let files = relations(&archive.part("xl/_rels/workbook.xml.rels")?);
    let mut text = DocumentText::default();
    for (name, id) in sheets(&archive.part("xl/workbook.xml")?) {
        let Some(target) = files.get(&id) else { continue };
        let path = target.strip_prefix('/').map_or_else(|| format!("xl/{target}"), str::to_owned);
        text.heading(&name);
        rows(&archive.part(&path)?, &shared, &dates, &mut text);
    }
    Ok(text.text)
}

/// The texts that cells refer to by number.
fn shared_strings(xml: &str) -> Vec<String> {
    let (mut strings, mut current, mut in_text, mut phonetic) = (Vec::new(), String::new(), false, false);
    walk(xml, |part| {
        match part {
            XmlPart::Open(tag) => match tag.name.as_str() {
                "t" => in_text = !tag.is_closed && !phonetic,
                "rph" => phonetic = !tag.is_closed,
                "si" if tag.is_closed => strings.push(String::new()),
                _ => {}
            },
            XmlPart::Text(found) if in_text => current += found,
            XmlPart::Text(_) => {}
            XmlPart::Close(name) => match name {
                "t" => in_text = false,
                "rph" => phonetic = false,
                "si" => strings.push(std::mem::take(&mut current)),
                _ => {}
            },
        }
        true
    });
    strings
}

/// Names of sheets with the ids of their relations, in order.
fn sheets(xml: &str) -> Vec<(String, String)> {
    let mut sheets = Vec::new();
    walk(xml, |part| {
        if let XmlPart::Open(tag) = part
            && tag.name == "sheet"
        {
            sheets
                .push((tag.attribute("name").unwrap_or_default(), tag.attribute("r:id").unwrap_or_default()));
        }
        true
    });
    sheets
}

fn relations(xml: &str) -> HashMap<String, String> {
    let mut relations = HashMap::new();
    walk(xml, |part| {
        if let XmlPart::Open(tag) = part
            && let (Some(id), Some(target)) = (tag.attribute("Id"), tag.attribute("Target"))
        {
            relations.insert(id, target);
        }
        true
    });
    relations
}

/// For each style of a cell, whether its number is a date.
fn date_styles(xml: &str) -> Vec<bool> {
    let (mut formats, mut styles, mut in_cells) = (HashMap::new(), Vec::new(), false);
    walk(xml, |part| {
        match part {
            XmlPart::Open(tag) => match tag.name.as_str() {
                "numfmt" => {
                    let code = tag.attribute("formatCode").unwrap_or_default().to_lowercase();
                    formats.insert(tag.attribute("numFmtId").unwrap_or_default(), code.contains("yy"));
                }
                "cellxfs" => in_cells = true,
                "xf" if in_cells => {
                    let id = tag.attribute("numFmtId").unwrap_or_default();
                    let is_usual = matches!(id.as_str(), "14" | "15" | "16" | "17" | "22");
                    styles.push(is_usual || formats.get(&id).copied().unwrap_or(false));
                }
                _ => {}
            },
            XmlPart::Close("cellxfs") => in_cells = false,
            _ => {}
        }
        true
    });
    styles
}

#[derive(Debug, Default)]
struct Cell {
    column: usize,
    kind: String,
    is_date: bool,
    value: String,
}

fn rows(xml: &str, shared: &[String], dates: &[bool], text: &mut DocumentText) {
    let (mut row, mut cell, mut in_value): (Vec<String>, Cell, bool) = (Vec::new(), Cell::default(), false);
    walk(xml, |part| {
        match part {
            XmlPart::Open(tag) => match tag.name.as_str() {
                "c" => {
                    let style = tag.attribute("s").and_then(|style| style.parse::<usize>().ok());
                    cell = Cell {
                        column: tag.attribute("r").and_then(|place| column(&place)).unwrap_or(row.len()),
                        kind: tag.attribute("t").unwrap_or_default(),
                        is_date: style.and_then(|style| dates.get(style)).copied().unwrap_or(false),
                        value: String::new(),
                    };
                }
                "v" | "t" => in_value = !tag.is_closed,
                _ => {}
            },
            XmlPart::Text(found) if in_value => cell.value += found,
            XmlPart::Text(_) => {}
            XmlPart::Close(name) => match name {
                "v" | "t" => in_value = false,
                "c" => put(&mut row, std::mem::take(&mut cell), shared),
                "row" => {
                    let cells: Vec<String> = std::mem::take(&mut row);
                    text.push(cells.join(" | ").trim_end_matches([' ', '|']));
                    text.push("\n");
                }
                _ => {}
            },
        }
        !text.is_full
    });
}

fn put(row: &mut Vec<String>, cell: Cell, shared: &[String]) {
    if cell.column >= MAX_COLUMNS {
        return;
    }
    let value = match cell.kind.as_str() {
        "s" => cell.value.trim().parse::<usize>().ok().and_then(|index| shared.get(index).cloned()),
        "b" => Some(if cell.value.trim() == "1" { "TRUE" } else { "FALSE" }.to_owned()),
        "" | "n" if cell.is_date => date(cell.value.trim()).or(Some(cell.value)),
        _ => Some(cell.value),
    };
    row.resize(row.len().max(cell.column + 1), String::new());
    row[cell.column] = value.unwrap_or_default().replace(['\n', '\r'], " ");
}

/// The column of a place such as `AB12`, counted from 0.
fn column(place: &str) -> Option<usize> {
    let letters = place.bytes().take_while(u8::is_ascii_alphabetic);
    let number = letters
        .take(4)
        .fold(0, |number, letter| number * 26 + usize::from(letter.to_ascii_uppercase() - b'A') + 1);
    number.checked_sub(1)
}

/// Days since the end of 1899, as a date; with a time if there is one.
fn date(serial: &str) -> Option<String> {
    let serial: f64 = serial.parse().ok().filter(|days: &f64| (0.0..3_000_000.0).contains(days))?;
    #[expect(clippy::cast_possible_truncation, reason = "checked above")]
    let (days, seconds) = (serial.trunc() as i64, (serial.fract() * 86_400.0).round() as i64);
    let day = Date::new(1899, 12, 30).ok()?.checked_add(days.days()).ok()?;
    if seconds == 0 {
        return Some(day.to_string());
    }
    let time: DateTime = day.at(0, 0, 0, 0).checked_add(SignedDuration::from_secs(seconds)).ok()?;
    Some(time.to_string())
}
