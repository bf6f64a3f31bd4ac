//! Budgets of runs, threads, users and tenants: reserved before a call, settled after it, never exceeded by more than one call.

use std::sync::Arc;
use std::time::Duration;

use baton_core::budget::{Amount, BudgetLimit, BudgetPeriod, BudgetScope, Budgets, PeriodLimits};
use baton_core::event::EventKind;
use baton_core::model::ModelFacts;
use baton_core::store::{BudgetState, MessageQuery, RunStatus, UsageBy, UsageQuery};
use baton_core::{TenantStore, ThreadId, Usage, Usd};
use baton_engine::{Engine, LimitKind, RunRequest};
use baton_models::scripted::{Scripted, ScriptedTurn};
use jiff::Timestamp;
use serde_json::json;

use crate::durability::{die, go_on, successor};
use crate::mortal::{Life, Mortal};
use crate::{Setup, TestTool, name};

fn tokens(most: u64) -> BudgetLimit {
    BudgetLimit { max_cost_usd: None, max_tokens: Some(most) }
}

fn money(most: &str) -> BudgetLimit {
    BudgetLimit { max_cost_usd: Some(most.parse().unwrap()), max_tokens: None }
}

fn of_tenant(day: BudgetLimit) -> Budgets {
    Budgets { tenant: PeriodLimits { day, ..PeriodLimits::default() }, ..Budgets::default() }
}

/// Calls a tool `turns` times and then answers. Each turn has 1,000 tokens of output, which cost a thousandth of a dollar.
fn restless(turns: usize) -> Scripted {
    let calls = (0..turns).map(|n| ScriptedTurn::call("t", &json!({ "n": n })).tokens(0, 1_000));
    Scripted::default().script("a", calls.chain([ScriptedTurn::text("In short.").tokens(0, 1_000)]))
}

fn setup(model: &Scripted, budgets: Budgets) -> Setup {
    Setup::new(model)
        .agent(|agent| {
            agent.sampling.max_output_tokens = Some(1_000);
            agent.limits.max_turns = 100;
        })
        .tool(TestTool::echo("t"))
        .policy(|policy| policy.budgets = budgets)
}

async fn states(store: &dyn TenantStore, request: &RunRequest, budgets: Budgets) -> Vec<BudgetState> {
    let accounts =
        budgets.accounts(Some(request.caller.thread_id), Some(&request.caller.user), Timestamp::now());
    store.budget_states(accounts.into_iter().map(|account| account.key).collect()).await.unwrap()
}

async fn spent(store: &dyn TenantStore) -> Usage {
    let query = UsageQuery { by: UsageBy::Day, user_id: None, since: None, until: None };
    store.usage(query).await.unwrap().into_iter().fold(Usage::default(), |mut sum, line| {
        sum += line.usage;
        sum
    })
}

/// At the limit there is one closing turn, and the run ends with `budget_exhausted`. The next run makes no call.
#[tokio::test]
async fn exhausted_budget_ends_the_run_after_one_closing_turn() {
    let (model, budgets) = (restless(2), of_tenant(tokens(2_500)));
    let (parts, request) = setup(&model, budgets).parts().await;
    let engine = Engine::new(parts);
    let first = engine.start(request.clone()).await.unwrap().finish().await;
    assert_eq!(first.status, RunStatus::Failed);
    assert_eq!(first.failure.as_ref().unwrap().code(), "budget_exhausted");
    let answer = first.answer.unwrap();
    assert_eq!((answer.text.as_str(), answer.limit), ("In short.", Some(LimitKind::Tokens)));
    let asked = model.asked();
    assert_eq!(asked.len(), 3);
    assert!(serde_json::to_string(&asked[2].messages).unwrap().contains("the limit of tokens was met"));
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let message = last_text(&*store, request.caller.thread_id).await;
    assert_eq!(message, "In short.", "the closing answer is a message of the thread");
    let elsewhere = RunRequest {
        caller: baton_engine::RunCaller { thread_id: ThreadId::random(), ..request.caller.clone() },
        ..request.clone()
    };
    let second = engine.start(elsewhere).await.unwrap().finish().await;
    assert_eq!((second.status, second.answer.is_none()), (RunStatus::Failed, true));
    let failure = second.failure.unwrap();
    assert_eq!(failure.code(), "budget_exhausted");
    assert!(
        failure.to_string().contains("the budget of the tenant for this day is used up (tokens)"),
        "{failure}"
    );
    assert_eq!(model.asked().len(), 3, "no call is made any more");
}

