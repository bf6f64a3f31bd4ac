//! API keys of the caller's tenant.

use axum::Json;
use axum::extract::State;
use baton_core::{Permission, Rights, StoreError};
use http::StatusCode;
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use serde_json::json;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::segment::Segment;
use crate::app::App;
use crate::identity::Caller;
use crate::identity::key::{KeyRequest, NewKey, audit_detail};
use crate::identity::roles::{EVERYTHING, Roles};
use crate::problem::{ApiResult, Code, Problem};
use crate::strict::{Params, Strict};
use crate::trace::Trace;
use crate::trail::{self, AuditRecord};
use crate::wire::key::{CreatedKey, KeyParams, KeyView, NewKeyBody};
use crate::wire::page::Listed;
use crate::wire::problem::ProblemBody;

const ROUTE: &str = "/api/v1/keys";
/// More roles than there are.
const MAX_ROLES: usize = 20;
const MAX_SCOPES: usize = 50;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_keys, create_key)).routes(routes!(revoke_key))
}

/// The API keys of the tenant, also those that do not work any more, the oldest first. The keys themselves are not stored and not
/// shown.
#[utoipa::path(get, path = "/api/v1/keys", tag = "keys", params(KeyParams),
    responses((status = 200, body = Listed<KeyView>)),
    extensions(("x-permission" = json!("admin:keys"))))]
async fn list_keys(
    State(app): State<App>,
    caller: Caller,
    Params(params): Params<KeyParams>,
) -> ApiResult<Json<Listed<KeyView>>> {
    let now = Timestamp::now();
    let keys = app.data(&caller).keys().await?.into_iter();
    let keys = keys.filter(|key| params.user_id.as_ref().is_none_or(|user| *user == key.user_id));
    Ok(Json(Listed::whole(keys.map(|key| KeyView::of(key, now)).collect())))
}

/// Create an API key of the tenant. The response is the only place where the key is shown. A caller cannot create a key with more
/// permissions than their own or one that outlives their credential. A key of another user needs `admin:*`.
#[utoipa::path(post, path = "/api/v1/keys", tag = "keys",
    request_body = NewKeyBody,
    responses((status = 201, body = CreatedKey),
        (status = 400, body = ProblemBody, content_type = "application/problem+json",
            description = "`invalid_request`: a role does not exist, a scope is not granted by the roles, or `expires_at` is in the past or after the expiry of the caller's key.")),
    extensions(("x-permission" = json!("admin:keys"))))]
async fn create_key(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    Strict(body): Strict<NewKeyBody>,
) -> ApiResult<(StatusCode, Json<CreatedKey>)> {
    let now = Timestamp::now();
    let rights = check(app.identity.roles(), &body, now)?;
    let expires_at = expiry(&body, caller.key_expires_at())?;
    if let Some(missing) = rights.iter().find(|permission| !caller.may(permission.as_str())) {
        trail::refused(&app, &caller, Some(&trace), missing.as_str(), ROUTE).await;
        return Err(Problem::permission(missing.as_str()));
    }
    let user_id = body.user_id.unwrap_or_else(|| caller.user.clone());
    if user_id != caller.user {
        // The key reads that user's threads and acts in their name.
        trail::demand(&app, &caller, &trace, EVERYTHING, ROUTE).await?;
    }
    let request = KeyRequest {
        user_id,
        roles: body.roles,
        name: body.name.as_str().to_owned(),
        scopes: body.scopes,
        expires_at,
    };
    let NewKey { secret, record, digest } =
        NewKey::make(request).map_err(|error| Problem::internal(&error))?;
    let mut detail = audit_detail(&record);
    if let Some(key) = caller.key {
        detail["created_with"] = json!(key.key_id);
    }
    let audit_record =
        AuditRecord { action: "key.create", decision: "allowed", detail, ..AuditRecord::default() };
    let data = trail::audited(&app, &caller, &trace, audit_record);
    data.put_key(record.clone(), &digest.hex()).await?;
    let created = CreatedKey { view: KeyView::of(record, now), key: secret.expose_secret().to_owned() };
    Ok((StatusCode::CREATED, Json(created)))
}

/// Revoke a key. All servers refuse it within seconds, and streams that were opened with it end. A second request changes nothing.
#[utoipa::path(delete, path = "/api/v1/keys/{key_id}", tag = "keys",
    params(("key_id" = Uuid, Path, description = "The id of the key")),
    responses((status = 200, body = KeyView),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`not_found`: the tenant has no such key.")),
    extensions(("x-permission" = json!("admin:keys"))))]
async fn revoke_key(
    State(app): State<App>,
    caller: Caller,
    trace: Trace,
    Segment(key_id): Segment,
) -> ApiResult<Json<KeyView>> {
    let missing = || Problem::not_found("key");
    let key_id = Uuid::try_parse(&key_id).map_err(|_| missing())?;
    let keys = app.data(&caller).keys().await?;
    let key = keys.into_iter().find(|key| key.key_id == key_id).ok_or_else(missing)?;
    let now = Timestamp::now();
    if key.revoked_at.is_some() {
        return Ok(Json(KeyView::of(key, now)));
    }
    let audit_record = AuditRecord {
        action: "key.revoke",
        decision: "allowed",
        detail: audit_detail(&key),
        ..AuditRecord::default()
    };
    match trail::audited(&app, &caller, &trace, audit_record).revoke_key(key_id).await {
        Err(StoreError::NotFound(_)) => Err(missing()),
        revoked => Ok(Json(KeyView::of(revoked?, now))),
    }
}

/// When a new key expires: not after the credential that creates it, which would otherwise be good for longer than it is valid.
fn expiry(body: &NewKeyBody, of_caller: Option<Timestamp>) -> ApiResult<Option<Timestamp>> {
    match (body.expires_at, of_caller) {
        (Some(end), Some(last)) if end > last => {
            let detail = format!("at most {last}, when the credential of this request expires");
            let problem = Problem::new(Code::InvalidRequest, "the key cannot be created like this");
            Err(problem.at("/expires_at", detail))
        }
        (end, last) => Ok(end.or(last)),
    }
}

/// Checks a new key. Returns what it may do.
fn check(roles: &Roles, body: &NewKeyBody, now: Timestamp) -> ApiResult<Rights> {
    let invalid = |pointer: String, detail: String| {
        Err(Problem::new(Code::InvalidRequest, "the key cannot be created like this").at(pointer, detail))
    };
    if body.roles.is_empty() || body.roles.len() > MAX_ROLES {
        return invalid("/roles".to_owned(), format!("1 to {MAX_ROLES} roles"));
    }
    if let Some(at) = body.roles.iter().position(|role| !roles.has(role)) {
        let names: Vec<&str> = roles.names().collect();
        return invalid(format!("/roles/{at}"), format!("there is no such role: use {}", names.join(", ")));
    }
    if body.expires_at.is_some_and(|end| end <= now) {
        return invalid("/expires_at".to_owned(), "a time in the future".to_owned());
    }
    let scopes = body.scopes.as_deref().unwrap_or_default();
    if scopes.len() > MAX_SCOPES || body.scopes.as_ref().is_some_and(Vec::is_empty) {
        return invalid("/scopes".to_owned(), format!("1 to {MAX_SCOPES} permissions, or none at all"));
    }
    let of_roles = roles.rights(&body.roles);
    if let Some(at) = scopes.iter().position(|scope: &Permission| !of_roles.allow(scope.as_str())) {
        return invalid(
            format!("/scopes/{at}"),
            "the roles of the key do not grant this permission".to_owned(),
        );
    }
    Ok(roles.limited(&body.roles, body.scopes.as_deref()))
}
