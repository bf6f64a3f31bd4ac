use baton_core::HumanDuration;
use baton_core::tool::{Effect, Risk};
use proptest::prelude::*;
use serde_json::json;

use super::holdback::HoldBack;
use super::*;

fn tool(name: &str) -> ToolSpec {
    let properties =
        json!({"query": {"type": "string"}, "limit": {"type": "integer"}, "deep": {"type": "boolean"}});
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: json!({"type": "object", "properties": properties}),
        effect: Effect::ReadOnly,
        risk: Risk::Low,
        timeout: HumanDuration::from_secs(1),
    }
}

fn with_tools<T>(check: impl FnOnce(&[&ToolSpec]) -> T) -> T {
    let tools = ["search_docs", "call_agent", "mcp:files/read"].map(tool);
    check(&tools.each_ref())
}

/// The calls of a reply as `name {arguments}`, one line each; empty if it is a text.
fn read(reply: &str) -> String {
    let found = with_tools(|tools| recognize(reply, tools));
    let lines = found.into_iter().flat_map(|found| found.calls).map(|call| {
        let TextCall { name, arguments } = call;
        format!("{name} {}", Value::Object(arguments))
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn every_notation_is_recognized() {
    let expected = r#"search_docs {"query":"rate limit"}"#;
    for reply in [
        r#"{"name": "search_docs", "arguments": {"query": "rate limit"}}"#,
        r#"{"arguments": {"query": "rate limit"}, "name": "search_docs"}"#,
        r#"  {"tool": "search_docs", "parameters": {"query": "rate limit"}}  "#,
        r#"{"function": "search_docs", "args": {"query": "rate limit"}}"#,
        r#"{"name": "search_docs", "arguments": "{\"query\": \"rate limit\"}"}"#,
        r#"{"type": "function", "id": "1", "function": {"name": "search_docs", "arguments": {"query": "rate limit"}}}"#,
        r#"{"tool_calls": [{"name": "search_docs", "arguments": {"query": "rate limit"}}]}"#,
        r#"[{"name": "Search-Docs", "arguments": {"query": "rate limit"}}]"#,
        "```json\n{\"name\": \"search_docs\", \"arguments\": {\"query\": \"rate limit\"}}\n```",
        "```\n{\"name\": \"search_docs\", \"arguments\": {\"query\": \"rate limit\"}}\n```\nLet me look.",
        "```json\n{\"name\": \"search_docs\", \"arguments\": {\"query\": \"rate limit\"}}",
        "I will look it up.\n\n```json\n{\"name\": \"search_docs\", \"arguments\": {\"query\": \"rate limit\"}}\n```\n",
        "<tool_call>\n{\"name\": \"search_docs\", \"arguments\": {\"query\": \"rate limit\"}}\n</tool_call>",
        "<tool_call>{\"name\": \"search_docs\", \"arguments\": {\"query\": \"rate limit\"}}",
        "<tool_call>{\"name\": \"search_docs\", \"arguments\": {\"query\": \"rate limit\"}}</tool_call>\nThe documents say that …",
        "<function=search_docs>{\"query\": \"rate limit\"}</function>",
        "<tool_call>\n<function=search_docs>\n<parameter=query>\nrate limit\n</parameter>\n</function>\n</tool_call>",
        r#"search_docs({"query": "rate limit"})"#,
        r#"search_docs(query="rate limit")"#,
        "search_docs( query = 'rate limit' );",
        "```python\nsearch_docs(query=\"rate limit\")\n```",
    ] {
        assert_eq!(read(reply), expected, "{reply}");
    }
}

#[test]
fn values_have_the_types_of_the_schema() {
    let expected = r#"search_docs {"query":"a, b","limit":3,"deep":true}"#;
    assert_eq!(read("search_docs(query='a, b', limit=3, deep=True)"), expected);
    let tags = "<function=search_docs><parameter=query>a, b</parameter><parameter=limit>3</parameter>\
                <parameter=deep>True</parameter></function>";
    assert_eq!(read(tags), expected);
    assert_eq!(read("mcp_files_read({})"), "mcp:files/read {}", "providers replace characters of names");
}

#[test]
fn several_calls_are_read_together() {
    let call = r#"{"name": "search_docs", "arguments": {"query": "a"}}"#;
    let twice = "search_docs {\"query\":\"a\"}\nsearch_docs {\"query\":\"a\"}";
    for reply in [
        format!("[{call}, {call}]"),
        format!("{call}\n{call}"),
        format!("<tool_call>{call}</tool_call>\n<tool_call>{call}</tool_call>"),
    ] {
        assert_eq!(read(&reply), twice, "{reply}");
    }
    assert_eq!(read(&[call; MAX_CALLS + 1].join("\n")), "", "too many");
}

/// What a document quotes, or what a reply explains, is not executed.
#[test]
fn text_stays_text() {
    let call = r#"{"name": "search_docs", "arguments": {"query": "a"}}"#;
    for reply in [
        "The rate limit is 60 requests per minute.".to_owned(),
        format!("The page says {call} and more."),
        format!("The page says:\n{call}"),
        format!("The page says:\n```\n{call}\n```"),
        format!("The page says:\n```json\n{call}\n```\nThat is all."),
        format!("First:\n```json\n{call}\n```\nSecond:\n```json\n{call}\n```"),
        format!("```text\n{call}\n```"),
        format!("> {call}"),
        format!("[]{call}"),
        format!("[[{call}]]"),
        format!("<document>{call}</document>"),
        format!("A tag: <tool_call>{call}</tool_call>"),
        format!("{call}\n{}", "word ".repeat(100)),
        r#"{"name": "delete_all", "arguments": {}}"#.to_owned(),
        format!("[{call}, {{\"name\": \"delete_all\", \"arguments\": {{}}}}]"),
        r#"{"name": "search_docs", "description": "Searches.", "parameters": {"query": "a"}}"#.to_owned(),
        r#"{"name": "search_docs"}"#.to_owned(),
        r#"{"name": "search_docs", "arguments": [1]}"#.to_owned(),
        r#"{"query": "a"}"#.to_owned(),
        r#"search_docs(query="a") returns the passages."#.to_owned(),
        r#"Call search_docs(query="a")"#.to_owned(),
        "search_docs(a)".to_owned(),
        "search_docs".to_owned(),
        "[a link](https://example.com)".to_owned(),
        String::new(),
    ] {
        assert_eq!(read(&reply), "", "{reply}");
    }
}

#[test]
fn prose_before_a_block_is_kept() {
    let reply = "I look.\n```json\n{\"name\": \"search_docs\", \"arguments\": {}}\n```";
    let found = with_tools(|tools| recognize(reply, tools)).unwrap();
    assert_eq!((&reply[..found.text_before], found.has_prose), ("I look.\n", true));
    let alone = r#"{"name": "search_docs", "arguments": {}}"#;
    let found = with_tools(|tools| recognize(alone, tools)).unwrap();
    assert_eq!((found.text_before, found.has_prose), (0, false));
}

/// What is published after each character, and in the end.
fn published(reply: &str) -> Vec<usize> {
    let mut hold_back = with_tools(HoldBack::new);
    let ends = reply.char_indices().map(|(at, c)| at + c.len_utf8());
    ends.map(|end| hold_back.publishable(&reply[..end])).collect()
}

#[test]
fn prose_is_published_at_once() {
    for reply in [
        "The limit is 60.\nIt can be raised.",
        "A list:\n- one\n- two",
        "*Note*",
        "[a link](https://example.com)",
        "<b>bold</b>",
        "{x} is a set",
        "Use `search_docs`.",
    ] {
        let lengths: Vec<usize> = published(reply);
        let late = lengths.iter().enumerate().filter(|(at, length)| **length < at + 1).count();
        assert!(late <= 3 && lengths.last() == Some(&reply.len()), "{reply}: {lengths:?}");
    }
}

#[test]
fn other_code_and_json_are_published_as_soon_as_they_are_known() {
    for (reply, decided) in [
        ("```rust\nfn main() {}\n```\nDone.", 4),
        ("```json\n{\"limit\": 60}\n```\nDone.", 12),
        ("{\"name\": \"my-package\", \"version\": 1}", 11),
        ("Look:\n```python\nprint(1)\n```\nDone.", 11),
        ("search the documents", 7),
    ] {
        let lengths = published(reply);
        let first =
            lengths.iter().enumerate().position(|(at, length)| *length == at + 1 && at + 1 >= decided);
        assert!(first.is_some_and(|at| at <= decided + 1), "{reply}: {lengths:?}");
        assert_eq!(lengths.last(), Some(&reply.len()), "{reply}");
    }
}

#[test]
fn calls_are_not_published() {
    let call = r#"{"name": "search_docs", "arguments": {"query": "a"}}"#;
    for (reply, text) in [
        (call.to_owned(), ""),
        (format!("```json\n{call}\n```"), ""),
        (format!("<tool_call>{call}</tool_call>"), ""),
        ("search_docs(query=\"a\")".to_owned(), ""),
        (format!("I look.\n```json\n{call}\n```"), "I look.\n"),
    ] {
        let found = with_tools(|tools| recognize(&reply, tools)).unwrap();
        assert_eq!(&reply[..found.text_before], text);
        assert!(published(&reply).iter().all(|length| *length <= found.text_before), "{reply}");
    }
}

/// Quadratic time would not end within the test's time limit.
#[test]
fn long_replies_take_linear_time() {
    for piece in [
        "{",
        "[",
        "<tool_call>",
        "<function=search_docs>",
        "```json\n",
        "search_docs(",
        "\n```",
        "{\"name\":",
        " ",
        "a=1,",
    ] {
        let reply = piece.repeat(1_000_000 / piece.len());
        assert_eq!(read(&reply), "");
        assert_eq!(read(&reply[..MAX_BYTES]), "");
        let mut hold_back = with_tools(HoldBack::new);
        for end in (0..reply.len()).step_by(7) {
            hold_back.publishable(&reply[..end]);
        }
    }
}

/// Pieces from which replies are made up: the notations, parts of them, and prose.
fn piece() -> impl Strategy<Value = String> {
    let known = [
        "{\"name\": \"search_docs\", \"arguments\": {\"query\": \"a\"}}",
        "{\"name\": \"search_docs\"",
        "```json\n",
        "```\n",
        "\n```",
        "<tool_call>",
        "</tool_call>",
        "<function=search_docs>",
        "<parameter=query>",
        "</function>",
        "search_docs(",
        "query=",
        "'a\\",
        ")",
        "[",
        "]",
        "\n",
        "Some words. ",
        "ä€🎷",
    ];
    prop_oneof![4 => proptest::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,12}"]
}

proptest! {
    /// Nothing panics, every call names an offered tool, and what is published is never part of a call.
    #[test]
    fn hostile_replies_are_safe(pieces in proptest::collection::vec(piece(), 0..12)) {
        let reply = pieces.concat();
        let found = with_tools(|tools| recognize(&reply, tools));
        let lengths = published(&reply);
        prop_assert!(lengths.is_sorted(), "{reply:?}: {lengths:?}");
        if let Some(TextCalls { calls, text_before, .. }) = found {
            prop_assert!(!calls.is_empty() && calls.len() <= MAX_CALLS);
            prop_assert!(calls.iter().all(|call| ["search_docs", "call_agent", "mcp:files/read"].contains(&call.name.as_str())));
            prop_assert!(lengths.iter().all(|length| *length <= text_before), "{reply:?}: {lengths:?}");
        }
    }
}