/// Two runs on two servers compete for the rest of a tenant's day.
#[tokio::test]
async fn competing_runs_exceed_a_budget_by_at_most_one_call() {
    let budgets = of_tenant(tokens(20_000));
    let (parts, request) = setup(&restless(50), budgets).parts().await;
    let (others, _) = setup(&restless(50), budgets).parts().await;
    let mut others = successor(others, &parts);
    others.identity.is_gone = |_| false;
    let (one, other) = (Engine::new(parts), Engine::new(others));
    let elsewhere = RunRequest {
        caller: baton_engine::RunCaller { thread_id: ThreadId::random(), ..request.caller.clone() },
        ..request.clone()
    };
    let one_run = one.start(request.clone()).await.unwrap();
    let other_run = other.start(elsewhere).await.unwrap();
    let (one_end, other_end) = tokio::join!(one_run.finish(), other_run.finish());
    for end in [one_end, other_end] {
        assert_eq!(end.failure.unwrap().code(), "budget_exhausted");
    }
    let store = one.parts.store.tenant(&request.caller.tenant);
    let total = spent(&*store).await.tokens.total();
    assert!((18_000..=21_000).contains(&total), "{total}");
    let state = &states(&*store, &request, budgets).await[0];
    assert_eq!((state.spent.tokens, state.reserved), (total, Amount::default()));
}

/// A reservation whose answer is lost is made again, and counts once.
#[tokio::test]
async fn lost_connection_does_not_fail_a_reservation() {
    let budgets = of_tenant(tokens(20_000));
    let model = restless(1);
    let (mut parts, request) = setup(&model, budgets).parts().await;
    parts.store = Arc::new(Mortal { inner: Arc::clone(&parts.store), life: Life::losing(2) });
    let engine = Engine::new(parts);
    let end = engine.start(request.clone()).await.unwrap().finish().await;
    assert_eq!(end.status, RunStatus::Completed, "{:?}", end.failure);
    assert_eq!(model.asked().len(), 2);
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let total = spent(&*store).await.tokens.total();
    let state = &states(&*store, &request, budgets).await[0];
    assert_eq!((state.spent.tokens, state.reserved), (total, Amount::default()));
}

/// What was spent is exact to the billionth, with a call that is cancelled in the middle. Its reservation is released.
#[tokio::test]
async fn cancelled_call_is_charged_and_its_reservation_released() {
    let budgets = Budgets {
        thread: money("1"),
        user: PeriodLimits { day: money("1"), month: money("1") },
        tenant: PeriodLimits { day: money("1"), month: money("1") },
        ..Budgets::default()
    };
    let model = Scripted::default().script(
        "a",
        [ScriptedTurn::call("t", &json!({})).tokens(333, 777), ScriptedTurn::default().say("Let me").hang()],
    );
    let (parts, request) = setup(&model, budgets).parts().await;
    let engine = Engine::new(parts);
    let store = engine.parts.store.tenant(&request.caller.tenant);
    let mut run = engine.start(request.clone()).await.unwrap();
    while let Some(event) = run.events.recv().await {
        if matches!(event.kind, EventKind::TextDelta { .. }) {
            let open = states(&*store, &request, budgets).await;
            assert_eq!(open.len(), 5);
            assert!(open.iter().all(|state| state.reserved.nanos > 1_000_000), "{open:?}");
            run.cancel();
        }
    }
    let end = run.join().await;
    assert_eq!(end.status, RunStatus::Cancelled);
    let total = Amount::from(spent(&*store).await);
    assert!(total.nanos > 1_110_000, "the cancelled call cost something: {total:?}");
    assert_eq!(total, Amount::from(end.usage));
    for state in states(&*store, &request, budgets).await {
        assert_eq!((state.spent, state.reserved), (total, Amount::default()), "{:?}", state.key);
    }
}

