//! Asks the person at the terminal for a decision.

use baton_core::store::{ApprovalKind, ApprovalRequest};
use baton_engine::{DecisionInput, Verdict};
use serde_json::{Map, Value};

use super::format;
use crate::commands::lines::{InputLine, InputLines};
use crate::exit::Exit;
use crate::report::table::line;
use crate::report::tell;

/// What the person wants.
pub(crate) enum Reply {
    Decided(Box<DecisionInput>),
    /// Not now: the request stays open.
    Later,
    /// Leave the command.
    Leave(Exit),
}

const KEYS: &str = "[a]pprove, [e]dit, [d]eny, approve and [r]emember, [l]ater > ";

/// While a part of the arguments is not shown.
const KEYS_OF_CUT: &str = "[s]how all, [d]eny, [l]ater > ";

/// Asks until there is a reply. What is asked was shown before.
pub(crate) async fn ask(lines: &mut InputLines, request: &ApprovalRequest) -> anyhow::Result<Reply> {
    match request.kind {
        ApprovalKind::Tool => ask_for_decision(lines, request).await,
        ApprovalKind::Question => ask_for_answer(lines, request).await,
    }
}

/// Reads a line, or leaves the function with the reply that ends the prompt.
macro_rules! entered {
    ($line:expr) => {
        match $line {
            InputLine::Said(said) => said.trim().to_owned(),
            InputLine::End => return Ok(Reply::Later),
            InputLine::Interrupted => return Ok(Reply::Leave(Exit::Interrupted)),
            InputLine::Failed(error) => return Err(error),
        }
    };
}

async fn ask_for_decision(lines: &mut InputLines, request: &ApprovalRequest) -> anyhow::Result<Reply> {
    // A call that was not shown completely cannot be approved.
    let mut is_seen = !format::is_cut(request);
    loop {
        let keys = if is_seen { KEYS } else { KEYS_OF_CUT };
        let word = entered!(lines.next(keys.to_owned()).await).to_lowercase();
        let input = match word.as_str() {
            "s" | "show" => {
                tell(&format::whole_arguments(request));
                is_seen = true;
                continue;
            }
            "a" | "approve" | "y" | "yes" | "r" | "remember" | "e" | "edit" if !is_seen => {
                tell("not all of the arguments are shown: s shows them, then you can approve");
                continue;
            }
            "a" | "approve" | "y" | "yes" => decision(request, Verdict::Approve),
            "r" | "remember" => DecisionInput { remember: true, ..decision(request, Verdict::Approve) },
            "d" | "deny" | "n" | "no" => {
                let reason = entered!(lines.next("reason (may be empty) > ".to_owned()).await);
                DecisionInput {
                    reason: Some(reason).filter(|reason| !reason.is_empty()),
                    ..decision(request, Verdict::Deny)
                }
            }
            "e" | "edit" => {
                let initial = request.arguments.to_string();
                let edited = entered!(lines.edit("arguments > ".to_owned(), initial).await);
                match serde_json::from_str(&edited) {
                    Ok(arguments) => {
                        DecisionInput { arguments: Some(arguments), ..decision(request, Verdict::Approve) }
                    }
                    Err(error) => {
                        tell(&format!("this is not JSON: {error}"));
                        continue;
                    }
                }
            }
            "l" | "later" => return Ok(Reply::Later),
            _ => {
                tell(if is_seen { "answer with a, e, d, r or l" } else { "answer with s, d or l" });
                continue;
            }
        };
        return Ok(Reply::Decided(Box::new(input)));
    }
}

async fn ask_for_answer(lines: &mut InputLines, request: &ApprovalRequest) -> anyhow::Result<Reply> {
    let fields = fields_of(&request.schema);
    if !fields.is_empty() {
        return ask_for_fields(lines, request, &fields).await;
    }
    loop {
        let said = entered!(lines.next("answer (/later to decide later) > ".to_owned()).await);
        match said.as_str() {
            "" => {}
            "/later" => return Ok(Reply::Later),
            said => {
                let answer = answer_of(&request.schema, said);
                return Ok(Reply::Decided(Box::new(DecisionInput {
                    answer: Some(answer),
                    ..decision(request, Verdict::Approve)
                })));
            }
        }
    }
}

