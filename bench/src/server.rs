//! The server beside a pass-through proxy to the same model that answers at once: what it adds to the first token, and what a
//! run costs it. Both are processes of their own, so that only their processor time is counted.

pub mod proxy;
pub mod streams;

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use clap::Parser as _;
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::provider::ProviderProcess;
use crate::{Goals, cpu};

const CLIENTS: [usize; 3] = [1, 16, 64];
/// Requests of each client in each round.
const REQUESTS: usize = 20;
const ROUNDS: usize = 3;

/// The server as the command starts it.
pub fn baton(arguments: &[String]) -> ExitCode {
    let arguments = ["baton".to_owned()].into_iter().chain(arguments.iter().cloned());
    baton::cli::Cli::parse_from(arguments).run().into()
}

/// A child that prints its address and then serves.
#[derive(Debug)]
pub struct ServedProcess {
    child: Child,
    pub url: String,
}

/// Facts about the models, so that the provider is not asked for them.
pub fn known_models(models: &[&str]) -> String {
    let unique: BTreeSet<&&str> = models.iter().collect();
    let table = |model| format!("[models.providers.bench.models.'{model}']\ncontext_window = 128000\n");
    unique.into_iter().map(table).collect()
}

impl ServedProcess {
    pub fn start(arguments: &[&str], dir: &Path) -> Self {
        Self::start_with(arguments, dir, &[])
    }

    /// Like [`ServedProcess::start`], with these environment variables.
    pub fn start_with(arguments: &[&str], dir: &Path, variables: &[(&str, &str)]) -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .args(arguments)
            .envs(variables.iter().copied())
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("a child process");
        let mut url = String::new();
        BufReader::new(child.stdout.as_mut().expect("stdout")).read_line(&mut url).expect("an address");
        Self { child, url: url.trim().to_owned() }
    }

    pub fn pid(&self) -> String {
        self.child.id().to_string()
    }

    /// A server with one agent for each of these models of a provider, called as the model is.
    pub fn baton(dir: &Path, provider: &ProviderProcess, models: &[&str]) -> Self {
        let agents = dir.join("agents");
        std::fs::create_dir_all(&agents).expect("a folder");
        for model in models {
            let agent = format!("---\ndescription: Helps.\nmodel: bench/{model}\n---\nYou help.\n");
            std::fs::write(agents.join(format!("{model}.md")), agent).expect("a file");
        }
        let config = format!(
            "[server]\nlisten = \"127.0.0.1:0\"\n[agents]\nmain = \"{}\"\n\
             [models]\ndefault = \"bench/m\"\n[models.providers.bench]\nbase_url = \"{}\"\n{}\
             [limits]\nrequests_per_minute = 100000000\nmax_concurrent_runs = 100000\n\
             max_connections_per_address = 100000\nmax_streams_per_tenant = 100000\n",
            models[0],
            provider.base_url,
            known_models(models)
        );
        std::fs::write(dir.join("baton.toml"), config).expect("a file");
        Self::start(&["--baton", "serve"], dir)
    }
}

impl Drop for ServedProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What one request took.
#[derive(Debug, Clone, Copy)]
struct Took {
    first: Duration,
}

pub fn run(goals: &mut Goals) {
    let provider = ProviderProcess::start();
    let dir = tempfile::tempdir().expect("a folder");
    let baton = ServedProcess::baton(dir.path(), &provider, &["m"]);
    let proxy = ServedProcess::start(&["--proxy", &provider.base_url], dir.path());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        for clients in CLIENTS {
            compare(goals, clients, &baton, &proxy).await;
        }
    });
}

