//! Reads the output of `sacct -P`: pipe-separated, with a header line.

use std::io::BufRead;
use std::sync::Arc;

use topolane_fabric::resources::{CORES, MEMORY, Resources};
use topolane_fabric::{InputError, printable};
use topolane_placement::{Amounts, Share};

use super::job::{Details, Job, RecordedRun, Workload};
use super::options::ReadOptions;
use super::parse::{InputLines, KeptJobs, Skipped, amount, civil_seconds, count, seconds, shown};

/// The ids of array tasks are `job + (task + 1) * TASK`; no job number is that large.
const TASK: u64 = 10_000_000_000;

/// Reads the output of `sacct -P`. Times are the site's local times, taken as UTC.
///
/// # Errors
/// A missing column, a row with another number of fields than the header, an unreadable value, a job that occurs twice,
/// an input without rows.
pub fn sacct(input: impl BufRead, options: &ReadOptions) -> Result<Workload, InputError> {
    let mut lines = InputLines::new(input);
    let Some(header) = lines.next()? else {
        return Err(InputError::whole("empty, where a header line of sacct -P is expected"));
    };
    let header = String::from_utf8_lossy(header).into_owned();
    let columns =
        SacctColumns::new(&header, options).map_err(|message| InputError::at(1, message))?;
    let mut kept = KeptJobs::default();
    let mut rows = 0_u64;
    while let Some(line) = lines.next()? {
        // Concatenated exports repeat the header.
        if line.is_empty() || line == header.as_bytes() {
            continue;
        }
        rows += 1;
        let line = String::from_utf8_lossy(line);
        let row: Vec<&str> = line.split('|').map(str::trim).collect();
        match columns.job(&row, rows, options, &mut kept.resources).and_then(|job| match job {
            Ok(job) => {
                let details = kept.shared(columns.details(&row));
                kept.keep(Job { details, ..job })
            }
            Err(why) => {
                kept.skip(why);
                Ok(())
            }
        }) {
            Ok(()) => {}
            Err(message) => return Err(InputError::at(lines.number, message)),
        }
    }
    if rows == 0 {
        return Err(InputError::whole("a header line and no rows"));
    }
    let mut workload = kept.into_workload(1);
    workload.epoch = workload.jobs.first().map_or(0.0, |job| job.submit);
    for job in &mut workload.jobs {
        job.submit -= workload.epoch;
        if let Some(recorded) = &mut job.recorded {
            recorded.start -= workload.epoch;
        }
    }
    Ok(workload)
}

/// The positions of the columns.
struct SacctColumns {
    count: usize,
    submit: usize,
    start: usize,
    end: Option<usize>,
    elapsed_raw: Option<usize>,
    elapsed: Option<usize>,
    nodes: usize,
    id_raw: Option<usize>,
    id: Option<usize>,
    limit_raw: Option<usize>,
    limit: Option<usize>,
    hosts: Option<usize>,
    cores: Option<usize>,
    partition: Option<usize>,
    eligible: Option<usize>,
    reservation: Option<usize>,
    reason: Option<usize>,
    state: Option<usize>,
    memory: Option<usize>,
    /// The columns with generic resources; the first that is not empty is used.
    tres: [Option<usize>; 2],
}

impl SacctColumns {
    fn new(header: &str, options: &ReadOptions) -> Result<Self, String> {
        let names: Vec<&str> = header.trim_start_matches('\u{feff}').split('|').collect();
        let find = |name: &str| names.iter().position(|n| n.trim().eq_ignore_ascii_case(name));
        // A first cell that begins with a digit is a job number, not a column name.
        let is_row = names.iter().any(|name| name.trim().starts_with(|c: char| c.is_ascii_digit()));
        if is_row && find("Submit").is_none() {
            return Err(
                "no header line: the first line is a job; run sacct -P without --noheader (-n)"
                    .into(),
            );
        }
        let need = |name: &str| find(name).ok_or_else(|| format!("no column {name}"));
        let columns = SacctColumns {
            count: names.len(),
            submit: need("Submit")?,
            start: need("Start")?,
            end: find("End"),
            elapsed_raw: find("ElapsedRaw"),
            elapsed: find("Elapsed"),
            nodes: find("NNodes").map_or_else(|| need("AllocNodes"), Ok)?,
            id_raw: find("JobIDRaw"),
            id: find("JobID"),
            limit_raw: find("TimelimitRaw"),
            limit: find("Timelimit"),
            hosts: find("NodeList"),
            cores: find("NCPUS").or_else(|| find("AllocCPUS")),
            partition: find("Partition"),
            eligible: find("Eligible"),
            reservation: find("Reservation"),
            reason: find("Reason"),
            state: find("State"),
            memory: find("ReqMem"),
            tres: [find("AllocTRES"), find("ReqTRES")],
        };
        if columns.end.or(columns.elapsed_raw).or(columns.elapsed).is_none() {
            return Err("no column End, ElapsedRaw or Elapsed".into());
        }
        if options.shared && columns.cores.is_none() {
            return Err("no column NCPUS, which shared nodes need".into());
        }
        if options.partition.is_some() && columns.partition.is_none() {
            return Err("no column Partition, to choose one".into());
        }
        Ok(columns)
    }