/// One line for each value of a form.
async fn ask_for_fields(
    lines: &mut InputLines,
    request: &ApprovalRequest,
    fields: &[FormField<'_>],
) -> anyhow::Result<Reply> {
    let mut values = Map::new();
    for field in fields {
        loop {
            let said = entered!(lines.next(field.prompt()).await);
            match said.as_str() {
                "/later" => return Ok(Reply::Later),
                "" if field.is_required => tell("this is required (/later to decide later)"),
                "" => break,
                said => {
                    values.insert(field.name.to_owned(), answer_of(field.schema, said));
                    break;
                }
            }
        }
    }
    Ok(Reply::Decided(Box::new(DecisionInput {
        answer: Some(Value::Object(values)),
        ..decision(request, Verdict::Approve)
    })))
}

/// The digest goes along: the decision holds for the call that was shown.
fn decision(request: &ApprovalRequest, verdict: Verdict) -> DecisionInput {
    DecisionInput { digest: Some(request.digest.clone()), ..DecisionInput::new(verdict) }
}

/// What was typed as the value that the schema asks for: text stays text, anything else is JSON if it can be read as such.
pub(crate) fn answer_of(schema: &Value, said: &str) -> Value {
    let is_text = schema.get("type").is_none_or(|kind| kind == "string");
    let is_listed =
        |value: &Value| schema.get("enum").and_then(Value::as_array).is_some_and(|all| all.contains(value));
    match serde_json::from_str(said) {
        Ok(value) if !is_text || is_listed(&value) => value,
        _ => match (schema.get("type").and_then(Value::as_str), said) {
            (Some("boolean"), "y" | "yes") => Value::Bool(true),
            (Some("boolean"), "n" | "no") => Value::Bool(false),
            (Some("array"), said) => {
                said.split(',').map(|one| Value::String(one.trim().to_owned())).collect()
            }
            (_, said) => Value::String(said.to_owned()),
        },
    }
}

struct FormField<'a> {
    name: &'a str,
    schema: &'a Value,
    is_required: bool,
}

fn fields_of(schema: &Value) -> Vec<FormField<'_>> {
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = |name: &str| required.is_some_and(|all| all.iter().any(|one| one == name));
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.map(|(name, schema)| FormField { name, schema, is_required: is_required(name) }).collect()
}

impl FormField<'_> {
    fn prompt(&self) -> String {
        let word = |key: &str| self.schema.get(key).and_then(Value::as_str).map(line);
        let label = word("title").unwrap_or_else(|| line(self.name));
        let choices = self.schema.get("enum").and_then(Value::as_array);
        let choices = choices.map(|all| {
            let words = all.iter().map(|one| one.as_str().map_or_else(|| one.to_string(), str::to_owned));
            line(&words.collect::<Vec<_>>().join(", "))
        });
        let hint =
            choices.or_else(|| word("description")).map(|hint| format!(" ({hint})")).unwrap_or_default();
        let optional = if self.is_required { "" } else { ", may be empty" };
        format!("{label}{hint}{optional} > ")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn answers_have_the_type_that_is_asked_for() {
        for (schema, said, expected) in [
            (json!({"type": "string"}), "12", json!("12")),
            (json!({}), "true", json!("true")),
            (json!({"type": "integer"}), "12", json!(12)),
            (json!({"type": "boolean"}), "yes", json!(true)),
            (json!({"type": "array"}), "a, b", json!(["a", "b"])),
            (json!({"type": "array"}), "[1]", json!([1])),
            (json!({"enum": [1, 2]}), "2", json!(2)),
            (json!({"type": "object"}), r#"{"a": 1}"#, json!({"a": 1})),
            (json!({"type": "integer"}), "many", json!("many")),
        ] {
            assert_eq!(answer_of(&schema, said), expected, "{said}");
        }
    }

    #[test]
    fn fields_of_a_form_in_order() {
        let schema = json!({"type": "object", "required": ["day"], "properties": {
            "day": {"enum": ["Monday", "Tuesday"]}, "people": {"type": "integer", "title": "How many?"}}});
        let prompts: Vec<String> = fields_of(&schema).iter().map(FormField::prompt).collect();
        assert_eq!(prompts, ["day (Monday, Tuesday) > ", "How many?, may be empty > "]);
        assert!(fields_of(&json!({"type": "string"})).is_empty());
    }
}
