//! One module per noun. Each documents the parameters, responses and requirements of its routes; `all` is the list that the
//! server and the OpenAPI document share.

mod agents;
pub(crate) mod approvals;
mod artifacts;
mod audit;
mod delegations;
mod docs;
mod events;
mod feedback;
mod files;
pub(crate) mod handoff;
pub mod health;
mod keys;
mod me;
pub(crate) mod messages;
mod patterns;
mod remembered;
mod roster;
pub(crate) mod runs;
mod segment;
mod skills;
mod system;
mod threads;
mod usage;
mod users;

use utoipa_axum::router::OpenApiRouter;

use crate::app::App;

pub fn all() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .merge(threads::routes())
        .merge(messages::routes())
        .merge(events::routes())
        .merge(delegations::routes())
        .merge(handoff::routes())
        .merge(runs::routes())
        .merge(approvals::routes())
        .merge(remembered::routes())
        .merge(agents::routes())
        .merge(roster::routes())
        .merge(skills::routes())
        .merge(artifacts::routes())
        .merge(files::routes())
        .merge(feedback::routes())
        .merge(usage::routes())
        .merge(users::routes())
        .merge(audit::routes())
        .merge(patterns::routes())
        .merge(keys::routes())
        .merge(me::routes())
        .merge(system::routes())
        .merge(health::routes())
        .merge(docs::routes())
}
