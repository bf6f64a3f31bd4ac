//! How a request reads on a terminal.

use baton_core::store::{Approval, ApprovalKind, ApprovalRequest, ApprovalStatus};
use baton_engine::recorded::agents_of;
use serde_json::Value;

use crate::progress::AgentNames;
use crate::report::table::{facts, line};
use crate::report::{figures, visible};

/// Longer values are cut where a person decides. They have to ask for all of it before they can approve the call.
const SHOWN_CHARS: usize = 4000;

/// Who asks, and through whom: `Assistant › Worker`.
pub(crate) fn agents(path: &str, names: &AgentNames) -> String {
    let name = |id: &str| {
        let known = names.iter().find(|(name, _)| name.as_str() == id);
        line(known.map_or(id, |(_, display_name)| display_name))
    };
    agents_of(path).map(name).collect::<Vec<_>>().join(" › ")
}

/// One line: the question, or the call with its arguments.
pub(crate) fn summary(request: &ApprovalRequest) -> String {
    match request.kind {
        ApprovalKind::Question => request.preview.heading.clone(),
        ApprovalKind::Tool => format!("{} {}", request.tool, request.arguments),
    }
}

/// What is asked, as several lines for the person who decides now.
pub(crate) fn asked(request: &ApprovalRequest, names: &AgentNames) -> String {
    let bold = anstyle::Style::new().bold();
    let who = agents(&request.path, names);
    let left = figures::took(Some(jiff::Timestamp::now()), Some(request.expires_at)).unwrap_or_default();
    let left = figures::stretch(left);
    match request.kind {
        ApprovalKind::Question => {
            let question = visible(&request.preview.heading);
            let choices = request.choices.iter().enumerate();
            let choices: String =
                choices.map(|(at, choice)| format!("\n  {}. {}", at + 1, line(choice))).collect();
            format!("{bold}? {who} asks:{bold:#} {question}{choices}")
        }
        ApprovalKind::Tool => {
            let tool = line(&request.tool);
            let head = format!(
                "{bold}? {who} wants to use {tool}{bold:#} ({} risk, expires in {left})",
                request.risk
            );
            format!("{head}{}\n{}", heading(request), arguments(&request.arguments, SHOWN_CHARS).trim_end())
        }
    }
}

/// Whether [`asked`] does not show all of the arguments.
pub(crate) fn is_cut(request: &ApprovalRequest) -> bool {
    let is_long = |value: &Value| plain(value).chars().count() > SHOWN_CHARS;
    request.kind == ApprovalKind::Tool
        && match &request.arguments {
            Value::Object(values) => values.values().any(is_long),
            other => is_long(other),
        }
}

/// The arguments, with nothing left out.
pub(crate) fn whole_arguments(request: &ApprovalRequest) -> String {
    arguments(&request.arguments, usize::MAX).trim_end().to_owned()
}

/// The heading of the preview, if it says more than the name of the tool.
fn heading(request: &ApprovalRequest) -> String {
    match line(&request.preview.heading) {
        heading if heading.is_empty() || heading.ends_with(&request.tool) => String::new(),
        heading => format!("\n  {heading}"),
    }
}

