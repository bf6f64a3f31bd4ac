//! Results of a variant and their sums, stored as JSON.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use serde::{Deserialize, Serialize};

use crate::cases::Case;
use crate::check::{Check, quote};
use crate::observation::Observation;

/// The results of one model with one variant.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    pub model: String,
    pub variant: String,
    pub temperature: f64,
    /// By group; computed from `cases`.
    pub groups: BTreeMap<String, Summary>,
    pub total: Summary,
    pub cases: Vec<CaseResult>,
}

/// One repetition of a case.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CaseResult {
    pub group: String,
    pub name: String,
    pub repetition: u32,
    pub passed: bool,
    /// Empty if it passed.
    pub failures: Vec<String>,
    /// Passed and all checks, by kind.
    pub checks: BTreeMap<String, Score>,
    pub seconds: f64,
    pub seen: Observation,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Score {
    pub passed: u32,
    pub of: u32,
}

/// Sums over cases.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub score: Score,
    /// Checks by kind, such as `calls`.
    pub checks: BTreeMap<String, Score>,
    pub model_calls: u64,
    pub input_tokens: u64,
    /// Part of the input tokens.
    pub cached_tokens: u64,
    pub output_tokens: u64,
    /// Median over messages.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    pub seconds: f64,
}

impl Score {
    pub fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.of += other.of;
    }

    fn one(passed: bool) -> Self {
        Self { passed: u32::from(passed), of: 1 }
    }
}

impl CaseResult {
    pub fn new(
        case: &Case,
        repetition: u32,
        took: Duration,
        seen: Observation,
        checks: Vec<Check>,
        problem: Option<String>,
    ) -> Self {
        let mut scores: BTreeMap<String, Score> = BTreeMap::new();
        for check in &checks {
            let passed = check.failure.is_none() && problem.is_none();
            scores.entry(check.kind.to_owned()).or_default().add(Score::one(passed));
        }
        // After a time-out the other checks only repeat that there is no answer.
        let failures = match problem {
            Some(problem) => vec![problem],
            None => checks.into_iter().filter_map(|check| check.failure).collect(),
        };
        Self {
            group: case.group.clone(),
            name: case.name.clone(),
            repetition,
            passed: failures.is_empty(),
            failures,
            checks: scores,
            seconds: took.as_secs_f64(),
            seen,
        }
    }

    /// For people who wait.
    pub fn progress_line(&self, variant: &str) -> String {
        let word = if self.passed { "passed" } else { "FAILED" };
        let id = format!("{}/{}", self.group, self.name);
        format!("{variant}: {id:<36} {word} {:>6.1} s", self.seconds)
    }

    /// Why it failed and what was answered, on one line each.
    pub fn explanation(&self) -> String {
        let reasons = self.failures.iter().map(|failure| format!("\n    {failure}")).collect::<String>();
        let answer = quote(self.seen.last_answer());
        let answer = if answer.is_empty() { String::new() } else { format!("\n    answer: {answer}") };
        format!("  {}/{} ({}){reasons}{answer}", self.group, self.name, self.repetition)
    }
}

impl Summary {
    fn of<'a>(cases: impl Iterator<Item = &'a CaseResult>) -> Self {
        let mut sum = Self::default();
        let mut waits = Vec::new();
        for case in cases {
            sum.score.add(Score::one(case.passed));
            sum.seconds += case.seconds;
            for (kind, score) in &case.checks {
                sum.checks.entry(kind.clone()).or_default().add(*score);
            }
            for call in case.seen.model_calls() {
                sum.model_calls += 1;
                sum.input_tokens += call.input_tokens;
                sum.cached_tokens += call.cached_tokens;
                sum.output_tokens += call.output_tokens;
            }
            waits.extend(case.seen.messages.iter().filter_map(|message| message.first_token_ms));
        }
        waits.sort_unstable();
        sum.first_token_ms = waits.get(waits.len() / 2).copied();
        sum
    }
}

impl Report {
    pub fn new(model: &str, variant: &str, temperature: f64) -> Self {
        Self {
            model: model.to_owned(),
            variant: variant.to_owned(),
            temperature,
            groups: BTreeMap::new(),
            total: Summary::default(),
            cases: Vec::new(),
        }
    }

    pub fn add(&mut self, case: CaseResult) {
        let group = case.group.clone();
        self.cases.push(case);
        let of_group = self.cases.iter().filter(|case| case.group == group);
        self.groups.insert(group.clone(), Summary::of(of_group));
        self.total = Summary::of(self.cases.iter());
    }

    pub fn load(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("{} has no results", path.display()))
    }

    pub fn store(&self, path: &Path) -> anyhow::Result<()> {
        if let Some(dir) = path.parent() {
            std::fs::create_dir_all(dir)?;
        }
        let text = serde_json::to_vec_pretty(self)?;
        std::fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))
    }
}
