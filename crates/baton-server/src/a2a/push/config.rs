//! What a client writes into a push notification configuration.

use baton_a2a::WireForm;
use baton_a2a::model::{PushAuthentication, PushConfig, TaskPushConfig};
use baton_core::store::{PushConfig as StoredConfig, PushTarget};
use baton_core::{AgentName, RunId};

use super::super::failure::{A2aFailure, A2aResult};
use super::sender::PushService;

const MAX_ID: usize = 128;
const MAX_URL: usize = 2_048;
/// Bytes of a token or of credentials.
const MAX_SECRET: usize = 4_096;
const MAX_SCHEMES: usize = 8;
/// The versions of the protocol as they are stored.
const V03: &str = "0.3";
const V10: &str = "1.0";

/// Refuses a configuration that cannot work or that would forge headers.
pub fn check(service: &PushService, config: &PushConfig) -> A2aResult<()> {
    let refused =
        |what: &str| Err(A2aFailure::invalid(format!("the push notification configuration {what}")));
    if config.id.as_ref().is_some_and(|id| id.is_empty() || id.len() > MAX_ID || !is_plain(id)) {
        return refused("has an id that is empty, longer than 128 bytes or not printable");
    }
    if config.token.as_ref().is_some_and(|token| token.len() > MAX_SECRET || !is_plain(token)) {
        return refused("has a token that is longer than 4096 bytes or not printable ASCII");
    }
    if let Some(PushAuthentication { schemes, credentials }) = &config.authentication {
        let is_word = |scheme: &String| {
            scheme.len() <= MAX_ID && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        if schemes.len() > MAX_SCHEMES || !schemes.iter().all(is_word) {
            return refused("has authentication schemes that are not words such as Bearer");
        }
        if credentials.as_ref().is_some_and(|secret| secret.len() > MAX_SECRET || !is_plain(secret)) {
            return refused("has credentials that are longer than 4096 bytes or not printable ASCII");
        }
    }
    if config.url.len() > MAX_URL {
        return refused("has a url that is longer than 2048 bytes");
    }
    service
        .sender
        .check(&config.url)
        .or_else(|reason| refused(&format!("has a url that cannot be used: {reason}")))
}

/// Whether a text can be the value of a header.
fn is_plain(text: &str) -> bool {
    text.bytes().all(|b| (0x20..0x7f).contains(&b))
}

pub fn stored(task: RunId, id: String, config: PushConfig, form: WireForm, agent: AgentName) -> StoredConfig {
    let (schemes, credentials) = match config.authentication {
        Some(PushAuthentication { schemes, credentials }) => (schemes, credentials),
        None => (Vec::new(), None),
    };
    let version = if form == WireForm::V10 { V10 } else { V03 };
    let target = PushTarget {
        url: config.url,
        token: config.token,
        credentials,
        schemes,
        version: version.to_owned(),
        agent,
    };
    StoredConfig { task, id, target }
}

/// As the client wrote it.
pub fn shown(stored: StoredConfig) -> TaskPushConfig {
    let StoredConfig { task, id, target } = stored;
    let PushTarget { url, token, credentials, schemes, .. } = target;
    let has_authentication = !schemes.is_empty() || credentials.is_some();
    let authentication = has_authentication.then_some(PushAuthentication { schemes, credentials });
    TaskPushConfig {
        task_id: task.to_string(),
        config: PushConfig { id: Some(id), url, token, authentication },
    }
}

/// The wire form of notifications: the body of 0.3 is a task as on JSON-RPC.
pub fn form(target: &PushTarget) -> WireForm {
    if target.version == V10 { WireForm::V10 } else { WireForm::V03 }
}

/// The value of the `Authorization` header.
pub fn authorization(target: &PushTarget) -> Option<String> {
    let credentials = target.credentials.as_ref()?;
    let scheme = target.schemes.first().map_or("Bearer", String::as_str);
    Some(format!("{scheme} {credentials}"))
}
