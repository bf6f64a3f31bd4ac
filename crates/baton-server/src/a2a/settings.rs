//! The operator's configuration of A2A.

use serde::Deserialize;

/// How A2A is served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct A2aSettings {
    /// The address under which clients reach this server, without a trailing slash. `None` derives it from the `Host` header, on
    /// loopback only.
    pub public_url: Option<String>,
    pub card: CardForm,
}

/// Which version a card is written for, unless the request says it with `A2A-Version`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum CardForm {
    #[serde(rename = "0.3")]
    V03,
    #[serde(rename = "1.0")]
    V10,
    /// For readers of both versions.
    #[default]
    #[serde(rename = "hybrid")]
    Hybrid,
}
