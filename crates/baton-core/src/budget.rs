//! Budgets: limits of cost and tokens for a run, a thread, a user or a tenant.
//!
//! Days and months are those of UTC. Amounts are exact: cost in billionths of a dollar, tokens as the ledger counts them.

use std::fmt;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};

use crate::choices;
use crate::id::{ThreadId, UserId};
use crate::money::Usd;
use crate::usage::Usage;

/// A limit. A dimension without a value is not limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct BudgetLimit {
    #[serde(skip_serializing_if = "Option::is_none", deserialize_with = "not_negative")]
    pub max_cost_usd: Option<Usd>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u64>,
}

fn not_negative<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Usd>, D::Error> {
    let usd = Option::<Usd>::deserialize(deserializer)?;
    if usd.is_some_and(|usd| usd.nanos() < 0) {
        return Err(D::Error::custom("an amount of money is not negative"));
    }
    Ok(usd)
}

impl BudgetLimit {
    pub fn is_set(&self) -> bool {
        self.max_cost_usd.is_some() || self.max_tokens.is_some()
    }

    /// The dimension in which `used` has reached the limit.
    pub fn reached(&self, used: Amount) -> Option<BudgetUnit> {
        self.at_least(used, 100)
    }

    /// The dimension in which `used` has reached the share of the limit at which a warning is due.
    pub fn nearly_reached(&self, used: Amount) -> Option<BudgetUnit> {
        self.at_least(used, WARNING_PERCENT)
    }

    fn at_least(&self, used: Amount, percent: i128) -> Option<BudgetUnit> {
        let has = |used: i128, most: i128| used * 100 >= most * percent;
        let cost = self.max_cost_usd.is_some_and(|most| has(used.nanos.into(), most.nanos().into()));
        let tokens = self.max_tokens.is_some_and(|most| has(used.tokens.into(), most.into()));
        cost.then_some(BudgetUnit::Cost).or_else(|| tokens.then_some(BudgetUnit::Tokens))
    }

    /// What is left after `used`, at least nothing. A dimension without a limit is [`Amount::MAX`].
    #[must_use]
    pub fn room(&self, used: Amount) -> Amount {
        Amount {
            nanos: self.max_cost_usd.map_or(i64::MAX, |most| most.nanos().saturating_sub(used.nanos).max(0)),
            tokens: self.max_tokens.map_or(u64::MAX, |most| most.saturating_sub(used.tokens)),
        }
    }

    /// The whole percentage that is used, of the dimension that is used most.
    pub fn percent(&self, used: Amount) -> u32 {
        let share = |used: i128, most: i128| if most <= 0 { 100 } else { used.max(0) * 100 / most };
        let cost = self.max_cost_usd.map(|most| share(used.nanos.into(), most.nanos().into()));
        let tokens = self.max_tokens.map(|most| share(used.tokens.into(), most.into()));
        u32::try_from(cost.max(tokens).unwrap_or_default()).unwrap_or(u32::MAX)
    }

    /// This limit, and `other` in a dimension where this one has no value.
    #[must_use]
    pub fn over(self, other: Self) -> Self {
        Self {
            max_cost_usd: self.max_cost_usd.or(other.max_cost_usd),
            max_tokens: self.max_tokens.or(other.max_tokens),
        }
    }

    /// The lower of two limits in each dimension.
    #[must_use]
    pub fn lower(self, other: Self) -> Self {
        Self {
            max_cost_usd: lower(self.max_cost_usd, other.max_cost_usd),
            max_tokens: lower(self.max_tokens, other.max_tokens),
        }
    }
}

/// The share of a limit, in percent, at which a warning is published.
pub const WARNING_PERCENT: i128 = 80;

fn lower<T: Ord>(one: Option<T>, other: Option<T>) -> Option<T> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

choices! {
    /// What a budget limits.
    pub enum BudgetUnit {
        Cost = "cost",
        Tokens = "tokens",
    }
}

choices! {
    /// What a budget is for.
    pub enum BudgetScope {
        Run = "run",
        /// One session of an agent, with everything it invokes.
        Agent = "agent",
        Thread = "thread",
        User = "user",
        Tenant = "tenant",
    }
}

choices! {
    /// When a shared budget starts again.
    pub enum BudgetPeriod {
        /// Never: the budget of a thread.
        Total = "total",
        /// At midnight UTC.
        Day = "day",
        /// On the first of the month, at midnight UTC.
        Month = "month",
    }
}

impl BudgetPeriod {
    /// The start of the period that contains `at`.
    pub fn start(self, at: Timestamp) -> Timestamp {
        let date = at.to_zoned(TimeZone::UTC).date();
        match self {
            Self::Total => Timestamp::UNIX_EPOCH,
            Self::Day => midnight(date),
            Self::Month => midnight(date.first_of_month()),
        }
    }

    /// The start of the next period, if there is one.
    pub fn end(self, start: Timestamp) -> Option<Timestamp> {
        let date = start.to_zoned(TimeZone::UTC).date();
        match self {
            Self::Total => None,
            Self::Day => Some(midnight(date.checked_add(1.day()).ok()?)),
            Self::Month => Some(midnight(date.checked_add(1.month()).ok()?)),
        }
    }
}

