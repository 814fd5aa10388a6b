//! Summarises a run in a few figures: means, quantiles and counts.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::failures::FailureCount;
use crate::metrics::Metrics;
use crate::network::Network;
use crate::room::RoomFacts;
use crate::simulate::{CutShort, JobOutcome, Outcome, RunOptions};
use crate::workload::Workload;

/// The figures of a run, as in `summary.json`. Times are in seconds.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Nodes of the machine.
    pub nodes: u32,
    /// Jobs that ran.
    pub jobs: usize,
    /// Node-seconds that jobs ask for, divided by those available; `None` if all jobs are submitted at once.
    pub load: Option<f64>,
    /// Mean wait of jobs.
    pub mean_wait: f64,
    /// Mean wait weighted by node-seconds, so that small jobs which overtake do not hide the waits of wide jobs.
    pub mean_wait_by_work: f64,
    /// Median wait.
    pub median_wait: f64,
    /// 95th percentile of waits.
    pub p95_wait: f64,
    /// Mean wait by job size.
    pub wait_by_size: Vec<SizeRow>,
    /// Share of the machine in use.
    pub utilization: f64,
    /// The share of the machine in use while the queue is not empty.
    pub utilization_while_waiting: f64,
    /// The share of the GPUs that jobs hold, over the makespan; absent on a machine without GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allocated_gpus: Option<f64>,
    /// GPU-seconds that jobs ask for, divided by (GPUs x span of submissions); absent on a machine without GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_load: Option<f64>,
    /// Time from the first submission to the last end.
    pub makespan: f64,
    /// Mean time from submission to end.
    pub mean_turnaround: f64,
    /// Mean bounded slowdown.
    pub mean_slowdown: f64,
    /// Mean of the average pairwise hops of jobs of several nodes.
    pub mean_aph: f64,
    /// The least possible mean of these jobs, on an empty machine.
    pub mean_least_aph: f64,
    /// Mean hop-bytes of these jobs.
    pub mean_hop_bytes: f64,
    /// The number of jobs that may have shared links with another job.
    pub jobs_sharing_links: usize,
    /// The mean share of full bandwidth of jobs on links of their own, weighted by node-seconds; 1 if there are none.
    pub mean_bandwidth_share: f64,
    /// How often the head of the queue was refused although enough nodes were free.
    pub fragmentation: Fragmentation,
    /// The number of moves of running jobs.
    pub moves: u64,
    /// Jobs that ran past their walltime because they had been stopped: they were moved, or waited for jobs to leave
    /// their nodes.
    pub moved_past_walltime: usize,
    /// The number of searches of the policy.
    pub searches: u64,
    /// The number of searches that reached a bound.
    pub searches_cut_short: u64,
    /// Jobs ended at their walltime.
    pub killed_at_walltime: usize,
    /// Jobs without a requested walltime.
    pub without_walltime: usize,
    /// Jobs that started later than the log says.
    pub late_against_log: usize,
    /// Jobs that did not run, by reason.
    pub left_out: BTreeMap<String, u64>,
    /// How many further jobs would have fitted; absent on a machine without GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<RoomFacts>,
    /// The effects of preemption; absent if there was none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preemption: Option<PreemptionFacts>,
    /// The effects of node failures; absent if there were no failures and no spare nodes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<FailureFacts>,
    /// The effects of outages; absent if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outages: Option<OutageFacts>,
    /// How jobs slowed each other down on the network; absent for a run without a network.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contention: Option<ContentionFacts>,
}

/// The mean wait of jobs in a range of sizes.
#[derive(Debug, Clone, Serialize)]
pub struct SizeRow {
    /// The smallest number of nodes.
    pub low: u32,
    /// The largest number of nodes; `None`: the whole machine.
    pub high: Option<u32>,
    /// The number of jobs of these sizes.
    pub jobs: u64,
    /// The mean wait of these jobs.
    pub mean_wait: f64,
}

