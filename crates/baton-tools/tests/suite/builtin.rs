use std::collections::BTreeSet;
use std::path::Path;

use baton_core::agent::BUILT_IN_TOOLS;
use baton_core::tool::{Effect, Risk};
use baton_tools::process::ProcessSettings;
use baton_tools::python::PythonSettings;
use baton_tools::web_search::{SearchEndpoint, WebSearchSettings};
use baton_tools::wiki::WikiSettings;
use baton_tools::{ToolSettings, built_in};
use serde_json::{Value, json};
use url::Url;

use crate::{call, memory};

async fn all() -> Vec<std::sync::Arc<dyn baton_core::Tool>> {
    let nowhere = Url::parse("http://127.0.0.1:1/api.php").unwrap();
    let settings = ToolSettings {
        shell: Some(ProcessSettings::default()),
        python: Some(PythonSettings::default()),
        web_search: Some(WebSearchSettings { endpoint: SearchEndpoint::searxng(&nowhere), key: None }),
        wiki: Some(WikiSettings { api: nowhere }),
        ..ToolSettings::default()
    };
    built_in(&settings, &memory().await, None)
}

#[tokio::test]
async fn the_names_are_those_that_agents_may_list() {
    let names: Vec<String> = all().await.iter().map(|tool| tool.spec().name.clone()).collect();
    assert_eq!(names, BUILT_IN_TOOLS);
    let default: BTreeSet<String> = built_in(&ToolSettings::default(), &memory().await, None)
        .iter()
        .map(|tool| tool.spec().name.clone())
        .collect();
    let configured = ["python", "shell", "web_search", "wiki"];
    let always: BTreeSet<String> = BUILT_IN_TOOLS
        .iter()
        .filter(|name| !configured.contains(name))
        .map(|name| (*name).to_owned())
        .collect();
    assert_eq!(default, always);
}

#[tokio::test]
async fn every_parameter_is_described() {
    for tool in all().await {
        let spec = tool.spec();
        assert!(spec.description.len() > 40, "{}", spec.name);
        assert_eq!(spec.parameters["type"], "object", "{}", spec.name);
        assert_eq!(spec.parameters["additionalProperties"], false, "{}", spec.name);
        let properties = spec.parameters["properties"].as_object().unwrap();
        for (name, property) in properties {
            assert!(property["description"].is_string(), "{}: {name}", spec.name);
        }
        for required in spec.parameters["required"].as_array().unwrap() {
            assert!(properties.contains_key(required.as_str().unwrap()), "{}: {required}", spec.name);
        }
    }
}

#[tokio::test]
async fn effects_and_risks() {
    let (writing, repeatable) =
        (["python", "shell", "write_file"], ["save_agent", "save_skill", "write_agent", "write_skill"]);
    for tool in all().await {
        let spec = tool.spec();
        let expected = match spec.name.as_str() {
            name if writing.contains(&name) => Effect::Writes,
            name if repeatable.contains(&name) => Effect::Repeatable,
            _ => Effect::ReadOnly,
        };
        assert_eq!(spec.effect, expected, "{}", spec.name);
        let is_risky = ["python", "shell"].contains(&spec.name.as_str());
        assert_eq!(spec.risk == Risk::High, is_risky, "{}", spec.name);
    }
}

#[tokio::test]
async fn wrong_arguments_are_an_answer() {
    for tool in all().await.iter().filter(|tool| tool.spec().name != "ask_user") {
        for wrong in [
            Value::Null,
            json!([]),
            json!({"path": 1, "query": {}, "url": [], "command": 3, "name": false, "handle": 0, "code": 1}),
        ] {
            let error = call(&**tool, wrong, Path::new("/nonexistent")).await.unwrap_err();
            assert_eq!(error.code(), "invalid_arguments", "{}", tool.spec().name);
        }
    }
}

#[tokio::test]
async fn nobody_can_be_asked_here() {
    let tool = baton_tools::ask_user::AskUser::default();
    let error = call(&tool, json!({"question": "Which one?"}), Path::new("/")).await.unwrap_err();
    assert_eq!(error.code(), "not_permitted");
    assert!(!error.was_executed());
}

/// The engine fences their output.
#[tokio::test]
async fn tools_that_read_foreign_text_are_untrusted() {
    let tools = all().await;
    let untrusted = tools.iter().filter(|tool| tool.is_untrusted());
    let mut names: Vec<&str> = untrusted.map(|tool| tool.spec().name.as_str()).collect();
    names.sort_unstable();
    let expected = [
        "list_files",
        "python",
        "read_file",
        "read_output",
        "search_docs",
        "semantic_search",
        "shell",
        "web_fetch",
        "web_search",
        "wiki",
    ];
    assert_eq!(names, expected);
}
