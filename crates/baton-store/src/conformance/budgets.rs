//! Budgets that runs share: reserved before a call, settled with its ledger row.

use std::time::Duration;

use baton_core::budget::{
    Amount, BudgetAccount, BudgetKey, BudgetLimit, BudgetPeriod, BudgetScope, BudgetUnit, Budgets,
    PeriodLimits,
};
use baton_core::store::{
    Append, BudgetState, Cancel, Reservation, ReservationOutcome, Reserved, RunStatus, StepState,
};
use baton_core::usage::Cost;
use baton_core::{LedgerRow, RunId, Store, ThreadId, Tokens, Usd};
use jiff::Timestamp;

use super::fixture::{Home, LEASE, TestWorker, call, new_run, now, step, tenant, user};

/// Limits all that can be limited.
fn budgets(most: u64) -> Budgets {
    let limit = BudgetLimit { max_cost_usd: None, max_tokens: Some(most) };
    let periods = PeriodLimits { day: limit, month: limit };
    Budgets { run: limit, thread: limit, user: periods, tenant: periods }
}

fn accounts(thread: ThreadId, most: u64) -> Vec<BudgetAccount> {
    budgets(most).accounts(Some(thread), Some(&user("ada")), now())
}

fn tokens(tokens: u64) -> Amount {
    Amount { nanos: 0, tokens }
}

/// A call of a worker's run that can take this many tokens of budgets with `most`.
fn reservation(worker: &TestWorker<'_>, path: &str, most: u64, wanted: u64) -> Reservation {
    Reservation {
        thread_id: worker.thread,
        run_id: worker.run,
        path: path.to_owned(),
        started_at: now(),
        accounts: accounts(worker.thread, most),
        wanted: tokens(wanted),
        least: tokens(wanted),
        is_closing: false,
        ttl: Duration::from_mins(1),
        recount: Vec::new(),
    }
}

/// The ledger row of a reserved call.
fn row(run: RunId, reserved: &Reservation, output_tokens: u64, nanos: i64) -> LedgerRow {
    let tokens = Tokens { output_tokens, ..Tokens::default() };
    let cost = Cost::Known(Usd::from_nanos(nanos));
    LedgerRow { tokens, cost, started_at: reserved.started_at, ..call(run, &reserved.path) }
}

fn settling(rows: Vec<LedgerRow>) -> Append {
    Append { rows, settles_budgets: true, ..Append::default() }
}

async fn states(tenant: &Home<'_>, thread: ThreadId) -> Vec<BudgetState> {
    let keys = accounts(thread, 1).into_iter().map(|account| account.key).collect();
    tenant.budget_states(keys).await.unwrap()
}

fn amounts(states: &[BudgetState]) -> Vec<(Amount, Amount)> {
    states.iter().map(|state| (state.spent, state.reserved)).collect()
}

async fn is_granted(tenant: &Home<'_>, reservation: &Reservation) -> bool {
    matches!(tenant.reserve(reservation.clone()).await.unwrap().verdict, ReservationOutcome::Granted(_))
}

pub async fn a_call_is_reserved_and_then_charged_in_every_account(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    let reserved = reservation(&worker, "a/turn:1", 100, 60);
    let Reserved { verdict, warnings } = tenant.reserve(reserved.clone()).await.unwrap();
    assert_eq!((verdict, warnings.len()), (ReservationOutcome::Granted(tokens(60)), 0));
    let held = (Amount::default(), tokens(60));
    assert_eq!(amounts(&states(&tenant, worker.thread).await), [held; 5]);
    // The answer was lost: the call does not wait for itself.
    let Reserved { verdict, .. } = tenant.reserve(reserved.clone()).await.unwrap();
    assert_eq!(verdict, ReservationOutcome::Granted(tokens(60)));
    assert_eq!(amounts(&states(&tenant, worker.thread).await), [held; 5]);
    // The budget was lowered meanwhile.
    let refused = Reservation { accounts: accounts(worker.thread, 50), ..reserved.clone() };
    assert!(!is_granted(&tenant, &refused).await);
    assert_eq!(amounts(&states(&tenant, worker.thread).await), [(Amount::default(), Amount::default()); 5]);
    assert!(is_granted(&tenant, &reserved).await);
    let rows = vec![row(worker.run, &reserved, 50, 7)];
    worker.append(settling(rows)).await;
    let charged = (Amount { nanos: 7, tokens: 50 }, Amount::default());
    assert_eq!(amounts(&states(&tenant, worker.thread).await), [charged; 5]);
}

