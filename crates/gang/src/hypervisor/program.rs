//! The program of a job's threads, step by step.

use super::time::{Nanos, nanos, seconds};
use super::workload::{Length, ThreadWorkload, drawn, fine_seconds};
use crate::job::Barriers;

/// What a thread does next.
pub enum Action {
    /// Compute for this time.
    Compute(Nanos),
    /// Wait for all other threads of the job, either spinning on a core or blocked.
    Meet { spin: bool },
    /// Block for this time.
    Nap(Nanos),
    /// Record the end of an iteration.
    Log,
    /// End the thread.
    Exit,
}

/// What the threads of a program do repeatedly.
#[derive(Clone, Copy)]
pub enum ProgramKind {
    /// The work of a job.
    Job(ThreadWorkload, Length),
    /// The host's own work: exponentially distributed bursts and pauses with these means, in seconds.
    Host { burst: f64, rest: f64 },
}

#[derive(Clone, Copy, PartialEq)]
enum Point {
    Begin,
    Computed,
    Tasks,
    Met,
    Napped,
    Over,
}

/// The state of a job's threads.
pub struct ThreadProgram {
    kind: ProgramKind,
    seed: u64,
    points: Vec<Point>,
    iterations: Vec<u64>,
    started: Option<Nanos>,
    over: bool,
    arrived: usize,
    first_arrival: Nanos,
    next_task: u32,
    meetings: Meetings,
}

/// The barriers of a job since the last report.
#[derive(Default)]
struct Meetings {
    skews: Vec<Nanos>,
    last: Nanos,
    known: Nanos,
}

impl ThreadProgram {
    pub fn new(kind: ProgramKind, threads: usize, seed: u64) -> Self {
        ThreadProgram {
            kind,
            seed,
            points: vec![Point::Begin; threads],
            iterations: vec![0; threads],
            started: None,
            over: false,
            arrived: 0,
            first_arrival: 0,
            next_task: 0,
            meetings: Meetings::default(),
        }
    }

    /// The next action of a thread that has finished its last one.
    pub fn next(&mut self, thread: usize, now: Nanos) -> Action {
        self.started.get_or_insert(now);
        match self.kind {
            ProgramKind::Host { burst, rest } => self.next_of_host(thread, burst, rest),
            ProgramKind::Job(workload, length) => {
                if self.points[thread] == Point::Over {
                    return Action::Exit;
                }
                match workload {
                    ThreadWorkload::Independent { iteration } => {
                        self.next_alone(thread, nanos(iteration), length, now)
                    }
                    ThreadWorkload::Barrier { interval, spin, imbalance } => {
                        self.next_to_barrier(thread, interval, spin, imbalance)
                    }
                    ThreadWorkload::Coevp { coarse, tasks, fine, spread, wait } => self
                        .next_in_coevp(thread, nanos(coarse), tasks, (fine, spread), nanos(wait)),
                }
            }
        }
    }

    fn next_alone(&mut self, thread: usize, work: Nanos, length: Length, now: Nanos) -> Action {
        if self.points[thread] == Point::Begin {
            self.points[thread] = Point::Computed;
            return Action::Compute(work);
        }
        let over = self.enough(self.iterations[thread] + 1, length, now);
        self.log(thread, over)
    }

    fn next_to_barrier(
        &mut self,
        thread: usize,
        interval: f64,
        spin: bool,
        imbalance: f64,
    ) -> Action {
        match self.points[thread] {
            Point::Begin => {
                self.points[thread] = Point::Computed;
                let mut work = interval;
                if imbalance > 0.0 {
                    let aside =
                        2.0 * drawn(self.seed, self.iterations[thread], thread as u64) - 1.0;
                    work *= 1.0 + imbalance * aside;
                }
                Action::Compute(nanos(work))
            }
            Point::Computed => {
                self.points[thread] = Point::Met;
                Action::Meet { spin }
            }
            _ => self.log(thread, self.over),
        }
    }

    fn next_in_coevp(
        &mut self,
        thread: usize,
        coarse: Nanos,
        tasks: u32,
        (fine, spread): (f64, f64),
        wait: Nanos,
    ) -> Action {
        match self.points[thread] {
            Point::Begin if thread == 0 => {
                self.points[thread] = Point::Computed;
                self.next_task = 0;
                Action::Compute(coarse)
            }
            Point::Begin | Point::Computed => {
                self.points[thread] = Point::Tasks;
                Action::Meet { spin: false }
            }
            Point::Tasks if self.next_task < tasks => {
                let task = self.next_task;
                self.next_task += 1;
                let step = self.iterations[thread];
                Action::Compute(nanos(fine_seconds(self.seed, step, task, fine, spread)))
            }
            Point::Tasks => {
                self.points[thread] = Point::Met;
                Action::Meet { spin: false }
            }
            Point::Met if wait > 0 => {
                self.points[thread] = Point::Napped;
                Action::Nap(wait)
            }
            _ => self.log(thread, self.over),
        }
    }

    fn next_of_host(&mut self, thread: usize, burst: f64, rest: f64) -> Action {
        let count = self.iterations[thread];
        let exponential = -(1.0 - drawn(self.seed, count, thread as u64)).ln();
        self.iterations[thread] += 1;
        if count.is_multiple_of(2) {
            Action::Nap(nanos(exponential * rest))
        } else {
            Action::Compute(nanos(exponential * burst))
        }
    }

    fn log(&mut self, thread: usize, over: bool) -> Action {
        self.iterations[thread] += 1;
        self.points[thread] = if over { Point::Over } else { Point::Begin };
        Action::Log
    }

    fn enough(&self, iterations: u64, length: Length, now: Nanos) -> bool {
        match length {
            Length::Iterations(count) => iterations >= count,
            Length::Seconds(time) => now - self.started.unwrap_or(now) >= nanos(time),
        }
    }

    /// Records that a thread has reached the barrier; `clock` is the time for which its job had been allowed to run.
    /// Returns whether it is the last.
    pub fn meet(&mut self, thread: usize, now: Nanos, clock: Nanos) -> bool {
        if self.arrived == 0 {
            self.first_arrival = clock;
        }
        self.arrived += 1;
        if self.arrived < self.points.len() {
            return false;
        }
        self.arrived = 0;
        // The meeting at which tasks are distributed does not count.
        if self.points[thread] == Point::Met {
            self.meetings.skews.push(clock - self.first_arrival);
            self.meetings.last = clock;
            if let ProgramKind::Job(_, length) = self.kind {
                self.over = self.enough(self.iterations[thread] + 1, length, now);
            }
        }
        true
    }

    /// The barriers of the job since the last call; `None` if there were none.
    pub fn barriers(&mut self) -> Option<Barriers> {
        let Meetings { skews, last, known } = &mut self.meetings;
        let count = skews.len();
        if count == 0 {
            return None;
        }
        let interval = seconds(*last - *known) / count as f64;
        *known = *last;
        let (_, &mut skew, _) = skews.select_nth_unstable(count / 2);
        let skew = seconds(skew);
        skews.clear();
        Some(Barriers { interval, skew })
    }
}
