//! Reads comma-separated workloads with a header line, including the job tables of Batsim.

use std::collections::HashSet;
use std::io::BufRead;
use std::sync::Arc;

use csv::StringRecord;
use topolane_fabric::resources::{CORES, MEMORY, Resources};
use topolane_fabric::{InputError, printable};
use topolane_placement::{Amounts, Attributes, Share};

use super::gpus::{AskedGpus, Types, gpus, share, types};
use super::job::{Details, EarlierRun, Job, RecordedRun, Workload};
use super::parse::{KeptJobs, amount, count, not_negative, seconds, shown};
use super::rows::{find, need, rows};

/// Reads comma-separated jobs. Times are in seconds, memory in bytes. Columns may be in any order; unknown ones are
/// ignored.
///
/// # Errors
/// A missing or repeated column, a row with the wrong number of fields, an unreadable value, contradicting numbers of
/// GPUs and nodes, a job that occurs twice, a record of more than a mebibyte, an input without rows.
pub fn csv(input: impl BufRead) -> Result<Workload, InputError> {
    let begin = |header: &StringRecord| {
        let mut kept = KeptJobs::default();
        let owners = Owners::new(header)?;
        Ok((WorkloadColumns::new(header, &mut kept.resources)?, owners, kept))
    };
    let (_, _, kept) = rows(input, begin, |(columns, owners, kept), row| {
        let job = columns.job(row, &mut kept.resources)?;
        let attributes = owners.attributes(row)?;
        let details = kept.shared(owners.details(row, attributes.as_deref(), job.submit));
        kept.keep(Job { attributes, details, ..job })
    })?;
    Ok(kept.into_workload(1))
}

/// The positions of the columns.
struct WorkloadColumns {
    id: usize,
    submit: usize,
    run: usize,
    nodes: Option<usize>,
    walltime: Option<usize>,
    cores: Option<usize>,
    memory: Option<usize>,
    /// The columns of further resources.
    others: Vec<Resource>,
    /// The columns of the total number of GPUs, the GPUs per node, and the GPU type.
    gpus: Option<usize>,
    gpus_per_node: Option<usize>,
    gpu_type: Option<usize>,
    segment: Option<usize>,
    start: Option<usize>,
    hosts: Option<usize>,
    earlier: Option<usize>,
}

/// The column of a resource's count.
struct Resource {
    column: usize,
    name: String,
    index: usize,
}

impl WorkloadColumns {
    fn new(header: &StringRecord, resources: &mut Resources) -> Result<Self, String> {
        let find = |names: &[&str]| find(header, names);
        let need = |names: &[&str]| need(header, names);
        let id = need(&["id", "job_id"])?;
        let submit = need(&["submit", "submission_time"])?;
        let run = need(&["run", "execution_time"])?;
        let (gpus, gpus_per_node) = (find(&["gpus"])?, find(&["gpus_per_node"])?);
        let nodes = ["nodes", "requested_number_of_resources"];
        // The total number of GPUs and the GPUs per node together give the number of nodes.
        let can_tell_nodes = gpus.is_some() && gpus_per_node.is_some();
        let nodes = if can_tell_nodes { find(&nodes)? } else { Some(need(&nodes)?) };
        Ok(WorkloadColumns {
            id,
            submit,
            run,
            nodes,
            walltime: find(&["walltime", "requested_time"])?,
            cores: find(&["cores"])?,
            memory: find(&["memory"])?,
            others: WorkloadColumns::others(header, resources)?,
            gpus,
            gpus_per_node,
            gpu_type: find(&["gpu_type"])?,
            segment: find(&["segment"])?,
            start: find(&["start", "starting_time"])?,
            hosts: find(&["hosts"])?,
            earlier: find(&["earlier_runs"])?,
        })
    }

