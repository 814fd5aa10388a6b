//! Reads what devices report about their neighbours by LLDP: `lldpctl -f json` of each, under the device name.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::cable_list::{ListedCable, NamedPort, machine_of, skipped};
use super::natural::natural_order;
use super::yaml::{Value, ValueKind, documents};
use super::{MachineOptions, Read};
use crate::error::{InputError, shown};

/// Reads `{"leaf1": {"lldp": {"interface": ...}}, ...}`. A cable may be reported by one end or by both, even if they
/// have different names for a port ([`cables`]). The domain part of a device name is ignored. Neighbours without a name
/// are skipped and counted. A device that is neither a bridge nor a router is not a switch.
///
/// # Errors
/// With its line: input of another form, a neighbour without a port, a port with two neighbours; and whatever
/// [`machine_of`] refuses.
pub fn lldp(text: &str, options: &MachineOptions) -> Result<Read, InputError> {
    let mut found = Neighbours::default();
    for document in &documents(text, &[])? {
        if document.get("lldp").is_some() {
            let message = "whose neighbours these are is not said: write {\"NAME\": {\"lldp\": ...}} of every device";
            return Err(document.refuse(message.to_owned()));
        }
        for (device, known) in document.map("the file")? {
            for (port, neighbour) in interfaces(device, known)? {
                found.add(NamedPort::of(host_part(device), port, neighbour.line)?, neighbour)?;
            }
        }
    }
    let nameless = BTreeMap::from([("it has no name", found.nameless)]);
    let notes = match found.nameless {
        0 => Vec::new(),
        _ => skipped(["neighbour", "neighbours"], &nameless),
    };
    machine_of(&cables(found.reports), &found.forwards, notes, options)
}

/// What one port reports about its neighbour.
struct Report {
    own: NamedPort,
    device: String,
    /// The neighbour's names for its port, the best name first.
    names: Vec<String>,
    line: usize,
}

#[derive(Default)]
struct Neighbours {
    reports: Vec<Report>,
    /// For each port and neighbouring device, the index of the report.
    known: HashMap<(NamedPort, String), usize>,
    nameless: usize,
    /// Whether a device reports that it forwards packets.
    forwards: HashMap<String, bool>,
}

impl Neighbours {
    fn add(&mut self, own: NamedPort, neighbour: &Value) -> Result<(), InputError> {
        let chassis = neighbour.get("chassis").ok_or_else(|| lacks(&own, neighbour, "chassis"))?;
        let (device, about) = match chassis.map("chassis")? {
            // A chassis without a name appears directly here, and its identifier is a map too.
            [(name, about @ Value { kind: ValueKind::Map(_), .. })] if name != "id" => {
                (host_part(name).to_owned(), about)
            }
            _ => {
                self.nameless += 1;
                return Ok(());
            }
        };
        if let Some(forwards) = forwards(about)? {
            *self.forwards.entry(device.clone()).or_default() |= forwards;
        }
        let names = port_names(&own, neighbour)?;
        for name in &names {
            NamedPort::of(&device, name, neighbour.line)?;
        }
        // Two protocols on one port may report the same neighbour.
        let next = self.reports.len();
        let place = *self.known.entry((own.clone(), device.clone())).or_insert(next);
        if place < next {
            self.reports[place].names.extend(names);
        } else {
            self.reports.push(Report { own, device, names, line: neighbour.line });
        }
        Ok(())
    }
}

/// The device name without its domain.
fn host_part(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The interfaces of a device, each with its report about the neighbour. The input has a list of maps, or a single map
/// if there are few.
fn interfaces<'a>(device: &str, known: &'a Value) -> Result<Vec<(&'a str, &'a Value)>, InputError> {
    let refuse =
        || known.refuse(format!("{} has no lldp: this is not `lldpctl -f json`", shown(device)));
    let known = known.get("lldp").ok_or_else(refuse)?;
    if let ValueKind::List(_) = known.kind {
        let message = format!(
            "the lldp of {} is a list: this is `lldpctl -f json0`; write `lldpctl -f json`",
            shown(device)
        );
        return Err(known.refuse(message));
    }
    let Some(interfaces) = known.get("interface") else { return Ok(Vec::new()) };
    let maps = match &interfaces.kind {
        ValueKind::List(maps) => maps.iter().collect(),
        _ => vec![interfaces],
    };
    let mut found = Vec::new();
    for map in maps {
        for (port, neighbour) in map.map("interface")? {
            found.push((port.as_str(), neighbour));
        }
    }
    Ok(found)
}

fn lacks(own: &NamedPort, neighbour: &Value, what: &str) -> InputError {
    let (port, device) = (shown(&own.name), shown(&own.device));
    neighbour.refuse(format!("the neighbour on port {port} of {device} has no {what}"))
}

