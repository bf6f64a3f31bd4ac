//! A text made short: its first sentences.

use super::Move;
use super::notice::quotable;
use super::sentences::beginning;
use super::situation::Situation;

/// When nothing but a shorter text is asked for.
pub(super) fn text(situation: &Situation<'_>) -> Option<Move> {
    let (_, rest) = situation.around.split_once("Shorten the text to at most ")?;
    let most = rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()?;
    let block = situation.blocks(&["text"]).next()?;
    Some(Move::Say(beginning(&quotable(&block.text), most)))
}
