//! What is sent.

use baton_core::message::{Image, ImageSource};
use baton_core::model::ToolChoice;
use baton_core::{ChatMessage, Reply, TraceParent};
use baton_models::{ModelHttpClient, WireFormat, connect};
use serde_json::Value;

use crate::server::{End, Play, Server};
use crate::talk::Talk;
use crate::{KEY, collect, endpoint, provider};

/// The request line and the body of one call.
async fn sent(name: &str, talk: &Talk) -> (String, Value) {
    let server = Server::start([Play::stream("").ending(End::Close)]).await;
    collect(talk.stream(&*provider(name, &server))).await;
    let seen = server.seen().remove(0);
    (seen.head, serde_json::from_slice(&seen.body).unwrap())
}

#[tokio::test]
async fn openai_compatible() {
    let (head, body) = sent("openai", &Talk::full("llama-4", "")).await;
    assert!(head.starts_with("POST /chat/completions HTTP/1.1"), "{head}");
    assert!(head.contains(&format!("authorization: Bearer {KEY}")), "{head}");
    insta::assert_json_snapshot!(body);
}

#[tokio::test]
async fn openai_reasoning_model() {
    let (_, body) = sent("openai", &Talk::full("gpt-5-mini", "")).await;
    let text = body.to_string();
    assert!(text.contains("\"max_completion_tokens\":4000"));
    assert!(!text.contains("temperature") && !text.contains("\"max_tokens\""), "{text}");
}

#[tokio::test]
async fn mistral_gets_ids_and_fields_it_knows() {
    let (_, body) = sent("mistral", &Talk::full("mistral-large-latest", "")).await;
    assert_eq!(body.get("stream_options"), None);
    let id = body["messages"][2]["tool_calls"][0]["id"].as_str().unwrap();
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    assert_eq!(body["messages"][3]["tool_call_id"], id);
}

#[tokio::test]
async fn deepseek_gets_its_reasoning_back_while_it_works() {
    let mut talk = Talk::full("deepseek-chat", "");
    let (_, body) = sent("deepseek", &talk).await;
    assert_eq!(body["messages"][2].get("reasoning_content"), None, "that turn is over");
    talk.messages.pop();
    let (_, body) = sent("deepseek", &talk).await;
    assert_eq!(body["messages"][2]["reasoning_content"], "unsignedTwo things.foreign");
    assert_eq!(body.get("response_format"), None);
    assert!(body["messages"][0]["content"].as_str().unwrap().contains("JSON Schema"));
}

#[tokio::test]
async fn anthropic_with_a_budget() {
    let (head, body) =
        sent("anthropic", &Talk::full("claude-sonnet-4", "anthropic/claude-sonnet-4\nEqQB")).await;
    assert!(head.starts_with("POST /v1/messages HTTP/1.1"), "{head}");
    assert!(
        head.contains(&format!("x-api-key: {KEY}")) && head.contains("anthropic-version: 2023-06-01"),
        "{head}"
    );
    insta::assert_json_snapshot!(body);
}

#[tokio::test]
async fn anthropic_adaptive() {
    let talk = Talk::full("claude-sonnet-5-5", "anthropic-redacted/claude-sonnet-5-5\nEmwK");
    let (_, body) = sent("anthropic", &talk).await;
    insta::assert_json_snapshot!(body);
}

