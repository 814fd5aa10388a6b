//! Builds a machine from a list of cables between named ports, as `NetBox` and LLDP record them.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::ibnetdiscover::{absent_hosts, discovered, hosts_of};
use super::natural::natural_order;
use super::subnet::{Cable, CableEnd, Subnet, Vertex};
use super::trim::sentence;
use super::{MachineOptions, Read};
use crate::error::{InputError, is_printable, shown};
use crate::hostlist::{LONGEST_NAME, MOST_NAMES};
use crate::node_kind::NodeKind;

/// A port of a device.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct NamedPort {
    pub device: String,
    pub name: String,
}

impl NamedPort {
    /// Returns a port after checking its names.
    pub(super) fn of(device: &str, name: &str, line: usize) -> Result<NamedPort, InputError> {
        for (what, text) in [("a device", device), ("a port", name)] {
            if text.is_empty() || text.len() > LONGEST_NAME || !text.chars().all(is_printable) {
                let message = format!("{} is not the name of {what}", shown(text));
                return Err(InputError::at(line, message));
            }
        }
        Ok(NamedPort { device: device.to_owned(), name: name.to_owned() })
    }
}

/// A cable, and the line that names it.
pub(super) struct ListedCable {
    pub ends: [NamedPort; 2],
    pub line: usize,
}

/// Returns the machine of these cables. Its nodes are those of `options.hosts`. All other devices are switches, except
/// those that report not forwarding packets and those with ports like servers: these are skipped. (A server may also
/// report that it forwards packets, between its guests.)
///
/// # Errors
/// No hosts are named; a port with two cables or a cable from a device to itself, with its line; a cabling that is not
/// a parallel-port fat tree.
pub(super) fn machine_of(
    cables: &[ListedCable],
    forwards: &HashMap<String, bool>,
    mut notes: Vec<String>,
    options: &MachineOptions,
) -> Result<Read, InputError> {
    let Some(hosts) = &options.hosts else {
        let message = "cables do not say which devices are nodes: name the nodes with --hosts";
        return Err(InputError::whole(message));
    };
    let hosts = hosts_of(hosts)?;
    if cables.is_empty() {
        return Err(InputError::whole("there is no cable"));
    }
    check(cables)?;
    let mut lines: HashMap<&str, usize> = HashMap::new();
    let mut devices: Vec<&str> = Vec::new();
    for cable in cables {
        for end in &cable.ends {
            if lines.insert(&end.device, cable.line).is_none() {
                devices.push(&end.device);
            }
        }
    }
    if devices.len() > MOST_NAMES {
        return Err(InputError::whole(format!("more than {MOST_NAMES} devices")));
    }
    notes.extend(absent_hosts(&hosts, |host| lines.contains_key(host)));
    let there: Vec<&str> =
        hosts.iter().map(String::as_str).filter(|host| lines.contains_key(host)).collect();
    let mut subnet = subnet_of(cables, &there, &devices, &lines);
    let by_ports = servers_by_ports(cables, &there);
    let others = subnet.skip(|_, vertex| {
        let is_server =
            forwards.get(&vertex.name) == Some(&false) || by_ports.contains(vertex.name.as_str());
        !vertex.is_host && is_server
    });
    let what = "that --hosts does not name and that looks like a server";
    notes.extend(sentence(&subnet, &others, ["device", "devices"], what));
    notes.push("the file says nothing of bandwidths: 4 GB/s of each cable is assumed".to_owned());
    let found = discovered(subnet, &None)?;
    notes.extend(found.subnet.notes);
    Ok(Read::with_notes(found.description, notes))
}

/// Devices that are probably servers: they are cabled only to the nodes' switches, and their ports have the kind of
/// name that nodes' ports have and these switches' ports do not.
fn servers_by_ports<'a>(cables: &'a [ListedCable], hosts: &[&str]) -> HashSet<&'a str> {
    let hosts: HashSet<&str> = hosts.iter().copied().collect();
    let ends = || cables.iter().flat_map(|ListedCable { ends: [a, b], .. }| [(a, b), (b, a)]);
    let is_host = |port: &NamedPort| hosts.contains(port.device.as_str());
    let leaves: HashSet<&str> = ends()
        .filter(|(own, far)| is_host(far) && !is_host(own))
        .map(|(own, _)| own.device.as_str())
        .collect();
    let is_leaf = |port: &NamedPort| leaves.contains(port.device.as_str());
    let kinds = |of: &dyn Fn(&NamedPort) -> bool| -> HashSet<String> {
        ends().filter(|(own, _)| of(own)).map(|(own, _)| kind_of_name(&own.name)).collect()
    };
    let (of_hosts, of_leaves) = (kinds(&is_host), kinds(&is_leaf));
    let mut servers = HashSet::new();
    let mut others = HashSet::new();
    for (own, far) in ends().filter(|(own, _)| !is_host(own) && !is_leaf(own)) {
        let kind = kind_of_name(&own.name);
        let like_hosts = !kind.is_empty() && of_hosts.contains(&kind) && !of_leaves.contains(&kind);
        let found = if like_hosts && is_leaf(far) { &mut servers } else { &mut others };
        found.insert(own.device.as_str());
    }
    servers.difference(&others).copied().collect()
}

