//! One request to the endpoint.

use std::time::Duration;

use anyhow::Context as _;
use baton_core::TenantId;
use baton_core::store::{Approval, ApprovalKind};
use baton_server::wire::approval::ApprovalView;
use baton_tools::web::Reach;
use baton_tools::web::reach::ReachRefused;
use jiff::Timestamp;
use reqwest::header::CONTENT_TYPE;
use reqwest::{Client, Url};
use serde::Serialize;

use super::signature::SigningKey;

/// The whole request, until the head of the response.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);

/// Where deliveries go. The client resolves names to permitted addresses only, and follows no redirect.
#[derive(Debug)]
pub(super) struct Endpoint {
    url: Url,
    client: Client,
    key: SigningKey,
}

/// Why a delivery failed. It names no more of the address than its host: the path of a webhook is often a secret.
#[derive(Debug, thiserror::Error)]
pub(super) enum DeliveryError {
    #[error("the endpoint answered {0}")]
    Status(u16),
    #[error("{0}")]
    Refused(ReachRefused),
    #[error("the endpoint cannot be reached: {0}")]
    Transport(String),
}

/// The body of a delivery.
#[derive(Serialize)]
struct Notification<'a> {
    r#type: &'static str,
    tenant_id: &'a TenantId,
    /// As the API shows it.
    approval: ApprovalView,
}

impl Endpoint {
    pub(super) fn new(url: Url, reach: &Reach, key: SigningKey) -> anyhow::Result<Self> {
        let client = reach.client().context("cannot set up the client of the webhook")?;
        Ok(Self { url, client, key })
    }

    pub(super) fn host(&self) -> &str {
        self.url.host_str().unwrap_or_default()
    }

    pub(super) async fn send(&self, tenant: &TenantId, approval: &Approval) -> Result<(), DeliveryError> {
        let r#type = match approval.request.kind {
            ApprovalKind::Tool => "approval.requested",
            ApprovalKind::Question => "question.asked",
        };
        let notification = Notification { r#type, tenant_id: tenant, approval: approval.clone().into() };
        let body =
            serde_json::to_vec(&notification).map_err(|error| DeliveryError::Transport(error.to_string()))?;
        // The same for every attempt, so that a receiver can drop repetitions.
        let id = approval.request.approval_id.to_string();
        let timestamp = Timestamp::now().as_second();
        let request = self
            .client
            .post(self.url.clone())
            .timeout(REQUEST_TIMEOUT)
            .header(CONTENT_TYPE, "application/json")
            .header("webhook-id", &id)
            .header("webhook-timestamp", timestamp)
            .header("webhook-signature", self.key.sign(&id, timestamp, &body))
            .body(body);
        let response = request.send().await.map_err(|error| failure(&error))?;
        let status = response.status();
        if status.is_success() { Ok(()) } else { Err(DeliveryError::Status(status.as_u16())) }
    }
}

/// The innermost cause; the outer ones repeat the address.
fn failure(error: &reqwest::Error) -> DeliveryError {
    let mut cause: &(dyn std::error::Error + 'static) = error;
    while let Some(inner) = cause.source() {
        cause = inner;
        if let Some(refused) = cause.downcast_ref::<ReachRefused>() {
            return DeliveryError::Refused(refused.clone());
        }
    }
    if error.is_timeout() {
        return DeliveryError::Transport(format!("no response within {} s", REQUEST_TIMEOUT.as_secs()));
    }
    let is_outermost = std::error::Error::source(error).is_none();
    DeliveryError::Transport(if is_outermost { "the request failed".to_owned() } else { cause.to_string() })
}
