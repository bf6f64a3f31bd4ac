//! What the engine says between turns. It is not what the person asked.

use super::Move;
use super::situation::Situation;

/// What a turn is wanted for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Instruction {
    Plan,
    Assess,
    Review,
    /// Work on, repair, end: whatever is done anyway.
    GoOn,
}

/// How the engine's sentences begin.
const OPENINGS: &[(&str, Instruction)] = &[
    ("Before you begin, write a short plan", Instruction::Plan),
    ("State in a few sentences what is asked", Instruction::Assess),
    ("Review your draft as a critical reader", Instruction::Review),
    ("Work on the task with your plan in mind", Instruction::GoOn),
    ("Now do step ", Instruction::GoOn),
    ("All steps are done", Instruction::GoOn),
    ("Carry out the plan and draft", Instruction::GoOn),
    ("Mend what the review found", Instruction::GoOn),
    ("You do not answer yourself. Call `route_to` now", Instruction::GoOn),
    ("This has to end here:", Instruction::GoOn),
    ("Your answer does not satisfy the required JSON Schema", Instruction::GoOn),
];

impl Instruction {
    pub(super) fn of(text: &str) -> Option<Self> {
        OPENINGS.iter().find(|(opening, _)| text.starts_with(opening)).map(|(_, instruction)| *instruction)
    }
}

/// A turn that is not about the answer itself.
pub(super) fn follow(situation: &Situation<'_>) -> Option<Move> {
    let said = match situation.instruction? {
        Instruction::Plan => "1. Look up what there is about the request, and answer from it.".to_owned(),
        Instruction::Assess => format!("This is asked: {}", situation.question),
        Instruction::Review => "OK".to_owned(),
        Instruction::GoOn => return None,
    };
    Some(Move::Say(said))
}
