//! Labels that a prompt asks for, such as "RISK: LOW", "RISK: MEDIUM" or "RISK: HIGH".

use super::sentences::sentences;
use super::situation::Situation;
use super::words::{overlap, telling};

/// The label to set, as the prompt spells it, if the prompt asks for one. Rules decide by the prompt's own sentence about a
/// label ("High means: …"); where none fits, the last one stands: authors name the most careful one last.
pub(super) fn choose(situation: &Situation<'_>) -> Option<String> {
    let system = situation.system;
    let labels = labels(system);
    let careful = labels.last()?;
    let fit = |label: &&String| {
        let value = telling(label.rsplit(": ").next().unwrap_or(label));
        let about = sentences(system).into_iter().filter(|sentence| {
            let first = sentence.split_whitespace().next().unwrap_or_default();
            !sentence.contains('"') && telling(first).iter().any(|word| value.contains(word))
        });
        about.map(|sentence| overlap(&situation.question, &sentence)).sum::<usize>()
    };
    let best = labels.iter().max_by_key(fit).filter(|label| fit(label) > 0);
    Some(best.unwrap_or(careful).clone())
}

/// Quoted texts of the form `WORD: …` that share their first word; one alone is no choice.
fn labels(system: &str) -> Vec<String> {
    let quoted = system
        .split('"')
        .skip(1)
        .step_by(2)
        .map(|text| text.split_whitespace().collect::<Vec<_>>().join(" "));
    let mut labels: Vec<String> = quoted.filter(|text| is_label(text)).collect();
    let Some(first) = labels.first().and_then(|label| label.split_once(':')).map(|(key, _)| key.to_owned())
    else {
        return Vec::new();
    };
    labels.retain(|label| label.split_once(':').is_some_and(|(key, _)| key == first));
    if labels.len() < 2 { Vec::new() } else { labels }
}

fn is_label(text: &str) -> bool {
    let is_key = |key: &str| key.len() > 1 && key.chars().all(|c| c.is_uppercase() || c == '_');
    text.split_once(": ").is_some_and(|(key, value)| is_key(key) && !value.is_empty())
}
