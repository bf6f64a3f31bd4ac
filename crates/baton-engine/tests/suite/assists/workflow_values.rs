//! Values of a workflow that the engine reads because the holder's model did not record them.

use baton_core::agent::{Agent, StateName};
use baton_core::message::Visibility;
use baton_core::model::{ModelAssists, ModelErrorKind, ModelSupport};
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};

use super::{model, shown, statuses};
use crate::handoffs::Talk;
use crate::transfers::{asked_of, told};
use crate::workflow::{Calls, advance, all, setup};
use crate::{Ran, Setup};

const READ: &str = "values read from the message without a call of advance_workflow: ";

fn on() -> Scripted {
    model(ModelSupport::default(), ModelAssists::default())
}

fn off() -> ModelAssists {
    ModelAssists { workflow_values: false, ..ModelAssists::default() }
}

/// A reply that fills in the form.
fn form(values: &Value) -> ScriptedTurn {
    ScriptedTurn::text(&values.to_string())
}

async fn talk(model: &Scripted) -> (Talk, Calls) {
    let calls = Calls::default();
    (Talk::new(setup(model, &calls)).await, calls)
}

async fn values(talk: &Talk) -> (String, Value) {
    let workflow = talk.open().await.unwrap().workflow.unwrap();
    (workflow.state, workflow.data["values"].clone())
}

/// The rows of the calls that read values.
fn readings(ran: &Ran) -> usize {
    ran.end
        .rows
        .iter()
        .filter(|row| row.path.ends_with("/values/read") || row.path.ends_with("/values/choose"))
        .count()
}

#[tokio::test]
async fn values_in_the_message_are_recorded_and_the_next_question_is_asked() {
    let read =
        form(&json!({"purpose": "alerts for builds", "format": null, "name": "Alert", "triggers": "x"}));
    let model = on().script("maker", [ScriptedTurn::text("It is done!"), read]);
    let (talk, calls) = talk(&model).await;
    let ran = talk.say("create a skill for alerts for builds, named Alert").await;
    let answer = "Noted:\n- Purpose: alerts for builds\n- Name: Alert\n\nWhat is the triggers?";
    assert_eq!((ran.answer(), shown(&ran).last().copied()), (answer, Some(answer)), "{}", ran.log());
    assert!(!shown(&ran).contains(&"It is done!"), "{}", ran.log());
    assert_eq!(
        values(&talk).await,
        ("triggers".to_owned(), json!({"purpose": "alerts for builds", "name": "Alert"}))
    );
    assert!(statuses(&ran).contains(&format!("{READ}purpose, name").as_str()), "{:?}", statuses(&ran));
    assert_eq!(readings(&ran), 1, "it is billed: {}", ran.ledger());
    let asked = asked_of(&model, "maker");
    assert!(asked[1].output_schema && asked[1].tools.is_empty());
    assert!(
        asked[1].system.contains("- format: What is the format? One of: bullets, table."),
        "{}",
        asked[1].system
    );
    assert_eq!(calls.count(), [0, 0, 0]);
    let internal = ran.events.iter().filter(|event| event.path.ends_with("/values/read"));
    assert!(
        internal.clone().count() > 0
            && internal.clone().all(|event| event.visibility == Visibility::Internal),
        "{}",
        ran.log()
    );
}

#[tokio::test]
async fn model_that_records_is_not_disturbed() {
    let turns = || [advance(all()), ScriptedTurn::default().say("Save ").say("it?")];
    let (helped, plain) =
        (on().script("maker", turns()), model(ModelSupport::default(), off()).script("maker", turns()));
    let ((one, _), (other, _)) = (talk(&helped).await, talk(&plain).await);
    let (ran, as_before) = (one.say("create a skill").await, other.say("create a skill").await);
    assert_eq!(ran.log(), as_before.log());
    assert!(ran.log().contains("text \"Save \""), "it is streamed: {}", ran.log());
}

#[tokio::test]
async fn call_without_values_does_not_count() {
    let read = form(&json!({"name": "Alert"}));
    let model = on().script("maker", [advance(json!({"values": {}})), ScriptedTurn::text("Well."), read]);
    let (talk, _) = talk(&model).await;
    let ran = talk.say("create a skill. The name is Alert.").await;
    assert_eq!(ran.answer(), "Noted:\n- Name: Alert\n\nWhat is the purpose?", "{}", ran.log());
}

