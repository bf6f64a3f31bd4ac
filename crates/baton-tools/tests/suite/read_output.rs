//! The rest of a long output is read from the store, from the run that it belongs to and from nowhere else.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_core::store::{Append, NewRun, OutputHandle, Owner, SpooledOutput};
use baton_core::{
    CallContext, Message, MessageId, Part, Role, RunId, Store, TenantId, Tool, ToolError, Visibility,
};
use baton_tools::read_output::ReadOutput;
use jiff::Timestamp;
use serde_json::json;
use uuid::Uuid;

use crate::{context, memory};

fn new_run(context: &CallContext) -> NewRun {
    let message = Message {
        id: MessageId::from_uuid(Uuid::new_v4()),
        run_id: context.run_id,
        role: Role::User,
        agent: None,
        visibility: Visibility::User,
        parts: vec![Part::text("Look")],
        created_at: Timestamp::now(),
    };
    NewRun::new(context.thread_id, context.user.clone(), context.agent.clone(), message)
}

/// A store in which the run of `context` has spooled `text`.
async fn spooled(context: &CallContext, text: &str) -> (Arc<dyn Store>, OutputHandle) {
    let (store, owner) = (memory().await, Owner("test".into()));
    let tenant = store.tenant(&context.tenant);
    store.beat(&owner, Duration::from_mins(1)).await.unwrap();
    tenant.accept(new_run(context)).await.unwrap();
    let claim = tenant.claim(context.thread_id, &owner).await.unwrap().unwrap().claim;
    let output = SpooledOutput::new(OutputHandle::random(&context.session_id), text);
    let handle = output.handle;
    let append = Append { number: 1, outputs: vec![output], ..Append::default() };
    tenant.append(&claim, Arc::new(append)).await.unwrap();
    (store, handle)
}

async fn read(
    store: &Arc<dyn Store>,
    context: &CallContext,
    handle: &str,
    offset: u64,
) -> Result<String, ToolError> {
    let arguments = json!({"handle": handle, "offset": offset});
    let called = ReadOutput::new(Arc::clone(store)).call(arguments, Arc::new(context.clone()));
    called.await.map(|output| output.text)
}

#[tokio::test]
async fn long_output_is_read_to_its_last_byte() {
    let context = context(Path::new("."));
    let whole: String = (0..9_000).map(|n| format!("zeile {n} ä€🎷\n")).collect();
    let (store, handle) = spooled(&context, &whole).await;
    let handle = handle.to_string();
    let mut read_back = String::new();
    while read_back.len() < whole.len() {
        let page = read(&store, &context, &handle, read_back.len() as u64).await.unwrap();
        assert!(page.len() < 16 * 1024);
        let (_, text) = page.split_once("\n\n").unwrap();
        assert!(!text.is_empty());
        read_back += text;
    }
    assert!(read_back == whole, "what is read is not what was spooled");
    let end = read(&store, &context, &handle, u64::MAX).await.unwrap();
    assert!(end.contains("this is the end"), "{end}");
}

#[tokio::test]
async fn output_of_another_run_or_tenant_does_not_exist() {
    let own = context(Path::new("."));
    let (store, handle) = spooled(&own, &"x".repeat(100)).await;
    let handle = handle.to_string();
    let other_tenant = CallContext { tenant: TenantId::parse("evil").unwrap(), ..own.clone() };
    let other_run =
        CallContext { run_id: RunId::parse("01890a5d-ac96-774b-bcce-b302099a8058").unwrap(), ..own.clone() };
    assert!(read(&store, &own, &handle, 0).await.is_ok());
    for other in [&other_tenant, &other_run] {
        let error = read(&store, other, &handle, 0).await.unwrap_err();
        assert_eq!(error.to_string(), format!("failed: there is no output `{handle}`"));
    }
    for wrong in ["", ".", "..", "../x", "/etc/passwd", &handle[..35]] {
        assert!(read(&store, &own, wrong, 0).await.is_err(), "{wrong}");
    }
}

/// An agent that gets the baton in the same run sees what the giver passes on, which is masked, and not the whole output.
#[tokio::test]
async fn output_of_another_session_is_unknown() {
    let context = context(Path::new("."));
    let (store, handle) = spooled(&context, "secret").await;
    assert!(read(&store, &context, &handle.to_string(), 0).await.is_ok());
    let other = CallContext { session_id: context.session_id.child(&context.agent, 1), ..context };
    let refused = read(&store, &other, &handle.to_string(), 0).await.unwrap_err();
    assert!(refused.to_string().contains("there is no output"), "{refused}");
}
