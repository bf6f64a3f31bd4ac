//! A skill as a person described it, written as a `SKILL.md`.

use baton_core::ToolError;
use baton_core::agent::SkillName;
use serde::Deserialize;

use super::slug;
use super::wording::{OneOrMany, capital, clean, cut, for_head, quoted, sentence};

/// Together; a skill that needs more has files beside it.
const MAX_CHARS: usize = 16_000;
const MAX_ITEMS: usize = 100;
const MAX_DESCRIPTION_CHARS: usize = 1_024;
/// Leaves room for when to use the skill.
const MAX_PURPOSE_CHARS: usize = 500;
const MAX_EXAMPLE_CHARS: usize = 160;

/// What was collected, as it was said.
#[derive(Debug, Clone, Default, Deserialize)]
pub struct Wishes {
    pub name: String,
    pub purpose: String,
    pub steps: OneOrMany,
    pub description: Option<String>,
    pub format: Option<String>,
    pub triggers: Option<OneOrMany>,
    pub non_triggers: Option<OneOrMany>,
    pub example: Option<String>,
}

/// What can be written: everything clean, nothing needed missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillDraft {
    pub name: SkillName,
    title: String,
    purpose: String,
    description: Option<String>,
    steps: Vec<String>,
    format: String,
    triggers: Vec<String>,
    non_triggers: Vec<String>,
    example: Vec<String>,
}

impl SkillDraft {
    pub fn new(wishes: &Wishes) -> Result<Self, ToolError> {
        let missing = |what: &str| ToolError::InvalidArguments(format!("`{what}` is empty"));
        check_size(wishes)?;
        let draft = Self {
            name: slug(&wishes.name).ok_or_else(|| missing("name"))?,
            title: title(&wishes.name),
            purpose: capital(&clean(&wishes.purpose)),
            description: wishes.description.as_deref().map(for_head).filter(|text| !text.is_empty()),
            steps: wishes.steps.steps(),
            format: clean(wishes.format.as_deref().unwrap_or_default()),
            triggers: wishes.triggers.clone().unwrap_or_default().examples(),
            non_triggers: wishes.non_triggers.clone().unwrap_or_default().examples(),
            example: wishes.example.as_deref().unwrap_or_default().lines().map(clean).collect(),
        };
        let items = draft.steps.len() + draft.triggers.len() + draft.non_triggers.len() + draft.example.len();
        match () {
            () if draft.purpose.is_empty() => Err(missing("purpose")),
            () if draft.steps.is_empty() => Err(missing("steps")),
            () if items > MAX_ITEMS => {
                Err(ToolError::Limit(format!("a skill has at most {MAX_ITEMS} steps and examples")))
            }
            () => Ok(draft),
        }
    }

    /// What the skill does, and when to use it.
    pub fn description(&self) -> String {
        let what = self
            .description
            .clone()
            .unwrap_or_else(|| sentence(&cut(&for_head(&self.purpose), MAX_PURPOSE_CHARS)));
        let mut text = cut(&what, MAX_DESCRIPTION_CHARS - 200);
        if self.description.is_none() {
            text += &format!(" Use when the person asks for {}", cut(&for_head(&self.title), 80));
            text.push('.');
        }
        for (index, trigger) in self.triggers.iter().enumerate() {
            let trigger = cut(&for_head(trigger), MAX_EXAMPLE_CHARS);
            let more =
                if index == 0 { format!(" Examples: “{trigger}”") } else { format!(", “{trigger}”") };
            if text.chars().count() + more.chars().count() >= MAX_DESCRIPTION_CHARS {
                break;
            }
            text += &more;
        }
        // Pieces that were safe alone may touch.
        cut(&for_head(&sentence(&text)), MAX_DESCRIPTION_CHARS)
    }

    /// The whole file.
    pub fn file(&self) -> String {
        let mut metadata = String::new();
        for (key, examples) in
            [("baton.triggers", &self.triggers), ("baton.non_triggers", &self.non_triggers)]
        {
            if !examples.is_empty() {
                metadata += &format!("  {key}: {}\n", quoted(&joined(examples)));
            }
        }
        let metadata = if metadata.is_empty() { metadata } else { format!("metadata:\n{metadata}") };
        let (name, description) = (yaml_name(self.name.as_str()), quoted(&self.description()));
        format!("---\nname: {name}\ndescription: {description}\n{metadata}---\n\n{}", self.body())
    }

