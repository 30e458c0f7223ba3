//! When a failed model call is tried again, and after how long. Pure: time and randomness are
//! arguments.

use callboard_domain::Timestamp;

use crate::ProviderErrorKind;

/// Most tries after the first (desktop §5: transport retries at most 2).
pub(crate) const RETRIES_MAX: u32 = 2;
/// First wait when the server names none, in milliseconds; each further one doubles it.
const BACKOFF_MS: u64 = 1_000;
/// Longest wait that a server may ask for before the call fails instead, in milliseconds.
pub(crate) const RETRY_AFTER_MS_MAX: u64 = 60_000;
/// Random extra at the end of each wait, so that agents told the same do not return together:
/// a quarter of the wait, and at least this many milliseconds.
const JITTER_MS_MIN: u64 = 500;

/// What to do after a failed try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// Try again after this many milliseconds.
    After(u64),
    /// Give up.
    Stop,
}

/// Decides about try number `failed_tries + 1`. `jitter` draws evenly from `0..bound`.
pub(crate) fn next_try(
    kind: ProviderErrorKind,
    failed_tries: u32,
    jitter: impl FnOnce(u64) -> u64,
) -> Next {
    let asked_ms = match kind {
        ProviderErrorKind::RateLimited { retry_after_ms }
        | ProviderErrorKind::Unavailable { retry_after_ms } => retry_after_ms,
        ProviderErrorKind::Unreachable | ProviderErrorKind::TimedOut => None,
        ProviderErrorKind::Limit | ProviderErrorKind::Rejected => return Next::Stop,
    };
    if failed_tries > RETRIES_MAX || asked_ms.is_some_and(|wait| wait > RETRY_AFTER_MS_MAX) {
        return Next::Stop;
    }
    let wait_ms =
        asked_ms.unwrap_or_else(|| BACKOFF_MS << failed_tries.saturating_sub(1).min(RETRIES_MAX));
    Next::After(wait_ms + jitter((wait_ms / 4).max(JITTER_MS_MIN)))
}

/// Reads a `Retry-After` header: seconds, or an HTTP date seen from `now`. Milliseconds from now;
/// `None` for anything else.
pub(crate) fn parse_retry_after(header: &str, now: Timestamp) -> Option<u64> {
    let header = header.trim();
    if let Ok(seconds) = header.parse::<u64>() {
        return Some(seconds.saturating_mul(1_000));
    }
    Some(parse_http_date(header)?.millis_since(now))
}

/// Reads the one date form that servers may send: `Sun, 06 Nov 1994 08:49:37 GMT`.
fn parse_http_date(text: &str) -> Option<Timestamp> {
    const MONTHS: [&str; 12] = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ];
    let (_, rest) = text.split_once(", ")?;
    let parts: Vec<&str> = rest.split(' ').collect();
    let [day, month, year, time, "GMT"] = parts.as_slice() else {
        return None;
    };
    let clock: Vec<&str> = time.split(':').collect();
    let [hour, minute, second] = clock.as_slice() else {
        return None;
    };
    let month = MONTHS.iter().position(|name| name == month)?;
    let (day, year) = (day.parse::<i64>().ok()?, year.parse::<i64>().ok()?);
    let hour = hour.parse::<i64>().ok()?;
    let minute = minute.parse::<i64>().ok()?;
    let second = second.parse::<i64>().ok()?;
    let in_range = (1..=31).contains(&day)
        && (1970..=9999).contains(&year)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !in_range {
        return None;
    }
    let days = days_from_civil(year, i64::try_from(month).ok()? + 1, day);
    let seconds = ((days * 24 + hour) * 60 + minute) * 60 + second;
    Some(Timestamp::from_millis(seconds * 1_000))
}

/// Days since 1970-01-01 of a date in the Gregorian calendar, counted in years that begin in
/// March so that the leap day comes last.
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let shifted_year = if month <= 2 { year - 1 } else { year };
    let shifted_month = (month + 9) % 12;
    let leap_days = shifted_year / 4 - shifted_year / 100 + shifted_year / 400;
    let day_of_year = (153 * shifted_month + 2) / 5 + day - 1;
    365 * shifted_year + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITED: fn(Option<u64>) -> ProviderErrorKind =
        |retry_after_ms| ProviderErrorKind::RateLimited { retry_after_ms };

    #[test]
    fn no_retry_comes_before_the_stated_time_and_retries_spread() {
        assert_eq!(next_try(LIMITED(Some(2_000)), 1, |_| 0), Next::After(2_000));
        assert_eq!(
            next_try(LIMITED(Some(2_000)), 1, |bound| bound - 1),
            Next::After(2_499)
        );
        assert_eq!(
            next_try(LIMITED(Some(40_000)), 1, |bound| bound),
            Next::After(50_000)
        );
    }

    #[test]
    fn without_a_stated_time_the_wait_doubles_and_the_third_failure_is_the_last() {
        let unavailable = ProviderErrorKind::Unavailable {
            retry_after_ms: None,
        };
        assert_eq!(next_try(unavailable, 1, |_| 0), Next::After(1_000));
        assert_eq!(next_try(unavailable, 2, |_| 0), Next::After(2_000));
        assert_eq!(next_try(unavailable, 3, |_| 0), Next::Stop);
    }

    #[test]
    fn what_waiting_cannot_cure_is_not_tried_again() {
        assert_eq!(next_try(LIMITED(Some(7_200_000)), 1, |_| 0), Next::Stop);
        assert_eq!(next_try(ProviderErrorKind::Limit, 1, |_| 0), Next::Stop);
        assert_eq!(next_try(ProviderErrorKind::Rejected, 1, |_| 0), Next::Stop);
    }

    #[test]
    fn retry_after_is_seconds_or_a_date_and_never_a_guess() {
        let now = Timestamp::from_millis(784_111_777_000);
        assert_eq!(parse_retry_after("2", now), Some(2_000));
        assert_eq!(parse_retry_after(" 7200 ", now), Some(7_200_000));
        assert_eq!(
            parse_retry_after("Sun, 06 Nov 1994 08:49:42 GMT", now),
            Some(5_000)
        );
        assert_eq!(
            parse_retry_after("Sun, 06 Nov 1994 08:49:00 GMT", now),
            Some(0)
        );
        assert_eq!(
            parse_retry_after("Sun, 06 Nov 1994 08:49:37 GMT", Timestamp::from_millis(0)),
            Some(784_111_777_000)
        );
        for garbage in [
            "",
            "soon",
            "-1",
            "Sun, 99 Nov 1994 08:49:37 GMT",
            "1994-11-06",
        ] {
            assert_eq!(parse_retry_after(garbage, now), None, "{garbage}");
        }
    }
}
