//! The tree of the compute nodes does not depend on what else hangs on the subnet: servers on several leaves, second
//! cables, hosts on switches above the leaves, leaves without hosts.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::float_cmp)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use proptest::prelude::*;
use topolane_fabric::read::{Format, MachineOptions, NamedText, Read, ibnetdiscover, ports, read};
use topolane_fabric::{
    Children, DedicatedRouting, Description, Fabric, Group, Service, pgft, write,
};

/// The devices of a subnet by their identifiers.
#[derive(Default, Clone)]
struct Net(BTreeMap<String, Device>);

#[derive(Clone)]
struct Device {
    is_switch: bool,
    description: String,
    card: u64,
    /// The far device and its port, by the device's own port.
    ports: BTreeMap<u32, (String, u32)>,
    speed: String,
}

impl Net {
    fn written(machine: &Description) -> Net {
        let text = write::ibnetdiscover(&Fabric::build(machine).unwrap());
        let mut net = Net::default();
        let mut at = String::new();
        let number = |text: &str| {
            text.split_once('[').unwrap().1.split_once(']').unwrap().0.parse::<u32>().unwrap()
        };
        for line in text.lines() {
            let quoted: Vec<&str> = line.split('"').collect();
            if line.starts_with("Switch") || line.starts_with("Ca") {
                quoted[1].clone_into(&mut at);
                net.add(&at, line.starts_with("Switch"), quoted[3]);
            } else if line.starts_with('[') {
                let far = (quoted[1].to_owned(), number(quoted[2]));
                net.0.get_mut(&at).unwrap().ports.insert(number(line), far);
            }
        }
        net
    }

    fn add(&mut self, id: &str, is_switch: bool, description: &str) {
        let card = 1 + self.0.len() as u64;
        let description = description.to_owned();
        let (ports, speed) = (BTreeMap::new(), "4xQDR".to_owned());
        self.0.insert(id.to_owned(), Device { is_switch, description, card, ports, speed });
    }

    fn free_port(&self, id: &str) -> u32 {
        1 + self.0[id].ports.keys().max().copied().unwrap_or_default()
    }

    /// Lays a cable between the next free ports of two devices.
    fn cable(&mut self, one: &str, other: &str) {
        self.cable_at((one, self.free_port(one)), (other, self.free_port(other)));
    }

    fn cable_at(&mut self, one: (&str, u32), other: (&str, u32)) {
        for (own, far) in [(one, other), (other, one)] {
            self.0.get_mut(own.0).unwrap().ports.insert(own.1, (far.0.to_owned(), far.1));
        }
    }

    /// Adds a host with one adapter for each of these switches.
    fn host(&mut self, name: &str, switches: &[&str]) {
        for (number, switch) in (1..).zip(switches) {
            let id = format!("H-{name}-{number}");
            self.add(&id, false, &format!("{name} HCA-{number}"));
            self.cable(&id, switch);
        }
    }

    fn switches(&self, is_leaf: bool) -> Vec<String> {
        let has_host =
            |device: &Device| device.ports.values().any(|(far, _)| far.starts_with("H-"));
        let all = self.0.iter().filter(|(_, device)| device.is_switch);
        all.filter(|(_, device)| has_host(device) == is_leaf).map(|(id, _)| id.clone()).collect()
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for (id, device) in &self.0 {
            let kind = if device.is_switch { "Switch" } else { "Ca" };
            let (card, description) = (device.card, &device.description);
            // A switch has one address, and a host has one for every port.
            let lid = 64 * card;
            let own = if device.is_switch {
                format!("base port 0 lid {lid} lmc 0")
            } else {
                String::new()
            };
            let _ = writeln!(
                text,
                "sysimgguid=0x{card:x}\n{kind}\t40 \"{id}\"\t# \"{description}\" {own}"
            );
            for (port, (far, back)) in &device.ports {
                let about = &self.0[far].description;
                let speed = &device.speed;
                let own = if device.is_switch {
                    String::new()
                } else {
                    format!("lid {} lmc 0 ", lid + u64::from(*port))
                };
                let _ =
                    writeln!(text, "[{port}]\t\"{far}\"[{back}]\t# {own}\"{about}\" lid 1 {speed}");
            }
            text.push('\n');
        }
        text
    }

