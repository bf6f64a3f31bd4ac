//! The paths of A2A: the main agent at the root, each agent below `/a2a/{agent}`.
//!
//! They are not part of the OpenAPI document of the native API, but have the same guards, so each declares its requirement.

use axum::routing::{MethodRouter, delete, get, post};
use utoipa::openapi::extensions::ExtensionsBuilder;
use utoipa::openapi::path::{HttpMethod, Operation, OperationBuilder};
use utoipa::openapi::{OpenApi, OpenApiBuilder, Paths};
use utoipa_axum::router::OpenApiRouter;

use super::{cards, rest, rpc};
use crate::access::{EXTENSION, RATE_LIMIT, WORK};
use crate::app::App;
use crate::identity::roles::{AGENT_READ, THREAD_READ, THREAD_WRITE};
use crate::ui;

/// Where the agents are: the main one, and each by its name.
const PLACES: [&str; 2] = ["", "/a2a/{agent}"];
/// The prefixes of REST in 0.3 and 1.0.
const VERSIONS: [&str; 2] = ["/v1", ""];

/// A method of a path with its requirement and kind of work.
type Declared = (HttpMethod, &'static str, Option<&'static str>);

#[derive(Default)]
struct Table {
    router: axum::Router<App>,
    paths: Paths,
}

impl Table {
    fn add(&mut self, path: &str, declared: &[Declared], methods: MethodRouter<App>) {
        for (method, requirement, work) in declared {
            let operation = operation(path, method, requirement, *work);
            self.paths.add_path_operation(path, vec![method.clone()], operation);
        }
        self.router = std::mem::take(&mut self.router).route(path, methods);
    }
}

fn operation(path: &str, method: &HttpMethod, requirement: &str, work: Option<&str>) -> Operation {
    let extensions = ExtensionsBuilder::new().add(EXTENSION, requirement);
    let extensions = match work {
        Some(work) => extensions.add(WORK, work),
        None => extensions,
    };
    // JSON-RPC has cancellations among its methods, REST has them behind the id of a task.
    let may_cancel = *method == HttpMethod::Post && (requirement == RPC.1 || path.ends_with("/tasks/{id}"));
    let extensions = if may_cancel { extensions.add(RATE_LIMIT, "exempt-cancel") } else { extensions };
    OperationBuilder::new().extensions(Some(extensions.build())).build()
}

const RPC: Declared = (HttpMethod::Post, "signed-in", Some("run"));

pub fn routes() -> OpenApiRouter<App> {
    let mut table = Table::default();
    // The web page has the same path, with another method.
    table.add("/", &[RPC, (HttpMethod::Get, "public", None)], post(rpc::handle).get(ui::fallback));
    for path in ["/a2a/{agent}", "/a2a/{agent}/"] {
        table.add(path, &[RPC], post(rpc::handle));
    }
    table.add(cards::KEY_PATH, &[(HttpMethod::Get, "public", None)], get(cards::keys));
    for place in PLACES {
        for name in ["agent-card.json", "agent.json"] {
            let path = format!("{place}/.well-known/{name}");
            table.add(&path, &[(HttpMethod::Get, "public", None)], get(cards::card));
        }
        for version in VERSIONS {
            rest_routes(&mut table, &format!("{place}{version}"));
        }
    }
    let document: OpenApi = OpenApiBuilder::new().paths(table.paths).build();
    let described: OpenApiRouter<App> = OpenApiRouter::with_openapi(document);
    described.merge(table.router.into())
}

fn rest_routes(table: &mut Table, base: &str) {
    let path = |rest: &str| format!("{base}{rest}");
    let card = if base.ends_with("/v1") { "/card" } else { "/extendedAgentCard" };
    let configs = path("/tasks/{id}/pushNotificationConfigs");
    // These wait for a run.
    let run = Some("run");
    table.add(&path("/message:send"), &[(HttpMethod::Post, THREAD_WRITE, run)], post(rest::send));
    let stream = post(rest::send_streaming);
    table.add(&path("/message:stream"), &[(HttpMethod::Post, THREAD_WRITE, run)], stream);
    table.add(&path("/tasks"), &[(HttpMethod::Get, THREAD_READ, None)], get(rest::tasks));
    let task = [(HttpMethod::Get, THREAD_READ, None), (HttpMethod::Post, THREAD_READ, run)];
    table.add(&path("/tasks/{id}"), &task, get(rest::task).post(rest::task));
    let both = [(HttpMethod::Get, THREAD_READ, None), (HttpMethod::Post, THREAD_WRITE, None)];
    table.add(&configs, &both, get(rest::list_push_configs).post(rest::set_push_config));
    let one = [(HttpMethod::Get, THREAD_READ, None), (HttpMethod::Delete, THREAD_WRITE, None)];
    let methods = get(rest::get_push_config).merge(delete(rest::delete_push_config));
    table.add(&format!("{configs}/{{config}}"), &one, methods);
    table.add(&path(card), &[(HttpMethod::Get, AGENT_READ, None)], get(rest::extended_card));
}
