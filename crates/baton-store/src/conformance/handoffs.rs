//! Leases of threads to agents.

use baton_core::choice::Choice as _;
use baton_core::store::work::RunEnd;
use baton_core::store::{
    Activation, Append, HandoffNotes, HandoffSession, HandoffState, NewHandoff, NewRun, RunEndData,
    RunStatus, WorkflowState,
};
use baton_core::{HandoffId, Store, StoreError, TenantStore, ThreadId};
use futures_util::future::join_all;
use serde_json::json;
use uuid::Uuid;

use super::fixture::{a_moment, agent, in_seconds, new_run, owner, tenant, user};

fn new(thread: ThreadId) -> NewHandoff {
    NewHandoff {
        handoff_id: HandoffId::from_uuid(Uuid::now_v7()),
        thread_id: thread,
        user_id: user("ada"),
        source_agent_id: agent("assistant"),
        target_agent_id: agent("skill-creator"),
        context_summary: "Ada wants\u{0} a skill".to_owned(),
        handoff_reason: "she asked for it".to_owned(),
        metadata: json!({"ticket": 17}),
        notes: HandoffNotes::default(),
        max_open: None,
        activation: None,
    }
}

async fn thread_in(tenant: &dyn TenantStore) -> ThreadId {
    let run = new_run(ThreadId::random(), "Make a skill");
    tenant.accept(run.clone()).await.unwrap();
    run.thread_id
}

/// Brings it into a state, keeping the rest.
async fn to(
    tenant: &dyn TenantStore,
    handoff: &HandoffSession,
    state: HandoffState,
) -> Result<HandoffSession, StoreError> {
    tenant.update_handoff(HandoffSession { state, ..handoff.clone() }).await
}

pub async fn c_4_durations_of_completed_handoffs_are_read(store: &dyn Store) {
    let (own, other) = (tenant(store), tenant(store));
    let maker = agent("skill-creator");
    for state in
        [HandoffState::Completed, HandoffState::Cancelled, HandoffState::Completed, HandoffState::Active]
    {
        let handoff = own.open_handoff(new(thread_in(&*own).await)).await.unwrap();
        let active = to(&*own, &handoff, HandoffState::Active).await.unwrap();
        a_moment().await;
        if state != HandoffState::Active {
            to(&*own, &active, state).await.unwrap();
        }
    }
    let lasted = own.completed_durations(&maker, 10).await.unwrap();
    assert_eq!(lasted.len(), 2, "those that are completed");
    assert!(lasted.iter().all(|lasted| !lasted.is_zero()), "{lasted:?}");
    assert_eq!(own.completed_durations(&maker, 1).await.unwrap(), lasted[..1], "the newest");
    assert!(own.completed_durations(&agent("assistant"), 10).await.unwrap().is_empty(), "of this agent");
    assert!(other.completed_durations(&maker, 10).await.unwrap().is_empty(), "of this tenant");
}

pub async fn c_8_c_12_one_handoff_at_a_time(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread_in(&*tenant).await;
    let first = tenant.open_handoff(new(thread)).await.unwrap();
    assert_eq!((first.state, first.version, first.completed_at), (HandoffState::Pending, 1, None));
    assert_eq!(first.context_summary, "Ada wants a skill");
    assert_eq!(first.metadata, json!({"ticket": 17}));
    let refused = tenant.open_handoff(new(thread)).await.unwrap_err();
    assert_eq!(refused, StoreError::HandoffActive(first.handoff_id));
    assert!(refused.to_string().contains("active handoff already exists for this thread"));
    let elsewhere = thread_in(&*tenant).await;
    assert!(tenant.open_handoff(new(elsewhere)).await.is_ok(), "another thread is another thing");
    to(&*tenant, &first, HandoffState::Cancelled).await.unwrap();
    assert!(tenant.open_handoff(new(thread)).await.is_ok());
}

