//! The web page: which paths get it, in which encoding, how long it is kept, and what it may do.

use baton_models::scripted::Scripted;
use baton_server::ui::{UiFile, UiSite as Ui};
use http::Method;
use reqwest::{Client, Response};

use crate::guards::problem;
use crate::site::{Plan, Site};
use crate::wire::exchange;

const HTML: &[u8] = b"<!doctype html><title>Baton</title>";
const SCRIPT: &[u8] = b"console.log('the page')";

/// Each encoding has its own bytes. They are compared, not decoded.
static FILES: &[UiFile] = &[
    UiFile {
        path: "/index.html",
        etag: "0a1b",
        identity: HTML,
        br: Some(b"index br"),
        gzip: Some(b"index gzip"),
    },
    UiFile {
        path: "/assets/app-4f2a.js",
        etag: "2c3d",
        identity: SCRIPT,
        br: Some(b"app br"),
        gzip: Some(b"app gzip"),
    },
    UiFile { path: "/assets/text-77aa.woff2", etag: "4e5f", identity: b"font", br: None, gzip: None },
    UiFile { path: "/favicon.svg", etag: "6a7b", identity: b"<svg/>", br: None, gzip: Some(b"icon gzip") },
];

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; font-src 'self'; \
    connect-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
    require-trusted-types-for 'script'; trusted-types 'none'";
const NOT_FOUND: (u16, &str) = (404, "application/problem+json");

async fn start(ui: Option<Ui>) -> Site {
    let plan = Plan::new(&Scripted::default()).required();
    let mut site = plan.settings(|settings| settings.ui = ui).start().await;
    // Bytes as they come over the wire.
    site.http = Client::builder().no_gzip().build().unwrap();
    site
}

async fn ask(site: &Site, method: Method, path: &str, headers: &[(&str, &str)]) -> Response {
    let request = site.http.request(method, site.url(path));
    headers.iter().fold(request, |request, (name, value)| request.header(*name, *value)).send().await.unwrap()
}

async fn get(site: &Site, path: &str, headers: &[(&str, &str)]) -> Response {
    ask(site, Method::GET, path, headers).await
}

fn header<'a>(response: &'a Response, name: &str) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

fn kind(response: &Response) -> (u16, &str) {
    (response.status().as_u16(), header(response, "content-type"))
}

#[tokio::test]
async fn client_routes_get_the_page_without_a_credential() {
    let site = start(Some(Ui::new(FILES))).await;
    for path in [
        "/",
        "/index.html",
        "/threads/8a6e0804-2bd0-4672-b79d-d97027f9071a",
        "/agents",
        "/agents/",
        "/health",
        "/inbox?tab=1",
    ] {
        let page = get(&site, path, &[("accept", "text/html,*/*;q=0.8")]).await;
        assert_eq!(kind(&page), (200, "text/html; charset=utf-8"), "{path}");
        assert_eq!(header(&page, "cache-control"), "no-cache");
        assert_eq!(page.bytes().await.unwrap(), HTML);
    }
    site.end().await;
}

#[tokio::test]
async fn api_paths_never_get_html() {
    let site = start(Some(Ui::new(FILES))).await;
    for path in [
        "/api",
        "/api/v1/nothing",
        "/API/v1/nothing",
        "/v1/models",
        "/a2a/assistant",
        "/agui/x",
        "/mcp",
        "/.well-known/agent-card.json",
        "/.well-known/openid-configuration",
        "/docs/x",
        "/docs/x/y",
        "/livez/x",
        "/metrics/x",
        "/version/x",
    ] {
        let answer = get(&site, path, &[("accept", "text/html")]).await;
        assert_eq!(kind(&answer), NOT_FOUND, "{path}");
        assert_eq!(problem(answer).await["code"], "not_found");
    }
    assert_eq!(get(&site, "/version", &[("accept", "text/html")]).await.status(), 401);
    assert_eq!(kind(&get(&site, "/livez", &[("accept", "text/html")]).await), (200, "application/json"));
    site.end().await;
}

#[tokio::test]
async fn clients_that_do_not_want_html_and_other_methods_get_a_problem() {
    let site = start(Some(Ui::new(FILES))).await;
    assert_eq!(kind(&get(&site, "/threads", &[("accept", "application/json")]).await), NOT_FOUND);
    for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
        assert_eq!(kind(&ask(&site, method.clone(), "/agents", &[]).await), NOT_FOUND, "{method}");
    }
    site.end().await;
}

