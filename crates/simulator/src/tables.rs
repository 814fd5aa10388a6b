//! The output tables of a run. Times are in seconds since the workload's epoch; nodes and cables are interval sets.

use std::io::Write;
use std::sync::Arc;

use topolane_fabric::{CableId, Direction, Routing};
use topolane_placement::{Placement, Share};
use topolane_scheduler::HeadWait;

use crate::failures::Failure;
use crate::gpu_use::gpus_of;
use crate::metrics::Metrics;
use crate::moving::Move;
use crate::network::Network;
use crate::simulate::{CutShort, JobOutcome, Outcome, RunOptions};
use crate::table::{Column, Table, Values, Written};
use crate::workload::{Job, Workload};

/// Returns the tables of a run by name. Tables without content are not included.
pub fn tables(
    workload: &Workload,
    machine_nodes: u32,
    outcome: &Outcome,
    metrics: &Metrics,
    options: &RunOptions,
) -> Vec<(&'static str, Table)> {
    let rest = other_tables(workload, machine_nodes, outcome, metrics, options);
    [("jobs", jobs(workload, outcome, metrics, options))].into_iter().chain(rest).collect()
}

/// Returns the same tables and consumes the outcome. It frees the placements early, so that a run with a million jobs
/// never holds all placements and all tables at once.
pub fn into_tables(
    workload: &Workload,
    machine_nodes: u32,
    mut outcome: Outcome,
    metrics: Metrics,
    options: &RunOptions,
) -> Vec<(&'static str, Table)> {
    let rest = other_tables(workload, machine_nodes, &outcome, &metrics, options);
    let placed = placed(&outcome);
    drop_placements(&mut outcome);
    let jobs = jobs_placed(workload, &outcome, &metrics, options, placed);
    [("jobs", jobs)].into_iter().chain(rest).collect()
}

/// All tables except the one of jobs.
fn other_tables(
    workload: &Workload,
    machine_nodes: u32,
    outcome: &Outcome,
    metrics: &Metrics,
    options: &RunOptions,
) -> Vec<(&'static str, Table)> {
    let mut tables = vec![("utilization", utilization(machine_nodes, metrics))];
    if let Some(network) = &options.network {
        tables.push(("links", links(network, outcome, metrics)));
    }
    if outcome.jobs.iter().any(|job| !job.links.is_empty()) {
        tables.push(("job-links", job_links(workload, outcome)));
    }
    if !outcome.head_waits.is_empty() {
        tables.push(("head-waits", head_waits(workload, outcome)));
    }
    if options.moving.is_some() || outcome.jobs.iter().any(|job| !job.moves.is_empty()) {
        tables.push(("moves", moves(workload, outcome)));
    }
    if !options.failures.is_empty() {
        tables.push(("failures", failures(&options.failures)));
    }
    tables
}

/// A row for every job that ran, in order of start. The columns of Batsim come first (so that evalys can read the
/// table), then ours. `pattern` is empty without a network. The last columns are optional: `affected` with outages or
/// failures, `moves` and `past_walltime` if jobs may be moved, `gpus` if jobs share nodes with GPUs, and `taken` if
/// jobs share nodes.
pub fn jobs(
    workload: &Workload,
    outcome: &Outcome,
    metrics: &Metrics,
    options: &RunOptions,
) -> Table {
    jobs_placed(workload, outcome, metrics, options, placed(outcome))
}

/// The columns of the job table that come from placements.
struct Placed {
    sizes: Column,
    nodes: Column,
    gpus: Option<Column>,
    shares_nodes: bool,
}

fn placed(outcome: &Outcome) -> Placed {
    let placements = || outcome.jobs.iter().map(|job| &*job.placement);
    let size = |placement: &Placement| placement.nodes().len() as u32;
    let names_gpus = placements().any(|placement| !placement.gpus().is_empty());
    Placed {
        sizes: Column::whole("requested_number_of_resources", placements().map(size)),
        nodes: Column::text(
            "allocated_resources",
            placements().map(|placement| interval_set(placement.nodes())),
        ),
        gpus: names_gpus.then(|| Column::text("gpus", placements().map(gpus_of))),
        shares_nodes: placements().any(|placement| !placement.share().is_whole()),
    }
}

