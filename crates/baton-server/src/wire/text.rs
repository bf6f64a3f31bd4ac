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
        if trimmed.chars().any(char::is_control) {
            return Err("no line breaks and no other control characters".to_owned());
        }
        Ok(Self(trimmed.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_text_is_one_trimmed_line() {
        let read = |text: &str| ShortText::try_from(text.to_owned()).map(|text| text.as_str().to_owned());
        assert_eq!(read("  Trip to Rome\n").as_deref(), Ok("Trip to Rome"));
        assert!(read(&"ä".repeat(200)).is_ok());
        for bad in ["", " \t ", "a\nb", "a\u{0}b", "a\u{7f}b", &"ä".repeat(201)] {
            assert!(read(bad).is_err(), "{bad:?}");
        }
    }
}
