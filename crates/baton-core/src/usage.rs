//! What model calls consume.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::money::Usd;

/// Tokens of one call or of a sum of calls. `cached_tokens` is part of `input_tokens` and
/// `reasoning_tokens` is part of `output_tokens`, as providers report them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Usage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub cached_tokens: u64,
    pub reasoning_tokens: u64,
    pub cost: Cost,
}

/// What it cost. A call whose model has no known price makes the whole sum unknown, never cheaper.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "price", content = "usd")]
pub enum Cost {
    Known(Usd),
    /// The part that is known.
    Unknown(Usd),
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

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        self.input_tokens += other.input_tokens;
        self.output_tokens += other.output_tokens;
        self.cached_tokens += other.cached_tokens;
        self.reasoning_tokens += other.reasoning_tokens;
        self.cost += other.cost;
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
}
