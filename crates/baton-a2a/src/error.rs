//! Errors of the protocol: codes, names and their forms on JSON-RPC and REST.

use serde_json::{Value, json};

use crate::object::Object;
use crate::wire::WireForm;

/// What is wrong with an object of a peer, with the path to it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}{}{problem}", if path.is_empty() { "" } else { " " })]
pub struct Invalid {
    path: String,
    problem: String,
}

impl Invalid {
    pub fn new(problem: impl Into<String>) -> Self {
        Self { path: String::new(), problem: problem.into() }
    }

    /// Prepends a member's name to the path.
    #[must_use]
    pub fn within(mut self, member: &str) -> Self {
        let rest = std::mem::take(&mut self.path);
        self.path = if rest.is_empty() { member.to_owned() } else { format!("{member}.{rest}") };
        self
    }
}

impl From<Invalid> for A2aError {
    fn from(invalid: Invalid) -> Self {
        Self::new(ErrorCode::InvalidParams, invalid.to_string())
    }
}

macro_rules! codes {
    ($($name:ident = $code:literal, $class:literal, $reason:literal, $http:literal, $status:literal, $text:literal;)*) => {
        /// What went wrong, in the protocol's terms.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum ErrorCode {
            $($name,)*
            /// A code of a newer version or of the peer's own.
            Other(i64),
        }

        impl ErrorCode {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The number in JSON-RPC.
            pub fn number(self) -> i64 {
                match self { $(Self::$name => $code,)* Self::Other(code) => code }
            }

            pub fn from_number(code: i64) -> Self {
                match code { $($code => Self::$name,)* other => Self::Other(other) }
            }

            /// The class name in the specification of 0.3, by which some clients recognize errors of REST.
            pub fn name(self) -> &'static str {
                match self { $(Self::$name => $class,)* Self::Other(_) => "A2AError" }
            }

            fn from_name(name: &str) -> Option<Self> {
                match name { $($class => Some(Self::$name),)* _ => None }
            }

            /// The reason in `google.rpc.ErrorInfo` of 1.0.
            pub fn reason(self) -> &'static str {
                match self { $(Self::$name => $reason,)* Self::Other(_) => "UNKNOWN" }
            }

            fn from_reason(reason: &str) -> Option<Self> {
                match reason { $($reason => Some(Self::$name),)* _ => None }
            }

            /// The status of a REST response. The official SDK of 1.0 has 400 where 0.3 has a status of its own.
            pub fn http_status(self, form: WireForm) -> u16 {
                let status = match self { $(Self::$name => $http,)* Self::Other(_) => 500 };
                match self {
                    Self::TaskNotFound | Self::MethodNotFound | Self::Internal | Self::Other(_) => status,
                    Self::InvalidAgentResponse if form == WireForm::V10 => 500,
                    _ if form == WireForm::V10 => 400,
                    _ => status,
                }
            }

            /// The name of the gRPC status that 1.0 writes into REST errors.
            pub fn grpc_status(self) -> &'static str {
                match self { $(Self::$name => $status,)* Self::Other(_) => "UNKNOWN" }
            }

            /// The message of the specification.
            pub fn text(self) -> &'static str {
                match self { $(Self::$name => $text,)* Self::Other(_) => "Unknown error" }
            }
        }
    };
}

