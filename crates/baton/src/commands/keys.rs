//! `baton keys`: API keys for the server.

use std::fmt;
use std::str::FromStr;

use anyhow::Context as _;
use baton_core::id::InvalidId;
use baton_core::store::{ApiKey, AuditEntry, Page};
use baton_core::{Store as _, StoreError, TenantId, TenantStore, UserId};
use baton_server::identity::key::NewKey;
use baton_server::identity::roles::Roles;
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use serde::Serialize;
use serde_json::json;
use uuid::Uuid;

use super::archive::{self, Archive};
use super::reference::Reference;
use super::{print, write};
use crate::cli::Common;
use crate::config::{AuthMode, Config};
use crate::exit::Exit;
use crate::report::figures::moment;
use crate::report::table::{Column, Table};
use crate::report::tell;

/// The actor of a created or revoked key: the user with access to the store.
const ACTOR: &str = "system";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Make a key and print it, this once
    Create(Create),
    /// Keys, without what makes them work
    List {
        /// Only of this tenant
        #[arg(long, value_name = "TENANT")]
        tenant: Option<TenantId>,
        /// Only of this user
        #[arg(long, value_name = "USER")]
        user: Option<UserId>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Revoke a key, on all servers within seconds
    Revoke {
        /// The key's id, or the beginning of it
        #[arg(value_name = "ID")]
        key: Reference<KeyId>,
        /// Only look among the keys of this tenant
        #[arg(long, value_name = "TENANT")]
        tenant: Option<TenantId>,
    },
}

#[derive(Debug, clap::Args)]
pub struct Create {
    /// Whose data the key opens
    #[arg(long, value_name = "TENANT", default_value = "default")]
    tenant: TenantId,
    /// On whose behalf
    #[arg(long, value_name = "USER")]
    user: UserId,
    /// What they may do, such as `user` or `operator`; may be repeated
    #[arg(long = "role", value_name = "ROLE", required = true)]
    roles: Vec<String>,
}

pub fn run(common: &Common, command: &Command) -> anyhow::Result<Exit> {
    let project = super::project(common)?;
    match command {
        Command::Create(args) => {
            check_roles(&project.config, &args.roles).map_err(|error| Exit::Usage.because(error))?;
            archive::with_new(&project, async |archive| create(archive, &project.config, args).await)
        }
        Command::List { tenant, user, json } => archive::with_project(&project, async |archive| {
            let mut keys = keys(archive, tenant.as_ref()).await?;
            keys.retain(|key| user.as_ref().is_none_or(|user| *user == key.key.user_id));
            archive.list(Page { data: keys, next_cursor: None }, *json, "keys", table)
        }),
        Command::Revoke { key, tenant } => {
            archive::with_project(&project, async |archive| revoke(archive, key, tenant.as_ref()).await)
        }
    }
}

/// A key with a role that does not exist would have no permissions without an explanation.
fn check_roles(config: &Config, wanted: &[String]) -> anyhow::Result<()> {
    let roles = Roles::new(&config.auth.roles);
    let Some(unknown) = wanted.iter().find(|role| !roles.has(role)) else { return Ok(()) };
    let names: Vec<&str> = roles.names().collect();
    anyhow::bail!("there is no role `{unknown}`: use {}", names.join(", "))
}

async fn create(archive: &Archive, config: &Config, args: &Create) -> anyhow::Result<Exit> {
    let mut roles = args.roles.clone();
    roles.sort();
    roles.dedup();
    let NewKey { secret, record, digest } = NewKey::create(args.user.clone(), roles)?;
    let tenant = archive.store.tenant(&args.tenant);
    tenant.put_key(record.clone(), &digest.hex()).await?;
    // The key was not printed yet: if this fails, it is never used.
    log(&*tenant, "key.create", &record).await?;
    let id = record.key_id;
    write(&format!("{}\n", secret.expose_secret()))
        .with_context(|| format!("the key could not be printed, so it is lost: `baton keys revoke {id}`"))?;
    tell(&format!("this key is not shown again; `baton keys revoke {id}` revokes it"));
    if config.auth.mode == AuthMode::Open {
        tell("keys are not required yet: set `mode = \"required\"` in `[auth]` of baton.toml");
    }
    Ok(Exit::Ok)
}

