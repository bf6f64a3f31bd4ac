//! What a run costs is the sum of what it called: for any tree of agents, with losers, failures, retries and late results, each
//! call is on the books exactly once.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_core::agent::{
    Advisor, Advisors, Agent, Collaboration, Destination, ModelName, Quorum, Router, RoutingMode,
    Strategy as Order, Team, TerminationMode,
};
use baton_core::chat::ChatMessage;
use baton_core::event::EventKind;
use baton_core::ledger::{CallOutcome, Called, subtree};
use baton_core::model::{
    Chunk, Finish, Model, ModelError, ModelErrorKind, ModelFacts, ModelRequest, ReplyStream,
};
use baton_core::store::MessageQuery;
use baton_core::usage::{Price, Tokens};
use baton_core::{AgentName, HumanDuration, ToolCallId, Usage, Usd};
use baton_engine::{Engine, ModelRegistry};
use baton_models::scripted::Scripted;
use futures_util::stream;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::durability::{die_in, go_on_in};
use super::{Ran, Setup, name, named};

/// An agent and those it involves.
#[derive(Debug, Clone)]
enum Node {
    Leaf(Leaf),
    Calls(Vec<Node>),
    Delegates(Order, Vec<Node>),
    Advised(Vec<Node>),
    Leads(Vec<Node>),
    HandsOn(Box<Node>),
    Routes(Box<Node>),
    Transfers(Box<Node>),
}

#[derive(Debug, Clone, Copy)]
struct Leaf {
    wait: u64,
    ends: Ends,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ends {
    Well,
    /// After a fault that passes.
    WellAtLast,
    Badly,
    /// In silence: whoever waits has to have an end.
    Never,
}

fn leaf() -> impl Strategy<Value = Node> {
    let ends = prop_oneof![
        4 => Just(Ends::Well),
        1 => Just(Ends::WellAtLast),
        1 => Just(Ends::Badly),
        1 => Just(Ends::Never),
    ];
    (0_u64..400, ends).prop_map(|(wait, ends)| Node::Leaf(Leaf { wait, ends }))
}

fn tree() -> impl Strategy<Value = Node> {
    leaf().prop_recursive(3, 12, 3, |inner| {
        let some = || prop::collection::vec(inner.clone(), 1..4);
        let two = || prop::collection::vec(inner.clone(), 2..4);
        let order = prop_oneof![Just(Order::Parallel), Just(Order::Sequential), Just(Order::FirstSuccess)];
        prop_oneof![
            some().prop_map(Node::Calls),
            (order, some()).prop_map(|(order, nodes)| Node::Delegates(order, nodes)),
            some().prop_map(Node::Advised),
            two().prop_map(Node::Leads),
            inner.clone().prop_map(|node| Node::HandsOn(Box::new(node))),
            inner.clone().prop_map(|node| Node::Routes(Box::new(node))),
            inner.prop_map(|node| Node::Transfers(Box::new(node))),
        ]
    })
}

/// What an agent's model does: these calls first, if any, then it speaks.
#[derive(Debug, Clone)]
struct Part {
    calls: Vec<(String, Value)>,
    leaf: Leaf,
}

const PLAIN: Leaf = Leaf { wait: 3, ends: Ends::Well };

/// Agents and their parts, made from a tree.
#[derive(Debug, Default)]
struct Roster {
    agents: Vec<Agent>,
    parts: BTreeMap<AgentName, Part>,
}

impl Roster {
    fn plant(&mut self, node: &Node) -> AgentName {
        let mut agent = named(&format!("n{}", self.parts.len()));
        self.parts.insert(agent.name.clone(), Part { calls: Vec::new(), leaf: PLAIN });
        agent.limits.max_depth = 10;
        agent.limits.max_transfers = 100;
        agent.limits.max_parallel_tools = 8;
        agent.delegation.timeout = HumanDuration::from_secs(20);
        let (calls, leaf) = self.involve(&mut agent, node);
        let name = agent.name.clone();
        self.parts.insert(name.clone(), Part { calls, leaf });
        self.agents.push(agent);
        name
    }

    fn plant_all(&mut self, nodes: &[Node]) -> Vec<AgentName> {
        nodes.iter().map(|node| self.plant(node)).collect()
    }

