//! `validate_skill`: whether a draft keeps the rules and would be used when it should.

use std::path::Path;
use std::sync::Arc;

use baton_core::agent::SkillName;
use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::offload::offload;
use crate::schema::{arguments, object};
use crate::skills::triggers::{Trial, Verdict, try_all};
use crate::skills::{Severity, Skills, Strictness, head, read_file, slug, validate};

#[derive(Debug)]
pub struct ValidateSkill {
    spec: ToolSpec,
    skills: Skills,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Arguments {
    name: String,
}

impl Arguments {
    /// The same name as the draft got, however it is written.
    pub(crate) fn name(&self) -> Result<SkillName, ToolError> {
        slug(&self.name).ok_or_else(|| ToolError::InvalidArguments("`name` is empty".to_owned()))
    }
}

impl ValidateSkill {
    pub fn new(skills: Skills) -> Self {
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
            let name = arguments::<Arguments>(input)?.name()?;
            let text = offload(move |_| report(&name, &skills.find(&context.tenant, &name)?));
            Ok(text.await?.into())
        })
    }
}

fn report(name: &SkillName, folder: &Path) -> Result<String, ToolError> {
    let problems = validate(folder, Strictness::Strict);
    let mut lines: Vec<String> = problems.iter().map(|problem| format!("- {problem}")).collect();
    let mut errors = problems.iter().filter(|problem| problem.severity == Severity::Error).count();
    let text = read_file(folder).unwrap_or_default();
    if let Ok((head, _)) = head::read(&text) {
        let trials = try_all(&head);
        errors += trials.iter().filter(|trial| matches!(trial.verdict, Verdict::Contradiction(_))).count();
        lines.extend(trials.iter().map(line));
    }
    let details = lines.join("\n");
    match errors {
        0 => Ok(format!("`{}` is valid.\n{details}", name.as_str()).trim_end().to_owned()),
        _ => Err(ToolError::Execution(format!(
            "`{}` is not valid, {errors} to correct:\n{details}",
            name.as_str()
        ))),
    }
}

fn line(trial: &Trial) -> String {
    let what = if trial.should { "trigger" } else { "near miss" };
    let note = match &trial.verdict {
        Verdict::Good => "good".to_owned(),
        Verdict::Doubtful(why) => format!("warning: {why}"),
        Verdict::Contradiction(why) => format!("error: {why}"),
    };
    format!("- {what} “{}”, {} % of its words known: {note}", trial.prompt, trial.percent)
}
