//! PDF: the text of each page in the order in which the page draws it.
//!
//! Where text is drawn decides what is a line and what is a gap, so positions are followed: the matrix of the page, that of the text,
//! and the widths of glyphs ([`font`]).

use std::collections::BTreeMap;

use lopdf::content::{Content, Operation};
use lopdf::{Dictionary, Document, LoadOptions, Object, Stream};

mod font;

use font::Font;

use super::{DocumentError, DocumentText};

/// Of one stream, decompressed.
const MAX_STREAM_BYTES: usize = 32 * 1024 * 1024;
const MAX_PAGES: usize = 5_000;
/// Of all pages together.
const MAX_OPERATIONS: usize = 5_000_000;
/// Of forms that draw forms.
const MAX_DEPTH: usize = 8;
/// As parts of the size of the font: what is farther up or down is on another line, and what is farther to the right is another word.
const LINE_GAP: f32 = 0.4;
const WORD_GAP: f32 = 0.2;
const COLUMN_GAP: f32 = 1.5;

pub(super) fn text(bytes: &[u8]) -> Result<String, DocumentError> {
    let options = LoadOptions::with_max_decompressed_size(MAX_STREAM_BYTES);
    let document = Document::load_mem_with_options(bytes, options).map_err(|error| match error {
        lopdf::Error::Decryption(_) | lopdf::Error::InvalidPassword => DocumentError::Encrypted,
        error => DocumentError::Damaged(error.to_string()),
    })?;
    // A document that needs no password to be opened was decrypted when it was loaded.
    if document.is_encrypted() {
        return Err(DocumentError::Encrypted);
    }
    let pages: Vec<_> = document.page_iter().take(MAX_PAGES).collect();
    if pages.is_empty() {
        return Err(DocumentError::Damaged("it has no pages".to_owned()));
    }
    let mut drawn = PageText::new(&document);
    for (index, page) in pages.iter().enumerate() {
        if pages.len() > 1 {
            drawn.text.heading(&format!("Page {}", index + 1));
        }
        let Ok(content) = document.get_page_content_with_limit(*page, MAX_STREAM_BYTES) else {
            drawn.text.push("(this page cannot be read: it is damaged or too large)\n");
            continue;
        };
        let (own, inherited) = document.get_page_resources(*page).unwrap_or_default();
        let inherited = inherited.into_iter().filter_map(|id| document.get_dictionary(id).ok());
        let resources: Vec<&Dictionary> = own.into_iter().chain(inherited).collect();
        drawn.state = GraphicsState::default();
        drawn.draw(&content, &resources, 0);
        drawn.text.end_line();
        if drawn.text.is_full || drawn.operations == 0 {
            break;
        }
    }
    if drawn.text.text.trim().is_empty() {
        return Ok("(no text: the pages may be images)".to_owned());
    }
    Ok(drawn.text.text)
}

/// `[a b c d e f]`, as PDF writes matrices.
type Matrix = [f32; 6];

const IDENTITY: Matrix = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];

/// First `first`, then `then`.
fn multiplied(first: Matrix, then: Matrix) -> Matrix {
    [
        first[0] * then[0] + first[1] * then[2],
        first[0] * then[1] + first[1] * then[3],
        first[2] * then[0] + first[3] * then[2],
        first[2] * then[1] + first[3] * then[3],
        first[4] * then[0] + first[5] * then[2] + then[4],
        first[4] * then[1] + first[5] * then[3] + then[5],
    ]
}

#[derive(Debug, Clone)]
struct GraphicsState {
    page: Matrix,
    /// The name of the font in the resources.
    font: Vec<u8>,
    size: f32,
    character_gap: f32,
    word_gap: f32,
    scale: f32,
    leading: f32,
}

impl Default for GraphicsState {
    fn default() -> Self {
        Self {
            page: IDENTITY,
            font: Vec::new(),
            size: 1.0,
            character_gap: 0.0,
            word_gap: 0.0,
            scale: 1.0,
            leading: 0.0,
        }
    }
}

