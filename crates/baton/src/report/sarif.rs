//! SARIF 2.1.0, which code-scanning services read.

use std::path::Path;

use baton_agents::{Diagnostic, Location, Rule, Severity};
use baton_core::choice::Choice as _;
use serde_json::{Value, json};

use super::ValidationReport;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

pub fn render(report: &ValidationReport) -> Value {
    let rules: Vec<Value> = Rule::ALL.iter().map(|(word, rule)| rule_entry(word, *rule)).collect();
    let results: Vec<Value> = report.problems.iter().map(result).collect();
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": { "driver": { "name": "baton", "semanticVersion": env!("CARGO_PKG_VERSION"), "rules": rules } },
            "columnKind": "unicodeCodePoints",
            "results": results,
        }],
    })
}

fn rule_entry(word: &str, rule: Rule) -> Value {
    json!({
        "id": word,
        "shortDescription": { "text": rule.summary() },
        "defaultConfiguration": { "level": level(rule.severity()) },
    })
}

fn result(problem: &Diagnostic) -> Value {
    let mut result = json!({
        "ruleId": problem.rule.word(),
        "level": level(problem.severity),
        "message": { "text": format!("{}. Help: {}", problem.message, problem.help) },
        "locations": [location(&problem.location)],
    });
    if !problem.related.is_empty() {
        let related = problem.related.iter().map(|related| {
            let mut place = location(&related.location);
            place["message"] = json!({ "text": related.message });
            place
        });
        result["relatedLocations"] = related.collect();
    }
    result
}

fn level(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

fn location(location: &Location) -> Value {
    let (start, end) = (location.start(), location.end());
    json!({
        "physicalLocation": {
            "artifactLocation": { "uri": uri(location.path()) },
            "region": {
                "startLine": start.line, "startColumn": start.column, "endLine": end.line, "endColumn": end.column,
            },
        },
    })
}

/// A relative or absolute path as a URI reference.
fn uri(path: &Path) -> String {
    let text = path.to_string_lossy().replace('\\', "/");
    let mut uri = if path.is_absolute() { String::from("file://") } else { String::new() };
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' | b'~' => {
                uri.push(byte.into());
            }
            _ => uri += &format!("%{byte:02X}"),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_become_uris() {
        assert_eq!(uri(Path::new("agents/my agent é.md")), "agents/my%20agent%20%C3%A9.md");
        assert_eq!(uri(Path::new("/a/b.md")), "file:///a/b.md");
    }
}