    /// The job of a row, or why the row is not a job. `number` counts rows from 1.
    fn job(
        &self,
        row: &[&str],
        number: u64,
        options: &ReadOptions,
        resources: &mut Resources,
    ) -> Result<Result<Job, Skipped>, String> {
        if row.len() != self.count {
            return Err(format!("{} fields, where the header has {}", row.len(), self.count));
        }
        let at = |column: Option<usize>| column.map(|column| row[column]);
        let id = at(self.id_raw).or(at(self.id));
        if id.is_some_and(|id| id.contains('.')) {
            return Ok(Err(Skipped::Step));
        }
        if options.partition.is_some() && at(self.partition) != options.partition.as_deref() {
            return Ok(Err(Skipped::OtherPartition));
        }
        let Some(start) = time("Start", row[self.start])? else {
            return Ok(Err(Skipped::NeverStarted));
        };
        if at(self.hosts) == Some("None assigned") || row[self.nodes] == "0" {
            return Ok(Err(Skipped::NeverStarted));
        }
        let end = at(self.end).map(|end| time("End", end)).transpose()?;
        let state = at(self.state).unwrap_or_default();
        if end == Some(None) || ["RUNNING", "SUSPENDED"].contains(&state) {
            return Ok(Err(Skipped::StillRunning));
        }
        let run = match (at(self.elapsed_raw), at(self.elapsed), end.flatten()) {
            (Some(raw), _, _) if !raw.is_empty() => seconds("ElapsedRaw", raw)?,
            (_, Some(text), _) if !text.is_empty() => length("Elapsed", text)?,
            (_, _, Some(end)) => end - start,
            _ => return Err("no run time: End and Elapsed are empty".into()),
        };
        if run < 0.0 {
            return Ok(Err(Skipped::EndBeforeStart));
        }
        let nodes = count("NNodes", row[self.nodes])?;
        Ok(Ok(Job {
            id: id.map_or(Ok(number), job_id)?,
            submit: time("Submit", row[self.submit])?.ok_or("Submit is unknown")?,
            run,
            walltime: self.walltime(row)?,
            nodes,
            share: if options.shared { self.share(row, nodes, resources)? } else { Share::Whole },
            recorded: Some(RecordedRun {
                start,
                hosts: printable(at(self.hosts).unwrap_or_default()).into_owned(),
                ..RecordedRun::default()
            }),
            ..Job::default()
        }))
    }

    /// What the row of a job says besides. A time that cannot be read says nothing.
    fn details(&self, row: &[&str]) -> Details {
        let at = |column: Option<usize>| column.map_or("", |column| row[column]);
        let when = |what, column| time(what, at(column)).ok().flatten();
        let submitted = when("Submit", Some(self.submit));
        let is_held = when("Eligible", self.eligible)
            .is_some_and(|eligible| submitted.is_some_and(|submitted| eligible > submitted));
        let partition = Arc::from(&*printable(at(self.partition)));
        Details::new(partition, is_held, at(self.reservation), at(self.reason))
    }

    fn walltime(&self, row: &[&str]) -> Result<Option<f64>, String> {
        let unlimited = |text: &str| {
            ["", "unlimited", "partition_limit", "invalid"].contains(&&*text.to_lowercase())
        };
        match (self.limit_raw.map(|c| row[c]), self.limit.map(|c| row[c])) {
            (Some(raw), _) if !unlimited(raw) => seconds("TimelimitRaw", raw).map(|m| m * 60.0),
            (None, Some(text)) if !unlimited(text) => length("Timelimit", text),
            _ => return Ok(None),
        }
        .map(|limit| Some(limit).filter(|&limit| limit > 0.0))
    }

    /// What the job takes on each node: an even share of its total, rounded up.
    fn share(&self, row: &[&str], nodes: u32, resources: &mut Resources) -> Result<Share, String> {
        let cores = self.cores.map_or(Ok(nodes), |column| count("NCPUS", row[column]))?;
        let cores = cores.div_ceil(nodes);
        let memory = self.memory.map_or(Ok(0), |column| memory(row[column], nodes, cores))?;
        let mut counts = vec![0; resources.names().len()];
        counts[CORES] = u64::from(cores);
        counts[MEMORY] = memory;
        let mut tres = self.tres.iter().flatten().map(|&column| row[column]);
        for (name, count) in generic_resources(tres.find(|text| !text.is_empty()).unwrap_or(""))? {
            let index = resources.add(name)?;
            counts.resize(resources.names().len(), 0);
            counts[index] = count.div_ceil(u64::from(nodes));
        }
        resources.include_types(&mut counts);
        Ok(Share::Part(Amounts::of(&counts)))
    }
}

