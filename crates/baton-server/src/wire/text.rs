//! Short texts that people write: remarks beside a decision, titles, words to look for.

use serde::Deserialize;

/// A few sentences. Nothing but spaces is as good as nothing.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct Remark(String);

impl Remark {
    pub const MAX_CHARS: usize = 2000;

    pub fn said(self) -> Option<String> {
        let said = self.0.trim();
        (!said.is_empty()).then(|| said.to_owned())
    }
}

impl TryFrom<String> for Remark {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let chars = text.chars().count();
        if chars > Self::MAX_CHARS {
            return Err(format!("at most {} characters, and this has {chars}", Self::MAX_CHARS));
        }
        Ok(Self(text))
    }
}

/// One line of at most 200 characters, without spaces around it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub struct ShortText(String);

impl ShortText {
    pub const MAX_CHARS: usize = 200;

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for ShortText {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let trimmed = text.trim();
        let chars = trimmed.chars().count();
        if chars == 0 || chars > Self::MAX_CHARS {
            return Err(format!("1 to {} characters besides spaces, and this has {chars}", Self::MAX_CHARS));
        }
        if trimmed.chars().any(|c| c.is_control() || redirects(c)) {
            return Err("no line breaks and no other control characters".to_owned());
        }
        if trimmed.chars().all(|c| c.is_whitespace() || is_zero_width(c)) {
            return Err("at least one character that can be seen".to_owned());
        }
        Ok(Self(trimmed.to_owned()))
    }
}

/// Line separators, and marks that change the direction of the text around them.
fn redirects(c: char) -> bool {
    matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// Joiners and direction marks, which are part of many scripts and emoji but cannot be seen alone.
fn is_zero_width(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2065}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_one_trimmed_line() {
        let read = |text: &str| ShortText::try_from(text.to_owned()).map(|text| text.as_str().to_owned());
        assert_eq!(read("  Trip to Rome\n").as_deref(), Ok("Trip to Rome"));
        assert!(read(&"ä".repeat(200)).is_ok());
        assert!(read("👩\u{200d}💻 at home").is_ok(), "joiners are part of emoji");
        for bad in ["", " \t ", "a\nb", "a\u{0}b", "a\u{7f}b", "a\u{202e}b", "\u{200b}", &"ä".repeat(201)] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
