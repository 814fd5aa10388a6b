//! The tables a run leaves behind, as CSV.

use std::io::{self, Write};

use topolane_fabric::Direction;

use crate::FORMULA;
use crate::metrics::Metrics;
use crate::network::Network;
use crate::simulate::{Options, Outcome};
use crate::workload::Workload;

/// Writes `jobs.csv`: the columns that Batsim writes (so that evalys reads it), then ours.
/// Times in seconds since the workload's epoch; `allocated_resources` is an interval set;
/// `pattern` is empty without a network. Two last columns stand there only where they have something to say:
/// `affected` with outages, and `moves` where jobs may be moved.
///
/// # Errors
/// What the writer returns.
pub fn write_jobs(
    to: &mut impl Write,
    workload: &Workload,
    outcome: &Outcome,
    metrics: &Metrics,
    options: &Options,
) -> io::Result<()> {
    let (outages, moving) = (!options.outages.is_empty(), options.moving.is_some());
    let patterns: Vec<String> = options.network.as_ref().map_or_else(Vec::new, |network| {
        (0..network.patterns.len()).map(|pattern| quoted(&network.pattern_name(pattern))).collect()
    });
    write!(
        to,
        "job_id,workload_name,profile,submission_time,requested_number_of_resources,\
         requested_time,success,final_state,starting_time,execution_time,finish_time,\
         waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,metadata,\
         slowdown,aph,least_aph,hop_bytes,links_shared,pattern,contention"
    )?;
    write!(to, "{}", if outages { ",affected" } else { "" })?;
    writeln!(to, "{}", if moving { ",moves" } else { "" })?;
    let name = quoted(&workload.name);
    let mut row = Vec::with_capacity(512);
    for (index, job) in outcome.jobs.iter().enumerate() {
        let submitted = &workload.jobs[job.job];
        let run = job.finish - job.start;
        let turnaround = job.finish - submitted.submit;
        let state =
            if job.killed { "COMPLETED_WALLTIME_REACHED" } else { "COMPLETED_SUCCESSFULLY" };
        row.clear();
        write!(row, "{},{name},run,", submitted.id)?;
        number(&mut row, submitted.submit)?;
        write!(row, "{},", job.placement.nodes().len())?;
        number(&mut row, job.walltime)?;
        write!(row, "{},{state},", u8::from(!job.killed))?;
        for value in [job.start, run, job.finish, metrics.wait[index], turnaround] {
            number(&mut row, value)?;
        }
        number(&mut row, turnaround / run.max(1.0))?;
        write_intervals(&mut row, job.placement.nodes())?;
        row.extend_from_slice(b",-1,,");
        for value in [
            metrics.slowdown[index],
            metrics.aph[index],
            metrics.least_aph[index],
            metrics.hop_bytes[index],
        ] {
            number(&mut row, value)?;
        }
        let pattern = patterns.get(job.pattern).map_or("", String::as_str);
        write!(row, "{},{pattern},{:.6}", metrics.links_shared[index], job.contention())?;
        if outages {
            write!(row, ",{}", u8::from(job.affected))?;
        }
        if moving {
            write!(row, ",{}", job.moves.len())?;
        }
        row.push(b'\n');
        to.write_all(&row)?;
    }
    Ok(())
}

/// Writes `utilization.csv`: a row for every full minute.
///
/// # Errors
/// What the writer returns.
pub fn write_utilization(
    to: &mut impl Write,
    machine_nodes: u32,
    metrics: &Metrics,
) -> io::Result<()> {
    writeln!(to, "time,busy_nodes,waiting_jobs,utilization")?;
    let mut row = Vec::with_capacity(64);
    for minute in &metrics.minutes {
        row.clear();
        number(&mut row, minute.time)?;
        number(&mut row, minute.busy_nodes)?;
        write!(row, "{},{:.5}", minute.waiting_jobs, minute.busy_nodes / f64::from(machine_nodes))?;
        row.push(b'\n');
        to.write_all(&row)?;
    }
    Ok(())
}

