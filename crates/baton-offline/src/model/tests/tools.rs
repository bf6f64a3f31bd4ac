//! Which tool is chosen, and what is made of its result.

use baton_core::model::ToolChoice;
use serde_json::{Value, json};

use super::{NOTICE, Turn, marked};

const COLLEAGUES: &str = "Asks others. Agents:\n- market: Researches markets: customers, demand and prices.\n- technology: Researches \
                          technology: range and maintenance.\n- regulation: Researches rules: permits and taxes such as VAT.";

fn lead(question: &str) -> Turn {
    let names = json!(["market", "technology", "regulation"]);
    Turn::of("You lead research.", question)
        .tool("call_agent", COLLEAGUES, &json!({ "specialist": { "type": "string", "enum": names } }))
        .tool("delegate", COLLEAGUES, &json!({ "agents": { "type": "array", "items": { "enum": names } } }))
}

fn support(question: &str) -> Turn {
    let to = |name: &str, when: &str| format!("Passes the conversation to {name}. When: {when}");
    Turn::of("You are the first contact for customers.", question)
        .tool("transfer_to_billing", &to("billing", "money, such as a charge or a refund"), &json!({}))
        .tool("transfer_to_account", &to("account", "sign in, rights or the plan"), &json!({}))
}

/// G2
#[test]
fn a_transfer_that_fits_is_made_with_its_reason() {
    let (tool, arguments) = support("I was charged twice.").calls();
    assert_eq!(tool, "transfer_to_billing");
    assert_eq!(arguments, json!({ "reason": "the request mentions charged" }));
    assert!(support("Please pass this conversation on.").says().contains("I can pass it on to"));
}

/// K7: a transfer has an announcement.
#[test]
fn k_7_a_handoff_is_announced_in_a_sentence() {
    let sentence = |about: &str| {
        let description = format!("Passes the conversation to {about} Use it when money is meant.");
        let takes = json!({ "announcement": { "type": "string" } });
        let turn = Turn::of("You are the first contact.", "I want my money back").tool(
            "transfer_to_billing",
            &description,
            &takes,
        );
        turn.calls().1["announcement"].as_str().unwrap().to_owned()
    };
    let known = sentence(
        "Billing Assistant, who then answers in your place. Refunds money together with the person: asks why.",
    );
    assert_eq!(known, "I'll connect you with our Billing Assistant, who refunds money together with you.");
    let plain = sentence("Billing, who then answers in your place. Money matters.");
    assert_eq!(plain, "I'll connect you with Billing.");
}

/// G6: nobody passes back and forth on a word.
#[test]
fn what_was_just_passed_on_stays_unless_somebody_fits_much_better() {
    let moved =
        |question| marked(&[("request", "## REQUEST", question), ("work", "### From support", "Hello.")], "");
    let turn = Turn::of("You handle charges.", &moved("I was charged twice.")).tool(
        "transfer_to_account",
        "The charge of an account",
        &json!({}),
    );
    assert!(turn.says().contains("You handle charges."));
    let turn =
        Turn::of("You handle charges.", &moved("Close my account and change my rights, plan and address."))
            .tool("transfer_to_account", "Close an account, change rights, plan, address", &json!({}));
    assert_eq!(turn.calls().0, "transfer_to_account");
}

#[test]
fn what_is_the_receivers_own_subject_is_not_looked_up() {
    let moved = |question| marked(&[("request", "## R", question), ("reason", "## WHY", "skills")], "");
    let turn = |question| Turn::of("You build skills. Ask what the skill is for.", &moved(question)).search();
    assert!(turn("I want to create a skill.").says().contains("> Ask what the skill is for."));
    assert_eq!(turn("Where are the limits?").calls().0, "search_docs");
}

#[test]
fn a_transfer_that_was_refused_is_not_tried_again() {
    let turn = support("A customer was charged.").done("transfer_to_billing", &json!({}), "secret", true);
    let said = turn.says();
    assert!(said.starts_with("The colleague who should take over is not available right now."), "{said}");
    assert!(
        said.contains("> You are the first contact for customers.") && !said.contains("secret"),
        "{said}"
    );
}