/// Where a request to Anthropic has cache points.
fn cache_points(body: &Value) -> Vec<String> {
    fn walk(value: &Value, path: &str, found: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(point) = fields.get("cache_control") {
                    assert_eq!(point, &serde_json::json!({"type": "ephemeral"}));
                    found.push(path.to_owned());
                }
                fields.iter().for_each(|(key, value)| walk(value, &format!("{path}/{key}"), found));
            }
            Value::Array(items) => {
                (0..).zip(items).for_each(|(at, item): (u32, _)| walk(item, &format!("{path}/{at}"), found));
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    walk(body, "", &mut found);
    found.sort();
    found
}

#[tokio::test]
async fn anthropic_keeps_tools_system_and_conversation() {
    let mut talk = Talk { system: "Be brief.", model: "claude-sonnet-4-5", ..Talk::hello() };
    let (_, body) = sent("anthropic", &talk).await;
    assert_eq!(cache_points(&body), ["/messages/0/content/0", "/system/0", "/tools/1"]);
    talk.messages.extend(Talk::full("claude-sonnet-4-5", "").messages.split_off(2));
    talk.messages.push(ChatMessage::Assistant(Reply { text: "So.".into(), ..Reply::default() }));
    talk.messages.push(ChatMessage::user("thanks"));
    let (_, body) = sent("anthropic", &talk).await;
    assert_eq!(
        cache_points(&body),
        ["/messages/2/content/2", "/messages/4/content/0", "/system/0", "/tools/1"],
        "the newest message and the person's before it"
    );
    let (_, body) = sent("anthropic", &Talk { system: "", tools: Vec::new(), ..talk }).await;
    assert_eq!(cache_points(&body), ["/messages/2/content/2", "/messages/4/content/0"]);
}

/// Providers reuse what they have computed for a prefix of a request that they have seen before.
#[tokio::test]
async fn the_next_turn_repeats_what_the_last_one_sent() {
    let providers = [
        ("openai", "llama-4", "messages"),
        ("gemini", "gemini-2.5-flash", "contents"),
        ("anthropic", "claude-sonnet-4-5", "messages"),
    ];
    for (name, model, list) in providers {
        let mut talk = Talk::full(model, "");
        // How hard a model thinks may change within a turn, and other settings with it.
        talk.sampling.effort = None;
        let (_, first) = sent(name, &talk).await;
        talk.messages.push(ChatMessage::Assistant(Reply { text: "So.".into(), ..Reply::default() }));
        talk.messages.push(ChatMessage::user("thanks"));
        let (_, second) = sent(name, &talk).await;
        // Cache points move along and are no part of what is kept.
        let text =
            |value: &Value| value.to_string().replace(",\"cache_control\":{\"type\":\"ephemeral\"}", "");
        let before = text(&first[list]);
        let after = text(&second[list]);
        assert!(after.starts_with(before.trim_end_matches(']')), "{name}: {before} {after}");
        for (key, value) in first.as_object().unwrap().iter().filter(|(key, _)| *key != list) {
            assert_eq!(text(value), text(&second[key]), "{name} {key}");
        }
    }
}

#[tokio::test]
async fn gemini_second_generation() {
    let (head, body) = sent("gemini", &Talk::full("gemini-2.5-flash", "gemini/gemini-2.5-flash\nCiQB")).await;
    assert!(
        head.starts_with("POST /v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse HTTP/1.1"),
        "{head}"
    );
    assert!(head.contains(&format!("x-goog-api-key: {KEY}")), "{head}");
    insta::assert_json_snapshot!(body);
}

#[tokio::test]
async fn gemini_third_generation() {
    let (_, body) = sent("gemini", &Talk::full("gemini-3.8-flash", "")).await;
    let calls = &body["contents"][1]["parts"];
    assert_eq!(calls[1]["thoughtSignature"], "skip_thought_signature_validator");
    assert_eq!(calls[2].get("thoughtSignature"), None);
    assert_eq!(body["generationConfig"]["responseMimeType"], "application/json");
    assert_eq!(body["generationConfig"]["thinkingConfig"]["thinkingLevel"], "medium");
}

#[tokio::test]
async fn ollama() {
    let (head, body) = sent("ollama", &Talk::full("qwen3", "")).await;
    assert!(head.starts_with("POST /api/chat HTTP/1.1"), "{head}");
    insta::assert_json_snapshot!(body);
}

#[tokio::test]
async fn tool_choices() {
    let choices = [ToolChoice::None, ToolChoice::Required, ToolChoice::Auto];
    let mut lines = Vec::new();
    for (name, model) in [
        ("openai", "m"),
        ("anthropic", "claude-haiku-4-5"),
        ("anthropic", "claude-opus-5-5"),
        ("gemini", "m"),
    ] {
        for tool_choice in choices {
            let (_, body) = sent(name, &Talk { model, tool_choice, ..Talk::hello() }).await;
            let choice = body.get("tool_choice").or(body.get("toolConfig")).unwrap_or(&Value::Null);
            lines.push(format!("{name} {model} {tool_choice:?}: {choice}"));
        }
    }
    insta::assert_snapshot!(lines.join("\n"));
}

#[tokio::test]
async fn addresses() {
    let plays = || Play::stream("").ending(End::Close);
    for (base, path) in [
        ("/v1", "POST /v1/chat/completions "),
        ("/v1/", "POST /v1/chat/completions "),
        ("/v1/chat/completions", "POST /v1/chat/completions "),
        (
            "/openai/deployments/gpt-5?api-version=2024-10-21",
            "POST /openai/deployments/gpt-5/chat/completions?api-version=2024-10-21 ",
        ),
    ] {
        let server = Server::start([plays()]).await;
        let endpoint = endpoint("work", Some(&format!("{}{base}", server.url)));
        let model = connect(WireFormat::OpenAi, endpoint, ModelHttpClient::default());
        collect(Talk::hello().stream(&*model)).await;
        let head = server.seen().remove(0).head;
        assert!(head.starts_with(path), "{head}");
        let is_azure = base.contains("deployments");
        assert_eq!(head.contains(&format!("api-key: {KEY}")), is_azure, "{head}");
        assert_eq!(head.contains("authorization:"), !is_azure, "{head}");
    }
    let server = Server::start([plays()]).await;
    let model = connect(
        WireFormat::Anthropic,
        endpoint("anthropic", Some(&format!("{}/v1", server.url))),
        ModelHttpClient::default(),
    );
    collect(Talk::hello().stream(&*model)).await;
    assert!(server.seen()[0].head.starts_with("POST /v1/messages "));
}

#[tokio::test]
async fn a_conversation_that_lost_its_beginning() {
    let mut talk = Talk::hello();
    talk.messages.insert(0, ChatMessage::Assistant(Reply { text: "Hi".into(), ..Default::default() }));
    let (_, body) = sent("anthropic", &talk).await;
    assert_eq!(body["messages"][0]["role"], "user");
    let (_, body) = sent("gemini", &talk).await;
    assert_eq!(body["contents"][0]["role"], "user");
}

/// Whoever answers can go on with the trace of the call, and is told nothing where there is none.
#[tokio::test]
async fn a_call_is_part_of_its_trace() {
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let trace = TraceParent::parse(parent).unwrap().with_state("vendor=1");
    for name in ["openai", "anthropic", "gemini", "ollama"] {
        let (head, _) = sent(name, &Talk { trace: Some(trace.clone()), ..Talk::hello() }).await;
        assert!(head.contains(&format!("traceparent: {parent}")), "{name}: {head}");
        assert!(head.contains("tracestate: vendor=1"), "{name}: {head}");
        let (head, _) = sent(name, &Talk::hello()).await;
        assert!(!head.contains("trace"), "{name}: {head}");
    }
}

/// A conversation in which a tool returned an image.
fn with_image(model: &'static str, images: bool) -> Talk {
    let mut talk = Talk::full(model, "");
    let source = ImageSource::Base64("aGk=".into());
    let image = Image { source, media_type: "image/png".into(), name: Some("a.png".into()) };
    let mut results = talk.messages.iter_mut().filter_map(|message| match message {
        ChatMessage::Tool(result) if result.call_id.as_str() != "nobody" => Some(result),
        _ => None,
    });
    results.next().unwrap().images.push(image);
    talk.supports.images = images;
    talk
}

/// D8: images of tool results are sent in the form of each provider, and only to models that accept them.
#[tokio::test]
async fn d8_images_of_tool_results_are_sent_to_models_that_accept_them() {
    for (name, model, expected) in [
        ("openai", "llama-4", r#"{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}"#),
        (
            "anthropic",
            "claude-sonnet-4",
            r#"{"type":"image","source":{"type":"base64","media_type":"image/png","data":"aGk="}}"#,
        ),
        ("gemini", "gemini-2.5-flash", r#"{"inlineData":{"mimeType":"image/png","data":"aGk="}}"#),
        ("ollama", "llava", r#""images":["aGk="]"#),
    ] {
        let count = |body: &Value| {
            let text = body.to_string();
            let plain = serde_json::from_str::<Value>(expected)
                .map_or(expected.to_owned(), |value| value.to_string());
            text.matches(&plain).count()
        };
        let (_, with) = sent(name, &with_image(model, true)).await;
        let (_, without) = sent(name, &with_image(model, false)).await;
        assert_eq!(count(&with), count(&without) + 1, "{name}: {with}");
    }
}

/// D8: results stay together; the images follow them in a message of their own where results are text.
#[tokio::test]
async fn d8_images_follow_all_results_of_a_turn() {
    let (_, body) = sent("openai", &with_image("llama-4", true)).await;
    let roles: Vec<&str> =
        body["messages"].as_array().unwrap().iter().map(|m| m["role"].as_str().unwrap()).collect();
    let at = roles.iter().rposition(|role| *role == "tool").unwrap();
    assert_eq!(roles[at + 1], "user", "{roles:?}");
    assert_eq!(body["messages"][at + 1]["content"][0]["text"], "The images in the tool results above:");
    let (_, body) = sent("anthropic", &with_image("claude-sonnet-4", true)).await;
    let results = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|message| message["content"].as_array().unwrap());
    let with_blocks = results.filter(|block| block["type"] == "tool_result" && block["content"].is_array());
    assert_eq!(with_blocks.count(), 1);
}