/// Writes `links.csv`: a row for every direction of every link, with the share of its capacity that
/// the run's jobs used in the mean over the makespan.
///
/// # Errors
/// What the writer returns.
pub fn write_links(
    to: &mut impl Write,
    network: &Network,
    outcome: &Outcome,
    metrics: &Metrics,
) -> io::Result<()> {
    let routing = &*network.routing;
    let fabric = routing.fabric();
    writeln!(to, "link,direction,level,group,switch,parent,cable,bandwidth,mean_load")?;
    for (channel, busy) in (0..).zip(&outcome.channel_busy) {
        let load = if metrics.makespan > 0.0 { busy / metrics.makespan } else { 0.0 };
        for link in routing.links(channel).into_iter().filter(|link| fabric.has_cable(link.cable)) {
            let way = if link.direction == Direction::Up { "up" } else { "down" };
            write!(to, "{},{way},", link.cable)?;
            match fabric.cable_place(link.cable) {
                Some((level, group, switch, parent, cable)) => {
                    write!(to, "{level},{group},{switch},{parent},{cable}")?;
                }
                None => write!(to, "wan,,,,")?,
            }
            writeln!(to, ",{},{load:.6}", fabric.bandwidth(link.cable))?;
        }
    }
    Ok(())
}

/// Writes `moves.csv`: a row for every move of a running job, in order of the jobs' starts and of time.
///
/// # Errors
/// What the writer returns.
pub fn write_moves(to: &mut impl Write, workload: &Workload, outcome: &Outcome) -> io::Result<()> {
    writeln!(to, "job_id,time,from_nodes,to_nodes,pause")?;
    let mut row = Vec::with_capacity(256);
    for job in &outcome.jobs {
        let after = job.places().skip(1).map(|(_, placement)| placement);
        for (step, after) in job.moves.iter().zip(after) {
            row.clear();
            write!(row, "{},", workload.jobs[job.job].id)?;
            number(&mut row, step.time)?;
            write_intervals(&mut row, step.from.nodes())?;
            row.push(b',');
            write_intervals(&mut row, after.nodes())?;
            writeln!(row, ",{:.6}", step.pause)?;
            to.write_all(&row)?;
        }
    }
    Ok(())
}

/// Writes `job-links.csv`: of every job that owned links a row for each time in which it had the same ones, in order
/// of the jobs' starts and of time; cables as interval sets.
///
/// # Errors
/// What the writer returns.
pub fn write_job_links(
    to: &mut impl Write,
    workload: &Workload,
    outcome: &Outcome,
) -> io::Result<()> {
    writeln!(to, "job_id,from,until,bandwidth_share,links,lent_links")?;
    let mut row = Vec::with_capacity(256);
    for job in &outcome.jobs {
        let ends = job.links.iter().skip(1).map(|held| held.from).chain([job.finish]);
        for (held, until) in job.links.iter().zip(ends) {
            row.clear();
            write!(row, "{},", workload.jobs[job.job].id)?;
            number(&mut row, held.from)?;
            number(&mut row, until)?;
            number(&mut row, held.phi)?;
            write_intervals(&mut row, held.placement.links())?;
            row.push(b',');
            write_intervals(&mut row, &held.lent)?;
            row.push(b'\n');
            to.write_all(&row)?;
        }
    }
    Ok(())
}

/// A number and a comma; whole numbers without a fraction, which is also quicker.
fn number(row: &mut Vec<u8>, value: f64) -> io::Result<()> {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        write!(row, "{},", value as i64)
    } else {
        write!(row, "{value:.6},")
    }
}

/// Indices of nodes or cables as an interval set: `0-3 7`.
fn write_intervals(row: &mut Vec<u8>, indices: &[u32]) -> io::Result<()> {
    let mut sorted = indices.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    for (index, run) in sorted.chunk_by(|a, b| a + 1 == *b).enumerate() {
        if index > 0 {
            row.push(b' ');
        }
        match run {
            [one] => write!(row, "{one}")?,
            _ => write!(row, "{}-{}", run[0], run[run.len() - 1])?,
        }
    }
    Ok(())
}

/// A field of text, quoted where CSV wants it. One that a spreadsheet would compute, as it begins like
/// a formula, has an apostrophe in front.
fn quoted(text: &str) -> String {
    let text = if text.starts_with(FORMULA) { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text
    }
}
