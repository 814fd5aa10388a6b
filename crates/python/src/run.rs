//! `simulate` and its outcome for Python.

use std::sync::Arc;
use std::time::{Duration, Instant};

use numpy::IntoPyArray;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use topolane_simulator::{
    JobOutcome, Metrics, Moving, Options, Outage, Scenario, simulate as run_events,
    write_job_links, write_jobs, write_links, write_moves, write_utilization,
};

use crate::error::{RunError, bad_input, input_error};
use crate::former;
use crate::machine::Machine;
use crate::network::Network;
use crate::policy::{policy_from, queue_names};
use crate::workload::Workload;

/// How often Python is asked whether to go on, and told how far the run is.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);

/// What happened in a run, and its measures.
#[pyclass(frozen, module = "topolane._engine")]
pub struct Outcome {
    workload: Py<Workload>,
    machine_nodes: u32,
    options: Options,
    outcome: topolane_simulator::Outcome,
    metrics: Metrics,
}

/// Runs a workload on a machine under a policy (a name or an object with `choose`) and a queue.
/// `progress`, if given, is called now and then with the share of jobs that have ended.
#[pyfunction]
#[pyo3(signature = (workload, machine, policy, queue, *, scenario="none", seed=0, default_walltime=None, min_bandwidth=None, phi=None, moving=None, network=None, outages=vec![], progress=None))]
#[allow(clippy::too_many_arguments)]
pub fn simulate(
    py: Python<'_>,
    workload: &Bound<'_, Workload>,
    machine: &Bound<'_, Machine>,
    policy: &Bound<'_, PyAny>,
    queue: &str,
    scenario: &str,
    seed: u64,
    default_walltime: Option<f64>,
    min_bandwidth: Option<f64>,
    phi: Option<f64>,
    moving: Option<(u32, f64, f64)>,
    network: Option<&Network>,
    outages: Vec<(Vec<u32>, f64, f64)>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Outcome> {
    let (policy, raised) = policy_from(policy, seed)?;
    let discipline = topolane_scheduler::queue(queue).ok_or_else(|| {
        bad_input(format!("unknown queue {queue:?}; there are {}", queue_names()))
    })?;
    if default_walltime.is_some_and(|walltime| !(walltime.is_finite() && walltime > 0.0)) {
        return Err(bad_input("the default walltime must be above 0 seconds"));
    }
    let phi = former::min_bandwidth(min_bandwidth, phi)?;
    let moving = moving.map(|(most, per_start, pause)| Moving { most, per_start, pause });
    if moving.is_some_and(|moving| !(moving.per_start >= 0.0 && moving.pause >= 0.0)) {
        return Err(bad_input("moves per job started and seconds of pause must be 0 or more"));
    }
    let scenario: Scenario = scenario.parse().map_err(input_error)?;
    let jobs = &workload.get().jobs;
    let fabric = &machine.get().fabric;
    let network = network.map(|network| network.network.clone());
    if network.as_ref().is_some_and(|network| !Arc::ptr_eq(network.routing.fabric(), fabric)) {
        return Err(bad_input("the network's routing is another machine's"));
    }
    let mut failing = Vec::with_capacity(outages.len());
    for (cables, from, until) in outages {
        if let Some(cable) = cables.iter().find(|&&cable| fabric.cable_place(cable).is_none()) {
            return Err(bad_input(format!("an outage of cable {cable}: there is none in a tree")));
        }
        if from.is_nan() || until.is_nan() || until <= from {
            return Err(bad_input(format!("an outage cannot be from {from} s until {until} s")));
        }
        failing.push(Outage { cables, from, until });
    }
    let outages = failing;
    let options = Options { scenario, seed, default_walltime, phi, moving, network, outages };
    let (outcome, metrics) = py.detach(|| -> Result<_, RunError> {
        let mut last = Instant::now();
        let mut report = |share: f64| -> Result<(), RunError> {
            if share < 1.0 && last.elapsed() < BETWEEN_REPORTS {
                return Ok(());
            }
            last = Instant::now();
            if let Some(error) = raised.lock().ok().and_then(|mut first| first.take()) {
                return Err(RunError::Raised(error));
            }
            Python::attach(|py| {
                py.check_signals()?;
                progress.as_ref().map_or(Ok(()), |call| call.call1(py, (share,)).map(drop))
            })
            .map_err(RunError::Raised)
        };
        let outcome = run_events(jobs, fabric, &policy, discipline, &options, &mut report)?;
        let metrics = Metrics::of(jobs, fabric, &outcome);
        Ok((outcome, metrics))
    })?;
    Ok(Outcome {
        workload: workload.clone().unbind(),
        machine_nodes: fabric.nodes(),
        options,
        outcome,
        metrics,
    })
}

#[pymethods]
impl Outcome {
    /// `jobs.csv` as bytes: a row for every job that ran, in order of start.
    fn jobs_csv<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let jobs = &self.workload.get().jobs;
        let mut text = Vec::new();
        py.detach(|| write_jobs(&mut text, jobs, &self.outcome, &self.metrics, &self.options))?;
        Ok(PyBytes::new(py, &text))
    }

    /// `utilization.csv` as bytes: a row for every full minute.
    fn utilization_csv<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut text = Vec::new();
        py.detach(|| write_utilization(&mut text, self.machine_nodes, &self.metrics))?;
        Ok(PyBytes::new(py, &text))
    }

    /// `links.csv` as bytes: a row for every direction of every link; None without a network.
    fn links_csv<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        let Some(network) = &self.options.network else { return Ok(None) };
        let mut text = Vec::new();
        py.detach(|| write_links(&mut text, network, &self.outcome, &self.metrics))?;
        Ok(Some(PyBytes::new(py, &text)))
    }

    /// `job-links.csv` as bytes: the links of every job in the course of time; None where no job owned any.
    fn job_links_csv<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if self.outcome.jobs.iter().all(|job| job.links.is_empty()) {
            return Ok(None);
        }
        let mut text = Vec::new();
        py.detach(|| write_job_links(&mut text, &self.workload.get().jobs, &self.outcome))?;
        Ok(Some(PyBytes::new(py, &text)))
    }

    /// `moves.csv` as bytes: a row for every move of a running job; None where none may be moved.
    fn moves_csv<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyBytes>>> {
        if self.options.moving.is_none() {
            return Ok(None);
        }
        let mut text = Vec::new();
        py.detach(|| write_moves(&mut text, &self.workload.get().jobs, &self.outcome))?;
        Ok(Some(PyBytes::new(py, &text)))
    }

    /// The nodes of every job, in the order of `jobs_csv`: a list of uint32 arrays in rank order.
    fn placements<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let nodes = self.outcome.jobs.iter().map(|job| job.placement.nodes());
        PyList::new(py, nodes.map(|nodes| nodes.to_vec().into_pyarray(py)))
    }

    /// The run in a few figures.
    fn summary<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let metrics = &self.metrics;
        let jobs = &self.workload.get().jobs;
        let mut waits = metrics.wait.clone();
        waits.sort_unstable_by(f64::total_cmp);
        // Average hops mean nothing to a job of one node.
        let several: Vec<usize> = (0..waits.len())
            .filter(|&index| self.outcome.jobs[index].placement.nodes().len() > 1)
            .collect();
        let over_several =
            |values: &[f64]| mean(&several.iter().map(|&index| values[index]).collect::<Vec<_>>());
        let sizes = PyList::empty(py);
        for bin in &metrics.wait_by_size {
            let row = PyDict::new(py);
            row.set_item("low", bin.low)?;
            row.set_item("high", (bin.high < u32::MAX).then_some(bin.high))?;
            row.set_item("jobs", bin.jobs)?;
            row.set_item("mean_wait", bin.mean_wait)?;
            sizes.append(row)?;
        }
        let fragmentation = PyDict::new(py);
        fragmentation.set_item("jobs", self.outcome.fragmented_jobs)?;
        fragmentation.set_item("seconds", self.outcome.fragmented_seconds)?;
        let mut left_out = jobs.left_out.clone();
        for (_, refusal) in &self.outcome.refused {
            *left_out.entry(format!("refused by the policy: {}", refusal.name())).or_default() += 1;
        }
        if self.outcome.elsewhere > 0 {
            let reason = "ran on nodes that the machine does not have".to_owned();
            left_out.insert(reason, self.outcome.elsewhere as u64);
        }
        let accounted =
            self.outcome.jobs.len() + self.outcome.refused.len() + self.outcome.elsewhere;
        if let Some(waiting @ 1..) = jobs.jobs.len().checked_sub(accounted) {
            left_out.insert("still waiting at the end".to_owned(), waiting as u64);
        }
        let summary = PyDict::new(py);
        summary.set_item("nodes", self.machine_nodes)?;
        summary.set_item("jobs", self.outcome.jobs.len())?;
        summary.set_item("load", Some(jobs.load(self.machine_nodes)).filter(|l| l.is_finite()))?;
        summary.set_item("mean_wait", mean(&metrics.wait))?;
        summary.set_item("mean_wait_by_work", self.mean_wait_by_work())?;
        summary.set_item("median_wait", quantile(&waits, 0.5))?;
        summary.set_item("p95_wait", quantile(&waits, 0.95))?;
        summary.set_item("wait_by_size", sizes)?;
        summary.set_item("utilization", metrics.utilization)?;
        summary.set_item("utilization_while_waiting", metrics.utilization_while_waiting)?;
        summary.set_item("makespan", metrics.makespan)?;
        let turnaround = |job: &JobOutcome| job.finish - jobs.jobs[job.job].submit;
        let turnarounds: Vec<f64> = self.outcome.jobs.iter().map(turnaround).collect();
        summary.set_item("mean_turnaround", mean(&turnarounds))?;
        summary.set_item("mean_slowdown", mean(&metrics.slowdown))?;
        summary.set_item("mean_aph", over_several(&metrics.aph))?;
        summary.set_item("mean_least_aph", over_several(&metrics.least_aph))?;
        summary.set_item("mean_hop_bytes", over_several(&metrics.hop_bytes))?;
        let sharing = metrics.links_shared.iter().filter(|&&links| links > 0).count();
        summary.set_item("jobs_sharing_links", sharing)?;
        summary.set_item("mean_bandwidth_share", self.mean_bandwidth_share())?;
        summary.set_item("fragmentation", fragmentation)?;
        let killed = self.outcome.jobs.iter().filter(|job| job.killed).count();
        summary.set_item("moves", self.outcome.moves)?;
        let (searches, cut_short) = self.outcome.searches;
        summary.set_item("searches", searches)?;
        summary.set_item("searches_cut_short", cut_short)?;
        summary.set_item("killed_at_walltime", killed)?;
        summary.set_item("without_walltime", jobs.without_walltime())?;
        summary.set_item("late_against_log", self.outcome.late_against_log)?;
        summary.set_item("left_out", left_out)?;
        if !self.options.outages.is_empty() {
            let affected = self.outcome.jobs.iter().filter(|job| job.affected);
            let ids: Vec<u64> = affected.map(|job| jobs.jobs[job.job].id).collect();
            let facts = PyDict::new(py);
            facts.set_item("outages", self.options.outages.len())?;
            facts.set_item("affected", ids.len())?;
            facts.set_item("ids", ids)?;
            summary.set_item("outages", facts)?;
        }
        if let Some(network) = &self.options.network {
            summary.set_item("contention", self.contention(py, network)?)?;
        }
        Ok(summary)
    }
}

