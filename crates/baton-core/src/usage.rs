//! Token usage and costs.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::money::Usd;

/// Tokens of one call or a sum of calls. `cached_tokens` and `cache_write_tokens` are included in `input_tokens`, and
/// `reasoning_tokens` in `output_tokens`, as most providers report them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tokens {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Read from the provider's prompt cache.
    pub cached_tokens: u64,
    /// Written to the provider's prompt cache, if that is priced separately.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cache_write_tokens: u64,
    pub reasoning_tokens: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde wants a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Tokens {
    pub fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }
}

/// Saturates: providers report these numbers, and they may be wrong.
impl AddAssign for Tokens {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.cache_write_tokens = self.cache_write_tokens.saturating_add(other.cache_write_tokens);
        self.reasoning_tokens = self.reasoning_tokens.saturating_add(other.reasoning_tokens);
    }
}

/// Tokens and cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    #[serde(flatten)]
    pub tokens: Tokens,
    pub cost: Cost,
    /// Whether some tokens were estimated from text, because a provider reported none.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub estimated: bool,
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.estimated |= other.estimated;
        self.tokens += other.tokens;
        self.cost += other.cost;
    }
}

/// A cost. A call without a known price makes the whole sum unknown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "price", content = "usd")]
pub enum Cost {
    Known(Usd),
    /// The sum of the known costs.
    Unknown(Usd),
}

impl Cost {
    pub fn known_part(self) -> Usd {
        match self {
            Self::Known(usd) | Self::Unknown(usd) => usd,
        }
    }
}

impl Default for Cost {
    fn default() -> Self {
        Self::Known(Usd::default())
    }
}

impl AddAssign for Cost {
    fn add_assign(&mut self, other: Self) {
        *self = match (*self, other) {
            (Self::Known(a), Self::Known(b)) => Self::Known(a.plus(b)),
            (Self::Known(a) | Self::Unknown(a), Self::Known(b) | Self::Unknown(b)) => {
                Self::Unknown(a.plus(b))
            }
        };
    }
}

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    pub input: Usd,
    /// Input read from the provider's prompt cache.
    pub cached_input: Usd,
    /// Input written to the provider's prompt cache.
    pub cache_write: Usd,
    pub output: Usd,
}

impl Price {
    /// For local models.
    pub const FREE: Self = Self::flat(Usd::from_nanos(0));

    /// The same price for every kind of token.
    pub const fn flat(price: Usd) -> Self {
        Self { input: price, cached_input: price, cache_write: price, output: price }
    }

    /// The cost of these tokens, rounded up to a billionth of a dollar.
    pub fn of(&self, tokens: Tokens) -> Usd {
        let cached = tokens.cached_tokens.min(tokens.input_tokens);
        let written = tokens.cache_write_tokens.min(tokens.input_tokens - cached);
        let parts = [
            (tokens.input_tokens - cached - written, self.input),
            (cached, self.cached_input),
            (written, self.cache_write),
            (tokens.output_tokens, self.output),
        ];
        let millionths: i128 =
            parts.iter().map(|(count, price)| i128::from(*count) * i128::from(price.nanos())).sum();
        let nanos = (millionths + 999_999) / 1_000_000;
        Usd::from_nanos(i64::try_from(nanos).unwrap_or(i64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_price_is_never_zero() {
        let mut total = Cost::Known(Usd::from_nanos(5));
        total += Cost::Unknown(Usd::from_nanos(1));
        total += Cost::Known(Usd::from_nanos(2));
        assert_eq!(total, Cost::Unknown(Usd::from_nanos(8)));
    }

    #[test]
    fn prices_are_exact() {
        let usd = |text: &str| text.parse::<Usd>().unwrap();
        let (input, cached_input) = (usd("0.25"), usd("0.025"));
        let price = Price { input, cached_input, cache_write: usd("0.3125"), output: usd("2") };
        let tokens = Tokens {
            input_tokens: 1_000,
            cached_tokens: 400,
            output_tokens: 10,
            reasoning_tokens: 5,
            ..Tokens::default()
        };
        assert_eq!(price.of(tokens), usd("0.00018"));
        // 500 × 0.25 + 400 × 0.025 + 100 × 0.3125 + 10 × 2 millionths of a dollar.
        assert_eq!(price.of(Tokens { cache_write_tokens: 100, ..tokens }), usd("0.00018625"));
        let more_than_all = Tokens { cache_write_tokens: u64::MAX, ..tokens };
        assert_eq!(price.of(more_than_all), usd("0.0002175"), "600 are written at most");
        assert_eq!(price.of(Tokens { input_tokens: u64::MAX, ..tokens }), Usd::from_nanos(i64::MAX));
        assert_eq!(Price::FREE.of(tokens), Usd::default());
    }
}
