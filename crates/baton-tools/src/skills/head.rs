//! The YAML between the two `---` lines of a skill, within limits.

use saphyr_parser::{Event, Parser, ScalarStyle};

const MAX_BYTES: usize = 64 * 1024;
const MAX_FIELDS: usize = 1_000;
const MAX_DEPTH: usize = 8;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HeadError {
    #[error("the file does not begin with a `---` line")]
    Missing,
    #[error("the head is not closed by a second `---` line")]
    Unclosed,
    #[error("the head is larger than {MAX_BYTES} bytes, or has more than {MAX_FIELDS} values")]
    TooLarge,
    #[error("the head is not valid YAML: {0}")]
    Syntax(String),
    #[error("the head is not a map of keys and values")]
    NotAMap,
}

/// The keys of the head with their values, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SkillFrontmatter {
    pub fields: Vec<(String, Field)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Field {
    Text {
        text: String,
        /// Written without quotes, so that others may read a number or a flag.
        plain: bool,
    },
    List(Vec<Field>),
    Map(Vec<(String, Field)>),
}

impl SkillFrontmatter {
    pub fn get(&self, key: &str) -> Option<&Field> {
        self.fields.iter().find(|(known, _)| known == key).map(|(_, field)| field)
    }

    pub fn text(&self, key: &str) -> Option<&str> {
        self.get(key).and_then(Field::text)
    }

    pub fn metadata(&self, key: &str) -> Option<&str> {
        match self.get("metadata")? {
            Field::Map(entries) => {
                entries.iter().find(|(known, _)| known == key).and_then(|(_, field)| field.text())
            }
            _ => None,
        }
    }
}

impl Field {
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text { text, .. } => Some(text),
            _ => None,
        }
    }
}

/// The head and the body below it.
pub fn read(text: &str) -> Result<(SkillFrontmatter, &str), HeadError> {
    let rest = text.strip_prefix("---").ok_or(HeadError::Missing)?;
    let (first, rest) = rest.split_once('\n').ok_or(HeadError::Unclosed)?;
    if !first.trim().is_empty() {
        return Err(HeadError::Missing);
    }
    let mut at = 0;
    for line in rest.split_inclusive('\n') {
        if line.trim_end() == "---" {
            let fields = fields(&rest[..at])?;
            return Ok((SkillFrontmatter { fields }, &rest[at + line.len()..]));
        }
        at += line.len();
        if at > MAX_BYTES {
            return Err(HeadError::TooLarge);
        }
    }
    Err(HeadError::Unclosed)
}

fn fields(yaml: &str) -> Result<Vec<(String, Field)>, HeadError> {
    let mut builder = Builder::default();
    for event in Parser::new_from_str(yaml) {
        let (event, _) = event.map_err(|error| HeadError::Syntax(error.to_string()))?;
        builder.take(event)?;
    }
    match builder.root {
        Some(Field::Map(fields)) => Ok(fields),
        _ => Err(HeadError::NotAMap),
    }
}

/// Lists and maps that are not closed yet, innermost last.
#[derive(Default)]
struct Builder {
    open: Vec<OpenCollection>,
    root: Option<Field>,
    count: usize,
}

struct OpenCollection {
    field: Field,
    /// In a map: the key whose value comes next.
    key: Option<String>,
}

impl Builder {
    fn take(&mut self, event: Event<'_>) -> Result<(), HeadError> {
        match event {
            Event::Scalar(text, style, ..) => {
                self.place(Field::Text { text: text.into_owned(), plain: style == ScalarStyle::Plain })
            }
            Event::SequenceStart(..) => self.open(Field::List(Vec::new())),
            Event::MappingStart(..) => self.open(Field::Map(Vec::new())),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(open) => self.place(open.field),
                None => Ok(()),
            },
            // Copies could grow without end, and no skill needs them.
            Event::Alias(_) => Err(HeadError::Syntax("aliases are not allowed".to_owned())),
            Event::DocumentStart(_) if self.root.is_some() => {
                Err(HeadError::Syntax("there is more than one document".to_owned()))
            }
            _ => Ok(()),
        }
    }

    fn open(&mut self, field: Field) -> Result<(), HeadError> {
        if self.open.len() == MAX_DEPTH {
            return Err(HeadError::TooLarge);
        }
        self.open.push(OpenCollection { field, key: None });
        Ok(())
    }

    fn place(&mut self, field: Field) -> Result<(), HeadError> {
        self.count += 1;
        if self.count > MAX_FIELDS {
            return Err(HeadError::TooLarge);
        }
        let Some(parent) = self.open.last_mut() else {
            self.root = Some(field);
            return Ok(());
        };
        match (&mut parent.field, parent.key.take()) {
            (Field::List(items), _) => items.push(field),
            (Field::Map(entries), Some(key)) if entries.iter().any(|(known, _)| *known == key) => {
                return Err(HeadError::Syntax(format!("`{key}` is there twice")));
            }
            (Field::Map(entries), Some(key)) => entries.push((key, field)),
            (Field::Map(_), None) => match field {
                Field::Text { text, .. } => parent.key = Some(text),
                _ => return Err(HeadError::Syntax("a key is not text".to_owned())),
            },
            (Field::Text { .. }, _) => unreachable!("a text is never open"),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_are_read() {
        let (head, body) =
            read("---\nname: a\nmetadata:\n  v: \"1.0\"\nallowed-tools: [x, y]\n---\nBody\n").unwrap();
        assert_eq!(head.text("name"), Some("a"));
        assert_eq!(head.metadata("v"), Some("1.0"));
        assert!(matches!(head.get("allowed-tools"), Some(Field::List(items)) if items.len() == 2));
        assert_eq!(body, "Body\n");
    }

    #[test]
    fn broken_heads_are_told_apart() {
        for (text, expected) in [
            ("", HeadError::Missing),
            ("\u{feff}---\n---\n", HeadError::Missing),
            ("---x\n---\n", HeadError::Missing),
            ("---\nname: a\n", HeadError::Unclosed),
            ("---\n- a\n---\n", HeadError::NotAMap),
            ("---\n---\n", HeadError::NotAMap),
        ] {
            assert_eq!(read(text).unwrap_err(), expected, "{text}");
        }
        for text in [
            "---\na: b: c\n---\n",
            "---\na: &x 1\nb: *x\n---\n",
            "---\na: 1\na: 2\n---\n",
            "---\n? [a]\n: b\n---\n",
        ] {
            assert!(matches!(read(text), Err(HeadError::Syntax(_))), "{text}");
        }
        let deep = format!("---\na: {}\n---\n", "[".repeat(100));
        assert!(read(&deep).is_err());
        let wide = format!("---\na: [{}]\n---\n", "x, ".repeat(2_000));
        assert_eq!(read(&wide).unwrap_err(), HeadError::TooLarge);
        assert_eq!(read(&format!("---\n{}", "# x\n".repeat(50_000))).unwrap_err(), HeadError::TooLarge);
    }
}
