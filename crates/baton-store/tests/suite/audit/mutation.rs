//! A sealed trail, and random changes of its tables.

use std::sync::Arc;

use baton_core::{Store as _, TenantId, TenantStore, ThreadId};
use fastrand::Rng;
use uuid::Builder;

use super::{entry, intact, record_all};
use crate::rows::Opened;

const TABLES: [&str; 4] = ["audit", "audit_chains", "audit_seals", "audit_truncations"];
const ROUNDS: u64 = 4;
const UNSEALED: u64 = 5;

/// The trails of two tenants with several chains and seals, and an unsealed tail.
pub(super) struct Trail {
    tenants: [Arc<dyn TenantStore>; 2],
    /// The sealed rows of the first tenant.
    sealed: Vec<TrailRow>,
    /// How many entries they have.
    entries: u64,
    /// The first seal of the first tenant.
    first_seal: u64,
}

/// A row of the trail.
struct TrailRow {
    chain: u8,
    /// That of its last entry.
    number: u64,
    lines: Vec<String>,
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
        let rows = opened.texts(SEALED).await;
        let sealed: Vec<TrailRow> = rows.iter().map(|row| TrailRow::read(row)).collect();
        let entries = sealed.iter().map(|row| row.lines.len() as u64).sum();
        assert!(entries == ROUNDS * 15 && sealed.iter().any(|row| row.lines.len() > 1));
        record_all(&tenants[0], (0..UNSEALED).map(|n| entry(n, thread(n)))).await;
        for table in TABLES {
            opened.execute(&format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}")).await;
        }
        Self { tenants, sealed, entries, first_seal: 1 }
    }

    /// The trail after its oldest entries were removed.
    pub(super) async fn truncated(self, opened: &Opened, first_seal: u64) -> Self {
        let rows = opened.texts(SEALED).await;
        let sealed = rows.iter().map(|row| TrailRow::read(row)).filter(|row| !row.is_unsealed()).collect();
        for table in TABLES {
            opened.execute(&format!("DROP TABLE kept_{table}")).await;
            opened.execute(&format!("CREATE TABLE kept_{table} AS SELECT * FROM {table}")).await;
        }
        Self { sealed, first_seal, ..self }
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
        let entries = self.entries;
        for (tenant, unsealed) in self.tenants.iter().zip([UNSEALED, 0]) {
            let (found, seal) = intact(&**tenant).await;
            assert_eq!(
                (found, seal.map(|seal| (seal.number, seal.entries))),
                (entries + unsealed, Some((ROUNDS, entries)))
            );
        }
    }

    fn chains(&self) -> Vec<u8> {
        let mut chains: Vec<u8> = self.sealed.iter().map(|row| row.chain).collect();
        chains.sort_unstable();
        chains.dedup();
        chains
    }

    /// The sealed rows of a chain.
    fn rows(&self, chain: u8) -> Vec<&TrailRow> {
        self.sealed.iter().filter(|row| row.chain == chain).collect()
    }
}

/// Before anything is unsealed.
const SEALED: &str =
    "SELECT chain || ' ' || number || ' ' || entries FROM audit WHERE tenant = 'acme' ORDER BY chain, number";

impl TrailRow {
    fn read(text: &str) -> Self {
        let [chain, number, entries] = text.splitn(3, ' ').collect::<Vec<_>>().try_into().unwrap();
        let lines = entries.lines().map(str::to_owned).collect();
        Self { chain: chain.parse().unwrap(), number: number.parse().unwrap(), lines }
    }

    /// What was written after the last seal: entries without a seal, and those about a removal.
    fn is_unsealed(&self) -> bool {
        self.lines.iter().any(|line| line.contains("audit.truncate"))
    }

    fn place(&self) -> String {
        format!("tenant = 'acme' AND chain = {} AND number = {}", self.chain, self.number)
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
            3 => (delete_entries(trail, rng), HERE),
            4 => (swap_entries(trail, rng), HERE),
            5 => (insert_entry(trail, rng), HERE),
            6 => (truncate(trail, rng), HERE),
            7 => (move_to_chain(trail, rng), HERE),
            8 => (move_to_tenant(trail, rng), IN_BOTH),
            9 => (edit_end(rng), HERE),
            10 => (swap_chains(trail, rng), HERE),
            11 => (edit_seal(trail, rng), HERE),
            12 => (delete_seals(trail, rng), HERE),
            _ => (swap_tenants(trail, rng), IN_BOTH),
        };
        Self { sql: format!("BEGIN; {sql}; COMMIT"), tenants }
    }
}

fn one<'t>(trail: &'t Trail, rng: &mut Rng) -> &'t TrailRow {
    &trail.sealed[rng.usize(..trail.sealed.len())]
}

/// A row with at least so many entries.
fn one_with<'t>(trail: &'t Trail, rng: &mut Rng, least: usize) -> &'t TrailRow {
    loop {
        let row = one(trail, rng);
        if row.lines.len() >= least {
            return row;
        }
    }
}

