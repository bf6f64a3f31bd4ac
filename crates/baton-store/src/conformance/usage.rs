//! What was spent.

use baton_core::ledger::Called;
use baton_core::store::{Append, RunStatus, UsageBy, UsageLine, UsageQuery};
use baton_core::usage::Cost;
use baton_core::{LedgerRow, RunId, Store, ThreadId, Tokens, Usage, Usd};
use jiff::Timestamp;

use super::fixture::{Home, LEASE, TestWorker, agent, call, new_run, tenant, user};

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn by(by: UsageBy) -> UsageQuery {
    UsageQuery { by, user_id: None, since: None, until: None }
}

fn model(run: RunId, name: &str, started_at: &str, cost: Cost) -> LedgerRow {
    let call_of = Called::Model { provider: "offline".to_owned(), model: name.to_owned() };
    LedgerRow { call: call_of, started_at: at(started_at), cost, ..call(run, name) }
}

fn tool(run: RunId, started_at: &str) -> LedgerRow {
    LedgerRow {
        call: Called::Tool { tool: "read_file".to_owned() },
        tokens: Tokens::default(),
        cost: Cost::default(),
        started_at: at(started_at),
        ..call(run, "tool")
    }
}

fn known(nanos: i64) -> Cost {
    Cost::Known(Usd::from_nanos(nanos))
}

/// A run of this user with these calls.
async fn spend(tenant: &Home<'_>, of: &str, rows: impl Fn(RunId) -> Vec<LedgerRow>) {
    let thread = ThreadId::random();
    let mut run = new_run(thread, "Hello");
    run.user_id = user(of);
    tenant.accept(run).await.unwrap();
    let mut worker = TestWorker::claim(tenant, thread, LEASE).await;
    let rows = rows(worker.run);
    worker.append(Append { rows, ..Append::default() }).await;
    worker.end(RunStatus::Completed).await;
}

/// Two runs of Ada and one of Bob, on two days.
async fn two_days(store: &dyn Store) -> Home<'_> {
    let tenant = tenant(store);
    for _ in 0..2 {
        let rows = |run| {
            vec![
                model(run, "small", "2026-11-15T23:59:59.999999Z", known(7)),
                tool(run, "2026-11-16T00:00:00Z"),
            ]
        };
        spend(&tenant, "ada", rows).await;
    }
    let of_bob = |run| {
        let research = LedgerRow { agent: agent("research"), ..tool(run, "2026-11-16T10:00:00Z") };
        vec![model(run, "large", "2026-11-16T10:00:00Z", known(100)), research]
    };
    spend(&tenant, "bob", of_bob).await;
    tenant
}

/// Key, runs, model calls, tool calls, tokens, cost.
fn short(lines: &[UsageLine]) -> Vec<(&str, u64, u64, u64, u64, Cost)> {
    let short = lines.iter().map(|line| {
        let UsageLine { key, runs, model_calls, tool_calls, usage } = line;
        (key.as_str(), *runs, *model_calls, *tool_calls, usage.tokens.total(), usage.cost)
    });
    short.collect()
}

pub async fn sums_are_made_by_agent_user_model_and_day(store: &dyn Store) {
    let tenant = two_days(store).await;
    let ask = async |kind| tenant.usage(by(kind)).await.unwrap();
    let agents = ask(UsageBy::Agent).await;
    let expected = [("assistant", 3, 3, 2, 45, known(114)), ("research", 1, 0, 1, 0, known(0))];
    assert_eq!(short(&agents), expected);
    let tokens = Tokens {
        input_tokens: 30,
        output_tokens: 15,
        cached_tokens: 6,
        cache_write_tokens: 9,
        reasoning_tokens: 3,
    };
    assert_eq!(agents[0].usage, Usage { tokens, cost: known(114), estimated: false });
    let users = ask(UsageBy::User).await;
    assert_eq!(short(&users), [("bob", 1, 1, 1, 15, known(100)), ("ada", 2, 2, 2, 30, known(14))]);
    let models = ask(UsageBy::Model).await;
    let expected = [("offline/large", 1, 1, 0, 15, known(100)), ("offline/small", 2, 2, 0, 30, known(14))];
    assert_eq!(short(&models), expected, "tools belong to no model");
    let days = ask(UsageBy::Day).await;
    let expected = [("2026-11-15", 2, 2, 0, 30, known(14)), ("2026-11-16", 3, 1, 3, 15, known(100))];
    assert_eq!(short(&days), expected, "days in their order");
}

