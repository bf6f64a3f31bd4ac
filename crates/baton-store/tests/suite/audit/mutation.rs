//! A sealed trail, and random changes of its tables.

use std::sync::Arc;

use baton_core::store::{AuditQuery, PageRequest};
use baton_core::{Store as _, TenantId, TenantStore, ThreadId};
use fastrand::Rng;
use uuid::Builder;

use super::{entry, intact, record_all};
use crate::rows::Opened;

const TABLES: [&str; 3] = ["audit", "audit_chains", "audit_seals"];
const ROUNDS: u64 = 4;
const UNSEALED: u64 = 5;

/// The trails of two tenants with several chains and seals, and an unsealed tail.
pub(super) struct Trail {
    tenants: [Arc<dyn TenantStore>; 2],
    /// Chain and number of the sealed entries of the first tenant.
    sealed: Vec<(u8, u64)>,
}

impl Trail {
    pub(super) async fn write(opened: &Opened) -> Self {
        let store = opened.store();
        let tenants = ["acme", "rival"].map(|name| store.tenant(&TenantId::parse(name).unwrap()));
        for round in 0..ROUNDS {
            for tenant in &tenants {
                record_all(tenant, (0..15).map(|n| entry(round, thread(round * 7 + n)))).await;
            }
            store.seal_audit().await.unwrap();
        }
        let page = PageRequest::first(PageRequest::MAX_LIMIT);
        let entries = tenants[0].audit(AuditQuery::default(), page).await.unwrap().data;
        let sealed = entries.iter().map(|entry| (entry.chain, entry.number)).collect();
        record_all(&tenants[0], (0..UNSEALED).map(|n| entry(n, thread(n)))).await;
        for table in TABLES {
            opened.execute(&format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}")).await;
        }
        Self { tenants, sealed }
    }

    pub(super) fn tenant(&self, name: &str) -> &dyn TenantStore {
        let found = self.tenants.iter().find(|tenant| tenant.tenant().as_str() == name);
        &**found.unwrap()
    }

    pub(super) async fn restore(&self, opened: &Opened) {
        let restore = TABLES
            .map(|table| format!("DELETE FROM {table}; INSERT INTO {table} SELECT * FROM kept_{table};"));
        opened.execute(&format!("BEGIN; {} COMMIT", restore.concat())).await;
    }

    pub(super) async fn assert_intact(&self) {
        let entries = self.sealed.len() as u64;
        for (tenant, unsealed) in self.tenants.iter().zip([UNSEALED, 0]) {
            let (found, seal) = intact(&**tenant).await;
            assert_eq!(
                (found, seal.map(|seal| (seal.number, seal.entries))),
                (entries + unsealed, Some((ROUNDS, entries)))
            );
        }
    }

    fn chains(&self) -> Vec<u8> {
        let mut chains: Vec<u8> = self.sealed.iter().map(|(chain, _)| *chain).collect();
        chains.sort_unstable();
        chains.dedup();
        chains
    }

    /// How many sealed entries a chain has.
    fn length(&self, chain: u8) -> u64 {
        self.sealed.iter().filter(|(of, _)| *of == chain).count() as u64
    }
}

/// One of twelve threads, or none.
fn thread(n: u64) -> Option<ThreadId> {
    let id = Builder::from_random_bytes([(n % 13) as u8; 16]).into_uuid();
    (!n.is_multiple_of(13)).then(|| ThreadId::parse(&id.to_string()).unwrap())
}

/// SQL that both databases understand, and the tenants in whose trails it has to be found.
pub(super) struct Mutation {
    pub(super) sql: String,
    pub(super) tenants: &'static [&'static str],
}

const HERE: &[&str] = &["acme"];
const IN_BOTH: &[&str] = &["acme", "rival"];

