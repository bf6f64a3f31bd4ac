//! `validate_skill`: whether a draft keeps the rules and would be used when it should.

use std::sync::Arc;

use baton_core::agent::SkillName;
use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::schema::{arguments, object};
use crate::skills::check::validate_text;
use crate::skills::triggers::{Trial, TriggerVerdict, try_all};
use crate::skills::{CheckSeverity, SkillLibrary, SkillProblem, SkillStrictness, head, slug};

#[derive(Debug)]
pub struct ValidateSkill {
    spec: ToolSpec,
    skills: SkillLibrary,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ValidateSkillArguments {
    name: String,
}

impl ValidateSkillArguments {
    /// The same name as the draft got, however it is written.
    pub(crate) fn name(&self) -> Result<SkillName, ToolError> {
        slug(&self.name).ok_or_else(|| ToolError::InvalidArguments("`name` is empty".to_owned()))
    }
}

impl ValidateSkill {
    pub fn new(skills: SkillLibrary) -> Self {
        let spec = ToolSpec {
            name: "validate_skill".to_owned(),
            description: "Checks the draft of a skill against the rules of Agent Skills and tries its triggers and near misses. \
                          Fails with a report when something must be corrected; a report with warnings only is a pass. A \
                          saved skill is checked when there is no draft of that name."
                .to_owned(),
            parameters: object(
                json!({"name": {"type": "string", "minLength": 1, "description": "The name of the skill, such as slack-alert"}}),
                &["name"],
            ),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: HumanDuration::from_secs(30),
        };
        Self { spec, skills }
    }
}

impl Tool for ValidateSkill {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let skills = self.skills.clone();
        Box::pin(async move {
            let name = arguments::<ValidateSkillArguments>(input)?.name()?;
            let (folder, text) = skills.find(&context, &name).await?;
            Ok(report(&name, &folder, &text)?.into())
        })
    }
}

/// For people too: it is shown in the conversation.
fn report(name: &SkillName, folder: &str, text: &str) -> Result<String, ToolError> {
    let problems = validate_text(text, folder, SkillStrictness::Strict);
    let trials = head::read(text).map(|(head, _)| try_all(&head)).unwrap_or_default();
    let is_error = |problem: &&SkillProblem| problem.severity == CheckSeverity::Error;
    let contradictions = trials.iter().filter(|trial| trial.is_contradiction()).count();
    let errors = problems.iter().filter(is_error).count() + contradictions;
    let details = [
        listed("To correct:", problems.iter().filter(is_error).map(|problem| problem.message.clone())),
        listed(
            "Advice:",
            problems.iter().filter(|problem| !is_error(problem)).map(|problem| problem.message.clone()),
        ),
        listed("It should be used for:", trials.iter().filter(|trial| trial.should).map(line)),
        listed("It should leave alone:", trials.iter().filter(|trial| !trial.should).map(line)),
    ];
    let details = details.concat();
    let name = name.as_str();
    match errors {
        0 => Ok(format!("`{name}` keeps the rules of Agent Skills.{details}")),
        1 => {
            Err(ToolError::Execution(format!("`{name}` is not ready, one thing must be corrected.{details}")))
        }
        _ => Err(ToolError::Execution(format!(
            "`{name}` is not ready, {errors} things must be corrected.{details}"
        ))),
    }
}

fn listed(heading: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("\n- {item}")).collect();
    if items.is_empty() { items } else { format!("\n\n{heading}\n{items}") }
}

fn line(trial: &Trial) -> String {
    match &trial.verdict {
        TriggerVerdict::Good => format!("✓ “{}”", trial.prompt),
        TriggerVerdict::Doubtful(why) => format!("? “{}”: {why}", trial.prompt),
        TriggerVerdict::Contradiction(why) => format!("✗ “{}”: {why}", trial.prompt),
    }
}