/// A message may correct a value that it names while others are still missing. Values that it does not name stay as they are.
#[tokio::test]
async fn named_value_is_corrected_while_others_are_missing() {
    let first = form(&json!({"purpose": "alerts for builds", "name": null}));
    let second = form(&json!({"purpose": "weekly reports", "name": "Digest"}));
    let say = || ScriptedTurn::text("Well.");
    let model = on().script("maker", [say(), first, say(), second]);
    let (talk, _) = talk(&model).await;
    talk.say("create a skill for alerts for builds").await;
    let ran = talk.say("Actually, change the purpose to weekly reports. Call it Digest.").await;
    let (_, recorded) = values(&talk).await;
    assert_eq!(recorded, json!({"purpose": "weekly reports", "name": "Digest"}), "{}", ran.log());
    let form = &asked_of(&model, "maker")[3].system;
    assert!(form.contains("- purpose:") && form.contains("- name:"), "{form}");
}

/// Whatever the model makes of the form, only words of the message are recorded, and only values that the workflow accepts.
#[tokio::test]
async fn made_up_values_are_not_recorded() {
    let read =
        json!({"purpose": "weather reports", "format": "bullets", "name": "Weather Report", "other": "x"});
    let model = on().script(
        "maker",
        [
            ScriptedTurn::text("Shall we begin?"),
            form(&read),
            ScriptedTurn::text("It is sunny."),
            form(&json!({"purpose": "What is the weather like?", "format": "a poem", "name": {"a": 1}})),
        ],
    );
    let (talk, _) = talk(&model).await;
    let first = talk.say("create a skill").await;
    assert_eq!(first.answer(), "Shall we begin?", "the model asked: {}", first.log());
    let second = talk.say("What is the weather like?").await;
    assert_eq!(second.answer(), "It is sunny.\n\nWhat is the purpose?", "{}", second.log());
    assert_eq!(values(&talk).await, ("gathering".to_owned(), json!({})));
    assert!(statuses(&second).contains(&format!("{READ}none").as_str()));
}

/// Neither junk, nor an error, nor an empty reply ends the run: the question of the file is asked.
#[tokio::test]
async fn model_that_cannot_fill_in_a_form_does_not_fail_the_run() {
    let junk = [
        ScriptedTurn::text("I am sorry, I cannot do that."),
        ScriptedTurn::text("[\"purpose\"]"),
        ScriptedTurn::text("{\"purpose\": "),
        ScriptedTurn::error(ModelErrorKind::InvalidRequest),
        ScriptedTurn::default(),
        ScriptedTurn::call("advance_workflow", &all()),
    ];
    for reply in junk {
        // What is left of an attempt that is repeated is junk too.
        let more = (0..5).map(|_| ScriptedTurn::error(ModelErrorKind::InvalidRequest));
        let model = on().script("maker", [ScriptedTurn::text("Fine."), reply].into_iter().chain(more));
        let (talk, calls) = talk(&model).await;
        let ran = talk.say("create a skill for alerts").await;
        assert_eq!(ran.answer(), "Fine.\n\nWhat is the purpose?", "{}", ran.log());
        assert_eq!((values(&talk).await.1, calls.count()), (json!({}), [0, 0, 0]));
    }
}

/// Without structured output the reply is text with JSON in it.
#[tokio::test]
async fn structured_output_is_not_needed() {
    let supports = ModelSupport { structured_output: false, ..ModelSupport::default() };
    let read = ScriptedTurn::text("Here you are:\n```json\n{\"name\": \"Alert\", \"purpose\": null}\n```");
    let model = model(supports, ModelAssists::default()).script("maker", [ScriptedTurn::text("Well."), read]);
    let (talk, _) = talk(&model).await;
    let ran = talk.say("create a skill. The name is Alert.").await;
    assert_eq!(values(&talk).await.1, json!({"name": "Alert"}), "{}", ran.log());
}

#[tokio::test]
async fn help_can_be_turned_off() {
    let turns = [ScriptedTurn::default().say("It ").say("is done!")];
    let model = model(ModelSupport::default(), off()).script("maker", turns);
    let (talk, _) = talk(&model).await;
    let ran = talk.say("create a skill for alerts").await;
    assert_eq!((ran.answer(), readings(&ran)), ("It is done!", 0));
    assert!(ran.log().contains("text \"It \""), "it is streamed: {}", ran.log());
}

#[tokio::test]
async fn limit_forbids_the_reading() {
    let model = on().script("maker", [ScriptedTurn::text("Well.")]);
    let calls = Calls::default();
    let mut setup = setup(&model, &calls);
    setup.others[0].limits.max_turns = 1;
    let ran = Talk::new(setup).await.say("create a skill for alerts").await;
    assert_eq!((ran.answer(), readings(&ran)), ("Well.", 0), "{}", ran.log());
}