/// Where the last text ended, on the page.
#[derive(Debug, Clone, Copy)]
struct TextEnd {
    x: f32,
    y: f32,
}

struct PageText<'a> {
    document: &'a Document,
    text: DocumentText,
    state: GraphicsState,
    saved: Vec<GraphicsState>,
    matrix: Matrix,
    line: Matrix,
    end: Option<TextEnd>,
    /// How many are left.
    operations: usize,
}

/// The fonts of one page or form, made when they are first used.
type Fonts<'a> = BTreeMap<Vec<u8>, Option<Font<'a>>>;

impl<'a> PageText<'a> {
    fn new(document: &'a Document) -> Self {
        Self {
            document,
            text: DocumentText::default(),
            state: GraphicsState::default(),
            saved: Vec::new(),
            matrix: IDENTITY,
            line: IDENTITY,
            end: None,
            operations: MAX_OPERATIONS,
        }
    }

    fn draw(&mut self, content: &[u8], resources: &[&'a Dictionary], depth: usize) {
        let Ok(content) = Content::decode(content) else { return };
        let mut fonts = Fonts::new();
        for operation in &content.operations {
            if self.operations == 0 || self.text.is_full {
                return;
            }
            self.operations -= 1;
            match operation.operator.as_str() {
                "Do" => self.draw_form(operation, resources, depth),
                "Tj" | "TJ" | "'" | "\"" => self.show(operation, resources, &mut fonts),
                _ => self.set(operation),
            }
        }
    }

    /// Operators that show nothing.
    fn set(&mut self, operation: &Operation) {
        let number = |index: usize| number(operation.operands.get(index));
        match operation.operator.as_str() {
            "q" if self.saved.len() < 64 => self.saved.push(self.state.clone()),
            "Q" => self.state = self.saved.pop().unwrap_or_else(|| self.state.clone()),
            "cm" => self.state.page = multiplied(matrix(operation), self.state.page),
            "BT" => (self.matrix, self.line) = (IDENTITY, IDENTITY),
            "Tf" => {
                let name = operation.operands.first().and_then(|name| name.as_name().ok());
                self.state.font = name.unwrap_or_default().to_vec();
                self.state.size = number(1);
            }
            "Tc" => self.state.character_gap = number(0),
            "Tw" => self.state.word_gap = number(0),
            "Tz" => self.state.scale = number(0) / 100.0,
            "TL" => self.state.leading = number(0),
            "Tm" => {
                self.line = matrix(operation);
                self.matrix = self.line;
            }
            "Td" => self.move_line(number(0), number(1)),
            "TD" => {
                self.state.leading = -number(1);
                self.move_line(number(0), number(1));
            }
            "T*" => self.move_line(0.0, -self.state.leading),
            _ => {}
        }
    }

    fn move_line(&mut self, x: f32, y: f32) {
        self.line = multiplied([1.0, 0.0, 0.0, 1.0, x, y], self.line);
        self.matrix = self.line;
    }

    fn show(&mut self, operation: &Operation, resources: &[&'a Dictionary], fonts: &mut Fonts<'a>) {
        let operands = operation.operands.as_slice();
        let shown = match operation.operator.as_str() {
            "'" | "\"" => {
                self.move_line(0.0, -self.state.leading);
                operands.last()
            }
            _ => operands.first(),
        };
        let name = self.state.font.clone();
        let document = self.document;
        let font = fonts.entry(name).or_insert_with_key(|name| {
            let mut fonts = resources.iter().filter_map(|resources| part(document, resources, b"Font"));
            fonts.find_map(|fonts| part(document, fonts, name)).map(|font| Font::new(document, font))
        });
        let Some(font) = font else { return };
        match shown {
            Some(Object::Array(parts)) => {
                for part in parts {
                    match part {
                        Object::String(bytes, _) => self.write(bytes, font),
                        other => self.advance(-number(Some(other)) / 1000.0 * self.state.size),
                    }
                }
            }
            Some(Object::String(bytes, _)) => self.write(bytes, font),
            _ => {}
        }
    }

    /// Writes one text, after a gap or on a new line as its place says.
    fn write(&mut self, bytes: &[u8], font: &Font<'a>) {
        let place = multiplied(self.matrix, self.state.page);
        let height = (self.state.size * place[2].hypot(place[3])).abs().max(0.1);
        let decoded = font.decode(bytes);
        if !decoded.is_empty() {
            self.separate(place[4], place[5], height, decoded.starts_with(char::is_whitespace));
            self.text.push(&decoded);
        }
        let glyphs = font.glyphs(bytes);
        #[expect(clippy::cast_precision_loss, reason = "counts of glyphs of one text")]
        let width = glyphs.width / 1000.0 * self.state.size
            + glyphs.count as f32 * self.state.character_gap
            + glyphs.spaces as f32 * self.state.word_gap;
        self.advance(width);
        let end = multiplied(self.matrix, self.state.page);
        self.end = Some(TextEnd { x: end[4], y: end[5] });
    }

    fn separate(&mut self, x: f32, y: f32, height: f32, begins_with_space: bool) {
        let Some(end) = self.end else { return };
        let gap = x - end.x;
        if (y - end.y).abs() > LINE_GAP * height || gap < -height {
            self.text.end_line();
        } else if gap > COLUMN_GAP * height && !self.text.text.ends_with('\n') {
            self.text.push("  ");
        } else if gap > WORD_GAP * height && !begins_with_space && !self.text.text.ends_with([' ', '\n']) {
            self.text.push(" ");
        }
    }

    fn advance(&mut self, width: f32) {
        self.matrix = multiplied([1.0, 0.0, 0.0, 1.0, width * self.state.scale, 0.0], self.matrix);
    }

    /// Draws a form, which has its own content and resources.
    fn draw_form(&mut self, operation: &Operation, resources: &[&'a Dictionary], depth: usize) {
        let Some(name) = operation.operands.first().and_then(|name| name.as_name().ok()) else { return };
        let document = self.document;
        let mut forms = resources.iter().filter_map(|resources| part(document, resources, b"XObject"));
        let form: Option<&Stream> = forms.find_map(|forms| {
            let object = forms.get(name).ok()?;
            document.dereference(object).ok()?.1.as_stream().ok()
        });
        let Some(form) = form.filter(|form| is_kind(&form.dict, b"Form")) else {
            return;
        };
        if depth >= MAX_DEPTH {
            return;
        }
        let Ok(content) = form.decompressed_content_with_limit(MAX_STREAM_BYTES) else { return };
        let own = part(document, &form.dict, b"Resources");
        let resources: Vec<&Dictionary> = own.into_iter().chain(resources.iter().copied()).collect();
        let (state, saved) = (self.state.clone(), std::mem::take(&mut self.saved));
        if let Ok(place) = form.dict.get(b"Matrix").and_then(Object::as_array) {
            self.state.page = multiplied(matrix_of(place), self.state.page);
        }
        self.draw(&content, &resources, depth + 1);
        (self.state, self.saved) = (state, saved);
    }
}

/// A dictionary in a dictionary, directly or by reference.
fn part<'a>(document: &'a Document, dictionary: &'a Dictionary, key: &[u8]) -> Option<&'a Dictionary> {
    let object = dictionary.get(key).ok()?;
    document.dereference(object).ok()?.1.as_dict().ok()
}

fn is_kind(dictionary: &Dictionary, kind: &[u8]) -> bool {
    dictionary.get(b"Subtype").and_then(Object::as_name).is_ok_and(|found| found == kind)
}

fn matrix(operation: &Operation) -> Matrix {
    matrix_of(&operation.operands)
}

fn matrix_of(values: &[Object]) -> Matrix {
    std::array::from_fn(|index| number(values.get(index)))
}

/// Numbers that are none, or are beyond what positions can be, are 0.
fn number(object: Option<&Object>) -> f32 {
    let number = object.and_then(|object| object.as_float().ok()).unwrap_or_default();
    if number.is_finite() && number.abs() < 1.0e7 { number } else { 0.0 }
}
