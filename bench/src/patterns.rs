//! Agents that involve others, beside the sum of the model calls they make, with a model that answers at once.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton::core::store::RunStatus;
use baton::engine::Engine;
use baton_agents::SourceFile;
use futures_util::StreamExt as _;
use serde_json::json;

use crate::provider::ProviderProcess;
use crate::turns::{engine_of, request_to};
use crate::{Goals, cpu};

const RUNS: u32 = 100;
const ROUNDS: usize = 5;
const HOPS: usize = 5;
const CROWD: usize = 100;

/// What one way of doing it took, per run.
#[derive(Debug, Clone, Copy)]
struct RunCost {
    wall: Duration,
    cpu: Duration,
}

impl RunCost {
    const WORST: Self = Self { wall: Duration::MAX, cpu: Duration::MAX };

    /// Noise only ever adds time.
    fn best(self, other: Self) -> Self {
        Self { wall: self.wall.min(other.wall), cpu: self.cpu.min(other.cpu) }
    }
}

pub fn run(goals: &mut Goals) {
    let provider = ProviderProcess::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = reqwest::Client::new();
        let engine = engine_of(&sources(), &provider.base_url, "sqlite::memory:").await;
        let transfers: Vec<String> = (0..HOPS).map(hop).chain(["word".to_owned()]).collect();
        compare(goals, "5 transfers", "t0", &engine, &client, &provider, &transfers).await;
        let delegation = [fan_out(&names("d", 2)), "word".to_owned(), "word".to_owned(), "word".to_owned()];
        compare(goals, "1 to 2 delegation", "d0", &engine, &client, &provider, &delegation).await;
        fan(goals, &engine, "two sub-agents of 300 ms", "s0", 4, 400.0).await;
        fan(goals, &engine, "100 sub-agents without delay", "w0", CROWD + 2, 1000.0).await;
    });
}

/// The model of the agent that passes on to the next.
fn hop(at: usize) -> String {
    format!("call:transfer_to_t{}:{}", at + 1, json!({"reason": "it is theirs"}))
}

fn fan_out(agents: &[String]) -> String {
    format!("call:delegate:{}", json!({"agents": agents, "message": "Look it up."}))
}

/// `d1`, `d2`, …
fn names(letter: &str, count: usize) -> Vec<String> {
    (1..=count).map(|at| format!("{letter}{at}")).collect()
}

fn sources() -> Vec<Arc<SourceFile>> {
    let quoted = |model: &str| serde_json::to_string(&format!("bench/{model}")).expect("text");
    let mut sources: Vec<Arc<SourceFile>> = (0..=HOPS)
        .map(|at| {
            let (model, next) = if at < HOPS {
                (hop(at), format!("collaborations: [t{}]\n", at + 1))
            } else {
                ("word".to_owned(), String::new())
            };
            let text = format!("---\ndescription: Helps.\nmodel: {}\n{next}---\nYou help.\n", quoted(&model));
            SourceFile::new(format!("t{at}.md"), text)
        })
        .collect();
    for (letter, count, model) in [("d", 2, "word"), ("s", 2, "slow"), ("w", CROWD, "word")] {
        let agents = names(letter, count);
        let main = format!(
            "---\ndescription: Helps.\nmodel: {}\nagents: {}\ndelegation: {{ max_concurrent: {count} }}\n---\nYou help.\n",
            quoted(&fan_out(&agents)),
            json!(agents)
        );
        sources.push(SourceFile::new(format!("{letter}0.md"), main));
        for name in agents {
            let text = format!("---\ndescription: Helps.\nmodel: bench/{model}\n---\nYou help.\n");
            sources.push(SourceFile::new(format!("{name}.md"), text));
        }
    }
    sources
}

async fn compare(
    goals: &mut Goals,
    what: &str,
    agent: &str,
    engine: &Arc<Engine>,
    client: &reqwest::Client,
    provider: &ProviderProcess,
    models: &[String],
) {
    let (mut bare, mut runs) = (RunCost::WORST, RunCost::WORST);
    for _ in 0..ROUNDS {
        bare = bare.best(measure(|| bare_calls(client, provider, models)).await);
        runs = runs.best(measure(|| whole_run(engine, agent, models.len())).await);
    }
    let calls = models.len();
    println!("  {what}: {calls} bare calls {:>7.1?} cpu, a run {:>7.1?} cpu", bare.cpu, runs.cpu);
    println!("  {what}: {calls} bare calls {:>7.1?} wall, a run {:>7.1?} wall", bare.wall, runs.wall);
    let added = runs.cpu.saturating_sub(bare.cpu).as_secs_f64() * 1000.0;
    println!(
        "  {what}: {:.3} ms of cpu added per model call",
        added / f64::from(u32::try_from(calls).unwrap_or(1))
    );
    // G21: transfers add less than 100 ms altogether.
    goals.below(&format!("{what}: milliseconds of cpu added to a run"), added, 100.0);
}

/// H10: agents at the same time. The best of some runs, because noise only ever adds time.
async fn fan(goals: &mut Goals, engine: &Arc<Engine>, what: &str, agent: &str, calls: usize, limit: f64) {
    let mut best = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        whole_run(engine, agent, calls).await;
        best = best.min(start.elapsed());
    }
    goals.below(&format!("{what}: milliseconds of a run"), best.as_secs_f64() * 1000.0, limit);
}

async fn measure<F: Future<Output = ()>>(work: impl Fn() -> F) -> RunCost {
    let (cpu, start) = (cpu::time(), Instant::now());
    for _ in 0..RUNS {
        work().await;
    }
    RunCost { wall: start.elapsed() / RUNS, cpu: cpu::time().saturating_sub(cpu) / RUNS }
}

/// The same model calls without anything around them.
async fn bare_calls(client: &reqwest::Client, provider: &ProviderProcess, models: &[String]) {
    let url = format!("{}/chat/completions", provider.base_url);
    for model in models {
        let messages =
            [json!({"role": "system", "content": "You help."}), json!({"role": "user", "content": "Hi"})];
        let body = json!({"model": model, "stream": true, "messages": messages});
        let response = client.post(&url).json(&body).send().await.expect("an answer");
        let mut stream = response.bytes_stream();
        while let Some(chunk) = stream.next().await {
            chunk.expect("bytes");
        }
    }
}

async fn whole_run(engine: &Arc<Engine>, agent: &str, calls: usize) {
    let finished = engine.start(request_to(agent)).await.expect("a run").finish().await;
    assert_eq!(finished.status, RunStatus::Completed, "{:?}", finished.failure);
    let asked = finished.rows.iter().filter(|row| row.tokens.output_tokens > 0).count();
    assert_eq!(asked, calls, "every call was made, and no other");
}
