//! How long a provider asks to wait.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::header::{DATE, HeaderMap, RETRY_AFTER};

/// `retry-after-ms`, or `retry-after` in seconds or as a date.
pub(crate) fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(milliseconds) = text("retry-after-ms").and_then(seconds) {
        return Some(milliseconds / 1000);
    }
    let value = text(RETRY_AFTER.as_str())?;
    seconds(value).or_else(|| {
        // The provider's own clock is the better one to measure its date with.
        let now = text(DATE.as_str()).and_then(unix_time).or_else(our_clock)?;
        Some(Duration::from_secs(unix_time(value)?.saturating_sub(now)))
    })
}

fn our_clock() -> Option<u64> {
    SystemTime::now().duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
}

/// A number from a wire may be negative, huge or not a number at all.
pub(crate) fn seconds(text: &str) -> Option<Duration> {
    Duration::try_from_secs_f64(text.parse().ok()?).ok()
}

/// Reads `Sun, 06 Nov 1994 08:49:37 GMT`, the only form of a date that a server may send today.
fn unix_time(date: &str) -> Option<u64> {
    const MONTHS: &str = "JanFebMarAprMayJunJulAugSepOctNovDec";
    let (_, date) = date.split_once(", ")?;
    let [day, month, year, time, "GMT"] = date.split(' ').collect::<Vec<_>>()[..] else { return None };
    let [hours, minutes, seconds] = time.split(':').collect::<Vec<_>>()[..] else { return None };
    let number = |text: &str| text.parse::<u64>().ok().filter(|_| text.len() <= 4);
    let month = MONTHS.find(month).filter(|at| at % 3 == 0 && month.len() == 3)? / 3;
    let days = days_since_1970(number(year)?, month, number(day)?)?;
    Some(((days * 24 + number(hours)?) * 60 + number(minutes)?) * 60 + number(seconds)?)
}

/// `month` counts from 0.
fn days_since_1970(year: u64, month: usize, day: u64) -> Option<u64> {
    const BEFORE_MONTH: [u64; 12] = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    let leap_years_before = |year: u64| year / 4 - year / 100 + year / 400;
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let leap_days = leap_years_before(year.checked_sub(1)?).checked_sub(leap_years_before(1969))?;
    let leap_day_this_year = u64::from(is_leap && month > 1);
    Some((year - 1970) * 365 + leap_days + leap_day_this_year + BEFORE_MONTH[month] + day.checked_sub(1)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(pairs: &[(&'static str, &str)]) -> HeaderMap {
        pairs.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
    }

    #[test]
    fn every_form() {
        let wait = |pairs: &[(&'static str, &str)]| retry_after(&headers(pairs));
        assert_eq!(wait(&[("retry-after", "7")]), Some(Duration::from_secs(7)));
        assert_eq!(wait(&[("retry-after", "0.25")]), Some(Duration::from_millis(250)));
        assert_eq!(
            wait(&[("retry-after-ms", "1500"), ("retry-after", "2")]),
            Some(Duration::from_millis(1500))
        );
        let date = "Sun, 06 Nov 1994 08:49:37 GMT";
        assert_eq!(
            wait(&[("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"), ("date", date)]),
            Some(Duration::from_secs(30))
        );
        assert_eq!(wait(&[("retry-after", date)]), Some(Duration::ZERO), "long ago");
        for bad in [
            "",
            "-1",
            "soon",
            "NaN",
            "inf",
            "1e300",
            "Sun, 06 Foo 1994 08:49:37 GMT",
            "Sun, 00 Jan 0000 0:0:0 GMT",
        ] {
            assert_eq!(wait(&[("retry-after", bad)]), None, "{bad}");
        }
        assert_eq!(wait(&[]), None);
    }

    #[test]
    fn dates() {
        assert_eq!(unix_time("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
        assert_eq!(unix_time("Sun, 06 Nov 1994 08:49:37 GMT"), Some(784_111_777));
        assert_eq!(unix_time("Thu, 29 Feb 2024 12:00:00 GMT"), Some(1_709_208_000));
        assert_eq!(unix_time("Fri, 01 Mar 2024 00:00:00 GMT"), Some(1_709_251_200));
    }
}
