//! Samples the free capacity of the machine during a run.

use serde::Serialize;
use topolane_fabric::Fabric;
use topolane_fabric::resources::{CORES, MEMORY};
use topolane_placement::{
    Amounts, GpuPart, Occupancy, Policy, Request, Room, RoomQuestion, Share, Stranded,
};

use crate::workload::{Job, Workload};

/// The number of samples, at equal intervals from the first submission to the last.
const MOMENTS: u32 = 720;

/// The free capacity of a machine with GPUs, as means over the samples.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RoomFacts {
    /// The number of samples.
    pub moments: u32,
    /// The GPUs of the machine.
    pub gpus: f64,
    /// The free GPUs.
    pub free: f64,
    /// The levels of which one group may have to hold a job, in the order of [`FitFacts`].
    pub levels: Vec<String>,
    /// For each size, the number of further jobs that fit.
    pub fits: Vec<FitFacts>,
    /// Free GPUs that no job can use.
    pub stranded: Stranded,
    /// The largest job, and how often it could have started.
    pub largest: LargestFacts,
}

/// The number of further jobs of one size that fit inside one group of each level.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FitFacts {
    /// The GPUs of each job.
    pub size: u32,
    /// The mean number of jobs that fit, by level.
    pub jobs: Vec<f64>,
    /// The share of samples at which one job fits, by level.
    pub share_of_time: Vec<f64>,
}

/// How often the largest job of the workload could have started.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct LargestFacts {
    /// The number of the job.
    pub id: u64,
    /// The nodes of the job.
    pub nodes: u32,
    /// The share of samples at which the policy would have placed one more job like it.
    pub share_of_time: f64,
}

/// Takes the samples during a run.
pub(crate) struct RoomLog {
    question: RoomQuestion,
    largest: Request,
    /// The time of the next sample.
    next: f64,
    last: f64,
    distance: f64,
    facts: RoomFacts,
}

impl RoomLog {
    /// Returns a log for a run; `None` for a machine without GPUs, or if there are no jobs.
    pub fn of(workload: &Workload, fabric: &Fabric, segment: Option<u32>) -> Option<Self> {
        fabric.resources().index("gpu")?;
        let (first, last) = (workload.jobs.first()?.submit, workload.jobs.last()?.submit);
        let largest = workload.jobs.iter().max_by_key(|job| (job.nodes, gpus_of(job, workload)))?;
        let share = workload.share_on(largest, fabric).ok()?;
        let request = Request {
            nodes: largest.nodes,
            walltime: largest.walltime.unwrap_or(largest.run),
            share,
            ..Request::default()
        };
        let question = RoomQuestion {
            sizes: Room::usual_sizes(fabric),
            segment: segment.or_else(|| workload.jobs.iter().filter_map(|job| job.segment).max()),
            smallest: smallest(workload, fabric),
        };
        let facts = RoomFacts {
            moments: 0,
            gpus: 0.0,
            free: 0.0,
            levels: Vec::new(),
            fits: Vec::new(),
            stranded: Stranded::default(),
            largest: LargestFacts { id: largest.id, nodes: largest.nodes, share_of_time: 0.0 },
        };
        let distance = ((last - first) / f64::from(MOMENTS)).max(1.0);
        let next = first + distance;
        Some(RoomLog { question, largest: request, next, last, distance, facts })
    }

    /// Takes all samples before `now`; the state has not changed since the last call.
    pub fn follow(&mut self, now: f64, occupancy: &Occupancy, policy: &dyn Policy) {
        if self.next >= now.min(self.last) {
            return;
        }
        let room = Room::of(occupancy, &self.question);
        let could_start = policy.place(&self.largest, occupancy).is_ok();
        while self.next < now.min(self.last) {
            self.next += self.distance;
            self.count(&room, could_start);
        }
    }

    fn count(&mut self, room: &Room, could_start: bool) {
        let facts = &mut self.facts;
        if facts.moments == 0 {
            facts.gpus = room.total;
            facts.levels.clone_from(&room.levels);
            let none = vec![0.0; room.levels.len()];
            let fit = |size| FitFacts { size, jobs: none.clone(), share_of_time: none.clone() };
            facts.fits = room.fits.iter().map(|of| fit(of.size)).collect();
        }
        facts.moments += 1;
        facts.free += room.free;
        facts.stranded = facts.stranded.plus(&room.stranded.unwrap_or_default());
        facts.largest.share_of_time += f64::from(u8::from(could_start));
        for (sum, now) in facts.fits.iter_mut().zip(&room.fits) {
            for (level, &jobs) in now.jobs.iter().enumerate() {
                sum.jobs[level] += jobs as f64;
                sum.share_of_time[level] += f64::from(u8::from(jobs > 0));
            }
        }
    }

    /// Returns the means; `None` if no sample was taken.
    pub fn into_facts(mut self) -> Option<RoomFacts> {
        let moments = f64::from(self.facts.moments);
        let facts = &mut self.facts;
        facts.free /= moments;
        facts.stranded = facts.stranded.over(moments);
        facts.largest.share_of_time /= moments;
        for value in facts
            .fits
            .iter_mut()
            .flat_map(|fit| fit.jobs.iter_mut().chain(fit.share_of_time.iter_mut()))
        {
            *value /= moments;
        }
        (facts.moments > 0).then_some(self.facts)
    }
}

/// Thousandths of GPUs that a job takes on each node; the maximum for a whole node.
fn gpus_of(job: &Job, workload: &Workload) -> u64 {
    match &job.share {
        Share::Whole => u64::MAX,
        Share::Part(amounts) => amounts.gpu_thousandths(&workload.resources),
    }
}

/// The smallest amount of each resource that jobs on parts of nodes take, among jobs with GPUs.
fn smallest(workload: &Workload, fabric: &Fabric) -> Amounts {
    let gpu = fabric.resources().index("gpu");
    let mut least: Option<(u64, u64, u64)> = None;
    for job in &workload.jobs {
        let Share::Part(amounts) = &job.share else { continue };
        let gpus = amounts.gpu_thousandths(&workload.resources);
        if gpus > 0 {
            let (cores, memory, fewest) = least.unwrap_or((u64::MAX, u64::MAX, u64::MAX));
            least =
                Some((cores.min(amounts.cores()), memory.min(amounts.memory()), fewest.min(gpus)));
        }
    }
    let (Some(gpu), Some((cores, memory, thousandths))) = (gpu, least) else {
        return Amounts::default();
    };
    let mut counts = vec![0; gpu + 1];
    (counts[CORES], counts[MEMORY], counts[gpu]) = (cores, memory, thousandths / 1_000);
    let part = u16::try_from(thousandths).ok().and_then(|part| GpuPart::new(gpu, part));
    Amounts::of(&counts).with_gpu_part(part)
}
