//! The description of the API holds what it promises.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::Command;

use baton_models::scripted::Scripted;
use serde_json::Value;

use crate::described::{document, resolve};
use crate::site::Plan;

const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

/// Where the programs are that check descriptions of APIs, and servers against them.
pub fn checkers() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/pip/openapi/bin");
    let is_there = ["python", "schemathesis"].iter().all(|name| folder.join(name).exists());
    assert!(is_there, "the OpenAPI checkers are not installed: run scripts/setup.sh test");
    folder
}

/// Every route with its method, as `GET /path`, and what is said about it.
fn operations(document: &Value) -> Vec<(String, &Value)> {
    let paths = document["paths"].as_object().unwrap();
    let all = paths.iter().flat_map(|(path, item)| {
        METHODS.iter().filter_map(move |method| {
            let name = format!("{} {path}", method.to_uppercase());
            item.get(method).map(|operation| (name, operation))
        })
    });
    all.collect()
}

/// Who may do what is seen in every review that changes it.
#[test]
fn permissions_of_all_routes() {
    let document = document();
    let mut lines: Vec<String> = operations(&document)
        .iter()
        .map(|(name, operation)| format!("{name} → {}", operation["x-permission"].as_str().expect(name)))
        .collect();
    lines.sort_by_key(|line| line.split_once(' ').map(|(method, path)| (path.to_owned(), method.to_owned())));
    insta::assert_snapshot!("permissions", lines.join("\n"));
}

#[test]
fn every_route_says_what_it_is_about_and_what_it_answers() {
    let document = document();
    let known: BTreeSet<&str> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    let mut ids = BTreeSet::new();
    for (name, operation) in operations(&document) {
        let id = operation["operationId"].as_str().unwrap_or_else(|| panic!("{name} has no operationId"));
        assert!(ids.insert(id), "two routes are called {id}");
        assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{name} says nothing");
        let tag = operation["tags"][0].as_str().unwrap_or_default();
        assert!(known.contains(tag), "{name} is in the group {tag:?}, which nobody describes");
        for (status, response) in operation["responses"].as_object().unwrap() {
            let response = resolve(&document, response);
            let is_said = response["description"].as_str().is_some_and(|text| !text.is_empty());
            assert!(is_said || status.starts_with('2'), "{name} does not say what {status} means");
            let media: Vec<_> =
                response["content"].as_object().into_iter().flatten().map(|(media, _)| media).collect();
            if status.starts_with(['4', '5']) {
                assert_eq!(media, ["application/problem+json"], "{name} {status}");
            }
        }
    }
}

#[test]
fn whoever_has_to_sign_in_is_told_so_and_what_else_can_be_refused() {
    let document = document();
    for (name, operation) in operations(&document) {
        let is_public = operation["x-permission"] == "public";
        let security = operation.get("security").unwrap_or(&document["security"]);
        assert_eq!(security[0].get("bearer").is_none(), is_public, "{name}: {security}");
        let usual = ["403", "408", "413", "414", "431", "500", "503"];
        let signed_in = ["400", "401", "429"];
        let body: &[&str] = if operation.get("requestBody").is_some() { &["415"] } else { &[] };
        let expected = usual.iter().chain(signed_in.iter().filter(|_| !is_public)).chain(body);
        for status in expected {
            assert!(operation["responses"].get(status).is_some(), "{name} does not describe {status}");
        }
    }
}

#[test]
fn references_lead_somewhere() {
    fn walk<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Object(entries) => {
                found.extend(entries.get("$ref").and_then(Value::as_str));
                entries.values().for_each(|value| walk(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, found)),
            _ => {}
        }
    }
    let document = document();
    let mut found = BTreeSet::new();
    walk(&document, &mut found);
    assert!(found.len() > 20, "{found:?}");
    for reference in found {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
    }
}

/// Names in braces are the parameters that are described, and ids are never optional.
#[test]
fn parameters_of_paths_are_described() {
    let document = document();
    for (name, operation) in operations(&document) {
        let in_path: BTreeSet<&str> =
            name.split('{').skip(1).filter_map(|rest| rest.split('}').next()).collect();
        let parameters = operation["parameters"].as_array().into_iter().flatten();
        let described = parameters.filter(|parameter| parameter["in"] == "path");
        let described: BTreeSet<&str> = described
            .inspect(|parameter| assert_eq!(parameter["required"], true, "{name}"))
            .map(|parameter| parameter["name"].as_str().unwrap())
            .collect();
        assert_eq!(in_path, described, "{name}");
    }
}

/// Against the schema of the specification, with the validator that most tools use.
#[test]
fn the_document_is_valid_openapi_3_1() {
    let document = document();
    assert_eq!(document["openapi"], "3.1.0");
    let python = checkers().join("python");
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), document.to_string()).unwrap();
    let checked =
        Command::new(python).args(["-m", "openapi_spec_validator"]).arg(file.path()).output().unwrap();
    let said =
        String::from_utf8_lossy(&checked.stdout).into_owned() + &String::from_utf8_lossy(&checked.stderr);
    assert!(checked.status.success(), "{said}");
}

#[tokio::test]
async fn the_page_needs_nothing_from_elsewhere_and_no_credential() {
    let site = Plan::new(&Scripted::default()).required().start().await;
    let page = site.get("/docs").await;
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(
        policy.starts_with("default-src 'none'; script-src 'self';") && !policy.contains("unsafe"),
        "{policy}"
    );
    let html = page.text().await.unwrap();
    assert!(!html.contains("://") && !html.contains("style="), "everything comes from this server");
    for code in baton_server::problem::Code::ALL {
        assert!(html.contains(&format!("id=\"{}\"", code.word())), "{} has no anchor", code.word());
    }
    let mut open: Vec<String> =
        html.split('"').filter(|text| text.starts_with("/docs/")).map(str::to_owned).collect();
    let mut seen = BTreeSet::new();
    while let Some(path) = open.pop() {
        if seen.insert(path.clone()) {
            let file = site.get(&path).await;
            assert_eq!(file.status(), 200, "{path}");
            let text = file.text().await.unwrap();
            let imports = text.split('"').filter(|text| text.starts_with("./"));
            open.extend(imports.map(|name| format!("/docs/{}", &name[2..])));
        }
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
    assert_eq!(site.get("/docs/secret.txt").await.status(), 404);
    assert_eq!(site.get("/openapi.json").await.status(), 401);
    let viewer = site.visitor("ann", "viewer").await.get("/openapi.json").await;
    assert_eq!(viewer.json::<Value>().await.unwrap(), document());
    site.end().await;
}