/// Parses the names and counts of `gres/gpu=8,gres/gpu:h100=8` among a job's other resources. Counts are for all its
/// nodes together.
fn generic_resources(tres: &str) -> Result<Vec<(&str, u64)>, String> {
    let items = tres.split(',').filter_map(|item| item.trim().strip_prefix("gres/"));
    items
        .map(|item| {
            let (name, count) = item.split_once('=').unwrap_or((item, "1"));
            Ok((name, amount(&format!("gres/{name}"), count)?))
        })
        .collect()
}

/// Parses `1552`, an array task `12_3`, or a component `12+1` of a heterogeneous job.
fn job_id(text: &str) -> Result<u64, String> {
    let id = if let Some((job, task)) = text.split_once('_') {
        job.parse().ok().zip(task.parse().ok()).and_then(|(job, task): (u64, u64)| {
            (job < TASK).then_some(())?;
            task.checked_add(1)?.checked_mul(TASK)?.checked_add(job)
        })
    } else if let Some((job, component)) = text.split_once('+') {
        // Slurm gives consecutive numbers to the components of a heterogeneous job.
        let parts: Option<(u64, u64)> = job.parse().ok().zip(component.parse().ok());
        parts.and_then(|(job, component)| job.checked_add(component))
    } else {
        text.parse().ok()
    };
    id.ok_or_else(|| format!("{} is not a job number", shown(text.as_bytes())))
}

/// Parses `2026-11-21T19:12:48`, or seconds since 1970; `None` if sacct does not know the time.
fn time(what: &str, text: &str) -> Result<Option<f64>, String> {
    if ["", "Unknown", "None", "N/A"].contains(&text) {
        return Ok(None);
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return seconds(what, text).map(Some);
    }
    let wrong =
        || format!("{what} {} is not a time like 2026-11-21T19:12:48", shown(text.as_bytes()));
    let (date, clock) = text.split_once('T').ok_or_else(wrong)?;
    let date = three(date, '-').ok_or_else(wrong)?;
    let clock = three(clock, ':').ok_or_else(wrong)?;
    civil_seconds(date, clock).map(Some).ok_or_else(wrong)
}

fn three(text: &str, separator: char) -> Option<(i64, i64, i64)> {
    let mut parts = text.split(separator).map(|part| {
        part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten()
    });
    let three = (parts.next()??, parts.next()??, parts.next()??);
    parts.next().is_none().then_some(three)
}

/// Parses `[days-][hours:]minutes:seconds` into seconds; fractions of a second are kept.
fn length(what: &str, text: &str) -> Result<f64, String> {
    let wrong = || format!("{what} {} is not a time like 1-02:03:04", shown(text.as_bytes()));
    let (days, clock) = text.split_once('-').unwrap_or(("0", text));
    let days: u32 = days.parse().map_err(|_| wrong())?;
    let parts: Vec<f64> = clock
        .split(':')
        .map(|part| part.parse().ok().filter(|value| (0.0..1e9).contains(value)))
        .collect::<Option<_>>()
        .ok_or_else(wrong)?;
    let clock = match parts.as_slice() {
        [minutes, seconds] => minutes * 60.0 + seconds,
        [hours, minutes, seconds] => hours * 3_600.0 + minutes * 60.0 + seconds,
        _ => return Err(wrong()),
    };
    Ok(f64::from(days) * 86_400.0 + clock)
}

/// Parses memory into bytes per node: `4000Mn` is per node, `4Gc` per core, `4G` for the whole job.
fn memory(text: &str, nodes: u32, cores_of_node: u32) -> Result<u64, String> {
    let wrong = || format!("ReqMem {} is not an amount of memory like 4G", shown(text.as_bytes()));
    let number =
        text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic() || letter == '?');
    if number.is_empty() {
        return if text.is_empty() { Ok(0) } else { Err(wrong()) };
    }
    let value: f64 = number.parse().map_err(|_| wrong())?;
    let (mut unit, mut per) = (1_048_576.0, 1.0 / f64::from(nodes));
    for letter in text[number.len()..].chars() {
        match letter.to_ascii_uppercase() {
            'K' => unit = 1024.0,
            'M' => unit = 1_048_576.0,
            'G' => unit = 1_073_741_824.0,
            'T' => unit = 1_099_511_627_776.0,
            'P' => unit = 1_125_899_906_842_624.0,
            'N' => per = 1.0,
            'C' => per = f64::from(cores_of_node),
            '?' => {}
            _ => return Err(wrong()),
        }
    }
    let bytes = (value * unit * per).ceil();
    if (0.0..1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(wrong()) }
}
