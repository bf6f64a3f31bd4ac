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
