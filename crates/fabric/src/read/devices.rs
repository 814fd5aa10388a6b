//! Parses the text of `ibnetdiscover` into devices and their ports.

use std::collections::HashMap;

use super::lids::Lids;
use crate::error::{InputError, shown};

/// Description of adapters inside switches that reduce data in the network. They run no jobs.
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
    /// A switch's own LIDs and the identifier of its own port.
    pub lids: Option<Lids>,
    pub guid: Option<u64>,
    /// The identifier shared by all adapters on one card (system image GUID).
    pub image: Option<u64>,
    pub ports: Vec<Port<'a>>,
}

pub(super) struct Port<'a> {
    pub number: u32,
    pub peer: &'a str,
    /// The port number at the other end.
    pub back: u32,
    pub bandwidth: f64,
    /// The LIDs of an adapter's port.
    pub lids: Option<Lids>,
    pub guid: Option<u64>,
    pub line: usize,
}

/// The host name: the first word of the description, before the adapter name.
pub(super) fn host_name<'a>(device: &Device<'a>) -> &'a str {
    device.description.split_ascii_whitespace().next().unwrap_or(device.id)
}

/// A short unique name for each switch, in their order. It is the part between `MF0;` and the model, if a managed
/// switch made the description; otherwise the description; otherwise the identifier.
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

/// The devices in the order of the text.
pub(super) fn devices(text: &str) -> Result<Vec<Device<'_>>, InputError> {
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
                PortLineFault::Form => {
                    refuse("a port should read like [1] \"S-...\"[19] # ... 4xQDR, not")
                }
                PortLineFault::Speed(speed) => {
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

/// Whether a line says nothing about cabling: comments, `vendid=...`, chassis headings.
fn is_remark(word: &str) -> bool {
    word.starts_with('#') || word.contains('=') || word.contains("Chassis")
}

/// Parses `switchguid=0x20007d(20007d)`. The identifier in brackets is that of the switch's own port.
fn switch_guid(word: &str) -> Option<u64> {
    in_brackets(word.strip_prefix("switchguid=")?)
}

/// Parses `sysimgguid=0x20007d`; `None` for 0, which is not an identifier.
fn image_guid(word: &str) -> Option<u64> {
    let digits = word.strip_prefix("sysimgguid=")?.trim_start_matches("0x");
    u64::from_str_radix(digits, 16).ok().filter(|&guid| guid != 0)
}

fn in_brackets(text: &str) -> Option<u64> {
    let (guid, _) = text.split_once('(')?.1.split_once(')')?;
    u64::from_str_radix(guid, 16).ok()
}

enum PortLineFault<'a> {
    Form,
    Speed(&'a str),
}

/// Parses `[19][ext 3](guid) "S-..."[18][ext 2](guid) # "name" lid 773 4xSDR`. The brackets after the first number are
/// optional at both ends.
fn port(line: &str, number: usize) -> Result<Port<'_>, PortLineFault<'_>> {
    let ends = || {
        let (own, rest) = bracketed(line)?;
        let (before, rest) = rest.split_once('"')?;
        let (peer, rest) = rest.split_once('"')?;
        let (back, rest) = bracketed(rest)?;
        let (_, comment) = rest.split_once('#')?;
        Some((own, before, peer, back, comment))
    };
    let (own, before, peer, back, comment) = ends().ok_or(PortLineFault::Form)?;
    let words = || comment.rsplit('"').next().unwrap_or(comment).split_ascii_whitespace().rev();
    let bandwidth = words().find_map(bandwidth).ok_or_else(|| {
        let is_speed =
            |word: &&str| word.split_once('x').is_some_and(|(width, _)| !width.is_empty());
        words().find(is_speed).map_or(PortLineFault::Form, PortLineFault::Speed)
    })?;
    // The LIDs of the port itself come before the name of the device at the other end.
    let lids = comment.split('"').next().and_then(Lids::parse);
    let guid = in_brackets(before);
    Ok(Port { number: own, peer, back, bandwidth, lids, guid, line: number })
}

fn bracketed(text: &str) -> Option<(u32, &str)> {
    let (number, rest) = text.strip_prefix('[')?.split_once(']')?;
    // Port numbers fit in a byte. Larger ones would collide with the ports of the host's next adapter.
    number.parse::<u8>().ok().map(|number| (u32::from(number), rest))
}

/// The data bandwidth of a link such as `4xQDR`, in bytes per second.
fn bandwidth(word: &str) -> Option<f64> {
    let (width, speed) = word.split_once('x')?;
    let width = width.parse::<u8>().ok().filter(|width| [1, 2, 4, 8, 12].contains(width))?;
    let four = SPEEDS.iter().find(|(name, _)| *name == speed).map(|(_, four)| four)?;
    Some(four * f64::from(width) / 4.0)
}

/// The data bandwidth of four lanes, in bytes per second. Up to EDR it is the bit rate minus the encoding: 8 of 10 bits
/// up to QDR, 64 of 66 after that. From HDR on, the name of a speed gives the data rate: 50 Gbit/s per lane, then
/// doubling.
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
