//! Names in the trail. An entry has a random token in place of the name of a person or agent, and a row of `audit_people` says whose it
//! is. Without that row nothing tells whose the entries are, and all hashes stay valid: this is how a user is erased. The row is signed,
//! so that it cannot be changed to name another person.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::StoreError;
use baton_core::store::{AuditQuery, Audited};
use serde_json::{Value as Json, json};
use uuid::Uuid;

use super::chain;
use super::keys::Trust;
use super::stored::AuditLine;
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

/// Actors that are not users or agents.
const UNNAMED: [&str; 2] = ["system", "anonymous"];
/// The first character of a token.
const MARK: char = '~';
/// The field of `detail` that has the name of a user.
const DETAIL: &str = "user_id";

const TOKEN: &str = "SELECT token FROM audit_people WHERE tenant = $1 AND name = $2";

const NAME: &str = "SELECT name FROM audit_people WHERE tenant = $1 AND token = $2";

const INSERT: &str = "INSERT INTO audit_people (tenant, name, token, key_id, mac) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant, name) DO NOTHING";

const PAGE: &str = "SELECT name, token, key_id, mac FROM audit_people WHERE tenant = $1 AND name > $2 ORDER BY name LIMIT $3";

const SIGN: &str =
    "UPDATE audit_people SET key_id = $4, mac = $5 WHERE tenant = $1 AND name = $2 AND token = $3";

/// Rows per query.
const ROWS: u32 = 500;

const FORGET: &str = "DELETE FROM audit_people WHERE tenant = $1 AND name = $2";

/// The name of a user in the detail of an entry.
pub(super) fn in_detail(detail: &Json) -> Option<&str> {
    detail.get(DETAIL).and_then(Json::as_str)
}

/// Replaces the names in entries by tokens. Known tokens cost no statement.
pub(super) async fn hide(tx: &Tx<'_>, lines: &mut [AuditLine]) -> Result<(), StoreError> {
    let mut tokens: BTreeMap<String, String> = BTreeMap::new();
    // In order, so that transactions that add the same names do not deadlock.
    let names: BTreeSet<&str> =
        lines.iter().flat_map(AuditLine::names).filter(|name| !UNNAMED.contains(name)).collect();
    for name in names {
        tokens.insert(name.to_owned(), token(tx, name).await?);
    }
    for line in lines {
        line.rename(|name| tokens.get(name).map(String::as_str));
    }
    Ok(())
}

/// The token of a name, which is created if there is none.
async fn token(tx: &Tx<'_>, name: &str) -> Result<String, StoreError> {
    if let Some(token) = tx.shared.audit_token(tx.tenant, name) {
        return Ok(token);
    }
    if let Some(row) = tx.first(TOKEN, params![name]).await? {
        let token = row.text(0)?.to_owned();
        tx.shared.know_audit_token(tx.tenant, name, &token);
        return Ok(token);
    }
    // Not remembered: this transaction may be rolled back.
    let token = format!("{MARK}{}", Uuid::new_v4().simple());
    let (key_id, mac) = (tx.shared.audit_keys.signing_id(), signature(tx, name, &token));
    if tx.execute(INSERT, params![name, token.as_str(), key_id, mac]).await? == 1 {
        return Ok(token);
    }
    let missing = || StoreError::Failed("a name of the audit trail was removed meanwhile".to_owned());
    Ok(tx.first(TOKEN, params![name]).await?.ok_or_else(missing)?.text(0)?.to_owned())
}

fn signature(tx: &Tx<'_>, name: &str, token: &str) -> SqlValue {
    let keys = &tx.shared.audit_keys;
    chain::value(&signed(tx.tenant, name, token, |parts| keys.sign(b'p', parts)))
}

fn signed<T>(tenant: &str, name: &str, token: &str, sign: impl FnOnce(&[&[u8]]) -> T) -> T {
    // As it is stored: PostgreSQL text cannot contain NUL.
    let name = &name.replace('\0', "");
    let (name_bytes, token_bytes) = (name.len().to_be_bytes(), token.len().to_be_bytes());
    sign(&[&name_bytes, name.as_bytes(), &token_bytes, token.as_bytes(), tenant.as_bytes()])
}

