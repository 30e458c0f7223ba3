//! Points in time as plain values.

/// Milliseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// A point in time from milliseconds since the Unix epoch.
    pub const fn from_millis(epoch_ms: i64) -> Self {
        Self(epoch_ms)
    }

    /// Milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// This point moved forward by `delay_ms`, stopping at the end of representable time.
    pub const fn plus_ms(self, delay_ms: u64) -> Self {
        Self(self.0.saturating_add_unsigned(delay_ms))
    }

    /// Milliseconds from `earlier` to this point; zero when `earlier` lies later.
    pub const fn millis_since(self, earlier: Self) -> u64 {
        if self.0 > earlier.0 {
            self.0.abs_diff(earlier.0)
        } else {
            0
        }
    }
}
