//! `baton keys`: API keys for the server.

use std::fmt;
use std::str::FromStr;

use anyhow::Context as _;
use baton_core::duration::HumanDuration;
use baton_core::id::InvalidId;
use baton_core::store::{ApiKey, AuditEntry, Page};
use baton_core::{Permission, Store as _, StoreError, TenantId, UserId};
use baton_server::identity::key::{KeyRequest, NewKey, audit_detail};
use baton_server::identity::roles::Roles;
use baton_server::trail::SYSTEM_TENANT;
use baton_server::wire::text::ShortText;
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use serde::Serialize;
use uuid::Uuid;

use super::archive::{self, Archive};
use super::reference::{Reference, moment_of};
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
    /// Create a key and print it, this once
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
    /// What the key is for, so that people recognise it in lists
    #[arg(long, value_name = "NAME", default_value = "", value_parser = name)]
    name: String,
    /// When the key stops working: after a duration, such as 90d, or at a time, such as 2027-01-31T00:00 [default: never]
    #[arg(long, value_name = "WHEN", value_parser = expiry)]
    expires: Option<Timestamp>,
    /// Limit the key to this permission of its roles, such as `thread:read`; may be repeated
    #[arg(long = "scope", value_name = "PERMISSION", value_parser = Permission::parse)]
    scopes: Vec<Permission>,
}

fn name(text: &str) -> Result<String, String> {
    match text {
        "" => Ok(String::new()),
        text => ShortText::try_from(text.to_owned()).map(|text| text.as_str().to_owned()),
    }
}

fn expiry(text: &str) -> Result<Timestamp, String> {
    let now = Timestamp::now();
    let at = match HumanDuration::parse(text) {
        Ok(duration) => now.checked_add(duration.get()).map_err(|error| error.to_string())?,
        Err(_) => moment_of(text)?,
    };
    if at > now { Ok(at) } else { Err(format!("`{text}` is not in the future")) }
}

pub fn run(common: &Common, command: &Command) -> anyhow::Result<Exit> {
    let project = super::project(common)?;
    match command {
        Command::Create(args) => {
            check(&project.config, args).map_err(|error| Exit::Usage.because(error))?;
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

/// A key with a role that does not exist, or with scopes beyond its roles, would lack permissions without an explanation.
fn check(config: &Config, args: &Create) -> anyhow::Result<()> {
    anyhow::ensure!(
        args.tenant.as_str() != SYSTEM_TENANT,
        "`{SYSTEM_TENANT}` is the installation's own audit trail and has no users: use another tenant"
    );
    let roles = Roles::new(&config.auth.roles);
    if let Some(unknown) = args.roles.iter().find(|role| !roles.has(role)) {
        let names: Vec<&str> = roles.names().collect();
        anyhow::bail!("there is no role `{unknown}`: use {}", names.join(", "))
    }
    let rights = roles.rights(&args.roles);
    match args.scopes.iter().find(|scope| !rights.allow(scope.as_str())) {
        Some(scope) => anyhow::bail!("the roles do not grant `{scope}`, so the key cannot be limited to it"),
        None => Ok(()),
    }
}

async fn create(archive: &Archive, config: &Config, args: &Create) -> anyhow::Result<Exit> {
    let request = KeyRequest {
        user_id: args.user.clone(),
        roles: args.roles.clone(),
        name: args.name.clone(),
        scopes: (!args.scopes.is_empty()).then(|| args.scopes.clone()),
        expires_at: args.expires,
    };
    let NewKey { secret, record, digest } = NewKey::make(request)?;
    let tenant = archive.store.tenant(&args.tenant).audited(entry("key.create", &record));
    tenant.put_key(record.clone(), &digest.hex()).await?;
    let id = record.key_id;
    write(&format!("{}\n", secret.expose_secret()))
        .with_context(|| format!("the key could not be printed, so it is lost: `baton keys revoke {id}`"))?;
    tell(&format!("this key is not shown again; `baton keys revoke {id}` revokes it"));
    if config.auth.mode == AuthMode::Open {
        tell("keys are not required yet: set `mode = \"required\"` in `[auth]` of baton.toml");
    }
    Ok(Exit::Ok)
}

fn entry(action: &str, key: &ApiKey) -> AuditEntry {
    AuditEntry {
        actor: ACTOR.to_owned(),
        action: action.to_owned(),
        decision: "allowed".to_owned(),
        detail: audit_detail(key),
        ..AuditEntry::default()
    }
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
        Column::Text("name"),
        Column::Text("tenant"),
        Column::Text("user"),
        Column::Text("created"),
        Column::Text("last used"),
        Column::Text("expires"),
        Column::Text("revoked"),
        Column::Text("roles"),
        Column::Text("scopes"),
    ]);
    let time = |at: Option<Timestamp>| at.map_or_else(|| "-".to_owned(), moment);
    for ListedKey { tenant_id, key } in keys {
        let scopes = key.scopes.iter().flatten().map(Permission::as_str).collect::<Vec<_>>().join(", ");
        let or_dash = |text: String| if text.is_empty() { "-".to_owned() } else { text };
        table.add([
            key.key_id.to_string(),
            key.prefix.clone(),
            or_dash(key.name.clone()),
            tenant_id.to_string(),
            key.user_id.to_string(),
            moment(key.created_at),
            time(key.last_used_at),
            time(key.expires_at),
            time(key.revoked_at),
            key.roles.join(", "),
            or_dash(scopes),
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
    let tenant = archive.store.tenant(&tenant_id).audited(entry("key.revoke", &key));
    let revoked = tenant.revoke_key(key.key_id).await?;
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
