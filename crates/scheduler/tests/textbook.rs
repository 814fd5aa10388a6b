//! Over policies that only count nodes, the disciplines start jobs as their textbook forms do. The textbook forms are
//! written here from counts alone.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

mod common;

use common::{COUNTING, Job, SIZE, jobs, machine, rule, run};
use proptest::prelude::*;
use topolane_scheduler::{Scheduler, queue};

/// A machine that knows only how many nodes are free.
struct Counts<'a> {
    jobs: &'a [Job],
    now: f64,
    free: u32,
    /// The waiting jobs in order of submission.
    waiting: Vec<usize>,
    running: Vec<usize>,
    start: Vec<Option<f64>>,
}

impl Counts<'_> {
    fn end(&self, job: usize) -> f64 {
        self.start[job].unwrap() + self.jobs[job].run.min(self.jobs[job].walltime)
    }

    fn expected_end(&self, job: usize) -> f64 {
        self.start[job].unwrap() + self.jobs[job].walltime
    }

    fn start(&mut self, job: usize) {
        self.free -= self.jobs[job].nodes;
        self.start[job] = Some(self.now);
        self.waiting.retain(|&other| other != job);
        self.running.push(job);
    }
}

/// Calls `pass` once at every instant, after the completions and then the arrivals of that instant. The second argument
/// of `pass` says whether a job ended. Returns the start of each job.
fn play(size: u32, jobs: &[Job], mut pass: impl FnMut(&mut Counts<'_>, bool)) -> Vec<Option<f64>> {
    let start = vec![None; jobs.len()];
    let mut state =
        Counts { jobs, now: 0.0, free: size, waiting: Vec::new(), running: Vec::new(), start };
    let mut next = 0;
    loop {
        let ends = state.running.iter().map(|&job| state.end(job));
        let due = ends.chain(jobs.get(next).map(|job| job.submit)).min_by(f64::total_cmp);
        let Some(now) = due else { return state.start };
        state.now = now;
        let (over, still): (Vec<usize>, Vec<usize>) =
            state.running.iter().partition(|&&job| state.end(job) <= now);
        state.running = still;
        state.free += over.iter().map(|&job| jobs[job].nodes).sum::<u32>();
        while next < jobs.len() && jobs[next].submit <= now {
            state.waiting.extend((jobs[next].nodes <= size).then_some(next));
            next += 1;
        }
        pass(&mut state, !over.is_empty());
    }
}

/// Starts jobs in order while they fit. Returns the first job that does not fit.
fn in_order(state: &mut Counts<'_>) -> Option<usize> {
    while let Some(&first) = state.waiting.first() {
        if state.jobs[first].nodes > state.free {
            return Some(first);
        }
        state.start(first);
    }
    None
}

/// EASY (Mu'alem and Feitelson 2001): the shadow time is the time at which enough running jobs will have ended for the
/// head to start. The extra nodes are those left over then. A job is backfilled if there are nodes and it ends by the
/// shadow time or takes no more than the extra nodes.
///
/// strict: only jobs that end by the shadow time are backfilled.
fn easy(state: &mut Counts<'_>, strict: bool) {
    let Some(head) = in_order(state) else { return };
    let mut ends: Vec<(f64, u32)> =
        state.running.iter().map(|&job| (state.expected_end(job), state.jobs[job].nodes)).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut then = state.free;
    let mut shadow = f64::INFINITY;
    for (end, nodes) in ends {
        if end <= shadow {
            then += nodes;
        }
        if then >= state.jobs[head].nodes && shadow == f64::INFINITY {
            shadow = end;
        }
    }
    let mut extra = if strict { 0 } else { then - state.jobs[head].nodes };
    for job in state.waiting.clone().into_iter().skip(1) {
        let Job { nodes, walltime, .. } = state.jobs[job];
        let in_time = state.now + walltime <= shadow;
        if nodes <= state.free && (in_time || nodes <= extra) {
            extra -= if in_time { 0 } else { nodes };
            state.start(job);
        }
    }
}

fn lasts(state: &Counts<'_>, job: usize) -> f64 {
    state.jobs[job].walltime.max(1.0)
}

/// Conservative (Mu'alem and Feitelson 2001): every job is promised the earliest time from which on enough nodes are
/// neither held by running jobs nor promised to others. They must be free for as long as the job may run and at least
/// for a second.
#[derive(Default)]
struct Conservative {
    /// The promised jobs and their starts.
    promised: Vec<(usize, f64)>,
}

impl Conservative {
    /// The number of nodes that are neither held nor promised to others at this time.
    fn free_at(&self, state: &Counts<'_>, size: u32, time: f64) -> i64 {
        let running = state.running.iter().map(|&job| (job, state.start[job].unwrap()));
        let spans = running.chain(self.promised.iter().copied());
        let there = spans.filter(|&(job, start)| start <= time && time < start + lasts(state, job));
        i64::from(size) - there.map(|(job, _)| i64::from(state.jobs[job].nodes)).sum::<i64>()
    }

    fn earliest(&self, state: &Counts<'_>, size: u32, job: usize) -> f64 {
        let (nodes, walltime) = (state.jobs[job].nodes, lasts(state, job));
        let running =
            state.running.iter().map(|&other| state.start[other].unwrap() + lasts(state, other));
        let promised =
            self.promised.iter().flat_map(|&(other, start)| [start, start + lasts(state, other)]);
        let mut times: Vec<f64> =
            running.chain(promised).chain([state.now]).filter(|&t| t >= state.now).collect();
        times.sort_by(f64::total_cmp);
        let fits = |&&start: &&f64| {
            let steps = times.iter().filter(|&&t| t == start || start < t && t < start + walltime);
            steps.into_iter().all(|&t| self.free_at(state, size, t) >= i64::from(nodes))
        };
        *times.iter().find(fits).unwrap()
    }

    /// When a job has ended, each waiting job in turn exchanges its promise for the earliest one that leaves all other
    /// promises in place. Then the jobs promised for now start.
    fn pass(&mut self, state: &mut Counts<'_>, size: u32, ended: bool) {
        for job in state.waiting.clone() {
            let old = self.promised.iter().position(|&(other, _)| other == job);
            let due = old.is_none_or(|index| self.promised[index].1 <= state.now);
            if ended || due {
                old.map(|index| self.promised.remove(index));
                let at = self.earliest(state, size, job);
                self.promised.push((job, at));
            }
            let (_, at) = *self.promised.iter().find(|&&(other, _)| other == job).unwrap();
            if at <= state.now && state.jobs[job].nodes <= state.free {
                self.promised.retain(|&(other, _)| other != job);
                state.start(job);
            }
        }
    }
}

fn textbook(discipline: &str, size: u32, jobs: &[Job]) -> Vec<Option<f64>> {
    let mut conservative = Conservative::default();
    play(size, jobs, |state, ended| match discipline {
        "fcfs" => drop(in_order(state)),
        "easy" => easy(state, false),
        "easy-strict" => easy(state, true),
        _ => conservative.pass(state, size, ended),
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(80))]

    /// Over any policy that only needs enough free nodes, EASY, conservative and fcfs start every job at the time at
    /// which their textbook forms start it.
    #[test]
    fn counting_policies_give_the_textbook_disciplines(jobs in jobs(60)) {
        for discipline in ["fcfs", "easy", "easy-strict", "conservative"] {
            let expected = textbook(discipline, SIZE, &jobs);
            for policy in COUNTING {
                let got = run(policy, discipline, &jobs);
                prop_assert_eq!(&got.start, &expected, "{} over {}", discipline, policy);
            }
        }
    }

    /// The same on a machine of which three nodes are out of service from the beginning, where
    /// reservations name states and not numbers.
    #[test]
    fn so_they_do_on_what_is_left_of_a_machine(jobs in jobs(40)) {
        for discipline in ["fcfs", "easy", "easy-strict", "conservative"] {
            let fitting: Vec<Job> = jobs.iter().filter(|job| job.nodes <= SIZE - 3).cloned().collect();
            let expected = textbook(discipline, SIZE - 3, &fitting);
            for policy in ["first-fit", "random"] {
                let mut scheduler = Scheduler::new(machine(), rule(policy), queue(discipline).unwrap());
                for node in [0, 5, 23] {
                    scheduler.set_in_service(node, false);
                }
                let got = common::drive(&mut scheduler, &fitting, |_, _| ());
                prop_assert_eq!(&got.start, &expected, "{} over {}", discipline, policy);
            }
        }
    }
}

fn job(submit: f64, run: f64, walltime: f64, nodes: u32) -> Job {
    Job { submit, run, walltime, nodes, share: topolane_placement::Share::Whole }
}

/// By hand: 20 of 24 nodes are busy until 10. The head wants 12 and gets them at 10, with 12 to spare. A job of 4 may
/// start now if it ends by 10. Jobs that end later may start while the 12 spare nodes and the 4 free ones last.
#[test]
fn easy_by_hand() {
    let jobs = [
        job(0.0, 10.0, 10.0, 20),
        job(1.0, 5.0, 5.0, 12),
        job(2.0, 9.0, 9.0, 5),
        job(2.0, 8.0, 8.0, 2),
        job(2.0, 50.0, 50.0, 2),
        job(2.0, 50.0, 50.0, 1),
    ];
    let run = run("first-fit", "easy", &jobs);
    assert_eq!(run.start, [0.0, 10.0, 10.0, 2.0, 2.0, 10.0].map(Some));
    assert!(run.reservations.iter().all(|promise| (promise.id, promise.at) == (1, 10.0)));
}

/// By hand: fcfs lets no job overtake. Conservative lets the last job start only where it delays neither of the two
/// before it. EASY also lets it start where it delays the second of them.
#[test]
fn conservative_protects_every_job_and_easy_the_head() {
    let jobs = [
        job(0.0, 10.0, 10.0, 14),
        job(1.0, 10.0, 10.0, 12),
        job(2.0, 10.0, 10.0, 24),
        job(3.0, 30.0, 30.0, 10),
    ];
    assert_eq!(run("first-fit", "fcfs", &jobs).start, [0.0, 10.0, 20.0, 30.0].map(Some));
    assert_eq!(run("first-fit", "easy", &jobs).start, [0.0, 10.0, 33.0, 3.0].map(Some));
    assert_eq!(run("first-fit", "conservative", &jobs).start, [0.0, 10.0, 20.0, 30.0].map(Some));
}