/// The best of some rounds each, taken in turns: noise only ever adds.
async fn compare(goals: &mut Goals, clients: usize, baton: &ServedProcess, proxy: &ServedProcess) {
    let (mut ours, mut theirs) = (Sum::WORST, Sum::WORST);
    for _ in 0..ROUNDS {
        theirs = theirs.best(round(clients, proxy, through_proxy).await);
        ours = ours.best(round(clients, baton, through_baton).await);
    }
    let added = ours.first.saturating_sub(theirs.first);
    println!(
        "  {clients:>2} clients: first token {:.2} ms through the proxy, {:.2} ms through Baton (+{:.2} ms); processor time per run \
         {:.2} ms and {:.2} ms; {:.0} and {:.0} runs a second",
        ms(theirs.first),
        ms(ours.first),
        ms(added),
        ms(theirs.cpu),
        ms(ours.cpu),
        theirs.rate,
        ours.rate
    );
    // A run is kept, journaled and accounted for before its first token; a proxy only copies.
    goals.below(
        &format!("added to the first token at {clients} clients, in ms"),
        ms(added),
        5.0 * f64::from(u32::try_from(clients).expect("few")),
    );
    goals.below(
        &format!("processor time of a run at {clients} clients / that of a copy"),
        ours.cpu.as_secs_f64() / theirs.cpu.as_secs_f64(),
        10.0,
    );
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// What one way took with so many clients at once.
#[derive(Debug, Clone, Copy)]
struct Sum {
    /// The median.
    first: Duration,
    /// Of the process in the middle, per request.
    cpu: Duration,
    rate: f64,
}

impl Sum {
    const WORST: Self = Self { first: Duration::MAX, cpu: Duration::MAX, rate: 0.0 };

    fn best(self, other: Self) -> Self {
        Self {
            first: self.first.min(other.first),
            cpu: self.cpu.min(other.cpu),
            rate: self.rate.max(other.rate),
        }
    }
}

async fn round<F: Future<Output = Took>>(
    clients: usize,
    served: &ServedProcess,
    ask: impl Fn(reqwest::Client, String) -> F,
) -> Sum {
    let ask = &ask;
    let before = cpu::time_of(&served.pid());
    let begun = Instant::now();
    let all = join_all((0..clients).map(|_| async move {
        let client = reqwest::Client::new();
        let mut took = Vec::new();
        for _ in 0..REQUESTS {
            took.push(ask(client.clone(), served.url.clone()).await);
        }
        took
    }));
    let all = all.await;
    let mut firsts: Vec<Duration> = all.into_iter().flatten().map(|took| took.first).collect();
    firsts.sort_unstable();
    let count = u32::try_from(firsts.len()).expect("few");
    Sum {
        first: firsts[firsts.len() / 2],
        cpu: cpu::time_of(&served.pid()).saturating_sub(before) / count,
        rate: f64::from(count) / begun.elapsed().as_secs_f64(),
    }
}

async fn through_proxy(client: reqwest::Client, url: String) -> Took {
    let body = json!({ "model": "m", "stream": true, "messages": [{ "role": "user", "content": "Hello" }] });
    read(client.post(format!("{url}/chat/completions")).json(&body), "\"content\"").await
}

async fn through_baton(client: reqwest::Client, url: String) -> Took {
    let path = format!("{url}/api/v1/threads/{}/messages", Uuid::new_v4());
    read(client.post(path).json(&json!({ "content": "Hello" })), "TEXT_MESSAGE_CONTENT").await
}

/// Reads to the end; when the first piece of text came is when the word for it did.
async fn read(request: reqwest::RequestBuilder, word: &str) -> Took {
    let begun = Instant::now();
    let response = request.send().await.expect("an answer").error_for_status().expect("a good one");
    let mut body = response.bytes_stream();
    let mut first = None;
    while let Some(chunk) = body.next().await {
        let chunk = chunk.expect("bytes");
        if first.is_none() && String::from_utf8_lossy(&chunk).contains(word) {
            first = Some(begun.elapsed());
        }
    }
    Took { first: first.expect("a text") }
}

/// The events of one stream, as they were sent.
pub fn events(text: &str) -> impl Iterator<Item = Value> {
    text.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data: ")?).ok())
}
