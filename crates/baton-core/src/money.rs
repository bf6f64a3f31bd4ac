//! Money, exact: an integer number of billionths of a dollar, because one token of a cheap model costs
//! less than a millionth.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const NANOS: i64 = 1_000_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(try_from = "serde_json::Number", into = "f64")]
pub struct Usd {
    nanos: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not an amount in dollars: write a number such as 0.25, with at most nine decimals")]
pub struct InvalidUsd(pub String);

impl Usd {
    pub const fn from_nanos(nanos: i64) -> Self {
        Self { nanos }
    }

    pub const fn nanos(self) -> i64 {
        self.nanos
    }

    /// Saturates instead of wrapping: a total that large has long met every limit.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos) }
    }
}

impl FromStr for Usd {
    type Err = InvalidUsd;

    /// Decimal text, read digit by digit so that no amount goes through a float.
    fn from_str(text: &str) -> Result<Self, InvalidUsd> {
        let invalid = || InvalidUsd(text.to_owned());
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > 9 {
            return Err(invalid());
        }
        let whole: i64 = whole.parse().map_err(|_| invalid())?;
        let fraction: i64 = format!("{fraction:0<9}").parse().map_err(|_| invalid())?;
        whole
            .checked_mul(NANOS)
            .and_then(|n| n.checked_add(fraction))
            .map(Self::from_nanos)
            .ok_or_else(invalid)
    }
}

impl TryFrom<serde_json::Number> for Usd {
    type Error = InvalidUsd;
    fn try_from(number: serde_json::Number) -> Result<Self, InvalidUsd> {
        number.to_string().parse()
    }
}

#[expect(clippy::cast_precision_loss, reason = "JSON has only floats; amounts below $9 million are exact")]
impl From<Usd> for f64 {
    fn from(usd: Usd) -> Self {
        usd.nanos as Self / NANOS as Self
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (whole, fraction) = (self.nanos / NANOS, (self.nanos % NANOS).abs());
        let fraction = format!("{fraction:09}");
        let shown = fraction.trim_end_matches('0');
        write!(f, "${whole}.{shown:0<2}")
    }
}

#[cfg(test)]
mod tests {
    use super::Usd;

    #[test]
    fn amounts_are_exact() {
        let parse = |text: &str| text.parse::<Usd>();
        assert_eq!(parse("0.25").unwrap().nanos(), 250_000_000);
        assert_eq!(parse("3").unwrap().to_string(), "$3.00");
        assert_eq!(parse("0.000000001").unwrap().to_string(), "$0.000000001");
        assert_eq!(parse("0.1").unwrap().plus(parse("0.2").unwrap()), parse("0.3").unwrap());
        for bad in ["", ".5", "5.", "-1", "1e3", "$1", "0.0000000001", "99999999999999999999"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn json_round_trip() {
        let usd: Usd = serde_json::from_str("0.015").unwrap();
        assert_eq!(serde_json::to_string(&usd).unwrap(), "0.015");
    }
}
