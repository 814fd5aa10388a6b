//! Traces of GPU jobs as `RFold` redistributes them: Microsoft's Philly (2017) and Alibaba's Lingjun (2023).
//!
//! `#job id,arrival time (sec),topology,shape,size,duration (sec)`: the size is in GPUs; nodes are not named.

use std::io::BufRead;

use topolane_fabric::InputError;
use topolane_placement::Share;

use super::gpus::{WHOLE, share};
use super::job::{Job, Workload};
use super::options::ReadOptions;
use super::parse::{KeptJobs, count, not_negative, shown};
use super::rows::{need, rows};

/// The beginning of the header line.
pub(super) const BEGINS: &[u8] = b"#job id,";

/// Reads such a trace. A job with fewer GPUs than a node takes them on one node, with one core. A larger job takes
/// whole nodes; some GPUs of the last one may be unused.
///
/// # Errors
/// The option GPUs per node is missing; a missing column, an unreadable value, a job that occurs twice, an input
/// without rows.
pub fn rfold(input: impl BufRead, options: &ReadOptions) -> Result<Workload, InputError> {
    let Some(per_node) = options.gpus_per_node.filter(|&gpus| gpus > 0) else {
        let message =
            "the log counts GPUs, not nodes: say how many a node has with --gpus-per-node";
        return Err(InputError::whole(message));
    };
    let mut kept = KeptJobs::default();
    let begin = |header: &csv::StringRecord| {
        let need = |name| need(header, &[name]);
        Ok([need("#job id")?, need("arrival time (sec)")?, need("size")?, need("duration (sec)")?])
    };
    rows(input, begin, |&mut [id, arrival, size, duration], row| {
        let at = |column: usize| row.get(column).unwrap_or_default();
        let gpus = count("size", at(size))?;
        let mut part = || share(&mut kept.resources, vec![1], u64::from(gpus) * WHOLE, &[]);
        let share = if gpus < per_node { part()?.0 } else { Share::Whole };
        kept.keep(Job {
            id: at(id)
                .parse()
                .map_err(|_| format!("job id {} is not a number", shown(at(id).as_bytes())))?,
            submit: not_negative("arrival time", at(arrival))?,
            run: not_negative("duration", at(duration))?,
            nodes: gpus.div_ceil(per_node),
            share,
            ..Job::default()
        })
    })?;
    Ok(kept.into_workload(1))
}
