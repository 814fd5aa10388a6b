//! Code shared by the readers: numbers, times, and the jobs kept so far.

use std::collections::{BTreeMap, HashSet};
use std::io::{self, BufRead, ErrorKind, Read};
use std::sync::Arc;

use topolane_fabric::InputError;
use topolane_fabric::resources::Resources;

use super::job::{Details, Job, Workload};

/// Times beyond this (30 million years) are mistakes.
pub(super) const LATEST: f64 = 1e15;
/// Not every larger integer is an exact floating-point number.
pub(super) const LARGEST_INTEGER: f64 = 9_007_199_254_740_992.0;
/// Larger numbers of nodes or processors are mistakes.
pub(super) const MOST_PROCESSORS: f64 = 2_147_483_648.0;

/// The longest line or record in bytes: enough for a hostlist of a hundred thousand nodes.
pub(super) const LONGEST_LINE: usize = 1 << 20;
/// The most jobs of one log.
const MOST_JOBS: usize = 10_000_000;
/// The most bytes of node lists and earlier runs of all jobs together.
const MOST_HISTORY: usize = 1 << 28;

/// The note about jobs that started before their submission, because a clock was set back.
const STARTED_EARLY: &str =
    "started before submission: the clock jumped; submission is moved to the start";

/// Why a record is not a job.
#[derive(Debug, Clone, Copy)]
pub(super) enum Skipped {
    NeverRan,
    PartialExecution,
    OtherPartition,
    NeverStarted,
    StillRunning,
    Step,
    EndBeforeStart,
}

impl Skipped {
    pub(super) fn reason(self) -> &'static str {
        match self {
            Skipped::NeverRan => "never ran",
            Skipped::PartialExecution => "part of a job that has a line of its own",
            Skipped::OtherPartition => "in another partition",
            Skipped::NeverStarted => "never started",
            Skipped::StillRunning => "still running",
            Skipped::Step => "step of a job",
            Skipped::EndBeforeStart => "ended before it started",
        }
    }
}

/// The jobs kept so far, and the counts of skipped records.
#[derive(Default)]
pub(super) struct KeptJobs {
    pub(super) jobs: Vec<Job>,
    pub(super) resources: Resources,
    skipped: [u64; 7],
    /// Jobs that started before their submission.
    early: u64,
    /// Bytes of all node lists and earlier runs.
    history: usize,
    highest: Option<u64>,
    /// All ids, collected only once they stop ascending; most logs never need it.
    seen: Option<HashSet<u64>>,
    /// The details of all jobs, each once, because they recur in most records.
    details: HashSet<Arc<Details>>,
}

impl KeptJobs {
    /// These details, shared with the other jobs that have the same; `None` if they say nothing.
    pub(super) fn shared(&mut self, details: Details) -> Option<Arc<Details>> {
        if details == Details::default() {
            return None;
        }
        if let Some(known) = self.details.get(&details) {
            return Some(Arc::clone(known));
        }
        let details = Arc::new(details);
        self.details.insert(Arc::clone(&details));
        Some(details)
    }

    pub(super) fn skip(&mut self, why: Skipped) {
        self.skipped[why as usize] += 1;
    }

    /// Keeps a job. Refuses an id that occurred before, or a log that needs too much memory. A job that started before
    /// its submission, because a clock was set back, counts as submitted at its start.
    pub(super) fn keep(&mut self, mut job: Job) -> Result<(), String> {
        let start = job.recorded.as_ref().map(|recorded| recorded.start);
        if let Some(start) = start.filter(|&start| start < job.submit) {
            job.submit = start;
            self.early += 1;
        }
        if self.jobs.len() >= MOST_JOBS {
            return Err(format!("more than {MOST_JOBS} jobs: give a part of the log"));
        }
        self.history += job
            .recorded
            .as_ref()
            .map_or(0, |recorded| recorded.hosts.len() + size_of_val(&recorded.earlier[..]));
        if self.history > MOST_HISTORY {
            return Err(format!(
                "node lists and earlier runs of more than {MOST_HISTORY} bytes: give a part of the log"
            ));
        }
        let rising = self.highest.is_none_or(|highest| job.id > highest);
        if rising {
            self.highest = Some(job.id);
        }
        if self.seen.is_some() || !rising {
            let kept = &self.jobs;
            let seen = self.seen.get_or_insert_with(|| kept.iter().map(|job| job.id).collect());
            if !seen.insert(job.id) {
                return Err(format!("job {} appears a second time", job.id));
            }
        }
        self.jobs.push(job);
        Ok(())
    }

    /// Returns the workload, with jobs sorted by submission, then by position in the log.
    pub(super) fn into_workload(mut self, cores_per_node: u32) -> Workload {
        use Skipped::{
            EndBeforeStart, NeverRan, NeverStarted, OtherPartition, PartialExecution, Step,
            StillRunning,
        };
        self.jobs.sort_by(|a, b| a.submit.total_cmp(&b.submit));
        let skipped: BTreeMap<String, u64> = [
            NeverRan,
            PartialExecution,
            OtherPartition,
            NeverStarted,
            StillRunning,
            Step,
            EndBeforeStart,
        ]
        .into_iter()
        .filter(|&why| self.skipped[why as usize] > 0)
        .map(|why| (why.reason().to_string(), self.skipped[why as usize]))
        .collect();
        let KeptJobs { jobs, resources, early, .. } = self;
        let early = (early > 0).then(|| (STARTED_EARLY.to_owned(), early));
        let changed = early.into_iter().collect();
        Workload {
            cores_per_node,
            resources,
            jobs,
            left_out: skipped,
            changed,
            ..Workload::default()
        }
    }
}