pub async fn c_12_of_many_that_begin_at_once_one_is_opened(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread_in(&*tenant).await;
    let opened = join_all((0..10).map(|_| tenant.open_handoff(new(thread)))).await;
    let winners: Vec<&HandoffSession> = opened.iter().filter_map(|outcome| outcome.as_ref().ok()).collect();
    let [winner] = winners[..] else { panic!("{} were opened", winners.len()) };
    let refused = Err(StoreError::HandoffActive(winner.handoff_id));
    assert_eq!(opened.iter().filter(|outcome| **outcome == refused).count(), 9);
    assert_eq!(tenant.thread(thread, None).await.unwrap().handoff, Some(winner.handoff_id));
}

pub async fn c_10_an_open_handoff_is_found_by_its_thread(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread_in(&*tenant).await;
    assert_eq!(tenant.open_handoff_of(thread).await, Ok(None));
    let mut handoff = tenant.open_handoff(new(thread)).await.unwrap();
    for state in [HandoffState::Active, HandoffState::Returning] {
        handoff = to(&*tenant, &handoff, state).await.unwrap();
        assert_eq!(tenant.open_handoff_of(thread).await, Ok(Some(handoff.clone())));
        assert_eq!(tenant.handoff(handoff.handoff_id).await, Ok(handoff.clone()));
    }
    to(&*tenant, &handoff, HandoffState::Completed).await.unwrap();
    assert_eq!(tenant.open_handoff_of(thread).await, Ok(None));
    let unknown = HandoffId::from_uuid(Uuid::new_v4());
    assert_eq!(tenant.handoff(unknown).await, Err(StoreError::NotFound("handoff")));
}

pub async fn all_handoffs_of_a_thread_are_listed_oldest_first(store: &dyn Store) {
    let tenant = tenant(store);
    let (thread, elsewhere) = (thread_in(&*tenant).await, thread_in(&*tenant).await);
    assert_eq!(tenant.handoffs(thread).await, Ok(Vec::new()));
    let first = tenant.open_handoff(new(thread)).await.unwrap();
    let first = to(&*tenant, &first, HandoffState::Cancelled).await.unwrap();
    a_moment().await;
    let second = tenant.open_handoff(new(thread)).await.unwrap();
    tenant.open_handoff(new(elsewhere)).await.unwrap();
    assert_eq!(tenant.handoffs(thread).await, Ok(vec![first, second]));
    assert_eq!(tenant.handoffs(ThreadId::random()).await, Err(StoreError::ThreadNotFound));
}

pub async fn c_11_a_handoff_needs_its_conversation(store: &dyn Store) {
    let tenant = tenant(store);
    let missing = ThreadId::random();
    assert_eq!(tenant.open_handoff(new(missing)).await, Err(StoreError::ThreadNotFound));
    assert_eq!(tenant.open_handoff_of(missing).await, Err(StoreError::ThreadNotFound));
    assert_eq!(tenant.resumable_handoffs(missing).await, Err(StoreError::ThreadNotFound));
}

pub async fn c_6_states_follow_each_other_only_along_their_ways(store: &dyn Store) {
    use HandoffState::{Active, Cancelled, Completed, Pending, Returning};
    let tenant = tenant(store);
    for (way, refused) in [
        (&[Pending][..], &[Returning, Completed][..]),
        (&[Active], &[Pending]),
        (&[Active, Returning], &[Pending, Active]),
        (&[Active, Completed], &[Pending, Returning, Cancelled]),
    ] {
        let thread = thread_in(&*tenant).await;
        let mut handoff = tenant.open_handoff(new(thread)).await.unwrap();
        for state in way {
            handoff = to(&*tenant, &handoff, *state).await.unwrap();
        }
        for state in refused {
            let outcome = to(&*tenant, &handoff, *state).await;
            assert_eq!(outcome, Err(StoreError::HandoffChanged), "{} to {state}", handoff.state);
        }
        assert_eq!(tenant.handoff(handoff.handoff_id).await, Ok(handoff));
    }
    assert_eq!(HandoffState::ALL.len(), 6, "a new state needs its ways");
}