    fn involve(&mut self, agent: &mut Agent, node: &Node) -> (Vec<(String, Value)>, Leaf) {
        let mut calls = Vec::new();
        match node {
            Node::Leaf(leaf) => return (calls, *leaf),
            Node::Calls(nodes) => {
                agent.agents = self.plant_all(nodes);
                let call = |name: &AgentName| {
                    ("call_agent".to_owned(), json!({"mission": "Do it.", "specialist": name}))
                };
                calls = agent.agents.iter().map(call).collect();
            }
            Node::Delegates(order, nodes) => {
                agent.agents = self.plant_all(nodes);
                agent.delegation.strategy = *order;
                let arguments = json!({"agents": agent.agents, "message": "Do it."});
                calls.push(("delegate".to_owned(), arguments));
            }
            Node::Advised(nodes) => {
                let timeout = HumanDuration::from_secs(20);
                let advisors = self.plant_all(nodes).into_iter();
                let agents = advisors.map(|agent| Advisor { agent, required: false, timeout });
                agent.advisors = Advisors { agents: agents.collect(), ..Advisors::default() };
            }
            Node::Leads(nodes) => {
                agent.team = Some(Team {
                    members: self.plant_all(nodes),
                    termination_mode: TerminationMode::MaxRounds,
                    max_rounds: 2,
                    quorum: Quorum::All,
                    member_timeout: HumanDuration::from_secs(20),
                });
            }
            Node::HandsOn(node) => agent.handoff = vec![Destination { to: self.plant(node), when: None }],
            Node::Routes(node) => {
                let destination = self.plant(node);
                let arguments = json!({"agent": destination, "reason": "it is theirs"});
                calls.push(("route_to".to_owned(), arguments));
                agent.router = Some(Router {
                    mode: RoutingMode::Pure,
                    destinations: vec![destination],
                    fallback: None,
                    may_answer: false,
                });
            }
            Node::Transfers(node) => {
                let colleague = self.plant(node);
                calls.push((format!("transfer_to_{colleague}"), json!({"reason": "it is theirs"})));
                agent.collaborations = vec![Collaboration { agent: colleague, when: None, allow_revisit: 0 }];
            }
        }
        (calls, PLAIN)
    }
}

/// A model that plays the parts and counts how often it is called.
#[derive(Debug, Clone)]
struct Players {
    parts: Arc<BTreeMap<AgentName, Part>>,
    called: Arc<Mutex<BTreeMap<AgentName, u64>>>,
}

const PRICE: i64 = 7;

impl Model for Players {
    fn provider(&self) -> &'static str {
        "scripted"
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        let mut called = self.called.lock().unwrap();
        let count = called.entry(request.agent.clone()).or_default();
        *count += 1;
        let part = &self.parts[request.agent];
        let has_results = request.messages.iter().any(|message| matches!(message, ChatMessage::Tool(_)));
        let calls = if has_results { Vec::new() } else { part.calls.clone() };
        let (first, leaf) = (*count == 1, part.leaf);
        let chunks = chunks(&calls, leaf, first);
        Box::pin(stream::unfold((chunks.into_iter(), leaf), |(mut chunks, leaf)| async move {
            let next = chunks.next()?;
            tokio::time::sleep(Duration::from_millis(leaf.wait)).await;
            if leaf.ends == Ends::Never && matches!(next, Ok(Chunk::Done(_))) {
                std::future::pending::<()>().await;
            }
            Some((next, (chunks, leaf)))
        }))
    }

    fn facts(&self, _model: &str) -> ModelFacts {
        let price = Usd::from_nanos(PRICE * 1_000_000);
        let price = Price::flat(price);
        ModelFacts { price: Some(price), context_window: None, ..ModelFacts::default() }
    }
}

fn chunks(calls: &[(String, Value)], leaf: Leaf, first: bool) -> Vec<Result<Chunk, ModelError>> {
    let tokens = Chunk::Tokens(Tokens { input_tokens: 11, output_tokens: 2, ..Tokens::default() });
    let fault = |kind| Err(ModelError::new(kind, "scripted", "as the tree says"));
    match leaf.ends {
        Ends::Badly => return vec![Ok(Chunk::Text("I ".into())), Ok(tokens), fault(ModelErrorKind::Auth)],
        Ends::WellAtLast if first => return vec![Ok(tokens), fault(ModelErrorKind::Overloaded)],
        _ => {}
    }
    let mut chunks = vec![Ok(Chunk::Text("Said.".into()))];
    for (index, (tool, arguments)) in (0..).zip(calls) {
        let id = ToolCallId::parse(&format!("call_{index}")).unwrap();
        chunks.push(Ok(Chunk::Call { index, id, name: tool.clone(), signature: None }));
        chunks.push(Ok(Chunk::Arguments { index, delta: arguments.to_string() }));
    }
    let finish = if calls.is_empty() { Finish::Stop } else { Finish::ToolCalls };
    chunks.extend([Ok(tokens), Ok(Chunk::Done(finish))]);
    chunks
}

/// Plays a run to its end, or until it is cancelled. The rows are those that were kept.
async fn play(setup: Setup, cancelled: Option<Duration>) -> Ran {
    let (parts, request) = setup.parts().await;
    let engine = Engine::new(parts);
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let mut run = engine.start(request).await.unwrap();
    let id = run.id;
    let mut events = Vec::new();
    let mut alarm = std::pin::pin!(tokio::time::sleep(cancelled.unwrap_or(Duration::from_hours(100))));
    let mut since = None;
    loop {
        tokio::select! {
            event = run.events.recv() => match event {
                Some(event) => events.push(event),
                None => break,
            },
            () = &mut alarm, if since.is_none() => {
                run.cancel();
                since = Some(tokio::time::Instant::now());
            }
        }
    }
    let took = since.map(|since| since.elapsed()).unwrap_or_default();
    assert!(took < Duration::from_secs(1), "who is cancelled ends at once, not after {took:?}");
    let end = run.join().await;
    assert_eq!(end.rows.len(), store.ledger(id).await.unwrap().len(), "all rows are kept");
    engine.idle().await;
    let ran = Ran { events, end };
    assert_eq!(ran.events.iter().filter(|event| event.kind.is_end()).count(), 1, "{}", ran.log());
    ran
}

