//! How people name what was kept: by its id, by the beginning of one, by a moment.

use std::fmt::Display;
use std::str::FromStr;

use baton_core::HumanDuration;
use baton_core::choice::Choice as _;
use baton_core::store::{Page, RunStatus};
use jiff::tz::TimeZone;
use jiff::{Timestamp, civil};

/// Fewer characters than these mean too many things.
const SHORTEST: usize = 4;
const UUID: usize = 36;

/// An id, or the beginning of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference<Id> {
    Whole(Id),
    Beginning(String),
}

impl<Id: FromStr> FromStr for Reference<Id> {
    type Err = Id::Err;

    fn from_str(text: &str) -> Result<Self, Id::Err> {
        let is_beginning = (SHORTEST..UUID).contains(&text.len())
            && text.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        match text.parse() {
            Ok(id) => Ok(Self::Whole(id)),
            Err(_) if is_beginning => Ok(Self::Beginning(text.to_ascii_lowercase())),
            Err(invalid) => Err(invalid),
        }
    }
}

impl<Id: Display + Clone> Reference<Id> {
    /// The id that is meant. A beginning is looked for `among` these, and must mean one of them. `None` when there is none.
    pub(super) async fn find<T, E: Into<anyhow::Error>>(
        &self,
        among: impl Future<Output = Result<Page<T>, E>>,
        id: impl Fn(T) -> Option<Id>,
    ) -> anyhow::Result<Option<Id>> {
        let beginning = match self {
            Self::Whole(id) => return Ok(Some(id.clone())),
            Self::Beginning(beginning) => beginning,
        };
        let mut found: Vec<Id> = among.await.map_err(Into::into)?.data.into_iter().filter_map(id).collect();
        found.retain(|id| id.to_string().starts_with(beginning));
        if found.len() > 1 {
            let some: Vec<String> = found.iter().take(5).map(ToString::to_string).collect();
            let more = if found.len() > some.len() { ", …" } else { "" };
            anyhow::bail!("`{beginning}` is the beginning of several: {}{more}", some.join(", "));
        }
        Ok(found.pop())
    }
}

/// `2h` ago, or a date, with or without a time of day and an offset.
pub(super) fn since(text: &str) -> Result<Timestamp, String> {
    if let Ok(ago) = HumanDuration::parse(text) {
        return Timestamp::now().checked_sub(ago.get()).map_err(|error| error.to_string());
    }
    moment_of(text).map_err(|_| {
        format!("`{text}` is neither a duration, such as 30m, 2h or 7d, nor a time, such as 2026-11-15T09:30")
    })
}

/// A time, in UTC or in the local time zone.
pub(super) fn moment_of(text: &str) -> Result<Timestamp, String> {
    if let Ok(at) = text.parse::<Timestamp>() {
        return Ok(at);
    }
    let local = text.parse::<civil::DateTime>().and_then(|at| at.to_zoned(TimeZone::system()));
    local.map(|at| at.timestamp()).map_err(|_| {
        format!("`{text}` is neither a duration, such as 90d, nor a time, such as 2026-11-15T09:30")
    })
}

pub(super) fn status(text: &str) -> Result<RunStatus, String> {
    RunStatus::parse(text).ok_or_else(|| {
        let words: Vec<&str> = RunStatus::ALL.iter().map(|(word, _)| *word).collect();
        format!("`{text}` is not a status: use {}", words.join(", "))
    })
}

#[cfg(test)]
mod tests {
    use baton_core::{RunId, SessionId, ThreadId};

    use super::*;

    const ID: &str = "550e8400-e29b-41d4-a716-446655440000";

    #[test]
    fn whole_ids_and_beginnings() {
        assert!(matches!(ID.parse::<Reference<ThreadId>>(), Ok(Reference::Whole(_))));
        assert_eq!("550E".parse::<Reference<ThreadId>>(), Ok(Reference::Beginning("550e".to_owned())));
        let child = format!("{ID}:sub_legal_0000001f");
        assert!(matches!(child.parse::<Reference<SessionId>>(), Ok(Reference::Whole(_))));
        for bad in ["", "550", "hello", "550e8400-e29b-11d4-a716-446655440000", "550e*"] {
            assert!(bad.parse::<Reference<ThreadId>>().is_err(), "{bad}");
        }
        assert!("run-1".parse::<Reference<RunId>>().is_err());
    }

    #[test]
    fn moments() {
        assert_eq!(since("2026-01-02T03:04:05Z").unwrap().to_string(), "2026-01-02T03:04:05Z");
        let ago = since("1h").unwrap();
        let hour = Timestamp::now().duration_since(ago).as_secs();
        assert!((3600..3700).contains(&hour), "{hour}");
        assert!(since("2026-01-02").is_ok() && since("2026-01-02 09:30").is_ok());
        for bad in ["", "yesterday", "2h ago", "9999999999999d", "2026-13-01"] {
            assert!(since(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn statuses_are_named_in_the_error() {
        assert_eq!(status("completed"), Ok(RunStatus::Completed));
        assert!(status("done").unwrap_err().contains("completed"));
    }
}