/// Names and values, each value below the first line of the one before it.
fn arguments(value: &Value, most: usize) -> String {
    let Value::Object(values) = value else { return format!("  {}\n", text(value, most)) };
    if values.is_empty() {
        return "  without arguments\n".to_owned();
    }
    let width = values.keys().map(|name| line(name).chars().count()).max().unwrap_or(0);
    let dim = anstyle::Style::new().dimmed();
    let indent = " ".repeat(width + 4);
    let row = |(name, value): (&String, &Value)| {
        let value = text(value, most).replace('\n', &format!("\n{indent}"));
        format!("  {dim}{:width$}{dim:#}  {value}\n", line(name))
    };
    values.iter().map(row).collect()
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn text(value: &Value, most: usize) -> String {
    let text = plain(value);
    let count = text.chars().count();
    if count <= most {
        return visible(&text);
    }
    let begin: String = text.chars().take(most).collect();
    format!("{}… ({} more characters)", visible(&begin), count - most)
}

/// Everything about a request.
pub(crate) fn whole(approval: &Approval, names: &AgentNames) -> String {
    let (request, outcome) = (&approval.request, &approval.outcome);
    let is_open = outcome.status == ApprovalStatus::Pending;
    let mut said = vec![
        ("id", request.approval_id.to_string()),
        ("status", outcome.status.to_string()),
        ("agent", agents(&request.path, names)),
        ("tool", request.tool.clone()),
        ("risk", request.risk.to_string()),
        (
            "question",
            if request.kind == ApprovalKind::Question {
                request.preview.heading.clone()
            } else {
                String::new()
            },
        ),
        ("choices", request.choices.join(", ")),
        ("thread", approval.thread_id.to_string()),
        ("run", approval.run_id.to_string()),
        ("asked", figures::moment(request.created_at)),
        ("expires", if is_open { figures::moment(request.expires_at) } else { String::new() }),
        ("decided", outcome.decided_at.map(figures::moment).unwrap_or_default()),
        ("by", outcome.decided_by.as_ref().map(ToString::to_string).unwrap_or_default()),
        ("reason", outcome.reason.clone().unwrap_or_default()),
        ("answer", outcome.answer.as_ref().map(|answer| text(answer, usize::MAX)).unwrap_or_default()),
    ];
    said.retain(|(_, value)| !value.is_empty());
    let edited =
        outcome.edited.as_ref().map(|edited| format!("changed to\n{}", arguments(edited, usize::MAX)));
    let asked = arguments(&request.arguments, usize::MAX);
    format!("{}arguments\n{asked}{}", facts(&said), edited.unwrap_or_default())
}

/// What settles the requests that a run waits for, one line each, for a person who cannot be asked here.
pub(crate) fn decision_hints(requests: &[ApprovalRequest]) -> Vec<String> {
    let one = |request: &ApprovalRequest| {
        let id = request.approval_id;
        match request.kind {
            ApprovalKind::Question => format!(
                "waiting for an answer to \"{}\": `baton approvals answer {id} TEXT`",
                line(&request.preview.heading)
            ),
            ApprovalKind::Tool => format!(
                "waiting for a decision about {} ({} risk): `baton approvals approve {id}` or `baton approvals deny {id}`",
                line(&request.tool),
                request.risk
            ),
        }
    };
    requests.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use baton_core::AgentName;
    use baton_core::store::ApprovalPreview;
    use baton_core::tool::Risk;
    use serde_json::json;

    use super::*;

    fn request() -> ApprovalRequest {
        let (path, agent) =
            ("assistant/turn:1/tool:1/call:worker/turn:1/tool:1", AgentName::parse("worker").unwrap());
        let arguments = json!({"path": "notes.md", "content": "one\ntwo\u{1b}[2J"});
        ApprovalRequest {
            risk: Risk::Medium,
            ..ApprovalRequest::of_call(path, agent, "write_file", arguments)
        }
    }

    #[test]
    fn a_call_is_shown_with_its_path_and_whole_arguments() {
        let names = AgentNames::from([(AgentName::parse("assistant").unwrap(), "Assistant".to_owned())]);
        let shown = anstream::adapter::strip_str(&asked(&request(), &names)).to_string();
        assert!(
            shown.starts_with("? Assistant › worker wants to use write_file (medium risk, expires in "),
            "{shown}"
        );
        // Control characters of a model must not reach the terminal.
        assert!(shown.ends_with("  content  one\n           two\\u{1b}[2J"), "{shown}");
        assert!(shown.contains("\n  path     notes.md\n"), "{shown}");
    }

    #[test]
    fn long_values_say_what_is_missing() {
        let long = ApprovalRequest { arguments: json!({"text": "x".repeat(SHOWN_CHARS + 5)}), ..request() };
        assert!(asked(&long, &AgentNames::new()).ends_with("x… (5 more characters)"));
        assert!(is_cut(&long) && !is_cut(&request()));
        assert!(whole_arguments(&long).ends_with(&"x".repeat(SHOWN_CHARS + 5)));
    }

    #[test]
    fn a_question_lists_its_choices() {
        let question = ApprovalRequest {
            kind: ApprovalKind::Question,
            preview: ApprovalPreview { heading: "Which day?".to_owned(), fields: Vec::new() },
            choices: vec!["Monday".to_owned(), "Tuesday".to_owned()],
            ..request()
        };
        let shown = anstream::adapter::strip_str(&asked(&question, &AgentNames::new())).to_string();
        assert_eq!(shown, "? assistant › worker asks: Which day?\n  1. Monday\n  2. Tuesday");
        let hint = &decision_hints(&[question])[0];
        assert!(hint.contains("baton approvals answer 00000000-0000-0000-0000-000000000000 TEXT"), "{hint}");
    }
}
