//! The text of `ibnetdiscover` as hosts, switches and the cables between them.

use std::collections::HashMap;

use super::adapters::{Adapter, adapters};
use super::lids::{Address, Lids};
use crate::error::{InputError, shown};
use crate::hostlist::plain;

/// A host, or a switch, with at least one cable.
pub(super) struct Vertex {
    pub name: String,
    pub is_host: bool,
    /// Line of the file that describes it.
    pub line: usize,
    /// Whether it is no part of the tree of nodes.
    pub skipped: bool,
}

impl Vertex {
    pub(super) fn new(name: String, is_host: bool, line: usize) -> Vertex {
        Vertex { name, is_host, line, skipped: false }
    }
}

/// One end of a cable: a vertex and its port. Ports of a host's second adapter follow those of
/// its first.
#[derive(Clone, Copy)]
pub(super) struct End {
    pub vertex: usize,
    pub port: u32,
}

pub(super) struct Cable {
    pub ends: [End; 2],
    /// Data, bytes per second in each direction.
    pub bandwidth: f64,
}

#[derive(Default)]
pub(super) struct Subnet {
    pub vertices: Vec<Vertex>,
    pub cables: Vec<Cable>,
    /// Cables that are no part of the tree of nodes.
    pub spare: Vec<Cable>,
    /// The switches by their identifiers (node GUIDs).
    pub switches: HashMap<u64, usize>,
    pub addresses: Vec<Address>,
    /// What was assumed or skipped, a sentence each.
    pub notes: Vec<String>,
}

/// Ports of an adapter that come before those of the host's next adapter.
const ADAPTER_PORTS: u32 = 256;

/// Adapters inside switches that reduce data on its way; they run no jobs.
const AGGREGATION: &str = "Aggregation Node";

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Role {
    Switch,
    Host,
    /// A router, or an adapter inside a switch: not a part of the tree.
    Other,
}

pub(super) struct Device<'a> {
    pub id: &'a str,
    pub description: &'a str,
    pub role: Role,
    pub line: usize,
    /// A switch's own LIDs, and the identifier of the port that they are of.
    lids: Option<Lids>,
    guid: Option<u64>,
    /// The identifier that all adapters on one card have (system image GUID).
    pub image: Option<u64>,
    pub ports: Vec<Port<'a>>,
}

pub(super) struct Port<'a> {
    number: u32,
    pub peer: &'a str,
    /// Port at the peer.
    pub back: u32,
    bandwidth: f64,
    /// Of an adapter's port.
    lids: Option<Lids>,
    guid: Option<u64>,
    line: usize,
}

impl Subnet {
    pub(super) fn parse(text: &str) -> Result<Subnet, InputError> {
        let devices = devices(text)?;
        let mut by_id = HashMap::new();
        let mut by_port = HashMap::new();
        for (index, device) in devices.iter().enumerate() {
            if let Some(first) = by_id.insert(device.id, index) {
                return Err(InputError::at(
                    device.line,
                    format!("{} is described on line {} already", device.id, devices[first].line),
                ));
            }
            for port in &device.ports {
                if by_port.insert((index, port.number), port).is_some() {
                    let message = format!("port {} of {} is given twice", port.number, device.id);
                    return Err(InputError::at(port.line, message));
                }
            }
        }
        let (adapters, notes) = adapters(&devices)?;
        let mut subnet = Subnet { notes, ..Subnet::default() };
        let place = subnet.add_vertices(&devices, &adapters);
        subnet.add_addresses(&devices, &place);
        for (index, device) in devices.iter().enumerate() {
            for port in &device.ports {
                let refuse = |what: &str| {
                    Err(InputError::at(
                        port.line,
                        format!("port {} of {} leads to {what}", port.number, device.id),
                    ))
                };
                let Some(&peer) = by_id.get(port.peer) else {
                    return refuse(&format!("{}, which the file does not describe", port.peer));
                };
                let far_end = by_port.get(&(peer, port.back));
                if !far_end.is_some_and(|end| end.peer == device.id && end.back == port.number) {
                    let other = format!("port {} of {}", port.back, port.peer);
                    return refuse(&format!("{other}, which does not lead back"));
                }
                let (Some(near), Some(far)) = (place[index], place[peer]) else { continue };
                if (index, port.number) <= (peer, port.back) {
                    let end = |(vertex, first), port| End { vertex, port: first + port };
                    subnet.cables.push(Cable {
                        ends: [end(near, port.number), end(far, port.back)],
                        bandwidth: port.bandwidth,
                    });
                }
            }
        }
        Ok(subnet)
    }