impl Mutation {
    pub(super) fn random(trail: &Trail, seed: u64) -> Self {
        let rng = &mut Rng::with_seed(seed);
        let (sql, tenants) = match rng.u8(0..14) {
            0..=2 => (edit_entry(trail, rng), HERE),
            3 => (format!("DELETE FROM audit WHERE {}", place(one(trail, rng))), HERE),
            4 => (swap_entries(trail, rng), HERE),
            5 => (insert_entry(trail, rng), HERE),
            6 => (truncate(trail, rng), HERE),
            7 => (move_to_chain(trail, rng), HERE),
            8 => (move_to_tenant(trail, rng), IN_BOTH),
            9 => (edit_end(rng), HERE),
            10 => (swap_chains(trail, rng), HERE),
            11 => (edit_seal(rng), HERE),
            12 => (delete_seals(rng), HERE),
            _ => (swap_tenants(trail, rng), IN_BOTH),
        };
        Self { sql: format!("BEGIN; {sql}; COMMIT"), tenants }
    }
}

fn one(trail: &Trail, rng: &mut Rng) -> (u8, u64) {
    trail.sealed[rng.usize(..trail.sealed.len())]
}

/// Two that differ.
fn two<T: PartialEq + Copy>(all: &[T], rng: &mut Rng) -> (T, T) {
    loop {
        let (first, second) = (all[rng.usize(..all.len())], all[rng.usize(..all.len())]);
        if first != second {
            return (first, second);
        }
    }
}

fn place((chain, number): (u8, u64)) -> String {
    format!("tenant = 'acme' AND chain = {chain} AND number = {number}")
}

fn edit_entry(trail: &Trail, rng: &mut Rng) -> String {
    let (target, other) = two(&trail.sealed, rng);
    let from_other = |column: &str| format!("{column} = (SELECT {column} FROM audit WHERE {})", place(other));
    let thread = "thread_id = CASE WHEN thread_id IS NULL
        THEN (SELECT thread_id FROM audit WHERE tenant = 'acme' AND thread_id IS NOT NULL LIMIT 1) END";
    let change = match rng.u8(0..10) {
        0 => format!("at = at {} {}", ["+", "-"][rng.usize(..2)], rng.u32(1..)),
        1 => "actor = actor || ' '".to_owned(),
        2 => "actor = upper(actor)".to_owned(),
        3 => "action = 'tool.cal'".to_owned(),
        4 => thread.to_owned(),
        5 => "entry = replace(entry, 'allowed', 'denied')".to_owned(),
        6 => "entry = entry || ' '".to_owned(),
        7 => "entry = '{}'".to_owned(),
        8 => from_other("hash"),
        _ => format!("number = number + {}", rng.u32(1000..9000)),
    };
    format!("UPDATE audit SET {change} WHERE {}", place(target))
}

fn swap_entries(trail: &Trail, rng: &mut Rng) -> String {
    let (first, second) = two(&trail.sealed, rng);
    let set = |from: &str, (chain, number): (u8, u64)| {
        format!("UPDATE audit SET chain = {chain}, number = {number} WHERE {from}")
    };
    let apart = "tenant = 'acme' AND chain = 99";
    let aside = format!("UPDATE audit SET chain = 99 WHERE {}", place(first));
    [aside, set(&place(second), first), set(apart, second)].join("; ")
}

fn insert_entry(trail: &Trail, rng: &mut Rng) -> String {
    let target = one(trail, rng);
    let (chain, number) = match rng.u8(0..4) {
        0 => (i64::from(target.0), 0),
        1 => (i64::from(target.0), -rng.i64(1..1000)),
        2 => (i64::from(target.0), rng.i64(1000..9000)),
        _ => (if rng.bool() { -1 } else { rng.i64(16..99) }, 1),
    };
    let columns = "at, actor, action, thread_id, entry, hash";
    format!(
        "INSERT INTO audit SELECT tenant, {chain}, {number}, {columns} FROM audit WHERE {}",
        place(target)
    )
}

/// In half of the cases with a stored end that fits: then only the seal shows it.
fn truncate(trail: &Trail, rng: &mut Rng) -> String {
    let chains = trail.chains();
    let chain = chains[rng.usize(..chains.len())];
    let left = rng.u64(..trail.length(chain));
    let cut = format!("DELETE FROM audit WHERE tenant = 'acme' AND chain = {chain} AND number > {left}");
    if left == 0 || rng.bool() {
        return cut;
    }
    let last = |column: &str| format!("(SELECT {column} FROM audit WHERE {})", place((chain, left)));
    let end = format!("entries = {left}, head = {}, at = {}", last("hash"), last("at"));
    format!("{cut}; UPDATE audit_chains SET {end} WHERE tenant = 'acme' AND chain = {chain}")
}