#[tokio::test]
async fn encoding_follows_the_weights_of_the_client() {
    let site = start(Some(Ui::new(FILES))).await;
    for (path, accept, encoding, body) in [
        ("/", "gzip, deflate, br, zstd", "br", &b"index br"[..]),
        ("/", "gzip, br;q=0.1", "gzip", b"index gzip"),
        ("/", "br;q=0, gzip;q=0", "", HTML),
        ("/", "identity", "", HTML),
        ("/assets/app-4f2a.js", "*", "br", b"app br"),
        ("/assets/app-4f2a.js", "br;q=0, *", "gzip", b"app gzip"),
        ("/favicon.svg", "br, gzip;q=0.5", "gzip", b"icon gzip"),
        ("/assets/text-77aa.woff2", "br, gzip", "", b"font"),
    ] {
        let answer = get(&site, path, &[("accept-encoding", accept)]).await;
        assert_eq!(header(&answer, "content-encoding"), encoding, "{path} for {accept}");
        assert_eq!(header(&answer, "vary"), "accept-encoding");
        assert_eq!(header(&answer, "content-length"), body.len().to_string());
        assert_eq!(answer.bytes().await.unwrap(), body, "{path} for {accept}");
    }
    let plain = get(&site, "/", &[]).await;
    assert_eq!(plain.bytes().await.unwrap(), HTML);
    site.end().await;
}

#[tokio::test]
async fn assets_are_immutable_and_unknown_ones_are_not_found() {
    let site = start(Some(Ui::new(FILES))).await;
    for (path, media, cache) in [
        ("/assets/app-4f2a.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable"),
        ("/assets/text-77aa.woff2", "font/woff2", "public, max-age=31536000, immutable"),
        ("/favicon.svg", "image/svg+xml", "no-cache"),
    ] {
        let file = get(&site, path, &[]).await;
        assert_eq!((kind(&file), header(&file, "cache-control")), ((200, media), cache), "{path}");
    }
    for path in [
        "/assets/app-old.js",
        "/assets/app-4f2a.js.br",
        "/assets/",
        "/assets",
        "/robots.txt",
        "/assets/x/app",
    ] {
        let answer = get(&site, path, &[]).await;
        let expected = if path == "/assets" { (200, "text/html; charset=utf-8") } else { NOT_FOUND };
        assert_eq!(kind(&answer), expected, "{path}");
        if path != "/assets" {
            assert_eq!(header(&answer, "cache-control"), "no-store", "{path}");
        }
    }
    site.end().await;
}

/// A 304 replaces stored headers, so it has to carry the page's own policy and not that of other answers.
#[tokio::test]
async fn known_versions_are_not_sent_again() {
    let site = start(Some(Ui::new(FILES))).await;
    let first = get(&site, "/agents", &[("accept-encoding", "br")]).await;
    let etag = header(&first, "etag").to_owned();
    assert_eq!(etag, "\"0a1b-br\"");
    let again = get(&site, "/agents", &[("accept-encoding", "br"), ("if-none-match", &etag)]).await;
    assert_eq!(again.status(), 304);
    for name in ["etag", "cache-control", "vary", "content-security-policy", "cross-origin-opener-policy"] {
        assert_eq!(header(&again, name), header(&first, name), "{name}");
    }
    assert!(
        !again.headers().contains_key("content-type") && !again.headers().contains_key("content-encoding")
    );
    assert!(again.bytes().await.unwrap().is_empty());
    let weak = format!("\"other\", W/{etag}");
    assert_eq!(get(&site, "/", &[("accept-encoding", "br"), ("if-none-match", &weak)]).await.status(), 304);
    // Another encoding, or another version, is other bytes.
    assert_eq!(get(&site, "/", &[("if-none-match", &etag)]).await.status(), 200);
    assert_eq!(get(&site, "/", &[("if-none-match", "\"ffff\"")]).await.status(), 200);
    let head = ask(&site, Method::HEAD, "/", &[("if-none-match", "\"0a1b\"")]).await;
    assert_eq!(head.status(), 304);
    site.end().await;
}

#[tokio::test]
async fn head_has_the_headers_of_get_and_no_body() {
    let site = start(Some(Ui::new(FILES))).await;
    for path in ["/", "/runs", "/assets/app-4f2a.js"] {
        let asked = [("accept-encoding", "gzip")];
        let (head, get) = (ask(&site, Method::HEAD, path, &asked).await, get(&site, path, &asked).await);
        for name in ["content-type", "content-length", "content-encoding", "etag", "cache-control", "vary"] {
            assert!(!header(&get, name).is_empty(), "{path} {name}");
            assert_eq!(header(&head, name), header(&get, name), "{path} {name}");
        }
        assert_eq!(head.status(), 200);
        assert!(head.bytes().await.unwrap().is_empty());
    }
    site.end().await;
}

