//! Times as clients read them.

use callboard_domain::Timestamp;
use chrono::{DateTime, SecondsFormat};

/// A point in time as RFC 3339 in UTC with milliseconds, such as `2026-11-30T12:04:31.250Z`.
/// Times beyond the calendar's range are written as the Unix epoch.
pub fn rfc3339(at: Timestamp) -> String {
    DateTime::from_timestamp_millis(at.as_millis())
        .unwrap_or(DateTime::UNIX_EPOCH)
        .to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// A point in time as whole epoch seconds, never later than the point itself.
pub fn epoch_seconds(at: Timestamp) -> i64 {
    at.as_millis().div_euclid(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_utc_with_milliseconds() {
        let at = Timestamp::from_millis(1_796_040_271_250);
        assert_eq!(rfc3339(at), "2026-11-30T12:04:31.250Z");
        assert_eq!(
            rfc3339(Timestamp::from_millis(i64::MAX)),
            "1970-01-01T00:00:00.000Z"
        );
    }
}
