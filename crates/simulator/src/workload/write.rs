//! Writes workloads in the Standard Workload Format and as comma-separated values.

use std::fmt::Write;
use std::sync::Arc;

use topolane_fabric::InputError;
use topolane_fabric::resources::MEMORY;
use topolane_placement::{Attributes, Share};

use super::gpus::said;
use super::job::{EarlierRun, Job, Workload};
use crate::FORMULA;

/// Returns the workload in the Standard Workload Format 2.2.
///
/// Times are rounded to whole seconds, as the format requires. It has no host names.
///
/// # Errors
/// A job that shares its nodes, which the format cannot represent.
pub fn to_swf(workload: &Workload) -> Result<String, InputError> {
    let cores = u64::from(workload.cores_per_node.max(1));
    let nodes = u64::from(workload.jobs.iter().map(|job| job.nodes).max().unwrap_or(0));
    let count = workload.jobs.len();
    let name: String =
        workload.name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut text = format!(
        "; Version: 2.2\n; Computer: {name}\n; MaxJobs: {count}\n; MaxRecords: {count}\n\
         ; Preemption: No\n; UnixStartTime: {:.0}\n; TimeZone: {:.0}\n; MaxNodes: {nodes}\n\
         ; MaxProcs: {}\n",
        workload.epoch,
        workload.utc_offset,
        nodes * cores
    );
    for (reason, records) in &workload.left_out {
        line(&mut text, format_args!("; Note: {records} records skipped: {reason}"));
    }
    for job in &workload.jobs {
        if !job.share.is_whole() {
            let message = format!(
                "job {} shares its nodes, which the Standard Workload Format cannot say; use CSV",
                job.id
            );
            return Err(InputError::whole(message));
        }
        let processors = u64::from(job.nodes) * cores;
        let submit = job.submit.round();
        line(
            &mut text,
            format_args!(
                "{} {submit:.0} {:.0} {:.0} {processors} -1 -1 {processors} {:.0} -1 1 -1 -1 -1 -1 \
                 -1 -1 -1",
                job.id,
                wait(job, submit),
                job.run,
                job.walltime.unwrap_or(-1.0),
            ),
        );
    }
    Ok(text)
}

/// Seconds from submission to the recorded start; -1, the format's "unknown", if there is none.
fn wait(job: &Job, submit: f64) -> f64 {
    match &job.recorded {
        Some(recorded) if recorded.start >= submit => recorded.start.round() - submit,
        _ => -1.0,
    }
}

/// Returns the workload as comma-separated values with a header line. Reading it gives the same workload.
///
/// Columns without any value are not written.
///
/// # Errors
/// A host or owner name that a spreadsheet would treat as a formula: nothing may be put in front of it, because the
/// text must be read back unchanged.
pub fn to_csv(workload: &Workload) -> Result<String, InputError> {
    let shares = workload.jobs.iter().any(|job| !job.share.is_whole());
    let recorded = workload.jobs.iter().any(|job| job.recorded.is_some());
    let mut text = String::from("id,submit,run,walltime,nodes");
    let others = if shares { &workload.resources.names()[MEMORY + 1..] } else { &[] };
    text.push_str(if shares { ",cores,memory" } else { "" });
    for name in others {
        let column =
            if name == "gpu" { "gpus_per_node".to_owned() } else { format!("resource:{name}") };
        let _ = write!(text, ",{column}");
    }
    let typed = workload.jobs.iter().any(|job| gpu_type(job, workload).is_some());
    let segments = workload.jobs.iter().any(|job| job.segment.is_some());
    text.push_str(if typed { ",gpu_type" } else { "" });
    text.push_str(if segments { ",segment" } else { "" });
    let owners: Vec<&(&str, OwnerText)> = OWNERS
        .iter()
        .filter(|(_, owner)| workload.jobs.iter().any(|job| !owned(job, *owner).is_empty()))
        .collect();
    for (name, _) in &owners {
        let _ = write!(text, ",{name}");
    }
    text.push_str(if recorded { ",start,hosts" } else { "" });
    let earlier = workload.jobs.iter().any(|job| !earlier_runs(job).is_empty());
    text.push_str(if earlier { ",earlier_runs\n" } else { "\n" });
    for job in &workload.jobs {
        let walltime = job.walltime.map(|walltime| walltime.to_string()).unwrap_or_default();
        let share = match &job.share {
            _ if !shares => String::new(),
            Share::Whole => ",".repeat(others.len() + 2),
            Share::Part(amounts) => {
                let mut columns = String::new();
                for index in 0..others.len() + 2 {
                    let part = amounts.gpu_part().filter(|_| {
                        others.get(index.wrapping_sub(2)).is_some_and(|name| name == "gpu")
                    });
                    let _ = match part {
                        Some(part) => write!(columns, ",{}", said(part.thousandths().into())),
                        None => write!(columns, ",{}", amounts.get(index)),
                    };
                }
                columns
            }
        };
        let mut history = match &job.recorded {
            _ if !recorded => String::new(),
            None => ",,".to_string(),
            Some(recorded) if recorded.hosts.starts_with(FORMULA) => {
                return Err(formula(job, "ran on", &recorded.hosts));
            }
            Some(recorded) => format!(",{},{}", recorded.start, quoted(&recorded.hosts)),
        };
        let mut more = String::new();
        if typed {
            let _ = write!(more, ",{}", gpu_type(job, workload).unwrap_or_default());
        }
        if segments {
            let segment = job.segment.map(|segment| segment.to_string()).unwrap_or_default();
            let _ = write!(more, ",{segment}");
        }
        for (name, owner) in &owners {
            let value = owned(job, *owner);
            if !NUMBERS.contains(name) && value.starts_with(FORMULA) {
                return Err(formula(job, &format!("has the {name}"), &value));
            }
            let _ = write!(more, ",{}", quoted(&value));
        }
        if earlier {
            let _ = write!(history, ",{}", earlier_runs(job));
        }
        let Job { id, submit, run, nodes, .. } = job;
        let row = format_args!("{id},{submit},{run},{walltime},{nodes}{share}{more}{history}");
        line(&mut text, row);
    }
    Ok(text)
}