/// How often and for how long the head of the queue was refused although enough nodes were free.
#[derive(Debug, Clone, Serialize)]
pub struct Fragmentation {
    /// The number of heads affected.
    pub jobs: usize,
    /// The total time in seconds.
    pub seconds: f64,
}

/// Runs that other jobs preempted.
#[derive(Debug, Clone, Serialize)]
pub struct PreemptionFacts {
    /// Preempted runs whose jobs were requeued.
    pub requeued: usize,
    /// Preempted runs whose jobs were cancelled.
    pub cancelled: usize,
    /// Node-seconds of lost work.
    pub node_seconds_lost: f64,
}

impl PreemptionFacts {
    /// Returns the effects of preemption; `None` if there was none.
    fn of(outcome: &Outcome) -> Option<Self> {
        let made_room = |job: &&JobOutcome| {
            matches!(job.cut_short, Some(CutShort::Requeued | CutShort::Cancelled))
        };
        let victims: Vec<&JobOutcome> = outcome.jobs.iter().filter(made_room).collect();
        let requeued =
            victims.iter().filter(|job| job.cut_short == Some(CutShort::Requeued)).count();
        let lost = |job: &&JobOutcome| job.placement.nodes().len() as f64 * job.alone;
        (!victims.is_empty()).then(|| PreemptionFacts {
            requeued,
            cancelled: victims.len() - requeued,
            node_seconds_lost: victims.iter().map(lost).sum(),
        })
    }
}

/// The effects of node failures.
#[derive(Debug, Clone, Serialize)]
pub struct FailureFacts {
    /// The number of node failures.
    pub failures: u64,
    /// The number of interruptions of jobs.
    pub interruptions: u64,
    /// Interruptions after which the job continued at once, on a spare node of the same domain.
    pub absorbed: u64,
    /// Node-seconds spent on restarts and on work that was done again.
    pub node_seconds_lost: f64,
    /// The number of spare nodes wanted in each domain.
    pub spares: u32,
    /// Node-seconds for which spare nodes were reserved.
    pub node_seconds_spare: f64,
}

impl FailureFacts {
    fn of(count: FailureCount, options: &RunOptions) -> Self {
        FailureFacts {
            failures: count.failures,
            interruptions: count.interruptions,
            absorbed: count.absorbed,
            node_seconds_lost: count.node_seconds_lost,
            spares: options.spares,
            node_seconds_spare: count.node_seconds_spare,
        }
    }
}

/// The effects of outages.
#[derive(Debug, Clone, Serialize)]
pub struct OutageFacts {
    /// The number of outages.
    pub outages: usize,
    /// The number of jobs affected.
    pub affected: usize,
    /// The numbers of the affected jobs.
    pub ids: Vec<u64>,
}

/// How much longer jobs of several nodes ran than they would have alone.
#[derive(Debug, Clone, Serialize)]
pub struct ContentionFacts {
    /// The name of the contention model.
    pub model: String,
    /// The name of the routing.
    pub routing: String,
    /// The share of its time alone for which a job communicates.
    pub communication: f64,
    /// The slowdown of all these jobs.
    #[serde(flatten)]
    pub all: SlowdownSpread,
    /// Node-seconds lost to contention.
    pub node_seconds_lost: f64,
    /// Jobs that exceeded their walltime.
    pub overran: usize,
    /// Heads of the queue that started later than first promised.
    pub late_heads: usize,
    /// The slowdown of the jobs of each pattern.
    pub by_pattern: Vec<OfPattern>,
}

/// The slowdown of the jobs of one pattern.
#[derive(Debug, Clone, Serialize)]
pub struct OfPattern {
    /// The name of the pattern.
    pub pattern: String,
    /// The slowdown of its jobs.
    #[serde(flatten)]
    pub suffered: SlowdownSpread,
}