codes! {
    Parse = -32700, "JSONParseError", "PARSE_ERROR", 400, "INVALID_ARGUMENT", "Invalid JSON payload";
    InvalidRequest = -32600, "InvalidRequestError", "INVALID_REQUEST", 400, "INVALID_ARGUMENT", "Request payload validation error";
    MethodNotFound = -32601, "MethodNotFoundError", "METHOD_NOT_FOUND", 404, "NOT_FOUND", "Method not found";
    InvalidParams = -32602, "InvalidParamsError", "INVALID_PARAMS", 400, "INVALID_ARGUMENT", "Invalid parameters";
    Internal = -32603, "InternalError", "INTERNAL_ERROR", 500, "INTERNAL", "Internal error";
    TaskNotFound = -32001, "TaskNotFoundError", "TASK_NOT_FOUND", 404, "NOT_FOUND", "Task not found";
    TaskNotCancelable = -32002, "TaskNotCancelableError", "TASK_NOT_CANCELABLE", 409, "FAILED_PRECONDITION", "Task cannot be canceled";
    PushNotificationNotSupported = -32003, "PushNotificationNotSupportedError", "PUSH_NOTIFICATION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION", "Push Notification is not supported";
    UnsupportedOperation = -32004, "UnsupportedOperationError", "UNSUPPORTED_OPERATION", 400, "FAILED_PRECONDITION", "This operation is not supported";
    ContentTypeNotSupported = -32005, "ContentTypeNotSupportedError", "CONTENT_TYPE_NOT_SUPPORTED", 415, "INVALID_ARGUMENT", "Incompatible content types";
    InvalidAgentResponse = -32006, "InvalidAgentResponseError", "INVALID_AGENT_RESPONSE", 502, "INTERNAL", "Invalid agent response";
    ExtendedCardNotConfigured = -32007, "AuthenticatedExtendedCardNotConfiguredError", "EXTENDED_AGENT_CARD_NOT_CONFIGURED", 404, "FAILED_PRECONDITION", "Authenticated Extended Card is not configured";
    ExtensionSupportRequired = -32008, "ExtensionSupportRequiredError", "EXTENSION_SUPPORT_REQUIRED", 400, "FAILED_PRECONDITION", "Extension support required";
    VersionNotSupported = -32009, "VersionNotSupportedError", "VERSION_NOT_SUPPORTED", 400, "FAILED_PRECONDITION", "Version not supported";
}

/// The domain of `google.rpc.ErrorInfo`.
const DOMAIN: &str = "a2a-protocol.org";
const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";

/// An error of the protocol.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message} ({})", code.number())]
pub struct A2aError {
    pub code: ErrorCode,
    pub message: String,
    pub data: Option<Value>,
}

impl A2aError {
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The `error` member of a JSON-RPC response.
    pub fn to_json_rpc(&self, form: WireForm) -> Value {
        let object = Object::new().set("code", self.code.number()).set("message", self.message.as_str());
        match form {
            WireForm::V10 => object.set("data", self.details()).into(),
            _ => object.optional("data", self.data.clone()).into(),
        }
    }

    /// The body of a REST response. 0.3 does not define it and each client reads another member, so all of them are written.
    pub fn to_rest(&self, form: WireForm) -> Value {
        if form == WireForm::V10 {
            let error = json!({
                "code": self.code.http_status(form), "status": self.code.grpc_status(),
                "message": self.message, "details": self.details(),
            });
            return json!({ "error": error });
        }
        Object::new()
            .set("code", self.code.number())
            .set("message", self.message.as_str())
            .set("type", self.code.name())
            .set("error", self.code.name())
            .optional("data", self.data.clone())
            .into()
    }

    fn details(&self) -> Value {
        let info = json!({ "@type": ERROR_INFO, "reason": self.code.reason(), "domain": DOMAIN });
        match &self.data {
            Some(data @ Value::Object(_)) => json!([info, data]),
            _ => json!([info]),
        }
    }

    /// Reads the `error` member of a JSON-RPC response.
    pub fn from_json_rpc(error: &Value) -> Self {
        let code = error["code"].as_i64().map_or(ErrorCode::Internal, ErrorCode::from_number);
        Self { code, message: message_of(error, code), data: error.get("data").cloned() }
    }

    /// Reads the body of a failed REST request in any of the known forms, or derives the error from the status.
    pub fn from_rest(status: u16, body: &Value) -> Self {
        let inner = body.get("error").filter(|error| error.is_object()).unwrap_or(body);
        let code = code_of_rest(body, inner).unwrap_or(match status {
            404 => ErrorCode::MethodNotFound,
            400 | 422 => ErrorCode::InvalidParams,
            415 => ErrorCode::ContentTypeNotSupported,
            _ => ErrorCode::Other(i64::from(status)),
        });
        Self { code, message: message_of(inner, code), data: inner.get("data").cloned() }
    }
}

fn message_of(error: &Value, code: ErrorCode) -> String {
    error["message"].as_str().unwrap_or(code.text()).to_owned()
}

fn code_of_rest(body: &Value, inner: &Value) -> Option<ErrorCode> {
    let details = inner["details"].as_array().or_else(|| inner["data"].as_array()).into_iter().flatten();
    let reason = details.filter_map(|detail| detail["reason"].as_str()).find_map(ErrorCode::from_reason);
    let named =
        || [&body["type"], &body["error"]].into_iter().find_map(|name| ErrorCode::from_name(name.as_str()?));
    let numbered = || inner["code"].as_i64().filter(|code| *code < 0).map(ErrorCode::from_number);
    reason.or_else(numbered).or_else(named)
}
