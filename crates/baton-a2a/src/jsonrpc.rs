//! The JSON-RPC 2.0 envelope and the methods of both protocol versions.

use serde_json::{Number, Value};

use crate::error::{A2aError, ErrorCode};
use crate::object::Object;
use crate::wire::WireForm;

/// The id of a request, echoed exactly as it was received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequestId {
    /// Absent, null or unreadable.
    Null,
    Number(Number),
    String(String),
}

impl From<&RequestId> for Value {
    fn from(id: &RequestId) -> Self {
        match id {
            RequestId::Null => Self::Null,
            RequestId::Number(number) => Self::Number(number.clone()),
            RequestId::String(text) => Self::String(text.clone()),
        }
    }
}

/// A request whose envelope is valid. The method and its parameters are not checked yet.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    pub id: RequestId,
    pub method: String,
    /// An empty object if absent or null.
    pub params: Value,
}

/// A request that is refused, with the id as far as it could be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Refused {
    pub id: RequestId,
    pub error: A2aError,
}

impl Request {
    /// Checks JSON first, then the envelope.
    pub fn parse(body: &[u8]) -> Result<Self, Box<Refused>> {
        let refuse = |id: RequestId, code: ErrorCode, message: &str| {
            Box::new(Refused { id, error: A2aError::new(code, message) })
        };
        let value: Value = serde_json::from_slice(body)
            .map_err(|_| refuse(RequestId::Null, ErrorCode::Parse, ErrorCode::Parse.text()))?;
        let invalid = |id: RequestId, message: &str| refuse(id, ErrorCode::InvalidRequest, message);
        let Value::Object(mut object) = value else {
            let message = if value.is_array() { "batches are not supported" } else { "must be an object" };
            return Err(invalid(RequestId::Null, message));
        };
        let id = match object.remove("id") {
            None | Some(Value::Null) => RequestId::Null,
            Some(Value::String(text)) => RequestId::String(text),
            Some(Value::Number(number)) if number.is_i64() || number.is_u64() => RequestId::Number(number),
            Some(_) => return Err(invalid(RequestId::Null, "id must be a string, a whole number or null")),
        };
        if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid(id, "jsonrpc must be \"2.0\""));
        }
        let Some(Value::String(method)) = object.remove("method").filter(|method| method != "") else {
            return Err(invalid(id, "method must be a string"));
        };
        match object.remove("params").unwrap_or(Value::Null) {
            Value::Null => Ok(Self { id, method, params: Object::new().into() }),
            params @ (Value::Object(_) | Value::Array(_)) => Ok(Self { id, method, params }),
            _ => Err(refuse(id, ErrorCode::InvalidParams, "params must be an object")),
        }
    }

    pub fn to_json(&self) -> Value {
        Object::new()
            .set("jsonrpc", "2.0")
            .set("id", &self.id)
            .set("method", self.method.as_str())
            .set("params", self.params.clone())
            .into()
    }
}

/// A successful response; `result` is present even if it is null.
pub fn success(id: &RequestId, result: Value) -> Value {
    Object::new().set("jsonrpc", "2.0").set("id", id).set("result", result).into()
}

pub fn failure(id: &RequestId, error: &A2aError, form: WireForm) -> Value {
    Object::new().set("jsonrpc", "2.0").set("id", id).set("error", error.to_json_rpc(form)).into()
}

/// Reads a response. One without `result` and `error` is an invalid agent response.
pub fn read_response(value: &Value) -> Result<Value, A2aError> {
    if let Some(error) = value.get("error").filter(|error| error.is_object()) {
        return Err(A2aError::from_json_rpc(error));
    }
    let missing =
        || A2aError::new(ErrorCode::InvalidAgentResponse, "the response has neither result nor error");
    value.get("result").cloned().ok_or_else(missing)
}

macro_rules! methods {
    ($($name:ident = $old:literal, $new:literal;)*) => {
        /// A method of the protocol.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Method { $($name,)* }

        impl Method {
            /// The method with the form in which its name was written. A name of 1.0 has no slash.
            pub fn parse(name: &str) -> Option<(Self, WireForm)> {
                match name {
                    $($old => Some((Self::$name, WireForm::V03)), $new => Some((Self::$name, WireForm::V10)),)*
                    _ => None,
                }
            }

            /// The name in a version.
            pub fn name(self, form: WireForm) -> &'static str {
                match (self, form) { $((Self::$name, WireForm::V10) => $new, (Self::$name, _) => $old,)* }
            }
        }
    };
}

methods! {
    Send = "message/send", "SendMessage";
    Stream = "message/stream", "SendStreamingMessage";
    GetTask = "tasks/get", "GetTask";
    ListTasks = "tasks/list", "ListTasks";
    CancelTask = "tasks/cancel", "CancelTask";
    Subscribe = "tasks/resubscribe", "SubscribeToTask";
    SetPushConfig = "tasks/pushNotificationConfig/set", "CreateTaskPushNotificationConfig";
    GetPushConfig = "tasks/pushNotificationConfig/get", "GetTaskPushNotificationConfig";
    ListPushConfigs = "tasks/pushNotificationConfig/list", "ListTaskPushNotificationConfigs";
    DeletePushConfig = "tasks/pushNotificationConfig/delete", "DeleteTaskPushNotificationConfig";
    ExtendedCard = "agent/getAuthenticatedExtendedCard", "GetExtendedAgentCard";
}