/// C-14, X16: why nobody took over is said in words that are for the person.
#[test]
fn c_14_why_nobody_took_over_is_told() {
    let told = |why: &str| {
        let result = format!(
            "error: failed: `billing` could not take over: {why}. The conversation is yours again: answer yourself"
        );
        let tool = support("I was charged twice on my invoice").calls().0;
        support("I was charged twice on my invoice").done(&tool, &json!({}), &result, true).says()
    };
    let down = "The billing assistant is currently unavailable. Would you like me to help you with something else, or try again later?";
    assert!(told(down).starts_with(down), "{}", told(down));
    let right = told("this needs the permission `skill:create`, which the person does not have");
    let clear = "I cannot connect you: this needs the permission `skill:create`, which you do not have.";
    assert!(right.starts_with(clear), "{right}");
    assert!(told("the thread has gone").starts_with("The colleague who should take over is not available"));
}

fn reception(question: &str) -> Turn {
    let lines = "Sends the request on.\n- it-help: laptop and network\n- people: holiday and leave";
    Turn::of("You receive people.", question).tool(
        "route_to",
        lines,
        &json!({ "agent": { "type": "string", "enum": ["it-help", "people"] } }),
    )
}

/// E5, E26
#[test]
fn a_router_picks_by_shared_words_and_another_one_after_a_refusal() {
    let turn = reception("How much holiday do I have left?").choice(ToolChoice::Required);
    let arguments = json!({ "agent": "people", "reason": "the request mentions holiday" });
    assert_eq!(turn.calls(), ("route_to".to_owned(), arguments.clone()));
    let turn = turn.done("route_to", &arguments, "people is not available", true);
    assert_eq!(turn.calls().1["agent"], "it-help");
    assert_eq!(reception("Hello").choice(ToolChoice::Required).calls().1["agent"], "it-help");
    let insisted = reception("How much holiday is left?").choice(ToolChoice::Required).said("Well.");
    let insisted = insisted
        .asked("You do not answer yourself. Call `route_to` now, with one of these agents: it-help, people.");
    assert_eq!(insisted.calls().1["agent"], "people");
    assert!(reception("Hello").says().contains("You receive people."), "it may answer itself");
}

/// B1, J3.3
#[test]
fn those_who_fit_are_asked() {
    let (tool, arguments) = lead("Cargo bikes: demand, range and permits?").calls();
    assert_eq!(
        (tool.as_str(), &arguments["agents"]),
        ("delegate", &json!(["market", "technology", "regulation"]))
    );
    let (tool, arguments) = lead("Which permits are needed?").calls();
    assert_eq!(tool, "call_agent");
    assert_eq!(arguments, json!({ "mission": "Which permits are needed", "specialist": "regulation" }));
    let everybody = lead("Bananas?").calls();
    assert_eq!((everybody.0.as_str(), everybody.1["agents"].as_array().map(Vec::len)), ("delegate", Some(3)));
    assert_eq!(lead("Bananas?").search().calls().0, "search_docs");
    assert!(lead("And you?").says().contains("I can "));
}

/// K8: a colleague gets a question of its own, which can be understood without the conversation. What others said is never quoted.
#[test]
fn k_8_colleague_gets_a_question_that_stands_alone() {
    let asked = "Hi! Could you tell me which permits are needed for cargo bikes? Thanks!";
    let (_, arguments) = lead(asked).calls();
    assert_eq!(arguments["mission"], "which permits are needed for cargo bikes");
    let earlier = lead("How do I register cargo bikes?").said("At the office for trailers.");
    let (tool, arguments) = earlier.asked("And which permits do they need?").calls();
    assert_eq!(
        (tool.as_str(), &arguments["mission"]),
        ("call_agent", &json!("which permits do cargo bikes need"))
    );
    let (_, arguments) = lead("Which permits does it need?").calls();
    assert_eq!(arguments["mission"], "Which permits does it need", "nothing was said before");
    let (tool, arguments) = lead("What are the demand, range and permits of my cargo bikes?").calls();
    let expected = json!("demand, range and permits of the cargo bikes");
    assert_eq!((tool.as_str(), &arguments["message"]), ("delegate", &expected));
}

fn reply(text: &str) -> String {
    format!("This is what the sources say:\n\n{text}\n\n{NOTICE}; this was put together by rules.)")
}

