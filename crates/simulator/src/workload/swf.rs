//! Reads the Standard Workload Format, version 2.2, of the Parallel Workloads Archive.

use std::collections::HashMap;
use std::io::BufRead;
use std::sync::Arc;

use topolane_fabric::{InputError, printable};

use super::job::{Details, Job, RecordedRun, Workload};
use super::options::ReadOptions;
use super::parse::{
    InputLines, KeptJobs, LARGEST_INTEGER, LATEST, MOST_PROCESSORS, Skipped, civil_seconds, shown,
};

/// The most partitions in a header, and the most characters of a partition name.
const MOST_PARTITIONS: usize = 10_000;
const LONGEST_NAME: usize = 255;

/// The number of fields in a record.
const FIELDS: usize = 18;

// Positions of the fields that are used, from 0.
const ID: usize = 0;
const SUBMIT: usize = 1;
const WAIT: usize = 2;
const RUN: usize = 3;
const ALLOCATED: usize = 4;
const REQUESTED: usize = 7;
const WALLTIME: usize = 8;
const STATUS: usize = 10;
const PARTITION: usize = 15;

/// Reads a log in the Standard Workload Format.
///
/// # Errors
/// A record of fewer than 18 fields, a field that is not a plausible number, a job that occurs twice, an unknown
/// partition, an input without records.
pub fn swf(input: impl BufRead, options: &ReadOptions) -> Result<Workload, InputError> {
    let mut lines = InputLines::new(input);
    let mut header = Header::default();
    let mut setting: Option<SwfRules> = None;
    let mut kept = KeptJobs::default();
    let mut partitions = HashMap::new();
    while let Some(line) = lines.next()? {
        let line = line.trim_ascii_start();
        match line.first() {
            None => {}
            Some(b';') => {
                let read = header.read(&line[1..]);
                read.map_err(|message| InputError::at(lines.number, message))?;
            }
            Some(_) => {
                let setting = match setting {
                    Some(setting) => setting,
                    None => *setting.insert(header.setting(options)?),
                };
                let mut named = |number: f64, kept: &mut KeptJobs| -> Option<Arc<Details>> {
                    let known = partitions.entry(number.to_bits());
                    known.or_insert_with(|| kept.shared(header.details(number))).clone()
                };
                record(line, setting, &mut kept, &mut named)
                    .map_err(|message| InputError::at(lines.number, message))?;
            }
        }
    }
    if setting.is_none() {
        return Err(InputError::whole("no job records: not a log in the Standard Workload Format"));
    }
    let cores_per_node = setting.map_or(1, |setting| setting.cores_per_node);
    let mut workload = kept.into_workload(cores_per_node);
    if setting.is_some_and(|setting| setting.is_assumed) {
        workload.assumed.push(header.assumed_cores());
    }
    workload.epoch = header.unix_start.unwrap_or(0.0);
    workload.utc_offset = header.utc_offset();
    Ok(workload)
}

/// The parts of the header that decide how records are read.
#[derive(Clone, Copy)]
struct SwfRules {
    cores_per_node: u32,
    /// Whether the cores per node are assumed because the header does not give them.
    is_assumed: bool,
    partition: Option<f64>,
}

/// The header comments that are used.
#[derive(Default)]
struct Header {
    unix_start: Option<f64>,
    /// `StartTime`: the local time at `UnixStartTime`, taken as UTC.
    local_start: Option<f64>,
    time_zone: Option<f64>,
    nodes: Option<f64>,
    processors: Option<f64>,
    /// Numbers and names of partitions.
    partitions: Vec<(f64, String)>,
    /// Sizes of the machine that are not numbers.
    unread: Vec<String>,
}

