//! Reports what the jobs did on the machine.

use super::machine::SimulatedMachine;
use super::outcome::GangJobOutcome;
use super::thread::{Thread, ThreadState};
use super::time::{Nanos, seconds};
use crate::observer::Used;

/// What a job used since the last call.
pub fn used(machine: &mut SimulatedMachine, run: usize) -> Used {
    let threads = machine.runs[run].threads.clone();
    let count = threads.len() as f64;
    for thread in threads {
        machine.count(thread);
    }
    let run = &mut machine.runs[run];
    run.count(machine.now);
    let given = &mut run.given;
    let take = |time: &mut Nanos| seconds(std::mem::take(time));
    Used {
        given: count * take(&mut given.first),
        ran: take(&mut given.ran),
        ready: take(&mut given.ready),
        barriers: run.program.barriers(),
    }
}

pub fn job_outcome(machine: &mut SimulatedMachine, run: usize) -> GangJobOutcome {
    let threads = machine.runs[run].threads.clone();
    let spent = |state: ThreadState| {
        let each = machine.threads[threads.clone()].iter().map(|it| it.spent[state as usize]);
        seconds(each.sum())
    };
    let arrived = machine.runs[run].arrived;
    let finished = machine.runs[run].finished;
    let lifetime = |it: &Thread| {
        let end = if it.state == ThreadState::Ended { it.entered } else { machine.now };
        end - arrived
    };
    GangJobOutcome {
        finished: finished.map(seconds),
        ran: spent(ThreadState::Running),
        ready: spent(ThreadState::Ready),
        blocked: spent(ThreadState::Blocked),
        stopped: spent(ThreadState::Stopped),
        lifetime: seconds(machine.threads[threads.clone()].iter().map(lifetime).sum()),
        ends: threads.map(|it| std::mem::take(&mut machine.threads[it].ends)).collect(),
    }
}
