//! Why a caller is refused: a short reason for the caller, more for the log, and never the credential itself.

use std::time::Duration;

use baton_core::StoreError;

use crate::problem::{Code, Problem};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AuthRefusal {
    /// Nothing was sent.
    Missing,
    /// The reason is for the log only, so that it does not help an attacker.
    Invalid(&'static str),
    /// Only those hear it who had a valid token.
    Expired,
    /// Too many failed authentications from this address; whether this one would fail is found out later.
    Busy,
    /// The token cannot be verified at the moment.
    NoKeys,
    Store(StoreError),
}

impl AuthRefusal {
    /// The reason for the audit trail, if someone has failed to authenticate. A request without a credential is no attempt.
    pub fn failure(&self) -> Option<&'static str> {
        match self {
            Self::Invalid(reason) => Some(reason),
            Self::Expired => Some("an expired token"),
            Self::Busy => Some("too many unknown keys"),
            Self::Missing | Self::NoKeys | Self::Store(_) => None,
        }
    }
}

impl From<StoreError> for AuthRefusal {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<AuthRefusal> for Problem {
    fn from(refusal: AuthRefusal) -> Self {
        tracing::debug!(?refusal, "a credential was refused");
        let second = Duration::from_secs(1);
        match refusal {
            AuthRefusal::Missing => {
                let detail = "send `Authorization: Bearer` with an API key or a token";
                Self::new(Code::Unauthenticated, detail)
            }
            AuthRefusal::Invalid(_) => Self::new(Code::Unauthenticated, "the credential is not valid"),
            AuthRefusal::Expired => Self::new(Code::Unauthenticated, "the token has expired"),
            AuthRefusal::Busy => {
                let detail =
                    "too many failed authentications from your address; wait as long as `Retry-After` says";
                Self::new(Code::RateLimited, detail).retry_after(second)
            }
            AuthRefusal::NoKeys => {
                let detail =
                    "the keys that tokens are checked with cannot be fetched at the moment; try again";
                Self::new(Code::IdentityUnavailable, detail).retry_after(second)
            }
            AuthRefusal::Store(error) => error.into(),
        }
    }
}
