use crate::tool::ToolError;
use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::workflow::data::{Question, Ran, StateFailure};

pub fn slot(key: &str, choices: &[&str], required: bool) -> Slot {
    let choices = choices.iter().map(ToString::to_string).collect();
    Slot { key: key.into(), ask: format!("What is the {key}?"), choices, required }
}

pub fn state(name: &str, collect: Vec<Slot>, next: &[&str]) -> WorkflowStep {
    let next = next.iter().map(|name| StateName(name.to_string())).collect();
    WorkflowStep { name: StateName(name.into()), collect, run: None, on_failure: None, confirm: None, next }
}

/// A shortened workflow of the bundled skill creator.
pub fn skill() -> Workflow {
    let gathering = vec![
        slot("purpose", &[], true),
        slot("format", &["bullets", "table"], false),
        slot("name", &[], true),
    ];
    let mut writing = state("writing", vec![], &["testing"]);
    writing.run = Some("write".into());
    let mut testing = state("testing", vec![], &["complete"]);
    testing.run = Some("check".into());
    testing.on_failure = Some(StateName("gathering".into()));
    testing.confirm = Some("Save it?".into());
    let mut complete = state("complete", vec![], &[]);
    complete.run = Some("save".into());
    let triggers = state("triggers", vec![slot("triggers", &[], true)], &["writing"]);
    Workflow {
        states: vec![state("gathering", gathering, &["triggers"]), triggers, writing, testing, complete],
    }
}

fn values(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(key, text)| (key.to_string(), text.to_string())).collect()
}

fn failure(text: &str) -> StateFailure {
    StateFailure::new(&ToolError::Execution(text.to_owned()), false)
}

fn ran(uses: &[&str]) -> Ran {
    Ran { uses: uses.iter().map(ToString::to_string).collect(), text: "done".into(), artifacts: Vec::new() }
}

/// Advances without user input; tools succeed.
fn walk(machine: &mut Machine<'_>) -> Vec<String> {
    let mut way = Vec::new();
    loop {
        match machine.waits() {
            Waits::Tool(tool) => {
                way.push(tool.to_owned());
                let uses: &[&str] =
                    if tool == "write" { &["purpose", "format", "name", "triggers"] } else { &["name"] };
                machine.ran(ran(uses));
            }
            Waits::Onward(_) => machine.go(None).unwrap(),
            _ => return way,
        }
    }
}

fn at_the_question(workflow: &Workflow) -> Machine<'_> {
    let mut machine = Machine::read(workflow, None).unwrap();
    machine.take(&values(&[("purpose", "alerts"), ("name", "Alert"), ("triggers", "alert us")])).unwrap();
    assert_eq!(walk(&mut machine), ["write", "check"]);
    machine
}

#[test]
fn c_24_several_values_at_once_lead_through_several_states() {
    let workflow = skill();
    let mut machine = Machine::read(&workflow, None).unwrap();
    assert!(matches!(machine.go(None), Err(Refusal::Missing { keys, .. }) if keys == ["purpose", "name"]));
    assert!(matches!(machine.go(Some("testing")), Err(Refusal::NoWay { .. })));
    let changed =
        machine.take(&values(&[("triggers", "alert us"), ("purpose", "alerts"), ("name", "Alert")]));
    assert_eq!(changed.unwrap(), ["name", "purpose", "triggers"]);
    assert_eq!(walk(&mut machine), ["write", "check"]);
    assert_eq!((machine.name(), machine.waits()), ("testing", Waits::Confirm("Save it?")));
    assert!(matches!(machine.go(None), Err(Refusal::NotConfirmed(_))), "nobody gets past the question");
    machine.confirm(Confirmation::Yes).unwrap();
    assert_eq!(walk(&mut machine), ["save"]);
    assert_eq!((machine.name(), machine.waits()), ("complete", Waits::Done));
}

