//! Times as whole nanoseconds, so that equal times compare as equal.

/// A point in time or a duration in nanoseconds.
pub type Nanos = u64;

/// A time later than every event. It leaves the last byte of an alarm's key for the core.
pub const NEVER: Nanos = u64::MAX >> 8;

/// Converts seconds to nanoseconds.
pub fn nanos(seconds: f64) -> Nanos {
    // The conversion with `as` truncates, so add 0.5 to round. It turns infinity into the largest value.
    ((seconds * 1e9 + 0.5) as Nanos).min(NEVER)
}

/// Converts nanoseconds to seconds.
pub fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 * 1e-9
}
