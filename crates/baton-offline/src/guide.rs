//! The walk without a model: what the person says is the answer to what they were asked last.
//!
//! - [`reading`]: what they mean. [`opening`]: the first words, from the request that it began with. [`wording`]: what they are told.

use std::collections::BTreeMap;

use baton_core::agent::{Agent, Slot};
use baton_core::workflow::value::MOST_CHARS;
use baton_core::workflow::{Confirmation, GuideMessage, GuideReply, Machine, WorkflowChange, WorkflowGuide};

use self::reading::{Meant, Topic};
use self::wording::Reply;

mod opening;
mod reading;
mod wording;

/// Leads a person through a workflow by rules. What is not clear is asked again, never guessed.
#[derive(Debug, Clone, Copy, Default)]
pub struct Guide;

impl WorkflowGuide for Guide {
    fn read(
        &self,
        agent: &Agent,
        machine: &mut Machine<'_>,
        message: &GuideMessage<'_>,
    ) -> Box<dyn GuideReply> {
        let mut reply = Reply::from(machine);
        if machine.data.is_greeted {
            respond(machine, message.text, message.was_asked, &mut reply);
        } else {
            greet(machine, agent, message.request, &mut reply);
        }
        Box::new(reply)
    }
}

impl GuideReply for Reply {
    fn finish(self: Box<Self>, agent: &Agent, machine: &Machine<'_>, changes: &[WorkflowChange]) -> String {
        self.close(machine, agent, changes)
    }
}

/// The first words. What the request says already is not asked again.
fn greet(machine: &mut Machine<'_>, agent: &Agent, request: &str, reply: &mut Reply) {
    machine.data.is_greeted = true;
    let opening = opening::read(agent, request);
    reply.greet(agent, &opening);
    let first = machine.open().into_iter().find(|slot| slot.choices.is_empty());
    let told = opening.told.zip(first).filter(|_| machine.data.values.is_empty());
    if let Some((text, slot)) = told
        && take(machine, &[(slot.key.clone(), text)], reply).is_ok()
    {
        reply.noted(slot, &machine.data.values[&slot.key]);
    }
}

/// Something was said.
fn respond(machine: &mut Machine<'_>, words: &str, was_asked: bool, reply: &mut Reply) {
    let topic = Topic::of(machine);
    match reading::read(machine, &topic, words) {
        Meant::Nothing => reply.resume(machine),
        Meant::Help => reply.help(&topic),
        Meant::Status => reply.status(machine),
        Meant::Back => match machine.back() {
            Ok(()) => reply.back(machine),
            Err(_) => reply.at_the_beginning(machine),
        },
        Meant::Skip(slot) => match machine.skip(&slot.key) {
            Ok(()) => reply.acknowledge(machine),
            Err(_) => reply.needed(),
        },
        Meant::GoOn => {
            machine.release();
            reply.acknowledge(machine);
        }
        Meant::Ask(slot) => {
            machine.data.asked = Some(slot.key.clone());
            reply.instead(slot, machine);
        }
        Meant::Keep => {
            machine.data.asked = None;
            reply.acknowledge(machine);
        }
        Meant::Answer(slot, text) => {
            let before = machine.data.values.get(&slot.key).cloned();
            if take(machine, &[(slot.key.clone(), text)], reply).is_ok() {
                reply.taken(slot, before.as_deref(), machine);
            }
        }
        Meant::Values(values) => take_each(machine, values, reply),
        Meant::Yes if was_asked => {
            reply.agreed();
            let _ = machine.confirm(Confirmation::Yes);
        }
        // It was said before the question was put.
        Meant::Yes => reply.look_first(),
        Meant::No => {
            let _ = machine.confirm(Confirmation::No);
        }
        Meant::Way(way) => {
            reply.acknowledge(machine);
            let _ = machine.go(Some(&way.0));
        }
        Meant::Unclear => reply.unclear(&topic),
    }
}

/// Takes one value. One that is too long is cut, and that is said.
fn take(machine: &mut Machine<'_>, values: &[(String, String)], reply: &mut Reply) -> Result<(), ()> {
    let cut = |text: &String| text.chars().take(MOST_CHARS).collect::<String>();
    let is_cut = values.iter().any(|(_, text)| text.trim().chars().count() > MOST_CHARS);
    let values: BTreeMap<String, String> =
        values.iter().map(|(key, text)| (key.clone(), cut(&text.trim().to_owned()))).collect();
    match machine.take(&values) {
        Ok(_) if is_cut => {
            reply.was_cut();
            Ok(())
        }
        Ok(_) => Ok(()),
        Err(refusal) => {
            reply.refused(&refusal);
            Err(())
        }
    }
}

/// Several at once: those that fit are taken, the others are named.
fn take_each(machine: &mut Machine<'_>, values: Vec<(&Slot, String)>, reply: &mut Reply) {
    let mut taken = Vec::new();
    for (slot, text) in values {
        let before = machine.data.values.get(&slot.key).cloned();
        if take(machine, &[(slot.key.clone(), text)], reply).is_ok() {
            taken.push((slot, before));
        }
    }
    match taken.as_slice() {
        [] => {}
        [(slot, before)] => reply.taken(slot, before.as_deref(), machine),
        several => reply.several(several.iter().map(|(slot, _)| *slot)),
    }
}

#[cfg(test)]
mod tests;
