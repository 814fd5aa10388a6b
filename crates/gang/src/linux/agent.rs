//! The agent: a driver in a real-time thread, and the interface to it.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::write;
use rustix::process::Signal;

use super::clock::Timer;
use super::controlled_job::{ControlledJob, JobMembers};
use super::driver::Driver;
use super::entry::JobRecord;
use super::event_loop::{Loop, Order};
use super::means::Means;
use super::priority;
use crate::job::{Barriers, JobId};
use crate::limits::SliceLimits;
use crate::policy::GangPolicy;

/// An agent that runs gangs. When it is dropped, all jobs run as before.
pub struct Agent {
    orders: Mutex<Sender<Order>>,
    bell: Arc<OwnedFd>,
    thread: Option<JoinHandle<()>>,
    janitor: Option<JoinHandle<()>>,
    means: Means,
    next: Mutex<JobId>,
    real_time: bool,
}

/// A sentence that says why something is not possible.
pub type Refused = String;

impl Agent {
    /// Starts an agent for gangs on these CPUs. The pipe `alive` gets a byte four times a second, as a sign of life.
    ///
    /// # Errors
    /// The kernel refuses something that is essential.
    pub fn start(
        policy: Box<dyn GangPolicy>,
        limits: SliceLimits,
        cores: Vec<usize>,
        means: Means,
        alive: Option<PathBuf>,
    ) -> Result<Self, Refused> {
        let alive = alive.map(|path| open(&path)).transpose()?;
        let failed = |error: rustix::io::Errno| format!("the agent cannot start: {error}");
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let bell = Arc::new(eventfd(0, flags).map_err(failed)?);
        let timer = Timer::new().map_err(failed)?;
        let (orders, inbox) = channel();
        let (released, garbage) = channel::<ControlledJob>();
        let driver = Driver::new(policy, limits, cores, released);
        let (answer, answered) = channel();
        let its_bell = Arc::clone(&bell);
        let thread = thread::Builder::new().name("gang-agent".into()).spawn(move || {
            let _ = answer.send(priority::real_time().is_ok());
            Loop { driver, inbox, bell: its_bell, timer, alive, signed: 0 }.run();
        });
        let janitor = thread::Builder::new().name("gang-janitor".into());
        let janitor = janitor.spawn(move || garbage.into_iter().for_each(drop));
        let failed = |error: std::io::Error| format!("the agent cannot start: {error}");
        Ok(Agent {
            thread: Some(thread.map_err(failed)?),
            janitor: Some(janitor.map_err(failed)?),
            orders: Mutex::new(orders),
            bell,
            means,
            next: Mutex::new(1),
            real_time: answered.recv().unwrap_or(false),
        })
    }

    /// How jobs are stopped and ranked, and which methods are missing.
    pub fn means(&self) -> &Means {
        &self.means
    }

    /// Whether the agent has real-time priority.
    pub fn real_time(&self) -> bool {
        self.real_time
    }

    /// Takes over a job, which then waits for its slice. Returns its number.
    ///
    /// # Errors
    /// The job does not exist or may not be stopped.
    pub fn add(
        &self,
        name: &str,
        who: &JobMembers,
        threads: usize,
        weight: f64,
    ) -> Result<JobId, Refused> {
        let id = {
            let mut next = self.next.lock().unwrap_or_else(PoisonError::into_inner);
            *next += 1;
            *next - 1
        };
        let share = ((threads as f64 * weight).round() as usize).max(1);
        let held = ControlledJob::take(&self.means, &format!("job-{id}"), who, share)?;
        let entry = JobRecord::new(id, name.to_owned(), threads, weight, held);
        self.ask(move |driver| driver.add(entry))?;
        Ok(id)
    }

    /// Records how the threads of a job meet, as an external counter measured it.
    ///
    /// # Errors
    /// The agent has ended.
    pub fn met(&self, id: JobId, barriers: Barriers) -> Result<(), Refused> {
        self.ask(move |driver| {
            if let Some(entry) = driver.jobs.get_mut(&id) {
                entry.barriers = Some(barriers);
            }
        })
    }

    /// Lets a job run from now on, regardless of slices.
    ///
    /// # Errors
    /// The agent has ended.
    pub fn release(&self, id: JobId) -> Result<(), Refused> {
        self.ask(move |driver| driver.release(id))
    }

    /// Sends a signal to all processes of a job.
    ///
    /// # Errors
    /// The agent has ended, or the signal cannot be sent.
    pub fn signal(&self, id: JobId, number: i32) -> Result<(), Refused> {
        let unknown = || format!("there is no signal {number}");
        let signal = Signal::from_named_raw(number).ok_or_else(unknown)?;
        self.ask(move |driver| {
            let held = driver.jobs.get_mut(&id).and_then(|entry| entry.held.as_mut());
            let Some(held) = held else { return Ok(()) };
            held.control.signal(signal).map_err(|error| error.to_string())
        })?
    }

    /// Forgets a job: lets it run and removes its control groups.
    ///
    /// # Errors
    /// The agent has ended.
    pub fn forget(&self, id: JobId) -> Result<(), Refused> {
        self.ask(move |driver| driver.forget(id))
    }

    /// Runs a function on the driver, between two switches, and returns its result.
    ///
    /// # Errors
    /// The agent has ended.
    pub fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&mut Driver) -> T + Send + 'static,
    ) -> Result<T, Refused> {
        let (answer, answered) = channel();
        let order: Order = Box::new(move |driver| {
            let _ = answer.send(question(driver));
        });
        let over = || "the agent has ended".to_owned();
        let orders = self.orders.lock().unwrap_or_else(PoisonError::into_inner);
        orders.send(order).map_err(|_| over())?;
        drop(orders);
        let _ = write(&self.bell, &1_u64.to_ne_bytes());
        answered.recv().map_err(|_| over())
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        // The loop ends when no sender of orders is left.
        *self.orders.lock().unwrap_or_else(PoisonError::into_inner) = channel().0;
        let _ = write(&self.bell, &1_u64.to_ne_bytes());
        for thread in [self.thread.take(), self.janitor.take()].into_iter().flatten() {
            let _ = thread.join();
        }
    }
}

/// Opens the pipe without blocking, because a full pipe must not delay the loop.
fn open(path: &Path) -> Result<File, Refused> {
    let opened = File::options().write(true).custom_flags(libc::O_NONBLOCK).open(path);
    opened.map_err(|error| format!("{}: {error}", path.display()))
}
