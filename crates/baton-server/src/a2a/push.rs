//! Push notifications: the methods by which a client says where it wants to be told about its task.
//!
//! - [`config`]: checks what a client wrote, and converts it for the store.
//! - [`notifier`]: delivers what is due. [`sender`]: the request itself, which the program provides.

mod config;
pub mod notifier;
pub mod sender;

use std::sync::Arc;

use baton_a2a::WireForm;
use baton_a2a::model::{PushConfig, PushQuery, SendParams, TaskPushConfig};
use baton_core::store::PushKey;
use baton_core::{StoreError, TenantStore};
use serde_json::json;

use self::sender::PushService;
use super::chain::{self, Chain};
use super::exchange::Exchange;
use super::failure::{A2aFailure, A2aResult};
use crate::app::App;
use crate::trail::{self, AuditRecord};

/// Configurations that a task may have.
const MAX_CONFIGS: u32 = 10;

/// The service that delivers notifications, if there is one.
pub fn service(app: &App) -> Option<&PushService> {
    app.settings.a2a.as_ref()?.push.as_ref()
}

/// Whether the card offers push notifications.
pub fn is_supported(app: &App) -> bool {
    service(app).is_some()
}

/// Checks the configuration that a message carries, before the message is accepted.
pub fn check(exchange: &Exchange, params: &SendParams) -> A2aResult<()> {
    match &params.configuration.push {
        Some(config) => config::check(required(exchange)?, config),
        None => Ok(()),
    }
}

fn required(exchange: &Exchange) -> A2aResult<&PushService> {
    service(&exchange.app).ok_or_else(A2aFailure::push_not_supported)
}

/// A task of the caller. Those who may read the tasks of others get neither their secrets nor their notifications.
async fn own_task(exchange: &Exchange, task_id: &str) -> A2aResult<Chain> {
    let chain = chain::find(&exchange.app, &exchange.caller, task_id).await?;
    if chain.first().user_id == exchange.caller.user { Ok(chain) } else { Err(A2aFailure::task_not_found()) }
}

/// Adds a configuration to a task of the caller, or replaces the one with the same id.
pub async fn set(exchange: &Exchange, new: TaskPushConfig, form: WireForm) -> A2aResult<TaskPushConfig> {
    let service = required(exchange)?;
    config::check(service, &new.config)?;
    let chain = own_task(exchange, &new.task_id).await?;
    let (task, thread) = (chain.first().run_id, chain.first().thread_id);
    let id = new.config.id.clone().unwrap_or_else(|| new.task_id.clone());
    let agent = chain.first().agent.clone();
    let stored = config::stored(task, id.clone(), new.config.clone(), form, agent);
    service.wake.watch(thread);
    let data = audited(exchange, &chain, "push.set", &id);
    match data.put_push_config(stored, MAX_CONFIGS).await {
        Err(StoreError::Conflict(_)) => {
            let message = format!("a task has at most {MAX_CONFIGS} push notification configurations");
            return Err(A2aFailure::invalid(message));
        }
        stored => stored?,
    }
    service.wake.notify();
    Ok(TaskPushConfig { task_id: new.task_id, config: PushConfig { id: Some(id), ..new.config } })
}

/// Without an id it is the first one.
pub async fn get(exchange: &Exchange, query: PushQuery) -> A2aResult<TaskPushConfig> {
    let wanted = query.config_id.clone();
    let mut configs = list(exchange, query).await?.into_iter();
    let found = configs.find(|config| wanted.is_none() || config.config.id == wanted);
    found.ok_or_else(|| A2aFailure::invalid("the task has no such push notification configuration"))
}

pub async fn list(exchange: &Exchange, query: PushQuery) -> A2aResult<Vec<TaskPushConfig>> {
    required(exchange)?;
    let chain = own_task(exchange, &query.task_id).await?;
    let stored = exchange.app.data(&exchange.caller).push_configs(chain.first().run_id).await?;
    Ok(stored.into_iter().map(config::shown).collect())
}

/// One that does not exist counts as deleted.
pub async fn delete(exchange: &Exchange, query: PushQuery) -> A2aResult<()> {
    required(exchange)?;
    let id = query.config_id.ok_or_else(|| A2aFailure::invalid("pushNotificationConfigId is required"))?;
    let chain = own_task(exchange, &query.task_id).await?;
    let key = PushKey { task: chain.first().run_id, id };
    audited(exchange, &chain, "push.delete", &key.id).delete_push_config(key).await?;
    Ok(())
}

/// The caller's data, with the audit entry of a changed configuration.
fn audited(exchange: &Exchange, chain: &Chain, action: &str, id: &str) -> Arc<dyn TenantStore> {
    let first = chain.first();
    let audit_record = AuditRecord {
        action,
        thread_id: Some(first.thread_id),
        run_id: Some(first.run_id),
        decision: "allowed",
        detail: json!({ "config_id": id }),
    };
    trail::audited(&exchange.app, &exchange.caller, &exchange.trace, audit_record)
}