/// The user's own yes to the question of the workflow counts without a call of the tool. A form that says yes does not, and neither
/// does a yes to another question that the model asked.
#[tokio::test]
async fn only_the_users_own_yes_confirms() {
    for (question, words, saved) in [
        ("Save it?", "Yes, save it", 1),
        ("Save it?", "Sounds like a plan, whatever", 0),
        ("Save it?", "is that right", 0),
        ("Shall I call it Slack Alert instead?", "yes, please", 0),
    ] {
        let yes = form(&json!({"confirmed": true, "name": null}));
        let model = on()
            .script(
                "maker",
                [advance(all()), ScriptedTurn::text(question), ScriptedTurn::text("Saved!"), yes],
            )
            .script("a", [ScriptedTurn::text("Great.")]);
        let (talk, calls) = talk(&model).await;
        talk.say("create a skill").await;
        let ran = talk.say(words).await;
        assert_eq!(calls.count()[2], saved, "{words}: {}", ran.log());
        assert_eq!((readings(&ran), talk.open().await.is_none()), (1 - saved, saved == 1), "{}", ran.log());
        if saved == 0 {
            assert_eq!(ran.answer(), "Saved!\n\nSave it? (yes or no)", "the question is repeated");
        }
    }
}

/// A yes does not confirm a question that the user has not seen.
#[tokio::test]
async fn yes_in_the_first_message_confirms_nothing() {
    let read = form(&json!({"purpose": "alerts", "name": "Alert", "triggers": "alert us"}));
    let model = on().script("maker", [ScriptedTurn::text("Done."), read]);
    let (talk, calls) = talk(&model).await;
    let ran =
        talk.say("create a skill: alerts. Its name is Alert. People say \"alert us\". Yes, save it.").await;
    assert_eq!((calls.count(), values(&talk).await.0.as_str()), ([1, 1, 0], "testing"), "{}", ran.log());
    assert!(ran.answer().ends_with("It is valid.\n\nSave it? (yes or no)"), "{}", ran.answer());
}

#[tokio::test]
async fn correction_at_the_question_is_read() {
    let read = form(&json!({"purpose": null, "name": "Pager", "triggers": null}));
    let turns = [advance(all()), ScriptedTurn::text("Save it?"), ScriptedTurn::text("OK."), read];
    let model = on().script("maker", turns);
    let (talk, calls) = talk(&model).await;
    talk.say("create a skill").await;
    let ran = talk.say("No, call it Pager").await;
    assert_eq!(values(&talk).await.1["name"], "Pager", "{}", ran.log());
    assert_eq!(calls.count(), [2, 2, 0], "what used the name runs again, and nothing is saved");
}

/// Where several states follow, the model chooses one of them.
#[tokio::test]
async fn model_chooses_the_next_state() {
    for (choice, state) in [("triggers", "triggers"), ("complete", "gathering"), ("none", "gathering")] {
        let read = form(&json!({"purpose": "alerts", "name": "Alert"}));
        let chosen = form(&json!({ "next": choice }));
        let model = on().script("maker", [ScriptedTurn::text("Well."), read, chosen]);
        let calls = Calls::default();
        let mut setup: Setup = setup(&model, &calls);
        let maker: &mut Agent = &mut setup.others[0];
        let states = &mut maker.workflow.as_mut().unwrap().states;
        states[0].next = vec![StateName("triggers".into()), StateName("writing".into())];
        let talk = Talk::new(setup).await;
        let ran = talk.say("create a skill: alerts. Its name is Alert.").await;
        assert_eq!(values(&talk).await.0, state, "{}", ran.log());
        assert_eq!(readings(&ran), 2);
    }
}

/// A small model, whose values have to be in the message.
fn checked() -> Scripted {
    let assists = ModelAssists { workflow_evidence: true, workflow_values: false, ..ModelAssists::default() };
    model(ModelSupport::default(), assists)
}

#[tokio::test]
async fn values_that_a_small_model_makes_up_are_refused() {
    let made_up =
        json!({"values": {"purpose": "alerts", "format": "table", "name": "Sirens", "triggers": "go"}});
    let model = checked().script("maker", [advance(&made_up), ScriptedTurn::text("And the name?")]);
    let (talk, calls) = talk(&model).await;
    let ran = talk.say("create a skill for alerts").await;
    assert_eq!(values(&talk).await, ("gathering".to_owned(), json!({"purpose": "alerts"})), "{}", ran.log());
    let told = told(&asked_of(&model, "maker")[1]).pop().unwrap();
    assert!(told.contains("the person has not said: format, name, triggers."), "{told}");
    assert_eq!((ran.answer(), calls.count()), ("And the name?", [0, 0, 0]));
}