/// The lines of an input, numbered from 1, without line ends.
pub(super) struct InputLines<R> {
    input: R,
    line: Vec<u8>,
    pub(super) number: usize,
}

impl<R: BufRead> InputLines<R> {
    pub(super) fn new(input: R) -> Self {
        InputLines { input, line: Vec::new(), number: 0 }
    }

    /// The next line; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, InputError> {
        self.line.clear();
        self.number += 1;
        let length = (&mut self.input)
            .take(LONGEST_LINE as u64 + 1)
            .read_until(b'\n', &mut self.line)
            .map_err(|error| unreadable(self.number, &error))?;
        if length > LONGEST_LINE {
            return Err(InputError::at(self.number, too_long()));
        }
        Ok((length > 0).then(|| self.line.trim_ascii_end()))
    }
}

fn too_long() -> String {
    format!("the line is longer than {LONGEST_LINE} bytes")
}

/// An input that limits the number of bytes per record. Otherwise a missing closing quote would make one record of all
/// that follows.
pub(super) struct Records<R> {
    input: R,
    left: usize,
}

impl<R: BufRead> Records<R> {
    pub(super) fn new(input: R) -> Self {
        Records { input, left: LONGEST_LINE }
    }

    /// Allows another record.
    pub(super) fn begin(&mut self) {
        self.left = LONGEST_LINE;
    }
}

impl<R: BufRead> Read for Records<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !buffer.is_empty() && !self.input.fill_buf()?.is_empty() {
            return Err(io::Error::new(ErrorKind::FileTooLarge, too_long()));
        }
        let most = buffer.len().min(self.left);
        let length = self.input.read(&mut buffer[..most])?;
        self.left -= length;
        Ok(length)
    }
}

/// The error for an input that ends too early or cannot be read.
pub(super) fn unreadable(line: usize, error: &io::Error) -> InputError {
    let message = match error.kind() {
        ErrorKind::UnexpectedEof => "the compressed data ends too early".to_string(),
        ErrorKind::FileTooLarge => error.to_string(),
        ErrorKind::InvalidData | ErrorKind::InvalidInput => {
            format!("the data is damaged: {error}")
        }
        _ => format!("cannot be read: {error}"),
    };
    InputError::at(line, message)
}

/// Formats input text for an error message: short, and without control characters.
pub(super) fn shown(text: &[u8]) -> String {
    const LONGEST: usize = 40;
    let cut = &text[..text.len().min(LONGEST)];
    let dots = if text.len() > LONGEST { "..." } else { "" };
    format!("'{}{dots}'", String::from_utf8_lossy(cut).escape_debug())
}

/// Parses a time or a duration: finite, and not implausibly large.
pub(super) fn seconds(what: &str, text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.abs() <= LATEST => Ok(value),
        Ok(value) if value.is_finite() => Err(format!("{what} {value} is too large")),
        _ => Err(format!("{what} {} is not a number", shown(text.as_bytes()))),
    }
}

/// Parses a time or a duration that is not negative.
pub(super) fn not_negative(what: &str, text: &str) -> Result<f64, String> {
    match seconds(what, text)? {
        value if value < 0.0 => Err(format!("{what} {value} is negative")),
        value => Ok(value),
    }
}

/// Parses a number of nodes, cores or processors; at least 1.
pub(super) fn count(what: &str, text: &str) -> Result<u32, String> {
    match text.trim().parse::<f64>() {
        Ok(value) if value.fract() == 0.0 && (1.0..=MOST_PROCESSORS).contains(&value) => {
            Ok(value as u32)
        }
        _ => Err(format!(
            "{what} {} is not a whole number from 1 to {MOST_PROCESSORS}",
            shown(text.as_bytes())
        )),
    }
}

/// Parses an amount of a resource; at least 0. K, M, G, T and P multiply by powers of 1024.
pub(super) fn amount(what: &str, text: &str) -> Result<u64, String> {
    let powers = [('K', 1), ('M', 2), ('G', 3), ('T', 4), ('P', 5)];
    let power = powers.iter().find(|&&(letter, _)| text.ends_with(letter));
    let (number, unit) =
        power.map_or((text, 1), |&(_, power)| (&text[..text.len() - 1], 1024_u64.pow(power)));
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
    let count = number.parse().ok().filter(|_| is_number);
    let count = count.and_then(|count: u64| count.checked_mul(unit));
    count
        .filter(|&count| count <= u64::from(u32::MAX) * 1024)
        .ok_or_else(|| format!("{what} {} is not a count of a resource", shown(text.as_bytes())))
}

/// Days from 1970-01-01 to a date of the Gregorian calendar.
///
/// Years begin in March here, so that the leap day is the last of its year (Hinnant, "chrono-compatible low-level date
/// algorithms", 2013).
fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

/// Seconds since 1970 of a calendar time, taken as UTC; `None` if there is no such time.
pub(super) fn civil_seconds(date: (i64, i64, i64), time: (i64, i64, i64)) -> Option<f64> {
    let (year, month, day) = date;
    let (hour, minute, second) = time;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = match month {
        2 if leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    let exists = (1..=9999).contains(&year)
        && (1..=12).contains(&month)
        && (1..=last).contains(&day)
        && (0..24).contains(&hour)
        && (0..60).contains(&minute)
        && (0..=60).contains(&second);
    if !exists {
        return None;
    }
    let days = days_from_civil(year, month, day);
    Some((days * 86_400 + hour * 3_600 + minute * 60 + second) as f64)
}