/// The process dies between reserving a call and settling it.
#[test]
fn crashed_process_leaves_no_reservation() {
    let budgets = of_tenant(money("1"));
    let first = Scripted::default().script("a", [ScriptedTurn::default().say("Half an an").hang()]);
    let (engine, request, _) =
        die(setup(&first, budgets), |event| matches!(event.kind, EventKind::TextDelta { .. }));
    let runtime = crate::durability::runtime();
    let state = |engine: &Engine| {
        let store = engine.parts.store.tenant(&request.caller.tenant);
        runtime.block_on(async { (states(&*store, &request, budgets).await.remove(0), spent(&*store).await) })
    };
    let (open, _) = state(&engine);
    assert!(open.reserved.nanos > 0 && open.spent.nanos == 0, "{open:?}");
    let second = Scripted::default().script("a", [ScriptedTurn::text("A whole answer.").tokens(5, 6)]);
    let after = go_on(setup(&second, budgets), &engine);
    assert_eq!((after.run.status, after.rows.len()), (RunStatus::Completed, 2));
    let (settled, usage) = state(&engine);
    assert_eq!((settled.spent, settled.reserved), (Amount::from(usage), Amount::default()));
    assert!(settled.spent.nanos > 11_000, "both calls are charged: {settled:?}");
}

/// A warning at 80 %, once per budget and period, and before the next call.
#[tokio::test]
async fn one_warning_at_eighty_percent() {
    let budgets = of_tenant(tokens(5_000));
    let (parts, request) = setup(&restless(2), budgets).parts().await;
    let engine = Engine::new(parts);
    let mut warnings = Vec::new();
    for model in [restless(1), restless(0)] {
        let (mut parts, _) = setup(&model, budgets).parts().await;
        parts.store = Arc::clone(&engine.parts.store);
        let mut run = Engine::new(parts).start(request.clone()).await.unwrap();
        while let Some(event) = run.events.recv().await {
            if let EventKind::Budget(warning) = event.kind {
                warnings.push(warning);
            }
        }
    }
    assert!(warnings.is_empty(), "3,000 of 5,000: {warnings:?}");
    for _ in 0..2 {
        let (mut parts, _) = setup(&restless(0), budgets).parts().await;
        parts.store = Arc::clone(&engine.parts.store);
        let mut run = Engine::new(parts).start(request.clone()).await.unwrap();
        while let Some(event) = run.events.recv().await {
            if let EventKind::Budget(warning) = event.kind {
                warnings.push(warning);
            }
        }
    }
    assert_eq!(warnings.len(), 1, "{warnings:?}");
    assert_eq!((warnings[0].scope, warnings[0].period), (BudgetScope::Tenant, Some(BudgetPeriod::Day)));
    assert_eq!(warnings[0].percent, 80);
}

#[tokio::test]
async fn warning_of_a_run_is_published_once() {
    let ran = setup(&restless(4), Budgets { run: tokens(4_000), ..Budgets::default() }).run().await;
    let warnings: Vec<_> =
        ran.events.iter().filter(|event| matches!(event.kind, EventKind::Budget(_))).collect();
    assert_eq!(warnings.len(), 1, "{}", ran.log());
    assert!(matches!(&warnings[0].kind, EventKind::Budget(warning) if warning.scope == BudgetScope::Run));
    assert_eq!(ran.end.failure.as_ref().unwrap().code(), "budget_exhausted");
    assert_eq!(ran.end.rows.iter().filter(|row| row.tokens.output_tokens > 0).count(), 5);
}

/// A one-cent budget stops one branch of a fan-out and not its siblings.
#[tokio::test]
async fn one_cent_budget_stops_one_branch_only() {
    let model = Scripted::default()
        .script(
            "a",
            [
                ScriptedTurn::call("delegate", &json!({"agents": ["b", "c"], "message": "Look."})),
                ScriptedTurn::text("Done."),
            ],
        )
        .script(
            "b",
            [
                ScriptedTurn::call("t", &json!({})).tokens(11_000, 0),
                ScriptedTurn::text("Half of it.").tokens(10, 0),
            ],
        )
        .script(
            "c",
            [
                ScriptedTurn::call("t", &json!({})).tokens(11_000, 0),
                ScriptedTurn::call("t", &json!({})).tokens(11_000, 0),
                ScriptedTurn::text("All of it.").tokens(10, 0),
            ],
        );
    let ran = Setup::new(&model)
        .tool(TestTool::echo("t"))
        .agent(|a| a.agents = vec![name("b"), name("c")])
        .with("b", |b| b.limits.max_cost_usd = Some("0.01".parse::<Usd>().unwrap()))
        .with("c", |_| {})
        .run()
        .await;
    assert_eq!((ran.end.status, ran.answer(), model.left()), (RunStatus::Completed, "Done.", 0));
    let heard = format!("{:?}", model.asked());
    assert!(heard.contains("Half of it.") && heard.contains("All of it."), "{heard}");
}

