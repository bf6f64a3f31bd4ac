//! Files: sent, found again, and harmless.

use baton_core::ProducedFile;
use baton_models::scripted::{Scripted, ScriptedTurn};
use http::Method;
use reqwest::Response;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::client::{Frame, Socket};
use crate::guards::problem;
use crate::person::{Person, new_thread};
use crate::site::{Plan, Site};

const BOUNDARY: &str = "a-line-that-is-in-no-file";

async fn site() -> Site {
    let model = Scripted::default().script("assistant", (0..4).map(|_| ScriptedTurn::text("Seen.")));
    Plan::new(&model).required().start().await
}

/// One field of a form: its head, and what is in it.
type Field<'a> = (&'a str, &'a [u8]);

fn form(fields: &[Field<'_>]) -> Vec<u8> {
    let mut form = Vec::new();
    for (head, body) in fields {
        form.extend(format!("--{BOUNDARY}\r\nContent-Disposition: form-data; {head}\r\n\r\n").bytes());
        form.extend(*body);
        form.extend(b"\r\n");
    }
    form.extend(format!("--{BOUNDARY}--\r\n").bytes());
    form
}

impl Person<'_> {
    async fn send(&self, fields: &[Field<'_>]) -> Response {
        let request = self.request(Method::POST, "/api/v1/artifacts");
        let request = request.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
        request.body(form(fields)).send().await.expect("an answer")
    }

    async fn upload(&self, thread: &str, name: &str, media_type: &str, bytes: &[u8]) -> Value {
        let head = format!("name=\"file\"; filename=\"{name}\"\r\nContent-Type: {media_type}");
        let sent = self.send(&[("name=\"thread_id\"", thread.as_bytes()), (&head, bytes)]).await;
        let (status, location) = (sent.status(), sent.headers().get("location").cloned());
        let body = sent.text().await.expect("a body");
        assert_eq!(status, 201, "{body}");
        let artifact: Value = serde_json::from_str(&body).expect("JSON");
        assert_eq!(artifact["uri"], location.expect("a location").to_str().expect("a text"));
        artifact
    }
}

/// D8
#[tokio::test]
async fn a_file_is_sent_and_found_again_and_its_thread_begins_with_it() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let bytes: Vec<u8> = (0..=255).cycle().take(3 << 20).collect();
    let artifact = ada.upload(&thread, "Übersicht 2026.pdf", "application/pdf", &bytes).await;
    for (field, value) in [
        ("thread_id", json!(thread)),
        ("name", json!("Übersicht 2026.pdf")),
        ("media_type", json!("application/pdf")),
        ("size", json!(bytes.len())),
    ] {
        assert_eq!(artifact[field], value, "{field}");
    }
    assert_eq!(artifact["uri"], format!("/api/v1/artifacts/{}", artifact["artifact_id"].as_str().unwrap()));
    assert!(artifact["created_at"].is_string() && artifact.get("run_id").is_none());
    let uri = artifact["uri"].as_str().unwrap();
    let found = ada.get(uri).await;
    assert_eq!(found.status(), 200);
    let headers = found.headers().clone();
    assert_eq!(headers["content-type"], "application/pdf");
    assert_eq!(headers["content-disposition"], "attachment; filename*=UTF-8''%C3%9Cbersicht%202026.pdf");
    assert_eq!(
        (&headers["x-content-type-options"], &headers["content-security-policy"]),
        (&"nosniff".parse().unwrap(), &"sandbox".parse().unwrap())
    );
    assert_eq!(headers["cache-control"], "private");
    assert_eq!(found.bytes().await.unwrap(), bytes);
    let context = ada.see(&format!("/api/v1/threads/{thread}")).await;
    assert_eq!((&context["title"], &context["total_messages"]), (&json!("Übersicht 2026.pdf"), &json!(0)));
    assert_eq!(context["current_active_agent"], "assistant", "who will answer");
    assert_eq!(ada.trail("acme", "artifact.create").await, [("ada".to_owned(), "allowed".to_owned())]);
    assert_eq!(ada.delete(&format!("/api/v1/threads/{thread}")).await.status(), 204);
    assert_eq!(ada.get(uri).await.status(), 404, "it goes with its thread");
    site.end().await;
}

