//! Small machines and workloads for the tests, and a driver that runs them on a clock of its own.
#![allow(dead_code)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use proptest::prelude::*;
use topolane_fabric::{Fabric, NodeIndex, pgft};
use topolane_placement::{
    Choice, FreeSlots, Occupancy, Placement, Policy, QueueRule, Refusal, Request, Share, Traits,
    policy,
};
use topolane_scheduler::queues::Conservative;
use topolane_scheduler::{Pass, QUEUES, Queue, Reservation, Scheduler, View, queue};

/// The number of nodes of [`machine`]: two pods of three leaves of four nodes.
pub const SIZE: u32 = 24;

pub fn machine() -> Arc<Fabric> {
    Arc::new(Fabric::build(&pgft("n", &[4, 3, 2], &[1, 2, 2], &[1, 1, 1])).unwrap())
}

/// The policy of that name; `blocks` and `last-run` are defined below.
pub fn rule(name: &str) -> Arc<dyn Policy> {
    match name {
        "blocks" => Arc::new(Blocks),
        "last-run" => Arc::new(LastRun),
        _ => Arc::from(policy(name, 5).unwrap()),
    }
}

pub const COUNTING: [&str; 5] = ["first-fit", "random", "scattered", "slurm-tree", "hop-bytes"];
/// Policies that may refuse a job although enough nodes are free. A job that they place while others run, they also
/// place while fewer run.
pub const PICKY: [&str; 3] = ["isolated", "blocks", "last-run"];

/// The disciplines that promise a start to the head alone.
pub const EASY: [&str; 3] = ["easy", "easy-strict", "easy-pinned"];
/// All disciplines that decide by the state and the queue alone.
pub fn disciplines() -> impl Iterator<Item = &'static str> {
    QUEUES.iter().map(|info| info.name).filter(|name| !["slurm", "recorded"].contains(name))
}

/// Gives a job an aligned block of idle nodes, whose size is the next power of two; of several such blocks, the last.
struct Blocks;

/// Gives a job neighbouring idle nodes: the last run of them that is long enough.
struct LastRun;

fn neighbours(
    request: &Request,
    free: &FreeSlots<'_>,
    starts: impl Iterator<Item = u32>,
    length: u32,
) -> Result<Choice, Refusal> {
    let wanted = request.nodes;
    let all = free.fabric().nodes();
    let fits = |start: &u32| {
        start + length.min(all - start) >= start + wanted
            && (*start..(start + length).min(all)).all(|node| free.contains(node))
    };
    let refused = Refusal::WouldShareLinks { wanted, free: free.total() };
    let found = starts.filter(fits).last().ok_or(refused)?;
    Ok(Choice::nodes((found..found + wanted).collect()))
}

impl Policy for Blocks {
    fn name(&self) -> &'static str {
        "blocks"
    }

    fn traits(&self) -> Traits {
        Traits::NONE
    }

    fn queue_rule(&self) -> Option<&dyn QueueRule> {
        Some(self)
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let block = request.nodes.next_power_of_two();
        neighbours(request, free, (0..free.fabric().nodes()).step_by(block as usize), block)
    }
}

impl QueueRule for Blocks {
    /// The nodes of the block that the job does not use.
    fn waste(&self, _: &Request, placement: &Placement, _: &Occupancy) -> f64 {
        let nodes = placement.nodes().len();
        (nodes.next_power_of_two() - nodes) as f64
    }
}

impl Policy for LastRun {
    fn name(&self) -> &'static str {
        "last-run"
    }

    fn traits(&self) -> Traits {
        Traits { depends_only_on_size: true, ..Traits::NONE }
    }

    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        _: &Occupancy,
    ) -> Result<Choice, Refusal> {
        neighbours(request, free, 0..=free.fabric().nodes() - request.nodes, request.nodes)
    }
}

/// One job. Times are small whole numbers, so that many coincide.
#[derive(Debug, Clone)]
pub struct Job {
    pub submit: f64,
    pub run: f64,
    pub walltime: f64,
    pub nodes: u32,
    pub share: Share,
}

impl Job {
    pub fn request(&self, id: u64) -> Request {
        Request { share: self.share.clone(), ..Request::whole_nodes(id, self.nodes, self.walltime) }
    }
}

/// Jobs in order of submission. Some have no run time, some run until their walltime, some have a walltime that is far
/// too long, and some are as wide as the machine.
pub fn jobs(most: usize) -> impl Strategy<Value = Vec<Job>> {
    let nodes = prop_oneof![4 => 1u32..6, 3 => 4u32..15, 1 => 12u32..=SIZE, 1 => Just(SIZE)];
    let run = prop_oneof![1 => Just(0u32), 6 => 1u32..12, 2 => 10u32..40];
    let extra = prop_oneof![3 => Just(0u32), 3 => 1u32..6, 2 => 20u32..80];
    let job = (0u32..60, run, extra, nodes, prop::bool::weighted(0.1)).prop_map(
        |(submit, run, extra, nodes, killed)| Job {
            submit: f64::from(submit),
            run: f64::from(if killed { run + 5 } else { run }),
            walltime: f64::from(if killed { run } else { run + extra }),
            nodes,
            share: Share::Whole,
        },
    );
    prop::collection::vec(job, 1..most).prop_map(sorted)
}