/// Replaces all placements by the first one, so that the others are freed.
fn drop_placements(outcome: &mut Outcome) {
    let Some((first, others)) = outcome.jobs.split_first_mut() else { return };
    for job in others {
        job.placement = Arc::clone(&first.placement);
    }
}

fn jobs_placed(
    workload: &Workload,
    outcome: &Outcome,
    metrics: &Metrics,
    options: &RunOptions,
    placed: Placed,
) -> Table {
    let rows = || outcome.jobs.iter().map(|job| (job, &workload.jobs[job.job]));
    let number = |name, value: fn(&JobOutcome, &Job) -> f64| {
        Column::numbers(name, Written::Short, rows().map(|(job, submitted)| value(job, submitted)))
    };
    let measure =
        |name, values: &[f64]| Column::numbers(name, Written::Short, values.iter().copied());
    let same = |name, text: &str| Column::text(name, rows().map(|_| text));
    let patterns: Vec<String> = options.network.as_ref().map_or_else(Vec::new, |network| {
        (0..network.patterns.len()).map(|pattern| network.pattern_name(pattern)).collect()
    });
    let pattern = |(job, _): (&JobOutcome, _)| patterns.get(job.pattern).map_or("", String::as_str);
    let state = |(job, _): (&JobOutcome, _)| match job {
        JobOutcome { killed: true, .. } => "COMPLETED_WALLTIME_REACHED",
        JobOutcome { cut_short: Some(CutShort::Failed), .. } => "COMPLETED_FAILED",
        JobOutcome { cut_short: Some(_), .. } => "COMPLETED_KILLED",
        JobOutcome { interruption: Some(_), .. } => "COMPLETED_FAILED",
        _ => "COMPLETED_SUCCESSFULLY",
    };
    let mut columns = vec![
        Column::new("job_id", Values::Ids(rows().map(|(_, submitted)| submitted.id).collect())),
        same("workload_name", &workload.name),
        same("profile", "run"),
        number("submission_time", |job, _| job.submitted),
        placed.sizes,
        number("requested_time", |job, _| job.walltime),
        Column::whole(
            "success",
            rows().map(|(job, _)| !job.killed && !job.is_interrupted() && job.cut_short.is_none()),
        ),
        Column::text("final_state", rows().map(state)),
        number("starting_time", |job, _| job.start),
        number("execution_time", |job, _| job.finish - job.start),
        number("finish_time", |job, _| job.finish),
        measure("waiting_time", &metrics.wait),
        number("turnaround_time", |job, _| job.finish - job.submitted),
        number("stretch", |job, _| {
            (job.finish - job.submitted) / (job.finish - job.start).max(1.0)
        }),
        placed.nodes,
        Column::whole("consumed_energy", rows().map(|_| -1)),
        same("metadata", ""),
        measure("slowdown", &metrics.slowdown),
        measure("aph", &metrics.aph),
        measure("least_aph", &metrics.least_aph),
        measure("hop_bytes", &metrics.hop_bytes),
        Column::whole("links_shared", metrics.links_shared.iter().copied()),
        Column::text("pattern", rows().map(pattern)),
        Column::numbers(
            "contention",
            Written::Decimals(6),
            outcome.jobs.iter().map(JobOutcome::contention),
        ),
    ];
    if !options.outages.is_empty() || !options.failures.is_empty() {
        columns.push(Column::whole("affected", rows().map(|(job, _)| job.affected)));
    }
    if options.moving.is_some() {
        columns.push(Column::whole("moves", rows().map(|(job, _)| job.moves.len() as u32)));
        columns.push(number("past_walltime", |job, _| job.past_walltime()));
    }
    columns.extend(placed.gpus);
    if placed.shares_nodes {
        columns
            .push(Column::text("taken", rows().map(|(_, submitted)| taken(workload, submitted))));
    }
    Table::new(columns)
}

