//! The bundled specialists (F4), and the three examples of the appendix that they are for (F30), with real tools against servers on
//! loopback. The model is a script: it decides what to call, and copies its answers from what the tools returned.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::{Value, json};

use crate::crash::wire::{self, Answer};
use crate::{Ran, baton, fixtures, root};

/// What follows the output of a tool.
const END: &str = "<<<end";

const SPECIALISTS: [&str; 4] = ["coding", "orchestrator", "rag", "wiki"];

#[test]
fn f_4_init_writes_specialists_that_are_valid() {
    let dir = tempfile::tempdir().unwrap();
    let ran = baton(dir.path(), &["init", "--with", "specialists"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    for name in SPECIALISTS {
        let written = std::fs::read_to_string(dir.path().join(format!("agents/{name}.md"))).unwrap();
        assert_eq!(written, std::fs::read_to_string(root().join(format!("specialists/{name}.md"))).unwrap());
    }
    let ran = baton(dir.path(), &["validate", "--strict"]);
    assert_eq!(ran.code, 0, "{}", ran.stdout);
    // The request of the assistant is the same as without them.
    let prompt = |dir: &Path| baton(dir, &["agents", "prompt", "assistant"]).stdout;
    let plain = tempfile::tempdir().unwrap();
    assert_eq!(baton(plain.path(), &["init"]).code, 0);
    assert!(!plain.path().join("agents/coding.md").exists());
    assert_eq!(prompt(plain.path()), prompt(dir.path()));
    assert_eq!(baton(plain.path(), &["init", "--with", "everything"]).code, 2);
}

/// K3: the other names of the seeds mean the same tools.
#[test]
fn k_3_file_read_and_file_write_are_names_of_tools() {
    let dir = tempfile::tempdir().unwrap();
    baton(dir.path(), &["init", "--with", "specialists"]);
    let shown = baton(dir.path(), &["agents", "show", "orchestrator", "--format", "json"]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    let expected = json!(["web_search", "web_fetch", "read_file", "write_file", "python", "ask_user"]);
    assert_eq!(shown["tools"]["allow"], expected);
}

/// Without a language model the specialists answer from the documents.
#[test]
fn f_4_specialists_work_offline() {
    let dir = tempfile::tempdir().unwrap();
    baton(dir.path(), &["init", "--with", "specialists"]);
    std::fs::write(dir.path().join("docs/leave.md"), "# Leave\n\nEmployees have 28 days of paid leave.\n")
        .unwrap();
    let ran = baton(dir.path(), &["run", "--agent", "rag", "How many days of paid leave are there?"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    assert!(ran.stdout.contains("28 days"), "{}", ran.stdout);
}

/// What the script sees of a request.
struct Asked {
    system: String,
    mission: String,
    /// The results of tools, in order.
    results: Vec<String>,
}

impl Asked {
    fn of(request: &Value) -> Option<Self> {
        let messages = request["messages"].as_array()?;
        let of_role = |role: &'static str| messages.iter().filter(move |message| message["role"] == role);
        Some(Self {
            system: of_role("system").map(words).collect(),
            mission: of_role("user").map(words).collect(),
            results: of_role("tool").map(words).collect(),
        })
    }

    fn last(&self) -> &str {
        self.results.last().map(String::as_str).unwrap_or_default()
    }
}

fn words(message: &Value) -> String {
    match &message["content"] {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

fn says(text: &str) -> Answer {
    Answer { frames: vec![wire::text(text)], finish: "stop" }
}

fn calls(calls: &[(&str, Value)]) -> Answer {
    let calls: Vec<_> = calls
        .iter()
        .enumerate()
        .map(|(index, (tool, arguments))| {
            let id = format!("call_{index}_{}", fastrand::u32(..));
            (*tool, id, arguments.clone())
        })
        .collect();
    Answer { frames: vec![wire::calls(&calls)], finish: "tool_calls" }
}

/// The text between two marks.
fn between<'a>(text: &'a str, before: &str, after: &str) -> &'a str {
    let start = text.find(before).unwrap_or_else(|| panic!("`{before}` is not in {text}")) + before.len();
    text[start..].split(after).next().unwrap().trim()
}

/// A project with the specialists whose model is the script.
fn project(
    script: impl Fn(&Asked) -> Option<Answer> + Clone + Send + 'static,
    web: &str,
) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(baton(dir.path(), &["init", "--with", "specialists"]).code, 0);
    let model = wire::serve(move |request| script(&Asked::of(request)?));
    let config = format!(
        "[agents]\nmain = \"orchestrator\"\n[models]\ndefault = \"local/m\"\n\
         [models.providers.local]\nbase_url = \"{model}\"\n\
         [models.providers.local.models.m]\nassists = {{ agent_tools = false, search_first = false }}\n\
         [approvals]\nask_at = \"never\"\n[orchestration]\noffer_custom_agents = true\n\
         [tools.web_search]\nkind = \"searxng\"\nbase_url = \"{web}\"\n[tools.web_fetch]\nallow_hosts = [\"127.0.0.1\"]\n\
         [tools.python]\nenabled = true\ninterpreter = \"/usr/bin/python3\"\n"
    );
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    dir
}

fn run(dir: &Path, mission: &str) -> Ran {
    let ran = baton(dir, &["run", mission]);
    assert_eq!(ran.code, 0, "{}\n{}", ran.stdout, ran.stderr);
    ran
}

/// Pages, and a SearXNG that finds them: the pages whose subject contains a word of the query.
fn web(pages: &'static [(&'static str, &'static str)]) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let (log, own) = (Arc::clone(&seen), base.clone());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let mut line = String::new();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let _ = reader.read_line(&mut line);
            let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
            let mut header = String::new();
            while reader.read_line(&mut header).is_ok_and(|length| length > 2) {
                header.clear();
            }
            log.lock().unwrap().push(target.clone());
            let (kind, body) = answer(&own, pages, &target);
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all((head + &body).as_bytes());
        }
    });
    (base, seen)
}

fn answer(base: &str, pages: &[(&str, &str)], target: &str) -> (&'static str, String) {
    let Some(query) = target.strip_prefix("/search?") else {
        let page = pages.iter().find(|(subject, _)| target == format!("/{subject}"));
        let text = page.map_or("nothing here", |(_, text)| text);
        return ("text/html", format!("<html><title>T</title><h1>Page</h1><p>{text}</p></html>"));
    };
    let found = pages.iter().filter(|(subject, _)| query.to_lowercase().contains(subject));
    let results: Vec<Value> = found
        .map(|(subject, _)| {
            json!({"url": format!("{base}/{subject}"), "title": subject, "content": "excerpt", "engine": "x"})
        })
        .collect();
    ("application/json", json!({"query": "q", "results": results, "answers": []}).to_string())
}

/// F30, first example: a report on three topics by two RAG specialists and a generic agent with `web_search` at once, from the web and
/// from the documents.
#[test]
fn f_30_research_report_on_three_topics() {
    static PAGES: &[(&str, &str)] = &[
        ("architecture", "Mixture-of-experts layers were in 61 percent of the new models."),
        ("orchestration", "Supervisors with workers were the pattern of 44 surveyed systems."),
    ];
    let (web, seen) = web(PAGES);
    let arrived = Arc::new((Mutex::new(0_usize), Condvar::new()));
    let script = {
        let arrived = Arc::clone(&arrived);
        move |asked: &Asked| Some(researcher(asked, &arrived))
    };
    let dir = project(script, &web);
    std::fs::write(
        dir.path().join("docs/rag.md"),
        "# Best practices for RAG\n\nChunks of 300 to 500 words with their headings gave the best recall.\n",
    )
    .unwrap();
    let ran = run(dir.path(), "Research three topics and create a summary report.");
    for fact in [
        "Mixture-of-experts layers were in 61 percent",
        "Chunks of 300 to 500 words",
        "Supervisors with workers were the pattern of 44",
    ] {
        assert!(ran.stdout.contains(fact), "{fact}: {}", ran.stdout);
    }
    assert_eq!(*arrived.0.lock().unwrap(), 3, "all three worked at the same time");
    let seen = seen.lock().unwrap().clone();
    for page in ["/architecture", "/orchestration"] {
        assert!(seen.iter().any(|target| target == page), "{seen:?}");
    }
    assert_eq!(seen.iter().filter(|target| target.starts_with("/search?")).count(), 2, "{seen:?}");
    let tree = baton(dir.path(), &["sessions", "list"]).stdout;
    assert_eq!(tree.matches("sub_rag_").count(), 2, "{tree}");
    assert_eq!(tree.matches("sub_generic_").count(), 1, "{tree}");
}

fn researcher(asked: &Asked, arrived: &(Mutex<usize>, Condvar)) -> Answer {
    if asked.system.contains("You are the orchestrator") {
        if asked.results.len() < 3 {
            let generic = json!({"tool_allowlist": ["web_search", "web_fetch"]});
            return calls(&[
                (
                    "call_agent",
                    json!({"specialist": "rag", "mission": "Latest trends in LLM architecture, on the web"}),
                ),
                (
                    "call_agent",
                    json!({"specialist": "rag", "mission": "Best practices for RAG, in the documents"}),
                ),
                (
                    "call_agent",
                    json!({"agent_definition": generic, "mission": "Multi-agent orchestration patterns, on the web"}),
                ),
            ]);
        }
        return says(&format!("Report:\n{}", asked.results.join("\n")));
    }
    if asked.results.is_empty() {
        wait_for_all(arrived, 3);
        let is_document = asked.mission.contains("in the documents");
        let query = if asked.mission.contains("orchestration") { "orchestration" } else { "architecture" };
        if is_document {
            return calls(&[("semantic_search", json!({"query": "best practices for RAG chunks"}))]);
        }
        return calls(&[("web_search", json!({"query": query}))]);
    }
    let last = asked.last();
    if last.contains("Source: http://") {
        return says(between(last, "# Page", END));
    }
    if last.contains("(line 1)") {
        return says(between(last, "(line 1)", END));
    }
    let address = between(last, "http://", "\n");
    calls(&[("web_fetch", json!({"url": format!("http://{address}")}))])
}

/// Returns once so many requests wait here, or after some time.
fn wait_for_all((count, changed): &(Mutex<usize>, Condvar), all: usize) {
    let mut count = count.lock().unwrap();
    *count += 1;
    changed.notify_all();
    drop(changed.wait_timeout_while(count, Duration::from_secs(30), |count| *count < all).unwrap());
}

/// F30, second example: two coding specialists review and document, a general agent writes a guide.
#[test]
fn f_30_code_review_with_documentation() {
    let (web, _) = web(&[]);
    let dir = project(|asked| Some(reviewer(asked)), &web);
    std::fs::create_dir(dir.path().join("src")).unwrap();
    std::fs::write(
        dir.path().join("src/calc.py"),
        "def mean(values):\n    return sum(values) / len(values)\n",
    )
    .unwrap();
    std::fs::write(dir.path().join("README.md"), "# Calc\n\nRun `calc mean 1 2 3` to get a mean.\n").unwrap();
    let ran = run(dir.path(), "Review the codebase and document it.");
    assert!(ran.stdout.contains("ZeroDivisionError: division by zero"), "{}", ran.stdout);
    let read = |path: &str| std::fs::read_to_string(dir.path().join(path)).unwrap_or_default();
    assert_eq!(read("docs/api.md"), "# API\n\n- `mean(values)`\n");
    assert!(
        read("docs/guide.md").contains("Run `calc mean 1 2 3` to get a mean."),
        "{}",
        read("docs/guide.md")
    );
    let tree = baton(dir.path(), &["sessions", "list"]).stdout;
    assert_eq!(tree.matches("sub_coding_").count(), 2, "{tree}");
    assert_eq!(tree.matches("sub_generic_").count(), 1, "{tree}");
}

fn reviewer(asked: &Asked) -> Answer {
    let (last, count) = (asked.last(), asked.results.len());
    if asked.system.contains("You are the orchestrator") {
        return match count {
            0 => calls(&[("read_file", json!({"path": "README.md"}))]),
            1 => calls(&[
                (
                    "call_agent",
                    json!({"specialist": "coding", "mission": "Analyze the code quality in src/"}),
                ),
                ("call_agent", json!({"specialist": "coding", "mission": "Generate API docs from src/"})),
                (
                    "call_agent",
                    json!({"mission": format!("Write a user guide. README: {}", between(last, "# Calc", END))}),
                ),
            ]),
            4 => {
                let guide = between(&asked.results[3], "GUIDE[", "]");
                calls(&[(
                    "write_file",
                    json!({"path": "docs/guide.md", "content": format!("# Guide\n\n{guide}\n")}),
                )])
            }
            _ => says(&format!("Review:\n{}", asked.results[1..].join("\n"))),
        };
    }
    if asked.system.contains("You are the coding specialist") {
        let is_review = asked.mission.contains("code quality");
        let probe = "import sys\nsys.path.insert(0, 'src')\nimport calc\ncalc.mean([])";
        return match (is_review, count) {
            (_, 0) => calls(&[("list_files", json!({"path": "src"}))]),
            (_, 1) => {
                assert!(last.contains("calc.py"), "{last}");
                calls(&[("read_file", json!({"path": "src/calc.py"}))])
            }
            (true, 2) => calls(&[("python", json!({"code": probe}))]),
            (true, _) => says(&format!("src/calc.py:2 an empty list is not handled: {last}")),
            (false, 2) => {
                let content = format!("# API\n\n- `{}`\n", between(last, "def ", ":"));
                calls(&[("write_file", json!({"path": "docs/api.md", "content": content}))])
            }
            (false, _) => says(&format!("Documented: {last}")),
        };
    }
    // The general agent has nothing but its mission.
    says(&format!("GUIDE[{}]", between(&asked.mission, "README:", END)))
}

/// F30, third example: an agent that is made for the task checks the VAT of a real PDF.
#[test]
fn f_30_vat_check_of_an_invoice_by_a_custom_agent() {
    static PAGES: &[(&str, &str)] = &[("umsatzsteuer", "Der allgemeine Steuersatz ist 19 Prozent.")];
    let (web, seen) = web(PAGES);
    let dir = project(|asked| Some(accountant(asked)), &web);
    let invoice = fixtures().join("documents/invoice_2024.pdf");
    std::fs::copy(&invoice, dir.path().join("invoice_2024.pdf")).unwrap();
    let bytes = std::fs::read(&invoice).unwrap();
    assert!(bytes.starts_with(b"%PDF-") && bytes.windows(11).any(|part| part == b"FlateDecode"));
    let ran = run(dir.path(), "Create a specialist for German accounting and check invoice_2024.pdf.");
    assert!(ran.stdout.contains("VAT stated 216.00, due 228.00: not compliant"), "{}", ran.stdout);
    assert!(ran.stdout.contains("DE123456789"), "{}", ran.stdout);
    let report = std::fs::read_to_string(dir.path().join("compliance_report.md")).unwrap();
    assert!(report.contains("due 228.00"), "{report}");
    assert!(seen.lock().unwrap().iter().any(|target| target.starts_with("/search?")));
    let tree = baton(dir.path(), &["sessions", "list"]).stdout;
    assert_eq!(tree.matches("sub_custom_").count(), 1, "{tree}");
}

fn accountant(asked: &Asked) -> Answer {
    let (last, count) = (asked.last(), asked.results.len());
    if asked.system.contains("You are the orchestrator") {
        return match count {
            0 => calls(&[(
                "call_agent",
                json!({
                    "mission": "Analyze invoice_2024.pdf and check its VAT",
                    "agent_definition": {
                        "system_prompt": "You are a German accounting expert specializing in VAT compliance.",
                        "tool_allowlist": ["file_read", "python", "web_search"]
                    }
                }),
            )]),
            1 => {
                let content = format!("# Compliance\n\n{}\n", between(last, "RESULT[", "]"));
                calls(&[("write_file", json!({"path": "compliance_report.md", "content": content}))])
            }
            _ => says(between(&asked.results[0], "RESULT[", "]")),
        };
    }
    match count {
        0 => calls(&[("read_file", json!({"path": "invoice_2024.pdf"}))]),
        1 => calls(&[("web_search", json!({"query": "umsatzsteuer Steuersatz 2024"}))]),
        2 => {
            let amount = |before: &str| {
                let text = between(&asked.results[0], before, "€").replace('.', "").replace(',', ".");
                text.trim().parse::<f64>().unwrap_or_else(|_| panic!("{text} in {}", asked.results[0]))
            };
            let (net, stated) = (amount("Summe netto:"), amount("19 % USt:"));
            let code = format!(
                "due = {net} * 0.19\nok = abs(due - {stated}) < 0.005\n\
                 print(f'VAT stated {{{stated}:.2f}}, due {{due:.2f}}: {{\"compliant\" if ok else \"not compliant\"}}')"
            );
            calls(&[("python", json!({"code": code}))])
        }
        _ => {
            let number = between(&asked.results[0], "USt-IdNr.:", "\n");
            let verdict = between(last, "exit code 0", END);
            says(&format!("RESULT[{verdict} (USt-IdNr. {number})]"))
        }
    }
}

/// Documents that were made to exhaust a parser end the process that reads them, and neither the run nor the next document.
#[test]
fn k_3_hostile_documents_do_not_harm_the_run() {
    let (web, _) = web(&[]);
    let names = ["deep.pdf", "bomb.pdf", "half.pdf", "garbage.docx", "invoice_2024.pdf"];
    let script = move |asked: &Asked| {
        let next = names.get(asked.results.len());
        let read = next.map(|name| calls(&[("read_file", json!({"path": name}))]));
        Some(read.unwrap_or_else(|| says(&asked.results.join("\n"))))
    };
    let dir = project(script, &web);
    let invoice = std::fs::read(fixtures().join("documents/invoice_2024.pdf")).unwrap();
    let nested = "[".repeat(2_000_000);
    let deep = format!("%PDF-1.4\n1 0 obj\n{nested}\nendobj\ntrailer<</Root 1 0 R>>\nstartxref\n9\n%%EOF");
    let files: [(&str, &[u8]); 5] = [
        ("deep.pdf", deep.as_bytes()),
        ("bomb.pdf", &bomb()),
        ("half.pdf", &invoice[..invoice.len() / 2]),
        ("garbage.docx", b"PK\x03\x04 this is no archive"),
        ("invoice_2024.pdf", &invoice),
    ];
    for (name, bytes) in files {
        std::fs::write(dir.path().join(name), bytes).unwrap();
    }
    let ran = run(dir.path(), "Read all documents.");
    assert!(ran.stdout.contains("Rechnung 2024-0117"), "{}", ran.stdout);
    assert!(ran.stdout.contains("this page cannot be read"), "{}", ran.stdout);
    for name in ["deep.pdf", "half.pdf", "garbage.docx"] {
        assert!(ran.stdout.contains(&format!("`{name}`: it ")), "{name}: {}", ran.stdout);
    }
}

/// A PDF of a few kilobytes whose page has 200 MB.
fn bomb() -> Vec<u8> {
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
    let spaces = vec![b' '; 1_000_000];
    for _ in 0..200 {
        encoder.write_all(&spaces).unwrap();
    }
    let content = encoder.finish().unwrap();
    let mut pdf = b"%PDF-1.4\n".to_vec();
    let mut offsets = Vec::new();
    let stream = format!("<</Length {}/Filter/FlateDecode>>stream\n", content.len());
    let objects = [
        b"<</Type/Catalog/Pages 2 0 R>>".to_vec(),
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>".to_vec(),
        b"<</Type/Page/Parent 2 0 R/Contents 4 0 R>>".to_vec(),
        [stream.as_bytes(), &content, b"\nendstream"].concat(),
    ];
    for (index, object) in objects.iter().enumerate() {
        offsets.push(pdf.len());
        pdf.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
        pdf.extend_from_slice(object);
        pdf.extend_from_slice(b"\nendobj\n");
    }
    let start = pdf.len();
    let mut end = "xref\n0 5\n0000000000 65535 f \n".to_owned();
    for offset in &offsets {
        end += &format!("{offset:010} 00000 n \n");
    }
    end += &format!("trailer\n<</Size 5/Root 1 0 R>>\nstartxref\n{start}\n%%EOF\n");
    pdf.extend_from_slice(end.as_bytes());
    pdf
}
