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

/// An HTTP date, such as `Sun, 06 Nov 1994 08:49:37 GMT`, in seconds since 1970.
fn unix_time(date: &str) -> Option<u64> {
    let time = httpdate::parse_http_date(date).ok()?;
    time.duration_since(UNIX_EPOCH).ok().map(|since| since.as_secs())
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
