//! Which calls wait, and which are denied.

use baton_core::agent::{Collaboration, ToolPattern};
use baton_core::store::RunStatus;
use baton_core::tool::Risk;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::Written;
use crate::Setup;

fn patterns(names: &[&str]) -> Vec<ToolPattern> {
    names.iter().map(|name| ToolPattern::parse(name).unwrap()).collect()
}

/// `a` calls `b`, and `b` calls `write`.
fn nested(written: &Written) -> (Scripted, Setup) {
    let call = ScriptedTurn::call("call_agent", &json!({"mission": "x", "specialist": "b"}));
    let model = Scripted::default()
        .script("a", [call, ScriptedTurn::text("Done.")])
        .script("b", [ScriptedTurn::call("write", &json!({"n": 1})), ScriptedTurn::text("B.")]);
    let setup = Setup::new(&model)
        .agent(|a| a.agents = vec![crate::name("b")])
        .with("b", |_| {})
        .tool(written.tool("write"));
    (model, setup)
}

/// F20, F21: what a caller asks for, its sub-agents ask for, whatever their files say.
#[tokio::test]
async fn f20_sub_agent_policy_is_never_weaker_than_its_callers() {
    for (ask_at, caller_ask, caller_auto, child_auto, waits) in [
        (Some(Risk::High), &[][..], &[][..], &["write"][..], true),
        (Some(Risk::High), &[], &["write"], &["write"], false),
        (Some(Risk::High), &[], &["write"], &[], true),
        (None, &["write"], &[], &["write"], true),
        (None, &[], &[], &[], false),
    ] {
        let written = Written::default();
        let (_, mut setup) = nested(&written);
        setup.ask_at = ask_at;
        setup.agent.approvals.ask = patterns(caller_ask);
        setup.agent.approvals.auto = patterns(caller_auto);
        setup.others[0].approvals.auto = patterns(child_auto);
        let end = setup.run().await.end;
        let expected = if waits { RunStatus::Waiting } else { RunStatus::Completed };
        assert_eq!((end.status, written.all().len()), (expected, usize::from(!waits)));
    }
}

/// A denied tool is hidden from the model, refused if it is called anyway, and denied to sub-agents too.
#[tokio::test]
async fn denied_tools_are_hidden_and_refused() {
    let written = Written::default();
    let (model, mut setup) = nested(&written);
    setup.agent.approvals.deny = patterns(&["wri*"]);
    let end = setup.run().await.end;
    assert_eq!((end.status, written.all().len()), (RunStatus::Completed, 0));
    let of_b = model.asked().into_iter().find(|asked| asked.agent == "b").unwrap();
    assert!(!of_b.tools.contains(&"write".to_owned()), "{:?}", of_b.tools);
    assert!(super::results(&model, "b")[0].contains("`write` is denied for this agent"));
}

/// An agent that receives the baton is bound by its own file, not by the giver's.
#[tokio::test]
async fn receiver_of_the_baton_has_its_own_policy() {
    let written = Written::default();
    let model = Scripted::default()
        .script("a", [ScriptedTurn::call("transfer_to_b", &json!({"reason": "knows better"}))])
        .script("b", [ScriptedTurn::call("write", &json!({"n": 1})), ScriptedTurn::text("B.")]);
    let mut setup = Setup::new(&model).with("b", |_| {}).tool(written.tool("write"));
    setup.agent.collaborations =
        vec![Collaboration { agent: crate::name("b"), when: None, allow_revisit: 0 }];
    setup.agent.approvals.ask = patterns(&["write"]);
    assert_eq!((setup.run().await.end.status, written.all().len()), (RunStatus::Completed, 1));
}
