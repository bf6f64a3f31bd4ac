//! What a collector gets of a run, and that a run needs none.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value as Any;
use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;

use crate::Ran;
use crate::provider::{Provider, Reply};
use crate::run::project;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00f067aa0ba902b7";

/// Takes whatever is sent to it, as an OTLP collector does.
struct Collector {
    address: String,
    heard: Receiver<Vec<u8>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (tell, heard) = channel();
        // Ends with the test process; the command has ended by then.
        std::thread::spawn(move || {
            while let Ok((stream, _)) = listener.accept() {
                let body = answered(stream);
                if tell.send(body).is_err() {
                    break;
                }
            }
        });
        Self { address, heard }
    }

    fn spans(self) -> Vec<Seen> {
        let sent = self.heard.try_iter().map(|body| ExportTraceServiceRequest::decode(&body[..]).unwrap());
        let of_resources = sent.flat_map(|request| request.resource_spans);
        let spans = of_resources.flat_map(|all| {
            let service = attributes(&all.resource.as_ref().unwrap().attributes)["service.name"].clone();
            all.scope_spans.into_iter().flat_map(|scope| scope.spans).map(move |span| Seen {
                service: service.clone(),
                name: span.name,
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                is_client: span.kind == SpanKind::Client as i32,
                state: span.trace_state,
                attributes: attributes(&span.attributes),
            })
        });
        spans.collect()
    }
}

fn answered(mut stream: TcpStream) -> Vec<u8> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-protobuf\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    body
}

/// A span as it arrived.
#[derive(Debug)]
struct Seen {
    service: String,
    name: String,
    trace: String,
    id: String,
    parent: String,
    is_client: bool,
    state: String,
    attributes: BTreeMap<String, String>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn attributes(all: &[KeyValue]) -> BTreeMap<String, String> {
    all.iter().map(|one| (one.key.clone(), text(one.value.as_ref()))).collect()
}

fn text(value: Option<&AnyValue>) -> String {
    match value.and_then(|value| value.value.as_ref()) {
        Some(Any::StringValue(text)) => text.clone(),
        Some(Any::IntValue(number)) => number.to_string(),
        Some(Any::DoubleValue(number)) => number.to_string(),
        Some(Any::BoolValue(is_so)) => is_so.to_string(),
        Some(Any::ArrayValue(list)) => {
            let items: Vec<String> = list.values.iter().map(|item| text(Some(item))).collect();
            format!("[{}]", items.join(","))
        }
        other => panic!("{other:?}"),
    }
}

fn asked(dir: &Path, variables: &[(&str, &str)]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    let inherited = std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned());
    for name in
        inherited.filter(|name| ["BATON_", "OTEL_", "TRACE"].iter().any(|start| name.starts_with(start)))
    {
        command.env_remove(name);
    }
    let command = command.current_dir(dir).env("NO_COLOR", "1").envs(variables.iter().copied());
    let output = command.args(["run", "Mail jane@example.com"]).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Ran { stdout: text(output.stdout), stderr: text(output.stderr), code: output.status.code().unwrap() }
}

/// `a` has `b` do something, and answers.
fn two_agents() -> (Provider, tempfile::TempDir) {
    let call =
        Reply::Call { tool: "call_agent", arguments: r#"{"mission": "Look it up", "specialist": "b"}"# };
    let provider =
        Provider::start(vec![call, Reply::Text(&["Found it."]), Reply::Text(&["Here ", "it is."])]);
    let dir = project(&provider.base_url, "agents: [b]\ntemperature: 0.5");
    std::fs::write(dir.path().join("agents/b.md"), "---\ndescription: Looks.\n---\nYou look.\n").unwrap();
    (provider, dir)
}

fn named<'a>(spans: &'a [Seen], name: &str) -> &'a Seen {
    spans.iter().find(|span| span.name == name).unwrap_or_else(|| panic!("no {name} in {spans:#?}"))
}