    fn read(&self) -> Read {
        self.read_as(None)
    }

    fn read_as(&self, hosts: Option<&str>) -> Read {
        let options =
            MachineOptions { hosts: hosts.map(str::to_owned), ..MachineOptions::default() };
        let text = self.text();
        read(&text, Format::Ibnetdiscover, &options)
            .unwrap_or_else(|error| panic!("{error}\n{text}"))
    }
}

/// The group without its nodes that are not compute nodes.
fn compute(mut group: Group) -> Group {
    group.children = match group.children {
        Children::Nodes(mut nodes) => {
            nodes.retain(|node| node.name.starts_with('x'));
            Children::Nodes(nodes)
        }
        Children::Groups(groups) => Children::Groups(groups.into_iter().map(compute).collect()),
    };
    group
}

fn tree() -> impl Strategy<Value = Description> {
    (3u32..6, prop::collection::vec(2u32..4, 1..3), prop::collection::vec((1u32..3, 1u32..3), 2))
        .prop_map(|(nodes, groups, above)| {
            let children = [&[nodes], &groups[..]].concat();
            let (parents, cables): (Vec<u32>, Vec<u32>) =
                above[..groups.len()].iter().copied().unzip();
            pgft("x", &children, &[&[1], &parents[..]].concat(), &[&[1], &cables[..]].concat())
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn service_hosts_and_empty_leaves_change_nothing_for_the_nodes(
        machine in tree(),
        services in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 1..4), 0..4),
        second in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..3),
        above in prop::option::of(any::<prop::sample::Index>()),
        empty in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
    ) {
        let mut net = Net::written(&machine);
        let expected = ibnetdiscover(&net.text()).unwrap();
        let (leaves, spines) = (net.switches(true), net.switches(false));
        for (number, on) in services.iter().enumerate() {
            let on: Vec<&str> = on.iter().map(|index| leaves[index.index(leaves.len())].as_str()).collect();
            net.host(&format!("oss{number}"), &on);
        }
        let nodes: Vec<String> =
            net.0.iter().filter(|(_, device)| device.description.starts_with('x')).map(|(id, _)| id.clone()).collect();
        let mut seen = BTreeSet::new();
        for (node, leaf) in &second {
            if !seen.insert(node.index(nodes.len())) {
                continue; // with two further cables to one leaf it would count there
            }
            let (node, leaf) = (&nodes[node.index(nodes.len())], &leaves[leaf.index(leaves.len())]);
            net.cable(node, leaf);
        }
        if let Some(index) = above {
            net.host("ufm", &[&spines[index.index(spines.len())]]);
        }
        for (number, like) in empty.iter().enumerate() {
            let id = format!("S-empty{number}");
            net.add(&id, true, &format!("empty{number}"));
            let like = net.0[&leaves[like.index(leaves.len())]].clone();
            for (port, (far, _)) in like.ports.iter().filter(|(_, (far, _))| far.starts_with("S-")) {
                let back = net.free_port(far);
                net.cable_at((&id, *port), (far, back));
            }
        }
        let found = net.read();
        prop_assert_eq!(found.description.sites.len(), 1);
        let (site, whole) = (&found.description.sites[0], &expected.sites[0]);
        prop_assert_eq!(&compute(site.root.clone()), &whole.root, "{}", net.text());
        prop_assert_eq!(&site.cabling, &whole.cabling);
        prop_assert!(site.missing.is_empty());
        let notes = found.notes.join("; ");
        prop_assert_eq!(above.is_some(), notes.contains("1 host on a switch above the leaves is skipped: \"ufm\""), "{}", notes);
        prop_assert_eq!(!empty.is_empty(), notes.contains("without nodes"), "{}", notes);
    }
}

