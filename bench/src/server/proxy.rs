//! A proxy that passes on what a model says and does nothing else.

use std::process::ExitCode;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use axum::{Router, http};

/// Until the parent ends it.
pub fn serve(provider: &str) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let upstream = format!("{provider}/chat/completions");
        let app = Router::new()
            .route("/chat/completions", post(pass))
            .with_state((reqwest::Client::new(), upstream));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        println!("http://{}", listener.local_addr().expect("an address"));
        // As Baton does; otherwise the last bytes of an answer wait for the client.
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("a socket"));
        axum::serve(listener, app).await.expect("served");
    });
    ExitCode::SUCCESS
}

async fn pass(State((client, upstream)): State<(reqwest::Client, String)>, body: Bytes) -> Response {
    let request = client.post(upstream).header("content-type", "application/json").body(body);
    let answer = request.send().await.expect("an answer");
    let kind = answer.headers().get(http::header::CONTENT_TYPE).cloned();
    let mut response = Body::from_stream(answer.bytes_stream()).into_response();
    response.headers_mut().extend(kind.map(|kind| (http::header::CONTENT_TYPE, kind)));
    response
}
