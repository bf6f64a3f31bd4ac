//! Somebody with a key, and what they do with it.

use baton_core::RunId;
use baton_core::store::RunStatus;
use http::Method;
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::site::{LONG, Site};

pub struct Person<'a> {
    pub site: &'a Site,
    pub key: String,
}

impl Site {
    pub async fn person(&self, tenant: &str, user: &str, roles: &[&str]) -> Person<'_> {
        Person { site: self, key: self.key(tenant, user, roles).await }
    }
}

pub fn new_thread() -> String {
    Uuid::new_v4().to_string()
}

impl Person<'_> {
    pub fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.site.http.request(method, self.site.url(path)).bearer_auth(&self.key)
    }

    pub async fn get(&self, path: &str) -> Response {
        self.request(Method::GET, path).send().await.expect("an answer")
    }

    pub async fn post(&self, path: &str, body: &Value) -> Response {
        self.request(Method::POST, path).json(body).send().await.expect("an answer")
    }

    pub async fn delete(&self, path: &str) -> Response {
        self.request(Method::DELETE, path).send().await.expect("an answer")
    }

    /// What is there, if it is.
    pub async fn see(&self, path: &str) -> Value {
        let response = self.get(path).await;
        let (status, body) = (response.status(), response.text().await.expect("a body"));
        assert_eq!(status, 200, "{path}: {body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// A refusal without its trace id, which is another one each time.
    pub async fn refused(&self, method: Method, path: &str) -> Value {
        let response = self.request(method, path).send().await.expect("an answer");
        let mut problem = crate::guards::problem(response).await;
        problem.as_object_mut().expect("an object").remove("trace_id");
        problem
    }

    /// Sends a message and waits for the end of its run.
    pub async fn ask(&self, thread: &str, text: &str) -> Value {
        let path = format!("/api/v1/threads/{thread}/messages");
        let request = self.request(Method::POST, &path).header("accept", "application/json");
        let response = request.json(&json!({ "content": text })).send().await.expect("an answer");
        let (status, body) = (response.status(), response.text().await.expect("a body"));
        assert_eq!(status, 200, "{body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// Sends a message and does not wait. Returns the id of its run.
    pub async fn begin(&self, thread: &str, text: &str) -> String {
        let path = format!("/api/v1/threads/{thread}/messages");
        drop(self.post(&path, &json!({ "content": text })).await);
        let runs = self.see(&format!("/api/v1/runs?thread_id={thread}&limit=1")).await;
        runs["data"][0]["run_id"].as_str().expect("a run").to_owned()
    }

    /// Waits until a run stands like this.
    pub async fn until(&self, run: &str, status: RunStatus) -> Value {
        RunId::parse(run).expect("a run id");
        let look = async {
            loop {
                let run = self.see(&format!("/api/v1/runs/{run}")).await;
                if run["status"] == status.word() {
                    return run;
                }
                tokio::time::sleep(std::time::Duration::from_millis(10)).await;
            }
        };
        tokio::time::timeout(LONG, look).await.expect("it comes to that")
    }

    /// What the audit trail says about an action of this tenant, as actor and decision.
    pub async fn trail(&self, tenant: &str, action: &str) -> Vec<(String, String)> {
        let tenant = baton_core::TenantId::parse(tenant).expect("a tenant");
        let query = baton_core::store::AuditQuery { action: Some(action.to_owned()), ..Default::default() };
        let page = baton_core::store::PageRequest::default();
        let found = self.site.app.store().tenant(&tenant).audit(query, page).await.expect("a trail");
        found.data.into_iter().map(|one| (one.entry.actor, one.entry.decision)).collect()
    }
}