#[tokio::test]
async fn what_the_caller_has_is_not_sent_again() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let uri = ada.upload(&new_thread(), "a.txt", "text/plain; charset=utf-8", b"hello").await["uri"].clone();
    let uri = uri.as_str().unwrap();
    let tag = ada.get(uri).await.headers()["etag"].to_str().unwrap().to_owned();
    assert_eq!(tag, "\"2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824\"");
    for (known, status) in [
        (tag.clone(), 304),
        (format!("W/{tag}"), 304),
        ("*".into(), 304),
        (format!("\"x\", {tag}"), 304),
        ("\"x\"".into(), 200),
    ] {
        let answer = ada.request(Method::GET, uri).header("if-none-match", &known).send().await.unwrap();
        assert_eq!(
            (answer.status().as_u16(), answer.headers()["etag"].to_str().unwrap()),
            (status, tag.as_str()),
            "{known}"
        );
        assert_eq!(answer.bytes().await.unwrap().is_empty(), status == 304);
    }
    let head = ada.request(Method::HEAD, uri).send().await.unwrap();
    assert_eq!((head.status().as_u16(), head.headers()["content-length"].to_str().unwrap()), (200, "5"));
    site.end().await;
}

/// What a browser would run is something to save, like everything else.
#[tokio::test]
async fn nothing_that_is_sent_can_be_run_from_here() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    for (name, kind, sent) in [
        ("a.html", "text/html", "text/html"),
        ("a.svg", "image/svg+xml", "image/svg+xml"),
        ("a.xml", "application/xml", "application/xml"),
        ("a.js", "text/javascript", "text/plain"),
        ("a.mjs", "application/JavaScript; charset=utf-8", "text/plain"),
        ("a.css", "text/css", "text/plain"),
    ] {
        let artifact = ada.upload(&thread, name, kind, b"<script>alert(1)</script>").await;
        let found = ada.get(artifact["uri"].as_str().unwrap()).await;
        let header = |name: &str| found.headers()[name].to_str().unwrap().to_owned();
        assert_eq!(header("content-type"), sent, "{name}");
        assert!(header("content-disposition").starts_with("attachment; "));
        assert_eq!(
            (header("x-content-type-options"), header("content-security-policy")),
            ("nosniff".into(), "sandbox".into())
        );
    }
    for (name, kept) in
        [("../../etc/passwd", "passwd"), ("C:\\\\Temp\\\\x.txt", "x.txt"), (".hidden", "hidden")]
    {
        let artifact = ada.upload(&thread, name, "text/plain", b"x").await;
        assert_eq!(artifact["name"], kept);
    }
    site.end().await;
}