/// Two leaves of four nodes under one spine.
fn small() -> Net {
    Net::written(&pgft("x", &[4, 2], &[1, 1], &[1, 2]))
}

fn leaf_names(read: &Read) -> Vec<Vec<String>> {
    fn collect(group: &Group, all: &mut Vec<Vec<String>>) {
        match &group.children {
            Children::Nodes(nodes) => {
                all.push(nodes.iter().map(|node| node.name.clone()).collect());
            }
            Children::Groups(groups) => groups.iter().for_each(|group| collect(group, all)),
        }
    }
    let mut all = Vec::new();
    read.description.sites.iter().for_each(|site| collect(&site.root, &mut all));
    all
}

#[test]
fn a_host_counts_on_the_leaf_of_most_of_its_cables_and_then_of_its_first_port() {
    let mut net = small();
    let leaves = net.switches(true);
    net.host("first", &[&leaves[1], &leaves[0]]);
    net.host("most", &[&leaves[1], &leaves[0], &leaves[0]]);
    let found = net.read();
    let on = leaf_names(&found);
    assert!(on[1].contains(&"first".to_owned()) && on[0].contains(&"most".to_owned()), "{on:?}");
    let notes = found.notes.join("; ");
    assert!(
        notes.contains(
            "2 further cables of hosts are skipped: host first hangs on several leaf switches"
        ),
        "{notes}"
    );
    assert!(
        notes.contains(
            "1 further cable of hosts is skipped: host most has more cables than most hosts"
        ),
        "{notes}"
    );
    assert_eq!(found.description.kinds[0].nics, 1);
}

#[test]
fn adapters_of_one_description_on_two_cards_are_two_hosts() {
    let mut net = small();
    let leaves = net.switches(true);
    for number in [1, 2] {
        let id = format!("H-{number}");
        net.add(&id, false, "localhost HCA-1");
        net.cable(&id, &leaves[0]);
    }
    let found = net.read();
    assert_eq!(leaf_names(&found)[0].len(), 6);
    assert!(
        found.notes[0]
            .starts_with("2 adapters have names that several hosts share, such as \"localhost\"")
    );
    // Two functions of one card belong to one host.
    net.0.get_mut("H-2").unwrap().card = net.0["H-1"].card;
    let found = net.read();
    assert_eq!(leaf_names(&found)[0].len(), 5);
    assert!(leaf_names(&found)[0].contains(&"localhost".to_owned()));
}

#[test]
fn named_hosts_alone_are_nodes() {
    let mut net = small();
    let leaves = net.switches(true);
    net.host("oss", &[&leaves[0], &leaves[1]]);
    let found = net.read_as(Some("x[1-7],x99"));
    let count: Vec<usize> = leaf_names(&found).iter().map(Vec::len).collect();
    assert_eq!(count, [4, 3]);
    let notes = found.notes.join("; ");
    assert!(notes.contains("1 node of --hosts, such as \"x99\", have no cable"), "{notes}");
    assert!(notes.contains("2 hosts not named by --hosts are skipped, such as"), "{notes}");
}

#[test]
fn bonded_hosts_are_rails_only_if_most_hosts_are() {
    let mut net = small();
    let leaves = net.switches(true);
    for number in 0..8 {
        net.host(&format!("bond{number}"), &[&leaves[0], &leaves[1]]);
    }
    assert_eq!(leaf_names(&net.read()).len(), 2, "half of the hosts do not make rails");
    let mut rails = Net::written(&pgft("x", &[4, 2], &[2, 1], &[1, 1]));
    let leaves = rails.switches(true);
    assert_eq!(leaves.len(), 4);
    rails.host("oss", &[&leaves[0], &leaves[2]]);
    let found = rails.read();
    assert_eq!(found.description.sites[0].cabling[0].parents, 2);
    assert_eq!(leaf_names(&found).len(), 2, "a server does not join two groups of rails");
}