/// The distribution of slowdowns: run time divided by run time alone.
#[derive(Debug, Clone, Serialize)]
pub struct SlowdownSpread {
    /// The number of jobs.
    pub jobs: usize,
    /// The number of jobs with a slowdown above 1.
    pub slowed: usize,
    /// Mean slowdown.
    pub mean: f64,
    /// 95th percentile of the slowdown.
    pub p95: f64,
    /// Largest slowdown.
    pub max: f64,
}

impl Summary {
    /// Computes the figures of a run.
    pub fn of(
        workload: &Workload,
        machine_nodes: u32,
        outcome: &Outcome,
        metrics: &Metrics,
        options: &RunOptions,
    ) -> Self {
        let mut waits = metrics.wait.clone();
        waits.sort_unstable_by(f64::total_cmp);
        // Average hops have no meaning for a job of one node.
        let several: Vec<usize> = (0..outcome.jobs.len())
            .filter(|&index| outcome.jobs[index].placement.nodes().len() > 1)
            .collect();
        let over_several = |values: &[f64]| mean(several.iter().map(|&index| values[index]));
        let killed = outcome.jobs.iter().filter(|job| job.killed).count();
        let turnaround = |job: &JobOutcome| job.finish - job.submitted;
        let (searches, searches_cut_short) = outcome.searches;
        Summary {
            nodes: machine_nodes,
            jobs: outcome.jobs.iter().filter(|job| !job.is_interrupted()).count(),
            load: Some(workload.load(machine_nodes)).filter(|load| load.is_finite()),
            mean_wait: mean(metrics.wait.iter().copied()),
            mean_wait_by_work: by_work(&outcome.jobs, &metrics.wait).unwrap_or(0.0),
            median_wait: quantile(&waits, 0.5),
            p95_wait: quantile(&waits, 0.95),
            wait_by_size: wait_by_size(metrics),
            utilization: metrics.utilization,
            utilization_while_waiting: metrics.utilization_while_waiting,
            allocated_gpus: metrics.allocated_gpus,
            gpu_load: metrics.gpu_load,
            makespan: metrics.makespan,
            mean_turnaround: mean(outcome.jobs.iter().map(turnaround)),
            mean_slowdown: mean(metrics.slowdown.iter().copied()),
            mean_aph: over_several(&metrics.aph),
            mean_least_aph: over_several(&metrics.least_aph),
            mean_hop_bytes: over_several(&metrics.hop_bytes),
            jobs_sharing_links: metrics.links_shared.iter().filter(|&&links| links > 0).count(),
            mean_bandwidth_share: mean_bandwidth_share(&outcome.jobs),
            fragmentation: Fragmentation {
                jobs: outcome.fragmented_jobs,
                seconds: outcome.fragmented_seconds,
            },
            moves: outcome.moves,
            moved_past_walltime: outcome
                .jobs
                .iter()
                .filter(|job| job.past_walltime() > 0.0)
                .count(),
            searches,
            searches_cut_short,
            killed_at_walltime: killed,
            without_walltime: workload.without_walltime(),
            late_against_log: outcome.late_against_log,
            left_out: skipped(workload, outcome),
            room: outcome.room.clone(),
            preemption: PreemptionFacts::of(outcome),
            failures: outcome.failures.map(|count| FailureFacts::of(count, options)),
            outages: (!options.outages.is_empty())
                .then(|| OutageFacts::of(workload, outcome, options.outages.len())),
            contention: options
                .network
                .as_ref()
                .map(|network| ContentionFacts::of(outcome, network)),
        }
    }
}

impl OutageFacts {
    fn of(workload: &Workload, outcome: &Outcome, outages: usize) -> Self {
        let affected = outcome.jobs.iter().filter(|job| job.affected);
        let ids: Vec<u64> = affected.map(|job| workload.jobs[job.job].id).collect();
        OutageFacts { outages, affected: ids.len(), ids }
    }
}

