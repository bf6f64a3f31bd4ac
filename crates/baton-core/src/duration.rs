//! Durations as written in agent files and `baton.toml`.

use std::num::NonZeroU32;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// A duration that is parsed and printed as `500ms`, `30s`, `5m`, `1h` or `30d`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HumanDuration(Duration);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a duration: write a whole number and a unit, such as 500ms, 30s, 5m, 1h or 30d")]
pub struct InvalidDuration(pub String);

/// Longest unit first, so that 60 s print as `1m`.
const UNITS: [(&str, u64); 5] = [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

impl HumanDuration {
    pub const fn from_millis(millis: u64) -> Self {
        Self(Duration::from_millis(millis))
    }

    pub const fn from_secs(secs: u64) -> Self {
        Self(Duration::from_secs(secs))
    }

    pub const fn from_mins(mins: u64) -> Self {
        Self(Duration::from_secs(mins * 60))
    }

    pub const fn get(self) -> Duration {
        self.0
    }

    /// The duration multiplied by `factor`. Saturates.
    #[must_use]
    pub fn times(self, factor: NonZeroU32) -> Self {
        Self(self.0.saturating_mul(factor.get()))
    }

    pub fn parse(text: &str) -> Result<Self, InvalidDuration> {
        let invalid = || InvalidDuration(text.to_owned());
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let number: u64 = number.parse().map_err(|_| invalid())?;
        let (_, millis) = UNITS.iter().find(|(name, _)| *name == unit.trim_start()).ok_or_else(invalid)?;
        number.checked_mul(*millis).map(Self::from_millis).ok_or_else(invalid)
    }
}

impl TryFrom<String> for HumanDuration {
    type Error = InvalidDuration;
    fn try_from(text: String) -> Result<Self, InvalidDuration> {
        Self::parse(&text)
    }
}

impl From<HumanDuration> for String {
    fn from(duration: HumanDuration) -> Self {
        duration.to_string()
    }
}

impl std::fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let millis = u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX);
        let (unit, size) = UNITS
            .iter()
            .find(|(_, size)| millis.is_multiple_of(*size) && millis >= *size)
            .unwrap_or(&("s", 1_000));
        write!(f, "{}{unit}", millis / size)
    }
}

#[cfg(test)]
mod tests {
    use super::HumanDuration;

    #[test]
    fn durations_read_and_print() {
        for text in ["500ms", "30s", "5m", "1h", "30d", "1500ms", "0s"] {
            assert_eq!(HumanDuration::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(HumanDuration::parse("60s").unwrap().to_string(), "1m");
        for bad in
            ["", "30", "s", "-1s", "1.5s", "5 minutes", "5M", "99999999999999999999s", "9999999999999999999h"]
        {
            assert!(HumanDuration::parse(bad).is_err(), "{bad}");
        }
    }
}
