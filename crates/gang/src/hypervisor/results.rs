//! Reports what the jobs did on the machine.

use super::machine::Machine;
use super::outcome::JobOutcome;
use super::thread::{State, Thread};
use super::time::{Nanos, seconds};
use crate::observer::Used;

/// What a job used since the last call.
pub fn used(machine: &mut Machine, run: usize) -> Used {
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

pub fn job_outcome(machine: &mut Machine, run: usize) -> JobOutcome {
    let threads = machine.runs[run].threads.clone();
    let spent = |state: State| {
        let each = machine.threads[threads.clone()].iter().map(|it| it.spent[state as usize]);
        seconds(each.sum())
    };
    let arrived = machine.runs[run].arrived;
    let finished = machine.runs[run].finished;
    let lifetime = |it: &Thread| {
        let end = if it.state == State::Ended { it.entered } else { machine.now };
        end - arrived
    };
    JobOutcome {
        finished: finished.map(seconds),
        ran: spent(State::Running),
        ready: spent(State::Ready),
        blocked: spent(State::Blocked),
        stopped: spent(State::Stopped),
        lifetime: seconds(machine.threads[threads.clone()].iter().map(lifetime).sum()),
        ends: threads.map(|it| std::mem::take(&mut machine.threads[it].ends)).collect(),
    }
}