/// K7: the counts for the user. Values count wherever they are given, and optional ones when they are given or skipped.
#[test]
fn k_7_answers_count_values() {
    let workflow = skill();
    let mut machine = Machine::read(&workflow, None).unwrap();
    assert_eq!(machine.answers(), (0, 4));
    machine.take(&values(&[("triggers", "alert us"), ("purpose", "alerts")])).unwrap();
    assert_eq!(machine.answers(), (2, 4), "a value of a later state counts");
    machine.skip("format").unwrap();
    machine.take(&values(&[("purpose", "warnings")])).unwrap();
    assert_eq!(machine.answers(), (3, 4), "a correction does not");
    machine.take(&values(&[("name", "Alert")])).unwrap();
    walk(&mut machine);
    machine.failed(failure("taken"));
    assert_eq!(machine.answers(), (4, 4), "nor does a failure");
    let left = at_the_question(&workflow);
    assert_eq!(left.answers(), (3, 4), "an optional value was left out");
    let mut done = left;
    done.confirm(Confirmation::Yes).unwrap();
    walk(&mut done);
    assert_eq!((done.waits(), done.answers()), (Waits::Done, (4, 4)));
    let mut choice = workflow.clone();
    choice.states[1].next.insert(0, StateName("complete".into()));
    assert_eq!(Machine::read(&choice, None).unwrap().answers(), (0, 4), "the way that is taken by default");
}

#[test]
fn unknown_keys_and_choices_are_refused_and_nothing_is_taken() {
    let workflow = skill();
    let mut machine = Machine::read(&workflow, None).unwrap();
    let refused = machine.take(&values(&[("purpose", "alerts"), ("nmae", "Alert")])).unwrap_err().to_string();
    assert_eq!(
        refused,
        "there is no value `nmae`; did you mean `name`?; the values are `purpose`, `format`, `name`, `triggers`"
    );
    let refused =
        machine.take(&values(&[("purpose", "alerts"), ("format", "tabel")])).unwrap_err().to_string();
    assert_eq!(refused, "`format` is one of `bullets`, `table`; did you mean `table`?");
    assert!(machine.data.values.is_empty());
    machine.take(&values(&[("format", "TABLE")])).unwrap();
    assert_eq!(machine.data.values["format"], "table");
}

#[test]
fn a_correction_leads_back_to_the_tool_that_used_the_value() {
    let workflow = skill();
    let mut machine = at_the_question(&workflow);
    machine.take(&values(&[("name", "Slack Alert")])).unwrap();
    assert_eq!((machine.name(), machine.waits()), ("writing", Waits::Tool("write")));
    assert_eq!(walk(&mut machine), ["write", "check"]);
    assert_eq!(machine.waits(), Waits::Confirm("Save it?"));
    machine.take(&values(&[("name", "Slack Alert")])).unwrap();
    assert_eq!(machine.waits(), Waits::Confirm("Save it?"), "the same value changes nothing");
    machine.take(&values(&[("format", "table")])).unwrap();
    assert_eq!(machine.name(), "writing", "what came late is used too");
}

#[test]
fn no_leads_along_the_declared_way_and_waits_for_a_change() {
    let workflow = skill();
    let mut machine = at_the_question(&workflow);
    machine.confirm(Confirmation::No).unwrap();
    assert_eq!(machine.name(), "gathering");
    assert!(matches!(machine.waits(), Waits::Change(Held::Declined { .. })));
    assert!(matches!(machine.go(None), Err(Refusal::Held(_))));
    machine.take(&values(&[("name", "Other")])).unwrap();
    assert_eq!(walk(&mut machine), ["write", "check"]);
}

#[test]
fn failures_keep_everything_and_wait() {
    let workflow = skill();
    let mut machine = at_the_question(&workflow);
    machine.confirm(Confirmation::Yes).unwrap();
    machine.go(None).unwrap();
    assert!(machine.data.has_consent, "the person wants it saved");
    machine.failed(failure("the name is taken"));
    assert_eq!(machine.name(), "triggers", "no way is declared: the last state that collects something");
    assert!(!machine.data.has_consent);
    assert_eq!(machine.data.values.len(), 3);
    machine.release();
    assert_eq!(walk(&mut machine), ["write", "check"]);
    assert_eq!(machine.waits(), Waits::Confirm("Save it?"), "the question is put again");
}

