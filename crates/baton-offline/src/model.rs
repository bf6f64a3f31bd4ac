//! The model that needs no key and no network: deterministic rules in place of a language model.
//!
//! It does what rules can do: it picks a tool by what the request is about, routes by shared words, fills a required JSON
//! form, and answers by quoting the sentences that fit the question best from what tools and agents returned. It says
//! plainly that no language model is configured.

mod asking;
mod blocks;
mod destination;
mod extract;
mod form;
mod instruction;
mod labels;
mod material;
mod notice;
mod own;
mod passing;
mod query;
mod reports;
mod sentences;
mod shorten;
mod situation;
mod skills;
mod team;
#[cfg(test)]
mod tests;
mod words;

use std::sync::Arc;

use baton_core::ToolCallId;
use baton_core::model::{
    Chunk, Finish, Model, ModelAssists, ModelFacts, ModelRequest, ReplyStream, ToolChoice,
};
use baton_core::usage::{Price, Tokens};
use baton_core::workflow::WorkflowGuide;
use futures_util::stream;
use serde_json::Value;

use crate::guide::Guide;
use situation::{Situation, text_of};

/// The provider and its only model, `offline`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offline;

/// Tools that were refused or failed, before it answers without.
const MOST_TRIES: usize = 3;

/// What it does in a turn.
#[derive(Debug, PartialEq)]
enum Move {
    Say(String),
    Call { tool: String, arguments: Value },
}

impl Model for Offline {
    fn provider(&self) -> &'static str {
        "offline"
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        Box::pin(stream::iter(chunks(decide(request), request).into_iter().map(Ok)))
    }

    fn facts(&self, _model: &str) -> ModelFacts {
        // Its rules decide which tool to call, and its guide walks through workflows: it needs no help.
        let assists = ModelAssists {
            grounding: false,
            search_first: false,
            text_tool_calls: false,
            workflow_values: false,
            workflow_evidence: false,
            agent_tools: false,
            routing_words: false,
            repeated_calls: false,
        };
        ModelFacts {
            price: Some(Price::FREE),
            context_window: Some(1_000_000),
            assists,
            ..ModelFacts::default()
        }
    }

    fn workflow_guide(&self) -> Option<Arc<dyn WorkflowGuide>> {
        Some(Arc::new(Guide))
    }
}

/// A text comes word by word, as from any other model.
fn chunks(decided: Move, request: &ModelRequest<'_>) -> Vec<Chunk> {
    let size = |text: &str| (text.len() as u64).div_ceil(4);
    let input_tokens = size(request.system) + request.messages.iter().map(|m| size(&text_of(m))).sum::<u64>();
    let tokens = |output_tokens| Chunk::Tokens(Tokens { input_tokens, output_tokens, ..Tokens::default() });
    match decided {
        Move::Say(text) => {
            let pieces = text.split_inclusive(' ').map(|piece| Chunk::Text(piece.to_owned()));
            pieces.chain([tokens(size(&text)), Chunk::Done(Finish::Stop)]).collect()
        }
        Move::Call { tool, arguments } => {
            let arguments = arguments.to_string();
            let id = ToolCallId::parse(&format!("call_{}", request.messages.len())).expect("a short id");
            vec![
                Chunk::Call { index: 0, id, name: tool, signature: None },
                Chunk::Arguments { index: 0, delta: arguments.clone() },
                tokens(size(&arguments)),
                Chunk::Done(Finish::ToolCalls),
            ]
        }
    }
}

/// The rules, in order of precedence.
fn decide(request: &ModelRequest<'_>) -> Move {
    let situation = Situation::of(request);
    let special = shorten::text(&situation)
        .or_else(|| instruction::follow(&situation))
        .or_else(|| team::turn(&situation));
    special.or_else(|| act(&situation)).unwrap_or_else(|| Move::Say(end(&situation)))
}

/// A tool to use, as long as nothing has come of one yet.
fn act(situation: &Situation<'_>) -> Option<Move> {
    let has_result = situation.done.iter().any(|done| !done.result.failed);
    if has_result || situation.done.len() >= MOST_TRIES || situation.request.tool_choice == ToolChoice::None {
        return None;
    }
    passing::route(situation)
        .or_else(|| passing::transfer(situation))
        .or_else(|| skills::load(situation))
        .or_else(|| asking::colleagues(situation))
        .or_else(|| asking::documents(situation))
        .or_else(|| asking::everybody(situation))
}

/// The answer, as JSON if a schema asks for that.
fn end(situation: &Situation<'_>) -> String {
    match situation.request.output_schema {
        Some(schema) => form::fill(schema, &material::known(situation)).to_string(),
        None => answer(situation),
    }
}

/// What others found out, said or did, or else what the agent's author wrote for it.
fn answer(situation: &Situation<'_>) -> String {
    let mut parts = reports::told(situation);
    parts.extend(skills::told(situation));
    parts.extend(team::minutes(situation));
    parts.extend(material::advice(situation));
    match material::stage(situation) {
        Some(stage) => parts.push(stage),
        None if parts.is_empty() => parts.push(own::part(situation)),
        None => {}
    }
    notice::closed(&parts.join("\n\n"))
}
