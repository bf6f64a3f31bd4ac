//! What servers on this machine say about themselves and their models.

use std::num::NonZeroU64;

use baton_core::model::ModelSupport;
use baton_models::local::{self, ModelServer, ServerKind};
use baton_models::settings::{ModelSettings, TimeoutSettings};
use baton_models::{Endpoint, ModelHttpClient, ProviderSettings, WireFormat, connect};
use serde_json::{Value, json};

use crate::server::{End, Play, Server};
use crate::talk::Talk;
use crate::{collect, endpoint, provider};

fn answer(body: &Value) -> Play {
    Play::status("200 OK", "content-type: application/json\r\n", body.to_string())
}

fn missing() -> Play {
    Play::status("404 Not Found", "content-type: application/json\r\n", r#"{"error":"no such path"}"#)
}

/// The request lines that a server has seen.
fn lines(server: &Server) -> Vec<String> {
    let line = |head: &str| head.lines().next().unwrap_or_default().trim_end_matches(" HTTP/1.1").to_owned();
    server.seen().iter().map(|seen| line(&seen.head)).collect()
}

async fn learned(name: &str, plays: Vec<Play>) -> (Option<u64>, bool, Vec<String>) {
    let server = Server::start(plays).await;
    let base = if name == "ollama" { server.url.clone() } else { format!("{}/v1", server.url) };
    let model = connect(WireFormat::of(name), endpoint(name, Some(&base)), ModelHttpClient::default());
    assert_eq!(model.facts("qwen").context_window, None);
    model.learn("qwen").await;
    model.learn("qwen").await;
    let facts = model.facts("qwen");
    (facts.context_window, facts.supports.tools, lines(&server))
}

#[tokio::test]
async fn context_sizes_are_learned_once() {
    let vllm = answer(&json!({"data": [{"id": "qwen", "owned_by": "vllm", "max_model_len": 32768}]}));
    let expected = (Some(32768), true, vec!["GET /v1/models".to_owned()]);
    assert_eq!(learned("vllm", vec![vllm]).await, expected);

    let trained = json!({"data": [{"id": "qwen", "owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}}]});
    let props = json!({"default_generation_settings": {"n_ctx": 4096}});
    let (context, _, asked) = learned("llamacpp", vec![answer(&trained), answer(&props)]).await;
    assert_eq!(
        (context, asked.as_slice()),
        (Some(4096), ["GET /v1/models", "GET /props"].map(String::from).as_slice())
    );

    let list = json!({"data": [{"id": "qwen", "owned_by": "organization_owner"}]});
    let own = json!({"data": [{"id": "qwen", "max_context_length": 32768, "loaded_context_length": 8192}]});
    let (context, _, asked) = learned("lmstudio", vec![answer(&list), missing(), answer(&own)]).await;
    assert_eq!((context, asked.last().unwrap().as_str()), (Some(8192), "GET /api/v0/models"));

    let show = json!({"model_info": {"qwen2.context_length": 4096}, "capabilities": ["completion"]});
    let expected = (Some(4096), false, vec!["POST /api/show".to_owned()]);
    assert_eq!(learned("ollama", vec![answer(&show)]).await, expected);
}

/// Servers that know nothing of this, and one that never answers.
#[tokio::test]
async fn a_server_that_does_not_tell_changes_nothing() {
    assert_eq!(learned("odd", vec![missing()]).await.0, None);
    let html = Play::status("200 OK", "content-type: text/html\r\n", "<h1>Hello</h1>");
    assert_eq!(learned("odd", vec![html]).await.0, None);
    assert_eq!(learned("odd", vec![Play::stream("").ending(End::Hang)]).await.0, None);
}

#[tokio::test]
async fn configured_facts_win_and_are_not_asked_for() {
    let server = Server::start([]).await;
    let model = ModelSettings {
        context_window: NonZeroU64::new(1000),
        tools: Some(false),
        ..ModelSettings::default()
    };
    let timeouts = TimeoutSettings { factor: std::num::NonZeroU32::new(7), ..TimeoutSettings::default() };
    let settings = ProviderSettings { timeouts, models: [("qwen".to_owned(), model)].into() };
    let configured = Endpoint { settings, ..endpoint("local", Some(&server.url)) };
    let model = connect(WireFormat::OpenAi, configured, ModelHttpClient::default());
    model.learn("qwen").await;
    let facts = model.facts("qwen");
    assert_eq!(
        (facts.context_window, facts.supports.tools, facts.timeouts.factor.get()),
        (Some(1000), false, 7)
    );
    assert_eq!(model.facts("other").timeouts.factor.get(), 7, "for all of its models");
    assert_eq!(server.connections(), 0);
}

/// Ollama drops the beginning of what does not fit, so the request sets the size of the context.
#[tokio::test]
async fn ollama_loads_the_model_with_the_context_that_baton_assumes() {
    let show = json!({"model_info": {"qwen2.context_length": 32768}, "parameters": "num_ctx 4096"});
    let server = Server::start([answer(&show), Play::stream("").ending(End::Close)]).await;
    let model = provider("ollama", &server);
    model.learn("test-model").await;
    collect(Talk::hello().stream(&*model)).await;
    let body: Value = serde_json::from_slice(&server.seen()[1].body).unwrap();
    assert_eq!(body["options"], json!({"num_ctx": 4096}));
}

async fn sent(name: &str, talk: &Talk) -> Value {
    let server = Server::start([Play::stream("").ending(End::Close)]).await;
    collect(talk.stream(&*provider(name, &server))).await;
    serde_json::from_slice(&server.seen()[0].body).unwrap()
}

#[tokio::test]
async fn requests_leave_out_what_a_model_does_not_support() {
    let supports =
        ModelSupport { structured_output: false, parallel_calls: false, ..ModelSupport::default() };
    let talk = |model| Talk { supports, ..Talk::full(model, "") };
    let body = sent("local", &talk("qwen")).await;
    assert_eq!((&body["parallel_tool_calls"], body.get("response_format")), (&json!(false), None));
    assert!(body["messages"][0]["content"].as_str().unwrap().contains("JSON Schema"));
    let body = sent("anthropic", &talk("claude-sonnet-5-5")).await;
    assert_eq!(body["tool_choice"], json!({"type": "auto", "disable_parallel_tool_use": true}));
    assert_eq!(body.pointer("/output_config/format"), None);
    let body = sent("gemini", &Talk { tools: Vec::new(), ..talk("gemini-3-pro") }).await;
    assert_eq!(body.pointer("/generationConfig/responseJsonSchema"), None, "{body}");
    let body = sent("ollama", &Talk { tools: Vec::new(), ..talk("qwen") }).await;
    assert_eq!(body.get("format"), None);
}

#[tokio::test]
async fn servers_are_told_apart() {
    let list = |owner: &str| json!({"data": [{"id": "qwen", "owned_by": owner}, {"id": "other"}]});
    let cases = [
        (vec![answer(&list("llamacpp"))], ServerKind::LlamaCpp),
        (vec![answer(&list("vllm"))], ServerKind::Vllm),
        (vec![answer(&list("library")), answer(&json!({"version": "0.12"}))], ServerKind::Ollama),
        (
            vec![
                answer(&list("organization_owner")),
                answer(&json!({"error": "Unexpected endpoint"})),
                answer(&json!({"data": []})),
            ],
            ServerKind::LmStudio,
        ),
        (vec![answer(&list("me")), missing(), missing()], ServerKind::Compatible),
    ];
    for (plays, kind) in cases {
        for path in ["", "/", "/v1", "/v1/"] {
            let server = Server::start(plays.clone()).await;
            let found = local::detect(&format!("{}{path}", server.url), &ModelHttpClient::default()).await;
            let base_url =
                if kind == ServerKind::Ollama { server.url.clone() } else { format!("{}/v1", server.url) };
            let models = vec!["qwen".to_owned(), "other".to_owned()];
            assert_eq!(found.unwrap(), ModelServer { kind, base_url, models });
        }
    }
}

#[tokio::test]
async fn the_first_server_with_a_model_is_found() {
    let gone = Server::start([]).await.url.clone();
    let empty = Server::start([answer(&json!({"data": []})), missing(), missing()]).await;
    let full = Server::start([answer(&json!({"data": [{"id": "qwen", "owned_by": "vllm"}]}))]).await;
    let addresses = [("a", gone.as_str()), ("b", &empty.url), ("c", &full.url)];
    let found = local::find(&addresses, &ModelHttpClient::default()).await.unwrap();
    assert_eq!((found.kind, found.models), (ServerKind::Vllm, vec!["qwen".to_owned()]));
    assert_eq!(local::find(&addresses[..1], &ModelHttpClient::default()).await, None);
}
