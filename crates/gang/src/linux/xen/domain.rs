//! A domain of Xen as a job.

use std::io;

use rustix::io::Errno;

use super::library::{Library, Xen};
use crate::linux::clock::{Nanos, now};
use crate::linux::control::{Control, Left};
use crate::linux::means::Stopping;
use crate::linux::usage::Counts;

/// A domain that the agent controls.
#[derive(Debug)]
pub struct Domain {
    xen: Xen,
    number: u32,
    uuid: [u8; 16],
    /// It is paused by the agent. Xen counts pauses, so none is made twice or taken back twice.
    paused: bool,
    /// Nanoseconds that each virtual processor has had, when they were looked at last.
    had: Vec<u64>,
    /// When they were looked at last, or let run after that.
    since: Nanos,
    did: Counts,
}

impl Domain {
    /// Takes a domain, paused. `Err` is a sentence.
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
        let did = Counts::default();
        let mut held = Domain { xen, number, uuid, paused: false, had, since: now(), did };
        held.stop().map_err(|error| format!("domain {number} cannot be paused: {error}"))?;
        Ok(held)
    }

    /// Counts what the virtual processors did since the last look. Xen says how long each had a core, and whether it is
    /// blocked at this moment, but not for how long it was ready. Whatever one that is not blocked did not run is taken
    /// as ready, and what one that is blocked did run is taken off, so that the average over many looks is right.
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

impl Control for Domain {
    fn stop(&mut self) -> io::Result<()> {
        if self.paused {
            return Ok(());
        }
        // A domain that has ended is heard of by `left`.
        unless_gone(self.look())?;
        unless_gone(self.xen.pause(self.number))?;
        self.paused = true;
        Ok(())
    }

    /// A domain that is still paused was not let run by the watchdog.
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
            // The watchdog has let it run already.
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

    fn counts(&mut self) -> Option<Counts> {
        if !self.paused {
            self.look().ok()?;
        }
        Some(self.did)
    }

    fn left(&self) -> Option<Left> {
        // Where Xen does not answer, it is asked again at the next look.
        let known = self.xen.domain(self.number).ok()?;
        let lives = known.is_some_and(|known| known.uuid == self.uuid && !known.over);
        (!lives).then_some(Left::Ended)
    }

    fn stopping(&self) -> Stopping {
        Stopping::Pause
    }
}

/// A domain that was taken and could not be handed on is not left paused.
impl Drop for Domain {
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
