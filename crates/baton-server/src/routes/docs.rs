//! The description of the API, for programs and for people. The page needs nothing from elsewhere, and works without a connection to
//! anything but this server.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, header};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::segment::Segment;
use crate::app::App;
use crate::explanation;
use crate::openapi;
use crate::problem::{ApiResult, Problem};
use crate::wire::problem::ProblemBody;

pub fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(get_openapi)).routes(routes!(get_docs)).routes(routes!(get_docs_file))
}

/// This description, as OpenAPI 3.1.
#[utoipa::path(get, path = "/openapi.json", tag = "operations",
    responses((status = 200, description = "An OpenAPI document.", body = Object, content_type = "application/json")),
    extensions(("x-permission" = json!("signed-in"))))]
async fn get_openapi() -> Response {
    sent("application/json", openapi::json())
}

/// This description, as a page. It asks for a key when the server needs one, and forgets it when it is closed.
#[utoipa::path(get, path = "/docs", tag = "operations",
    responses((status = 200, description = "A page.", body = String, content_type = "text/html")),
    extensions(("x-permission" = json!("public"))))]
async fn get_docs() -> Response {
    static PAGE: LazyLock<String> = LazyLock::new(|| {
        let problems: String = explanation::all().iter().map(explanation::Explanation::html).collect();
        include_str!("../../assets/docs/page.html").replace("<!-- problems -->", &problems)
    });
    sent("text/html; charset=utf-8", &PAGE)
}

/// What the page consists of.
#[utoipa::path(get, path = "/docs/{file}", tag = "operations",
    params(("file" = String, Path, example = "app.js")),
    responses((status = 200, description = "A script or a style sheet.",
            content((String = "text/javascript"), (String = "text/css"))),
        (status = 404, body = ProblemBody, content_type = "application/problem+json")),
    extensions(("x-permission" = json!("public"))))]
async fn get_docs_file(Segment(file): Segment) -> ApiResult<Response> {
    const SCRIPT: &str = "text/javascript; charset=utf-8";
    Ok(match file.as_str() {
        "app.js" => sent(SCRIPT, include_str!("../../assets/docs/app.js")),
        "page.js" => sent(SCRIPT, include_str!("../../assets/docs/page.js")),
        "schema.js" => sent(SCRIPT, include_str!("../../assets/docs/schema.js")),
        "trial.js" => sent(SCRIPT, include_str!("../../assets/docs/trial.js")),
        "style.css" => sent("text/css; charset=utf-8", include_str!("../../assets/docs/style.css")),
        _ => return Err(Problem::not_found("file")),
    })
}

/// Nothing runs, and nothing is loaded or asked, that does not come from this server.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

fn sent(media: &'static str, text: &'static str) -> Response {
    let headers: [(HeaderName, HeaderValue); 3] = [
        (header::CONTENT_TYPE, HeaderValue::from_static(media)),
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        // Asked for again after an update of the server.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ];
    (headers, text).into_response()
}