#[tokio::test]
async fn page_and_files_run_only_code_of_this_server() {
    let site = start(Some(Ui::new(FILES))).await;
    for path in ["/", "/patterns", "/assets/app-4f2a.js", "/favicon.svg"] {
        let answer = get(&site, path, &[]).await;
        for (name, value) in [
            ("content-security-policy", POLICY),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("referrer-policy", "no-referrer"),
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
        ] {
            assert_eq!(header(&answer, name), value, "{path} {name}");
        }
        assert_eq!(answer.headers().get_all("content-security-policy").iter().count(), 1);
    }
    site.end().await;
}

#[tokio::test]
async fn hostile_paths_are_not_found() {
    let site = start(Some(Ui::new(FILES))).await;
    let long = format!("/{}", "a".repeat(5000));
    let deep = "/a".repeat(2000);
    for path in [
        "/..",
        "/../etc/passwd",
        "/assets/../index.html",
        "/assets/..%2findex.html",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/.%2e/x",
        "/%00",
        "/threads/%00",
        "/assets/app-4f2a.js%00",
        "/%0d%0aset-cookie:x",
        "//",
        "//evil.example/x",
        "/a//b",
        "/%2fapi/v1",
        "/%",
        "/%zz",
        "/%ff%fe",
        "/\\..\\x",
        "/.git/config",
        "/.env",
        &long,
        &deep,
    ] {
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: localhost\r\nAccept: text/html\r\nConnection: close\r\n\r\n"
        );
        let answer = exchange(site.address, request).await;
        let is_refused = answer.starts_with("HTTP/1.1 404") && answer.contains("application/problem+json");
        assert!(is_refused || answer.starts_with("HTTP/1.1 400"), "{path}: {answer}");
        assert!(!answer.contains("<!doctype"), "{path}");
    }
    assert_eq!(get(&site, &format!("/{}", "a".repeat(9000)), &[]).await.status(), 414);
    for odd in ["\u{e4}", ";q=;q=;,", "br;q=9999999999999999999999", "br;q=-1", "\"", "W/", "W/\""] {
        let named = ["accept", "accept-encoding", "if-none-match"].map(|name| (name, odd));
        assert!(get(&site, "/assets/app-4f2a.js", &named).await.status().is_success(), "{odd}");
    }
    assert_eq!(get(&site, "/livez", &[]).await.status(), 200);
    site.end().await;
}

#[tokio::test]
async fn page_that_was_not_built_is_explained() {
    let site = start(Some(Ui::new(&[]))).await;
    let page = get(&site, "/", &[("accept", "text/html")]).await;
    assert_eq!(kind(&page), (200, "text/html; charset=utf-8"));
    assert_eq!(header(&page, "cache-control"), "no-store");
    let policy = header(&page, "content-security-policy").to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("script-src") && !policy.contains("unsafe"), "{policy}");
    let html = page.text().await.unwrap();
    for expected in ["make run", "npm --prefix ui install", "npm --prefix ui run build", "href=\"/docs\""] {
        assert!(html.contains(expected), "{expected}");
    }
    assert!(!html.contains("<script") && !html.contains("style="));
    for path in ["/threads", "/assets/app.js", "/favicon.svg"] {
        assert_eq!(kind(&get(&site, path, &[("accept", "text/html")]).await), NOT_FOUND, "{path}");
    }
    assert_eq!(kind(&get(&site, "/", &[("accept", "application/json")]).await), NOT_FOUND);
    site.end().await;
}

#[tokio::test]
async fn without_the_page_there_is_only_the_api() {
    let site = start(None).await;
    for path in ["/", "/threads", "/index.html", "/assets/app-4f2a.js"] {
        let answer = get(&site, path, &[("accept", "text/html")]).await;
        assert_eq!(kind(&answer), NOT_FOUND, "{path}");
        assert_eq!(problem(answer).await["detail"], "there is no such route; /docs lists them");
    }
    assert_eq!(get(&site, "/docs", &[]).await.status(), 200);
    site.end().await;
}

/// Whatever is embedded in this build can be served.
#[tokio::test]
async fn embedded_page_answers() {
    let site = start(Some(Ui::embedded())).await;
    let page = get(&site, "/", &[("accept", "text/html")]).await;
    assert_eq!(kind(&page), (200, "text/html; charset=utf-8"));
    let html = page.text().await.unwrap();
    for path in html.split('"').filter(|text| text.starts_with("/assets/")) {
        assert_eq!(get(&site, path, &[("accept-encoding", "br")]).await.status(), 200, "{path}");
    }
    site.end().await;
}