pub async fn sums_are_of_one_user_and_of_a_stretch_of_time(store: &dyn Store) {
    let tenant = two_days(store).await;
    let of_ada = |kind| UsageQuery { user_id: Some(user("ada")), ..by(kind) };
    let ask = async |query| tenant.usage(query).await.unwrap();
    assert_eq!(short(&ask(of_ada(UsageBy::Agent)).await), [("assistant", 2, 2, 2, 30, known(14))]);
    assert_eq!(short(&ask(of_ada(UsageBy::User)).await), [("ada", 2, 2, 2, 30, known(14))]);
    assert_eq!(short(&ask(of_ada(UsageBy::Model)).await), [("offline/small", 2, 2, 0, 30, known(14))]);
    assert_eq!(ask(of_ada(UsageBy::Day)).await.len(), 2);
    assert_eq!(ask(UsageQuery { user_id: Some(user("eve")), ..by(UsageBy::Day) }).await, []);
    let midnight = Some(at("2026-11-16T00:00:00Z"));
    let before = UsageQuery { until: midnight, ..by(UsageBy::Day) };
    assert_eq!(short(&ask(before).await), [("2026-11-15", 2, 2, 0, 30, known(14))], "not at midnight");
    let after = UsageQuery { since: midnight, ..of_ada(UsageBy::Agent) };
    assert_eq!(short(&ask(after).await), [("assistant", 2, 0, 2, 0, known(0))], "from midnight on");
    let between = UsageQuery { since: midnight, until: midnight, ..by(UsageBy::Agent) };
    assert_eq!(ask(between).await, []);
}

/// One call without a price makes the sum unknown, never cheaper; one that was counted from the text makes it an estimate.
pub async fn an_unknown_price_makes_a_sum_unknown(store: &dyn Store) {
    let (tenant, day) = (tenant(store), "2026-11-15T12:00:00Z");
    let unknown = Cost::Unknown(Usd::from_nanos(2));
    let rows = |run| {
        let estimated = LedgerRow { estimated: true, ..model(run, "new", day, unknown) };
        let bills = [model(run, "new", day, known(50)), model(run, "old", day, known(40))];
        let free = [model(run, "b", day, known(0)), model(run, "a", day, known(0))];
        let long = LedgerRow { tokens: Tokens { input_tokens: 99, ..Tokens::default() }, ..free[0].clone() };
        vec![estimated, long].into_iter().chain(bills).chain(free).collect()
    };
    spend(&tenant, "ada", rows).await;
    let lines = tenant.usage(by(UsageBy::Model)).await.unwrap();
    let costs: Vec<(&str, Cost)> = lines.iter().map(|line| (line.key.as_str(), line.usage.cost)).collect();
    let new = ("offline/new", Cost::Unknown(Usd::from_nanos(52)));
    let rest = [("offline/old", known(40)), ("offline/b", known(0)), ("offline/a", known(0))];
    assert_eq!(costs, [[new].as_slice(), &rest].concat(), "by cost, then by tokens");
    let estimated: Vec<bool> = lines.iter().map(|line| line.usage.estimated).collect();
    assert_eq!(estimated, [true, false, false, false]);
}

pub async fn sums_may_be_larger_than_any_number_that_is_kept(store: &dyn Store) {
    let tenant = tenant(store);
    let tokens = Tokens { input_tokens: u64::MAX, output_tokens: u64::MAX, ..Tokens::default() };
    let cost = known(i64::MAX);
    let rows = |run| {
        let row = LedgerRow { tokens, ..model(run, "wild", "2026-11-15T12:00:00Z", cost) };
        vec![row; 10_000]
    };
    spend(&tenant, "ada", rows).await;
    let lines = tenant.usage(by(UsageBy::User)).await.unwrap();
    assert_eq!((lines[0].model_calls, lines[0].usage.cost), (10_000, cost), "it stops at the largest");
    assert!(lines[0].usage.tokens.total() > i64::MAX.unsigned_abs());
}