#[tokio::test]
async fn forms_that_are_wrong_are_refused_with_the_place() {
    let plan = Plan::new(&Scripted::default()).required();
    let site = plan.settings(|settings| settings.limits.max_upload_bytes = 64 << 10).start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let id: Field<'_> = ("name=\"thread_id\"", thread.as_bytes());
    let file: Field<'_> = ("name=\"file\"; filename=\"a\"", b"x");
    let cases: [(&[Field<'_>], &str, &str); 9] = [
        (&[], "invalid_request", "thread_id"),
        (&[id], "invalid_request", "file"),
        (&[file], "invalid_request", "thread_id"),
        (&[id, id, file], "invalid_request", "thread_id"),
        (&[id, file, file], "invalid_request", "file"),
        (&[id, file, ("name=\"colour\"", b"red")], "invalid_request", ""),
        (&[id, ("name=\"file\"", b"x")], "invalid_request", "file"),
        (&[id, ("name=\"file\"; filename=\"a\"\r\nContent-Type: nonsense", b"x")], "invalid_request", "file"),
        (&[("name=\"thread_id\"", b"x"), file], "invalid_thread_id", "thread_id"),
    ];
    for (fields, code, pointer) in cases {
        let refused = ada.send(fields).await;
        assert_eq!(refused.status(), 400);
        let problem = problem(refused).await;
        assert_eq!((&problem["code"], &problem["errors"][0]["pointer"]), (&json!(code), &json!(pointer)));
    }
    let large = ada.send(&[id, ("name=\"file\"; filename=\"a\"", &vec![7; 65 << 10])]).await;
    assert_eq!(large.status(), 413);
    assert_eq!(problem(large).await["code"], "payload_too_large");
    let json = ada.post("/api/v1/artifacts", &json!({ "thread_id": thread })).await;
    assert_eq!(json.status(), 415);
    let broken = ada.request(Method::POST, "/api/v1/artifacts");
    let broken = broken.header("content-type", format!("multipart/form-data; boundary={BOUNDARY}"));
    assert_eq!(broken.body("--nonsense").send().await.unwrap().status(), 400);
    assert_eq!(ada.get(&format!("/api/v1/threads/{thread}")).await.status(), 404, "nothing began");
    site.end().await;
}

/// A8, A9, A20, H9
#[tokio::test]
async fn a_foreign_artifact_is_like_one_that_does_not_exist() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let uri = ada.upload(&thread, "a.txt", "text/plain", b"secret").await["uri"].as_str().unwrap().to_owned();
    for other in [site.person("acme", "bob", &["user"]).await, site.person("globex", "ada", &["admin"]).await]
    {
        let foreign = other.refused(Method::GET, &uri).await;
        for unknown in [Uuid::now_v7().to_string(), "x".to_owned(), "%ff".to_owned()] {
            assert_eq!(other.refused(Method::GET, &format!("/api/v1/artifacts/{unknown}")).await, foreign);
        }
        assert_eq!((&foreign["status"], &foreign["code"]), (&json!(404), &json!("not_found")));
    }
    let file: Field<'_> = ("name=\"file\"; filename=\"a\"", b"x");
    let bob = site.person("acme", "bob", &["user"]).await;
    let refused = bob.send(&[("name=\"thread_id\"", thread.as_bytes()), file]).await;
    assert_eq!(refused.status(), 404);
    assert_eq!(problem(refused).await["code"], "thread_not_found");
    // In another tenant it is another thread.
    let stranger = site.person("globex", "ada", &["admin"]).await;
    assert_eq!(stranger.send(&[("name=\"thread_id\"", thread.as_bytes()), file]).await.status(), 201);
    let viewer = site.person("acme", "ada", &["viewer"]).await;
    let denied = viewer.send(&[("name=\"thread_id\"", thread.as_bytes()), file]).await;
    assert_eq!(denied.status(), 403);
    assert_eq!(problem(denied).await["permission"], "thread:write");
    assert_eq!(site.person("acme", "olga", &["operator"]).await.get(&uri).await.status(), 200);
    site.end().await;
}

/// D8: a message refers to files of its thread; what is said about them is what they are.
#[tokio::test]
async fn messages_refer_to_files_of_their_thread_only() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let (thread, elsewhere) = (new_thread(), new_thread());
    let file = ada.upload(&thread, "notes.txt", "text/plain", b"hello").await;
    let image = ada.upload(&thread, "dot.png", "image/png", b"\x89PNG").await;
    let other = ada.upload(&elsewhere, "other.txt", "text/plain", b"hello").await;
    let say = async |parts: Value| {
        let path = format!("/api/v1/threads/{thread}/messages");
        let request = ada.request(Method::POST, &path).header("accept", "application/json");
        request.json(&json!({ "content": parts })).send().await.unwrap()
    };
    let parts = json!([
        { "type": "text", "text": "Look:" },
        { "type": "file", "name": "harmless.exe", "uri": file["uri"], "media_type": "text/html" },
        { "type": "image", "uri": image["uri"], "media_type": "image/gif" },
        { "type": "image", "uri": "https://example.com/a.png", "media_type": "image/png" },
        { "type": "data", "data": { "n": 1 } },
    ]);
    assert_eq!(say(parts).await.status(), 200);
    let kept = ada.see(&format!("/api/v1/threads/{thread}/messages")).await["data"][0]["parts"].clone();
    assert_eq!(
        kept[1],
        json!({ "type": "file", "name": "notes.txt", "uri": file["uri"], "media_type": "text/plain" })
    );
    assert_eq!(
        kept[2],
        json!({ "type": "image", "data": "iVBORw==", "media_type": "image/png", "name": "dot.png" })
    );
    assert_eq!(kept[3]["uri"], "https://example.com/a.png");
    assert_eq!(kept[4], json!({ "type": "data", "data": { "n": 1 } }));
    for (uri, field) in [
        (other["uri"].clone(), "/content/1/uri"),
        (json!(format!("/api/v1/artifacts/{}", Uuid::now_v7())), "/content/1/uri"),
        (json!("https://example.com/a.txt"), "/content/1/uri"),
    ] {
        let refused =
            say(json!([{ "type": "text", "text": "Look:" }, { "type": "file", "name": "a", "uri": uri }]))
                .await;
        assert_eq!(refused.status(), 400, "{uri}");
        assert_eq!(problem(refused).await["errors"][0]["pointer"], field);
    }
    let no_image = say(json!([{ "type": "image", "uri": file["uri"], "media_type": "image/png" }])).await;
    assert_eq!(problem(no_image).await["errors"][0]["pointer"], "/content/0/uri");
    let blank = say(json!([{ "type": "text", "text": " " }])).await;
    assert_eq!(blank.status(), 400);
    site.end().await;
}