#[test]
fn back_goes_to_where_something_was_said() {
    let workflow = skill();
    let mut machine = at_the_question(&workflow);
    machine.back().unwrap();
    assert_eq!((machine.name(), machine.waits()), ("triggers", Waits::Change(Held::Back)));
    machine.back().unwrap();
    assert_eq!(machine.name(), "gathering");
    assert_eq!(machine.back(), Err(Refusal::AtTheBeginning));
    machine.release();
    assert_eq!(walk(&mut machine), ["write", "check"]);
}

#[test]
fn a_question_counts_as_asked_only_for_a_later_run() {
    let workflow = skill();
    let mut machine = at_the_question(&workflow);
    let run = |n: u128| RunId::from_uuid(uuid::Uuid::from_u128(n));
    let at = |second: i64| Timestamp::from_second(second).unwrap();
    assert!(!machine.was_asked(run(2), at(20)), "it was not put at all");
    machine.data.question = Some(Question { run_id: run(1), at: at(10) });
    assert!(!machine.was_asked(run(1), at(5)), "the run that put it");
    assert!(!machine.was_asked(run(2), at(9)), "said before, and had to wait");
    assert!(machine.was_asked(run(2), at(11)));
}

#[test]
fn a_state_that_is_gone_leads_to_the_one_before() {
    let workflow = skill();
    let kept = at_the_question(&workflow).kept();
    let mut shorter = skill();
    shorter.states.retain(|state| state.name.0 != "testing");
    let machine = Machine::read(&shorter, Some(&kept)).unwrap();
    assert_eq!((machine.name(), machine.waits()), ("writing", Waits::Tool("write")));
    assert_eq!(machine.data.values.len(), 3);
    let kept = WorkflowState { state: "nowhere".into(), data: json!({"values": {"name": "A"}, "trail": 7}) };
    let machine = Machine::read(&workflow, Some(&kept)).unwrap();
    assert_eq!((machine.name(), machine.data.values.len()), ("gathering", 1));
}

/// An operation on a machine.
#[derive(Debug, Clone)]
enum Op {
    Take(Vec<(usize, u8)>),
    Skip(usize),
    Go(Option<usize>),
    Back,
    Ran(Vec<usize>),
    Failed,
    Unsure,
    Confirm(bool),
    Release,
    /// The process ends, and another one reads the stored data.
    Crash,
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        4 => prop::collection::vec((0..8usize, 0..4u8), 0..4).prop_map(Op::Take),
        1 => (0..8usize).prop_map(Op::Skip),
        6 => prop::option::of(0..7usize).prop_map(Op::Go),
        1 => Just(Op::Back),
        4 => prop::collection::vec(0..6usize, 0..4).prop_map(Op::Ran),
        1 => Just(Op::Failed),
        1 => Just(Op::Unsure),
        3 => any::<bool>().prop_map(Op::Confirm),
        2 => Just(Op::Release),
        1 => Just(Op::Crash),
    ];
    prop::collection::vec(op, 1..60)
}

fn workflows() -> impl Strategy<Value = Workflow> {
    let slots = prop::collection::btree_map(0..6usize, (any::<bool>(), any::<bool>()), 0..3);
    let one = (
        slots,
        any::<bool>(),
        any::<bool>(),
        prop::option::of(0..6usize),
        prop::collection::vec(0..6usize, 0..3),
    );
    prop::collection::vec(one, 1..6).prop_map(|states| {
        let count = states.len();
        let name = |at: usize| StateName(format!("s{}", at % count));
        let made = states.into_iter().enumerate().map(|(at, (slots, runs, asks, on_failure, next))| {
            let slots = slots.into_iter().map(|(key, (chooses, required))| {
                slot(&format!("k{key}"), if chooses { &["v0", "v1"] } else { &[] }, required)
            });
            let mut next: Vec<StateName> = next.into_iter().map(name).collect();
            next.dedup();
            if next.is_empty() && at + 1 < count {
                next.push(name(at + 1));
            }
            WorkflowStep {
                name: name(at),
                collect: slots.collect(),
                run: runs.then(|| format!("t{at}")),
                on_failure: on_failure.map(name),
                confirm: asks.then(|| "Sure?".to_owned()),
                next,
            }
        });
        Workflow { states: made.collect() }
    })
}