/// Reads the columns `name, token, key_id, mac`. Rows of stores that are older than signatures have none.
fn check(tx: &Tx<'_>, row: &Row) -> Result<Trust, StoreError> {
    let (name, token, key_id) = (row.text(0)?, row.text(1)?, row.text(2)?);
    let keys = &tx.shared.audit_keys;
    let Some(mac) = row.optional(3, chain::hash_at)? else {
        let is_enough = keys.is_empty() && key_id.is_empty();
        return Ok(if is_enough { Trust::Trusted } else { Trust::Untrusted });
    };
    Ok(signed(tx.tenant, name, token, |parts| keys.check(key_id, b'p', parts, &mac)))
}

/// The token of a row that is not as it was written, or that no configured key has signed, if there is one. `is_signed` accepts rows of
/// other keys.
pub(super) async fn find_changed(tx: &Tx<'_>, is_signed: bool) -> Result<Option<String>, StoreError> {
    let mut last = String::new();
    loop {
        let rows = tx.query(PAGE, params![last.as_str(), ROWS]).await?;
        for row in &rows {
            let is_accepted = match check(tx, row)? {
                Trust::Trusted => true,
                Trust::Untrusted => !is_signed,
                Trust::Wrong => false,
            };
            if !is_accepted {
                return row.text(1).map(|token| Some(token.to_owned()));
            }
        }
        match rows.last() {
            Some(row) => row.text(0)?.clone_into(&mut last),
            None => return Ok(None),
        }
    }
}

/// Signs the names with the current key, so that the one before can be removed. `adopts` accepts rows that no configured key has signed.
pub(super) async fn renew(tx: &Tx<'_>, adopts: bool) -> Result<(), StoreError> {
    let mut last = String::new();
    loop {
        let rows = tx.query(PAGE, params![last.as_str(), ROWS]).await?;
        for row in &rows {
            let (name, token, key_id) = (row.text(0)?, row.text(1)?, row.text(2)?);
            let is_accepted = match check(tx, row)? {
                Trust::Trusted => true,
                Trust::Untrusted => adopts,
                Trust::Wrong => false,
            };
            let current = tx.shared.audit_keys.signing_id();
            if is_accepted && key_id != current {
                tx.execute(SIGN, params![name, token, current, signature(tx, name, token)]).await?;
            }
        }
        match rows.last() {
            Some(row) => row.text(0)?.clone_into(&mut last),
            None => return Ok(()),
        }
    }
}

/// Makes the entries of a name anonymous.
pub(crate) async fn forget_name(tx: &Tx<'_>, name: &str) -> Result<(), StoreError> {
    tx.execute(FORGET, params![name]).await?;
    tx.shared.forget_audit_token(tx.tenant, name);
    Ok(())
}

/// The query with the token of its actor. An actor without one has no entries.
pub(super) async fn with_token(tx: &Tx<'_>, query: &AuditQuery) -> Result<AuditQuery, StoreError> {
    let Some(name) = query.actor.as_deref().filter(|name| !UNNAMED.contains(name)) else {
        return Ok(query.clone());
    };
    let row = tx.first(TOKEN, params![name]).await?;
    let token = row.map_or(Ok(MARK.to_string()), |row| row.text(0).map(str::to_owned))?;
    Ok(AuditQuery { actor: Some(token), ..query.clone() })
}

/// Replaces the tokens in entries by names. Of erased users, a pseudonym is left.
pub(super) async fn show(tx: &Tx<'_>, entries: &mut [Audited]) -> Result<(), StoreError> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    for audited in entries {
        let entry = &mut audited.entry;
        if let Some(token) = in_detail(&entry.detail).map(str::to_owned) {
            entry.detail[DETAIL] = json!(name(tx, &mut names, token).await?);
        }
        entry.actor = name(tx, &mut names, std::mem::take(&mut entry.actor)).await?;
        if let Some(token) = entry.on_behalf_of.take() {
            entry.on_behalf_of = Some(name(tx, &mut names, token).await?);
        }
    }
    Ok(())
}

async fn name(
    tx: &Tx<'_>,
    known: &mut BTreeMap<String, String>,
    token: String,
) -> Result<String, StoreError> {
    if !token.starts_with(MARK) {
        return Ok(token);
    }
    if let Some(name) = known.get(&token) {
        return Ok(name.clone());
    }
    let found = tx.first(NAME, params![token.as_str()]).await?;
    let pseudonym = || format!("erased-{}", token.trim_start_matches(MARK));
    let name = found.map_or_else(|| Ok(pseudonym()), |row| row.text(0).map(str::to_owned))?;
    known.insert(token, name.clone());
    Ok(name)
}
