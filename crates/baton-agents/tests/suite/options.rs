//! `input_schema`, `allow_revisit`, `visible`, `strategies` and `resume`.

use baton_core::agent::{Agent, Strategy};

use crate::{draft, errors, name};

const NUMBER: &str = "{type: object, properties: {n: {type: number}}, required: [n]}";
const TEXT: &str = "{type: object, properties: {n: {type: string}}, required: [n]}";

fn agent(head: &str) -> Agent {
    let draft = draft(&[("a", head), ("b", "")]);
    assert_eq!(errors(&draft), [""; 0], "{head}");
    draft.agent(&name("a")).unwrap().agent.as_ref().clone()
}

/// E15: an answer that cannot be the input of the next stage is an error where the stage is named, and shows both schemas.
#[test]
fn e15_output_that_cannot_fit_the_next_stage_is_an_error() {
    let given = format!("output_schema: {TEXT}\nhandoff: b");
    let wanted = format!("input_schema: {NUMBER}");
    let draft = draft(&[("a", given.as_str()), ("b", wanted.as_str())]);
    let [problem] = draft.problems() else { panic!("{:?}", draft.problems()) };
    assert_eq!(
        problem.message,
        "`a` hands off to `b`, whose `input_schema` the `output_schema` of `a` cannot satisfy at `/n`: it is a string, and has to be a \
         number"
    );
    let place = |location: &baton_agents::Location| location.to_string();
    assert_eq!(place(&problem.location), "a.md:4:10");
    let related: Vec<String> = problem.related.iter().map(|related| place(&related.location)).collect();
    assert_eq!(related, ["a.md:3:1", "b.md:3:1"]);
}

/// E15: the answer of a stage that routes is that of its destinations; those who get the same input have the same schema.
#[test]
fn e15_routers_and_advisors_are_compared_too() {
    let (text, number) = (format!("output_schema: {TEXT}"), format!("input_schema: {NUMBER}"));
    let chained = "router: {destinations: [b, c]}\nhandoff: d";
    let found = errors(&draft(&[("a", chained), ("b", &text), ("c", ""), ("d", &number)]));
    assert!(found.len() == 1 && found[0].contains("the `output_schema` of `b` cannot"), "{found:?}");
    let typed = format!("input_schema: {TEXT}");
    for pattern in ["router: true\nagents: [b, c]", "advisors: [b]"] {
        let found = errors(&draft(&[("a", &format!("{typed}\n{pattern}")), ("b", &number), ("c", "")]));
        assert!(found.len() == 1 && found[0].contains("the `input_schema` of `a` cannot"), "{found:?}");
    }
}

/// E15: what may fit is no error: an answer without a schema, a mission that a model writes, a schema that allows more.
#[test]
fn e15_only_what_is_certain_is_reported() {
    let number = format!("input_schema: {NUMBER}");
    for head in [
        "handoff: b".to_owned(),
        format!("output_schema: {NUMBER}\nhandoff: b"),
        "output_schema: {type: object}\nhandoff: b".to_owned(),
        "output_schema: {type: object, properties: {m: {}}, additionalProperties: true}\nhandoff: b"
            .to_owned(),
        format!("output_schema: {TEXT}\nagents: [b]"),
        format!("output_schema: {TEXT}\ncollaborations: [b]"),
    ] {
        assert_eq!(errors(&draft(&[("a", &head), ("b", &number)])), [""; 0], "{head}");
    }
}

/// X23, X21, C-34: the keys and their defaults.
#[test]
fn options_have_their_defaults() {
    let plain = agent("collaborations: [b]");
    assert_eq!(
        (plain.collaborations[0].allow_revisit, plain.delegation.resume, plain.visible),
        (0, false, None)
    );
    let agent =
        agent("collaborations: [{agent: b, allow_revisit: 2}]\ndelegation: {resume: true}\nvisible: false");
    assert_eq!((agent.collaborations[0].allow_revisit, agent.delegation.resume), (2, true));
    assert!(agent.is_hidden() && agent.public_name() == "Assistant");
    let found = errors(&draft(&[("a", "collaborations: [{agent: b, allow_revisit: 101}]"), ("b", "")]));
    assert!(found.len() == 1 && found[0].contains("100"), "{found:?}");
}

/// B11: an agent supports the strategies of its file: `parallel` and `sequential`, and its own, unless it lists others.
#[test]
fn b11_supported_strategies_are_those_of_the_file() {
    use Strategy::{FirstSuccess, Parallel, Sequential};
    let of = |head: &str| agent(head).delegation.strategies;
    assert_eq!(of(""), [Parallel, Sequential]);
    assert_eq!(of("delegation: {strategy: first_success}"), [Parallel, Sequential, FirstSuccess]);
    assert_eq!(of("delegation: {strategies: [parallel]}"), [Parallel]);
    for (wrong, said) in [
        ("{strategies: [sequential]}", "does not have `parallel`"),
        ("{strategies: [parallel, parallel]}", "twice"),
        ("{strategies: [fastest, parallel]}", "`fastest` is none of"),
    ] {
        let found = errors(&draft(&[("a", &format!("delegation: {wrong}"))]));
        assert!(found.len() == 1 && found[0].contains(said), "{wrong}: {found:?}");
    }
}