    /// Finds the columns `resource:NAME`.
    fn others(header: &StringRecord, resources: &mut Resources) -> Result<Vec<Resource>, String> {
        let mut others: Vec<Resource> = Vec::new();
        for (column, title) in header.iter().enumerate() {
            let of_gpus = |title: &str| title == "gpus" || title == "gpus_per_node";
            if of_gpus(title) {
                resources.add("gpu")?;
            }
            let Some(name) = title.strip_prefix("resource:") else { continue };
            if name == "gpu" && header.iter().any(of_gpus) {
                return Err("two columns for resource gpu".into());
            }
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

    fn job(&self, row: &StringRecord, resources: &mut Resources) -> Result<Job, String> {
        let at = |column: usize| row.get(column).unwrap_or_default();
        let given = |column: Option<usize>| column.map(at).filter(|text| !text.is_empty());
        let id = at(self.id);
        let walltime = given(self.walltime).map(|text| seconds("walltime", text)).transpose()?;
        let start = given(self.start).map(started).transpose()?.flatten();
        let hosts = printable(given(self.hosts).unwrap_or_default());
        let earlier = given(self.earlier).unwrap_or_default();
        for (name, text) in [("hosts", &*hosts), ("earlier_runs", earlier)] {
            if start.is_none() && !text.is_empty() {
                return Err(format!("{name} {} without a start", shown(text.as_bytes())));
            }
        }
        let earlier = earlier_runs(earlier)?;
        let asked = AskedGpus {
            all: given(self.gpus).map(|text| gpus("gpus", text)).transpose()?,
            per_node: given(self.gpus_per_node)
                .map(|text| gpus("gpus_per_node", text))
                .transpose()?,
            nodes: match self.nodes {
                Some(column) if self.gpus_per_node.is_none() || !at(column).is_empty() => {
                    Some(count("nodes", at(column))?)
                }
                _ => None,
            },
        };
        let (nodes, gpus) = asked.settled()?;
        let (share, gpu_types) = self.share(row, resources, gpus)?;
        Ok(Job {
            id: id.parse().map_err(|_| format!("id {} is not a number", shown(id.as_bytes())))?,
            submit: not_negative("submit", at(self.submit))?,
            run: not_negative("run", at(self.run))?,
            // Batsim writes -1 if no walltime was requested.
            walltime: walltime.filter(|&walltime| walltime > 0.0),
            nodes,
            share,
            gpu_types,
            segment: given(self.segment).map(|text| count("segment", text)).transpose()?,
            attributes: None,
            recorded: start.map(|start| RecordedRun { start, hosts: hosts.into_owned(), earlier }),
            ..Job::default()
        })
    }

    /// What the job takes on each node, with GPUs in thousandths. It takes whole nodes if none of the columns has a
    /// value. Also returns the GPU types, if there are several.
    fn share(
        &self,
        row: &StringRecord,
        resources: &mut Resources,
        gpus: Option<u64>,
    ) -> Result<(Share, Option<Types>), String> {
        let given = |column: Option<usize>| {
            column.and_then(|column| row.get(column)).filter(|text| !text.is_empty())
        };
        let cores = given(self.cores).map(|text| count("cores", text)).transpose()?;
        let memory = given(self.memory).map(bytes).transpose()?;
        let mut counts = vec![0; resources.names().len()];
        let mut is_whole = cores.is_none() && gpus.is_none();
        for Resource { column, name, index } in &self.others {
            if let Some(text) = row.get(*column).filter(|text| !text.is_empty()) {
                counts[*index] = amount(name, text)?;
                is_whole = false;
            }
        }
        let gpu_type = given(self.gpu_type);
        if let (Some(gpu_type), None | Some(0)) = (gpu_type, gpus) {
            return Err(format!("gpu_type {} without gpus", shown(gpu_type.as_bytes())));
        }
        if is_whole {
            return match memory {
                Some(_) => Err("memory without cores".into()),
                None => Ok((Share::Whole, None)),
            };
        }
        counts[CORES] = u64::from(cores.unwrap_or(1));
        counts[MEMORY] = memory.unwrap_or(0);
        let types = gpu_type.map(types).transpose()?.unwrap_or_default();
        if let Some(gpus) = gpus {
            return share(resources, counts, gpus, &types);
        }
        resources.include_types(&mut counts);
        Ok((Share::Part(Amounts::of(&counts)), None))
    }
}

/// The columns with the attributes of a job, and the names seen so far, which recur in most rows.
struct Owners {
    columns: [Option<usize>; 5],
    nice: Option<usize>,
    processors: Option<usize>,
    licenses: Option<usize>,
    requeue: Option<usize>,
    queued: Option<usize>,
    submitted: Option<usize>,
    reason: Option<usize>,
    names: HashSet<Arc<str>>,
}

impl Owners {
    fn new(header: &StringRecord) -> Result<Self, String> {
        let find = |name: &str| find(header, &[name]);
        // They decide nothing, so there is no need to refuse two of them.
        let any = |name: &str| header.iter().position(|title| title == name);
        Ok(Owners {
            columns: [
                find("partition")?,
                find("user")?,
                find("account")?,
                find("qos")?,
                find("reservation")?,
            ],
            nice: find("nice")?,
            processors: find("requested_processors")?,
            licenses: find("licenses")?,
            requeue: find("requeue")?,
            queued: find("queued")?,
            submitted: any("submitted"),
            reason: any("reason"),
            names: HashSet::new(),
        })
    }

    /// The attributes of a row's job; `None` if all columns are empty.
    fn attributes(&mut self, row: &StringRecord) -> Result<Option<Arc<Attributes>>, String> {
        let given = |column: Option<usize>| {
            column.and_then(|column| row.get(column)).filter(|text| !text.is_empty())
        };
        let number = |what: &str, text: &str| {
            text.parse::<i64>()
                .map_err(|_| format!("{what} {} is not a whole number", shown(text.as_bytes())))
        };
        let nice = given(self.nice).map(|text| number("nice", text)).transpose()?;
        let processors = given(self.processors)
            .map(|text| count("requested_processors", text))
            .transpose()?
            .map(u64::from);
        let licenses = given(self.licenses).map_or(Ok(Vec::new()), |text| self.licenses(text))?;
        let no_requeue = match given(self.requeue) {
            None | Some("yes") => false,
            Some("no") => true,
            Some(other) => {
                return Err(format!("requeue {} is neither yes nor no", shown(other.as_bytes())));
            }
        };
        let columns = self.columns;
        let [partition, user, account, qos, reservation] =
            columns.map(|column| self.named(given(column).unwrap_or_default()));
        let nice = nice.unwrap_or(0);
        let found = Attributes {
            partition,
            user,
            account,
            qos,
            reservation,
            nice,
            processors,
            licenses,
            no_requeue,
            queued: given(self.queued).map(|text| seconds("queued", text)).transpose()?,
        };
        Ok((found != Attributes::default()).then(|| Arc::new(found)))
    }

    /// What the row of a job says besides; it was eligible at `submit`.
    fn details(&self, row: &StringRecord, of: Option<&Attributes>, submit: f64) -> Details {
        let given = |column: Option<usize>| column.and_then(|column| row.get(column));
        let submitted = given(self.submitted).and_then(|text| text.parse::<f64>().ok());
        let is_held = submitted.is_some_and(|submitted| submit > submitted);
        let (partition, reservation) =
            of.map_or_else(Default::default, |of| (Arc::clone(&of.partition), &*of.reservation));
        Details::new(partition, is_held, reservation, given(self.reason).unwrap_or_default())
    }

    /// Parses licences as Slurm writes them: `matlab:2,fluent`.
    fn licenses(&mut self, text: &str) -> Result<Vec<(Arc<str>, u64)>, String> {
        let license = |one: &str| {
            let (name, asked) = one.split_once(':').unwrap_or((one, "1"));
            match asked.parse() {
                Ok(asked) if asked > 0 && !name.is_empty() => Ok((self.named(name), asked)),
                _ => {
                    Err(format!("licenses {} is not like matlab:2,fluent", shown(text.as_bytes())))
                }
            }
        };
        text.split(',').map(license).collect()
    }

    fn named(&mut self, name: &str) -> Arc<str> {
        let name = &*printable(name);
        if let Some(known) = self.names.get(name) {
            return Arc::clone(known);
        }
        let known: Arc<str> = Arc::from(name);
        self.names.insert(Arc::clone(&known));
        known
    }
}

/// The start of a job; `None` for -1, which Batsim writes for a job that did not start.
fn started(text: &str) -> Result<Option<f64>, String> {
    let is_none = seconds("start", text)?.total_cmp(&-1.0).is_eq();
    if is_none { Ok(None) } else { not_negative("start", text).map(Some) }
}

/// Parses `600:60:4 900:30:4`: start, run time and nodes of each earlier run.
fn earlier_runs(text: &str) -> Result<Box<[EarlierRun]>, String> {
    let run = |word: &str| {
        let mut parts = word.split(':');
        let (Some(start), Some(run), Some(nodes), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(format!("earlier_runs {} is not like 600:60:4", shown(word.as_bytes())));
        };
        Ok(EarlierRun {
            start: seconds("start of earlier_runs", start)?,
            run: not_negative("run time of earlier_runs", run)?,
            nodes: count("nodes of earlier_runs", nodes)?,
        })
    };
    text.split_ascii_whitespace().map(run).collect()
}

fn bytes(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("memory {} is not a number of bytes", shown(text.as_bytes())))
}
