//! `write_skill`: a draft of a skill from what a person said.

use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use crate::schema::{arguments, object, texts};
use crate::skills::SkillLibrary;
use crate::skills::draft::{SkillDraft, Wishes};

#[derive(Debug)]
pub struct WriteSkill {
    spec: ToolSpec,
    skills: SkillLibrary,
}

impl WriteSkill {
    pub fn new(skills: SkillLibrary) -> Self {
        let spec = ToolSpec {
            name: "write_skill".to_owned(),
            description: "Writes a draft of an Agent Skill (SKILL.md) from what was collected, and returns the file. Writing \
                          the same name again replaces the draft; a name that a saved skill has is refused. Nothing is \
                          active before save_skill."
                .to_owned(),
            parameters: object(parameters(), &["name", "purpose", "steps"]),
            effect: Effect::Repeatable,
            risk: Risk::Low,
            timeout: HumanDuration::from_secs(30),
        };
        Self { spec, skills }
    }
}

fn parameters() -> Value {
    json!({
        "name": {"type": "string", "minLength": 1, "description": "What the skill is called, such as Slack Alert; it becomes slack-alert"},
        "purpose": {"type": "string", "minLength": 1, "description": "What the skill does and for whom, in one or two sentences"},
        "steps": texts("The steps from the request to the result, in order; a list, or one text with a line for each"),
        "format": {"type": "string", "description": "How the result looks: bullets, paragraphs, table, message, file, or in your own words"},
        "triggers": texts("Things people say when they want this skill; two to eight"),
        "non_triggers": texts("Similar requests that the skill should leave alone"),
        "example": {"type": "string", "description": "One worked example: a request with its result"},
        "description": {"type": "string", "description": "What it does and when to use it, at most 800 characters, in place of the one made from purpose and name"},
    })
}

impl Tool for WriteSkill {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let skills = self.skills.clone();
        Box::pin(async move {
            let draft = SkillDraft::new(&arguments::<Wishes>(input)?)?;
            let (name, file) = (&draft.name, draft.file());
            skills.write_draft(&context, name, &file).await?;
            let fence = fence(&file);
            let text = format!(
                "Draft of the skill `{}`, not saved yet:\n\n{fence}markdown\n{file}{fence}",
                name.as_str()
            );
            Ok(ToolOutput::from(text).with_artifact(name.as_str()))
        })
    }
}

/// Marks a block of code that nothing in the text ends: people read it in a conversation.
pub(crate) fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    "`".repeat(longest.max(2) + 1)
}