#[tokio::test]
async fn the_files_of_a_thread_are_listed_newest_first() {
    let site = site().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let path = format!("/api/v1/threads/{thread}/artifacts");
    assert_eq!(ada.refused(Method::GET, &path).await["code"], "thread_not_found");
    let first = ada.upload(&thread, "a.txt", "text/plain", b"a").await;
    let second = ada.upload(&thread, "b.txt", "text/plain", b"bb").await;
    ada.upload(&new_thread(), "elsewhere.txt", "text/plain", b"c").await;
    let listed =
        crate::described::body(ada.get(&path).await, "get", "/api/v1/threads/{thread_id}/artifacts").await;
    let ids: Vec<&Value> = listed["data"].as_array().unwrap().iter().map(|one| &one["artifact_id"]).collect();
    assert_eq!(ids, [&second["artifact_id"], &first["artifact_id"]]);
    assert_eq!((&listed["data"][0]["name"], &listed["data"][0]["size"]), (&json!("b.txt"), &json!(2)));
    assert!(listed["data"][0].get("run_id").is_none());
    let bob = site.person("acme", "bob", &["user"]).await;
    assert_eq!(bob.refused(Method::GET, &path).await["code"], "thread_not_found");
    site.end().await;
}

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n and so on";

/// A model that draws, and passes a page off as an image.
pub fn drawing() -> Scripted {
    let page = ProducedFile::new(*b"<!doctype html><script>alert(1)</script>").claimed("image/png");
    let turn = ScriptedTurn::text("A chart.").make(ProducedFile::new(PNG).named("chart.png"));
    Scripted::default().script("assistant", vec![turn.make(page.named("page.png")); 3])
}