impl ContentionFacts {
    fn of(outcome: &Outcome, network: &Network) -> Self {
        let several = || outcome.jobs.iter().filter(|job| job.placement.spans_nodes());
        let lost = |job: &JobOutcome| {
            job.placement.nodes().len() as f64 * (job.finish - job.start - job.alone)
        };
        let of_pattern = |index| OfPattern {
            pattern: network.pattern_name(index),
            suffered: SlowdownSpread::of(several().filter(|job| job.pattern == index)),
        };
        ContentionFacts {
            model: network.model.name.to_owned(),
            routing: network.routing.name().to_owned(),
            communication: network.communication,
            all: SlowdownSpread::of(several()),
            node_seconds_lost: several().map(lost).sum::<f64>(),
            overran: several().filter(|job| job.overran).count(),
            late_heads: outcome.late_heads,
            by_pattern: (0..network.patterns.len()).map(of_pattern).collect(),
        }
    }
}

impl SlowdownSpread {
    fn of<'a>(jobs: impl Iterator<Item = &'a JobOutcome>) -> Self {
        let mut values: Vec<f64> = jobs.map(JobOutcome::contention).collect();
        values.sort_unstable_by(f64::total_cmp);
        let or_one = |value: f64| if values.is_empty() { 1.0 } else { value };
        SlowdownSpread {
            jobs: values.len(),
            // Times over a month have rounding errors of about 1e-9.
            slowed: values.iter().filter(|&&value| value > 1.0 + 1e-6).count(),
            mean: or_one(mean(values.iter().copied())),
            p95: or_one(quantile(&values, 0.95)),
            max: values.last().copied().unwrap_or(1.0),
        }
    }
}

fn wait_by_size(metrics: &Metrics) -> Vec<SizeRow> {
    let bins = metrics.wait_by_size.iter();
    bins.map(|bin| SizeRow {
        low: bin.low,
        high: (bin.high < u32::MAX).then_some(bin.high),
        jobs: bin.jobs,
        mean_wait: bin.mean_wait,
    })
    .collect()
}

/// Jobs that did not run, by reason: first those that the workload's reader skipped, then those of this run.
fn skipped(workload: &Workload, outcome: &Outcome) -> BTreeMap<String, u64> {
    let mut skipped = workload.left_out.clone();
    for (_, refusal) in &outcome.refused {
        *skipped.entry(format!("refused by the policy: {}", refusal.name())).or_default() += 1;
    }
    if outcome.elsewhere > 0 {
        let reason = "ran on nodes that the machine does not have".to_owned();
        skipped.insert(reason, outcome.elsewhere as u64);
    }
    let ran = outcome.jobs.iter().filter(|job| !job.is_interrupted()).count();
    let accounted = ran + outcome.refused.len() + outcome.elsewhere;
    if let Some(waiting @ 1..) = workload.jobs.len().checked_sub(accounted) {
        skipped.insert("still waiting at the end".to_owned(), waiting as u64);
    }
    skipped
}

fn mean_bandwidth_share(jobs: &[JobOutcome]) -> f64 {
    let with_links = jobs.iter().filter(|job| !job.placement.links().is_empty());
    let (of, shares): (Vec<_>, Vec<f64>) = with_links.map(|job| (job, job.bandwidth_share)).unzip();
    by_work(of, &shares).unwrap_or(1.0)
}

/// The mean of a value per job, weighted by node-seconds; `None` if there are no jobs.
pub(crate) fn by_work<'a>(
    jobs: impl IntoIterator<Item = &'a JobOutcome>,
    values: &[f64],
) -> Option<f64> {
    let (mut sum, mut work) = (0.0, 0.0);
    for (job, value) in jobs.into_iter().zip(values) {
        let own = job.placement.nodes().len() as f64 * (job.finish - job.start);
        sum += own * value;
        work += own;
    }
    (work > 0.0).then(|| sum / work)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len();
    if count == 0 { 0.0 } else { values.sum::<f64>() / count as f64 }
}

/// The quantile `share` of sorted values; between two values, the lower one.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let index = (share * sorted.len().saturating_sub(1) as f64) as usize;
    sorted.get(index).copied().unwrap_or_default()
}
