//! The forwarding tables of any small tree are followed cable by cable. Arbitrary and damaged text gives a routing or
//! one error, never a panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[allow(dead_code)] // which tests of other files use
mod common;

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Arc;

use common::damage::{apply, damage};
use common::{mark_missing, small_tree};
use proptest::prelude::*;
use proptest::sample::Index;
use topolane_fabric::read::{NamedText, ibnetdiscover, lfts, ports};
use topolane_fabric::write::{LinearTables, link_names};
use topolane_fabric::{DedicatedRouting, Fabric, InputError, Routing, Service, Tables, write};

/// What the text of `ibnetdiscover` holds, read in the simplest way.
#[derive(Default)]
struct Net {
    /// Every device by its identifier: its name, its LID, and for each port the far device and its port.
    devices: HashMap<String, (String, u16, Ports)>,
}

type Ports = Vec<(u8, String, u8)>;

impl Net {
    fn of(text: &str) -> Net {
        let mut net = Net::default();
        let mut device = String::new();
        let number = |text: &str, after: &str| {
            let rest = text.split(after).nth(1).unwrap_or("");
            rest.split([' ', ']']).next().and_then(|word| word.parse::<u16>().ok()).unwrap_or(0)
        };
        for line in text.lines() {
            let quoted: Vec<&str> = line.split('"').skip(1).step_by(2).collect();
            if line.starts_with("Switch") || line.starts_with("Ca") {
                quoted[0].clone_into(&mut device);
                let own = (quoted[1].to_owned(), number(line, " lid "), Vec::new());
                net.devices.insert(device.clone(), own);
            } else if line.starts_with('[') {
                let entry = net.devices.get_mut(&device).unwrap();
                let (port, back) =
                    (number(line, "["), number(line.split('"').nth(2).unwrap(), "["));
                entry.2.push((port as u8, quoted[0].to_owned(), back as u8));
                if device.starts_with('H') && entry.2.len() == 1 {
                    entry.1 = number(line, " lid ");
                }
            }
        }
        net
    }

    fn is_switch(device: &str) -> bool {
        device.starts_with('S')
    }

    /// The first port of a host: its number, and the switch and the switch's port that it leads to.
    fn first(&self, host: &str) -> &(u8, String, u8) {
        self.devices[host].2.iter().min_by_key(|port| port.0).unwrap()
    }

    /// A port that leads nearer to the first port of a host, drawn for every switch that reaches it.
    fn ports_towards<'a>(
        &'a self,
        to: &str,
        draw: &mut impl FnMut(usize) -> usize,
    ) -> HashMap<&'a str, u8> {
        let (_, last, into) = self.first(to);
        let mut far: HashMap<&str, usize> = HashMap::from([(last.as_str(), 0)]);
        let mut edge = vec![last.as_str()];
        while !edge.is_empty() {
            let mut next = Vec::new();
            for device in edge {
                for (_, peer, _) in &self.devices[device].2 {
                    if Net::is_switch(peer) && !far.contains_key(peer.as_str()) {
                        far.insert(peer, far[device] + 1);
                        next.push(peer.as_str());
                    }
                }
            }
            edge = next;
        }
        // The order must always be the same, because the draws must not depend on the order of a hash map.
        let mut reached: Vec<&str> = far.keys().copied().filter(|d| d != last).collect();
        reached.sort_unstable();
        let choose = |switch| {
            let nearer = |peer: &str| far.get(peer).is_some_and(|&d| d + 1 == far[switch]);
            let ports = self.devices[switch].2.iter().filter(|(_, peer, _)| nearer(peer));
            let ports: Vec<u8> = ports.map(|port| port.0).collect();
            (switch, ports[draw(ports.len())])
        };
        reached.into_iter().map(choose).chain([(last.as_str(), *into)]).collect()
    }

    fn hosts(&self) -> Vec<&str> {
        let mut hosts: Vec<&str> =
            self.devices.keys().map(String::as_str).filter(|d| !Net::is_switch(d)).collect();
        hosts.sort_unstable();
        hosts
    }

    fn switches(&self) -> Vec<&str> {
        let mut switches: Vec<&str> =
            self.devices.keys().map(String::as_str).filter(|d| Net::is_switch(d)).collect();
        switches.sort_unstable();
        switches
    }
}

type Forwarding<'a> = HashMap<&'a str, HashMap<&'a str, u8>>;

fn dump(net: &Net, towards: &Forwarding) -> String {
    let mut text = String::new();
    for switch in net.switches() {
        let guid = &switch[2..];
        let _ = writeln!(text, "Unicast lids [0-9] of switch Lid 1 guid 0x{guid} ('x'):");
        for host in net.hosts() {
            if let Some(port) = towards[host].get(switch) {
                let _ = writeln!(text, "0x{:04x} {port:03} # x", net.devices[host].1);
            }
        }
        let _ = writeln!(text, "9 lids dumped");
    }
    text
}

fn read(dump: &str, net: &str) -> Result<Option<Tables>, InputError> {
    let Ok(description) = ibnetdiscover(net) else { return Ok(None) };
    let Ok(fabric) = Fabric::build(&description) else { return Ok(None) };
    let source = |text, name| NamedText { text, name };
    lfts(&Arc::new(fabric), source(dump, "tables"), source(net, "net")).map(Some)
}

fn machine_text() -> impl Strategy<Value = String> {
    (small_tree("a"), prop::collection::vec(any::<Index>(), 0..4)).prop_map(
        |(mut tree, missing)| {
            for which in missing {
                mark_missing(&mut tree, which);
            }
            write::ibnetdiscover(&Fabric::build(&tree).unwrap())
        },
    )
}

