//! Comma-separated workloads with a header line; the job tables of Batsim are read too.

use std::io::BufRead;

use csv::StringRecord;
use topolane_fabric::InputError;
use topolane_placement::Share;

use super::job::{Job, Recorded, Workload};
use super::parse::{Kept, Records, count, seconds, shown, unreadable};

/// Reads comma-separated jobs; seconds and bytes, columns in any order, others passed over.
///
/// # Errors
/// A missing or doubled column, a row of another length, a value that cannot be read, the same
/// job twice, a record of more than a mebibyte, an input without rows.
pub fn csv(input: impl BufRead) -> Result<Workload, InputError> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(Records::new(input));
    let header = reader.headers().map_err(|error| broken(1, &error))?;
    let columns = Columns::new(header).map_err(|message| InputError::at(1, message))?;
    let mut kept = Kept::default();
    let mut row = StringRecord::new();
    let mut rows = false;
    loop {
        reader.get_mut().begin();
        let line = reader.position().line() as usize;
        if !reader.read_record(&mut row).map_err(|error| broken(line, &error))? {
            break;
        }
        rows = true;
        columns.job(&row).and_then(|job| kept.keep(job)).map_err(|message| {
            InputError::at(row.position().map_or(0, |at| at.line() as usize), message)
        })?;
    }
    if !rows {
        return Err(InputError::whole("a header line and no jobs"));
    }
    Ok(kept.into_workload(1))
}

/// An error of the csv crate in our words, about the record that begins at a line.
fn broken(line: usize, error: &csv::Error) -> InputError {
    let line = error.position().map_or(line, |at| at.line() as usize);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            InputError::at(line, format!("{len} fields, where the header has {expected_len}"))
        }
        csv::ErrorKind::Utf8 { .. } => InputError::at(line, "not UTF-8 text"),
        csv::ErrorKind::Io(error) => unreadable(line, error),
        _ => InputError::at(line, error.to_string()),
    }
}

/// Where each column stands.
struct Columns {
    id: usize,
    submit: usize,
    run: usize,
    nodes: usize,
    walltime: Option<usize>,
    cores: Option<usize>,
    memory: Option<usize>,
    start: Option<usize>,
    hosts: Option<usize>,
}

impl Columns {
    fn new(header: &StringRecord) -> Result<Self, String> {
        let find = |names: &[&str]| {
            let mut places = header
                .iter()
                .enumerate()
                .filter(|(_, name)| names.contains(name))
                .map(|(at, _)| at);
            match (places.next(), places.next()) {
                (first, None) => Ok(first),
                _ => Err(format!("two columns {}", names.join(" or "))),
            }
        };
        let need = |names: &[&str]| {
            find(names)?.ok_or_else(|| format!("no column {}", names.join(" or ")))
        };
        Ok(Columns {
            id: need(&["id", "job_id"])?,
            submit: need(&["submit", "submission_time"])?,
            run: need(&["run", "execution_time"])?,
            nodes: need(&["nodes", "requested_number_of_resources"])?,
            walltime: find(&["walltime", "requested_time"])?,
            cores: find(&["cores"])?,
            memory: find(&["memory"])?,
            start: find(&["start", "starting_time"])?,
            hosts: find(&["hosts"])?,
        })
    }

    fn job(&self, row: &StringRecord) -> Result<Job, String> {
        let at = |column: usize| row.get(column).unwrap_or_default();
        let given = |column: Option<usize>| column.map(at).filter(|text| !text.is_empty());
        let id = at(self.id);
        let walltime = given(self.walltime).map(|text| seconds("walltime", text)).transpose()?;
        let start = given(self.start).map(|text| seconds("start", text)).transpose()?;
        let hosts = given(self.hosts).unwrap_or_default();
        if start.is_none() && !hosts.is_empty() {
            return Err(format!("hosts {} without a start", shown(hosts.as_bytes())));
        }
        let cores = given(self.cores).map(|text| count("cores", text)).transpose()?;
        let memory = given(self.memory).map(bytes).transpose()?;
        Ok(Job {
            id: id.parse().map_err(|_| format!("id {} is not a number", shown(id.as_bytes())))?,
            submit: not_negative("submit", at(self.submit))?,
            run: not_negative("run", at(self.run))?,
            // Batsim writes -1 where no time was requested.
            walltime: walltime.filter(|&walltime| walltime > 0.0),
            nodes: count("nodes", at(self.nodes))?,
            share: match (cores, memory) {
                (Some(cores), memory) => Share::Part { cores, memory: memory.unwrap_or(0) },
                (None, None) => Share::Whole,
                (None, Some(_)) => return Err("memory without cores".into()),
            },
            recorded: start.map(|start| Recorded { start, hosts: hosts.to_string() }),
        })
    }
}

fn not_negative(what: &str, text: &str) -> Result<f64, String> {
    match seconds(what, text)? {
        value if value < 0.0 => Err(format!("{what} {value} is negative")),
        value => Ok(value),
    }
}

fn bytes(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("memory {} is not a number of bytes", shown(text.as_bytes())))
}