/// Those of a run whose `baton.toml` names the collector.
fn configured() -> Vec<Seen> {
    let (collector, (provider, dir)) = (Collector::start(), two_agents());
    let config = dir.path().join("baton.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    let telemetry = format!("[telemetry]\notlp_endpoint = \"{}/\"\n", collector.address);
    std::fs::write(&config, text + &telemetry).unwrap();
    let ran = asked(dir.path(), &[]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    provider.finish();
    collector.spans()
}

/// H15, H16: the chain of delegations is one trace, that of whoever asked.
#[test]
fn h16_a_run_is_a_tree_of_spans_in_the_trace_of_its_caller() {
    let (collector, (provider, dir)) = (Collector::start(), two_agents());
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let ran = asked(
        dir.path(),
        &[
            ("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address),
            ("OTEL_SERVICE_NAME", "desk"),
            ("TRACEPARENT", &parent),
            ("TRACESTATE", "vendor=1"),
        ],
    );
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "Here it is.\n"), "{}", ran.stderr);
    provider.finish();
    let spans = collector.spans();
    assert!(
        spans.iter().all(|span| span.trace == TRACE && span.service == "desk" && span.state == "vendor=1")
    );
    let [command, run, a, call, b] =
        ["baton run", "invoke_workflow a", "invoke_agent a", "execute_tool call_agent", "invoke_agent b"]
            .map(|name| named(&spans, name));
    assert_eq!((&*command.parent, &run.parent), (PARENT, &command.id));
    assert_eq!((&a.parent, &call.parent, &b.parent), (&run.id, &a.id, &call.id));
    let chats: Vec<&Seen> = spans.iter().filter(|span| span.name == "chat m").collect();
    let parents: Vec<&String> = chats.iter().map(|chat| &chat.parent).collect();
    assert_eq!(parents.len(), 3);
    assert_eq!(parents.iter().filter(|parent| ***parent == a.id).count(), 2);
    assert!(parents.contains(&&b.id) && chats.iter().all(|chat| chat.is_client) && !a.is_client);
    assert_eq!(spans.len(), 8, "{spans:#?}");
}

/// E21: the trace of a run shows who passed the baton to whom and in which way: a transfer that a model decides, then a stage of a chain.
#[test]
fn e21_spans_show_the_flow_of_the_baton() {
    let provider = Provider::start(vec![
        Reply::Call { tool: "transfer_to_b", arguments: r#"{"reason": "It is about a bill"}"# },
        Reply::Text(&["You owe 5."]),
        Reply::Text(&["You owe 5 euros."]),
    ]);
    let dir = project(&provider.base_url, "collaborations: [b]");
    for (name, head) in [("b", "handoff: [c]"), ("c", "display_name: Editor")] {
        let file = format!("---\ndescription: Works.\n{head}\n---\nYou work.\n");
        std::fs::write(dir.path().join(format!("agents/{name}.md")), file).unwrap();
    }
    let collector = Collector::start();
    let ran = asked(dir.path(), &[("OTEL_EXPORTER_OTLP_ENDPOINT", &collector.address)]);
    assert_eq!((ran.code, ran.stdout.as_str()), (0, "You owe 5 euros.\n"), "{}", ran.stderr);
    provider.finish();
    let spans = collector.spans();
    let run = named(&spans, "invoke_workflow a");
    for (agent, by, source) in [("b", "transfer", "a"), ("c", "handoff", "b")] {
        let span = named(&spans, &format!("invoke_agent {agent}"));
        assert_eq!(span.trace, run.trace);
        for (key, value) in
            [("kind", "handoff"), ("by", by), ("source", source), ("target", agent), ("phase", "completed")]
        {
            let found = span.attributes.get(&format!("baton.transfer.{key}")).map(String::as_str);
            assert_eq!(found, Some(value), "{agent}: {key}: {span:#?}");
        }
    }
}

/// The names and values of OpenTelemetry's conventions.
#[test]
fn spans_say_what_was_asked_of_whom_and_what_it_cost() {
    let spans = configured();
    let says = |name: &str, expected: &[(&str, &str)]| {
        let found = &named(&spans, name).attributes;
        for (key, value) in expected {
            assert_eq!(found.get(*key).map(String::as_str), Some(*value), "{name}: {key} in {found:#?}");
        }
    };
    says(
        "chat m",
        &[
            ("gen_ai.operation.name", "chat"),
            ("gen_ai.provider.name", "local"),
            ("gen_ai.request.model", "m"),
            ("gen_ai.request.temperature", "0.5"),
            ("gen_ai.response.finish_reasons", "[tool_calls]"),
            ("gen_ai.usage.input_tokens", "12"),
            ("gen_ai.usage.output_tokens", "3"),
            ("baton.cost.unknown", "true"),
        ],
    );
    says(
        "invoke_agent b",
        &[
            ("gen_ai.agent.name", "b"),
            ("gen_ai.agent.description", "Looks."),
            ("baton.transfer.kind", "delegation"),
            ("baton.transfer.source", "a"),
            ("baton.transfer.target", "b"),
            ("baton.transfer.waits", "true"),
            ("baton.transfer.phase", "completed"),
            ("gen_ai.usage.input_tokens", "12"),
        ],
    );
    says(
        "execute_tool call_agent",
        &[
            ("gen_ai.tool.name", "call_agent"),
            ("gen_ai.tool.type", "function"),
            ("gen_ai.tool.call.id", "call_x"),
            ("baton.transfer.target", "b"),
        ],
    );
    says(
        "invoke_workflow a",
        &[
            ("baton.tenant.id", "default"),
            ("baton.run.status", "completed"),
            ("gen_ai.usage.input_tokens", "36"),
        ],
    );
}

/// A collector that the file names. Without a caller's trace there is one of its own.
#[test]
fn no_word_of_what_was_said_is_on_a_span() {
    let spans = configured();
    assert_eq!(named(&spans, "baton run").parent, "", "a trace of its own");
    let everything = format!("{spans:?}");
    for said in ["Mail", "jane", "Look it up", "Found it", "Here it is", "You help"] {
        assert!(!everything.contains(said), "{said}");
    }
}

/// G19: whoever asks for content gets it without what belongs to people.
#[test]
fn g19_content_is_there_when_it_is_asked_for_and_masked() {
    let (collector, (provider, dir)) = (Collector::start(), two_agents());
    let variables = [
        ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &*format!("{}/v1/traces", collector.address)),
        ("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"),
    ];
    assert_eq!(asked(dir.path(), &variables).code, 0);
    provider.finish();
    let everything = format!("{:?}", collector.spans());
    for said in ["gen_ai.input.messages", "Mail [EMAIL]", "Look it up", "Found it", "Here it is", "You help"]
    {
        assert!(everything.contains(said), "{said} in {everything}");
    }
    assert!(!everything.contains("jane"));
}