pub async fn calls_in_progress_make_others_wait_and_spent_budgets_refuse(store: &dyn Store) {
    let mut one = TestWorker::start(store).await;
    let tenant = one.tenant.clone();
    let other = TestWorker::in_tenant(&tenant).await;
    let first = reservation(&one, "a/turn:1", 100, 60);
    assert!(is_granted(&tenant, &first).await);
    let second = reservation(&other, "a/turn:1", 100, 60);
    assert_eq!(tenant.reserve(second.clone()).await.unwrap().verdict, ReservationOutcome::Busy);
    assert_eq!(tenant.is_free(second.clone()).await, Ok(false));
    let less = Reservation { least: tokens(10), ..second.clone() };
    assert_eq!(
        tenant.reserve(less).await.unwrap().verdict,
        ReservationOutcome::Granted(tokens(40)),
        "what is left"
    );
    tenant.release_reservations(other.run).await.unwrap();
    one.append(settling(vec![row(one.run, &first, 70, 0)])).await;
    assert_eq!(tenant.is_free(second.clone()).await, Ok(true), "there is nothing to wait for");
    let refused = tenant.reserve(second.clone()).await.unwrap().verdict;
    let ReservationOutcome::Exhausted { key, unit } = refused else { panic!("{refused:?}") };
    assert_eq!((key.scope, unit), (BudgetScope::User, BudgetUnit::Tokens), "the thread is a new one");
    // One closing call may take more than is left, and then no other call gets anything.
    let closing = Reservation { is_closing: true, started_at: now(), ..second.clone() };
    assert!(is_granted(&tenant, &closing).await);
    let third = Reservation { is_closing: true, path: "a/turn:2".to_owned(), ..second };
    assert_eq!(tenant.reserve(third).await.unwrap().verdict, ReservationOutcome::Busy);
}

pub async fn many_reservations_at_once_never_exceed_a_budget(store: &dyn Store) {
    let tenant = tenant(store);
    let mut workers = Vec::new();
    for _ in 0..8 {
        workers.push(TestWorker::in_tenant(&tenant).await);
    }
    let tries = workers
        .iter()
        .flat_map(|worker| (0..4).map(move |n| reservation(worker, &format!("a/turn:{n}"), 100, 30)));
    let tries: Vec<Reservation> = tries.collect();
    let granted = tries.iter().map(|one| is_granted(&tenant, one));
    let granted =
        futures_util::future::join_all(granted).await.into_iter().filter(|granted| *granted).count();
    assert_eq!(granted, 3, "30 of 100, three times");
}

pub async fn an_append_charges_once_and_an_end_releases_the_rest(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    let reserved = [1, 2, 3].map(|n| reservation(&worker, &format!("a/turn:{n}"), 1_000, 10));
    for one in &reserved {
        assert!(is_granted(&tenant, one).await);
    }
    let append = settling(vec![row(worker.run, &reserved[0], 5, 1), row(worker.run, &reserved[1], 6, 2)]);
    worker.append(append.clone()).await;
    let repeated = std::sync::Arc::new(Append { number: 1, ..append });
    tenant.append(&worker.claimed.claim, repeated).await.unwrap();
    let left = (Amount { nanos: 3, tokens: 11 }, tokens(10));
    assert_eq!(amounts(&states(&tenant, worker.thread).await), [left; 5]);
    let end = super::fixture::ended(RunStatus::Completed);
    worker.append(Append { end: Some(end), settles_budgets: true, ..Append::default() }).await;
    let done = (Amount { nanos: 3, tokens: 11 }, Amount::default());
    assert_eq!(amounts(&states(&tenant, worker.thread).await), [done; 5]);
}

pub async fn the_call_that_a_process_died_in_is_charged(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    let reserved = reservation(&worker, "a/turn:1", 1_000, 10);
    assert!(is_granted(&tenant, &reserved).await);
    let row = row(worker.run, &reserved, 4, 9);
    let cut = baton_core::store::work::InterruptedCall {
        message_id: baton_core::MessageId::from_uuid(uuid::Uuid::now_v7()),
        visibility: baton_core::Visibility::User,
        row,
    };
    let mut begun = step(worker.run, "a/turn:1", StepState::Started);
    begun.data = baton_core::store::StepData::of(&cut);
    worker.append(Append { steps: vec![begun], ..Append::default() }).await;
    worker.die().await;
    tenant.cancel_run(worker.run, Cancel::Abort).await.unwrap();
    let charged = (Amount { nanos: 9, tokens: 4 }, Amount::default());
    assert_eq!(amounts(&states(&tenant, worker.thread).await), [charged; 5]);
}

