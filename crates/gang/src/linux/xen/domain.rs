//! A Xen domain as a job.

use std::io;

use rustix::io::Errno;

use super::library::{Library, Xen};
use crate::linux::clock::{Nanos, now};
use crate::linux::control::{Control, ControlEnd};
use crate::linux::means::Stopping;
use crate::linux::usage::CoreTimes;

/// A domain under the agent's control.
#[derive(Debug)]
pub struct XenDomain {
    xen: Xen,
    number: u32,
    uuid: [u8; 16],
    /// Whether the agent has paused it. Xen counts pauses, so none may be made or undone twice.
    paused: bool,
    /// The time that each virtual processor had run at the last look, in nanoseconds.
    had: Vec<u64>,
    /// The time of the last look, or when the domain was started after it.
    since: Nanos,
    did: CoreTimes,
}

impl XenDomain {
    /// Takes a domain and pauses it. `Err` is a sentence.
    pub fn take(library: &Library, number: u32, uuid: [u8; 16]) -> Result<Self, String> {
        let failed = |error: io::Error| format!("Xen cannot be asked for domain {number}: {error}");
        let xen = Xen::open(*library).map_err(failed)?;
        let known = xen.domain(number).map_err(failed)?;
        let known = known.filter(|known| known.uuid == uuid && !known.over);
        let known = known.ok_or_else(|| format!("there is no domain {number} of that UUID"))?;
        if known.paused {
            return Err(format!("domain {number} is paused already, not by this agent"));
        }
        let had = (0..known.vcpus).map(|vcpu| Ok(xen.vcpu(number, vcpu)?.cpu_time));
        let had = had.collect::<io::Result<Vec<u64>>>().map_err(failed)?;
        let did = CoreTimes::default();
        let mut held = XenDomain { xen, number, uuid, paused: false, had, since: now(), did };
        held.stop().map_err(|error| format!("domain {number} cannot be paused: {error}"))?;
        Ok(held)
    }

    /// Counts what the virtual processors did since the last look. Xen gives the time that each had a core and whether
    /// it is blocked at this moment, but not how long it was ready. So time in which an unblocked one did not run
    /// counts as ready, and the running time of a blocked one is subtracted: the average over many looks is right.
    fn look(&mut self) -> io::Result<()> {
        let now = now();
        let elapsed = signed(now.saturating_sub(self.since));
        for (number, had) in (0..).zip(&mut self.had) {
            let vcpu = self.xen.vcpu(self.number, number)?;
            let ran = vcpu.cpu_time.saturating_sub(*had);
            let waits = vcpu.online == 0 || vcpu.blocked != 0;
            self.did.ran += ran;
            self.did.ready += if waits { 0 } else { elapsed } - signed(ran);
            *had = vcpu.cpu_time;
        }
        self.since = now;
        Ok(())
    }

    fn pin_all(&self, cores: Option<&[usize]>) -> io::Result<()> {
        (0..)
            .zip(&self.had)
            .try_for_each(|(vcpu, _)| unless_gone(self.xen.pin(self.number, vcpu, cores)))
    }
}

impl Control for XenDomain {
    fn stop(&mut self) -> io::Result<()> {
        if self.paused {
            return Ok(());
        }
        // `left` reports a domain that has ended.
        unless_gone(self.look())?;
        unless_gone(self.xen.pause(self.number))?;
        self.paused = true;
        Ok(())
    }

    /// Pauses the domain again, if the watchdog has started it.
    fn stop_again(&mut self) -> io::Result<()> {
        let known = self.xen.domain(self.number)?;
        if known.is_some_and(|known| known.uuid == self.uuid && !known.paused) {
            self.paused = false;
            self.since = now();
        }
        self.stop()
    }

    fn start(&mut self) -> io::Result<()> {
        if !self.paused {
            return Ok(());
        }
        self.paused = false;
        self.since = now();
        match self.xen.unpause(self.number) {
            // The watchdog has started it already.
            Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => Ok(()),
            done => unless_gone(done),
        }
    }

    fn pin(&mut self, cores: &[usize]) -> io::Result<()> {
        self.pin_all(Some(cores))
    }

    fn unpin(&mut self) -> io::Result<()> {
        self.pin_all(None)
    }

    fn counts(&mut self) -> Option<CoreTimes> {
        if !self.paused {
            self.look().ok()?;
        }
        Some(self.did)
    }

    fn left(&self) -> Option<ControlEnd> {
        // If Xen does not answer, the next look asks again.
        let known = self.xen.domain(self.number).ok()?;
        let lives = known.is_some_and(|known| known.uuid == self.uuid && !known.over);
        (!lives).then_some(ControlEnd::Ended)
    }

    fn stopping(&self) -> Stopping {
        Stopping::Pause
    }
}

/// Ensures that a domain which could not be handed over does not stay paused.
impl Drop for XenDomain {
    fn drop(&mut self) {
        let _ = self.start();
    }
}

fn unless_gone(done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if error.raw_os_error() == Some(Errno::SRCH.raw_os_error()) => Ok(()),
        done => done,
    }
}

fn signed(nanos: Nanos) -> i64 {
    i64::try_from(nanos).unwrap_or(i64::MAX)
}
