//! Who there is, as the API shows it.

use baton_core::ThreadId;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use crate::site::{ASSISTANT, Plan};

const LIST: &str = "/api/v1/agents";
const ONE: &str = "/api/v1/agents/{agent}";
const PROMPT: &str = "/api/v1/agents/{agent}/prompt";

const HIDDEN: &str = "---\ndescription: Works behind the scenes.\nhidden: true\n---\nWork.\n";
const REMOTE: &str = "---\ndescription: A partner.\nkind: remote\nagent_card_url: https://partner.example/t0ken/card.json\nauth: { type: bearer, token: $PARTNER_TOKEN }\n---\n";
const LEAD: &str = "---\ndescription: Leads.\nagents: [research]\nwingspan: wide\n---\nYou help {{ user }} in {{ thread_id }}.\n";

fn ids(listed: &Value) -> Vec<&str> {
    listed["data"].as_array().unwrap().iter().map(|agent| agent["id"].as_str().unwrap()).collect()
}

fn team() -> Plan {
    Plan::new(&Scripted::default())
        .agent("assistant", LEAD)
        .agent("research", HIDDEN)
        .agent("partner", REMOTE)
        .agent("writer", ASSISTANT)
}

#[tokio::test]
async fn agents_are_listed_in_pages_and_hidden_ones_only_on_request() {
    let site = team().start().await;
    let visitor = site.anybody();
    let (_, all) = visitor.see(LIST, LIST).await;
    assert_eq!((ids(&all), &all["next_cursor"]), (vec!["assistant", "partner", "writer"], &Value::Null));
    let (_, first) = visitor.see(LIST, "/api/v1/agents?all=true&limit=3").await;
    assert_eq!(ids(&first), ["assistant", "partner", "research"]);
    let cursor = first["next_cursor"].as_str().unwrap();
    let (_, second) = visitor.see(LIST, &format!("/api/v1/agents?all=true&limit=3&cursor={cursor}")).await;
    assert_eq!((ids(&second), &second["next_cursor"]), (vec!["writer"], &Value::Null));
    for bad in ["cursor=%21", "cursor=QUJD", "limit=0", "limit=201", "all=maybe", "hidden=true"] {
        let (status, problem) = visitor.see(LIST, &format!("{LIST}?{bad}")).await;
        assert_eq!((status, problem["code"].as_str()), (400, Some("invalid_request")), "{bad}");
    }
    site.end().await;
}

