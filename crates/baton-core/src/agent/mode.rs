//! The mode that a conversation is in while an agent holds it, by the agent's display name.

use super::Agent;

/// Last words of a display name that name a role, not an activity.
const ROLE_WORDS: &[&str] = &["assistant", "agent", "bot", "specialist", "helper", "expert"];

impl Agent {
    /// The last word of the display name, if it names a role and does not stand alone.
    pub fn role_word(&self) -> Option<&str> {
        let mut words = self.display_name.split_whitespace();
        let last = words.next_back()?;
        words.next()?;
        ROLE_WORDS.contains(&last.to_lowercase().as_str()).then_some(last)
    }

    /// What users read while the agent holds their thread (K7): "[Skill Creation Mode]" of a Skill Creation Assistant.
    pub fn mode(&self) -> String {
        let name = self.display_name.trim();
        let activity = self.role_word().map_or(name, |role| name[..name.len() - role.len()].trim_end());
        format!("[{activity} Mode]")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::AgentName;

    #[test]
    fn k_7_mode_is_the_display_name_without_its_role() {
        let mode = |display_name: &str| {
            let plain = Agent::plain(AgentName::parse("a").unwrap(), "", "");
            Agent { display_name: display_name.to_owned(), ..plain }.mode()
        };
        assert_eq!(mode("Skill Creation Assistant"), "[Skill Creation Mode]");
        assert_eq!(mode(" Form helper "), "[Form Mode]");
        assert_eq!(
            (mode("Assistant"), mode("Billing")),
            ("[Assistant Mode]".into(), "[Billing Mode]".into())
        );
    }
}