#[test]
fn a_level_of_several_speeds_is_named() {
    let net = small();
    let spine = net.switches(false)[0].clone();
    let (port, (leaf, back)) =
        net.0[&spine].ports.iter().next().map(|(p, f)| (*p, f.clone())).unwrap();
    let text = net.text();
    let slow = text
        .replace(&format!("[{port}]\t\"{leaf}\"[{back}]"), "SLOW")
        .replace(&format!("[{back}]\t\"{spine}\"[{port}]"), "TOO");
    let slow: Vec<String> = slow
        .lines()
        .map(|line| match (line.starts_with("SLOW"), line.starts_with("TOO")) {
            (true, _) => {
                line.replace("SLOW", &format!("[{port}]\t\"{leaf}\"[{back}]")).replace("QDR", "SDR")
            }
            (_, true) => {
                line.replace("TOO", &format!("[{back}]\t\"{spine}\"[{port}]")).replace("QDR", "SDR")
            }
            _ => line.to_owned(),
        })
        .collect();
    let found = read(&slow.join("\n"), Format::Ibnetdiscover, &MachineOptions::default()).unwrap();
    assert_eq!(found.description.sites[0].cabling[1].bandwidth, 4e9);
    let notes = found.notes.join("; ");
    assert!(notes.contains("cables above level 1 have several speeds (1 of 1 GB/s, 3 of 4 GB/s): all count as 4 GB/s"), "{notes}");
    assert!(net.read().notes.is_empty());
}

#[test]
fn every_speed_is_its_signalling_less_its_encoding() {
    for (speed, bandwidth) in
        [("4xEDR", 12.5e9), ("2xHDR", 12.5e9), ("4xQDR", 4e9), ("4xNDR", 50e9), ("1xEDR", 3.125e9)]
    {
        let mut net = small();
        net.0.values_mut().for_each(|device| speed.clone_into(&mut device.speed));
        let found = net.read();
        assert_eq!(found.description.sites[0].cabling[1].bandwidth, bandwidth, "{speed}");
    }
    let mut net = small();
    net.0.values_mut().for_each(|device| "4x???".clone_into(&mut device.speed));
    let error = ibnetdiscover(&net.text()).unwrap_err();
    assert!(
        error.message.starts_with("the speed \"4x???\" is unknown (known: SDR, DDR, QDR"),
        "{error}"
    );
}

#[test]
fn tables_lead_to_what_the_tree_does_without() {
    let mut net = small();
    let (leaves, spine) = (net.switches(true), net.switches(false)[0].clone());
    net.host("oss", &[&leaves[0], &leaves[1]]);
    net.host("ufm", &[&spine]);
    let text = net.text();
    let fabric = Arc::new(Fabric::build(&net.read().description).unwrap());
    let found = ports(&fabric, NamedText { text: &text, name: "net" }).unwrap();
    assert_eq!(found.outside, [0u16; 0], "{text}");
    let routes = DedicatedRouting::new(&fabric, &[], &Service::default()).unwrap();
    let tables = write::LinearTables::new(&routes, found).text();
    let hosts = net.0.values().filter(|device| !device.is_switch).count();
    for (id, device) in net.0.iter().filter(|(_, device)| device.is_switch) {
        let table = tables.split("Unicast lids").find(|table| table.contains(&id[2..])).unwrap();
        let entries = table.lines().filter(|line| line.starts_with("0x")).count();
        assert_eq!(entries, hosts + leaves.len() + 1, "{table}");
        for (port, (far, _)) in device.ports.iter().filter(|(_, (far, _))| far.starts_with("H-")) {
            let lid = 64 * net.0[far].card + 1;
            assert!(table.contains(&format!("0x{lid:04x} {port:03} #")), "{far}: {table}");
        }
    }
}