fn set_lines(row: &TrailRow, lines: &[String]) -> String {
    format!("UPDATE audit SET entries = '{}' WHERE {}", lines.join("\n"), row.place())
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

fn edit_entry(trail: &Trail, rng: &mut Rng) -> String {
    let (first, second) = two(&(0..trail.sealed.len()).collect::<Vec<_>>(), rng);
    let (row, other) = (&trail.sealed[first], &trail.sealed[second]);
    let change = match rng.u8(0..5) {
        0 => format!("at = at {} {}", ["+", "-"][rng.usize(..2)], rng.u32(1..)),
        1 => format!("hash = (SELECT hash FROM audit WHERE {})", other.place()),
        2 => format!("number = number + {}", rng.u32(1000..9000)),
        3 => "entries = ''".to_owned(),
        _ => return edit_line(row, rng),
    };
    format!("UPDATE audit SET {change} WHERE {}", row.place())
}

/// One of the entries of a row.
fn edit_line(row: &TrailRow, rng: &mut Rng) -> String {
    let mut lines = row.lines.clone();
    let line = &mut lines[rng.usize(..row.lines.len())];
    *line = match rng.u8(0..6) {
        0 => line.replace("allowed", "denied"),
        1 => line.replace("\"~", "\"~0"),
        2 => line.replace("tool.call", "tool.cal"),
        3 => format!("{line} "),
        4 => "{}".to_owned(),
        _ => String::new(),
    };
    set_lines(row, &lines)
}

/// A row, or one of the entries of a row.
fn delete_entries(trail: &Trail, rng: &mut Rng) -> String {
    if rng.bool() {
        return format!("DELETE FROM audit WHERE {}", one(trail, rng).place());
    }
    let row = one_with(trail, rng, 2);
    let mut lines = row.lines.clone();
    lines.remove(rng.usize(..lines.len()));
    set_lines(row, &lines)
}

/// Two rows, or two entries of a row that differ.
fn swap_entries(trail: &Trail, rng: &mut Rng) -> String {
    let row = one_with(trail, rng, 2);
    let (first, second) = two(&(0..row.lines.len()).collect::<Vec<_>>(), rng);
    if row.lines[first] != row.lines[second] {
        let mut lines = row.lines.clone();
        lines.swap(first, second);
        return set_lines(row, &lines);
    }
    let (first, second) = two(&(0..trail.sealed.len()).collect::<Vec<_>>(), rng);
    let (first, second) = (&trail.sealed[first], &trail.sealed[second]);
    let set = |from: &str, row: &TrailRow| {
        format!("UPDATE audit SET chain = {}, number = {} WHERE {from}", row.chain, row.number)
    };
    let apart = "tenant = 'acme' AND chain = 99";
    let aside = format!("UPDATE audit SET chain = 99 WHERE {}", first.place());
    [aside, set(&second.place(), first), set(apart, second)].join("; ")
}

/// A row, or an entry in a row.
fn insert_entry(trail: &Trail, rng: &mut Rng) -> String {
    let row = one(trail, rng);
    if rng.bool() {
        let mut lines = row.lines.clone();
        let (at, new) = (rng.usize(..=lines.len()), rng.usize(..lines.len()));
        lines.insert(at, lines[new].clone());
        return set_lines(row, &lines);
    }
    let (chain, number) = match rng.u8(0..4) {
        0 => (i64::from(row.chain), 0),
        1 => (i64::from(row.chain), -rng.i64(1..1000)),
        2 => (i64::from(row.chain), rng.i64(1000..9000)),
        _ => (if rng.bool() { -1 } else { rng.i64(16..99) }, 1),
    };
    let place = row.place();
    format!("INSERT INTO audit SELECT tenant, {chain}, {number}, at, entries, hash FROM audit WHERE {place}")
}

/// In half of the cases with a stored end that fits: then only the seal shows it.
fn truncate(trail: &Trail, rng: &mut Rng) -> String {
    let chains = trail.chains();
    let chain = chains[rng.usize(..chains.len())];
    let rows = trail.rows(chain);
    let kept = rng.usize(..rows.len()).checked_sub(1).map(|last| rows[last]);
    let left = kept.map_or(0, |row| row.number);
    let cut = format!("DELETE FROM audit WHERE tenant = 'acme' AND chain = {chain} AND number > {left}");
    let Some(kept) = kept.filter(|_| rng.bool()) else { return cut };
    let last = |column: &str| format!("(SELECT {column} FROM audit WHERE {})", kept.place());
    let end = format!("entries = {left}, head = {}, at = {}", last("hash"), last("at"));
    format!("{cut}; UPDATE audit_chains SET {end} WHERE tenant = 'acme' AND chain = {chain}")
}

fn move_to_chain(trail: &Trail, rng: &mut Rng) -> String {
    let target = one(trail, rng);
    let (chain, number) = ((target.chain + rng.u8(1..16)) % 16, rng.u32(1000..9000));
    format!("UPDATE audit SET chain = {chain}, number = {number} WHERE {}", target.place())
}

fn move_to_tenant(trail: &Trail, rng: &mut Rng) -> String {
    let (target, number) = (one(trail, rng), rng.u32(1000..9000));
    format!("UPDATE audit SET tenant = 'rival', number = {number} WHERE {}", target.place())
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
    let chains = trail.chains();
    let first = chains[rng.usize(..chains.len())];
    // May be empty: all entries are in one chain on SQLite.
    let second = (first + rng.u8(1..16)) % 16;
    let swap = |table: &str| {
        let set = |from: u8, to: u8| {
            format!("UPDATE {table} SET chain = {to} WHERE tenant = 'acme' AND chain = {from}")
        };
        [set(first, 99), set(second, first), set(99, second)].join("; ")
    };
    format!("{}; {}", swap("audit"), swap("audit_chains"))
}

fn edit_seal(trail: &Trail, rng: &mut Rng) -> String {
    let (number, other) = two(&(trail.first_seal..=ROUNDS).collect::<Vec<_>>(), rng);
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
fn delete_seals(trail: &Trail, rng: &mut Rng) -> String {
    let (number, comparison) = (rng.u64(trail.first_seal..=ROUNDS), ["=", ">=", "<="][rng.usize(..3)]);
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
