//! Reads the switches above every host from Alibaba's Lingjun data set of 2023.

use super::labels::{Labelled, SwitchNames, machine_of};
use super::{MachineOptions, Read, rows_below};
use crate::error::{InputError, is_printable, shown};
use crate::hostlist::{LONGEST_NAME, MOST_NAMES};
use crate::node_kind::NodeKind;

/// The header line: host, core, aggregation and access switch.
const HEADER: &str = "ip,DSW,PSW,ASW";

/// Reads a table of `ip,DSW,PSW,ASW`. An access switch is identified together with its aggregation switch, because
/// names repeat.
///
/// # Errors
/// With its line: another header, a row with the wrong number of fields or an empty one, a host that occurs twice, no
/// host.
pub fn lingjun(text: &str, options: &MachineOptions) -> Result<Read, InputError> {
    let mut nodes = Vec::new();
    for (row, line) in rows_below(text, HEADER, "host")? {
        let fields: Vec<&str> = row.split(',').collect();
        let [host, core, aggregation, access] = fields[..] else {
            let message = format!("{} fields, not the 4 of {HEADER}: {}", fields.len(), shown(row));
            return Err(InputError::at(line, message));
        };
        let is_bad = |field: &&&str| {
            field.is_empty() || field.len() > LONGEST_NAME || !field.chars().all(is_printable)
        };
        if let Some(field) = fields.iter().find(is_bad) {
            return Err(InputError::at(line, format!("{} is not a name", shown(field))));
        }
        if nodes.len() >= MOST_NAMES {
            return Err(InputError::at(line, format!("more than {MOST_NAMES} hosts")));
        }
        let way = [core, aggregation, access].map(str::to_owned).to_vec();
        nodes.push(Labelled { node: host.to_owned(), line, way, ..Labelled::default() });
    }
    if nodes.is_empty() {
        return Err(InputError::whole("there is no host"));
    }
    machine_of(&nodes, vec![NodeKind::default()], SwitchNames::ByPath, options)
}
