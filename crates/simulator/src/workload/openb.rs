//! Tasks of Alibaba's cluster-trace-gpu-v2023 ("openb", Weng et al., USENIX ATC'23).
//!
//! `name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time`:
//! each task runs on one node and takes thousandths of processors, mebibytes of memory, and whole GPUs or thousandths
//! of one.

use std::io::BufRead;

use topolane_fabric::InputError;
use topolane_placement::{Amounts, Share};

use super::gpus::{WHOLE, share, types};
use super::job::{Job, RecordedRun, Workload};
use super::parse::{KeptJobs, Skipped, amount, not_negative, seconds, shown};
use super::rows::{need, rows};

/// The beginning of the header line.
pub(super) const BEGINS: &[u8] = b"name,cpu_milli,memory_mib,num_gpu,gpu_milli";

const MEBIBYTE: u64 = 1 << 20;

/// Reads an openb trace. Processors are rounded up to whole cores. The number of a job is the one at the end of its
/// name. A task that was never scheduled is skipped.
///
/// # Errors
/// A missing column, an unreadable value, a part over a whole GPU, a job that occurs twice, an input without rows.
pub fn openb(input: impl BufRead) -> Result<Workload, InputError> {
    let mut kept = KeptJobs::default();
    rows(input, OpenbColumns::new, |columns, row| match columns.job(row, &mut kept)? {
        Ok(job) => kept.keep(job),
        Err(why) => {
            kept.skip(why);
            Ok(())
        }
    })?;
    Ok(kept.into_workload(1))
}

/// The positions of the columns.
struct OpenbColumns {
    name: usize,
    cpu: usize,
    memory: usize,
    gpus: usize,
    milli: usize,
    spec: usize,
    created: usize,
    deleted: usize,
    scheduled: usize,
}

impl OpenbColumns {
    fn new(header: &csv::StringRecord) -> Result<Self, String> {
        let need = |name| need(header, &[name]);
        Ok(OpenbColumns {
            name: need("name")?,
            cpu: need("cpu_milli")?,
            memory: need("memory_mib")?,
            gpus: need("num_gpu")?,
            milli: need("gpu_milli")?,
            spec: need("gpu_spec")?,
            created: need("creation_time")?,
            deleted: need("deletion_time")?,
            scheduled: need("scheduled_time")?,
        })
    }

    /// The job of a row, or why the row is not a job.
    fn job(
        &self,
        row: &csv::StringRecord,
        kept: &mut KeptJobs,
    ) -> Result<Result<Job, Skipped>, String> {
        let at = |column: usize| row.get(column).unwrap_or_default();
        let amounts = vec![
            amount("cpu_milli", at(self.cpu))?.div_ceil(1000),
            amount("memory_mib", at(self.memory))? * MEBIBYTE,
        ];
        let number = at(self.name).rsplit('-').next().and_then(|digits| digits.parse().ok());
        let submit = not_negative("creation_time", at(self.created))?;
        let gpus = gpus_of(amount("num_gpu", at(self.gpus))?, at(self.milli))?;
        if at(self.scheduled).is_empty() || at(self.deleted).is_empty() {
            return Ok(Err(Skipped::NeverStarted));
        }
        let start = not_negative("scheduled_time", at(self.scheduled))?;
        let run = seconds("deletion_time", at(self.deleted))? - start;
        if run < 0.0 {
            return Ok(Err(Skipped::EndBeforeStart));
        }
        let (share, gpu_types) = if gpus == 0 {
            (Share::Part(Amounts::of(&amounts)), None)
        } else {
            let spec = Some(at(self.spec)).filter(|spec| !spec.is_empty());
            let types = spec.map(types).transpose()?.unwrap_or_default();
            share(&mut kept.resources, amounts, gpus, &types)?
        };
        Ok(Ok(Job {
            id: number.ok_or_else(|| {
                format!("name {} does not end in a number", shown(at(self.name).as_bytes()))
            })?,
            submit,
            run,
            nodes: 1,
            share,
            gpu_types,
            recorded: Some(RecordedRun { start, ..RecordedRun::default() }),
            ..Job::default()
        }))
    }
}

/// Thousandths of GPUs in total; `gpu_milli` is the amount on each GPU.
fn gpus_of(gpus: u64, milli: &str) -> Result<u64, String> {
    let milli_each = amount("gpu_milli", milli)?;
    match (gpus, milli_each) {
        (0, 0) => Ok(0),
        (0, _) => Err(format!("gpu_milli {milli}, but num_gpu 0: a job takes a part of 1 GPU")),
        (_, 0) => Err(format!("gpu_milli 0 of num_gpu {gpus}: a job takes 1 to 1000 of a GPU")),
        (_, WHOLE) => Ok(gpus * WHOLE),
        (1, part) if part < WHOLE => Ok(part),
        _ => Err(format!(
            "gpu_milli {milli} of each of {gpus} GPUs: a job takes whole GPUs, or a part of one"
        )),
    }
}