/// What a job takes on each of its nodes, as `cores=36;memory=1024;gpu=1`; empty for whole nodes. A part of a GPU is
/// written as a fraction.
fn taken(workload: &Workload, job: &Job) -> String {
    let Share::Part(amounts) = &job.share else { return String::new() };
    let mut counts: Vec<String> = amounts
        .by_name(&workload.resources)
        .map(|(name, count)| format!("{name}={count}"))
        .collect();
    if let Some(part) = amounts.gpu_part() {
        let name = workload.resources.names().get(part.resource()).map_or("gpu", String::as_str);
        counts.push(format!("{name}={}", f64::from(part.thousandths()) / 1_000.0));
    }
    counts.join(";")
}

/// A row for every full minute.
pub fn utilization(machine_nodes: u32, metrics: &Metrics) -> Table {
    let minutes = || metrics.minutes.iter();
    let size = f64::from(machine_nodes);
    Table::new(vec![
        Column::numbers("time", Written::Short, minutes().map(|minute| minute.time)),
        Column::numbers("busy_nodes", Written::Short, minutes().map(|minute| minute.busy_nodes)),
        Column::whole("waiting_jobs", minutes().map(|minute| minute.waiting_jobs)),
        Column::numbers(
            "utilization",
            Written::Decimals(5),
            minutes().map(|minute| minute.busy_nodes / size),
        ),
    ])
}

/// A row for every direction of every link, with the mean share of its capacity that jobs used over the makespan.
pub fn links(network: &Network, outcome: &Outcome, metrics: &Metrics) -> Table {
    let share = |busy: &f64| if metrics.makespan > 0.0 { busy / metrics.makespan } else { 0.0 };
    loaded_links(&*network.routing, outcome.channel_busy.iter().map(share))
}

/// A row for every direction of every link, with the given loads by channel.
pub fn loaded_links(routing: &dyn Routing, loads: impl Iterator<Item = f64>) -> Table {
    let fabric = routing.fabric();
    let mut rows = Vec::new();
    for (channel, load) in (0..routing.channels()).zip(loads) {
        let there = routing.links(channel).into_iter().filter(|link| fabric.has_cable(link.cable));
        rows.extend(there.map(|link| (link, fabric.cable_place(link.cable), load)));
    }
    let direction = |up| if up { "up" } else { "down" };
    let level = |cable, level: Option<usize>| match level {
        Some(level) => level.to_string(),
        None if fabric.wired_cable(cable).is_some() => "switches".to_owned(),
        None => "wan".to_owned(),
    };
    let place = |name, part: fn((usize, u32, u32, u32, u32)) -> u32| {
        let parts = rows.iter().map(|&(_, place, _)| place.map_or(0, part).into());
        let present = rows.iter().map(|&(_, place, _)| place.is_some());
        Column::new(name, Values::Optional(parts.collect(), present.collect()))
    };
    Table::new(vec![
        Column::whole("link", rows.iter().map(|(link, ..)| link.cable)),
        Column::text(
            "direction",
            rows.iter().map(|(link, ..)| direction(link.direction == Direction::Up)),
        ),
        Column::text(
            "level",
            rows.iter().map(|(link, place, _)| level(link.cable, place.map(|place| place.0))),
        ),
        place("group", |place| place.1),
        place("switch", |place| place.2),
        place("parent", |place| place.3),
        place("cable", |place| place.4),
        Column::numbers(
            "bandwidth",
            Written::Exact,
            rows.iter().map(|(link, ..)| fabric.bandwidth(link.cable)),
        ),
        Column::numbers("mean_load", Written::Decimals(6), rows.iter().map(|&(.., load)| load)),
    ])
}

