//! Reads workloads from files, whose format is recognised by name and content.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use topolane_fabric::{InputError, is_printable};

use super::job::{Job, Workload};
use super::options::ReadOptions;
use super::parse::{Skipped, unreadable};
use super::{csv::csv, foreign, openb, rfold, sacct::sacct, swf::swf};

/// The supported formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WorkloadFormat {
    Swf,
    Csv,
    Sacct,
    Rfold,
    Openb,
}

const NO_PARTITIONS: &str = "a CSV log names no partitions, so none can be chosen";
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// Large enough that the first bytes of a file contain a header line.
const BUFFER: usize = 1 << 16;

/// Reads a log: SWF, CSV or the output of `sacct -P`, plain or gzipped.
///
/// # Errors
/// A file that is missing or unreadable, or any error of its reader; all name the file.
pub fn read(path: impl AsRef<Path>, options: &ReadOptions) -> Result<Workload, InputError> {
    let path = path.as_ref();
    let in_file = |error: InputError| error.in_file(path.display().to_string());
    let file = File::open(path)
        .map_err(|error| in_file(InputError::whole(format!("cannot be opened: {error}"))))?;
    let mut input = BufReader::with_capacity(BUFFER, file);
    let start = input.fill_buf().map_err(|error| in_file(unreadable(0, &error)))?;
    let mut workload = if start.starts_with(&GZIP) {
        let plain = BufReader::with_capacity(BUFFER, MultiGzDecoder::new(input));
        read_plain(path, plain, options)
    } else {
        read_plain(path, input, options)
    }
    .map_err(in_file)?;
    workload.name = name(path);
    Ok(workload)
}

fn read_plain(
    path: &Path,
    mut input: impl BufRead,
    options: &ReadOptions,
) -> Result<Workload, InputError> {
    let start = input.fill_buf().map_err(|error| unreadable(1, &error))?;
    if start.trim_ascii().is_empty() && start.len() < BUFFER {
        return Err(InputError::whole("the file is empty"));
    }
    if let Some(advice) = foreign::advice(start) {
        return Err(InputError::whole(format!("not a log known here: {advice}")));
    }
    match format(path, start) {
        Some(WorkloadFormat::Swf) => swf(input, options),
        Some(WorkloadFormat::Rfold | WorkloadFormat::Openb) if options.partition.is_some() => {
            Err(InputError::whole(NO_PARTITIONS))
        }
        Some(WorkloadFormat::Csv) => {
            let workload = csv(input)?;
            match &options.partition {
                Some(partition) => of_partition(workload, partition),
                None => Ok(workload),
            }
        }
        Some(WorkloadFormat::Sacct) => sacct(input, options),
        Some(WorkloadFormat::Rfold) => rfold::rfold(input, options),
        Some(WorkloadFormat::Openb) => openb::openb(input),
        None => Err(InputError::whole(
            "not a log known here: SWF, CSV with a header line, the output of sacct -P, or a trace of GPU jobs",
        )),
    }
}

/// Keeps the jobs of one partition; the others are counted.
fn of_partition(mut workload: Workload, partition: &str) -> Result<Workload, InputError> {
    let name = |job: &Job| job.attributes.as_ref().map(|of| of.partition.clone());
    if workload.jobs.iter().all(|job| name(job).is_none_or(|name| name.is_empty())) {
        return Err(InputError::whole(NO_PARTITIONS));
    }
    let all = workload.jobs.len();
    workload.jobs.retain(|job| name(job).as_deref() == Some(partition));
    let others = (all - workload.jobs.len()) as u64;
    if others > 0 {
        workload.left_out.insert(Skipped::OtherPartition.reason().to_string(), others);
    }
    Ok(workload)
}

/// Recognises the format by the first line that is not a comment; if that is unclear, by the file extension.
fn format(path: &Path, start: &[u8]) -> Option<WorkloadFormat> {
    let line =
        start.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).find(|l| !l.is_empty())?;
    let has_extension = |extension: &str| {
        let name = path.file_name().map(|name| name.to_string_lossy().to_ascii_lowercase());
        name.is_some_and(|name| name.trim_end_matches(".gz").ends_with(extension))
    };
    if line.starts_with(rfold::BEGINS) {
        Some(WorkloadFormat::Rfold)
    } else if line.starts_with(openb::BEGINS) {
        Some(WorkloadFormat::Openb)
    } else if line[0] == b';' || has_extension(".swf") {
        Some(WorkloadFormat::Swf)
    } else if has_extension(".csv") {
        Some(WorkloadFormat::Csv)
    } else if line.contains(&b'|') {
        Some(WorkloadFormat::Sacct)
    } else if line.contains(&b',') {
        Some(WorkloadFormat::Csv)
    } else if line[0].is_ascii_digit() {
        Some(WorkloadFormat::Swf)
    } else {
        None
    }
}

/// The file name without its extensions.
fn name(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".gz").unwrap_or(&name);
    let stem = match name.rsplit_once('.') {
        Some((stem, _)) if !stem.is_empty() => stem,
        _ => name,
    };
    // The name appears in tables, so replace characters that are unsafe to print.
    stem.replace(|letter| !is_printable(letter), "_")
}
