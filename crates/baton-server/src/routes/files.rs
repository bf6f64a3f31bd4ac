//! The files in the workspace of a thread, which its tools have written.

use std::fs::File;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use baton_core::WorkspaceError;
use bytes::Bytes;
use futures_util::Stream;
use http::HeaderValue;
use http::header::CONTENT_LENGTH;
use tokio::io::AsyncReadExt as _;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::artifacts::describe;
use super::threads::visible;
use crate::app::App;
use crate::identity::Caller;
use crate::problem::{ApiResult, Problem};
use crate::strict::{Params, ThreadPath};
use crate::wire::artifact::{ANY, Contents};
use crate::wire::file::{FileParams, FileView, is_path};
use crate::wire::page::{self, Listed, Paging};
use crate::wire::problem::ProblemBody;

/// Bytes that are read at once.
const PIECE: usize = 64 * 1024;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(list_files)).routes(routes!(download_file))
}

/// The files in the workspace of a thread, sorted by path, without their bytes: at most the first 10,000. A server with
/// `auth.mode = "open"` has no workspaces, and the list is empty.
#[utoipa::path(get, path = "/api/v1/threads/{thread_id}/files", tag = "artifacts",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4"), Paging),
    responses((status = 200, body = Listed<FileView>),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user.")),
    extensions(("x-permission" = json!("thread:read"))))]
async fn list_files(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(thread_id): ThreadPath,
    Params(paging): Params<Paging>,
) -> ApiResult<Json<Listed<FileView>>> {
    visible(&app, &caller, thread_id).await?;
    let files = match &app.engine.parts.extensions.workspaces {
        Some(workspaces) => {
            workspaces.files(&caller.tenant, thread_id).await.map_err(|error| unavailable(&error))?
        }
        None => Vec::new(),
    };
    let page = page::cut(files.into_iter(), |file| &file.path, is_path, &paging.into())?;
    Ok(Json(Listed::of(page, |file| FileView::of(thread_id, file))))
}

/// A file of the workspace. It is always something to save and never something to open here.
#[utoipa::path(get, path = "/api/v1/threads/{thread_id}/files/content", tag = "artifacts",
    params(("thread_id" = uuid::Uuid, Path, description = "A UUID version 4"), FileParams),
    responses((status = 200, content_type = "application/octet-stream", body = inline(Contents), description = "Its bytes.",
            headers(("Content-Disposition" = String))),
        (status = 404, body = ProblemBody, content_type = "application/problem+json",
            description = "`thread_not_found`: there is no such thread, or it belongs to another user. `not_found`: it has no such \
                file.")),
    extensions(("x-permission" = json!("thread:read"))))]
async fn download_file(
    State(app): State<App>,
    caller: Caller,
    ThreadPath(thread_id): ThreadPath,
    Params(FileParams { path }): Params<FileParams>,
) -> ApiResult<Response> {
    visible(&app, &caller, thread_id).await?;
    let missing = || Problem::not_found("file");
    let workspaces = app.engine.parts.extensions.workspaces.as_ref().ok_or_else(missing)?;
    let opened = workspaces.open(&caller.tenant, thread_id, &path).await;
    let opened = opened.map_err(|error| unavailable(&error))?;
    let (found, file) = opened.ok_or_else(missing)?;
    let mut response = Response::new(Body::from_stream(pieces(file, found.size)));
    let name = found.path.rsplit('/').next().unwrap_or_default();
    describe(response.headers_mut(), ANY, name);
    response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(found.size));
    Ok(response)
}

fn unavailable(error: &WorkspaceError) -> Problem {
    Problem::internal(error)
}

/// As many bytes as the file had, also if a tool writes to it meanwhile.
fn pieces(file: File, size: u64) -> impl Stream<Item = std::io::Result<Bytes>> {
    async_stream::try_stream! {
        let mut file = tokio::fs::File::from_std(file).take(size);
        loop {
            let mut piece = Vec::with_capacity(PIECE);
            if file.read_buf(&mut piece).await? == 0 {
                break;
            }
            yield Bytes::from(piece);
        }
    }
}
