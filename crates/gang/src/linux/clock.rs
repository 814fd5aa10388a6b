//! Time as the agent counts it: nanoseconds of `CLOCK_MONOTONIC`.

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

/// Now.
pub fn now() -> Nanos {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// As seconds.
pub fn seconds(nanos: Nanos) -> f64 {
    nanos as f64 / SECOND
}

/// From seconds; those without end are the end of time.
pub fn nanos(seconds: f64) -> Nanos {
    (seconds * SECOND) as Nanos
}

/// Wakes at an absolute time. Unlike a timeout it knows no slack, whatever the thread's priority.
pub struct Timer {
    file: OwnedFd,
}

impl Timer {
    /// A timer that is not set.
    pub fn new() -> io::Result<Self> {
        let flags = TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK;
        Ok(Timer { file: timerfd_create(TimerfdClockId::Monotonic, flags)? })
    }

    /// Readable from that time on; a time that is over is readable at once.
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