fn perform(machine: &mut Machine<'_>, op: &Op) -> Result<(), Refusal> {
    match op {
        Op::Take(given) => {
            let given = given.iter().map(|(key, text)| (format!("k{key}"), format!("v{text}")));
            machine.take(&given.collect()).map(drop)
        }
        Op::Skip(key) => machine.skip(&format!("k{key}")),
        Op::Go(to) => machine.go(to.map(|to| format!("s{to}")).as_deref()),
        Op::Back => machine.back(),
        Op::Ran(uses) => {
            if let Waits::Tool(_) = machine.waits() {
                let uses = uses.iter().map(|key| format!("k{key}")).collect();
                machine.ran(Ran { uses, text: String::new(), artifacts: Vec::new() });
            }
            Ok(())
        }
        Op::Failed | Op::Unsure => {
            if let Waits::Tool(_) = machine.waits() {
                if matches!(op, Op::Failed) {
                    machine.failed(failure("no"));
                } else {
                    machine.unsure(failure("no"));
                }
            }
            Ok(())
        }
        Op::Confirm(yes) => machine.confirm(if *yes { Confirmation::Yes } else { Confirmation::No }),
        Op::Release => {
            machine.release();
            Ok(())
        }
        Op::Crash => {
            let kept = machine.kept();
            *machine = Machine::read(machine.workflow, Some(&kept)).unwrap();
            Ok(())
        }
    }
}

fn is_sound(workflow: &Workflow, before: &Machine<'_>, machine: &Machine<'_>, op: &Op) {
    let declared = |name: &str| workflow.state(&StateName(name.to_owned())).unwrap();
    let is_filled = |state: &WorkflowStep| {
        state.collect.iter().all(|slot| !slot.required || machine.data.values.contains_key(&slot.key))
    };
    declared(machine.name());
    let trail = &machine.data.trail;
    assert!(trail.iter().all(|name| is_filled(declared(name))), "a required key was skipped");
    assert!(!trail.iter().any(|name| name == machine.name()));
    assert_eq!(trail.iter().collect::<BTreeSet<_>>().len(), trail.len());
    let values = &before.data.values;
    assert!(values.keys().all(|key| machine.data.values.contains_key(key)), "a value was lost");
    if !matches!(op, Op::Take(_)) {
        assert_eq!(*values, machine.data.values);
    }
    if before.name() != machine.name() && matches!(op, Op::Go(_)) {
        assert!(before.state.next.contains(&machine.state.name), "an undeclared way");
        assert!(is_filled(before.state));
        assert!(before.state.confirm.is_none() || before.data.is_agreed, "nobody said yes");
        assert!(before.state.run.is_none() || before.data.is_ready, "its tool did not run");
    }
    let kept = serde_json::to_value(machine.kept()).unwrap();
    let read: WorkflowState = serde_json::from_value(kept).unwrap();
    let again = Machine::read(workflow, Some(&read)).unwrap();
    assert_eq!((again.name(), &again.data), (machine.name(), &machine.data));
    assert_eq!(again.waits(), machine.waits());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, failure_persistence: None, ..ProptestConfig::default() })]

    /// C-24: for any sequence of operations, only declared transitions happen, no required value is skipped and no value is
    /// lost.
    #[test]
    fn c_24_no_sequence_breaks_a_walk(workflow in workflows(), ops in ops()) {
        let mut machine = Machine::read(&workflow, None).unwrap();
        for op in &ops {
            let before = machine.clone();
            if perform(&mut machine, op).is_err() {
                prop_assert_eq!((before.name(), &before.data), (machine.name(), &machine.data));
            }
            is_sound(&workflow, &before, &machine, op);
            // K7: the count of answers never goes back while the workflow lasts.
            let (answered, questions) = machine.answers();
            prop_assert!(answered <= questions);
            let keys = |machine: &Machine<'_>| machine.data.values.len() + machine.data.skipped.len();
            prop_assert!(keys(&before) <= keys(&machine));
        }
    }
}