#[tokio::test]
async fn call_with_only_made_up_values_fails() {
    let model = checked().script("maker", [advance(all()), ScriptedTurn::text("What is it for?")]);
    let (talk, _) = talk(&model).await;
    let ran = talk.say("create a skill").await;
    assert_eq!(values(&talk).await.1, json!({}), "{}", ran.log());
    let told = told(&asked_of(&model, "maker")[1]).pop().unwrap();
    assert!(told.contains("ask for them. What is the purpose?"), "{told}");
}

/// A yes to a proposal makes the proposal the user's words.
#[tokio::test]
async fn accepted_proposal_is_evidence() {
    let name = |name: &str| advance(json!({"values": {"name": name}}));
    let proposal = || ScriptedTurn::text("Shall we call it Alert Sender?");
    let model = checked().script("maker", [proposal(), name("Alert Sender"), ScriptedTurn::text("Good.")]);
    let (one, _) = talk(&model).await;
    one.say("create a skill").await;
    one.say("yes").await;
    assert_eq!(values(&one).await.1, json!({"name": "Alert Sender"}));
    let model = checked().script("maker", [proposal(), name("Alert Sender"), ScriptedTurn::text("Good.")]);
    let (other, _) = talk(&model).await;
    other.say("create a skill").await;
    other.say("no, something shorter").await;
    assert_eq!(values(&other).await.1, json!({}));
}

/// A larger model may put things in its own words.
#[tokio::test]
async fn other_models_may_restate_values() {
    let model = on().script("maker", [advance(all()), ScriptedTurn::text("Save it?")]);
    let (talk, _) = talk(&model).await;
    talk.say("create a skill").await;
    assert_eq!(values(&talk).await.0, "testing");
}

/// Neither a yes nor a no is the model's to give.
#[tokio::test]
async fn model_cannot_decline_for_the_user() {
    let no = advance(json!({"values": {"confirmed": false}}));
    let model = on().script("maker", [advance(all()), no, ScriptedTurn::text("Save it?")]);
    let (talk, _) = talk(&model).await;
    let ran = talk.say("create a skill").await;
    assert_eq!(values(&talk).await.0, "testing", "{}", ran.log());
}

#[tokio::test]
async fn small_model_cannot_complete_an_unfinished_workflow() {
    let done = ScriptedTurn::call("complete_handoff", &json!({"result_summary": "The skill is saved."}));
    let model = checked().script("maker", [done, ScriptedTurn::text("What is it for?")]);
    let (talk, _) = talk(&model).await;
    let ran = talk.say("create a skill").await;
    assert_eq!((ran.answer(), talk.open().await.is_some()), ("What is it for?", true), "{}", ran.log());
    let asked = asked_of(&model, "maker");
    assert!(!asked[0].tools.contains(&"complete_handoff".to_owned()), "{:?}", asked[0].tools);
    assert!(told(&asked[1]).pop().unwrap().contains("your workflow is not done"));
}

/// After a small model has recorded something the engine speaks; after a call that failed the model has to.
#[tokio::test]
async fn small_model_does_not_call_again_and_again() {
    let assists = ModelAssists { workflow_evidence: true, ..ModelAssists::default() };
    let small = || model(ModelSupport::default(), assists);
    let named = advance(json!({"values": {"name": "Alert", "purpose": "made up by the model"}}));
    let model = small().script("maker", [named, advance(all())]);
    let (one, calls) = talk(&model).await;
    let ran = one.say("create a skill. The name is Alert.").await;
    assert_eq!(ran.answer(), "Noted:\n- Name: Alert\n\nWhat is the purpose?", "{}", ran.log());
    assert_eq!((model.left(), calls.count()), (1, [0, 0, 0]), "one turn is enough");
    let model =
        small().script("maker", [advance(all()), ScriptedTurn::text("What is it for?"), form(&json!({}))]);
    let (other, _) = talk(&model).await;
    let ran = other.say("create a skill").await;
    assert_eq!(ran.answer(), "What is it for?", "{}", ran.log());
    assert_eq!(asked_of(&model, "maker")[1].tool_choice, baton_core::model::ToolChoice::None);
}
