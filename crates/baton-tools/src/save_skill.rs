//! `save_skill`: a draft becomes a skill that agents can use.

use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use crate::schema::{arguments, object};
use crate::skills::{Saved, SkillLibrary};
use crate::validate_skill::ValidateSkillArguments;

#[derive(Debug)]
pub struct SaveSkill {
    spec: ToolSpec,
    skills: SkillLibrary,
}

impl SaveSkill {
    pub fn new(skills: SkillLibrary) -> Self {
        let spec = ToolSpec {
            name: "save_skill".to_owned(),
            description: "Saves the draft of a skill, so that agents can use it from now on. Refused when the draft breaks the \
                          rules or the name was taken meanwhile. Saving again changes nothing. Call it only after the person \
                          confirmed."
                .to_owned(),
            parameters: object(
                json!({"name": {"type": "string", "minLength": 1, "description": "The name of the draft, such as slack-alert"}}),
                &["name"],
            ),
            effect: Effect::Repeatable,
            risk: Risk::Medium,
            timeout: HumanDuration::from_secs(30),
        };
        Self { spec, skills }
    }
}

impl Tool for SaveSkill {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let skills = self.skills.clone();
        Box::pin(async move {
            let name = arguments::<ValidateSkillArguments>(input)?.name()?;
            let saved = skills.save(&context, &name).await?;
            let name = name.as_str();
            let text = match saved {
                Saved::Now => format!("Saved the skill `{name}`. It can be used from now on."),
                Saved::Before => format!("The skill `{name}` was saved before. It can be used."),
            };
            Ok(ToolOutput::from(text).with_artifact(name))
        })
    }
}
