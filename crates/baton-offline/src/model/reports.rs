//! What came back from colleagues and tools, told to whoever asked.

use serde_json::Value;

use super::extract;
use super::notice::quotable;
use super::own;
use super::sentences::beginning;
use super::situation::{Done, Situation};
use super::skills::is_skill;

/// Said first when somebody could not be asked.
const LIMITED: &str = "I'm working with limited resources right now, but here's what I know:";
/// Said when a colleague could not take over.
const NOT_PASSED: &str =
    "The colleague who should take over is not available right now. You can ask again later; until then:";
const ONE: usize = 4_000;
const EACH: usize = 1_200;

/// What one colleague came back with.
#[derive(Debug, PartialEq, Eq)]
struct Report {
    agent: String,
    said: Result<String, String>,
}

/// What was found out, as parts of an answer. Empty when nothing was.
pub(super) fn told(situation: &Situation<'_>) -> Vec<String> {
    let of = |is_kind: fn(&str) -> bool| {
        situation.done.iter().filter(|done| is_kind(&done.result.name)).collect::<Vec<&Done<'_>>>()
    };
    let asked = of(|name| ["call_agent", "delegate"].contains(&name));
    let passed = of(passes_the_baton);
    let looked =
        of(|name| !["call_agent", "delegate"].contains(&name) && !passes_the_baton(name) && !is_skill(name));
    let reports: Vec<Report> = asked.iter().flat_map(|done| reports(done)).collect();
    let is_limited = asked.iter().any(|done| is_limited(done));
    let mut parts = Vec::new();
    parts.extend(is_limited.then(|| LIMITED.to_owned()));
    parts.extend(passed.iter().find(|done| done.result.failed).map(|done| not_passed(&done.result.content)));
    parts.extend(quoted(&reports));
    // Nobody could help: what the agent itself knows.
    let is_alone =
        !parts.is_empty() && looked.is_empty() && reports.iter().all(|report| report.said.is_err());
    parts.extend(own::knowledge(situation).filter(|_| is_alone).map(|known| format!("> {known}")));
    parts.extend(missing(&reports).filter(|_| is_limited));
    parts.extend(found(situation, &looked));
    parts
}

fn passes_the_baton(tool: &str) -> bool {
    tool == "route_to" || tool.starts_with("transfer_to_")
}

/// Why nobody took over, in the engine's own words where they are for the person.
fn not_passed(result: &str) -> String {
    let told = result.split_once("could not take over: ").map(|(_, told)| told);
    let why = told.and_then(|told| told.split_once(" The conversation is yours again"));
    let why = why.map(|(why, _)| why.strip_suffix('.').unwrap_or(why));
    match why {
        Some(why) if why.contains("currently unavailable") => why.to_owned(),
        Some(why) if why.contains("needs the permission") => {
            format!("I cannot connect you: {}.", why.replace("the person does not have", "you do not have"))
        }
        _ => NOT_PASSED.to_owned(),
    }
}

/// What they said. The same text from several is told once.
fn quoted(reports: &[Report]) -> Vec<String> {
    let mut said: Vec<(Vec<&str>, String)> = Vec::new();
    for report in reports {
        let Ok(text) = report.said.as_deref().map(quotable) else { continue };
        match said.iter_mut().find(|(_, known)| *known == text) {
            Some((agents, _)) => agents.push(&report.agent),
            None => said.push((vec![&report.agent], text)),
        }
    }
    match &said[..] {
        [(_, text)] => vec![beginning(text, ONE)],
        several => several
            .iter()
            .map(|(agents, text)| format!("From {}:\n{}", agents.join(", "), beginning(text, EACH)))
            .collect(),
    }
}

/// Who gave no answer. Why is for those who may read the trace.
fn missing(reports: &[Report]) -> Option<String> {
    let failed: Vec<&str> =
        reports.iter().filter(|report| report.said.is_err()).map(|report| report.agent.as_str()).collect();
    (!failed.is_empty()).then(|| format!("There is no answer from {}.", failed.join(", ")))
}

fn reports(done: &Done<'_>) -> Vec<Report> {
    let content = done.result.content.as_ref();
    let specialist = done.arguments["specialist"].as_str().unwrap_or("the colleague").to_owned();
    let Ok(value) = serde_json::from_str::<Value>(content) else {
        let said = if done.result.failed { Err(content.to_owned()) } else { Ok(content.to_owned()) };
        return vec![Report { agent: specialist, said }];
    };
    match value["results"].as_array() {
        Some(results) => results.iter().map(|one| report(one, "a colleague")).collect(),
        None => vec![report(&value, &specialist)],
    }
}

fn report(value: &Value, agent: &str) -> Report {
    let text = |keys: &[&str]| keys.iter().find_map(|key| value[*key].as_str()).map(str::to_owned);
    let said = text(&["response", "result"]).filter(|_| value["success"] != false);
    let failed = || text(&["error", "result"]).unwrap_or_else(|| "no reason was given".to_owned());
    Report {
        agent: text(&["agent_id", "agent"]).unwrap_or_else(|| agent.to_owned()),
        said: said.ok_or_else(failed),
    }
}

/// Whether the answer has to do without somebody: the engine says so in a note.
fn is_limited(done: &Done<'_>) -> bool {
    let value: Value = serde_json::from_str(&done.result.content).unwrap_or_default();
    done.result.failed || value["note"].as_str().is_some_and(|note| note.contains("limited resources"))
}

/// What tools found, by quotation.
fn found(situation: &Situation<'_>, looked: &[&Done<'_>]) -> Option<String> {
    let useful: Vec<&str> =
        looked.iter().filter(|done| !done.result.failed).map(|done| done.result.content.as_ref()).collect();
    if looked.is_empty() {
        return None;
    }
    if useful.is_empty() {
        let errors: Vec<String> =
            looked.iter().map(|done| format!("`{}`: {}", done.result.name, done.result.content)).collect();
        return Some(format!("I could not find an answer. {}", errors.join("; ")));
    }
    let answer = extract::answer(&situation.question, situation.system, &useful);
    Some(answer.unwrap_or_else(|| "I looked, and found nothing that answers this.".to_owned()))
}
