//! The planning strategies of a session. Each is a few lines over the same loop, and returns the text that becomes the answer.

use super::{OutputKind, Session, SessionBreak, TextVisibility, WorkResult};

/// Maximum steps of a plan. Further ones are merged into the last step.
const MAX_STEPS: usize = 12;
/// Maximum reviews of a draft.
const MAX_REVIEWS: usize = 2;

/// Makes a plan, then works in the usual loop.
pub(super) async fn plan_and_react(
    session: &mut Session<'_>,
    shown: TextVisibility,
) -> Result<WorkResult, SessionBreak> {
    if session.think(PLAN).await?.is_some() {
        session.instruct(
            "Work on the task with your plan in mind. Change the plan when a result calls for it. When you have what you need, \
             answer the person; do not mention the plan.",
        );
    }
    session.work(shown, OutputKind::Answer).await
}

/// Makes a plan, does one step after the other, then answers from the results.
pub(super) async fn plan_and_execute(
    session: &mut Session<'_>,
    shown: TextVisibility,
) -> Result<WorkResult, SessionBreak> {
    let plan = session.think(PLAN).await?.unwrap_or_default();
    for (at, step) in steps(&plan).iter().enumerate() {
        session
            .instruct(format!("Now do step {} only: {step}\nReport its result in a few sentences.", at + 1));
        let worked = session.work(TextVisibility::Hidden, OutputKind::Text).await?;
        if worked.limit.is_some() {
            return Ok(worked);
        }
    }
    session.instruct(
        "All steps are done. Answer the person now from the results; do not mention the plan or the steps.",
    );
    session.work(shown, OutputKind::Answer).await
}

/// Sense, plan, act, reflect: the draft is reviewed, and revised while the review finds something.
pub(super) async fn spar(session: &mut Session<'_>) -> Result<WorkResult, SessionBreak> {
    session
        .think(
            "State in a few sentences what is asked, what is known, and what is missing. Do not answer yet.",
        )
        .await?;
    if session.think(PLAN).await?.is_some() {
        session.instruct("Carry out the plan and draft the answer to the person.");
    }
    let mut worked = session.work(TextVisibility::Hidden, OutputKind::Answer).await?;
    for _ in 0..MAX_REVIEWS {
        if worked.limit.is_some() {
            break;
        }
        match session.think(REVIEW).await? {
            Some(review) if !is_fine(&review) => {
                session.instruct(
                    "Mend what the review found, and give the whole corrected answer to the person.",
                );
                worked = session.work(TextVisibility::Hidden, OutputKind::Answer).await?;
            }
            _ => break,
        }
    }
    Ok(worked)
}

const PLAN: &str = "Before you begin, write a short plan for this task: a numbered list of one to six steps, one line each, no \
                    other text. Do not use tools yet.";

const REVIEW: &str = "Review your draft as a critical reader: is every part of the request answered, is every claim supported \
                      by what you found, is anything wrong or missing? Reply with the single word OK if it is fine, otherwise \
                      list what has to change. Do not rewrite it yet.";

fn is_fine(review: &str) -> bool {
    review.trim().trim_end_matches(['.', '!']).eq_ignore_ascii_case("ok")
}

/// The numbered or bulleted lines of a plan; a plan in prose is one step.
fn steps(plan: &str) -> Vec<String> {
    let listed = |line: &str| {
        let line = line.trim();
        let number = line.trim_start_matches(|c: char| c.is_ascii_digit());
        let step = match number.strip_prefix(['.', ')']) {
            Some(rest) if number.len() < line.len() => rest,
            _ => line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?,
        };
        Some(step.trim().to_owned()).filter(|step| !step.is_empty())
    };
    let mut steps: Vec<String> = plan.lines().filter_map(listed).collect();
    if steps.is_empty() && !plan.trim().is_empty() {
        steps.push(plan.trim().to_owned());
    }
    if steps.len() > MAX_STEPS {
        let rest = steps.split_off(MAX_STEPS - 1).join("; ");
        steps.push(rest);
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_become_steps() {
        assert_eq!(steps("1. Look\n2) Read it\n- Compare\n\nDone"), ["Look", "Read it", "Compare"]);
        assert_eq!(steps("Just look it up."), ["Just look it up."]);
        assert_eq!(steps("2026 was good"), ["2026 was good"]);
        assert!(steps(" \n").is_empty());
        let long: String = (1..=30).map(|n| format!("{n}. step {n}\n")).collect();
        assert_eq!(steps(&long).len(), MAX_STEPS);
    }

    #[test]
    fn only_ok_is_fine() {
        assert!(is_fine(" OK.\n") && is_fine("ok"));
        assert!(!is_fine("OK, but the date is wrong") && !is_fine(""));
    }
}
