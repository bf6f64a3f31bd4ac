//! The agents of both servers.

use std::path::Path;

use baton::project::Project;
use baton_core::agent::{Workflow, WorkflowStep};

/// Names and frontmatter. The prompt is "You are" and the name.
const AGENTS: &[(&str, &str)] = &[
    (
        "assistant",
        "tools: [shell]\napprovals: { auto: [shell] }\nagents: [helper]\ncollaborations: [maker, closer, guest, brief, broken]",
    ),
    ("helper", ""),
    ("first", "handoff: second"),
    ("second", ""),
    ("maker", MAKER),
    // The polisher replies after `complete_handoff`, while the handoff is returning.
    ("closer", "accepts_handoff: true\nhandoff: polisher"),
    ("polisher", ""),
    ("guest", "accepts_handoff: { exclusive: false }"),
    ("brief", "accepts_handoff: { max_session: 1s }"),
    ("broken", "accepts_handoff: true"),
];

/// A workflow with every kind of state.
const MAKER: &str = "accepts_handoff: true
approvals: { auto: [shell] }
workflow:
  states:
    - name: details
      collect: [{ key: command, ask: What builds it? }]
    - name: building
      run: shell
    - name: reviewing
      confirm: Is it good like this?
      on_failure: details
    - name: choosing
      next: [publishing, complete]
    - name: publishing
      run: shell
    - name: complete";

/// Writes the project of a server.
pub(super) fn project(dir: &Path, store: &str, base_url: &str) {
    std::fs::create_dir_all(dir.join("agents")).unwrap();
    for (name, head) in AGENTS {
        let text = format!("---\ndescription: Helps.\n{head}\n---\nYou are {name}.\n");
        std::fs::write(dir.join(format!("agents/{name}.md")), text).unwrap();
    }
    let config = format!(
        "[agents]\nmain = \"assistant\"\n[store]\nurl = \"{store}\"\n[models]\ndefault = \"local/m\"\n\
         [models.providers.local]\nbase_url = \"{base_url}\"\n\
         [models.providers.local.models.m]\nassists = {{ workflow_values = false, workflow_evidence = false, agent_tools = false, search_first = false }}\n[tools.shell]\nenabled = true\nsandbox = \"off\"\n"
    );
    std::fs::write(dir.join("baton.toml"), config).unwrap();
}

/// The maker's workflow as the server reads it.
pub(super) fn workflow(dir: &Path) -> Workflow {
    let project = Project::open(dir, Some(&dir.join("baton.toml")), &[]).unwrap();
    let roster = project.draft().finish().unwrap();
    let maker = roster.iter().find(|agent| agent.name.as_str() == "maker").unwrap();
    maker.workflow.clone().unwrap()
}

/// Fails if the workflow lacks a kind of state. A new field of `WorkflowStep` is a new kind: it does not compile until it is listed here.
pub(super) fn assert_every_kind_of_state(Workflow { states }: &Workflow) {
    let mut has = [false; 6];
    for WorkflowStep { name: _, collect, run, on_failure, confirm, next } in states {
        let kinds = [
            !collect.is_empty(),
            run.is_some(),
            on_failure.is_some(),
            confirm.is_some(),
            next.len() > 1,
            next.is_empty(),
        ];
        for (has, is) in has.iter_mut().zip(kinds) {
            *has |= is;
        }
    }
    assert_eq!(has, [true; 6], "{states:?}");
}