pub async fn expired_reservations_do_not_count(store: &dyn Store) {
    let worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    let gone = Reservation { ttl: Duration::ZERO, ..reservation(&worker, "a/turn:1", 100, 90) };
    assert!(is_granted(&tenant, &gone).await);
    super::fixture::a_moment().await;
    assert!(is_granted(&tenant, &reservation(&worker, "a/turn:2", 100, 90)).await);
}

pub async fn a_warning_is_given_once_per_period(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    let first = reservation(&worker, "a/turn:1", 100, 10);
    assert!(tenant.reserve(first.clone()).await.unwrap().warnings.is_empty());
    worker.append(settling(vec![row(worker.run, &first, 85, 0)])).await;
    let next = tenant.reserve(reservation(&worker, "a/turn:2", 100, 10)).await.unwrap();
    assert_eq!(next.warnings.len(), 5);
    let day = next.warnings.iter().find(|one| one.period == Some(BudgetPeriod::Day)).unwrap();
    assert_eq!((day.percent, day.unit), (85, BudgetUnit::Tokens));
    let later = tenant.reserve(reservation(&worker, "a/turn:3", 100, 1)).await.unwrap();
    assert!(later.warnings.is_empty());
}

/// Budgets that were off for a while agree with the ledger after one recount. What a deleted thread has spent still counts.
pub async fn a_recount_agrees_with_the_ledger(store: &dyn Store) {
    let tenant = tenant(store);
    let mut run = new_run(ThreadId::random(), "Hello");
    run.user_id = user("ada");
    let thread = run.thread_id;
    tenant.accept(run).await.unwrap();
    let mut worker = TestWorker::claim(&tenant, thread, LEASE).await;
    // Without a budget: nothing is reserved, nothing is settled.
    let rows = vec![LedgerRow { started_at: now(), ..call(worker.run, "a/turn:1") }];
    worker.append(Append { rows, ..Append::default() }).await;
    let asked = reservation(&worker, "a/turn:2", 20, 6);
    let keys: Vec<BudgetKey> = asked.accounts.iter().map(|account| account.key.clone()).collect();
    let [of_thread, others @ ..] = &keys[..] else { panic!("{keys:?}") };
    let one = Reservation { recount: vec![of_thread.clone()], ..asked.clone() };
    let refused = tenant.reserve(one).await.unwrap().verdict;
    assert!(matches!(&refused, ReservationOutcome::Exhausted { key, .. } if key == of_thread), "{refused:?}");
    let without_thread =
        Reservation { accounts: asked.accounts[1..].to_vec(), path: "a/turn:3".to_owned(), ..asked.clone() };
    assert!(is_granted(&tenant, &without_thread).await, "the others are not compared yet");
    tenant.release_reservations(worker.run).await.unwrap();
    let asked = Reservation { recount: others.to_vec(), ..asked };
    let refused = tenant.reserve(asked).await.unwrap().verdict;
    assert!(matches!(refused, ReservationOutcome::Exhausted { .. }), "15 of 20 are spent: {refused:?}");
    let spent = Amount { nanos: 7, tokens: 15 };
    assert!(states(&tenant, thread).await.iter().all(|state| state.spent == spent));
    assert!(is_granted(&tenant, &reservation(&worker, "a/turn:2", 20, 5)).await);
    tenant.delete_thread(thread, None).await.unwrap();
    for state in states(&tenant, thread).await {
        let of_thread = state.key.scope == BudgetScope::Thread;
        let charged = Amount { nanos: 7, tokens: 20 };
        assert_eq!(state.spent, if of_thread { Amount::default() } else { charged }, "{:?}", state.key);
        assert_eq!(state.reserved, Amount::default());
    }
}

pub async fn each_period_counts_for_itself(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let tenant = worker.tenant.clone();
    let at = |text: &str| text.parse::<Timestamp>().unwrap();
    let key = |period: BudgetPeriod, at: Timestamp| BudgetKey {
        scope: BudgetScope::Tenant,
        subject: String::new(),
        period,
        starts_at: period.start(at),
    };
    let late = at("2026-11-30T23:59:59Z");
    let on_time = Reservation {
        started_at: late,
        accounts: budgets(100).accounts(None, None, late),
        ..reservation(&worker, "a/turn:1", 100, 50)
    };
    assert!(is_granted(&tenant, &on_time).await);
    worker.append(settling(vec![row(worker.run, &on_time, 50, 0)])).await;
    let next = at("2026-12-01T00:00:00Z");
    let keys = [(BudgetPeriod::Day, late), (BudgetPeriod::Month, late), (BudgetPeriod::Day, next)];
    let states = tenant.budget_states(keys.map(|(period, at)| key(period, at)).to_vec()).await.unwrap();
    assert_eq!(states.iter().map(|state| state.spent.tokens).collect::<Vec<_>>(), [50, 50, 0]);
}
