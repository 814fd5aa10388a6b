//! Collects the hosts and switches of a subnet from the devices of `ibnetdiscover`. All adapters of a host become one
//! host.

use std::collections::HashMap;

use super::adapters::{Adapter, adapters};
use super::devices::{Device, Role, devices, switch_names};
use super::subnet::{Address, Cable, CableEnd, Subnet, Vertex};
use crate::error::InputError;
use crate::hostlist::plain;

/// The port numbers reserved for one adapter, before those of the host's next adapter.
const ADAPTER_PORTS: u32 = 256;

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
                    let end = |(vertex, first), port| CableEnd { vertex, port: first + port };
                    subnet.cables.push(Cable {
                        ends: [end(near, port.number), end(far, port.back)],
                        bandwidth: port.bandwidth,
                    });
                }
            }
        }
        Ok(subnet)
    }

    /// Adds a vertex for every switch, and one for all adapters of a host. Returns the vertex of each device and the
    /// offset of its port numbers.
    fn add_vertices(
        &mut self,
        devices: &[Device],
        adapters: &[Option<Adapter>],
    ) -> Vec<Option<(usize, u32)>> {
        let mut names = switch_names(devices).into_iter();
        let mut hosts: HashMap<&str, usize> = HashMap::new();
        // Hosts are ordered by description, whatever the order in the file; switches keep their order.
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

    /// Records which vertex has which LID. `place` is the result of [`Subnet::add_vertices`].
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
                    let vertex = |(vertex, first): &(usize, u32)| CableEnd {
                        vertex: *vertex,
                        port: first.saturating_add(port),
                    };
                    Address { lids, end: place.as_ref().map(vertex), guid, line }
                },
            ));
        }
    }
}
