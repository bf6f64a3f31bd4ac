//! Teams.

use serde_json::json;

use super::{NOTICE, Turn, marked};

const FINANCE: &str =
    "You speak for finance. Turn proposals for search or an app into cost and benefit. React by name.";
const END: &str = "You are `finance`, in a team with `engineering`. This is round 1 of at most 4.";

fn member(message: &str) -> Turn {
    Turn::of(FINANCE, message).tool("broadcast", "Tells.", &json!({})).tool(
        "vote_conclude",
        "Votes.",
        &json!({}),
    )
}

fn first() -> Turn {
    member(&marked(&[("request", "## REQUEST", "A mobile app, or faster search?")], END))
}

/// E32
#[test]
fn a_member_makes_its_point_once() {
    let (tool, arguments) = first().calls();
    let point = "Turn proposals for search or an app into cost and benefit.";
    assert_eq!((tool.as_str(), arguments), ("broadcast", json!({ "message": point })));
    assert_eq!(first().done("broadcast", &json!({}), "noted", false).says(), "pass");
}

/// E37: consensus ends.
#[test]
fn a_member_is_ready_from_the_second_round_on() {
    let post = ("post", "### `engineering`, round 1, 2026-01-01", "It takes weeks.");
    let second = first().said("My point.").asked(&marked(&[post], "This is round 2 of at most 4."));
    let (tool, arguments) = second.calls();
    assert_eq!((tool.as_str(), &arguments["ready"]), ("vote_conclude", &json!(true)));
    assert_eq!(second.done("vote_conclude", &json!({}), "noted", false).says(), "pass");
}

#[test]
fn the_coordinator_concludes_and_tells_who_said_what() {
    let posts = [
        ("post", "### `engineering`, round 1, 2026-01-01", "It takes weeks."),
        ("post", "### `finance`, round 1, 2026-01-01", "It costs little."),
        ("post", "### Notice, round 1, 2026-01-01", "`sales` could not take part in round 1: late"),
        ("dissent", "### Not agreed or not there", "`sales`: could not take part"),
    ];
    let told = marked(&posts, "You coordinate this team. Round 1 of at most 3 is over.");
    let chair = Turn::of("You lead a panel.", "A mobile app?").asked(&told);
    let between = chair.tool("conclude_team", "Ends it.", &json!({}));
    let (tool, arguments) = between.calls();
    assert_eq!(tool, "conclude_team");
    assert!(arguments["summary"].as_str().unwrap().contains("**engineering**: It takes weeks."));

    let said = Turn::of("You lead a panel.", "A mobile app?").asked(&told).says();
    assert!(said.contains("- **engineering**: It takes weeks.\n- **finance**: It costs little."), "{said}");
    assert!(
        said.contains("`sales` could not take part") && said.contains("Not agreed or not there: `sales`"),
        "{said}"
    );
    assert_eq!(said.matches(NOTICE).count(), 1);
}
