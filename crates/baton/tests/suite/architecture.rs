//! Which crate may use which: the arrows of ARCHITECTURE.md, proven from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Each crate of the workspace with those it may depend on. A new crate has to be added here.
const ALLOWED: &[(&str, &[&str])] = &[
    ("baton-core", &[]),
    ("baton-a2a", &["baton-core"]),
    ("baton-agents", &["baton-core"]),
    ("baton-agui", &["baton-core"]),
    ("baton-engine", &["baton-core", "baton-sanitize"]),
    ("baton-mcp", &["baton-core", "baton-sandbox"]),
    ("baton-sandbox", &[]),
    ("baton-sanitize", &[]),
    (
        "baton-server",
        &["baton-core", "baton-a2a", "baton-agents", "baton-agui", "baton-engine", "baton-sanitize"],
    ),
    ("baton-models", &["baton-core"]),
    ("baton-offline", &["baton-core"]),
    ("baton-store", &["baton-core"]),
    ("baton-tools", &["baton-core", "baton-sandbox"]),
    (
        "baton",
        &[
            "baton-a2a",
            "baton-core",
            "baton-agents",
            "baton-agui",
            "baton-engine",
            "baton-mcp",
            "baton-sandbox",
            "baton-sanitize",
            "baton-server",
            "baton-models",
            "baton-offline",
            "baton-store",
            "baton-tools",
        ],
    ),
    ("baton-bench", &["baton-core", "baton-agents", "baton-models", "baton-store", "baton"]),
    // Knows Baton only by its command and its API.
    ("baton-smoke", &[]),
];

/// What the inner crates never name: network, servers and databases.
const OUTSIDE: &[&str] =
    &["axum", "hyper", "reqwest", "rusqlite", "tokio-postgres", "sqlx", "async-nats", "rmcp"];
const INNER: &[&str] = &["baton-core", "baton-engine", "baton-sanitize"];

/// For each package of the workspace, the names of what it depends on outside of tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata(&["--no-deps"]);
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let packages = metadata["packages"].as_array().expect("packages").iter();
    packages
        .map(|package| {
            let listed = package["dependencies"].as_array().expect("dependencies").iter();
            let normal = listed.filter(|dependency| dependency["kind"] != "dev");
            (text(&package["name"]), normal.map(|dependency| text(&dependency["name"])).collect())
        })
        .collect()
}

/// Only what this machine builds: other platforms' crates need not have been downloaded.
pub(crate) fn metadata(extra: &[&str]) -> Value {
    let rustc = Command::new("rustc").arg("-vV").output().expect("rustc runs");
    let version = String::from_utf8(rustc.stdout).expect("UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("a host");
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--offline", "--locked", "--filter-platform", host])
        .args(extra)
        .current_dir(crate::root())
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

#[test]
fn dependencies_point_inwards() {
    let found = dependencies();
    let known: BTreeSet<&str> = ALLOWED.iter().map(|(name, _)| *name).collect();
    assert_eq!(
        found.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        known,
        "a crate came or went: update ALLOWED"
    );
    for (name, allowed) in ALLOWED {
        let ours = found[*name].iter().map(String::as_str).filter(|dependency| known.contains(dependency));
        let forbidden: Vec<&str> = ours.filter(|dependency| !allowed.contains(dependency)).collect();
        assert!(forbidden.is_empty(), "{name} must not depend on {forbidden:?}");
    }
}

#[test]
fn the_core_knows_no_network_and_no_database() {
    let found = dependencies();
    for name in INNER.iter().filter(|name| found.contains_key(**name)) {
        let outside: Vec<&&str> =
            OUTSIDE.iter().filter(|dependency| found[*name].contains(**dependency)).collect();
        assert!(outside.is_empty(), "{name} must not depend on {outside:?}");
    }
}

#[test]
fn versions_and_lints_come_from_the_workspace() {
    let mut manifests: Vec<_> = std::fs::read_dir(crate::root().join("crates"))
        .expect("crates")
        .map(|entry| entry.expect("a folder").path().join("Cargo.toml"))
        .collect();
    manifests.extend(["bench/Cargo.toml", "smoke/Cargo.toml"].map(|path| crate::root().join(path)));
    for path in manifests {
        let manifest: toml::Table =
            std::fs::read_to_string(&path).expect("a manifest").parse().expect("TOML");
        assert_eq!(manifest["lints"]["workspace"].as_bool(), Some(true), "{}", path.display());
        for section in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let listed = manifest.get(section).and_then(toml::Value::as_table).into_iter().flatten();
            for (name, dependency) in listed {
                let shared = dependency.get("workspace").and_then(toml::Value::as_bool);
                assert_eq!(shared, Some(true), "{name} in {}", path.display());
            }
        }
    }
}

/// What `make` executes for a target.
fn recipe(target: &str, variables: &[&str]) -> String {
    let mut make = Command::new("make");
    make.env_remove("MAKEFLAGS").env_remove("MAKELEVEL").current_dir(crate::root());
    let output = make.arg("-n").arg(target).args(variables).output().expect("make");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// I6: `make lint` and `make test` refuse every warning of every crate and target, no file switches groups of warnings off, and `make smoke`
/// tries the bundled agents with a real model.
#[test]
fn i6_lint_refuses_warnings_and_smoke_asks_a_real_model() {
    for target in ["lint", "test"] {
        let recipe = recipe(target, &[]);
        let clippy = recipe.lines().find(|line| line.contains("clippy")).expect(&recipe);
        assert!(clippy.ends_with("clippy --workspace --all-targets --locked -- -D warnings"), "{clippy}");
    }
    let manifest: toml::Table =
        std::fs::read_to_string(crate::root().join("Cargo.toml")).expect("a manifest").parse().expect("TOML");
    let lints = &manifest["workspace"]["lints"];
    assert_eq!(lints["rust"]["unsafe_code"].as_str(), Some("forbid"));
    assert_eq!(lints["clippy"]["pedantic"]["level"].as_str(), Some("warn"));
    let files = crate::sources();
    let found: Vec<&str> =
        files.iter().filter(|(_, text)| allows_group(text)).map(|(path, _)| path.as_str()).collect();
    assert!(found.is_empty(), "{found:?}");
    let smoke = recipe("smoke", &["MODEL_URL=http://127.0.0.1:1/v1"]);
    assert!(smoke.contains("baton-smoke --model-url \"http://127.0.0.1:1/v1\""), "{smoke}");
}

/// Whether an attribute allows more than single lints.
fn allows_group(text: &str) -> bool {
    const GROUPS: &[&str] = &["warnings", "unused", "clippy::all", "clippy::pedantic", "clippy::correctness"];
    let attributes = text.lines().filter_map(|line| line.trim_start().strip_prefix("#"));
    let mut lints =
        attributes.filter_map(|line| line.split_once("[allow(")).flat_map(|(_, rest)| rest.split(','));
    lints.any(|lint| GROUPS.contains(&lint.trim().trim_end_matches([')', ']'])))
}
