//! What the server answers, compared with what it says that it answers.

use reqwest::{RequestBuilder, Response};
use serde_json::Value;

use crate::site::Site;

/// The description, as it is served.
pub fn document() -> Value {
    serde_json::from_str(baton_server::openapi::json()).expect("JSON")
}

/// What a `$ref` within the document stands for.
pub fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match value["$ref"].as_str() {
        Some(reference) => {
            let pointer = reference.strip_prefix('#').expect("a reference within the document");
            document.pointer(pointer).unwrap_or_else(|| panic!("{reference} leads nowhere"))
        }
        None => value,
    }
}

/// The body, if the description of the route has this status with this media type and the body is as described.
pub async fn body(response: Response, method: &str, route: &str) -> Value {
    let document = document();
    let status = response.status().as_u16().to_string();
    let media = response.headers()["content-type"].to_str().expect("text").to_owned();
    let operation = &document["paths"][route][method];
    let described = resolve(&document, &operation["responses"][&status]);
    let mut schema = described["content"][&media]["schema"].clone();
    assert!(schema.is_object(), "{method} {route} describes no {status} with {media}");
    schema["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&schema).expect("a schema");
    let body: Value = response.json().await.expect("JSON");
    let errors: Vec<String> =
        validator.iter_errors(&body).map(|error| format!("{error} at {}", error.instance_path())).collect();
    assert!(errors.is_empty(), "{method} {route}: {errors:#?}\n{body:#}");
    body
}

/// Somebody who asks.
pub struct Visitor<'a> {
    site: &'a Site,
    key: Option<String>,
}

impl Site {
    /// Whoever asks in open mode.
    pub fn anybody(&self) -> Visitor<'_> {
        Visitor { site: self, key: None }
    }

    /// A user of the tenant `acme`.
    pub async fn visitor(&self, user: &str, role: &str) -> Visitor<'_> {
        Visitor { site: self, key: Some(self.key("acme", user, &[role]).await) }
    }
}

impl Visitor<'_> {
    fn asks(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    pub async fn get(&self, path: &str) -> Response {
        self.asks(self.site.http.get(self.site.url(path))).send().await.expect("an answer")
    }

    pub async fn post(&self, path: &str, body: &Value) -> Response {
        self.asks(self.site.http.post(self.site.url(path))).json(body).send().await.expect("an answer")
    }

    /// What is at the path, as the route describes it.
    pub async fn see(&self, route: &str, path: &str) -> (u16, Value) {
        let response = self.get(path).await;
        let status = response.status().as_u16();
        (status, body(response, "get", route).await)
    }

    /// Sends a message and waits for the end of its run.
    pub async fn say(&self, thread: &str, words: &str) -> Value {
        let path = format!("/api/v1/threads/{thread}/messages");
        let request = self.site.http.post(self.site.url(&path)).header("accept", "application/json");
        let request = self.asks(request).json(&serde_json::json!({ "content": words }));
        let response = request.send().await.expect("an answer");
        assert_eq!(response.status(), 200);
        body(response, "post", "/api/v1/threads/{thread_id}/messages").await
    }
}
