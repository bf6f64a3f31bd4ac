//! The operator's configuration of A2A.

use std::sync::Arc;

use baton_a2a::signature::CardSigner;
use serde::Deserialize;

use super::push::sender::PushService;

/// How A2A is served.
#[derive(Debug, Clone, Default)]
pub struct A2aSettings {
    /// The address under which clients reach this server, without a trailing slash. `None` derives it from the `Host` header, on
    /// loopback only.
    pub public_url: Option<String>,
    pub card: CardForm,
    /// Signs cards; `None` leaves them unsigned.
    pub signer: Option<Arc<CardSigner>>,
    /// What delivers push notifications; `None` does not offer them.
    pub push: Option<PushService>,
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
