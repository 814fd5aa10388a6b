//! Time as whole nanoseconds, so that equal times are equal.

/// A point in time or a length of time.
pub type Nanos = u64;

/// Later than every event. Alarms keep the number of a core below it.
pub const NEVER: Nanos = u64::MAX >> 8;

/// From seconds.
pub fn nanos(seconds: f64) -> Nanos {
    // Rounded: `as` cuts off, and to infinity it gives the largest.
    ((seconds * 1e9 + 0.5) as Nanos).min(NEVER)
}

/// In seconds.
pub fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 * 1e-9
}
