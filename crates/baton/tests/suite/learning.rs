//! What was learnt from real runs, through the built command.

use serde_json::Value;

use crate::baton;
use crate::provider::{Provider, Reply};
use crate::run::project;

const REFUND: &str = "Where is the refund of my invoice?";
const TWICE: &str = "The November invoice was charged twice by mistake";
const EUROS: &str = "May I settle an invoice by bank transfer in euros?";

/// Runs in order: the question, and the agent that the router chooses. Who asks the same again was not served before.
const RUNS: [(&str, &str); 5] =
    [(REFUND, "support"), (REFUND, "billing"), (TWICE, "billing"), (EUROS, "support"), (EUROS, "billing")];

fn choice(agent: &str) -> Reply {
    let arguments = match agent {
        "support" => r#"{"agent": "support", "reason": "It fits"}"#,
        _ => r#"{"agent": "billing", "reason": "It fits"}"#,
    };
    Reply::Call { tool: "route_to", arguments }
}

fn prompt(request: &Value) -> String {
    request["messages"].to_string()
}

/// G14, G23: `baton patterns` says how well each agent serves a kind of request, from runs that this command has made. With the feature, the
/// router of the next run gets the same sentence at the end of its prompt, and `baton runs show` explains it.
#[test]
fn g_14_g_23_patterns_of_real_runs_are_shown_and_suggested() {
    let more = [choice("billing"), Reply::Text(&["Tomorrow."])];
    let replies = RUNS.iter().flat_map(|(_, agent)| [choice(agent), Reply::Text(&["Here."])]).chain(more);
    let provider = Provider::start(replies.collect());
    let dir = project(&provider.base_url, "router: true\nagents: [support, billing]");
    for (agent, description) in [("support", "Broken devices."), ("billing", "Invoices and refunds.")] {
        let file = format!("---\ndescription: {description}\n---\nYou help.\n");
        std::fs::write(dir.path().join(format!("agents/{agent}.md")), file).unwrap();
    }
    for (question, agent) in RUNS {
        let ran = baton(dir.path(), &["run", question]);
        assert_eq!((ran.code, ran.stdout.as_str()), (0, "Here.\n"), "{agent}: {}", ran.stderr);
    }
    let shown = baton(dir.path(), &["patterns"]);
    assert_eq!(shown.code, 0, "{}", shown.stderr);
    assert!(
        shown.stdout.ends_with("\nbilling questions: billing 100% of 3, support 0% of 2\n"),
        "{}",
        shown.stdout
    );
    assert!(shown.stdout.contains("a → billing") && shown.stdout.contains("a → support"), "{}", shown.stdout);
    let printed = baton(dir.path(), &["patterns", "--json"]);
    let learnt: Value = serde_json::from_str(&printed.stdout).unwrap();
    let insight = &learnt["insights"][0];
    assert_eq!((&insight["query_class"], &insight["agents"][0]["of"]), (&"billing".into(), &3.into()));
    let file = dir.path().join("baton.toml");
    let config = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, config + "\n[features]\nlearning = true\n").unwrap();
    let ran = baton(dir.path(), &["run", "When will the invoice for December be sent?", "--json"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    let asked = provider.finish();
    let hint = "(Experience with requests like this one, about billing: billing 100% of 3, support 0% of 2 served well. Suggested: ";
    assert!(prompt(&asked[10]).contains(hint), "{}", asked[10]);
    assert!(
        asked[..10].iter().all(|request| !prompt(request).contains("Experience")),
        "off unless turned on"
    );
    assert!(
        !prompt(&asked[10]).contains("November") && !prompt(&asked[10]).contains("euros"),
        "no words of others"
    );
    let runs: Value = serde_json::from_str(&baton(dir.path(), &["runs", "list", "--json"]).stdout).unwrap();
    let run = runs["data"][0]["run_id"].as_str().unwrap();
    let explained = baton(dir.path(), &["runs", "show", run]).stdout;
    assert!(explained.contains("billing 100% of 3, support 0% of 2"), "{explained}");
}