fn midnight(date: Date) -> Timestamp {
    date.to_zoned(TimeZone::UTC).map_or(Timestamp::MIN, |midnight| midnight.timestamp())
}

/// Cost and tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amount {
    /// Billionths of a dollar.
    pub nanos: i64,
    pub tokens: u64,
}

impl Amount {
    pub const MAX: Self = Self { nanos: i64::MAX, tokens: u64::MAX };

    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            nanos: self.nanos.saturating_add(other.nanos),
            tokens: self.tokens.saturating_add(other.tokens),
        }
    }

    /// The lower of two amounts in each dimension.
    #[must_use]
    pub fn min(self, other: Self) -> Self {
        Self { nanos: self.nanos.min(other.nanos), tokens: self.tokens.min(other.tokens) }
    }

    /// Whether no dimension exceeds that of `room`.
    pub fn fits(self, room: Self) -> bool {
        self.nanos <= room.nanos && self.tokens <= room.tokens
    }

    pub fn cost(self) -> Usd {
        Usd::from_nanos(self.nanos)
    }
}

/// The known cost and all tokens.
impl From<Usage> for Amount {
    fn from(usage: Usage) -> Self {
        Self { nanos: usage.cost.known_part().nanos(), tokens: usage.tokens.total() }
    }
}

/// Identifies what is counted: one thread, or one user or the tenant in one period.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BudgetKey {
    pub scope: BudgetScope,
    /// The id of the thread or user. Empty for the tenant.
    pub subject: String,
    pub period: BudgetPeriod,
    /// When the period starts.
    pub starts_at: Timestamp,
}

impl BudgetKey {
    fn new(scope: BudgetScope, subject: String, period: BudgetPeriod, at: Timestamp) -> Self {
        Self { scope, subject, period, starts_at: period.start(at) }
    }

    /// When the period ends, if it ever does.
    pub fn ends_at(&self) -> Option<Timestamp> {
        self.period.end(self.starts_at)
    }
}

/// As in "the budget of the tenant for this day".
impl fmt::Display for BudgetKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the budget of the {}", self.scope)?;
        if self.period == BudgetPeriod::Total { Ok(()) } else { write!(f, " for this {}", self.period) }
    }
}

/// A budget that runs share, with its limit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetAccount {
    pub key: BudgetKey,
    pub limit: BudgetLimit,
}

/// Limits per day and per month.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PeriodLimits {
    pub day: BudgetLimit,
    pub month: BudgetLimit,
}

/// The budgets that the operator configures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Budgets {
    /// Of each run.
    pub run: BudgetLimit,
    /// Of each thread, as long as it exists.
    pub thread: BudgetLimit,
    /// Of each user.
    pub user: PeriodLimits,
    /// Of each tenant.
    pub tenant: PeriodLimits,
}

impl Budgets {
    /// These limits, and those of `others` where these have none.
    #[must_use]
    pub fn over(self, others: Self) -> Self {
        let periods = |own: PeriodLimits, other: PeriodLimits| PeriodLimits {
            day: own.day.over(other.day),
            month: own.month.over(other.month),
        };
        Self {
            run: self.run.over(others.run),
            thread: self.thread.over(others.thread),
            user: periods(self.user, others.user),
            tenant: periods(self.tenant, others.tenant),
        }
    }

    /// Whether runs share a budget, so that their calls are reserved in the store.
    pub fn has_shared(&self) -> bool {
        self.shared().iter().any(BudgetLimit::is_set)
    }

    /// Whether a shared budget limits the cost, which requires models with known prices.
    pub fn limits_shared_cost(&self) -> bool {
        self.shared().iter().any(|limit| limit.max_cost_usd.is_some())
    }

    fn shared(&self) -> [BudgetLimit; 5] {
        [self.thread, self.user.day, self.user.month, self.tenant.day, self.tenant.month]
    }

    /// The shared budgets that a call at this time counts against, in the order in which stores lock them. Without a thread or user,
    /// theirs are left out.
    pub fn accounts(
        &self,
        thread: Option<ThreadId>,
        user: Option<&UserId>,
        at: Timestamp,
    ) -> Vec<BudgetAccount> {
        use BudgetPeriod::{Day, Month, Total};
        let thread = thread.map(|thread| thread.to_string());
        let user = user.map(|user| user.as_str().to_owned());
        let tenant = Some(String::new());
        let all = [
            (BudgetScope::Thread, &thread, Total, self.thread),
            (BudgetScope::User, &user, Day, self.user.day),
            (BudgetScope::User, &user, Month, self.user.month),
            (BudgetScope::Tenant, &tenant, Day, self.tenant.day),
            (BudgetScope::Tenant, &tenant, Month, self.tenant.month),
        ];
        let mut accounts: Vec<BudgetAccount> = all
            .into_iter()
            .filter(|(_, _, _, limit)| limit.is_set())
            .filter_map(|(scope, subject, period, limit)| {
                let key = BudgetKey::new(scope, subject.clone()?, period, at);
                Some(BudgetAccount { key, limit })
            })
            .collect();
        accounts.sort_by(|one, other| one.key.cmp(&other.key));
        accounts
    }
}