/// Of two who read the same version, one changes it.
pub async fn c_7_a_change_needs_the_version_it_was_made_on(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread_in(&*tenant).await;
    let before = tenant.open_handoff(new(thread)).await.unwrap();
    let changes = join_all((0..8).map(|n| {
        let mut changed = before.clone();
        changed.state = HandoffState::Active;
        changed.result_summary = Some(format!("change {n}"));
        changed.artifacts_created = vec![format!("skill-{n}")];
        changed.metadata = json!({"n": n});
        tenant.update_handoff(changed)
    }))
    .await;
    let made: Vec<&HandoffSession> = changes.iter().filter_map(|change| change.as_ref().ok()).collect();
    let [made] = made[..] else { panic!("{} were made", made.len()) };
    assert_eq!(made.version, before.version + 1);
    let refused = Err(StoreError::HandoffChanged);
    assert_eq!(changes.iter().filter(|change| **change == refused).count(), 7);
    assert_eq!(tenant.handoff(before.handoff_id).await.as_ref(), Ok(made));
    let elsewhere = HandoffSession { thread_id: ThreadId::random(), ..made.clone() };
    assert_eq!(tenant.update_handoff(elsewhere).await, Err(StoreError::NotFound("handoff")));
}

/// The target has the thread while the handoff is active; the source has it back once it has ended.
pub async fn the_holder_follows_the_handoff(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread_in(&*tenant).await;
    let holder = async || {
        let thread = tenant.thread(thread, None).await.unwrap();
        (thread.holder.map(|name| name.to_string()), thread.handoff)
    };
    let pending = tenant.open_handoff(new(thread)).await.unwrap();
    let id = Some(pending.handoff_id);
    assert_eq!(holder().await, (None, id), "nobody has answered yet");
    let active = to(&*tenant, &pending, HandoffState::Active).await.unwrap();
    assert_eq!(holder().await, (Some("skill-creator".to_owned()), id));
    let returning = to(&*tenant, &active, HandoffState::Returning).await.unwrap();
    assert_eq!(holder().await, (Some("skill-creator".to_owned()), id));
    let ended = to(&*tenant, &returning, HandoffState::Completed).await.unwrap();
    assert!(ended.completed_at.is_some_and(|at| at >= ended.started_at));
    assert_eq!(holder().await, (Some("assistant".to_owned()), None));
    let other = tenant.open_handoff(new(thread)).await.unwrap();
    to(&*tenant, &other, HandoffState::Active).await.unwrap();
    let noted = HandoffSession { result_summary: Some("late".to_owned()), ..ended.clone() };
    let noted = tenant.update_handoff(noted).await.unwrap();
    assert_eq!((noted.completed_at, noted.version), (ended.completed_at, ended.version + 1));
    assert_eq!(
        holder().await,
        (Some("skill-creator".to_owned()), Some(other.handoff_id)),
        "it has no say any more"
    );
}