/// B2, B8
#[test]
fn one_report_is_quoted_and_several_name_their_authors() {
    let note = "What other agents wrote is material.";
    let call =
        json!({ "success": true, "result": reply("Set a limit. [1]"), "steps_taken": 2, "note": note });
    let said = lead("Which permits?").done(
        "call_agent",
        &json!({ "specialist": "regulation" }),
        &call.to_string(),
        false,
    );
    let said = said.says();
    assert!(said.starts_with("Set a limit. [1]\n\n(No language"), "{said}");
    assert_eq!(said.matches(NOTICE).count(), 1);

    let results = json!([
        { "agent_id": "market", "success": true, "response": reply("Demand grows.") },
        { "agent_id": "technology", "success": true, "response": "Range is fine." },
    ]);
    let told = json!({ "asked": 2, "results": results, "note": note }).to_string();
    let said = lead("Bikes?").done("delegate", &json!({}), &told, false).says();
    assert!(
        said.starts_with("From market:\nDemand grows.\n\nFrom technology:\nRange is fine.\n\n(No"),
        "{said}"
    );
}

#[test]
fn the_same_text_from_several_is_told_once() {
    let results = json!([
        { "agent_id": "market", "success": true, "response": reply("Demand grows.") },
        { "agent_id": "technology", "success": true, "response": "Demand grows." },
        { "agent_id": "regulation", "success": true, "response": "No permit." },
    ]);
    let said =
        lead("Bikes?").done("delegate", &json!({}), &json!({ "results": results }).to_string(), false).says();
    assert!(
        said.starts_with("From market, technology:\nDemand grows.\n\nFrom regulation:\nNo permit."),
        "{said}"
    );
}

/// B13
#[test]
fn whoever_is_missing_is_named_after_the_sentence_about_limited_resources() {
    let note =
        "technology gave no answer: begin the answer with \"I'm working with limited resources right now…\"";
    let results = json!([
        { "agent_id": "market", "success": true, "response": "Demand grows." },
        { "agent_id": "technology", "success": false, "error": "late" },
    ]);
    let told = json!({ "results": results, "note": note }).to_string();
    let said = lead("Bikes?").done("delegate", &json!({}), &told, false).says();
    assert!(said.starts_with("I'm working with limited resources right now"), "{said}");
    assert!(said.contains("Demand grows.") && said.contains("There is no answer from technology."), "{said}");

    let alone =
        json!({ "success": false, "error": "no connection", "note": "… limited resources right now…" });
    let said = lead("Which permits?").done(
        "call_agent",
        &json!({ "specialist": "regulation" }),
        &alone.to_string(),
        false,
    );
    let said = said.says();
    assert!(
        said.starts_with("I'm working with limited resources") && said.contains("from regulation."),
        "{said}"
    );
    assert!(!said.contains("no connection"), "{said}");
}

#[test]
fn documents_are_searched_and_quoted() {
    let turn = Turn::of("You look things up.", "How do I set limits?").search();
    assert_eq!(turn.calls(), ("search_docs".to_owned(), json!({ "query": "How do I set limits?" })));
    let found = "[1] docs/limits.md › Limits (line 3)\nSet limits in baton.toml.";
    assert!(
        turn.done("search_docs", &Value::Null, found, false).says().contains("Set limits in baton.toml. [1]")
    );
    let turn =
        Turn::of("You look things up.", "How?").search().done("search_docs", &Value::Null, "no disk", true);
    assert!(turn.says().starts_with("I could not find an answer. `search_docs`: no disk"));
}

/// F32: what the engine says between turns is not the question.
#[test]
fn plans_and_reviews_are_followed() {
    let plan = "Before you begin, write a short plan for this task: …";
    let turn =
        Turn::of("You research.", "How do I set limits?").search().asked(plan).choice(ToolChoice::None);
    let steps = turn.says();
    assert!(steps.starts_with("1. "), "{steps}");
    let turn = Turn::of("You research.", "How do I set limits?").search().asked(plan).said(&steps);
    let turn = turn.asked("Now do step 1 only: Look up.\nReport its result in a few sentences.");
    assert_eq!(turn.calls().1["query"], "How do I set limits?");
    let turn = turn.done("search_docs", &Value::Null, "Set limits in baton.toml.", false);
    let turn = turn.asked("This has to end here: all turns are used up. …").choice(ToolChoice::None);
    assert!(turn.says().contains("Set limits in baton.toml."));
    assert_eq!(Turn::of("", "x").asked("Review your draft as a critical reader: …").says(), "OK");
}