impl Outcome {
    /// How much longer jobs ran beside others than alone: all of more than one node, by pattern.
    fn contention<'py>(
        &self,
        py: Python<'py>,
        network: &topolane_simulator::Network,
    ) -> PyResult<Bound<'py, PyDict>> {
        let several = self.outcome.jobs.iter().filter(|job| job.placement.spans_nodes());
        let lost = |job: &JobOutcome| {
            job.placement.nodes().len() as f64 * (job.finish - job.start - job.alone)
        };
        let facts = PyDict::new(py);
        facts.set_item("model", network.model.name)?;
        facts.set_item("routing", network.routing.name())?;
        facts.set_item("communication", network.communication)?;
        spread(&facts, several.clone().map(JobOutcome::contention).collect())?;
        facts.set_item("node_seconds_lost", several.clone().map(lost).sum::<f64>())?;
        facts.set_item("overran", several.clone().filter(|job| job.overran).count())?;
        facts.set_item("late_heads", self.outcome.late_heads)?;
        let patterns = PyList::empty(py);
        for index in 0..network.patterns.len() {
            let row = PyDict::new(py);
            row.set_item("pattern", network.pattern_name(index))?;
            let own = several.clone().filter(|job| job.pattern == index);
            spread(&row, own.map(JobOutcome::contention).collect())?;
            patterns.append(row)?;
        }
        facts.set_item("by_pattern", patterns)?;
        Ok(facts)
    }

    /// The share of full bandwidth of jobs on links of their own, weighted by node-seconds; 1 where there are none.
    fn mean_bandwidth_share(&self) -> f64 {
        let (mut share, mut work) = (0.0, 0.0);
        for job in self.outcome.jobs.iter().filter(|job| !job.placement.links().is_empty()) {
            let own = job.placement.nodes().len() as f64 * (job.finish - job.start);
            share += own * job.phi;
            work += own;
        }
        if work > 0.0 { share / work } else { 1.0 }
    }

    /// Mean wait weighted by node-seconds: small jobs that overtake do not hide what wide ones wait.
    fn mean_wait_by_work(&self) -> f64 {
        let (mut waited, mut work) = (0.0, 0.0);
        for (job, wait) in self.outcome.jobs.iter().zip(&self.metrics.wait) {
            let own = job.placement.nodes().len() as f64 * (job.finish - job.start);
            waited += own * wait;
            work += own;
        }
        if work > 0.0 { waited / work } else { 0.0 }
    }
}

/// Jobs, how many are slowed, and mean, 95th percentile and largest of what they suffer.
fn spread(row: &Bound<'_, PyDict>, mut values: Vec<f64>) -> PyResult<()> {
    values.sort_unstable_by(f64::total_cmp);
    row.set_item("jobs", values.len())?;
    // Differences of times of a month carry rounding of about 1e-9.
    row.set_item("slowed", values.iter().filter(|&&value| value > 1.0 + 1e-6).count())?;
    row.set_item("mean", if values.is_empty() { 1.0 } else { mean(&values) })?;
    row.set_item("p95", if values.is_empty() { 1.0 } else { quantile(&values, 0.95) })?;
    row.set_item("max", values.last().copied().unwrap_or(1.0))
}

fn mean(values: &[f64]) -> f64 {
    if values.is_empty() { 0.0 } else { values.iter().sum::<f64>() / values.len() as f64 }
}

/// The value at a share of sorted values, the lower of two.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let index = (share * sorted.len().saturating_sub(1) as f64) as usize;
    sorted.get(index).copied().unwrap_or_default()
}