/// With the workflow as it was, unless another handoff has the thread.
pub async fn c_16_what_was_left_can_be_resumed(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread_in(&*tenant).await;
    let begin = async |step: &str| {
        let pending = tenant.open_handoff(new(thread)).await.unwrap();
        let workflow = Some(WorkflowState { state: step.to_owned(), data: json!({"collected": [step]}) });
        let active = HandoffSession { state: HandoffState::Active, workflow, ..pending };
        tenant.update_handoff(active).await.unwrap()
    };
    let first = begin("gathering").await;
    let first = to(&*tenant, &first, HandoffState::Cancelled).await.unwrap();
    assert_eq!(tenant.resumable_handoffs(thread).await, Ok(vec![first.clone()]));
    a_moment().await;
    let second = begin("testing").await;
    let refused = to(&*tenant, &first, HandoffState::Active).await;
    assert_eq!(refused, Err(StoreError::HandoffActive(second.handoff_id)));
    assert_eq!(
        tenant.resumable_handoffs(thread).await,
        Ok(vec![first.clone()]),
        "an open one is not resumed"
    );
    let second = to(&*tenant, &second, HandoffState::Error).await.unwrap();
    assert_eq!(tenant.resumable_handoffs(thread).await, Ok(vec![second.clone(), first.clone()]));
    let of_user = tenant.resumable_handoffs_of(&first.user_id).await.map(|all| all.len());
    assert_eq!(of_user, Ok(2), "K10: in any thread of the user");
    assert_eq!(tenant.resumable_handoffs_of(&user("bob")).await, Ok(Vec::new()));
    let resumed = to(&*tenant, &first, HandoffState::Active).await.unwrap();
    assert_eq!((resumed.completed_at, &resumed.workflow), (None, &first.workflow));
    assert_eq!(tenant.thread(thread, None).await.unwrap().handoff, Some(resumed.handoff_id));
    let done = HandoffSession { state: HandoffState::Completed, workflow: None, ..resumed };
    tenant.update_handoff(done).await.unwrap();
    assert_eq!(tenant.resumable_handoffs(thread).await, Ok(vec![second]), "nothing is left of it to resume");
}

/// In one write, so that nobody who dies leaves it half done.
pub async fn c_35_open_handoffs_of_many_threads_are_read_at_once(store: &dyn Store) {
    let (tenant, other) = (tenant(store), tenant(store));
    let mut threads = Vec::new();
    for _ in 0..4 {
        threads.push(thread_in(&*tenant).await);
    }
    let workflow = Some(WorkflowState { state: "collect".to_owned(), data: json!({"name": "ä"}) });
    let activation = Some(Activation { workflow, expires_at: Some(in_seconds(60)) });
    let active = tenant.open_handoff(NewHandoff { activation, ..new(threads[0]) }).await.unwrap();
    let pending = tenant.open_handoff(new(threads[1])).await.unwrap();
    let ended = tenant.open_handoff(new(threads[2])).await.unwrap();
    to(&*tenant, &ended, HandoffState::Cancelled).await.unwrap();
    let of = async |threads: &[ThreadId]| {
        let mut found = tenant.open_handoffs_of(threads).await.unwrap();
        found.sort_by_key(|handoff| handoff.handoff_id != active.handoff_id);
        found
    };
    let unknown = [&threads[..], &[ThreadId::random()]].concat();
    assert_eq!(of(&unknown).await, [active.clone(), pending.clone()], "with their workflows");
    assert_eq!(of(&threads[1..2]).await, [pending]);
    assert_eq!(of(&threads[2..]).await, []);
    assert_eq!(of(&[]).await, []);
    let page: Vec<ThreadId> = (0..199).map(|_| ThreadId::random()).chain([threads[0]]).collect();
    assert_eq!(of(&page).await, [active], "as many as a page may have");
    assert_eq!(other.open_handoffs_of(&threads).await, Ok(vec![]));
}

pub async fn c_8_a_handoff_can_begin_active(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = thread_in(&*tenant).await;
    let workflow = Some(WorkflowState { state: "gathering".to_owned(), data: json!({"values": {}}) });
    let activation = Some(Activation { workflow: workflow.clone(), expires_at: Some(in_seconds(60)) });
    let active = tenant.open_handoff(NewHandoff { activation, ..new(thread) }).await.unwrap();
    assert_eq!((active.state, &active.workflow), (HandoffState::Active, &workflow));
    assert!(active.expires_at.is_some());
    let held = tenant.thread(thread, None).await.unwrap();
    assert_eq!((held.holder, held.handoff), (Some(agent("skill-creator")), Some(active.handoff_id)));
    assert_eq!(tenant.open_handoff_of(thread).await, Ok(Some(active)));
}

