//! Exact money: an integer number of billionths of a dollar, because one token of a cheap model costs less than a millionth.

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

    /// Saturating addition: a total that large exceeds every limit anyway.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self { nanos: self.nanos.saturating_add(other.nanos) }
    }
}

impl FromStr for Usd {
    type Err = InvalidUsd;

    /// Parses decimal text digit by digit, without floats.
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

    /// Parses a JSON number. Unlike text, it may be negative, for corrections.
    fn try_from(number: serde_json::Number) -> Result<Self, InvalidUsd> {
        // JSON may contain `5e-6`; printing the float gives `0.000005`.
        let text = match number.as_f64() {
            Some(float) if number.is_f64() => float.to_string(),
            _ => number.to_string(),
        };
        let (sign, amount) = text.strip_prefix('-').map_or((1, text.as_str()), |amount| (-1, amount));
        match (amount.parse::<Self>(), number.as_f64()) {
            (Ok(usd), _) => Ok(Self::from_nanos(sign * usd.nanos)),
            // Floats of this size have no ninth decimal place, so the nearest amount is exact enough.
            (Err(_), Some(float)) if float.abs() >= EXACT_BELOW => Ok(Self::nearest(float)),
            (Err(_), _) => Err(InvalidUsd(number.to_string())),
        }
    }
}

/// Dollars below which a float distinguishes every billionth.
const EXACT_BELOW: f64 = 8_388_608.0;

impl Usd {
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "the cast saturates")]
    fn nearest(dollars: f64) -> Self {
        Self::from_nanos((dollars * NANOS as f64).round() as i64)
    }
}

#[expect(clippy::cast_precision_loss, reason = "JSON has only floats; amounts below $8 million are exact")]
impl From<Usd> for f64 {
    fn from(usd: Usd) -> Self {
        usd.nanos as Self / NANOS as Self
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (nanos, unit) = (self.nanos.unsigned_abs(), NANOS.unsigned_abs());
        let sign = if self.nanos < 0 { "-" } else { "" };
        let fraction = format!("{:09}", nanos % unit);
        let shown = fraction.trim_end_matches('0');
        write!(f, "{sign}${}.{shown:0<2}", nanos / unit)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{EXACT_BELOW, NANOS, Usd};

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
        for nanos in [5_000, 1, -1, 0, i64::MAX, i64::MIN] {
            let json = serde_json::to_string(&Usd::from_nanos(nanos)).unwrap();
            assert_eq!(serde_json::from_str::<Usd>(&json).unwrap().nanos(), nanos, "{json}");
        }
        for bad in ["0.1234567891", "1e-10", "\"1\""] {
            assert!(serde_json::from_str::<Usd>(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_negative_amount_shows_its_sign() {
        assert_eq!(Usd::from_nanos(-500_000_000).to_string(), "-$0.50");
        assert_eq!(Usd::from_nanos(-1_500_000_000).to_string(), "-$1.50");
        assert_eq!(Usd::from_nanos(i64::MIN).to_string(), "-$9223372036.854775808");
    }

    #[expect(clippy::cast_possible_truncation, reason = "a whole number")]
    const EXACT_NANOS: i64 = EXACT_BELOW as i64 * NANOS;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_written_is_read_again(nanos in -EXACT_NANOS..EXACT_NANOS, small in -1_000_000_000_i64..1_000_000_000) {
            for nanos in [nanos, small] {
                let json = serde_json::to_string(&Usd::from_nanos(nanos)).unwrap();
                prop_assert_eq!(serde_json::from_str::<Usd>(&json).unwrap().nanos(), nanos, "{}", json);
            }
        }

        #[test]
        fn any_amount_can_be_read_again(nanos: i64) {
            let json = serde_json::to_string(&Usd::from_nanos(nanos)).unwrap();
            let read = serde_json::from_str::<Usd>(&json).unwrap().nanos();
            // Near the maximum, neighbouring floats are 1,908 billionths apart, and three roundings happen.
            prop_assert!(read.abs_diff(nanos) <= 4_000, "{} {}", json, read);
        }
    }
}
