//! What people write beside a decision.

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