/// For every job that owned links, a row for each time span with the same links; ordered by start of the job, then by
/// time.
pub fn job_links(workload: &Workload, outcome: &Outcome) -> Table {
    let mut rows = Vec::new();
    for job in &outcome.jobs {
        let ends = job.links.iter().skip(1).map(|held| held.from).chain([job.finish]);
        rows.extend(job.links.iter().zip(ends).map(|(held, until)| (job.job, held, until)));
    }
    Table::new(vec![
        ids(workload, rows.iter().map(|row| row.0)),
        Column::numbers("from", Written::Short, rows.iter().map(|(_, held, _)| held.from)),
        Column::numbers("until", Written::Short, rows.iter().map(|&(.., until)| until)),
        Column::numbers(
            "bandwidth_share",
            Written::Short,
            rows.iter().map(|(_, held, _)| held.bandwidth_share),
        ),
        Column::text("links", rows.iter().map(|(_, held, _)| interval_set(held.placement.links()))),
        Column::text("lent_links", rows.iter().map(|(_, held, _)| interval_set(&held.lent))),
    ])
}

/// A row for each change in how a head of the queue waits, in order of time. `until` is empty if the policy itself
/// places the head.
pub fn head_waits(workload: &Workload, outcome: &Outcome) -> Table {
    let rows = || outcome.head_waits.iter();
    let until = |wait: &HeadWait| wait.until.map_or_else(String::new, |until| until.to_string());
    Table::new(vec![
        ids(workload, rows().map(|(_, wait)| wait.id as usize)),
        Column::numbers("time", Written::Short, rows().map(|&(time, _)| time)),
        Column::text("until", rows().map(|(_, wait)| until(wait))),
    ])
}

/// A row for every move of a running job, ordered by start of the job, then by time.
pub fn moves(workload: &Workload, outcome: &Outcome) -> Table {
    let mut rows = Vec::new();
    for job in &outcome.jobs {
        let after = job.places().skip(1).map(|(_, placement)| placement);
        rows.extend(job.moves.iter().zip(after).map(|(step, after)| (job.job, step, after)));
    }
    let made_room_for = |step: &Move| {
        step.made_room_for.map_or_else(String::new, |job| workload.jobs[job].id.to_string())
    };
    Table::new(vec![
        ids(workload, rows.iter().map(|row| row.0)),
        Column::numbers("time", Written::Short, rows.iter().map(|(_, step, _)| step.time)),
        Column::text("from_nodes", rows.iter().map(|(_, step, _)| interval_set(step.from.nodes()))),
        Column::text("to_nodes", rows.iter().map(|(.., after)| interval_set(after.nodes()))),
        Column::numbers("pause", Written::Decimals(6), rows.iter().map(|(_, step, _)| step.pause)),
        Column::text("made_room_for", rows.iter().map(|(_, step, _)| made_room_for(step))),
    ])
}

/// A row for every failure of a node. `until` is empty for a node that never comes back.
pub fn failures(failures: &[Failure]) -> Table {
    let until = |failure: &Failure| match failure.until {
        until if until.is_finite() => until.to_string(),
        _ => String::new(),
    };
    Table::new(vec![
        Column::whole("node", failures.iter().map(|failure| failure.node)),
        Column::numbers("from", Written::Short, failures.iter().map(|failure| failure.from)),
        Column::text("until", failures.iter().map(until)),
    ])
}

/// The numbers of jobs, which are given by their index in the workload.
fn ids(workload: &Workload, jobs: impl Iterator<Item = usize>) -> Column {
    Column::new("job_id", Values::Ids(jobs.map(|job| workload.jobs[job].id).collect()))
}

/// Formats indices of nodes or cables as an interval set: `0-3 7`.
fn interval_set(indices: &[CableId]) -> Vec<u8> {
    let mut sorted = indices.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    let mut text = Vec::new();
    for run in sorted.chunk_by(|a, b| a + 1 == *b) {
        // Writing to memory cannot fail.
        let _ = match run {
            [one] => write!(text, "{one} "),
            _ => write!(text, "{}-{} ", run[0], run[run.len() - 1]),
        };
    }
    text.pop();
    text
}
