//! The tables a run leaves behind, as CSV.

use std::io::{self, Write};

use topolane_fabric::Direction;

use crate::FORMULA;
use crate::metrics::Metrics;
use crate::network::Network;
use crate::simulate::Outcome;
use crate::workload::Workload;

/// Writes `jobs.csv`: the columns that Batsim writes (so that evalys reads it), then ours.
/// Times in seconds since the workload's epoch; `allocated_resources` is an interval set;
/// `pattern` is empty without a `network`; with `outages` a last column says whom they affected.
///
/// # Errors
/// What the writer returns.
pub fn write_jobs(
    to: &mut impl Write,
    workload: &Workload,
    outcome: &Outcome,
    metrics: &Metrics,
    network: Option<&Network>,
    outages: bool,
) -> io::Result<()> {
    let patterns: Vec<String> = network.map_or_else(Vec::new, |network| {
        (0..network.patterns.len()).map(|pattern| quoted(&network.pattern_name(pattern))).collect()
    });
    write!(
        to,
        "job_id,workload_name,profile,submission_time,requested_number_of_resources,\
         requested_time,success,final_state,starting_time,execution_time,finish_time,\
         waiting_time,turnaround_time,stretch,allocated_resources,consumed_energy,metadata,\
         slowdown,aph,least_aph,hop_bytes,links_shared,pattern,contention"
    )?;
    writeln!(to, "{}", if outages { ",affected" } else { "" })?;
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

/// A number and a comma; whole numbers without a fraction, which is also quicker.
fn number(row: &mut Vec<u8>, value: f64) -> io::Result<()> {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        write!(row, "{},", value as i64)
    } else {
        write!(row, "{value:.6},")
    }
}

/// Node indices as an interval set: `0-3 7`.
fn write_intervals(row: &mut Vec<u8>, nodes: &[u32]) -> io::Result<()> {
    let mut sorted = nodes.to_vec();
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