/// What was spent of a shared budget and what is left of it, for people and programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BudgetReport {
    pub scope: BudgetScope,
    /// The id of the thread or user. Empty for the tenant.
    pub subject: String,
    pub period: BudgetPeriod,
    pub starts_at: Timestamp,
    /// When it starts again, if it ever does.
    pub ends_at: Option<Timestamp>,
    pub limit: BudgetLimit,
    pub spent: Amount,
    /// The most that calls in progress can take.
    pub reserved: Amount,
    /// What is left, without what is reserved.
    pub remaining: BudgetLimit,
    /// The whole percentage that is spent, of the dimension that is used most.
    pub percent: u32,
}

impl BudgetReport {
    pub fn new(account: BudgetAccount, spent: Amount, reserved: Amount) -> Self {
        let BudgetAccount { key, limit } = account;
        let room = limit.room(spent.plus(reserved));
        let remaining = BudgetLimit {
            max_cost_usd: limit.max_cost_usd.map(|_| room.cost()),
            max_tokens: limit.max_tokens.map(|_| room.tokens),
        };
        let percent = limit.percent(spent);
        let ends_at = key.ends_at();
        let BudgetKey { scope, subject, period, starts_at } = key;
        Self { scope, subject, period, starts_at, ends_at, limit, spent, reserved, remaining, percent }
    }
}

/// A budget of which at least [`WARNING_PERCENT`] are used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetWarning {
    pub scope: BudgetScope,
    /// Only for budgets that start again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub period: Option<BudgetPeriod>,
    pub unit: BudgetUnit,
    /// Percent of the limit that are used.
    pub percent: u32,
    /// For users. It names no amount of a tenant, which is not every user's business.
    pub message: String,
}

impl BudgetWarning {
    /// The warning of a shared budget.
    pub fn shared(key: &BudgetKey, unit: BudgetUnit, percent: u32) -> Self {
        let period = (key.period != BudgetPeriod::Total).then_some(key.period);
        let message = format!("{percent} % of {key} is used ({unit})");
        Self { scope: key.scope, period, unit, percent, message }
    }

    /// The warning of a run's or an agent's own budget.
    pub fn within_run(scope: BudgetScope, unit: BudgetUnit, percent: u32) -> Self {
        let message = format!("{percent} % of the budget of the {scope} is used ({unit})");
        Self { scope, period: None, unit, percent, message }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn periods_are_those_of_utc() {
        let moment = at("2026-12-31T23:59:59.999999Z");
        assert_eq!(BudgetPeriod::Day.start(moment), at("2026-12-31T00:00:00Z"));
        assert_eq!(BudgetPeriod::Month.start(moment), at("2026-12-01T00:00:00Z"));
        assert_eq!(BudgetPeriod::Day.end(at("2026-12-31T00:00:00Z")), Some(at("2027-01-01T00:00:00Z")));
        assert_eq!(BudgetPeriod::Month.end(at("2026-12-01T00:00:00Z")), Some(at("2027-01-01T00:00:00Z")));
        assert_eq!(BudgetPeriod::Total.end(BudgetPeriod::Total.start(moment)), None);
    }

    #[test]
    fn limits_compare_without_rounding() {
        let limit = BudgetLimit { max_cost_usd: Some(Usd::from_nanos(10)), max_tokens: None };
        let used = |nanos| Amount { nanos, tokens: u64::MAX };
        assert_eq!(limit.nearly_reached(used(7)), None);
        assert_eq!(limit.nearly_reached(used(8)), Some(BudgetUnit::Cost));
        assert_eq!((limit.reached(used(9)), limit.reached(used(10))), (None, Some(BudgetUnit::Cost)));
        assert_eq!(limit.room(used(12)), Amount { nanos: 0, tokens: u64::MAX });
        assert_eq!((limit.percent(used(9)), limit.percent(used(25))), (90, 250));
        let huge = BudgetLimit { max_cost_usd: None, max_tokens: Some(u64::MAX) };
        assert_eq!(huge.reached(Amount { nanos: i64::MAX, tokens: u64::MAX - 1 }), None);
        let zero = BudgetLimit { max_cost_usd: Some(Usd::default()), max_tokens: None };
        assert_eq!(zero.reached(Amount::default()), Some(BudgetUnit::Cost));
    }

    #[test]
    fn accounts_are_sorted_and_only_those_with_a_limit() {
        let tokens = |most| BudgetLimit { max_cost_usd: None, max_tokens: Some(most) };
        let budgets = Budgets {
            thread: tokens(1),
            tenant: PeriodLimits { day: tokens(2), month: tokens(3) },
            ..Budgets::default()
        };
        let accounts = budgets.accounts(Some(ThreadId::random()), None, at("2026-11-17T12:00:00Z"));
        let mut sorted = accounts.clone();
        sorted.sort_by(|one, other| one.key.cmp(&other.key));
        assert_eq!((accounts.len(), &accounts), (3, &sorted));
        assert!(budgets.has_shared() && !budgets.limits_shared_cost());
    }
}
