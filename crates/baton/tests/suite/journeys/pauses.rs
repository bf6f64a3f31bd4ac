//! SIGSTOP of a server for longer than its lease, then SIGCONT: another server has taken its runs over, and the resumed server changes
//! nothing.
//!
//! One pause covers many conversations, each in another state ([`scenarios`]). Together they are in every state of a handoff and in
//! every state of a workflow ([`agents`]). Each has an active run that waits for the rest of a model's reply ([`model`]) or for the end
//! of a tool call, which are there when the server resumes. Every row of the database is compared ([`store`]).

mod agents;
mod model;
mod scenarios;
mod store;

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use baton_core::choice::Choice as _;
use baton_core::event::EventKind;
use baton_core::store::{HandoffNotes, HandoffState, NewHandoff, RunStatus};
use baton_core::{AgentName, HandoffId, RunId, Store as _, TenantId, TenantStore, ThreadId, UserId};
use rustix::process::{Pid, Signal, WaitOptions, kill_process, waitpid};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use uuid::Uuid;

use self::model::{Model, tagged};
use self::scenarios::{SCENARIOS, Scenario, Step, WaitsFor};
use self::store::{Database, Rows, assert_same};
use super::person::Person;
use super::turn::Turn;
use crate::postgres;
use crate::run::eventually;
use crate::served::Served;

/// Appends a line when it is called with a scenario and another one when it ends. A call waits while the test blocks it, at most 3 min.
const TOOL: &str = r#"
cd "$(dirname "$0")" || exit 1
echo "$1" >> effects
call="$1.$(grep -c "^$1\$" effects)"
if mv "block/$call" "blocked/$call" 2>/dev/null; then
    for _ in $(seq 3600); do
        test -e "blocked/$call" || break
        sleep 0.05
    done
fi
echo "$1 has ended" >> effects
"#;

/// Longer than the 50 ms after which a server writes records that no run waits for.
const FLUSHED: Duration = Duration::from_millis(200);

/// Two servers on one database, each with a model of its own.
struct World {
    // Dropped before `dir`, whose removal ends their tool calls.
    paused: Served,
    other: Served,
    models: [Model; 2],
    database: Database,
    runtime: Runtime,
    tenant: Arc<dyn TenantStore>,
    dir: TempDir,
}

impl World {
    fn start(url: impl FnOnce(&TempDir) -> String) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let url = url(&dir);
        for folder in ["block", "blocked"] {
            std::fs::create_dir(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("tool.sh"), TOOL).unwrap();
        let tool = format!("sh {}", dir.path().join("tool.sh").display());
        let models = [Model::start(&tool), Model::start(&tool)];
        let [paused, other] = ["paused", "other"].map(|name| dir.path().join(name));
        agents::project(&paused, &url, &models[0].base_url);
        agents::project(&other, &url, &models[1].base_url);
        let (paused, other) = (Served::start(&paused), Served::start(&other));
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        let store = runtime.block_on(baton_store::open(&url, dir.path())).unwrap();
        let tenant = store.tenant(&TenantId::parse("default").unwrap());
        Self { paused, other, models, database: Database::open(&url), runtime, tenant, dir }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Lines that tool calls have appended.
    fn effects(&self) -> Vec<String> {
        std::fs::read_to_string(self.file("effects")).unwrap().lines().map(str::to_owned).collect()
    }

    /// The states of the thread's last handoff and of its workflow.
    fn handoff(&self, thread: ThreadId) -> (Option<HandoffState>, Option<String>) {
        let last = self.runtime.block_on(self.tenant.handoffs(thread)).unwrap().pop();
        let state = last.as_ref().map(|last| last.state);
        (state, last.and_then(|last| last.workflow).map(|workflow| workflow.state))
    }

    fn active_run(&self, thread: ThreadId) -> Option<RunId> {
        self.runtime.block_on(self.tenant.thread(thread, None)).unwrap().active_run
    }
}

/// RAII guard: sends SIGCONT when it is dropped, also if the test panics.
struct Pause(Pid);

impl Pause {
    /// Stops the server while it is idle. In the middle of a write transaction it would lock rows that the other server needs.
    fn of(world: &World) -> Self {
        snapshot(world);
        let process = Pid::from_child(&world.paused.child);
        eventually("the server is paused between two writes", || {
            let pause = Self(process);
            kill_process(process, Signal::STOP).unwrap();
            waitpid(Some(process), WaitOptions::UNTRACED).unwrap();
            world.database.is_free().then_some(pause)
        })
    }
}

impl Drop for Pause {
    fn drop(&mut self) {
        let _ = kill_process(self.0, Signal::CONT);
    }
}

/// A conversation in the state of its scenario.
struct Conversation {
    scenario: &'static Scenario,
    person: Person,
    /// The event streams that the paused server sends to the person, until their runs end.
    streams: Vec<JoinHandle<Turn>>,
    /// The run that was active at the pause.
    run: RunId,
}

impl Conversation {
    /// Runs all scenarios concurrently.
    fn begin_all(world: &World) -> Vec<Self> {
        std::thread::scope(|scope| {
            let begun: Vec<_> = SCENARIOS.iter().map(|one| scope.spawn(|| Self::begin(world, one))).collect();
            begun.into_iter().map(|one| one.join().unwrap()).collect()
        })
    }