#[test]
fn a_trace_that_its_caller_does_not_record_is_not_recorded_here() {
    let (collector, (provider, dir)) = (Collector::start(), two_agents());
    let parent = format!("00-{TRACE}-{PARENT}-00");
    let variables = [("OTEL_EXPORTER_OTLP_ENDPOINT", collector.address.as_str()), ("TRACEPARENT", &parent)];
    assert_eq!(asked(dir.path(), &variables).code, 0);
    provider.finish();
    assert!(collector.spans().is_empty());
}

/// H15: one that is not there, and one that is there and never answers.
#[test]
fn h15_a_dead_collector_changes_nothing_but_one_line_in_the_log() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let gone = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = |listener: &TcpListener| format!("http://{}", listener.local_addr().unwrap());
    let (silent_at, gone_at) = (address(&silent), address(&gone));
    drop(gone);
    for collector in [silent_at, gone_at] {
        let (provider, dir) = two_agents();
        let ran = asked(dir.path(), &[("OTEL_EXPORTER_OTLP_ENDPOINT", collector.as_str())]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "Here it is.\n"), "{}", ran.stderr);
        assert!(ran.stderr.matches("traces do not reach").count() <= 1, "{}", ran.stderr);
        provider.finish();
    }
    drop(silent);
}

#[test]
fn an_address_that_is_none_is_an_error_that_says_what_one_looks_like() {
    let dir = project("http://127.0.0.1:1", "");
    let ran = asked(dir.path(), &[("OTEL_EXPORTER_OTLP_ENDPOINT", "localhost:4318")]);
    assert_eq!(ran.code, 3);
    assert!(
        ran.stderr.contains("OTEL_EXPORTER_OTLP_ENDPOINT") && ran.stderr.contains("http://"),
        "{}",
        ran.stderr
    );
    let ran = asked(dir.path(), &[("BATON_TELEMETRY_OTLP_ENDPOINT", "nowhere")]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("BATON_TELEMETRY_OTLP_ENDPOINT"), "{}", ran.stderr);
}

/// H3, with the trace under which more is found.
#[test]
fn h3_logs_can_be_lines_of_json() {
    let (provider, dir) = two_agents();
    let parent = format!("00-{TRACE}-{PARENT}-01");
    let ran =
        asked(dir.path(), &[("BATON_LOG", "info"), ("BATON_LOG_FORMAT", "json"), ("TRACEPARENT", &parent)]);
    assert_eq!(ran.code, 0);
    provider.finish();
    let lines = ran.stderr.lines().filter(|line| line.starts_with('{'));
    let lines: Vec<serde_json::Value> = lines.map(|line| serde_json::from_str(line).unwrap()).collect();
    let line = lines.iter().find(|line| line["message"] == "Delegation started").expect("it is logged");
    assert_eq!((&line["trace_id"], &line["tenant_id"]), (&TRACE.into(), &"default".into()));
    assert_eq!(
        (&line["fields"]["source_agent"], &line["fields"]["target_agent"]),
        (&"a".into(), &"b".into())
    );
    assert!(line["thread_id"].is_string() && line["run_id"].is_string(), "{line}");
    let ran = asked(dir.path(), &[("BATON_LOG_FORMAT", "xml")]);
    assert_eq!(ran.code, 3);
    assert!(ran.stderr.contains("BATON_LOG_FORMAT"), "{}", ran.stderr);
}