impl Header {
    /// Reads one comment of the form `Label: value`. Ignores all others.
    fn read(&mut self, comment: &[u8]) -> Result<(), String> {
        let comment = String::from_utf8_lossy(comment);
        let Some((label, value)) = comment.split_once(':') else { return Ok(()) };
        let value = value.trim();
        let mut words = value.split_whitespace();
        let first = words.next().unwrap_or_default();
        let number = number(first);
        let label = label.trim();
        if number.is_none() && ["MaxNodes", "MaxProcs"].contains(&label) && !first.is_empty() {
            self.unread.push(format!("{label} {}", shown(first.as_bytes())));
        }
        match label {
            "UnixStartTime" => self.unix_start = number,
            "StartTime" => self.local_start = local_time(value),
            "TimeZone" => self.time_zone = number,
            "MaxNodes" => self.nodes = number,
            "MaxProcs" => self.processors = number,
            "Partition" => {
                if let (Some(number), Some(name)) = (number, words.next()) {
                    if name.len() > LONGEST_NAME || self.partitions.len() == MOST_PARTITIONS {
                        let name = shown(name.as_bytes());
                        return Err(format!(
                            "partition {name}: at most {MOST_PARTITIONS}, of {LONGEST_NAME} letters each"
                        ));
                    }
                    self.partitions.push((number, printable(name).into_owned()));
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// The offset of the site's local time from UTC at the beginning of the log, in seconds.
    ///
    /// The difference between `StartTime` and `UnixStartTime` is preferred. The format calls `TimeZone` unreliable:
    /// logs from the Pacific coast have 3600 there.
    fn utc_offset(&self) -> f64 {
        const QUARTER: f64 = 900.0;
        const FARTHEST: f64 = 14.0 * 3_600.0;
        let by_start = self.local_start.zip(self.unix_start).map(|(local, unix)| local - unix);
        by_start
            .filter(|offset| offset.abs() <= FARTHEST && offset % QUARTER == 0.0)
            .or(self.time_zone.filter(|offset| offset.abs() <= FARTHEST))
            .unwrap_or(0.0)
    }

    fn setting(&self, options: &ReadOptions) -> Result<SwfRules, InputError> {
        let cores_per_node = match options.cores_per_node {
            Some(0) => return Err(InputError::whole("a node has at least 1 core, not 0")),
            Some(cores) => cores,
            None => self.cores_per_node().unwrap_or(1),
        };
        let is_assumed = options.cores_per_node.is_none() && self.cores_per_node().is_none();
        let partition =
            options.partition.as_deref().map(|name| self.partition(name)).transpose()?;
        Ok(SwfRules { cores_per_node, is_assumed, partition })
    }

    /// `MaxProcs / MaxNodes`, if both are given and the result is a whole number.
    fn cores_per_node(&self) -> Option<u32> {
        let cores = self.processors? / self.nodes?;
        (cores.fract() == 0.0 && (1.0..=MOST_PROCESSORS).contains(&cores)).then_some(cores as u32)
    }

    /// A sentence about the assumed number of cores per node, and the reason.
    fn assumed_cores(&self) -> String {
        let why = match (self.nodes, self.processors) {
            _ if !self.unread.is_empty() => {
                format!("{} is not a number", self.unread.join(" and "))
            }
            (Some(nodes), Some(processors)) => {
                format!("MaxProcs {processors} is not a multiple of MaxNodes {nodes}")
            }
            _ => "the header does not give both MaxProcs and MaxNodes".to_owned(),
        };
        format!(
            "{why}: 1 core per node is assumed, so each processor of a job is a node (--cores-per-node)"
        )
    }

    /// What is said of a job in the partition of that number: its name, or else the number. A negative one is unknown.
    fn details(&self, number: f64) -> Details {
        if number < 0.0 {
            return Details::default();
        }
        let mut known = self.partitions.iter().rev();
        let name = known.find(|(known, _)| known.total_cmp(&number).is_eq());
        let partition = name.map_or_else(|| number.to_string(), |(_, name)| name.clone());
        Details { partition: Arc::from(partition), ..Details::default() }
    }

    /// The number of a partition, which is given by number or by name.
    fn partition(&self, name: &str) -> Result<f64, InputError> {
        if let Some((number, _)) = self.partitions.iter().find(|(_, known)| known == name) {
            return Ok(*number);
        }
        name.parse::<u32>().map(f64::from).map_err(|_| {
            let known: Vec<&str> = self.partitions.iter().map(|(_, name)| name.as_str()).collect();
            let known = if known.is_empty() { "none".to_string() } else { known.join(", ") };
            InputError::whole(format!(
                "no partition {}: the log's header names {known}",
                shown(name.as_bytes())
            ))
        })
    }
}

/// Parses a number of the header: `1024`, or `1,024` with a comma before every three digits.
fn number(text: &str) -> Option<f64> {
    let mut groups = text.split(',');
    let is_grouped = text.contains(',')
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b',')
        && groups.next().is_some_and(|first| (1..=3).contains(&first.len()))
        && groups.all(|group| group.len() == 3);
    let parsed = if is_grouped { text.replace(',', "").parse() } else { text.parse::<f64>() };
    parsed.ok().filter(|number| number.abs() <= LATEST)
}

/// Parses `Fri Nov 10 15:05:01 PST 2006` as if it were UTC.
fn local_time(text: &str) -> Option<f64> {
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let words: Vec<&str> = text.split_whitespace().collect();
    let [_, month, day, time, .., year] = words.as_slice() else { return None };
    let (_, month) = MONTHS.iter().zip(1..).find(|(known, _)| *known == month)?;
    let mut clock = time.split(':').map(|part| part.parse::<i64>().ok());
    let time = (clock.next()??, clock.next()??, clock.next()??);
    civil_seconds((year.parse().ok()?, month, day.parse().ok()?), time)
}

/// Reads one record and keeps or skips it. `named` gives what is said of a partition.
fn record(
    line: &[u8],
    setting: SwfRules,
    kept: &mut KeptJobs,
    named: &mut impl FnMut(f64, &mut KeptJobs) -> Option<Arc<Details>>,
) -> Result<(), String> {
    let fields = fields(line)?;
    let status = fields[STATUS];
    if setting.partition.is_some_and(|partition| partition.total_cmp(&fields[PARTITION]).is_ne()) {
        kept.skip(Skipped::OtherPartition);
        return Ok(());
    }
    // A job that was swapped out has a line for the whole job and one for each part (status 2, 3, 4).
    if (2.0..=4.0).contains(&status) {
        kept.skip(Skipped::PartialExecution);
        return Ok(());
    }
    let processors = if fields[ALLOCATED] > 0.0 { fields[ALLOCATED] } else { fields[REQUESTED] };
    if processors > MOST_PROCESSORS {
        return Err(format!("{processors} processors are too many"));
    }
    let (id, submit, wait, run) = (fields[ID], fields[SUBMIT], fields[WAIT], fields[RUN]);
    for (what, time) in [
        ("submit time", submit),
        ("wait time", wait),
        ("run time", run),
        ("requested time", fields[WALLTIME]),
    ] {
        if time > LATEST {
            return Err(format!("{what} {time} is too large"));
        }
    }
    if id < 0.0 || id.fract() != 0.0 {
        return Err(format!("job number {id} is not a whole number from 0"));
    }
    if submit < 0.0 {
        return Err(format!("submit time {submit} is negative"));
    }
    if run < 0.0 || processors <= 0.0 {
        kept.skip(Skipped::NeverRan);
        return Ok(());
    }
    let details = named(fields[PARTITION], kept);
    kept.keep(Job {
        id: id as u64,
        submit,
        run,
        walltime: Some(fields[WALLTIME]).filter(|&walltime| walltime > 0.0),
        nodes: (processors / f64::from(setting.cores_per_node)).ceil() as u32,
        recorded: (wait >= 0.0)
            .then(|| RecordedRun { start: submit + wait, ..RecordedRun::default() }),
        details,
        ..Job::default()
    })
}

/// The fields of a record. There may be more than 18, because some logs add their own.
fn fields(line: &[u8]) -> Result<[f64; FIELDS], String> {
    let mut fields = [0.0; FIELDS];
    let mut at = 0;
    for (index, field) in fields.iter_mut().enumerate() {
        while line.get(at).is_some_and(u8::is_ascii_whitespace) {
            at += 1;
        }
        let rest = &line[at..];
        if rest.is_empty() {
            return Err(format!("{index} fields, where a record has {FIELDS}"));
        }
        let (value, length) = match integer(rest) {
            Some((value, length)) => (value as f64, length),
            None => fraction(rest)
                .ok_or_else(|| format!("field {} is {}, not a number", index + 1, word(rest)))?,
        };
        if value.abs() > LARGEST_INTEGER {
            return Err(format!("field {} is {}, too large", index + 1, word(rest)));
        }
        *field = value;
        at += length;
    }
    Ok(fields)
}

/// Parses the first word of a text as an integer; returns it and its length. Nearly all fields are integers, and
/// reading a log spends most of its time in this loop.
#[inline]
fn integer(text: &[u8]) -> Option<(i64, usize)> {
    // 15 digits are exact and cannot overflow.
    const DIGITS: usize = 15;
    // Half of all fields are -1, for unknown.
    if let [b'-', b'1', b' ', ..] = text {
        return Some((-1, 2));
    }
    let sign = usize::from(text[0] == b'-');
    let mut value = 0_i64;
    let mut at = sign;
    while let Some(&byte) = text.get(at) {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            if !byte.is_ascii_whitespace() {
                return None;
            }
            break;
        }
        value = value.wrapping_mul(10).wrapping_add(i64::from(digit));
        at += 1;
    }
    (1..=DIGITS)
        .contains(&(at - sign))
        .then_some((if sign == 1 { value.wrapping_neg() } else { value }, at))
}

/// Parses the first word of a text as any number; returns it and its length.
fn fraction(text: &[u8]) -> Option<(f64, usize)> {
    let length = first_word(text).len();
    let value = std::str::from_utf8(&text[..length]).ok()?.parse::<f64>().ok()?;
    // Rust accepts `nan` and `inf`; the format has no such values.
    value.is_finite().then_some((value, length))
}

fn first_word(text: &[u8]) -> &[u8] {
    text.split(u8::is_ascii_whitespace).next().unwrap_or_default()
}

fn word(text: &[u8]) -> String {
    shown(first_word(text))
}
