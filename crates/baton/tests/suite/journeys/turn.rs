//! What a person hears of one run.

use std::collections::BTreeMap;

use serde_json::Value;

pub(super) struct Turn {
    pub(super) events: Vec<Value>,
}

impl Turn {
    pub(super) fn read(stream: &str) -> Self {
        let lines = stream.lines().filter_map(|line| line.strip_prefix("data:"));
        Self { events: lines.map(|line| serde_json::from_str(line).unwrap()).collect() }
    }

    pub(super) fn of_type<'a>(&'a self, kind: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["type"] == kind)
    }

    fn of_name<'a>(&'a self, field: &'a str, name: &'a str) -> impl Iterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event[field] == name)
    }

    /// Where in the stream something of this type comes first.
    pub(super) fn place(&self, kind: &str) -> usize {
        self.events.iter().position(|event| event["type"] == kind).unwrap_or_else(|| panic!("no {kind}"))
    }

    pub(super) fn run_id(&self) -> &str {
        self.events[0]["runId"].as_str().unwrap()
    }

    /// Whether it began once, and ended once and well.
    pub(super) fn is_well(&self) -> bool {
        let count = |kind| self.of_type(kind).count();
        let last = self.events.last().is_some_and(|event| event["type"] == "RUN_FINISHED");
        last && (count("RUN_STARTED"), count("RUN_FINISHED"), count("RUN_ERROR")) == (1, 1, 0)
    }

    /// Who said what to the person, in order.
    pub(super) fn texts(&self) -> Vec<(String, String)> {
        let mut texts: Vec<(String, String, String)> = Vec::new();
        let mut places = BTreeMap::new();
        for event in &self.events {
            let id = event["messageId"].as_str().unwrap_or_default().to_owned();
            match event["type"].as_str().unwrap() {
                "TEXT_MESSAGE_START" if event.get("subagentRunId").is_none() => {
                    places.insert(id.clone(), texts.len());
                    texts.push((id, event["name"].as_str().unwrap_or_default().to_owned(), String::new()));
                }
                "TEXT_MESSAGE_CONTENT" if places.contains_key(&id) => {
                    texts[places[&id]].2 += event["delta"].as_str().unwrap();
                }
                _ => {}
            }
        }
        texts.into_iter().map(|(_, name, text)| (name, text)).collect()
    }

    /// All that was said, whoever said it.
    pub(super) fn said(&self) -> String {
        self.texts().into_iter().map(|(_, text)| text).collect::<Vec<_>>().join("\n\n")
    }

    pub(super) fn speakers(&self) -> Vec<String> {
        self.texts().into_iter().map(|(name, _)| name).collect()
    }

    /// The sentences about handoffs that are for the person.
    pub(super) fn sentences(&self) -> Vec<&str> {
        let told = self.of_name("name", "baton.handoff").map(|event| event["value"]["message"].as_str());
        told.flatten().filter(|message| !message.is_empty()).collect()
    }

    pub(super) fn phases(&self) -> Vec<&str> {
        self.of_name("name", "baton.handoff").map(|event| event["value"]["phase"].as_str().unwrap()).collect()
    }

    /// The states that were entered, each once.
    pub(super) fn states(&self) -> Vec<&str> {
        let told = self.of_name("activityType", "baton.progress");
        let mut states: Vec<&str> = told.map(|event| event["content"]["state"].as_str().unwrap()).collect();
        states.dedup();
        states
    }

    /// The progress that accompanies the reply, with the mode: "[Skill Creation Mode] Gathering requirements - 3/6 answers".
    pub(super) fn progress(&self) -> String {
        let told = self.of_name("activityType", "baton.progress").last().map(|event| &event["content"]);
        let told = told.unwrap_or_else(|| panic!("no progress: {:?}", self.events));
        let text = |field: &str| told[field].as_str().unwrap_or_else(|| panic!("no {field}: {told}"));
        format!("{} {}", text("mode"), text("text"))
    }

    pub(super) fn statuses(&self) -> Vec<&str> {
        let told = self.of_name("activityType", "baton.status");
        told.map(|event| event["content"]["text"].as_str().unwrap()).collect()
    }

    /// Who has the baton when the run is over.
    pub(super) fn holder(&self) -> Value {
        let active =
            self.events.iter().filter_map(|event| match event["type"].as_str()? {
                "STATE_SNAPSHOT" => event["snapshot"].get("activeAgent"),
                "STATE_DELTA" => event["delta"].as_array()?.iter().rev().find_map(|patch| {
                    (patch["path"] == "/activeAgent").then(|| patch.get("value")).flatten()
                }),
                _ => None,
            });
        active.fold(None, |_, now| Some(now)).cloned().unwrap_or_default()
    }
}