/// The part of a port name before its first number: `eth` of `eth0`. Empty for an address, which shows no kind.
fn kind_of_name(name: &str) -> String {
    if name.contains(':') {
        return String::new();
    }
    let end = name.find(|letter: char| letter.is_ascii_digit()).unwrap_or(name.len());
    name[..end].to_ascii_lowercase()
}

fn check(cables: &[ListedCable]) -> Result<(), InputError> {
    let mut taken: HashMap<&NamedPort, usize> = HashMap::new();
    for cable in cables {
        let [one, other] = &cable.ends;
        if one.device == other.device {
            let message = format!("a cable leads from {} to itself", shown(&one.device));
            return Err(InputError::at(cable.line, message));
        }
        for end in &cable.ends {
            if let Some(line) = taken.insert(end, cable.line) {
                let (port, device) = (shown(&end.name), shown(&end.device));
                let message = format!("port {port} of {device} has a cable on line {line} already");
                return Err(InputError::at(cable.line, message));
            }
        }
    }
    Ok(())
}

fn subnet_of(
    cables: &[ListedCable],
    hosts: &[&str],
    devices: &[&str],
    lines: &HashMap<&str, usize>,
) -> Subnet {
    let mut hosts = hosts.to_vec();
    hosts.sort_by(|a, b| natural_order(a, b));
    let mut place: HashMap<&str, usize> = HashMap::new();
    let mut subnet = Subnet::default();
    for (name, is_host) in
        hosts.iter().map(|host| (*host, true)).chain(devices.iter().map(|device| (*device, false)))
    {
        let next = subnet.vertices.len();
        if *place.entry(name).or_insert(next) == next {
            let line = lines.get(name).copied().unwrap_or_default();
            subnet.vertices.push(Vertex::new(name.to_owned(), is_host, line));
        }
    }
    let numbers = PortNumbers::of(cables, &place, hosts.len());
    for cable in cables {
        let ends = [0, 1].map(|side| {
            let port: &NamedPort = &cable.ends[side];
            let vertex = place[port.device.as_str()];
            CableEnd { vertex, port: numbers.of_port(vertex, &port.name) }
        });
        subnet.cables.push(Cable { ends, bandwidth: NodeKind::default().nic_bandwidth });
    }
    subnet
}

/// Port numbers. The number of a port is the rank of its name among the port names of all switches, or of all hosts
/// with several cables. So the same name has the same number on every device, even if devices lack some ports.
struct PortNumbers<'a> {
    hosts: usize,
    on_switches: HashMap<&'a str, u32>,
    on_hosts: HashMap<&'a str, u32>,
    cables: Vec<u32>,
}

impl<'a> PortNumbers<'a> {
    fn of(
        cables: &'a [ListedCable],
        place: &HashMap<&str, usize>,
        hosts: usize,
    ) -> PortNumbers<'a> {
        let ends = || cables.iter().flat_map(|cable| &cable.ends);
        let vertex = |port: &NamedPort| place[port.device.as_str()];
        let mut count = vec![0; place.len()];
        ends().for_each(|port| count[vertex(port)] += 1);
        let ranked = |of: &dyn Fn(&NamedPort) -> bool| {
            let mut names: Vec<&str> =
                ends().filter(|port| of(port)).map(|port| port.name.as_str()).collect();
            names.sort_by(|a, b| natural_order(a, b));
            names.dedup();
            names.into_iter().zip(1..).collect::<HashMap<&str, u32>>()
        };
        PortNumbers {
            hosts,
            on_switches: ranked(&|port| vertex(port) >= hosts),
            on_hosts: ranked(&|port| vertex(port) < hosts && count[vertex(port)] > 1),
            cables: count,
        }
    }

    fn of_port(&self, vertex: usize, name: &str) -> u32 {
        let names = if vertex >= self.hosts { &self.on_switches } else { &self.on_hosts };
        if vertex < self.hosts && self.cables[vertex] == 1 {
            return 0;
        }
        names.get(name).copied().unwrap_or_default()
    }
}

/// Sentences about skipped cables or neighbours, one for each reason.
pub(super) fn skipped(unit: [&str; 2], reasons: &BTreeMap<&'static str, usize>) -> Vec<String> {
    let sentence = |(why, count): (&&str, &usize)| match count {
        1 => format!("1 {} is skipped: {why}", unit[0]),
        _ => format!("{count} {} are skipped: {why}", unit[1]),
    };
    reasons.iter().map(sentence).collect()
}
