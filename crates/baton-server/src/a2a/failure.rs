//! Why a request of A2A fails: with an error of the protocol, or with a status of HTTP.

use baton_a2a::{A2aError, ErrorCode, Invalid};
use baton_core::StoreError;
use baton_engine::Failure;

use crate::problem::{Code, Problem};

/// A failed request.
#[derive(Debug)]
pub enum A2aFailure {
    /// Written into the response of the transport.
    Protocol(A2aError),
    /// Authentication, permissions, limits and outages: the same responses as those of the native API.
    Http(Problem),
}

pub type A2aResult<T> = Result<T, A2aFailure>;

impl A2aFailure {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self::Protocol(A2aError::new(code, message))
    }

    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidParams, message)
    }

    pub fn unsupported(message: &str) -> Self {
        let code = ErrorCode::UnsupportedOperation;
        Self::new(code, format!("{}: {message}", code.text()))
    }

    pub fn content_type(message: &str) -> Self {
        Self::new(ErrorCode::ContentTypeNotSupported, format!("Content type not supported: {message}"))
    }

    pub fn task_not_found() -> Self {
        Self::new(ErrorCode::TaskNotFound, ErrorCode::TaskNotFound.text())
    }

    pub fn push_not_supported() -> Self {
        let code = ErrorCode::PushNotificationNotSupported;
        Self::new(code, code.text())
    }
}

impl From<A2aError> for A2aFailure {
    fn from(error: A2aError) -> Self {
        Self::Protocol(error)
    }
}

impl From<Invalid> for A2aFailure {
    fn from(invalid: Invalid) -> Self {
        Self::Protocol(invalid.into())
    }
}

impl From<StoreError> for A2aFailure {
    fn from(error: StoreError) -> Self {
        Problem::from(error).into()
    }
}

impl From<Failure> for A2aFailure {
    fn from(failure: Failure) -> Self {
        Problem::from(failure).into()
    }
}

impl From<Problem> for A2aFailure {
    fn from(problem: Problem) -> Self {
        let code = match problem.code {
            Code::InvalidRequest | Code::InvalidThreadId | Code::IdempotencyConflict => {
                ErrorCode::InvalidParams
            }
            // Another user's thread: an unknown one would have begun.
            Code::ThreadNotFound => {
                return Self::invalid("message.contextId names a context that this caller cannot use");
            }
            Code::NotFound => return Self::task_not_found(),
            Code::ThreadBusy
            | Code::HandoffActive
            | Code::NoActiveHandoff
            | Code::HandoffRejected
            | Code::Conflict
            | Code::ApprovalDecided
            | Code::ApprovalExpired
            | Code::ApprovalChanged
            | Code::BudgetExhausted
            | Code::CursorExpired => ErrorCode::UnsupportedOperation,
            Code::Internal => ErrorCode::Internal,
            Code::UnsupportedMediaType => return Self::content_type(&problem.detail),
            _ => return Self::Http(problem),
        };
        let document = problem.to_json("");
        let details = document["errors"].as_array().into_iter().flatten();
        let details = details.filter_map(|error| {
            Some(format!("{} {}", error["pointer"].as_str()?, error["detail"].as_str()?).trim().to_owned())
        });
        let details: Vec<String> = details.collect();
        let message = match details.as_slice() {
            [] => problem.detail.clone(),
            details => format!("{}: {}", problem.detail, details.join("; ")),
        };
        Self::new(code, message)
    }
}