async fn log(tenant: &dyn TenantStore, action: &str, key: &ApiKey) -> Result<(), StoreError> {
    let ApiKey { key_id, user_id, roles, prefix, .. } = key;
    let entry = AuditEntry {
        actor: ACTOR.to_owned(),
        on_behalf_of: None,
        action: action.to_owned(),
        thread_id: None,
        run_id: None,
        decision: "allowed".to_owned(),
        trace_id: None,
        detail: json!({ "key_id": key_id, "user_id": user_id, "roles": roles, "prefix": prefix }),
    };
    tenant.record(entry).await
}

/// Those of one tenant, or of all.
async fn keys(archive: &Archive, tenant: Option<&TenantId>) -> Result<Vec<ListedKey>, StoreError> {
    let tenants = match tenant {
        Some(tenant) => vec![tenant.clone()],
        None => archive.store.tenants().await?,
    };
    let mut all = Vec::new();
    for tenant_id in tenants {
        let keys = archive.store.tenant(&tenant_id).keys().await?;
        all.extend(keys.into_iter().map(|key| ListedKey { tenant_id: tenant_id.clone(), key }));
    }
    Ok(all)
}

fn table(keys: &[ListedKey]) -> String {
    let mut table = Table::new([
        Column::Id("key"),
        Column::Text("begins with"),
        Column::Text("tenant"),
        Column::Text("user"),
        Column::Text("made"),
        Column::Text("revoked"),
        Column::Text("roles"),
    ]);
    for ListedKey { tenant_id, key } in keys {
        table.add([
            key.key_id.to_string(),
            key.prefix.clone(),
            tenant_id.to_string(),
            key.user_id.to_string(),
            moment(key.created_at),
            key.revoked_at.map_or_else(|| "-".to_owned(), moment),
            key.roles.join(", "),
        ]);
    }
    table.print()
}

async fn revoke(
    archive: &Archive,
    named: &Reference<KeyId>,
    tenant: Option<&TenantId>,
) -> anyhow::Result<Exit> {
    let all = keys(archive, tenant).await?;
    let ids = all.iter().map(|key| KeyId(key.key.key_id)).collect();
    let among = async { Ok::<_, StoreError>(Page { data: ids, next_cursor: None }) };
    let id = named.find(among, Some).await?.ok_or(StoreError::NotFound("API key"))?;
    let found = all.into_iter().find(|key| key.key.key_id == id.0);
    let ListedKey { tenant_id, key } = found.ok_or(StoreError::NotFound("API key"))?;
    let tenant = archive.store.tenant(&tenant_id);
    let revoked = tenant.revoke_key(key.key_id).await?;
    log(&*tenant, "key.revoke", &revoked).await?;
    let before: Option<Timestamp> = key.revoked_at;
    let when = before.map(|at| format!(", which was revoked before, {}", moment(at))).unwrap_or_default();
    let ApiKey { key_id, user_id, prefix, .. } = revoked;
    print(&format!("revoked key {key_id} ({prefix}…) of {user_id} in {tenant_id}{when}\n"))?;
    Ok(Exit::Ok)
}

/// A key with whom it belongs to.
#[derive(Debug, Serialize)]
struct ListedKey {
    tenant_id: TenantId,
    #[serde(flatten)]
    key: ApiKey,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyId(Uuid);

impl FromStr for KeyId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let invalid = |_| InvalidId::Uuid { what: "key", value: text.to_owned() };
        Uuid::try_parse(text).map(Self).map_err(invalid)
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
