//! Computes metrics of a run for users and for the machine.

use topolane_fabric::Fabric;
use topolane_placement::{Quality, Share, least_aph};

use crate::gpu_use::{allocated_gpus, gpu_load};
use crate::shared_links::{links_shared, stays};
use crate::simulate::Outcome;
use crate::workload::Workload;

/// Upper limits of the job-size bins in the SC'18 figures, in nodes; the last bin has none.
pub const SIZE_BINS: [u32; 6] = [1, 4, 18, 64, 128, 256];

/// The shortest run time used in the bounded slowdown, in seconds.
const SLOWDOWN_BOUND: f64 = 10.0;

/// The mean wait of jobs in a range of sizes.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct SizeBin {
    /// The smallest number of nodes.
    pub low: u32,
    /// The largest number of nodes.
    pub high: u32,
    /// The number of jobs of these sizes.
    pub jobs: u64,
    /// The mean wait of these jobs in seconds.
    pub mean_wait: f64,
}

/// The state of the machine at a full minute.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Minute {
    /// Seconds since the workload's epoch.
    pub time: f64,
    /// Nodes in use; a shared node counts by its cores in use.
    pub busy_nodes: f64,
    /// The number of waiting jobs.
    pub waiting_jobs: u32,
}

/// All metrics of a run. Columns with one value per job are in the order of [`Outcome::jobs`].
#[derive(Debug, Clone, Default)]
pub struct Metrics {
    /// The average pairwise hops (APH) of each job.
    pub aph: Vec<f64>,
    /// The least possible APH for the job's number of nodes, on the empty machine.
    pub least_aph: Vec<f64>,
    /// The hop-bytes of each job, for one byte between every pair of nodes.
    pub hop_bytes: Vec<f64>,
    /// The number of links that each job may have shared with another job at some time.
    pub links_shared: Vec<u32>,
    /// Seconds from submission to start.
    pub wait: Vec<f64>,
    /// Bounded slowdown: (wait + run) / max(run, 10 s), at least 1.
    pub slowdown: Vec<f64>,
    /// Samples at each full minute.
    pub minutes: Vec<Minute>,
    /// Mean wait by job size.
    pub wait_by_size: Vec<SizeBin>,
    /// Time from the first submission to the last end, in seconds.
    pub makespan: f64,
    /// Share of the machine in use, over the makespan.
    pub utilization: f64,
    /// The share of the machine in use while the queue is not empty; 0 if no job ever waits.
    pub utilization_while_waiting: f64,
    /// The share of the GPUs that jobs hold, over the makespan; `None` for a machine without GPUs.
    pub allocated_gpus: Option<f64>,
    /// GPU-seconds that jobs ask for, divided by (GPUs x span of submissions); `None` for a machine without GPUs.
    pub gpu_load: Option<f64>,
}

impl Metrics {
    /// Computes the metrics of a run.
    pub fn of(workload: &Workload, fabric: &Fabric, outcome: &Outcome) -> Self {
        let mut metrics = Metrics::default();
        let least = least_aph(fabric);
        for job in &outcome.jobs {
            let nodes = job.placement.nodes();
            let quality = Quality::of(fabric, nodes);
            metrics.aph.push(quality.aph);
            metrics.hop_bytes.push(quality.pair_hops);
            metrics.least_aph.push(least.get(nodes.len() - 1).copied().unwrap_or_default());
            let wait = job.start - job.submitted;
            let run = job.finish - job.start;
            metrics.wait.push(wait);
            metrics.slowdown.push(((wait + run) / run.max(SLOWDOWN_BOUND)).max(1.0));
        }
        metrics.links_shared = links_shared(fabric, outcome.jobs.len(), stays(outcome));
        metrics.wait_by_size = wait_by_size(workload, outcome);
        metrics.follow(fabric, outcome);
        metrics.allocated_gpus = allocated_gpus(fabric, outcome, metrics.makespan);
        metrics.gpu_load = gpu_load(fabric, workload);
        metrics
    }

    /// Computes busy nodes and waiting jobs over time.
    fn follow(&mut self, fabric: &Fabric, outcome: &Outcome) {
        let mut events: Vec<(f64, f64, i32)> = Vec::with_capacity(3 * outcome.jobs.len());
        for job in &outcome.jobs {
            let held = match job.placement.share() {
                Share::Whole => job.placement.nodes().len() as f64,
                Share::Part(amounts) => job
                    .placement
                    .nodes()
                    .iter()
                    .map(|&node| amounts.cores() as f64 / f64::from(fabric.kind(node).cores()))
                    .sum(),
            };
            events.push((job.submitted, 0.0, 1));
            events.push((job.start, held, -1));
            events.push((job.finish, -held, 0));
        }
        events.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return };
        self.makespan = last.0 - first.0;
        let size = f64::from(fabric.nodes());
        let mut minute = (first.0 / 60.0).ceil() * 60.0;
        let (mut now, mut busy, mut waiting) = (first.0, 0.0, 0i32);
        let (mut used, mut used_waiting, mut time_waiting) = (0.0, 0.0, 0.0);
        for &(time, held, queued) in &events {
            while minute < time {
                self.minutes.push(Minute {
                    time: minute,
                    busy_nodes: busy,
                    waiting_jobs: waiting as u32,
                });
                minute += 60.0;
            }
            used += busy * (time - now);
            if waiting > 0 {
                used_waiting += busy * (time - now);
                time_waiting += time - now;
            }
            now = time;
            busy += held;
            waiting += queued;
        }
        if self.makespan > 0.0 {
            self.utilization = used / (size * self.makespan);
        }
        if time_waiting > 0.0 {
            self.utilization_while_waiting = used_waiting / (size * time_waiting);
        }
    }
}

fn wait_by_size(workload: &Workload, outcome: &Outcome) -> Vec<SizeBin> {
    let mut bins = Vec::new();
    let mut low = 1;
    for high in SIZE_BINS.into_iter().chain([u32::MAX]) {
        bins.push(SizeBin { low, high, ..SizeBin::default() });
        low = high.saturating_add(1);
    }
    for job in &outcome.jobs {
        let submitted = &workload.jobs[job.job];
        if let Some(bin) = bins.iter_mut().find(|bin| submitted.nodes <= bin.high) {
            bin.jobs += 1;
            bin.mean_wait += job.start - job.submitted;
        }
    }
    for bin in &mut bins {
        bin.mean_wait /= (bin.jobs as f64).max(1.0);
    }
    bins
}
