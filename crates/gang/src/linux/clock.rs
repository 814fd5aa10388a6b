//! The clock of the agent: nanoseconds of `CLOCK_MONOTONIC`.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io;
use rustix::time::{
    ClockId, Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, clock_gettime,
    timerfd_create, timerfd_settime,
};

/// Nanoseconds of `CLOCK_MONOTONIC`.
pub type Nanos = u64;

const SECOND: f64 = 1e9;

/// The current time.
pub fn now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Converts nanoseconds to seconds.
pub fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND
}

/// Converts seconds to nanoseconds; infinity becomes the largest value.
pub fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND) as Nanos
}

/// A timer for absolute times. Unlike a timeout, it has no slack at any thread priority.
pub struct Timer {
    file: OwnedFd,
}

impl Timer {
    /// Returns a timer that is not set.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Timer { file: timerfd_create(TimerfdClockId::Monotonic, flags)? })
    }

    /// Makes the timer readable from a time on; for a past time, at once.
    pub fn set(&self, at: Nanos) -> io::Result<()> {
        let at = Duration::from_nanos(at.clamp(1, i64::MAX as u64));
        let value = Timespec::try_from(at).map_err(|_| io::Errno::INVAL)?;
        let never = Timespec { tv_sec: 0, tv_nsec: 0 };
        let timer = Itimerspec { it_interval: never, it_value: value };
        timerfd_settime(&self.file, TimerfdTimerFlags::ABSTIME, &timer).map(|_| ())
    }
}

impl AsFd for Timer {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