fn forwarding(net: &Net, seed: u64) -> Forwarding<'_> {
    let mut state = seed;
    let mut draw = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) as usize % below
    };
    net.hosts().into_iter().map(|host| (host, net.ports_towards(host, &mut draw))).collect()
}

/// Writes tables for the subnet that a text describes, and reads any dump that comes with it.
fn write_over(net: &str, dump: &str) {
    let source = |text, name| NamedText { text, name };
    let Ok(description) = ibnetdiscover(net) else { return };
    let Ok(fabric) = Fabric::build(&description).map(Arc::new) else { return };
    let Ok(routes) = DedicatedRouting::new(&fabric, &[], &Service::default()) else { return };
    let Ok(ports) = ports(&fabric, source(net, "net")) else { return };
    let tables = LinearTables::new(&routes, ports);
    let text = tables.text();
    if tables.entries() > 0 {
        assert_eq!(tables.changed(source(&text, "again")).unwrap(), (vec![], 0));
    }
    let _ = tables.changed(source(dump, "dump"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// A route is the walk over the text from a host's switch by the port of its table to the device there, and so on.
    /// Both have the same devices in the same order. No two (switch, port) are on one channel.
    #[test]
    fn ways_are_walks_over_the_text(text in machine_text(), seed in any::<u64>()) {
        let net = Net::of(&text);
        prop_assume!(!net.devices.is_empty());
        let towards = forwarding(&net, seed);
        let reaches = |from, to| towards[to].contains_key(net.first(from).1.as_str());
        let all = net.hosts().into_iter().all(|a| net.hosts().into_iter().all(|b| reaches(a, b)));
        let read = read(&dump(&net, &towards), &text);
        if !all {
            // Parts without a connection are sites. If only hosts join them, their first ports do not reach each other.
            match read {
                Err(error) => prop_assert!(error.message.ends_with("has no port for it")),
                Ok(tables) => prop_assert!(tables.is_none_or(|read| read.fabric().sites() > 1)),
            }
            return Ok(());
        }
        let Some(tables) = read.unwrap() else { return Ok(()) };
        let fabric = tables.fabric();
        let names = link_names(fabric);
        let mut name_of: HashMap<&str, &str> = HashMap::new();
        let mut named: HashMap<&str, &str> = HashMap::new();
        let mut channel_of: HashMap<(&str, u8), u32> = HashMap::new();
        for from in net.hosts() {
            for to in net.hosts().into_iter().filter(|&to| to != from) {
                let node = |host: &str| fabric.node_named(&net.devices[host].0).unwrap();
                let mut path = Vec::new();
                let found = tables.path(node(from), node(to), &mut path);
                let (mut at, mut port) = (from, net.first(from).0);
                prop_assert_eq!(found, Ok(()));
                for &channel in &path {
                    let first = *channel_of.entry((at, port)).or_insert(channel);
                    prop_assert_eq!(first, channel);
                    let (_, peer, _) = net.devices[at].2.iter().find(|p| p.0 == port).unwrap();
                    let link = &names[channel as usize / 2];
                    let ends = [link.lower.name.as_str(), link.upper.name.as_str()];
                    let (a, b) = if channel % 2 == 0 { (0, 1) } else { (1, 0) };
                    for (device, name) in [(at, ends[a]), (peer, ends[b])] {
                        prop_assert_eq!(*name_of.entry(device).or_insert(name), name);
                        prop_assert_eq!(*named.entry(name).or_insert(device), device);
                        // A reader may have to rename a switch, but never a host.
                        prop_assert!(Net::is_switch(device) || name == net.devices[device].0);
                    }
                    prop_assert!(tables.capacity(channel) > 0.0);
                    at = peer;
                    port = towards[to].get(at).copied().unwrap_or(0);
                }
                prop_assert_eq!(at, to);
            }
        }
        let mut channels: Vec<u32> = channel_of.values().copied().collect();
        channels.sort_unstable();
        let ports = channels.len();
        channels.dedup();
        prop_assert_eq!(channels.len(), ports);
    }

    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let text = String::from_utf8_lossy(&bytes);
        let net = include_str!("data/two-leaves.ibnetdiscover");
        prop_assert!(read(&text, net).is_err());
        let _ = read("Unicast lids of switch x guid 0x1 (x):\n1 lids dumped\n", &text);
    }

    #[test]
    fn damaged_files(
        text in machine_text(),
        seed in any::<u64>(),
        damages in prop::collection::vec((any::<bool>(), damage()), 1..6),
    ) {
        let net = Net::of(&text);
        prop_assume!(!net.devices.is_empty());
        let mut dump = dump(&net, &forwarding(&net, seed));
        let mut text = text.clone();
        for (of_dump, damage) in &damages {
            let target = if *of_dump { &mut dump } else { &mut text };
            *target = apply(target, damage);
        }
        write_over(&text, &dump);
        match read(&dump, &text) {
            Err(error) => prop_assert!(!error.message.is_empty() && !error.source.is_empty()),
            Ok(None) => {}
            Ok(Some(tables)) => {
                // Tables that were accepted lead everywhere inside a site.
                let fabric = tables.fabric();
                for (a, b) in (0..fabric.nodes()).zip(1..fabric.nodes()) {
                    let found = tables.path(a, b, &mut Vec::new());
                    prop_assert_eq!(found.is_ok(), fabric.common_level(a, b).is_some());
                }
            }
        }
    }
}