#[tokio::test]
async fn agents_in_the_list_name_buttons_tools_and_whom_they_involve() {
    let lead = "---\ndescription: Leads.\ntools: [search_docs, 'read_*']\nagents: [research]\ncollaborations: [writer, research]\n\
                accepts_handoff:\n  triggers: [plan a trip]\nhandoffs:\n  - {label: Write it, agent: writer, prompt: Write this., \
                send: true}\n  - {label: Look it up, agent: research}\n---\nYou lead.\n";
    let plan = Plan::new(&Scripted::default()).agent("assistant", lead);
    let site = plan.agent("research", HIDDEN).agent("writer", ASSISTANT).start().await;
    let (_, all) = site.anybody().see(LIST, LIST).await;
    let [assistant, writer] = all["data"].as_array().unwrap().as_slice() else { panic!("{all}") };
    let buttons = json!([
        { "label": "Write it", "agent": "writer", "prompt": "Write this.", "send": true },
        { "label": "Look it up", "agent": "research", "prompt": "", "send": false },
    ]);
    assert_eq!(assistant["handoffs"], buttons);
    assert_eq!(assistant["tools"], json!(["search_docs", "read_*"]));
    let mut related: Vec<&str> =
        assistant["related"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    related.sort_unstable();
    assert_eq!(related, ["research", "writer"]);
    assert_eq!(assistant["trigger_examples"], json!(["plan a trip"]));
    for empty in ["handoffs", "related", "trigger_examples"] {
        assert_eq!(writer[empty], json!([]), "{empty}");
    }
    let (_, detail) = site.anybody().see(ONE, "/api/v1/agents/assistant").await;
    for (field, value) in assistant.as_object().unwrap() {
        assert_eq!(&detail[field], value, "{field}");
    }
    site.end().await;
}

#[tokio::test]
async fn an_agent_is_shown_with_every_default_and_what_is_worth_knowing_about_its_file() {
    let site = team().start().await;
    let (_, agent) = site.anybody().see(ONE, "/api/v1/agents/assistant").await;
    assert_eq!(agent["definition"]["limits"]["max_turns"], 10);
    assert_eq!(agent["definition"]["agents"], json!(["research"]));
    assert_eq!(agent["file"], "assistant.md");
    let found = &agent["diagnostics"][0];
    assert_eq!((found["rule"].as_str(), found["severity"].as_str()), (Some("unknown-key"), Some("warning")));
    assert_eq!(
        (&found["file"], &found["line"], &found["column"]),
        (&json!("assistant.md"), &json!(4), &json!(1))
    );
    site.end().await;
}

#[tokio::test]
async fn how_others_are_reached_stays_with_the_server() {
    let file = "---\ndescription: Reads.\nmcpServers:\n  files: { command: /opt/t0ken/serve, args: [--as, t0ken], env: { NAME: t0ken } }\n  \
        web: { url: 'https://mcp.example/t0ken', headers: { X-Name: t0ken } }\n---\nRead.\n";
    let site = team().agent("reader", file).start().await;
    for name in ["reader", "partner"] {
        let (_, agent) = site.anybody().see(ONE, &format!("{LIST}/{name}")).await;
        let text = agent.to_string();
        assert!(!text.contains("t0ken") && !text.contains("PARTNER_TOKEN"), "{agent:#}");
    }
    let (_, reader) = site.anybody().see(ONE, "/api/v1/agents/reader").await;
    assert_eq!(reader["definition"]["mcp_servers"]["web"]["http"]["url"], "https://mcp.example");
    let (_, partner) = site.anybody().see(ONE, "/api/v1/agents/partner").await;
    assert_eq!(partner["remote"]["reachable"], false, "{partner:#}");
    assert_eq!(reader.get("remote"), None);
    site.end().await;
}

#[tokio::test]
async fn an_unknown_agent_is_answered_with_those_that_may_have_been_meant() {
    let site = team().start().await;
    for (route, path) in [
        (ONE, "/api/v1/agents/asistant".to_owned()),
        (PROMPT, "/api/v1/agents/asistant/prompt".to_owned()),
        (PROMPT, "/api/v1/agents/writer/prompt?from=asistant".to_owned()),
        ("/api/v1/graph", "/api/v1/graph?agent=asistant".to_owned()),
    ] {
        let (status, problem) = site.anybody().see(route, &path).await;
        assert_eq!((status, problem["code"].as_str()), (404, Some("agent_not_found")), "{path}");
        assert_eq!(problem["nearest"], json!(["assistant"]));
    }
    for odd in ["%FF", "..%2F..%2Fetc", &"x".repeat(5000)] {
        let (status, problem) = site.anybody().see(ONE, &format!("{LIST}/{odd}")).await;
        assert_eq!((status, &problem["nearest"]), (404, &json!([])));
    }
    site.end().await;
}

#[tokio::test]
async fn the_exact_prompt_can_be_looked_at() {
    let site = team().start().await;
    let visitor = site.anybody();
    let (_, prompt) = visitor.see(PROMPT, "/api/v1/agents/assistant/prompt?message=And%20now?").await;
    assert!(prompt["system"].as_str().unwrap().starts_with("You help local in "), "{prompt:#}");
    assert_eq!(prompt["message"], "And now?");
    let (_, called) = visitor.see(PROMPT, "/api/v1/agents/research/prompt?from=assistant&via=call").await;
    assert_eq!((called["agent"].as_str(), called["system"].as_str()), (Some("research"), Some("Work.")));
    for (path, status) in [
        ("/api/v1/agents/partner/prompt".to_owned(), 409),
        (format!("/api/v1/agents/assistant/prompt?thread_id={}", ThreadId::random()), 404),
        ("/api/v1/agents/assistant/prompt?thread_id=1".to_owned(), 400),
        ("/api/v1/agents/assistant/prompt?via=magic".to_owned(), 400),
        (format!("/api/v1/agents/assistant/prompt?message={}", "x".repeat(4001)), 400),
    ] {
        assert_eq!(visitor.see(PROMPT, &path).await.0, status, "{path}");
    }
    site.end().await;
}

/// Another user's thread is one that does not exist; whoever may read traces sees the prompt as its owner gets it.
#[tokio::test]
async fn a_prompt_is_shown_for_the_callers_own_thread_only() {
    let model = Scripted::default().script("assistant", [ScriptedTurn::text("Hello.")]);
    let site = Plan::new(&model).agent("assistant", LEAD).agent("research", HIDDEN).required().start().await;
    let (ann, bob) = (site.visitor("ann", "user").await, site.visitor("bob", "user").await);
    let operator = site.visitor("olga", "operator").await;
    let thread = ThreadId::random().to_string();
    ann.say(&thread, "Hello").await;
    let path = format!("/api/v1/agents/assistant/prompt?thread_id={thread}");
    for visitor in [&ann, &operator] {
        let (_, prompt) = visitor.see(PROMPT, &path).await;
        assert_eq!(prompt["system"], format!("You help ann in {thread}."));
    }
    let (_, mut foreign) = bob.see(PROMPT, &path).await;
    let nobodys = format!("/api/v1/agents/assistant/prompt?thread_id={}", ThreadId::random());
    let (_, mut unknown) = bob.see(PROMPT, &nobodys).await;
    for problem in [&mut foreign, &mut unknown] {
        problem["trace_id"] = Value::Null;
    }
    assert_eq!(foreign["code"], "thread_not_found");
    assert_eq!(foreign, unknown);
    site.end().await;
}

#[tokio::test]
async fn the_graph_is_the_one_that_the_command_prints() {
    let site = team().settings(|settings| settings.main = Some("assistant".parse().unwrap())).start().await;
    let (_, graph) = site.anybody().see("/api/v1/graph", "/api/v1/graph").await;
    let mut printed = site.app.roster.borrow().roster.graph().clone();
    printed.main = Some("assistant".parse().unwrap());
    assert_eq!(graph, serde_json::to_value(printed).unwrap());
    let (_, around) = site.anybody().see("/api/v1/graph", "/api/v1/graph?agent=assistant").await;
    assert_eq!(around["agents"].as_array().unwrap().len(), 2);
    site.end().await;
}
