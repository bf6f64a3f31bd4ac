//! The three wire forms of the protocol's objects.

use serde_json::Value;

use crate::card::AgentCard;
use crate::error::Invalid;
use crate::{decode, v03, v10};

/// A way to write objects as JSON.
///
/// ```
/// use baton_a2a::{Message, Part, WireForm};
/// use baton_a2a::model::Role;
///
/// let message = Message::new("m-1", Role::User, vec![Part::text("hello")]);
/// let json = WireForm::V03.encode_message(&message);
/// assert_eq!(json["parts"][0]["kind"], "text");
/// assert_eq!(WireForm::V03.decode_message(&json), Ok(message));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireForm {
    /// The JSON Schema of 0.3, used on JSON-RPC.
    V03,
    /// The `ProtoJSON` of 0.3, used on REST.
    V03Rest,
    /// The `ProtoJSON` of 1.0, used on JSON-RPC and REST.
    V10,
}

impl WireForm {
    pub const ALL: [Self; 3] = [Self::V03, Self::V03Rest, Self::V10];

    /// Whether a call without `blocking` waits for the result.
    pub(crate) fn blocks_by_default(self) -> bool {
        self != Self::V03Rest
    }

    /// A card in this version's form; both forms of 0.3 share one.
    pub fn encode_card(self, card: &AgentCard) -> Value {
        match self {
            Self::V10 => v10::card::encode(card).into(),
            Self::V03 | Self::V03Rest => v03::card::encode(card).into(),
        }
    }
}

/// A card that readers of 0.3 and of 1.0 both understand: the members of 1.0 and the top-level members of 0.3.
///
/// Where both versions use the same member for different content (`securitySchemes`, `skills`), the entries carry the members of both.
pub fn encode_hybrid_card(card: &AgentCard) -> Value {
    v10::card::encode_hybrid(card)
}

/// Reads a card of any version, also one that is hybrid or written as `ProtoJSON` of 0.3.
pub fn decode_card(value: &Value) -> Result<AgentCard, Invalid> {
    decode::card::card(value)
}
