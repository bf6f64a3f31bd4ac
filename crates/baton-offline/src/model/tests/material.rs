//! Answers from what others wrote, and from what the agent's author wrote.

use serde_json::json;

use super::{NOTICE, Turn, marked};

const REVIEW: &str = "You review change requests.\n\nWrite \"RISK: LOW\", \"RISK: MEDIUM\" or \"RISK: HIGH\" on the first line. High means: \
                      customer data or payment is concerned. Then add conditions.";

/// E6, E27
#[test]
fn advice_is_told_with_its_authors_and_what_is_missing() {
    let asked = marked(
        &[
            ("request", "## ORIGINAL USER REQUEST", "Liability is capped. Should we sign?"),
            ("advice", "### From legal", "I go by this:\n\n> Check the liability. Be kind."),
            ("failure", "### From operations (no advice)", "took longer than 20s"),
        ],
        "",
    );
    let said = Turn::of("You decide.", &asked).says();
    assert!(said.contains("- **legal**: Check the liability.\n"), "{said}");
    assert!(said.contains("- **operations** could not be heard: took longer than 20s"), "{said}");
    assert!(!said.contains("Be kind") && said.matches(NOTICE).count() == 1, "{said}");
}

/// E3: a stage adds its part and passes on what came before.
#[test]
fn a_stage_of_a_chain_adds_its_part_and_keeps_the_work_before() {
    let work = format!("Goal: a new version.\n\nFrom draft:\nThe wish.\n\n{NOTICE}; set one.)");
    let asked = marked(
        &[
            ("request", "## ORIGINAL USER REQUEST", "Move the customer database."),
            ("answer", "### From change-request", &work),
        ],
        "",
    );
    let said = Turn::of(REVIEW, &asked).says();
    assert!(said.starts_with("RISK: HIGH\n"), "{said}");
    assert!(
        said.contains("From change-request:\nGoal: a new version.\n\nFrom draft:\nThe wish.\n\n(No"),
        "{said}"
    );
    assert_eq!(said.matches(NOTICE).count(), 1);
    assert!(!said.contains("RISK: LOW\n"), "{said}");
}

#[test]
fn where_no_label_fits_the_most_careful_one_is_set() {
    let decide = "Say \"DECISION: APPROVED\" or \"DECISION: REJECTED\". Reject when there is no way back.";
    assert!(Turn::of(decide, "Paint the fence.").says().starts_with("DECISION: REJECTED\n"));
    let low = REVIEW.replace("High means", "Low means");
    assert!(Turn::of(&low, "Change the payment page.").says().starts_with("RISK: LOW\n"));
    assert!(!Turn::of("Say \"RISK: HIGH\".", "x").says().starts_with("RISK"), "one alone is no choice");
}

#[test]
fn without_anything_else_an_agent_quotes_what_its_author_wrote() {
    let system = "# Legal\nYou advise on law.\n\n- Check term and renewal.\n- Check liability and its caps.";
    let said = Turn::of(system, "Is the liability capped?").says();
    assert!(said.starts_with("I go by this:\n\n> Check liability and its caps.\n\n(No"), "{said}");
    let said = Turn::of(system, "Bananas?").says();
    assert!(
        said.starts_with("I cannot answer this by myself. I go by this:\n\n> You advise on law."),
        "{said}"
    );
    let offers = Turn::of("You help.", "Hello")
        .tool("call_agent", "- books: Knows books.", &json!({"specialist": {"enum": ["books"]}}))
        .tool("transfer_to_law", "Knows law.", &json!({}))
        .says();
    assert!(
        offers.starts_with("I cannot answer this by myself. I can ask books, or pass it on to law: say"),
        "{offers}"
    );
    assert!(Turn::of("", "Bananas?").says().starts_with("I cannot answer this by myself.\n\n(No"));
}

#[test]
fn a_form_is_filled_with_what_is_known() {
    let schema = json!({ "type": "object", "required": ["verdict", "reason"], "properties": {
        "verdict": { "enum": ["accept", "negotiate"] }, "reason": { "type": "string" } } });
    let asked = marked(
        &[
            ("request", "## R", "Is the liability fine?"),
            ("advice", "### From legal", "Negotiate the liability cap."),
        ],
        "",
    );
    let said = Turn::of("You judge.", &asked).schema(schema).says();
    assert_eq!(said, json!({ "verdict": "negotiate", "reason": "Negotiate the liability cap." }).to_string());
}

/// F16
#[test]
fn a_long_text_is_shortened_to_its_beginning() {
    let text = format!("First point. Second point. Third point is long.\n\n{NOTICE}; set one.)");
    let asked = marked(&[("text", "## TEXT", &text)], "Shorten the text to at most 30 characters.");
    assert_eq!(Turn::of("You shorten texts.", &asked).says(), "First point. Second point.");
}