/// Jobs as [`jobs`] makes them, some of which share nodes.
pub fn mixed(most: usize) -> impl Strategy<Value = Vec<Job>> {
    let parts = prop::collection::vec(prop::option::weighted(0.6, 1u32..17), most);
    (jobs(most), parts).prop_map(|(mut jobs, parts)| {
        for (job, part) in jobs.iter_mut().zip(parts) {
            if let Some(cores) = part {
                job.share = Share::part(cores, 1 << 30);
            }
        }
        jobs
    })
}

fn sorted(mut jobs: Vec<Job>) -> Vec<Job> {
    jobs.sort_by(|a, b| a.submit.total_cmp(&b.submit));
    jobs
}

/// What happened in a run of the driver; lists are by job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    pub start: Vec<Option<f64>>,
    pub nodes: Vec<Vec<NodeIndex>>,
    /// Every reservation that a pass reported, in order.
    pub reservations: Vec<Reservation>,
}

/// Runs the jobs through the scheduler. At every instant at which something is due come first completions, then
/// arrivals, then one pass. A job ends at its run time or its walltime, whichever is first. `meddle` is called before
/// every pass.
pub fn drive(
    scheduler: &mut Scheduler,
    jobs: &[Job],
    mut meddle: impl FnMut(&mut Scheduler, f64),
) -> Run {
    let mut run = Run {
        start: vec![None; jobs.len()],
        nodes: vec![Vec::new(); jobs.len()],
        reservations: Vec::new(),
    };
    let mut ends: Vec<(f64, u64)> = Vec::new();
    let mut next = 0;
    loop {
        let arrival = jobs.get(next).map(|job| job.submit);
        let end = ends.iter().map(|end| end.0).min_by(f64::total_cmp);
        let due = [arrival, end].into_iter().flatten().min_by(f64::total_cmp);
        let Some(now) = due else { return run };
        for (_, id) in ends.iter().filter(|end| end.0 <= now) {
            assert!(scheduler.complete(*id));
        }
        ends.retain(|end| end.0 > now);
        while let Some(job) = jobs.get(next).filter(|job| job.submit <= now) {
            // Jobs that never fit the shapes of a policy are refused here and never start.
            let _ = scheduler.submit(job.request(next as u64), 0.0);
            next += 1;
        }
        meddle(scheduler, now);
        for start in scheduler.pass(now) {
            let job = &jobs[start.request.id as usize];
            assert!(run.start[start.request.id as usize].replace(now).is_none(), "started twice");
            run.nodes[start.request.id as usize] = start.placement.nodes().to_vec();
            ends.push((now + job.run.min(job.walltime), start.request.id));
        }
        run.reservations.extend(scheduler.last_pass().reservation);
    }
}

/// Runs the jobs through a new scheduler.
pub fn run(policy: &str, discipline: &str, jobs: &[Job]) -> Run {
    let mut scheduler = Scheduler::new(machine(), rule(policy), queue(discipline).unwrap());
    drive(&mut scheduler, jobs, |_, _| ())
}

/// Asserts that no core of a node is held twice at the same time.
pub fn no_core_twice(jobs: &[Job], run: &Run) {
    let span = |job: usize| {
        run.start[job].map(|start| (start, start + jobs[job].run.min(jobs[job].walltime)))
    };
    for at in (0..jobs.len()).filter_map(|job| run.start[job]) {
        let mut held: HashMap<NodeIndex, u32> = HashMap::new();
        for (job, asked) in jobs.iter().enumerate() {
            if span(job).is_some_and(|(start, end)| start <= at && at < end) {
                let cores = match &asked.share {
                    Share::Whole => 16,
                    Share::Part(amounts) => amounts.cores() as u32,
                };
                run.nodes[job].iter().for_each(|&node| *held.entry(node).or_default() += cores);
            }
        }
        assert!(held.values().all(|&cores| cores <= 16), "at {at}: {held:?}");
    }
}

/// The first promise to each job, by its identity.
pub type Promises = Arc<Mutex<HashMap<u64, f64>>>;

/// Conservative backfilling that records after every pass what it has promised.
pub struct Watched {
    pub inner: Conservative,
    pub first: Promises,
}

impl Queue for Watched {
    fn name(&self) -> &'static str {
        "conservative"
    }

    fn pass(&mut self, view: &mut View<'_>) -> Pass {
        let pass = self.inner.pass(view);
        let mut first = self.first.lock().unwrap();
        for (id, start) in self.inner.promised() {
            first.entry(id).or_insert(start);
        }
        pass
    }
}

/// Runs the jobs under conservative backfilling. Returns the run and the first promise to each job.
pub fn promised(policy: &str, jobs: &[Job]) -> (Run, HashMap<u64, f64>) {
    let first = Promises::default();
    let watched = Watched { inner: Conservative::default(), first: Arc::clone(&first) };
    let mut scheduler = Scheduler::new(machine(), rule(policy), Box::new(watched));
    let run = drive(&mut scheduler, jobs, |_, _| ());
    let first = first.lock().unwrap().clone();
    (run, first)
}