fn move_to_chain(trail: &Trail, rng: &mut Rng) -> String {
    let target = one(trail, rng);
    let (chain, number) = ((target.0 + rng.u8(1..16)) % 16, rng.u32(1000..9000));
    format!("UPDATE audit SET chain = {chain}, number = {number} WHERE {}", place(target))
}

fn move_to_tenant(trail: &Trail, rng: &mut Rng) -> String {
    let (target, number) = (one(trail, rng), rng.u32(1000..9000));
    format!("UPDATE audit SET tenant = 'rival', number = {number} WHERE {}", place(target))
}

fn edit_end(rng: &mut Rng) -> String {
    let end = format!("tenant = 'acme' AND chain = {}", rng.u8(0..=16));
    // The end of a chain of the other tenant: none of its hashes fits.
    let head = format!(
        "head = (SELECT hash FROM audit_seals WHERE tenant = 'rival' AND number = {})",
        rng.u64(1..=ROUNDS)
    );
    match rng.u8(0..6) {
        0 => format!("UPDATE audit_chains SET entries = entries + {} WHERE {end}", rng.u32(1..)),
        1 => format!("UPDATE audit_chains SET entries = -1 WHERE {end}"),
        2 => format!("UPDATE audit_chains SET at = at + {} WHERE {end}", rng.u32(1..)),
        3 => format!("UPDATE audit_chains SET {head} WHERE {end}"),
        4 => format!("DELETE FROM audit_chains WHERE {end}"),
        _ => "DELETE FROM audit_chains WHERE tenant = 'acme'".to_owned(),
    }
}

/// Two whole chains with their ends.
fn swap_chains(trail: &Trail, rng: &mut Rng) -> String {
    let (first, second) = two(&trail.chains(), rng);
    let swap = |table: &str| {
        let set = |from: u8, to: u8| {
            format!("UPDATE {table} SET chain = {to} WHERE tenant = 'acme' AND chain = {from}")
        };
        [set(first, 99), set(second, first), set(99, second)].join("; ")
    };
    format!("{}; {}", swap("audit"), swap("audit_chains"))
}

fn edit_seal(rng: &mut Rng) -> String {
    let (number, other) = two(&(1..=ROUNDS).collect::<Vec<_>>(), rng);
    let seal = format!("tenant = 'acme' AND number = {number}");
    let from_other = |column: &str, tenant: &str| {
        format!(
            "{column} = (SELECT {column} FROM audit_seals WHERE tenant = '{tenant}' AND number = {other})"
        )
    };
    let change = match rng.u8(0..7) {
        0 => format!("at = at - {}", rng.u32(1..)),
        1 => from_other("counts", "acme"),
        2 => from_other("hash", "acme"),
        3 => from_other("hash", "rival"),
        4 => format!("number = number + {}", rng.u32(1000..9000)),
        5 => format!("number = -{}", rng.u32(..9000)),
        _ => "tenant = 'none'".to_owned(),
    };
    format!("UPDATE audit_seals SET {change} WHERE {seal}")
}

/// One of them, the newest, or all.
fn delete_seals(rng: &mut Rng) -> String {
    let (number, comparison) = (rng.u64(1..=ROUNDS), ["=", ">=", "<="][rng.usize(..3)]);
    format!("DELETE FROM audit_seals WHERE tenant = 'acme' AND number {comparison} {number}")
}

/// A whole table, or one chain with its end.
fn swap_tenants(trail: &Trail, rng: &mut Rng) -> String {
    let chains = trail.chains();
    let chain = format!(" AND chain = {}", chains[rng.usize(..chains.len())]);
    let swap = |table: &str, which: &str| {
        let set = |from: &str, to: &str| {
            format!("UPDATE {table} SET tenant = '{to}' WHERE tenant = '{from}'{which}")
        };
        [set("acme", "aside"), set("rival", "acme"), set("aside", "rival")].join("; ")
    };
    match rng.u8(0..3) {
        0 => swap(TABLES[rng.usize(..3)], ""),
        1 => format!("{}; {}", swap("audit", &chain), swap("audit_chains", &chain)),
        _ => TABLES.map(|table| swap(table, "")).join("; "),
    }
}