    fn body(&self) -> String {
        let steps: String = self
            .steps
            .iter()
            .enumerate()
            .map(|(at, step)| format!("{}. {}\n", at + 1, sentence(step)))
            .collect();
        format!(
            "# {}\n\n{}\n{}\n## Steps\n\n{steps}\n## Result\n\n{}\n\n## Example\n\n{}\n## When something is missing\n\n\
             Ask one short question for what the steps need and the request does not say. Do not guess about anything \
             that sends, deletes, pays or publishes.\n",
            self.title,
            sentence(&self.purpose),
            self.when(),
            self.result(),
            self.worked_example(),
        )
    }

    fn when(&self) -> String {
        let list = |intro: &str, examples: &[String]| {
            let items: String = examples.iter().map(|example| format!("- {example}\n")).collect();
            if examples.is_empty() { String::new() } else { format!("\n{intro}\n\n{items}") }
        };
        let use_it = list("Use it for requests such as:", &self.triggers);
        let leave_it = list("Leave these alone; they want something else:", &self.non_triggers);
        if use_it.is_empty() && leave_it.is_empty() {
            String::new()
        } else {
            format!("\n## When to use it\n{use_it}{leave_it}")
        }
    }

    fn result(&self) -> String {
        match self.format.to_lowercase().as_str() {
            "" => {
                "Give the result in the form that fits the request best, without comments about these steps."
                    .to_owned()
            }
            "bullets" => {
                "Give the result as a short list of bullet points, the most important one first.".to_owned()
            }
            "paragraphs" => "Give the result as short paragraphs of plain text.".to_owned(),
            "table" => "Give the result as a Markdown table with a heading for each column.".to_owned(),
            "message" => "Give the result as one message that can be sent as it is.".to_owned(),
            "file" => "Write the result into a file, and say where it is.".to_owned(),
            _ => format!("The result looks like this: {}", sentence(&self.format)),
        }
    }

    fn worked_example(&self) -> String {
        let request =
            self.triggers.first().map(|trigger| format!("Request: {trigger}\n\n")).unwrap_or_default();
        let quoted: String = self.example.iter().map(|line| format!("> {line}\n")).collect();
        if self.example.iter().all(String::is_empty) {
            let first = self.steps.first().map(String::as_str).unwrap_or_default();
            format!(
                "{request}Begin with step 1 ({}), go through the steps in order, and give only the result.\n",
                cut(first, 80)
            )
        } else {
            format!("{request}{quoted}")
        }
    }
}

fn check_size(wishes: &Wishes) -> Result<(), ToolError> {
    let texts = [
        Some(&wishes.name),
        Some(&wishes.purpose),
        wishes.description.as_ref(),
        wishes.format.as_ref(),
        wishes.example.as_ref(),
    ];
    let lists = [Some(&wishes.steps), wishes.triggers.as_ref(), wishes.non_triggers.as_ref()];
    let chars: usize = texts.iter().flatten().map(|text| text.chars().count()).sum();
    let all = chars + lists.iter().flatten().map(|texts| texts.chars()).sum::<usize>();
    if all > MAX_CHARS {
        return Err(ToolError::Limit(format!(
            "a skill is written from at most {MAX_CHARS} characters; put long material into files beside it"
        )));
    }
    Ok(())
}

/// The friendly form of the name.
fn title(name: &str) -> String {
    let title = cut(&clean(name), 80);
    if title.is_empty() { "Skill".to_owned() } else { title }
}

fn joined(examples: &[String]) -> String {
    let safe: Vec<String> = examples.iter().map(|example| for_head(&example.replace(';', ","))).collect();
    for_head(&safe.join("; "))
}

/// Quoted where YAML would read something else than a text.
fn yaml_name(name: &str) -> String {
    let is_word = matches!(name, "null" | "true" | "false" | "yes" | "no" | "on" | "off" | "y" | "n");
    if is_word || name.starts_with(|c: char| c.is_ascii_digit()) { quoted(name) } else { name.to_owned() }
}
