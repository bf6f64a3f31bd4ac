//! What a member is told when its turn comes.

use baton_core::message::Part;

use super::Discussion;
use super::member::Member;
use super::turn::PASS;
use crate::patterns::fence::{Enriched, Fence, Written};
use crate::run::Input;

impl Discussion<'_> {
    /// What a member is told in a round: the request, and last what others said since it read. Only that is remembered, so the
    /// request is always there once, and always in what must not be dropped when a model has little room.
    pub(super) fn told(&self, member: &Member, round: u32) -> Vec<Part> {
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

    /// What a member's message is about. Whoever the member asks or hands on to gets this, and nothing of what is said to members.
    pub(super) fn matter(&self, member: &Member, round: u32) -> Enriched {
        let asked = Enriched::of(self.input).shared(&self.scope.agent);
        let said = self.channel.said(&member.name, member.cursor);
        let said = said.map(|(by, text)| (by.unwrap_or(self.scope.name()), text));
        let message = said.fold(asked, |message, (by, text)| message.with(Written::Post, by, text));
        message.with_instruction(self.instruction(member, round, ""))
    }

    /// What was asked, as the coordinator passes it on. If others wrote about it, it has marks of its own.
    fn request(&self, fence: &Fence) -> Vec<Part> {
        let format = self.scope.run.engine.parts.policy.enrich_format;
        let asked = Enriched::of(self.input).shared(&self.scope.agent).render(format, Input::default());
        if asked.rendered.is_some() {
            return asked.parts.to_vec();
        }
        let text = [fence.rule(), fence.block("request", "## REQUEST", &asked.words())].join("\n\n");
        let attached = asked.parts.iter().filter(|part| !matches!(part, Part::Text { .. })).cloned();
        std::iter::once(Part::text(text)).chain(attached).collect()
    }

    fn instruction(&self, member: &Member, round: u32, news: &str) -> String {
        let others = self.members.iter().filter(|other| other.name != member.name);
        let others: Vec<String> = others.map(|other| format!("`{}`", other.name)).collect();
        let (name, others, coordinator) = (&member.name, others.join(", "), self.scope.name());
        let most = self.team.max_rounds;
        format!(
            "You are `{name}`, in a team with {others}, coordinated by `{coordinator}`. This is round {round} of at most {most}. \
             {news}Work on the request. Tell the others what they need to know with `broadcast`; if you do not use it, what you \
             answer at the end of your turn is told to them. Say with `vote_conclude` whether the discussion can end. If you have \
             nothing to add, answer with the single word {PASS}."
        )
    }
}