    /// Skips the vertices for which `which` says so, with their cables; gives those that were not skipped before.
    pub(super) fn skip(&mut self, which: impl Fn(usize, &Vertex) -> bool) -> Vec<usize> {
        let mut skipped = Vec::new();
        for (index, vertex) in self.vertices.iter_mut().enumerate() {
            if !vertex.skipped && which(index, vertex) {
                vertex.skipped = true;
                skipped.push(index);
            }
        }
        let left = |vertices: &[Vertex], cable: &Cable| {
            cable.ends.iter().any(|end| vertices[end.vertex].skipped)
        };
        self.drop_cables(left);
        skipped
    }

    /// Makes the cables spare for which `which` says so.
    pub(super) fn drop_cables(&mut self, which: impl Fn(&[Vertex], &Cable) -> bool) {
        let vertices = &self.vertices;
        let all = std::mem::take(&mut self.cables).into_iter();
        let (spare, kept): (Vec<Cable>, Vec<Cable>) = all.partition(|cable| which(vertices, cable));
        self.spare.extend(spare);
        self.cables = kept;
    }

    /// Adds a vertex for every switch, and one for all adapters of a host. Gives the vertex of
    /// each device and the number that its ports start from.
    fn add_vertices(
        &mut self,
        devices: &[Device],
        adapters: &[Option<Adapter>],
    ) -> Vec<Option<(usize, u32)>> {
        let mut names = switch_names(devices).into_iter();
        let mut hosts: HashMap<&str, usize> = HashMap::new();
        // Hosts in the order of their descriptions, whatever the file's; switches as they come.
        let mut order: Vec<usize> = (0..devices.len()).collect();
        order.sort_by_key(|&index| match devices[index].role {
            Role::Host => (devices[index].description, devices[index].id),
            _ => ("", ""),
        });
        let mut place = vec![None; devices.len()];
        for index in order {
            let device = &devices[index];
            let next = self.vertices.len();
            let (vertex, first, name) = match (device.role, &adapters[index]) {
                (Role::Switch, _) => (next, 0, names.next().unwrap_or(device.id)),
                (Role::Host, Some(adapter)) => {
                    let vertex = *hosts.entry(adapter.host.as_str()).or_insert(next);
                    (vertex, adapter.number.saturating_mul(ADAPTER_PORTS), adapter.host.as_str())
                }
                _ => continue,
            };
            if vertex == next {
                let is_host = device.role == Role::Host;
                self.vertices.push(Vertex::new(plain(name), is_host, device.line));
            }
            place[index] = Some((vertex, first));
        }
        place
    }

    /// Notes who answers to which LID, given where [`Subnet::add_vertices`] put the devices.
    fn add_addresses(&mut self, devices: &[Device], place: &[Option<(usize, u32)>]) {
        for (device, place) in devices.iter().zip(place) {
            let guid = device.id.strip_prefix("S-").map(|guid| u64::from_str_radix(guid, 16));
            if let (Some(Ok(guid)), Some((vertex, _))) = (guid, place) {
                self.switches.insert(guid, *vertex);
            }
            let own = device.lids.map(|lids| (lids, 0, device.guid, device.line));
            let ports = device.ports.iter();
            let of_ports =
                ports.filter_map(|port| Some((port.lids?, port.number, port.guid, port.line)));
            self.addresses.extend(own.into_iter().chain(of_ports).map(
                |(lids, port, guid, line)| {
                    let vertex = |(vertex, first): &(usize, u32)| End {
                        vertex: *vertex,
                        port: first.saturating_add(port),
                    };
                    Address { lids, end: place.as_ref().map(vertex), guid, line }
                },
            ));
        }
    }
}

