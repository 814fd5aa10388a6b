//! The nodes of Alibaba's cluster-trace-gpu-v2023 ("openb", Weng et al., USENIX ATC'23).
//!
//! The columns `sn,cpu_milli,memory_mib,gpu,model` are the name, thousandths of processors, mebibytes, GPUs and their
//! type. The trace does not describe the network, so all nodes are on one switch.

use std::collections::HashMap;

use super::{Read, rows_below};
use crate::description::{Cabling, Children, Description, Group, NodeDescription, SiteDescription};
use crate::error::{InputError, is_printable, shown};
use crate::hostlist::{LONGEST_NAME, MOST_NAMES};
use crate::node_kind::NodeKind;
use crate::resources::ResourceCounts;

/// The header line.
const HEADER: &str = "sn,cpu_milli,memory_mib,gpu,model";

/// Reads the table of nodes.
///
/// # Errors
/// With its line: another header, a row with the wrong number of fields, an unreadable value, a node that occurs twice,
/// no node.
pub fn openb(text: &str) -> Result<Read, InputError> {
    let (mut kinds, mut nodes): (Vec<NodeKind>, Vec<NodeDescription>) = (Vec::new(), Vec::new());
    let mut line_of: HashMap<String, usize> = HashMap::new();
    for (row, line) in rows_below(text, HEADER, "node")? {
        let (name, kind) = node(row).map_err(|message| InputError::at(line, message))?;
        if let Some(first) = line_of.insert(name.clone(), line) {
            let message = format!("node {} stands on line {first} already", shown(&name));
            return Err(InputError::at(line, message));
        }
        if nodes.len() >= MOST_NAMES {
            return Err(InputError::at(line, format!("more than {MOST_NAMES} nodes")));
        }
        let known = kinds.iter().position(|other| *other == kind);
        let index = known.unwrap_or_else(|| {
            kinds.push(kind);
            kinds.len() - 1
        });
        nodes.push(NodeDescription { name, kind: index as u32 });
    }
    if nodes.is_empty() {
        return Err(InputError::whole("there is no node"));
    }
    let children = Children::Nodes(nodes);
    let root = Group { name: "openb".to_owned(), switches: Vec::new(), children };
    let bandwidth = NodeKind::default().nic_bandwidth;
    let cabling = vec![Cabling::new(1, 1, bandwidth)];
    let sites = vec![SiteDescription { root, cabling, missing: Vec::new() }];
    let description =
        Description { name: "openb".to_owned(), sites, kinds, ..Description::default() };
    let assumed = "the trace says nothing of the network: all nodes hang on one switch";
    Ok(Read::with_notes(description, vec![assumed.to_owned()]))
}

/// Parses a row: the name of a node and its kind.
fn node(row: &str) -> Result<(String, NodeKind), String> {
    let fields: Vec<&str> = row.split(',').map(str::trim).collect();
    let [name, cpu, memory, gpus, model] = fields[..] else {
        return Err(format!("{} fields, not the 5 of {HEADER}: {}", fields.len(), shown(row)));
    };
    if name.is_empty() || name.len() > LONGEST_NAME || !name.chars().all(is_printable) {
        return Err(format!("{} is not a name", shown(name)));
    }
    let cores = number("cpu_milli", cpu)? / 1000;
    if cores == 0 {
        return Err(format!("cpu_milli {cpu} is less than a core"));
    }
    let (memory, gpus) = (number("memory_mib", memory)?, number("gpu", gpus)?);
    let mut counts = vec![("gpu".to_owned(), gpus)];
    if !model.is_empty() {
        crate::resources::check_resource(&format!("gpu:{model}"))?;
        counts.push((format!("gpu:{model}"), gpus));
    }
    let counts: ResourceCounts = counts.into_iter().collect();
    counts.check()?;
    let memory = u64::from(memory) << 20;
    Ok((
        name.to_owned(),
        NodeKind {
            sockets: 1,
            cores_per_socket: cores,
            memory,
            resources: counts,
            ..NodeKind::default()
        },
    ))
}

fn number(what: &str, text: &str) -> Result<u32, String> {
    text.parse()
        .map_err(|_| format!("{what} {} is not a number from 0 to {}", shown(text), u32::MAX))
}
