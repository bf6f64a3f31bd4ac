//! Every statement that names a table names its tenant as well.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::support::tables_in_schema;

/// Whose SQL is not about one tenant: drivers, migrations, questions that concern all tenants, and tests.
const ELSEWHERE: [&str; 8] =
    ["conformance", "migrate", "migrate.rs", "open.rs", "postgres", "sqlite", "system.rs", "tests.rs"];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        if ELSEWHERE.contains(&name) {
            continue;
        }
        if path.is_dir() {
            sources(&path, found);
        } else {
            found.push(path);
        }
    }
}

/// The text literals of a Rust file, without those of its tests and comments.
fn literals(source: &str) -> Vec<String> {
    let code = source.split("#[cfg(test)]").next().unwrap();
    let lines = code.lines().filter(|line| !line.trim_start().starts_with("//"));
    let code = lines.collect::<Vec<_>>().join("\n").replace("'\"'", "").replace("\\\"", "");
    code.split('"').skip(1).step_by(2).map(str::to_owned).collect()
}

fn tables() -> BTreeSet<String> {
    // Processes belong to no tenant.
    tables_in_schema().filter(|table| *table != "servers" && *table != "duties").map(str::to_owned).collect()
}

/// How often a piece of SQL reads or writes a table.
fn uses(sql: &str, tables: &BTreeSet<String>) -> usize {
    let words: Vec<&str> = sql.split_whitespace().collect();
    let names_table = |pair: &&[&str]| {
        let table = pair[1].trim_matches(|c: char| !c.is_alphanumeric() && c != '_');
        ["FROM", "JOIN", "INTO", "UPDATE"].contains(&pair[0]) && tables.contains(table)
    };
    words.windows(2).filter(names_table).count()
}

#[test]
fn a8_every_statement_names_its_tenant() {
    let tables = tables();
    assert!(tables.len() > 15);
    let (mut files, mut statements) = (Vec::new(), 0);
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    for file in files {
        for sql in literals(&std::fs::read_to_string(&file).unwrap()) {
            let uses = uses(&sql, &tables);
            let words = sql.split_whitespace().collect::<Vec<_>>().join(" ");
            let tenants = words.matches("tenant = $1").count() + words.matches("VALUES ($1,").count();
            assert_eq!(uses, tenants, "{}: {words}", file.display());
            assert!(!words.contains("tenant = $1 OR "), "{}: {words}", file.display());
            statements += usize::from(uses > 0);
        }
    }
    assert!(statements > 80, "only {statements} statements were found");
}

/// The tables that a statement names are found by the word before them (`pending.rs`).
#[test]
fn no_statement_lists_tables_with_commas() {
    let mut files = Vec::new();
    sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    for file in files {
        for sql in literals(&std::fs::read_to_string(&file).unwrap()) {
            let words: Vec<&str> = sql.split_whitespace().collect();
            for at in (0..words.len()).filter(|at| ["FROM", "JOIN"].contains(&words[*at])) {
                let length = if words.get(at + 2) == Some(&"AS") { 3 } else { 1 };
                let table = words[at + 1..].iter().take(length).copied().collect::<Vec<_>>().join(" ");
                assert!(!table.ends_with(','), "{}: {sql}", file.display());
            }
        }
    }
}