/// A child never spends more than its parent has: while one child's call is in progress, a sibling waits for what is left.
#[tokio::test]
async fn siblings_share_their_parents_budget() {
    let model = Scripted::default()
        .script(
            "a",
            [
                ScriptedTurn::call("delegate", &json!({"agents": ["b", "c"], "message": "Look."}))
                    .tokens(0, 100),
                ScriptedTurn::text("Done.").tokens(0, 10),
            ],
        )
        .script("b", [ScriptedTurn::text("All.").wait(Duration::from_millis(50)).tokens(0, 1_000)])
        .script("c", [ScriptedTurn::text("All.").wait(Duration::from_millis(50)).tokens(0, 1_000)]);
    let short = |agent: &mut baton_core::Agent| agent.sampling.max_output_tokens = Some(1_000);
    let ran = Setup::new(&model)
        .agent(|a| {
            a.agents = vec![name("b"), name("c")];
            a.limits.max_tokens = Some(1_000);
        })
        .with("b", short)
        .with("c", |c| {
            short(c);
            c.limits.max_tokens = Some(1_000_000);
        })
        .run()
        .await;
    assert_eq!(ran.end.failure.as_ref().unwrap().code(), "budget_exhausted");
    let closing = model.asked().into_iter().filter(|request| {
        serde_json::to_string(&request.messages).unwrap().contains("the limit of tokens was met")
    });
    assert_eq!(closing.count(), 1, "the parent, not the sibling that never began\n{}", ran.log());
    assert_eq!(model.left(), 1, "the sibling made no call\n{}", ran.log());
}

/// A budget of nothing pays for no call, not even for a closing turn.
#[tokio::test]
async fn budget_of_nothing_makes_no_call() {
    for of_run in [false, true] {
        let model = restless(0);
        let setup = if of_run {
            setup(&model, Budgets { run: tokens(0), ..Budgets::default() })
        } else {
            setup(&model, Budgets::default()).agent(|a| a.limits.max_cost_usd = Some(Usd::default()))
        };
        let ran = setup.run().await;
        assert_eq!(ran.end.failure.as_ref().unwrap().code(), "budget_exhausted", "{}", ran.log());
        assert!(model.asked().is_empty() && ran.end.rows.is_empty(), "{}", ran.log());
    }
}

/// A cost budget with a model whose price is not known is an error that says so. Token budgets apply to every model.
#[tokio::test]
async fn unpriced_model_needs_a_token_budget() {
    let unpriced = ModelFacts { price: None, context_window: None, ..ModelFacts::default() };
    let model = restless(0).with_facts(unpriced);
    let ran = setup(&model, of_tenant(money("1"))).run().await;
    assert_eq!(ran.end.failure.as_ref().unwrap().code(), "unknown_price");
    assert!(ran.end.failure.unwrap().to_string().contains("set `price` for the model in baton.toml"));
    assert!(model.asked().is_empty());
    let model = restless(1).with_facts(unpriced);
    let ran = setup(&model, of_tenant(tokens(1_200))).run().await;
    assert_eq!(ran.end.failure.unwrap().code(), "budget_exhausted");
    assert_eq!(model.asked().len(), 2);
}

/// What is left of a budget limits the length of a reply.
#[tokio::test]
async fn reply_is_no_longer_than_the_rest_of_a_budget_allows() {
    let model = Scripted::default().script("a", [ScriptedTurn::text("Hi.").tokens(0, 10)]);
    let ran = setup(&model, of_tenant(tokens(900))).run().await;
    assert_eq!(ran.end.status, RunStatus::Completed);
    let most = model.asked()[0].max_output_tokens.unwrap();
    assert!((512..900).contains(&most), "{most}");
}

async fn last_text(store: &dyn TenantStore, thread: ThreadId) -> String {
    store.messages(thread, MessageQuery::last(1)).await.unwrap()[0].message.text()
}