/// D8: images and files of an answer are parts of its message and of the run, and come with the events; each can be downloaded by
/// its user alone, never as something that a browser runs, and is deleted with its thread.
#[tokio::test]
async fn d8_files_of_an_answer_are_parts_events_and_downloads() {
    let site = Plan::new(&drawing()).required().start().await;
    let ada = site.person("acme", "ada", &["user"]).await;
    let thread = new_thread();
    let said = ada.ask(&thread, "Draw it").await;
    let run = ada.see(&format!("/api/v1/runs?thread_id={thread}")).await["data"][0]["run_id"].clone();
    let run = run.as_str().unwrap();
    let messages = ada.see(&format!("/api/v1/threads/{thread}/messages")).await;
    let answer = messages["data"].as_array().unwrap().iter().find(|one| one["role"] == "assistant").unwrap();
    let parts = answer["parts"].as_array().unwrap();
    assert_eq!(parts[0], json!({ "type": "text", "text": "A chart." }), "{said}");
    let (image, page) = (&parts[1], &parts[2]);
    assert_eq!((&image["type"], &image["media_type"]), (&json!("image"), &json!("image/png")));
    assert_eq!(image["name"], "chart.png");
    assert_eq!(
        (&page["type"], &page["media_type"]),
        (&json!("file"), &json!("text/html")),
        "its content decides"
    );
    let detail = ada.see(&format!("/api/v1/runs/{run}")).await;
    assert_eq!(detail["files"], json!([image, page]));
    let stream = ada.request(Method::GET, &format!("/api/v1/runs/{run}/events"));
    let events = stream.header("accept", "text/event-stream").send().await.unwrap().text().await.unwrap();
    let files = events.lines().find(|line| line.contains("baton.files")).expect("an event");
    let event: Value = serde_json::from_str(files.strip_prefix("data: ").unwrap_or(files)).unwrap();
    let content = json!({ "message_id": answer["message_id"], "parts": [image, page] });
    assert_eq!((&event["type"], &event["content"]), (&json!("ACTIVITY_SNAPSHOT"), &content));
    let listed = ada.see(&format!("/api/v1/threads/{thread}/artifacts")).await;
    assert_eq!(listed["data"].as_array().unwrap().len(), 2);
    assert_eq!(listed["data"][0]["run_id"], run);
    let uri = image["uri"].as_str().unwrap();
    assert_eq!(ada.get(uri).await.bytes().await.unwrap(), PNG);
    let found = ada.get(page["uri"].as_str().unwrap()).await;
    assert!(found.headers()["content-disposition"].to_str().unwrap().starts_with("attachment; "));
    assert_eq!(found.headers()["x-content-type-options"], "nosniff");
    for (tenant, user) in [("acme", "bob"), ("other", "ada")] {
        let stranger = site.person(tenant, user, &["user"]).await;
        assert_eq!(stranger.get(uri).await.status(), 404, "{tenant}/{user}");
    }
    assert_eq!(ada.delete(&format!("/api/v1/threads/{thread}")).await.status(), 204);
    assert_eq!(ada.get(uri).await.status(), 404, "it goes with its thread");
    site.end().await;
}

/// D8: a WebSocket that is open while a run draws gets its files, as a client of server-sent events does.
#[tokio::test]
async fn d8_files_of_an_answer_reach_an_open_websocket() {
    let site = Plan::new(&drawing()).start().await;
    let thread = new_thread();
    let first = site.say(&thread, "Draw it").await.all().await;
    let last = first.last().unwrap().id;
    let mut socket = Socket::join(&site, &thread, &format!("after={last}")).await;
    let sent = site.say(&thread, "Draw it again").await.all().await;
    let heard = socket.until_end().await;
    let files = |frames: &[Frame]| -> Vec<Frame> {
        frames.iter().filter(|frame| frame.event["activityType"] == "baton.files").cloned().collect()
    };
    let announced = files(&heard);
    assert_eq!(announced, files(&sent), "the same event with the same id");
    let [announced] = &announced[..] else { panic!("one event was expected: {heard:?}") };
    let parts = announced.event["content"]["parts"].as_array().unwrap();
    let names: Vec<&Value> = parts.iter().map(|part| &part["name"]).collect();
    assert_eq!(names, ["chart.png", "page.png"]);
    let found = site.http.get(site.url(parts[0]["uri"].as_str().unwrap())).send().await.unwrap();
    assert_eq!(found.bytes().await.unwrap(), PNG);
    site.end().await;
}
