//! Why a request to a running server gave nothing.

use baton_core::ToolError;
use rmcp::ServiceError;
use rmcp::model::{ErrorCode, ErrorData};

use crate::http;
use crate::variables::Secrets;

#[derive(Debug)]
pub(crate) enum McpFailure {
    /// The server certainly did not act on it, and the connection is of no use any more.
    NotSent(String),
    Call(ToolError),
}

impl McpFailure {
    pub fn of(error: ServiceError, tool: &str, over_http: bool) -> Self {
        match error {
            ServiceError::McpError(error) => Self::Call(refusal(&error, tool)),
            // A line that could not be written to the end is not a message, so a process cannot have acted on it.
            ServiceError::TransportSend(error) if !over_http || http::never_arrived(&*error.error) => {
                Self::NotSent(chain(&*error.error))
            }
            ServiceError::TransportSend(error) => Self::broken(&chain(&*error.error)),
            ServiceError::TransportClosed => Self::broken("the connection was closed"),
            other => Self::Call(ToolError::Execution(chain(&other))),
        }
    }

    fn broken(reason: &str) -> Self {
        Self::Call(ToolError::Transport(format!("{reason} during the call, which may have taken effect")))
    }

    /// Whether the next request can use the same connection.
    pub fn leaves_connection(&self) -> bool {
        !matches!(self, Self::NotSent(_) | Self::Call(ToolError::Transport(_)))
    }

    /// Adds how the process ended, and takes out what must not be told.
    pub fn explained(self, end: &str, secrets: &Secrets) -> Self {
        match self {
            Self::Call(ToolError::Transport(text)) if !end.is_empty() => {
                Self::Call(ToolError::Transport(secrets.hide(&format!("{text}: {end}"))))
            }
            Self::Call(ToolError::Transport(text)) => Self::Call(ToolError::Transport(secrets.hide(&text))),
            Self::NotSent(text) => Self::NotSent(secrets.hide(&text)),
            Self::Call(error) => Self::Call(error),
        }
    }
}

impl std::fmt::Display for McpFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::NotSent(reason) => f.write_str(reason),
            Self::Call(error) => error.fmt(f),
        }
    }
}

fn refusal(error: &ErrorData, tool: &str) -> ToolError {
    let message = error.message.to_string();
    match error.code {
        ErrorCode::INVALID_PARAMS => ToolError::InvalidArguments(message),
        ErrorCode::METHOD_NOT_FOUND => ToolError::Unknown { name: tool.to_owned(), nearest: None },
        ErrorCode(code) => ToolError::Execution(format!("{message} (code {code})")),
    }
}

/// An error with its causes, each said once.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.contains(&said) {
            text.push_str(&format!(": {said}"));
        }
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_the_protocol_are_typed() {
        let cases = [
            (-32_602, ToolError::InvalidArguments("why".into())),
            (-32_601, ToolError::Unknown { name: "mcp:a/b".into(), nearest: None }),
            (-32_603, ToolError::Execution("why (code -32603)".into())),
        ];
        for (code, expected) in cases {
            let error = ServiceError::McpError(ErrorData::new(ErrorCode(code), "why", None));
            let failure = McpFailure::of(error, "mcp:a/b", true);
            assert!(matches!(failure, McpFailure::Call(error) if error == expected), "{code}");
        }
    }

    #[test]
    fn a_closed_connection_may_have_had_an_effect() {
        let failure = McpFailure::of(ServiceError::TransportClosed, "x", false)
            .explained("signal 9", &Secrets::default());
        assert!(!failure.leaves_connection());
        assert_eq!(
            failure.to_string(),
            "cannot be reached: the connection was closed during the call, which may have taken effect: signal 9"
        );
    }
}
