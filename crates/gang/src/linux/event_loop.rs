//! The event loop of the real-time thread. It waits for the end of a slice, an order, or the end of a process.

use std::fs::File;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, TryRecvError};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::read;

use super::clock::{Nanos, Timer, nanos, now};
use super::driver::Driver;
use super::entry::JobRecord;
use crate::job::JobId;

/// A function to run on the driver, between two switches.
pub type Order = Box<dyn FnOnce(&mut Driver) + Send>;

/// Seconds between signs of life.
const SIGN: f64 = 0.25;
/// After this number of seconds without a sign of life, a watchdog may have started jobs that the agent had stopped.
const SILENCE: f64 = 0.9;

/// A driver, and everything that it waits for.
pub struct Loop {
    /// The driver, which is called at its deadlines.
    pub driver: Driver,
    /// Orders for the driver.
    pub inbox: Receiver<Order>,
    /// An event that signals a new order in the inbox.
    pub bell: Arc<OwnedFd>,
    /// A timer for the next deadline.
    pub timer: Timer,
    /// The pipe for signs of life.
    pub alive: Option<File>,
    /// When the last sign of life was given.
    pub signed: Nanos,
}

impl Loop {
    /// Runs until no sender of orders is left.
    pub fn run(mut self) {
        self.signed = now();
        loop {
            let sign = self.signed + nanos(SIGN);
            if self.timer.set(self.driver.deadline().min(sign)).is_err() {
                return;
            }
            self.wait();
            loop {
                match self.inbox.try_recv() {
                    Ok(order) => order(&mut self.driver),
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return,
                }
            }
            if now() >= sign {
                self.sign();
            }
            self.driver.step();
        }
    }

    /// Waits for a deadline, an order, or the end of a process.
    fn wait(&mut self) {
        let of = |entry: &JobRecord| entry.watched.len();
        let owners: Vec<JobId> = self
            .driver
            .jobs
            .values()
            .flat_map(|job| std::iter::repeat_n(job.id, of(job)))
            .collect();
        let watched = self.driver.jobs.values().flat_map(|job| &job.watched);
        let mut files =
            vec![PollFd::new(&self.timer, PollFlags::IN), PollFd::new(&*self.bell, PollFlags::IN)];
        files.extend(watched.map(|process| PollFd::new(process, PollFlags::IN)));
        // This can only fail because of an interruption or a lack of memory; then check everything and wait again.
        let _ = poll(&mut files, None);
        let fired = |at: usize| !files[at].revents().is_empty();
        let mut ended: Vec<JobId> =
            owners.iter().enumerate().filter(|(at, _)| fired(at + 2)).map(|(_, &id)| id).collect();
        let rung = fired(1);
        drop(files);
        if rung {
            let _ = read(&*self.bell, &mut [0; 8]);
        }
        ended.dedup();
        for id in ended {
            let all_ended = self.driver.jobs.get_mut(&id).is_some_and(|entry| !entry.watch());
            if all_ended {
                self.driver.ended(id);
            }
        }
    }

    /// Gives a sign of life and does upkeep.
    fn sign(&mut self) {
        if now() > self.signed + nanos(SILENCE) {
            self.driver.stop_again();
        }
        self.signed = now();
        if let Some(alive) = &mut self.alive {
            // The write fails if the pipe is full. Then no process reads it, so the sign is not needed.
            let _ = alive.write(b".");
        }
        self.driver.look();
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        self.driver.release_all();
    }
}