    fn begin(world: &World, scenario: &'static Scenario) -> Self {
        let person = Person::new(&world.paused);
        let name = scenario.name;
        for step in scenario.before {
            take(world, &person, name, *step).map(|stream| stream.join().unwrap());
            person.at_rest();
        }
        match scenario.waits_for {
            WaitsFor::Model(stop) => world.models[0].stop(name, stop),
            WaitsFor::Tool(call) => std::fs::write(world.file(&format!("block/{name}.{call}")), "").unwrap(),
        }
        let mut streams: Vec<_> = take(world, &person, name, scenario.last).into_iter().collect();
        match scenario.waits_for {
            WaitsFor::Model(_) => world.models[0].wait_until_stopped(name),
            WaitsFor::Tool(call) => {
                let blocked = world.file(&format!("blocked/{name}.{call}"));
                eventually(&format!("{name}: the tool runs"), || blocked.exists().then_some(()));
            }
        }
        streams.extend(scenario.then.and_then(|step| take(world, &person, name, step)));
        let thread = ThreadId::parse(&person.thread).unwrap();
        let run = world.active_run(thread).unwrap_or_else(|| panic!("{name}: no run is active"));
        // Records that no run waits for are written after 50 ms.
        let expected = (scenario.handoff, scenario.workflow.map(str::to_owned));
        eventually(&format!("{name}: {expected:?}"), || (world.handoff(thread) == expected).then_some(()));
        Self { scenario, person, streams, run }
    }
}

/// Takes a step. The thread reads the event stream of the run that the step starts.
fn take(world: &World, person: &Person, scenario: &str, step: Step) -> Option<JoinHandle<Turn>> {
    let by = person.clone();
    let ask = |method: &str, below: &str, body: &Value| {
        let (status, answer) = person.ask(method, &person.path(below), body);
        assert!(matches!(status, 200 | 201), "{scenario}: {answer}");
    };
    match step {
        Step::Say(text) => {
            let text = tagged(text, scenario);
            return Some(std::thread::spawn(move || by.say(&text)));
        }
        Step::SayTo(agent, text) => {
            let text = tagged(text, scenario);
            return Some(std::thread::spawn(move || by.say_to(agent, &text)));
        }
        Step::Queue(text) => {
            let before = runs(person).len();
            let stream = take(world, person, scenario, Step::Say(text));
            eventually("the message is queued", || (runs(person).len() > before).then_some(()));
            return stream;
        }
        Step::Start => {
            let reason = tagged("A program asks for it.", scenario);
            ask("POST", "/handoff", &json!({ "target_agent_id": "maker", "handoff_reason": reason }));
        }
        Step::Return => ask("POST", "/handoff/return", &json!({ "completion_status": "completed" })),
        Step::Resume => {
            let left = person.context()["resumable_handoffs"][0]["handoff_id"].clone();
            ask("POST", "/handoff/resume", &json!({ "handoff_id": left }));
        }
        Step::Exit => ask("DELETE", "/handoff", &Value::Null),
        Step::Expire => {
            std::thread::sleep(Duration::from_millis(1100));
            return None;
        }
        Step::Open => {
            open(world, person);
            return None;
        }
    }
    let run = runs(person)[0]["run_id"].as_str().unwrap().to_owned();
    Some(std::thread::spawn(move || by.run(&run, "")))
}

/// The runs of a conversation, the newest first.
fn runs(person: &Person) -> Vec<Value> {
    let page = person.get(&format!("/api/v1/runs?thread_id={}", person.thread));
    page["data"].as_array().unwrap().clone()
}

fn open(world: &World, person: &Person) {
    let agent = |name| AgentName::parse(name).unwrap();
    let handoff = NewHandoff {
        handoff_id: HandoffId::from_uuid(Uuid::now_v7()),
        thread_id: ThreadId::parse(&person.thread).unwrap(),
        user_id: UserId::parse("local").unwrap(),
        source_agent_id: agent("assistant"),
        target_agent_id: agent("guest"),
        context_summary: String::new(),
        handoff_reason: "the person asked for it".to_owned(),
        metadata: Value::Null,
        notes: HandoffNotes::default(),
        max_open: None,
        activation: None,
    };
    world.runtime.block_on(world.tenant.open_handoff(handoff)).unwrap();
}

/// Fails if no scenario is in a state that a handoff or the workflow can be in.
fn assert_every_state_is_covered(world: &World) {
    for (word, state) in HandoffState::ALL {
        assert!(SCENARIOS.iter().any(|one| one.handoff == Some(*state)), "no scenario is {word}");
    }
    let workflow = agents::workflow(&world.file("paused"));
    agents::assert_every_kind_of_state(&workflow);
    let covered: BTreeSet<_> = SCENARIOS.iter().filter_map(|one| one.workflow).collect();
    let states: BTreeSet<_> = workflow.states.iter().map(|state| state.name.0.as_str()).collect();
    assert_eq!(covered, states, "states of the workflow");
}

/// Takes the steps at the other server, before it takes the runs over.
fn take_steps_meanwhile(world: &World, conversations: &[Conversation]) {
    for Conversation { scenario: Scenario { name, meanwhile, .. }, person, .. } in conversations {
        if let Some(step) = meanwhile {
            take(world, &person.at(&world.other), name, *step);
        }
    }
}

/// Waits until the other server makes the same model calls as the paused one, and has ended the runs without such a call.
fn wait_until_taken_over(world: &World, conversations: &[Conversation]) {
    for Conversation { scenario, person, .. } in conversations {
        if scenario.stop().is_some() {
            world.models[1].wait_until_stopped(scenario.name);
        } else {
            person.at(&world.other).at_rest();
        }
    }
}

/// Waits until the other server has ended all runs.
fn wait_until_ended(world: &World, conversations: &[Conversation]) {
    for Conversation { scenario: Scenario { name, meanwhile, tool_calls, .. }, person, run, .. } in
        conversations
    {
        person.at(&world.other).at_rest();
        let ended = world.runtime.block_on(world.tenant.run(*run)).unwrap();
        let expected = if meanwhile.is_some() { RunStatus::Cancelled } else { RunStatus::Completed };
        assert_eq!(ended.status, expected, "{name}: {:?}", ended.end);
        assert_eq!(ended.attempts, 2, "{name}: one claim by each server");
        let calls = world.effects().iter().filter(|line| line == name).count();
        assert_eq!(calls, *tool_calls, "{name}: tool calls");
    }
}

/// Provides what the runs of the paused server wait for.
fn release(world: &World, conversations: &[Conversation]) {
    world.models[0].release();
    for entry in std::fs::read_dir(world.file("blocked")).unwrap() {
        std::fs::remove_file(entry.unwrap().path()).unwrap();
    }
    for Conversation { scenario: Scenario { name, waits_for, .. }, .. } in conversations {
        let WaitsFor::Tool(call) = waits_for else { continue };
        let has_ended = |line: &&String| **line == format!("{name} has ended");
        eventually(&format!("{name}: the tool ends"), || {
            (world.effects().iter().filter(has_ended).count() == *call).then_some(())
        });
    }
}

/// Every row of the database and every effect of a tool, once no server writes anything.
fn snapshot(world: &World) -> (Rows, Vec<String>) {
    eventually("nothing changes any more", || {
        let now = || (world.database.rows(), world.effects());
        let before = now();
        std::thread::sleep(FLUSHED);
        (world.database.is_sealed() && now() == before).then_some(before)
    })
}

/// Resumes the server and compares what is stored before and after.
fn assert_resumes_without_changes(world: &World, pause: Pause) {
    let (rows, effects) = snapshot(world);
    drop(pause);
    wait_until_idle(world);
    assert_same(&rows, &world.database.rows());
    assert_eq!(world.effects(), effects, "effects of tools");
}

/// Waits until the resumed server works on no run, and then for three renewals of its lease.
fn wait_until_idle(world: &World) {
    world.models[0].wait_until_closed();
    let active = || world.paused.get("/readyz?verbose=true")["checks"]["runs_at_work"].clone();
    eventually("the server stops working on its runs", || (active() == 0).then_some(()));
    for _ in 0..3 {
        let process = world.paused.child.id();
        let before = world.database.lease_until(process);
        eventually("the server renews its lease", || {
            (world.database.lease_until(process) > before).then_some(())
        });
    }
}

/// The streams of the resumed server end well, and it answers the next message once.
fn assert_continues(world: &World, conversation: Conversation) {
    let Conversation { scenario: Scenario { name, .. }, person, streams, .. } = conversation;
    for stream in streams {
        let turn = stream.join().unwrap();
        assert!(turn.is_well(), "{name}: {:?}", turn.events);
    }
    let before = person.history();
    let turn = person.say(&tagged("what now?", name));
    assert!(turn.is_well(), "{name}: {:?}", turn.events);
    for served in [&world.paused, &world.other] {
        let history = person.at(served).history();
        assert_eq!(history[..before.len()], before, "{name}");
        let [(who, _), (agent, text)] = &history[before.len()..] else { panic!("{name}: {history:?}") };
        assert_eq!((who.as_str(), text.trim()), ("user", turn.said().trim()), "{name}: {agent}");
    }
    each_run_begins_and_ends_once(world, name, &person);
}

fn each_run_begins_and_ends_once(world: &World, name: &str, person: &Person) {
    let thread = ThreadId::parse(&person.thread).unwrap();
    let events = world.runtime.block_on(world.tenant.events(thread, 0, 10_000)).unwrap();
    let runs: BTreeSet<RunId> = events.iter().map(|event| event.run_id).collect();
    for run in runs {
        let of_run = || events.iter().filter(|event| event.run_id == run).map(|event| &event.kind);
        let begun = of_run().filter(|kind| matches!(kind, EventKind::RunStarted { .. })).count();
        assert_eq!((begun, of_run().filter(|kind| kind.is_end()).count()), (1, 1), "{name}: {run}");
    }
}

/// All conversations continue, and both servers answer new ones.
fn assert_all_continue(world: &World, conversations: Vec<Conversation>) {
    for conversation in conversations {
        assert_continues(world, conversation);
    }
    for served in [&world.paused, &world.other] {
        assert_eq!(Person::new(served).say("tell me more").said(), "Well. Hello.");
        assert_eq!(served.get("/api/v1/audit/verify")["verdict"], "intact");
    }
}

/// Resumes the server when the other one has ended all of its runs. It gives its runs up as soon as it finds that its lease is over,
/// but some of them may write before that.
fn paused_past_its_lease(url: impl FnOnce(&TempDir) -> String) {
    let world = World::start(url);
    assert_every_state_is_covered(&world);
    let conversations = Conversation::begin_all(&world);
    let pause = Pause::of(&world);
    take_steps_meanwhile(&world, &conversations);
    wait_until_ended(&world, &conversations);
    release(&world, &conversations);
    assert_resumes_without_changes(&world, pause);
    assert_all_continue(&world, conversations);
}

/// Resumes the server while the other one is in the middle of the same runs. The server still believes in its lease, as after a
/// suspension of its whole machine, which stops the clock too. So it continues every run until the store refuses a write.
fn unaware_that_its_lease_ended(url: impl FnOnce(&TempDir) -> String) {
    let world = World::start(url);
    let conversations = Conversation::begin_all(&world);
    for (scenario, stop) in SCENARIOS.iter().filter_map(|one| Some((one.name, one.stop()?))) {
        world.models[1].stop(scenario, stop);
    }
    let pause = Pause::of(&world);
    take_steps_meanwhile(&world, &conversations);
    // The test cannot stop the clock. It ends the lease in the store instead, seconds before the server expects it to end.
    world.database.end_lease(world.paused.child.id());
    wait_until_taken_over(&world, &conversations);
    release(&world, &conversations);
    assert_resumes_without_changes(&world, pause);
    world.models[1].release();
    wait_until_ended(&world, &conversations);
    assert_all_continue(&world, conversations);
}

fn file(dir: &TempDir) -> String {
    format!("sqlite://{}", dir.path().join("baton.db").display())
}

#[test]
fn server_paused_past_its_lease_changes_nothing_on_postgres() {
    paused_past_its_lease(|_| postgres::new_span_id());
}

#[test]
fn server_paused_past_its_lease_changes_nothing_on_sqlite() {
    paused_past_its_lease(file);
}

#[test]
fn server_unaware_that_its_lease_ended_changes_nothing_on_postgres() {
    unaware_that_its_lease_ended(|_| postgres::new_span_id());
}

#[test]
fn server_unaware_that_its_lease_ended_changes_nothing_on_sqlite() {
    unaware_that_its_lease_ended(file);
}
