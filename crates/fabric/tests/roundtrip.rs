//! The reader of a format reads back the machine that the writer wrote.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;
#[path = "common/uneven.rs"]
mod uneven_trees;

use common::{machine, small_tree};
use proptest::prelude::*;
use topolane_fabric::{
    Cabling, Children, Description, DomainDescription, Fabric, Group, InputError, MissingCable,
    NodeKind, Penalty, SiteDescription, pgft, preset, read, write,
};
use uneven_trees::{leaf, over};

fn build(description: &Description) -> Fabric {
    Fabric::build(description).unwrap()
}

fn reread(
    fabric: &Fabric,
    write: fn(&Fabric) -> String,
    read: fn(&str) -> Result<Description, InputError>,
) -> Description {
    let text = write(fabric);
    let read = read(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    build(&read).description()
}

fn slurm(text: &str) -> Result<Description, InputError> {
    read::slurm_topology(text, NodeKind::default())
}

/// A tree whose branches differ in depth and width, under named parallel switches.
fn uneven() -> Description {
    let mut pod = over("pod0", vec![leaf("leaf0", 3), leaf("leaf1", 1)]);
    pod.switches = vec!["spine 0".to_owned(), "spine\"1".to_owned()];
    let root = over("campus", vec![pod, leaf("login", 2), over("pod1", vec![leaf("leaf2", 2)])]);
    let cabling = |parents, cables| Cabling::new(parents, cables, 4e9);
    let cabling = vec![cabling(1, 1), cabling(2, 1), cabling(1, 3)];
    let missing = vec![MissingCable { level: 2, group: 2, switch: 1, parent: 0, cable: 2 }];
    let mut machine = pgft("uneven", &[2, 3], &[1, 1], &[1, 1]);
    machine.sites.push(SiteDescription { root, cabling, missing });
    machine.kinds.push(NodeKind { memory: 1 << 40, nics: 4, ..NodeKind::default() });
    machine.kinds.push(NodeKind {
        flow_bandwidth: Some(8e7),
        latency: 4e-5,
        penalty: Penalty::Ethernet { beta: 0.8, gamma_out: 0.0, gamma_in: 0.04 },
        copy_bandwidth: 1e9,
        copy_latency: 0.0,
        memory_bandwidth: 5e9,
        ..NodeKind::default()
    });
    machine.kinds.push(NodeKind { penalty: Penalty::infiniband(), ..NodeKind::default() });
    let domain = |name: &str, nodes: &[&str]| DomainDescription {
        name: name.to_owned(),
        nodes: nodes.iter().map(|&node| node.to_owned()).collect(),
        bandwidth: 3.6e12,
    };
    // Neither domain nests in the tree.
    machine.domains = vec![
        domain("nvl 0", &["uneven1", "uneven2", "uneven4"]),
        domain("nvl1", &["uneven3", "uneven5"]),
    ];
    if let Children::Groups(groups) = &mut machine.sites[1].root.children
        && let Children::Nodes(nodes) = &mut groups[1].children
    {
        nodes[1].kind = 1;
    }
    machine
}

/// The tree of a group, without kinds and the names of groups and switches.
fn skeleton(group: &Group) -> String {
    match &group.children {
        Children::Nodes(nodes) => {
            format!("[{}]", nodes.iter().map(|n| n.name.as_str()).collect::<Vec<_>>().join(","))
        }
        Children::Groups(groups) => {
            format!("({})", groups.iter().map(skeleton).collect::<Vec<_>>().join(","))
        }
    }
}

#[test]
fn toml_holds_everything() {
    for name in ["cab", "pinot", "fat-tree(radix=8, pods=3)"] {
        let fabric = build(&preset(name).unwrap().unwrap());
        assert_eq!(reread(&fabric, write::machine_toml, read::machine_toml), fabric.description());
        assert!(write::machine_toml(&fabric).contains("children = ["), "regular, so in short form");
    }
    let racks = preset("nvl72(units=2)").unwrap().unwrap();
    assert_eq!(reread(&build(&racks), write::machine_toml, read::machine_toml), racks);
    let fabric = build(&uneven());
    assert_eq!(fabric.description(), uneven(), "building loses nothing");
    assert_eq!(reread(&fabric, write::machine_toml, read::machine_toml), uneven());
}

#[test]
fn slurm_holds_the_tree_and_its_names() {
    for machine in [uneven(), preset("cab").unwrap().unwrap()] {
        let back = reread(&build(&machine), write::slurm_topology, slurm);
        assert_eq!(back.sites.len(), machine.sites.len());
        for (one, other) in back.sites.iter().zip(&machine.sites) {
            assert_eq!(skeleton(&one.root), skeleton(&other.root));
            assert_eq!(one.root.name, other.root.name);
        }
    }
}

#[test]
fn a_subnet_holds_the_tree_and_its_cabling() {
    let mut machine = preset("cab").unwrap().unwrap();
    for (level, group, switch, parent, cable) in [(1, 3, 0, 7, 0), (2, 1, 5, 1, 8), (2, 1, 5, 0, 0)]
    {
        machine.sites[0].missing.push(MissingCable { level, group, switch, parent, cable });
    }
    // A whole core switch, number 4 * 2 + 1, is off: all its cables are missing.
    for group in 0..4 {
        for cable in 0..9 {
            machine.sites[0].missing.push(MissingCable {
                level: 2,
                group,
                switch: 4,
                parent: 1,
                cable,
            });
        }
    }
    // An aggregation switch of pod 2 is off, too.
    for group in 36..54 {
        machine.sites[0].missing.push(MissingCable {
            level: 1,
            group,
            switch: 0,
            parent: 11,
            cable: 0,
        });
    }
    for parent in 0..2 {
        for cable in 0..9 {
            machine.sites[0].missing.push(MissingCable {
                level: 2,
                group: 2,
                switch: 11,
                parent,
                cable,
            });
        }
    }
    let fabric = build(&machine);
    let mut expected = fabric.description();
    let mut back = reread(&fabric, write::ibnetdiscover, read::ibnetdiscover);
    assert_eq!(back.sites[0].root, expected.sites[0].root);
    assert_eq!(back.sites[0].cabling, expected.sites[0].cabling);
    for missing in [&mut back.sites[0].missing, &mut expected.sites[0].missing] {
        missing.sort_by_key(|m| (m.level, m.group, m.switch, m.parent, m.cable));
    }
    assert_eq!(back.sites[0].missing, expected.sites[0].missing);
}

proptest! {
    /// Any sites, cablings and missing cables are the same after our own format.
    #[test]
    fn toml_gives_back_any_machine(machine in machine()) {
        let fabric = build(&machine);
        prop_assert_eq!(reread(&fabric, write::machine_toml, read::machine_toml), fabric.description());
    }

    /// Node names, order and tree are the same after Slurm's format, site by site.
    #[test]
    fn slurm_gives_back_any_tree(machine in machine()) {
        let back = reread(&build(&machine), write::slurm_topology, slurm);
        let all = |machine: &Description| -> Vec<String> {
            machine.sites.iter().map(|site| skeleton(&site.root)).collect()
        };
        prop_assert_eq!(all(&back), all(&machine));
    }

    /// A whole tree is the same after it was written as a subnet: names, ranges, parents, parallel cables.
    #[test]
    fn a_subnet_gives_back_any_whole_tree(machine in small_tree("x")) {
        let fabric = build(&machine);
        let back = reread(&fabric, write::ibnetdiscover, read::ibnetdiscover);
        prop_assert_eq!(&back.sites, &machine.sites);
    }

    /// If one cable is missing from a tree with enough others like it, it is found missing in the same place.
    #[test]
    fn a_subnet_shows_which_cable_is_missing(
        children in prop::collection::vec(2u32..4, 2..4),
        parents in prop::collection::vec(1u32..3, 3),
        cables in prop::collection::vec(1u32..3, 3),
        which in any::<prop::sample::Index>(),
    ) {
        let depth = children.len();
        let mut parents = parents[..depth].to_vec();
        parents[0] = 1;
        let mut machine = pgft("x", &children, &parents, &[&[1], &cables[1..depth]].concat());
        let whole = build(&machine);
        let above_nodes = whole.uplinks(1, 0).start;
        let id = above_nodes + which.index((whole.links() - above_nodes) as usize) as u32;
        let (level, group, switch, parent, cable) = whole.cable_place(id).unwrap();
        machine.sites[0].missing.push(MissingCable { level, group, switch, parent, cable });
        // A group with a single uplink would be a separate tree without that uplink.
        if whole.uplinks(level, 0).len() as u32 <= whole.width(0, level) {
            return Ok(());
        }
        let back = reread(&build(&machine), write::ibnetdiscover, read::ibnetdiscover);
        prop_assert_eq!(&back.sites, &machine.sites);
    }
}
