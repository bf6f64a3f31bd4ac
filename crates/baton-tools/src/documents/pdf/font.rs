//! Fonts: which characters the bytes of a text are, and how wide they are drawn.

use std::collections::HashMap;

use lopdf::{Dictionary, Document, Encoding, Object};

use super::{MAX_STREAM_BYTES, is_kind, number};

/// Of glyphs whose width is not stated, in thousandths of the size.
const USUAL_WIDTH: f32 = 500.0;
const MAX_WIDTHS: usize = 70_000;

pub(super) struct Font<'a> {
    encoding: Option<Encoding<'a>>,
    /// Two bytes for each glyph.
    is_wide: bool,
    widths: HashMap<u32, f32>,
    default_width: f32,
}

/// The measures of a text.
pub(super) struct Glyphs {
    pub(super) count: usize,
    pub(super) spaces: usize,
    /// In thousandths of the size.
    pub(super) width: f32,
}

impl<'a> Font<'a> {
    pub(super) fn new(document: &'a Document, font: &'a Dictionary) -> Self {
        let is_wide = is_kind(font, b"Type0");
        let encoding = font.get_font_encoding_with_limit(document, MAX_STREAM_BYTES).ok();
        let (widths, default_width) =
            if is_wide { wide_widths(document, font) } else { (simple_widths(document, font), USUAL_WIDTH) };
        Self { encoding, is_wide, widths, default_width }
    }

    pub(super) fn decode(&self, bytes: &[u8]) -> String {
        let decoded = self.encoding.as_ref().and_then(|encoding| encoding.bytes_to_string(bytes).ok());
        match decoded {
            Some(text) => text,
            // An encoding that is not known: what is ASCII is likely to be meant.
            None if self.is_wide => String::new(),
            None => bytes
                .iter()
                .map(|byte| char::from(*byte))
                .filter(|c| c.is_ascii_graphic() || *c == ' ')
                .collect(),
        }
    }

    pub(super) fn glyphs(&self, bytes: &[u8]) -> Glyphs {
        let size = if self.is_wide { 2 } else { 1 };
        let codes =
            bytes.chunks(size).map(|code| code.iter().fold(0, |code, byte| code << 8 | u32::from(*byte)));
        let mut glyphs = Glyphs { count: 0, spaces: 0, width: 0.0 };
        for code in codes {
            glyphs.count += 1;
            // As PDF has it: only a single byte 32 is a space that word spacing applies to.
            glyphs.spaces += usize::from(code == 32 && !self.is_wide);
            glyphs.width += self.widths.get(&code).copied().unwrap_or(self.default_width);
        }
        glyphs
    }
}

/// `FirstChar` and the widths from there on.
fn simple_widths(document: &Document, font: &Dictionary) -> HashMap<u32, f32> {
    let first = font.get(b"FirstChar").and_then(Object::as_i64).ok();
    let first = first.and_then(|first| u32::try_from(first).ok()).unwrap_or_default();
    let widths = array(document, font, b"Widths").iter().take(256);
    (first..).zip(widths.map(|width| number(Some(width)))).collect()
}

/// `W` of the descendant: `code [width …]` or `first last width`, and the width of all others.
fn wide_widths(document: &Document, font: &Dictionary) -> (HashMap<u32, f32>, f32) {
    let descendant = array(document, font, b"DescendantFonts").first();
    let descendant = descendant.and_then(|object| document.dereference(object).ok()?.1.as_dict().ok());
    let Some(descendant) = descendant else { return (HashMap::new(), USUAL_WIDTH) };
    let default = descendant.get(b"DW").map_or(1000.0, |width| number(Some(width)));
    let mut widths = HashMap::new();
    let mut rest = array(document, descendant, b"W");
    while let [first, second, after @ ..] = rest {
        let first = code(first);
        let second = document.dereference(second).map_or(second, |(_, object)| object);
        if let Object::Array(listed) = second {
            widths.extend((first..).zip(listed.iter().map(|width| number(Some(width)))));
            rest = after;
        } else {
            let [width, after @ ..] = after else { break };
            let last = code(second).min(first.saturating_add(0xffff));
            widths.extend((first..=last).map(|code| (code, number(Some(width)))));
            rest = after;
        }
        if widths.len() > MAX_WIDTHS {
            break;
        }
    }
    (widths, default)
}

fn code(object: &Object) -> u32 {
    object.as_i64().ok().and_then(|code| u32::try_from(code).ok()).unwrap_or_default().min(0xffff)
}

fn array<'a>(document: &'a Document, dictionary: &'a Dictionary, key: &[u8]) -> &'a [Object] {
    let object = dictionary.get(key).and_then(|object| document.dereference(object));
    object.ok().and_then(|(_, object)| object.as_array().ok()).map(Vec::as_slice).unwrap_or_default()
}
