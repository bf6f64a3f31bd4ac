//! The OpenAPI document, generated from the routes.
//!
//! A route declares its own parameters, responses and requirements. This module adds what all routes share: the errors of the
//! guards ([`refusals`]), the security schemes and the descriptions of the groups.

mod refusals;

use std::sync::LazyLock;

use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::security::{Http, HttpAuthScheme, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, OpenApi, PathItem, RefOr, Schema};
use utoipa::{Modify, OpenApi as _};

use crate::access::EXTENSION;
use crate::wire::event::EventView;
use crate::wire::problem::ProblemBody;

pub use refusals::Refusals;

const UUID_V4: &str = "^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$";

#[derive(utoipa::OpenApi)]
#[openapi(
    info(title = "Baton", description = include_str!("openapi/description.md")),
    servers((url = "/", description = "This server")),
    components(schemas(ProblemBody, EventView)),
    security(("bearer" = [])),
    modifiers(&Bearer),
    tags(
        (name = "threads", description = "Conversations: what is said in them, and who answers."),
        (name = "streams", description = "What happens, as it happens: server-sent events and WebSocket, resumable."),
        (name = "runs", description = "The work for single messages: who did what, for how much, and how to end it."),
        (name = "orchestration", description = "Several agents at once, without a model that decides who is asked."),
        (name = "handoffs", description = "Threads that another agent has for a while: who, how far it is, and how to get back."),
        (name = "approvals", description = "Calls of tools that wait for a person's yes."),
        (name = "agents", description = "Agents, their prompts, and which may call which."),
        (name = "skills", description = "What agents can learn: shared skills, and those that people created in a conversation."),
        (name = "artifacts", description = "Files that agents and people added to threads."),
        (name = "insight", description = "What was spent, what was learnt, and who did what."),
        (name = "keys", description = "API keys of the tenant."),
        (name = "operations", description = "Whether the server lives, what it is, and this description."),
    )
)]
struct Description;

struct Bearer;

impl Modify for Bearer {
    fn modify(&self, document: &mut OpenApi) {
        let about = "An API key, as `baton keys create` prints it, or a JWT.";
        let mut bearer = Http::new(HttpAuthScheme::Bearer);
        bearer.description = Some(about.to_owned());
        let components = document.components.get_or_insert_with(Components::default);
        components.add_security_scheme("bearer", SecurityScheme::Http(bearer));
    }
}

/// Builds the document with all routes.
pub fn document() -> OpenApi {
    let mut document = Description::openapi();
    document.merge(crate::routes::all().into_openapi());
    let components = document.components.get_or_insert_with(Components::default);
    components.responses.extend(refusals::components());
    for item in document.paths.paths.values_mut() {
        for operation in operations(item) {
            complete(operation);
        }
    }
    document
}

/// The document as pretty-printed JSON.
pub fn json() -> &'static str {
    static TEXT: LazyLock<String> =
        LazyLock::new(|| document().to_pretty_json().expect("a document is JSON") + "\n");
    &TEXT
}

fn complete(operation: &mut Operation) {
    let said = operation.extensions.as_ref().and_then(|extensions| extensions.get(EXTENSION));
    let is_public = said.and_then(|said| said.as_str()) == Some("public");
    if is_public {
        operation.security = Some(vec![SecurityRequirement::default()]);
    }
    refusals::add(operation, is_public);
    shorten(operation);
    for parameter in operation.parameters.iter_mut().flatten() {
        if let RefOr::T(parameter) = parameter {
            narrow(parameter);
        }
    }
}

/// Clients choose thread ids, and only UUIDs version 4 are valid.
fn narrow(parameter: &mut Parameter) {
    if parameter.name == "thread_id"
        && let Some(RefOr::T(Schema::Object(object))) = &mut parameter.schema
    {
        object.pattern = Some(UUID_V4.to_owned());
    }
}

/// The first sentence of a handler's documentation becomes the summary, the rest the description.
fn shorten(operation: &mut Operation) {
    let Some(said) = operation.summary.take() else { return };
    let said = said.replace('\n', " ");
    let (headline, rest) = said.split_once(". ").unwrap_or((&said, ""));
    operation.summary = Some(headline.trim_end_matches('.').to_owned());
    if !rest.is_empty() {
        let more = operation.description.take().map(|more| format!("\n\n{more}")).unwrap_or_default();
        operation.description = Some(format!("{rest}{more}"));
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = &mut Operation> {
    [&mut item.get, &mut item.post, &mut item.put, &mut item.delete, &mut item.patch]
        .into_iter()
        .filter_map(Option::as_mut)
}