/// The error for a text of a job that a spreadsheet would compute.
fn formula(job: &Job, what: &str, text: &str) -> InputError {
    let start: String = text.chars().take(60).collect();
    InputError::whole(format!(
        "job {} {what} {start:?}, which a spreadsheet would take for a formula",
        job.id
    ))
}

/// Formats earlier runs as the reader expects them, `600:60:4 900:30:4`; empty if there are none.
fn earlier_runs(job: &Job) -> String {
    let runs = job.recorded.as_ref().map_or(&[][..], |recorded| &recorded.earlier);
    let run = |one: &EarlierRun| format!("{}:{}:{}", one.start, one.run, one.nodes);
    runs.iter().map(run).collect::<Vec<_>>().join(" ")
}

/// The value of a column of [`OWNERS`] for a job; empty if unknown.
type OwnerText = fn(&Attributes) -> String;

/// The columns with the attributes of a job.
const OWNERS: [(&str, OwnerText); 10] = [
    ("partition", |of| of.partition.to_string()),
    ("user", |of| of.user.to_string()),
    ("account", |of| of.account.to_string()),
    ("qos", |of| of.qos.to_string()),
    ("reservation", |of| of.reservation.to_string()),
    ("nice", |of| if of.nice == 0 { String::new() } else { of.nice.to_string() }),
    ("requested_processors", |of| of.processors.map(|count| count.to_string()).unwrap_or_default()),
    ("licenses", licenses),
    ("requeue", |of| if of.no_requeue { "no".to_string() } else { String::new() }),
    ("queued", |of| of.queued.map(|time| time.to_string()).unwrap_or_default()),
];

/// Columns of [`OWNERS`] with numbers. They may be negative, which no spreadsheet treats as a formula.
const NUMBERS: [&str; 2] = ["nice", "queued"];

/// Formats licences as Slurm does.
fn licenses(of: &Attributes) -> String {
    let license = |(name, asked): &(Arc<str>, u64)| format!("{name}:{asked}");
    of.licenses.iter().map(license).collect::<Vec<_>>().join(",")
}

fn owned(job: &Job, owner: OwnerText) -> String {
    job.attributes.as_deref().map(owner).unwrap_or_default()
}

/// The GPU types that the job can use, or the type of a part of a GPU. Types of whole GPUs have columns of their own.
fn gpu_type(job: &Job, workload: &Workload) -> Option<String> {
    if let Some(types) = &job.gpu_types {
        return Some(types.join("|"));
    }
    let Share::Part(amounts) = &job.share else { return None };
    let name = workload.resources.names().get(amounts.gpu_part()?.resource())?;
    Some(name.strip_prefix("gpu:")?.to_owned())
}

/// A field in quotes, because hostlists contain commas.
fn quoted(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("\"{}\"", text.replace('"', "\"\"")) }
}

fn line(text: &mut String, row: std::fmt::Arguments) {
    // Writing to a string cannot fail.
    let _ = writeln!(text, "{row}");
}
