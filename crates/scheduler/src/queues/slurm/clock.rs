//! When the two schedulers run, and when priorities are computed.

use super::Slurm;

/// When each task is due; infinite if it waits for an event.
#[derive(Debug, Clone, Default)]
pub(super) struct Clock {
    /// When the main scheduler runs because a job was submitted or ended.
    pub main: f64,
    /// When the main scheduler runs because an epilogue ends.
    pub epilog: f64,
    /// When the main scheduler last ran for any other reason.
    pub last_main: f64,
    pub last_full: f64,
    pub backfill: f64,
    pub last_backfill: f64,
    /// When usage and priorities are next computed.
    pub period: f64,
    /// When usage and priorities were last computed.
    pub last_period: f64,
    pub has_begun: bool,
}

impl Slurm {
    /// Sets the clock at the first pass.
    pub(super) fn begin(&mut self, now: f64) {
        if self.clock.has_begun {
            return;
        }
        let period = self.config.priority.period;
        let last_period = self.last_due(period, now);
        self.clock = Clock {
            main: f64::INFINITY,
            epilog: f64::INFINITY,
            last_main: f64::NEG_INFINITY,
            last_full: self.last_due(self.config.schedulers.interval, now),
            backfill: f64::INFINITY,
            last_backfill: self.config.begin,
            period: last_period + period,
            last_period,
            has_begun: true,
        };
    }

    /// The last time at which a task that runs every `seconds` was due.
    pub(super) fn last_due(&self, seconds: f64, now: f64) -> f64 {
        let begin = self.config.begin;
        ((now - begin) / seconds).floor() * seconds + begin
    }

    /// The next full second: Slurm's main loop checks once a second for events of the second before.
    pub(super) fn next_second(&self, time: f64) -> f64 {
        (time + self.config.epoch).floor() + 1.0 - self.config.epoch
    }

    /// Schedules the main scheduler because something happened at `time`.
    pub(super) fn wake(&mut self, time: f64) {
        let earliest = self.clock.last_main + self.config.schedulers.submission_delay;
        let due = self.next_second(time).max(earliest);
        self.clock.main = self.clock.main.min(due);
        self.note_change(time);
    }

    /// Schedules backfill, because something changed. From its interval after the last turn on, Slurm looks every second
    /// for a change (`backfill_agent`).
    pub(super) fn note_change(&mut self, now: f64) {
        let between = self.config.schedulers.backfill_interval;
        let due = self.next_second(now).max(self.clock.last_backfill + between);
        self.clock.backfill = self.clock.backfill.min(due);
        self.is_stuck = false;
    }

    /// Counts a turn of backfill that was due before `now`, when no job waited, so that no pass was requested.
    pub(super) fn note_idle_backfill(&mut self, now: f64) {
        if self.clock.backfill < now {
            self.clock.last_backfill = self.clock.backfill;
            self.clock.backfill = f64::INFINITY;
        }
    }
}