/// A run of the tree's agents, the first of them and who plays them.
fn stage(tree: &Node) -> (Setup, AgentName, Players) {
    let mut roster = Roster::default();
    let root = roster.plant(tree);
    let players = Players { parts: Arc::new(roster.parts), called: Arc::default() };
    let mut setup = Setup::new(&Scripted::default()).policy(|policy| policy.max_transfers = 100);
    setup.models =
        ModelRegistry::new(ModelName::parse("scripted/m").unwrap()).with_provider(Arc::new(players.clone()));
    setup.agent = roster.agents.iter().find(|agent| agent.name == root).unwrap().clone();
    setup.others = roster.agents.into_iter().filter(|agent| agent.name != root).collect();
    (setup, root, players)
}

fn paused() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// A run whose process dies after so many events comes to the same end as one that nothing happened to.
fn check_crash(tree: &Node, after: usize) {
    let whole = paused().block_on(play(stage(tree).0, None));
    let heard = std::sync::atomic::AtomicUsize::new(0);
    let (engine, request, _) = die_in(paused(), stage(tree).0, move |_| {
        heard.fetch_add(1, std::sync::atomic::Ordering::Relaxed) >= after
    });
    let gone_on = go_on_in(&paused(), stage(tree).0, &engine);
    gone_on.is_sound();
    assert_eq!(gone_on.run.status, whole.end.status, "{}", whole.log());
    let end = gone_on.run.end.as_ref().unwrap();
    assert_eq!(end.answer.as_deref(), whole.end.answer.as_ref().map(|answer| answer.text.as_str()));
    let finished = gone_on.rows.iter().filter(|row| row.outcome == CallOutcome::Ok).map(|row| &row.path);
    let begun = gone_on.events.iter().filter(|event| matches!(event.kind, EventKind::SessionStarted { .. }));
    let begun = begun.map(|event| event.path.to_string());
    assert_once(finished.cloned(), "a call was finished twice");
    assert_once(begun, "a session was begun twice");
    let mut total = Usage::default();
    for row in &gone_on.rows {
        total += row.usage();
    }
    assert_eq!(gone_on.run.usage, total, "the total is the sum");
    let all = MessageQuery { include_internal: true, ..MessageQuery::last(1_000) };
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let messages = paused().block_on(store.messages(request.caller.thread_id, all)).unwrap();
    let inner = gone_on.events.iter().filter(|event| matches!(event.kind, EventKind::SessionFinished { .. }));
    assert!(messages.len() <= inner.count() + 2, "nothing is said twice");
}

fn assert_once(all: impl Iterator<Item = String>, what: &str) {
    let mut all: Vec<String> = all.collect();
    all.sort();
    let count = all.len();
    all.dedup();
    assert_eq!(all.len(), count, "{what}");
}

fn check(tree: &Node, cancelled: Option<Duration>) {
    let (setup, root, players) = stage(tree);
    let ran = paused().block_on(play(setup, cancelled));
    let rows = &ran.end.rows;
    let models: Vec<_> = rows.iter().filter(|row| matches!(row.call, Called::Model { .. })).collect();
    let mut by_agent: BTreeMap<AgentName, u64> = BTreeMap::new();
    for row in &models {
        *by_agent.entry(row.agent.clone()).or_default() += 1;
    }
    assert_eq!(by_agent, *players.called.lock().unwrap(), "each call has one row\n{}", ran.log());
    let mut total = Usage::default();
    for row in rows {
        total += row.usage();
    }
    assert_eq!(ran.end.usage, total, "the total is the sum");
    assert_eq!(subtree(rows, name(root.as_str()).as_str()), total, "everything is below the root");
    for row in models.iter().filter(|row| row.outcome == CallOutcome::Ok) {
        assert_eq!((row.tokens.input_tokens, row.tokens.output_tokens), (11, 2), "{}", row.path);
    }
    let finished = models.iter().filter(|row| row.outcome == CallOutcome::Ok).map(|row| row.path.clone());
    assert_once(finished, "a turn was finished twice");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, max_shrink_iters: 200, ..ProptestConfig::default() })]

    /// E17, E30, H14, I5
    #[test]
    fn each_call_of_any_tree_is_billed_once(tree in tree()) {
        check(&tree, None);
    }

    /// The same when somebody cancels the run at any moment.
    #[test]
    fn each_call_of_a_cancelled_run_is_billed_once(tree in tree(), after in 0_u64..2_500) {
        check(&tree, Some(Duration::from_millis(after)));
    }

    /// The same when the process dies at any moment.
    #[test]
    fn any_tree_resumes_after_a_crash(tree in tree(), after in 0_usize..60) {
        check_crash(&tree, after);
    }
}
