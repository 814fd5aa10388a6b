//! Comma-separated workloads with a header line; the job tables of Batsim are read too.

use std::io::BufRead;

use csv::StringRecord;
use topolane_fabric::InputError;
use topolane_fabric::resources::{CORES, MEMORY, Resources};
use topolane_placement::{Amounts, Share};

use super::job::{Job, Recorded, Workload};
use super::parse::{Kept, Records, amount, count, seconds, shown, unreadable};

/// Reads comma-separated jobs; seconds and bytes, columns in any order, others passed over.
///
/// # Errors
/// A missing or doubled column, a row of another length, a value that cannot be read, the same
/// job twice, a record of more than a mebibyte, an input without rows.
pub fn csv(input: impl BufRead) -> Result<Workload, InputError> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(Records::new(input));
    let header = reader.headers().map_err(|error| broken(1, &error))?;
    let mut kept = Kept::default();
    let columns =
        Columns::new(header, &mut kept.resources).map_err(|message| InputError::at(1, message))?;
    let mut row = StringRecord::new();
    let mut rows = false;
    loop {
        reader.get_mut().begin();
        let line = reader.position().line() as usize;
        if !reader.read_record(&mut row).map_err(|error| broken(line, &error))? {
            break;
        }
        rows = true;
        columns.job(&row, &kept.resources).and_then(|job| kept.keep(job)).map_err(|message| {
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
    /// Of each further resource.
    others: Vec<Resource>,
    start: Option<usize>,
    hosts: Option<usize>,
}

/// A column with the count of a resource.
struct Resource {
    column: usize,
    name: String,
    index: usize,
}

impl Columns {
    fn new(header: &StringRecord, resources: &mut Resources) -> Result<Self, String> {
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
            others: Columns::others(header, resources)?,
            start: find(&["start", "starting_time"])?,
            hosts: find(&["hosts"])?,
        })
    }

    /// `gpus`, and `resource:NAME` of any name.
    fn others(header: &StringRecord, resources: &mut Resources) -> Result<Vec<Resource>, String> {
        let mut others: Vec<Resource> = Vec::new();
        for (column, title) in header.iter().enumerate() {
            let name = if title == "gpus" { Some("gpu") } else { title.strip_prefix("resource:") };
            let Some(name) = name else { continue };
            let index = resources.add(name)?;
            if index <= MEMORY {
                return Err(format!("column {title}: {name} has a column of its own, {name}"));
            }
            if others.iter().any(|other| other.index == index) {
                return Err(format!("two columns for resource {name}"));
            }
            others.push(Resource { column, name: title.to_owned(), index });
        }
        Ok(others)
    }

    fn job(&self, row: &StringRecord, resources: &Resources) -> Result<Job, String> {
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
            share: self.share(row, resources, cores, memory)?,
            recorded: start.map(|start| Recorded { start, hosts: hosts.to_string() }),
        })
    }

    /// What it takes of each node: the whole where none of these columns has a value.
    fn share(
        &self,
        row: &StringRecord,
        resources: &Resources,
        cores: Option<u32>,
        memory: Option<u64>,
    ) -> Result<Share, String> {
        let mut counts = vec![0; resources.names().len()];
        let mut is_whole = cores.is_none();
        for Resource { column, name, index } in &self.others {
            if let Some(text) = row.get(*column).filter(|text| !text.is_empty()) {
                counts[*index] = amount(name, text)?;
                is_whole = false;
            }
        }
        if is_whole {
            return if memory.is_some() {
                Err("memory without cores".into())
            } else {
                Ok(Share::Whole)
            };
        }
        counts[CORES] = u64::from(cores.unwrap_or(1));
        counts[MEMORY] = memory.unwrap_or(0);
        resources.include_types(&mut counts);
        Ok(Share::Part(Amounts::of(&counts)))
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