/// The first word of the description, without the adapter that follows it.
pub(super) fn host_name<'a>(device: &Device<'a>) -> &'a str {
    device.description.split_ascii_whitespace().next().unwrap_or(device.id)
}

/// The shortest name of each switch, in their order, that is no other's: what stands between `MF0;` and the model
/// in a description that a managed switch makes, the description, or the identifier.
pub(super) fn switch_names<'a>(devices: &[Device<'a>]) -> Vec<&'a str> {
    let short = |device: &Device<'a>| {
        let name = device.description.strip_prefix("MF0;").unwrap_or(device.description);
        if name.len() == device.description.len() {
            name
        } else {
            name.split(':').next().unwrap_or(name)
        }
    };
    let mut seen: HashMap<&str, u32> = HashMap::new();
    for device in devices.iter().filter(|device| device.role == Role::Switch) {
        *seen.entry(device.description).or_default() += 1;
        if short(device) != device.description {
            *seen.entry(short(device)).or_default() += 1;
        }
    }
    let alone = |name: &&str| !name.is_empty() && seen.get(name) == Some(&1);
    let name = |device: &Device<'a>| {
        [short(device), device.description].into_iter().find(alone).unwrap_or(device.id)
    };
    devices.iter().filter(|device| device.role == Role::Switch).map(name).collect()
}

fn devices(text: &str) -> Result<Vec<Device<'_>>, InputError> {
    let mut devices: Vec<Device> = Vec::new();
    let (mut guid, mut image) = (None, None);
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        let line = line.trim();
        let refuse = |what: &str| InputError::at(number, format!("{what}: {}", shown(line)));
        if line.starts_with('[') {
            let device = devices
                .last_mut()
                .ok_or_else(|| refuse("a port stands before the first switch or adapter"))?;
            let port = port(line, number).map_err(|fault| match fault {
                Fault::Form => refuse("a port should read like [1] \"S-...\"[19] # ... 4xQDR, not"),
                Fault::Speed(speed) => {
                    let speeds = SPEEDS.map(|(name, _)| name).join(", ");
                    refuse(&format!(
                        "the speed {} is unknown (known: {speeds}, with 1, 2, 4, 8 or 12 lanes)",
                        shown(speed)
                    ))
                }
            })?;
            device.ports.push(port);
            continue;
        }
        let role = match line.split_ascii_whitespace().next() {
            Some("Switch") => Role::Switch,
            Some("Ca") => Role::Host,
            Some("Rt") => Role::Other,
            Some(word) if is_remark(word) => {
                guid = switch_guid(word).or(guid);
                image = image_guid(word).or(image);
                continue;
            }
            None => continue,
            Some(_) => return Err(refuse("not a line of ibnetdiscover")),
        };
        let mut quoted = line.split('"').skip(1).step_by(2);
        let id = quoted
            .next()
            .filter(|id| !id.is_empty() && line.matches('"').count() >= 2)
            .ok_or_else(|| refuse("no quoted identifier follows"))?;
        let description = quoted.next().unwrap_or_default().trim();
        let role = if description.contains(AGGREGATION) { Role::Other } else { role };
        let lids = line.rsplit('"').next().and_then(Lids::parse);
        let guid = guid.take().filter(|_| role == Role::Switch);
        let (image, ports) = (image.take(), Vec::new());
        devices.push(Device { id, description, role, line: number, lids, guid, image, ports });
    }
    Ok(devices)
}

/// Lines that say nothing of the cabling: comments, `vendid=...`, chassis headings.
fn is_remark(word: &str) -> bool {
    word.starts_with('#') || word.contains('=') || word.contains("Chassis")
}

