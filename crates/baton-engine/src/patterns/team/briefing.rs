//! Builds the prompt of a member.

use baton_core::message::Part;

use super::Discussion;
use super::member::TeamMember;
use super::turn::PASS;
use crate::fence::Fence;
use crate::input::Input;
use crate::input::{BlockKind, PromptEnvelope};

impl Discussion<'_> {
    /// The member's prompt: the request first, then the posts of others since its last turn. Only the second part goes into the
    /// member's memory, so the request appears once, in the part that a small context window never drops.
    pub(super) fn member_prompt(&self, member: &TeamMember, round: u32) -> Vec<Part> {
        let fence = Fence::new();
        let mut blocks = vec![fence.material()];
        let unread = self.channel.unread(&member.name, member.cursor, &fence);
        let news =
            if unread.is_empty() { "" } else { "Above is what the others said since your last turn. " };
        blocks.extend(unread);
        blocks.push(self.instruction(member, round, news));
        let mut parts = self.request(&fence);
        parts.push(Part::text(blocks.join("\n\n")));
        parts
    }

    /// The envelope of the member's prompt. Agents that the member involves get this, without the instructions for members.
    pub(super) fn member_envelope(&self, member: &TeamMember, round: u32) -> PromptEnvelope {
        let asked = PromptEnvelope::of(self.input).redacted_by(self.scope.agent());
        let said = self.channel.said(&member.name, member.cursor);
        let said = said.map(|(by, text)| (by.unwrap_or(self.scope.name()), text));
        let message = said.fold(asked, |message, (by, text)| message.with(BlockKind::Post, by, text));
        message.with_instruction(self.instruction(member, round, ""))
    }

    /// The request as the coordinator shares it. If it already has blocks, it is rendered with a fence of its own.
    fn request(&self, fence: &Fence) -> Vec<Part> {
        let format = self.scope.run.policy.enrich_format;
        let asked =
            PromptEnvelope::of(self.input).redacted_by(self.scope.agent()).render(format, Input::default());
        if asked.rendered.is_some() {
            return asked.parts.to_vec();
        }
        let text = [fence.rule(), fence.block("request", "## REQUEST", &asked.words())].join("\n\n");
        let attached = asked.parts.iter().filter(|part| !matches!(part, Part::Text { .. })).cloned();
        std::iter::once(Part::text(text)).chain(attached).collect()
    }

    fn instruction(&self, member: &TeamMember, round: u32, news: &str) -> String {
        let others = self.members.iter().filter(|other| other.name != member.name);
        let others: Vec<String> = others.map(|other| format!("`{}`", other.name)).collect();
        let (name, others, coordinator) = (&member.name, others.join(", "), self.scope.name());
        let most = self.team.max_rounds;
        format!(
            "You are `{name}`, in a team with {others}, coordinated by `{coordinator}`. This is round {round} of at most {most}. \
             {news}Work on the request. Tell the others what they need to know with `broadcast`; if you do not use it, they get \
             your answer at the end of your turn. Say with `vote_conclude` whether the discussion can end. If you have \
             nothing to add, answer with the single word {PASS}."
        )
    }
}
