//! What agents can learn: shared skills, and those that the tenant's people made.

use axum::Json;
use axum::extract::State;
use baton_core::agent::SkillName;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::segment::Segment;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::{ApiResult, Problem};
use crate::strict::Params;
use crate::wire::page::{self, Listed, Paging};
use crate::wire::problem::ProblemBody;
use crate::wire::skill::{SkillDetail, SkillView};

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_skills)).routes(routes!(get_skill))
}

/// All skills that the tenant's agents can use, by name: shared ones, and those that its people created.
#[utoipa::path(get, path = "/api/v1/skills", tag = "skills", params(Paging),
    responses((status = 200, body = Listed<SkillView>)),
    extensions(("x-permission" = json!("agent:read"))))]
async fn list_skills(
    State(app): State<App>,
    caller: Caller,
    Params(paging): Params<Paging>,
) -> ApiResult<Json<Listed<SkillView>>> {
    let heads = match &app.engine.parts.extensions.skills {
        Some(skills) => skills.list(&caller.tenant).await.map_err(|error| Problem::internal(&error))?,
        None => Vec::new(),
    };
    let is_name = |text: &str| SkillName::parse(text).is_ok();
    let page = page::cut(heads.iter(), |head| head.name.as_str(), is_name, &paging.into())?;
    Ok(Json(Listed::of(page, |head| SkillView::from(head.as_ref()))))
}

/// One skill with its file.
#[utoipa::path(get, path = "/api/v1/skills/{skill}", tag = "skills",
    params(("skill" = String, Path, description = "The skill's name", example = "slack-alert")),
    responses((status = 200, body = SkillDetail),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`not_found`: there is no such skill, or it is another tenant's.")),
    extensions(("x-permission" = json!("agent:read"))))]
async fn get_skill(
    State(app): State<App>,
    caller: Caller,
    Segment(name): Segment,
) -> ApiResult<Json<SkillDetail>> {
    let unknown = || Problem::not_found("skill");
    let name = SkillName::parse(&name).map_err(|_| unknown())?;
    let skills = app.engine.parts.extensions.skills.as_ref().ok_or_else(unknown)?;
    let found = skills.read(&caller.tenant, &name).await.map_err(|error| Problem::internal(&error))?;
    found.map(|file| Json(SkillDetail::from(file))).ok_or_else(unknown)
}
