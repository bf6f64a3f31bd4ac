//! The refusals that every route can give, described once.

use std::collections::BTreeMap;

use utoipa::IntoResponses;
use utoipa::openapi::header::HeaderBuilder;
use utoipa::openapi::path::Operation;
use utoipa::openapi::response::{Response, ResponseBuilder};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{ContentBuilder, Ref, RefOr};

/// What guards and the store may answer on any route behind a credential.
#[derive(Debug)]
pub struct Refusals;

struct RefusalResponse {
    status: &'static str,
    /// Of the component that describes it.
    name: &'static str,
    description: &'static str,
    given: RefusalScope,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum RefusalScope {
    /// On every route, also without authentication.
    Always,
    /// Where a credential is needed.
    SignedIn,
    /// Where a body is taken.
    WithBody,
    /// Where a route says so itself.
    Somewhere,
}

const fn refusal(
    status: &'static str,
    name: &'static str,
    given: RefusalScope,
    description: &'static str,
) -> RefusalResponse {
    RefusalResponse { status, name, description, given }
}

const ALL: &[RefusalResponse] = &[
    refusal(
        "400",
        "InvalidRequest",
        RefusalScope::SignedIn,
        "`invalid_request` or `invalid_thread_id`: the request cannot be understood; `errors` says where.",
    ),
    refusal(
        "401",
        "Unauthenticated",
        RefusalScope::SignedIn,
        "`unauthenticated`: no credential, or one that is not valid.",
    ),
    refusal("402", "BudgetExhausted", RefusalScope::Somewhere, "`budget_exhausted`: a budget is used up."),
    refusal(
        "403",
        "Forbidden",
        RefusalScope::Always,
        "`permission_denied`: none of the caller's roles has the permission. Or `foreign_origin`: another site's page is asking. Or `forwarded_request`: a proxy passed the request on to a server in open mode.",
    ),
    refusal(
        "404",
        "NotFound",
        RefusalScope::Somewhere,
        "`not_found`: it does not exist, or it belongs to another user.",
    ),
    refusal(
        "406",
        "NotAcceptable",
        RefusalScope::Somewhere,
        "`not_acceptable`: this route has nothing in a form that `Accept` allows.",
    ),
    refusal(
        "408",
        "RequestTimeout",
        RefusalScope::Always,
        "`request_timeout`: the request did not arrive in time.",
    ),
    refusal(
        "409",
        "Conflict",
        RefusalScope::Somewhere,
        "Things are not as the caller believes; the code says how.",
    ),
    refusal(
        "410",
        "Gone",
        RefusalScope::Somewhere,
        "`cursor_expired`: what came after this place is not kept any more.",
    ),
    refusal(
        "413",
        "PayloadTooLarge",
        RefusalScope::Always,
        "`payload_too_large`, or `storage_full`: the user or tenant has stored as much as it may.",
    ),
    refusal("414", "UriTooLong", RefusalScope::Always, "`uri_too_long`"),
    refusal(
        "415",
        "UnsupportedMediaType",
        RefusalScope::WithBody,
        "`unsupported_media_type`: the body is not JSON, or not called so.",
    ),
    refusal(
        "422",
        "Unprocessable",
        RefusalScope::Somewhere,
        "`idempotency_conflict`: the key was used before with another request.",
    ),
    refusal("426", "UpgradeRequired", RefusalScope::Somewhere, "`upgrade_required`: this is a WebSocket."),
    refusal(
        "429",
        "TooManyRequests",
        RefusalScope::SignedIn,
        "`rate_limited`, `too_many_runs`, `too_many_streams` or `too_many_connections`: wait as long as `Retry-After` says.",
    ),
    refusal("431", "HeadersTooLarge", RefusalScope::Always, "`headers_too_large`"),
    refusal(
        "500",
        "Internal",
        RefusalScope::Always,
        "`internal`: a fault of the server; its log has more under the trace id.",
    ),
    refusal(
        "503",
        "Unavailable",
        RefusalScope::Always,
        "`store_unavailable`, `outcome_unknown`, `identity_unavailable`, `timed_out` or `draining`: not now. Try again when `Retry-After` says, or at once on another server. After `outcome_unknown`, repeat with the same `Idempotency-Key`, or read first.",
    ),
];

impl RefusalResponse {
    fn response(&self) -> Response {
        let problem = ContentBuilder::new().schema(Some(Ref::from_schema_name("ProblemBody"))).build();
        let response =
            ResponseBuilder::new().description(self.description).content("application/problem+json", problem);
        if matches!(self.status, "429" | "503") {
            let seconds = ObjectBuilder::new().schema_type(Type::Integer).minimum(Some(1)).build();
            let about = Some("Seconds to wait.");
            let header = HeaderBuilder::new().schema(Some(seconds)).description(about).build();
            return response.header("Retry-After", header).build();
        }
        response.build()
    }

    fn reference(&self) -> RefOr<Response> {
        RefOr::Ref(Ref::from_response_name(self.name))
    }
}

impl IntoResponses for Refusals {
    fn responses() -> BTreeMap<String, RefOr<Response>> {
        given(&[RefusalScope::Always, RefusalScope::SignedIn])
    }
}

fn given(when: &[RefusalScope]) -> BTreeMap<String, RefOr<Response>> {
    let wanted = ALL.iter().filter(|refusal| when.contains(&refusal.given));
    wanted.map(|refusal| (refusal.status.to_owned(), refusal.reference())).collect()
}

pub(super) fn components() -> BTreeMap<String, RefOr<Response>> {
    let used = ALL.iter().filter(|refusal| refusal.given != RefusalScope::Somewhere);
    used.map(|refusal| (refusal.name.to_owned(), refusal.response().into())).collect()
}

/// What a route says about itself stays; where it only names a status, the usual meaning is written down, because the specification
/// wants one.
pub(super) fn add(operation: &mut Operation, is_public: bool) {
    let mut usual = if is_public { given(&[RefusalScope::Always]) } else { Refusals::responses() };
    if operation.request_body.is_some() {
        usual.append(&mut given(&[RefusalScope::WithBody]));
    }
    let responses = &mut operation.responses.responses;
    for (status, response) in usual {
        responses.entry(status).or_insert(response);
    }
    for (status, response) in responses {
        let RefOr::T(response) = response else { continue };
        if response.description.is_empty() {
            let usual = ALL.iter().find(|refusal| refusal.status == status);
            usual.map_or("It worked.", |refusal| refusal.description).clone_into(&mut response.description);
        }
    }
}
