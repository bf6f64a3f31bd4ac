//! What hints from experience are worth: 2,000 requests of four kinds are replayed against four agents whose success rates drift. Every
//! outcome goes through the store as a hop, and every choice is made from what the store returns.

use baton::core::learning::suggest;
use baton::core::store::{Hop, HopKind, HopOutcome};
use baton::core::{AgentName, RunId, Store, TenantId, ThreadId, Usd};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use crate::Goals;

const REQUESTS: u32 = 2_000;
const EARLY: u32 = 500;
/// Replays, each of which has to meet the goal.
const SEEDS: std::ops::RangeInclusive<u64> = 1..=12;
const AGENTS: u32 = 4;
const KINDS: u32 = 4;
const DAYS: f64 = 60.0;
/// Hops are settled this often, as a server does every 10 minutes.
const SETTLE_EVERY: u32 = 50;

pub fn run(goals: &mut Goals) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut sum = [(0.0, 0.0); 2];
    for seed in SEEDS {
        let curve = runtime.block_on(replay(seed));
        let points = [EARLY, REQUESTS].map(|request| curve[request as usize - 1]);
        let [early, all] =
            points.map(|(learning, first)| format!("{learning:.0} of {first:.0} (half: {:.0})", first / 2.0));
        println!(
            "  seed {seed}: regret with hints of always first after {EARLY} requests {early}, after {REQUESTS} {all}; oracle 0"
        );
        let (learning, first) = points[0];
        goals.below(
            &format!("seed {seed}: regret after {EARLY} requests / always first"),
            learning / first,
            0.5,
        );
        for (sum, point) in sum.iter_mut().zip(points) {
            *sum = (sum.0 + point.0, sum.1 + point.1);
        }
    }
    let [early, all] = sum;
    goals.below("all seeds: regret after 500 requests / always first", early.0 / early.1, 0.5);
    let late = (all.0 - early.0) / (all.1 - early.1);
    goals.below("all seeds: regret of the following 1,500 / always first", late, 0.5);
}

/// The best agent for a kind of request is another one every 500 requests.
fn rate(request: u32, kind: u32, agent: u32) -> f64 {
    let turn = f64::from(request) / f64::from(REQUESTS) + f64::from(kind) / f64::from(KINDS);
    0.55 + 0.35 * (std::f64::consts::TAU * (turn + f64::from(agent) / f64::from(AGENTS))).sin()
}

/// Regret against an oracle after each request: of suggestions that are followed, and of always taking the first agent.
async fn replay(seed: u64) -> Vec<(f64, f64)> {
    let store = baton_store::open("sqlite::memory:", std::path::Path::new("")).await.expect("a store");
    let tenant = store.tenant(&TenantId::parse("acme").expect("a tenant"));
    let thread = crate::store::thread_of(&tenant, 1).await;
    let agents: Vec<AgentName> =
        (0..AGENTS).map(|n| AgentName::parse(&format!("agent-{n}")).expect("a name")).collect();
    let mut world = Random(seed);
    // In the past, so that nothing is from the future.
    let begin = Timestamp::now() - SignedDuration::from_secs_f64(DAYS * 86_400.0);
    let (mut regret, mut of_first, mut curve) = (0.0, 0.0, Vec::new());
    for request in 0..REQUESTS {
        let passed = f64::from(request) / f64::from(REQUESTS) * DAYS * 86_400.0;
        let now = begin + SignedDuration::from_secs_f64(passed);
        let kind = u32::try_from(world.next() % u64::from(KINDS)).expect("small");
        let class = format!("kind-{kind}");
        let known = tenant.experience().await.expect("what was learnt");
        let found = suggest(&class, &agents, &known, now, world.next());
        let chosen = found.map_or(request % AGENTS, |one| {
            (0..AGENTS).find(|n| agents[*n as usize] == one.agent).expect("a candidate")
        });
        let is_won = world.unit() < rate(request, kind, chosen);
        let outcome = if is_won { HopOutcome::Completed } else { HopOutcome::Failed };
        tenant.record_hop(hop(thread, &agents[chosen as usize], class, outcome, now)).await.expect("a hop");
        if request % SETTLE_EVERY == 0 {
            tenant.settle_hops(now, REQUESTS).await.expect("settled");
        }
        let best = (0..AGENTS).map(|agent| rate(request, kind, agent)).fold(0.0, f64::max);
        regret += best - rate(request, kind, chosen);
        of_first += best - rate(request, kind, 0);
        curve.push((regret, of_first));
    }
    curve
}

/// `SplitMix64`: the same requests in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut hash = self.0;
        hash = (hash ^ hash >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        hash = (hash ^ hash >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        hash ^ hash >> 31
    }

    #[allow(clippy::cast_precision_loss, reason = "53 bits")]
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }
}

fn hop(thread: ThreadId, to: &AgentName, query_class: String, outcome: HopOutcome, at: Timestamp) -> Hop {
    Hop {
        hop_id: Uuid::new_v4(),
        thread_id: thread,
        run_id: Some(RunId::from_uuid(Uuid::now_v7())),
        kind: HopKind::Route,
        from: AgentName::parse("router").expect("a name"),
        to: to.clone(),
        reason: "it fits".to_owned(),
        query_class,
        outcome,
        latency_ms: 1,
        cost: Usd::from_nanos(1_000),
        at,
        request: 0,
    }
}