/// `switchguid=0x20007d(20007d)`: the identifier in brackets is that of the switch's own port.
fn switch_guid(word: &str) -> Option<u64> {
    in_brackets(word.strip_prefix("switchguid=")?)
}

/// `sysimgguid=0x20007d`; 0 is no identifier.
fn image_guid(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("sysimgguid=")?.trim_start_matches("0x");
    u64::from_str_radix(digits, 16).ok().filter(|&guid| guid != 0)
}

fn in_brackets(text: &str) -> Option<u64> {
    let (guid, _) = text.split_once('(')?.1.split_once(')')?;
    u64::from_str_radix(guid, 16).ok()
}

/// What is wrong with a line of a port.
enum Fault<'a> {
    Form,
    Speed(&'a str),
}

/// `[19][ext 3](guid) "S-..."[18][ext 2](guid) # "name" lid 773 4xSDR`, what is in brackets
/// after the first number being optional at both ends.
fn port(line: &str, number: usize) -> Result<Port<'_>, Fault<'_>> {
    let ends = || {
        let (own, rest) = bracketed(line)?;
        let (before, rest) = rest.split_once('"')?;
        let (peer, rest) = rest.split_once('"')?;
        let (back, rest) = bracketed(rest)?;
        let (_, comment) = rest.split_once('#')?;
        Some((own, before, peer, back, comment))
    };
    let (own, before, peer, back, comment) = ends().ok_or(Fault::Form)?;
    let words = || comment.rsplit('"').next().unwrap_or(comment).split_ascii_whitespace().rev();
    let bandwidth = words().find_map(bandwidth).ok_or_else(|| {
        let is_speed =
            |word: &&str| word.split_once('x').is_some_and(|(width, _)| !width.is_empty());
        words().find(is_speed).map_or(Fault::Form, Fault::Speed)
    })?;
    // What a port says of its own LIDs comes before the name of the device it leads to.
    let lids = comment.split('"').next().and_then(Lids::parse);
    let guid = in_brackets(before);
    Ok(Port { number: own, peer, back, bandwidth, lids, guid, line: number })
}

fn bracketed(text: &str) -> Option<(u32, &str)> {
    let (number, rest) = text.strip_prefix('[')?.split_once(']')?;
    // A port is a byte; beyond it the ports of a host's adapters would run into each other.
    number.parse::<u8>().ok().map(|number| (u32::from(number), rest))
}

/// Data bandwidth of a link such as `4xQDR`, bytes per second.
fn bandwidth(word: &str) -> Option<f64> {
    let (width, speed) = word.split_once('x')?;
    let width = width.parse::<u8>().ok().filter(|width| [1, 2, 4, 8, 12].contains(width))?;
    let four = SPEEDS.iter().find(|(name, _)| *name == speed).map(|(_, four)| four)?;
    Some(four * f64::from(width) / 4.0)
}

/// Data bandwidth of four lanes, bytes per second: the bits of four lanes less their encoding, 8 of 10 bits up to QDR and 64 of 66
/// up to EDR. From HDR on the name of a speed says the data, 50 Gbit/s a lane and its doubles.
pub(crate) const SPEEDS: [(&str, f64); 9] = [
    ("SDR", 4.0 * 2.5e9 * 8.0 / 10.0 / 8.0),
    ("DDR", 4.0 * 5e9 * 8.0 / 10.0 / 8.0),
    ("QDR", 4.0 * 10e9 * 8.0 / 10.0 / 8.0),
    ("FDR10", 4.0 * 10.3125e9 * 64.0 / 66.0 / 8.0),
    ("FDR", 4.0 * 14.0625e9 * 64.0 / 66.0 / 8.0),
    ("EDR", 4.0 * 25.78125e9 * 64.0 / 66.0 / 8.0),
    ("HDR", 4.0 * 50e9 / 8.0),
    ("NDR", 4.0 * 100e9 / 8.0),
    ("XDR", 4.0 * 200e9 / 8.0),
];
