//! Numbers as people read them: tokens, money, moments and stretches of time.

use std::time::Duration;

use baton_core::usage::{Cost, Usage};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// An unknown price is never shown as nothing.
pub fn cost(cost: Cost) -> String {
    match cost {
        Cost::Known(usd) => usd.to_string(),
        Cost::Unknown(usd) if usd.nanos() == 0 => "unknown".to_owned(),
        Cost::Unknown(usd) => format!("at least {usd}"),
    }
}

/// With a `~` when some of them were counted from the text, because a provider reported none.
pub fn tokens(usage: &Usage) -> String {
    let about = if usage.estimated { "~" } else { "" };
    format!("{about}{}", usage.tokens.total())
}

/// `420 ms`, `3.4 s`, `2m 05s`, `1h 02m`.
pub fn stretch(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0 => format!("{} ms", time.as_millis()),
        1..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{}m {:02}s", seconds / 60, seconds % 60),
        _ => format!("{}h {:02}m", seconds / 3600, seconds % 3600 / 60),
    }
}

/// How long something took, or has taken so far. `None` before it began.
pub fn took(began: Option<Timestamp>, ended: Option<Timestamp>) -> Option<Duration> {
    let span: SignedDuration = ended.unwrap_or_else(Timestamp::now).duration_since(began?);
    // Clocks of two machines may disagree.
    Some(span.try_into().unwrap_or_default())
}

/// A date and a time of day where the reader is.
pub fn moment(at: Timestamp) -> String {
    local(at, "%Y-%m-%d %H:%M")
}

/// Exact enough to tell what came first.
pub fn instant(at: Timestamp) -> String {
    local(at, "%Y-%m-%d %H:%M:%S%.3f")
}

fn local(at: Timestamp, form: &str) -> String {
    at.to_zoned(TimeZone::system()).strftime(form).to_string()
}

/// `1 message`, `2 messages`.
pub fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use baton_core::Usd;

    use super::*;

    #[test]
    fn figures() {
        assert_eq!(stretch(Duration::from_millis(420)), "420 ms");
        assert_eq!(stretch(Duration::from_millis(3420)), "3.4 s");
        assert_eq!(stretch(Duration::from_secs(125)), "2m 05s");
        assert_eq!(stretch(Duration::from_secs(3725)), "1h 02m");
        assert_eq!(cost(Cost::Unknown(Usd::default())), "unknown");
        assert_eq!(cost(Cost::Unknown(Usd::from_nanos(5_000_000))), "at least $0.005");
        assert_eq!(count(1, "run") + ", " + &count(0, "message"), "1 run, 0 messages");
    }

    #[test]
    fn a_clock_that_runs_backwards_takes_no_time() {
        let (early, late) = (Timestamp::from_second(1).unwrap(), Timestamp::from_second(3).unwrap());
        assert_eq!(took(Some(early), Some(late)), Some(Duration::from_secs(2)));
        assert_eq!(took(Some(late), Some(early)), Some(Duration::ZERO));
        assert_eq!(took(None, Some(late)), None);
    }
}
