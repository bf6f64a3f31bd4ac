//! Two ends at once: exactly one is the outcome.

use std::time::Duration;

use baton_core::ThreadId;
use baton_core::event::EventKind;
use baton_core::store::{ApprovalStatus, Cancel, RunStatus};
use baton_core::tool::Risk;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::json;

use super::{Site, Written, ada, approve};
use crate::Setup;

const RACES: usize = 1000;

/// A run that is cancelled while it completes has one end, and every reader sees the same.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cancel_races_with_completion() {
    let model = Scripted::default().script("a", (0..RACES).map(|_| ScriptedTurn::text("Done.")));
    let site = Site::new(move || Setup::new(&model)).await;
    let tenant = site.store.tenant(site.tenant());
    let mut cancelled = 0;
    for nth in 0..RACES {
        let mut request = site.request.clone();
        request.caller.thread_id = ThreadId::random();
        let run = site.engine.start(request).await.unwrap();
        let id = run.id;
        tokio::time::sleep(Duration::from_micros((nth as u64 % 20) * 50)).await;
        let how = if nth % 2 == 0 { Cancel::Abort } else { Cancel::Stop };
        site.engine.cancel(site.tenant(), id, how).await.unwrap();
        let end = run.finish().await;
        let record = tenant.run(id).await.unwrap();
        assert_eq!(end.status, record.status);
        let events = tenant.run_events(id, 0, 200).await.unwrap();
        let ends: Vec<_> = events.iter().filter(|event| event.kind.is_end()).collect();
        let [only] = ends[..] else { panic!("{ends:?}") };
        let is_cancelled =
            matches!(&only.kind, EventKind::RunFinished { outcome, .. } if outcome.word() == "cancelled");
        assert_eq!(is_cancelled, record.status == RunStatus::Cancelled);
        cancelled += usize::from(is_cancelled);
    }
    assert!(cancelled < RACES, "some complete first");
}

/// An approval that is given in the moment in which it expires counts or does not; the tool runs exactly if it counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn approval_races_with_expiry() {
    let written = Written::default();
    let one = || [ScriptedTurn::call("write", &json!({"n": 1})), ScriptedTurn::text("Done.")];
    let model = Scripted::default().script("a", (0..RACES).flat_map(|_| one()));
    let tools = written.clone();
    let make = move || {
        let mut setup = Setup::new(&model).tool(tools.tool("write"));
        setup.ask_at = Some(Risk::High);
        setup.expiry = Duration::from_millis(8);
        setup
    };
    let site = Site::new(make).await;
    let tenant = site.store.tenant(site.tenant());
    let mut approved = 0;
    for nth in 0..RACES {
        let mut request = site.request.clone();
        request.caller.thread_id = ThreadId::random();
        let thread = request.caller.thread_id;
        let run = site.engine.start(request).await.unwrap();
        let id = run.id;
        let asked = run.finish().await.waits_for[0].clone();
        // Until about the moment of expiry.
        let left = asked.expires_at.duration_since(jiff::Timestamp::now()).as_micros();
        let early = u64::try_from(left).unwrap_or_default().saturating_sub(nth as u64 % 10 * 200);
        tokio::time::sleep(Duration::from_micros(early)).await;
        let expire = async {
            loop {
                let seen = tenant.expire(asked.approval_id).await.unwrap();
                if seen.outcome.status != ApprovalStatus::Pending {
                    return seen.outcome;
                }
            }
        };
        let user = ada();
        let decide = site.engine.decide(site.tenant(), asked.approval_id, &user, approve());
        let (decided, seen) = tokio::join!(decide, expire);
        let outcome = tenant.approval(asked.approval_id).await.unwrap().outcome;
        assert_eq!((decided.is_ok(), &seen), (outcome.status == ApprovalStatus::Approved, &outcome));
        approved += usize::from(decided.is_ok());
        let end = site.engine.attend(site.tenant(), thread, id, 0).finish().await;
        assert_eq!((end.status, written.all().len()), (RunStatus::Completed, approved), "{:?}", end.failure);
    }
    assert!(approved < RACES, "some expire first");
}