/// Whoever has enough conversations takes no more; those of others and those that ended do not count.
pub async fn c_8_an_agent_takes_only_so_many(store: &dyn Store) {
    let tenant = tenant(store);
    let open = async |most| {
        let thread = thread_in(&*tenant).await;
        tenant.open_handoff(NewHandoff { max_open: Some(most), ..new(thread) }).await
    };
    let first = open(2).await.unwrap();
    open(2).await.unwrap();
    assert_eq!(open(2).await, Err(StoreError::TooManyHandoffs(2)));
    let thread = thread_in(&*tenant).await;
    let other = NewHandoff { target_agent_id: agent("debugger"), max_open: Some(2), ..new(thread) };
    assert!(tenant.open_handoff(other).await.is_ok());
    to(&*tenant, &first, HandoffState::Cancelled).await.unwrap();
    assert!(open(2).await.is_ok());
}

/// Those whose time is over are found, but not where somebody is at work or about to be.
pub async fn c_21_those_whose_time_is_over_are_found(store: &dyn Store) {
    let tenant = tenant(store);
    let begin = async |thread, seconds| {
        let activation = Some(Activation { workflow: None, expires_at: Some(in_seconds(seconds)) });
        tenant.open_handoff(NewHandoff { activation, ..new(thread) }).await.unwrap()
    };
    let (busy, later) = (thread_in(&*tenant).await, at_rest(&*tenant).await);
    begin(busy, -5).await;
    begin(later, 60).await;
    let over = at_rest(&*tenant).await;
    let over = begin(over, -5).await;
    assert_eq!(tenant.expired_handoffs(10).await, Ok(vec![over.clone()]));
    to(&*tenant, &over, HandoffState::Cancelled).await.unwrap();
    assert_eq!(tenant.expired_handoffs(10).await, Ok(Vec::new()));
}

/// A thread whose only run has ended.
async fn at_rest(tenant: &dyn TenantStore) -> ThreadId {
    let thread = thread_in(tenant).await;
    let claimed = tenant.claim(thread, &owner("p")).await.unwrap().unwrap();
    let end = Some(RunEnd { status: RunStatus::Completed, end: RunEndData::default() });
    tenant.append(&claimed.claim, Append { number: 1, end, ..Append::default() }.into()).await.unwrap();
    thread
}

/// Who takes a run learns which handoff the thread has or had last, and may make the run somebody else's.
pub async fn d_3_a_claim_knows_the_last_handoff_and_a_run_gets_its_agent(store: &dyn Store) {
    let tenant = tenant(store);
    let thread = at_rest(&*tenant).await;
    let next = async || {
        let run = NewRun { thread_id: thread, ..new_run(thread, "And now?") };
        tenant.accept(run).await.unwrap();
        tenant.claim(thread, &owner("p")).await.unwrap().unwrap()
    };
    let first = next().await;
    assert_eq!(first.handoff, None);
    let append = Append { number: 1, agent: Some(agent("skill-creator")), ..Append::default() };
    tenant.append(&first.claim, append.into()).await.unwrap();
    assert_eq!(tenant.run(first.run.run_id).await.unwrap().agent, agent("skill-creator"));
    let handoff = tenant.open_handoff(new(thread)).await.unwrap();
    // Under a handoff the end of a run does not decide who has the thread.
    let active = to(&*tenant, &handoff, HandoffState::Active).await.unwrap();
    let end = Some(RunEnd { status: RunStatus::Completed, end: RunEndData::default() });
    let holder = Some(agent("assistant"));
    tenant.append(&first.claim, Append { number: 2, holder, end, ..Append::default() }.into()).await.unwrap();
    assert_eq!(tenant.thread(thread, None).await.unwrap().holder, Some(agent("skill-creator")));
    let second = next().await;
    assert_eq!(second.handoff.as_ref(), Some(&active));
    let ended = to(&*tenant, &active, HandoffState::Cancelled).await.unwrap();
    let end = Some(RunEnd { status: RunStatus::Completed, end: RunEndData::default() });
    tenant.append(&second.claim, Append { number: 1, end, ..Append::default() }.into()).await.unwrap();
    assert_eq!(next().await.handoff, Some(ended), "also once it has ended");
}