/// Whether a device forwards packets as a bridge, router or repeater; `None` if it does not say.
fn forwards(about: &Value) -> Result<Option<bool>, InputError> {
    let Some(capabilities) = about.get("capability") else { return Ok(None) };
    let all = match &capabilities.kind {
        ValueKind::List(all) => all.iter().collect(),
        _ => vec![capabilities],
    };
    let mut forwards = false;
    for capability in all {
        let text = |key| capability.get(key).map_or(Ok(""), |value| value.text(key));
        let kind = text("type")?;
        let may = ["bridge", "router", "repeater"].iter().any(|k| kind.eq_ignore_ascii_case(k));
        forwards |= may && ["true", "on", "yes"].contains(&text("enabled")?);
    }
    Ok(Some(forwards))
}

/// The names of the neighbour's port: its name, its description, its identifier.
fn port_names(own: &NamedPort, neighbour: &Value) -> Result<Vec<String>, InputError> {
    let port = neighbour.get("port").ok_or_else(|| lacks(own, neighbour, "port"))?;
    let text = |value: Option<&Value>, what: &str| {
        value.map(|value| value.text(what).map(str::to_owned)).transpose()
    };
    let id = port.get("id");
    let kind = text(id.and_then(|id| id.get("type")), "the type of a port")?;
    let value = text(id.and_then(|id| id.get("value")), "the id of a port")?;
    let description = text(port.get("descr"), "the description of a port")?;
    // Linux hosts report the interface's address as the id, and its name as the description.
    let is_name = kind.as_deref() == Some("ifname") || kind.as_deref() == Some("local");
    let names = if is_name { [value, description] } else { [description, value] };
    let names: Vec<String> = names.into_iter().flatten().filter(|name| !name.is_empty()).collect();
    if names.is_empty() { Err(lacks(own, neighbour, "name of a port")) } else { Ok(names) }
}

/// Returns the reported cables, each once.
///
/// Two reports belong to the same cable if each names the other's port. A switch may report other port names to its
/// neighbours than it uses itself (`fortyGigE0/0` for `Ethernet0`). A name that looks like no port of that device
/// identifies no port. Then it is enough that one report names the other's port, and reports that name none are paired
/// in the order of their ports.
fn cables(reports: Vec<Report>) -> Vec<ListedCable> {
    let mut kinds: HashMap<String, HashSet<String>> = HashMap::new();
    for report in &reports {
        kinds.entry(report.own.device.clone()).or_default().insert(kind_of(&report.own.name));
    }
    let says_nothing = |report: &Report| {
        kinds
            .get(&report.device)
            .is_some_and(|kinds| !report.names.iter().any(|name| kinds.contains(&kind_of(name))))
    };
    let place: HashMap<(&str, &str), usize> = (0..)
        .zip(&reports)
        .map(|(index, report): (usize, &Report)| {
            ((report.own.device.as_str(), report.own.name.as_str()), index)
        })
        .collect();
    // The report from the other end that this report names.
    let named = |report: &Report| {
        let at = |name: &String| place.get(&(report.device.as_str(), name.as_str())).copied();
        report.names.iter().find_map(at).filter(|&other| reports[other].device == report.own.device)
    };
    let mut other_end: Vec<Option<usize>> = vec![None; reports.len()];
    for (index, report) in reports.iter().enumerate() {
        let Some(other) = named(report).filter(|&other| other_end[other].is_none()) else {
            continue;
        };
        let agrees = named(&reports[other]) == Some(index) || says_nothing(&reports[other]);
        if agrees && other != index && other_end[index].is_none() {
            (other_end[index], other_end[other]) = (Some(other), Some(index));
        }
    }
    let mut unnamed: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (index, report) in reports.iter().enumerate() {
        if other_end[index].is_none() && says_nothing(report) {
            unnamed.entry((&report.own.device, &report.device)).or_default().push(index);
        }
    }
    for (&(own, far), ours) in &unnamed {
        let Some(theirs) = unnamed.get(&(far, own)).filter(|_| own < far) else { continue };
        let in_order = |of: &Vec<usize>| {
            let mut of = of.clone();
            of.sort_by(|&a, &b| natural_order(&reports[a].own.name, &reports[b].own.name));
            of
        };
        for (one, other) in in_order(ours).into_iter().zip(in_order(theirs)) {
            (other_end[one], other_end[other]) = (Some(other), Some(one));
        }
    }
    let mut cables = Vec::new();
    for (index, report) in reports.iter().enumerate() {
        let far = match other_end[index] {
            Some(other) if other < index => continue,
            Some(other) => reports[other].own.clone(),
            None => NamedPort {
                device: report.device.clone(),
                name: report.names.first().cloned().unwrap_or_default(),
            },
        };
        cables.push(ListedCable { ends: [report.own.clone(), far], line: report.line });
    }
    cables
}

/// The name of a port with every number replaced by a sign: `fortyGigE#/#`.
fn kind_of(name: &str) -> String {
    let mut kind = String::new();
    for letter in name.chars() {
        if !letter.is_ascii_digit() {
            kind.push(letter);
        } else if !kind.ends_with('#') {
            kind.push('#');
        }
    }
    kind
}
