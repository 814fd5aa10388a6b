//! What a format can express of a machine is the same after writing and reading.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::collections::BTreeSet;

use common::machine;
use proptest::prelude::*;
use topolane_fabric::read::{Format, MachineOptions, read};
use topolane_fabric::write::{WRITERS, Writer};
use topolane_fabric::{
    Children, Description, DomainDescription, Fabric, pgft, preset, read as readers,
};

fn written(fabric: &Fabric, writer: &str) -> String {
    (Writer::named(writer).expect(writer).write)(fabric)
}

fn again(text: &str, format: Format, topology: Option<&str>) -> Fabric {
    let options =
        MachineOptions { topology: topology.map(str::to_owned), ..MachineOptions::default() };
    let read = read(text, format, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    Fabric::build(&read.description).expect("a fabric")
}

type Sets = BTreeSet<BTreeSet<String>>;

/// The nodes of every group, without groups that only fill up short branches, and the names of all nodes.
fn groups(fabric: &Fabric) -> Sets {
    let nodes =
        |range: std::ops::Range<u32>| range.map(|n| fabric.node_name(n).to_owned()).collect();
    let mut sets: Sets = (1..=fabric.depth())
        .flat_map(|level| (0..fabric.groups(level)).map(move |group| (level, group)))
        .filter(|&(level, group)| !fabric.is_padding(level, group))
        .map(|(level, group)| nodes(fabric.node_range(level, group)))
        .collect();
    sets.insert(nodes(0..fabric.nodes()));
    sets
}

fn domains(fabric: &Fabric) -> Vec<(String, BTreeSet<String>)> {
    let of = |domain| {
        let nodes = fabric.domain_nodes(domain).iter();
        let nodes = nodes.map(|&node| fabric.node_name(node).to_owned()).collect();
        (fabric.domain_name(domain).to_owned(), nodes)
    };
    (0..fabric.domains()).map(of).collect()
}

fn racks() -> Fabric {
    let mut racks: Description = preset("nvl72(units=2)").expect("known").expect("sound");
    racks.block_sizes = vec![16, 32];
    Fabric::build(&racks).expect("a fabric")
}

/// A machine with domains across leaves, nodes in no domain, branches of different length, and a kind of node with
/// GPUs.
fn odd() -> Fabric {
    let text = "name = \"odd\"\nblock-sizes = [2]\n[[node-kind]]\nnodes = \"n[1-3]\"\nresources = { gpu = 8, \"gpu:h100\" = 8 }\n\
        [[site]]\nname = \"s\"\n[[site.switch]]\nname = \"a\"\nnodes = \"n[1-3]\"\n[[site.switch]]\nname = \"b\"\nnodes = \"n[4-6]\"\n\
        [[site.switch]]\nname = \"pod\"\nswitches = \"b\"\n[[site.switch]]\nname = \"top\"\nswitches = \"a,pod\"\n\
        [[domain]]\nname = \"x\"\nnodes = \"n[1,4]\"\n[[domain]]\nname = \"y\"\nnodes = \"n[2-3,5]\"\n";
    Fabric::build(&readers::machine_toml(text).expect("TOML")).expect("a fabric")
}

/// Domains, their order and their names stay, and block sizes where the format has them.
#[test]
fn domains_stay() {
    for fabric in [racks(), odd()] {
        for (writer, format, topology, has_sizes) in [
            ("toml", Format::Toml, None, true),
            ("slurm-block", Format::SlurmTopology, None, true),
            ("slurm-yaml", Format::SlurmYaml, Some("blocks"), true),
            ("kubernetes", Format::Kubernetes, None, false),
            ("topograph", Format::Topograph, None, false),
        ] {
            let back = again(&written(&fabric, writer), format, topology);
            assert_eq!(domains(&back), domains(&fabric), "{writer}");
            let sizes = if has_sizes { fabric.block_sizes() } else { &[] };
            assert_eq!(back.block_sizes(), sizes, "{writer}");
        }
    }
}

/// The default topology of a topology.yaml is the tree.
#[test]
fn trees_stay() {
    for fabric in [racks(), odd()] {
        for (writer, format) in [
            ("slurm", Format::SlurmTopology),
            ("slurm-yaml", Format::SlurmYaml),
            ("kubernetes", Format::Kubernetes),
            ("topograph", Format::Topograph),
        ] {
            assert_eq!(groups(&again(&written(&fabric, writer), format, None)), groups(&fabric));
        }
    }
}

/// Kubernetes keeps what is inside nodes: cores, memory, GPUs and their type.
#[test]
fn gpus_stay() {
    for fabric in [racks(), odd()] {
        let back = again(&written(&fabric, "kubernetes"), Format::Kubernetes, None);
        for node in 0..fabric.nodes() {
            let other = back.node_named(fabric.node_name(node)).expect("the node");
            let (one, two) = (fabric.kind(node), back.kind(other));
            assert_eq!((one.cores(), one.memory), (two.cores(), two.memory));
            assert_eq!(one.resources, two.resources);
        }
    }
}

/// A Topology of Kueue names the domains as a level if they nest. It is read with the nodes that are written with it.
#[test]
fn a_topology_of_kueue_stays() {
    let fabric = racks();
    let kueue = written(&fabric, "kueue");
    let levels: Vec<&str> =
        kueue.lines().filter_map(|l| l.trim().strip_prefix("- nodeLabel: ")).collect();
    assert_eq!(
        levels,
        [
            "fabric.topograph.run/tier-2",
            "fabric.topograph.run/tier-1",
            "fabric.topograph.run/tier-0",
            "accelerator.topograph.run/domain",
            "kubernetes.io/hostname"
        ]
    );
    let text = format!("{}---\n{kueue}", written(&fabric, "kubernetes"));
    let back = again(&text, Format::Kubernetes, None);
    assert_eq!(groups(&back), groups(&fabric), "a rack is a leaf");
    assert!(!written(&odd(), "kueue").contains("accelerator"), "domains of odd do not nest");
}

/// A writer reports what it drops, and reports nothing if it drops nothing.
#[test]
fn what_is_lost_is_said() {
    let fabric = racks();
    let lost = |writer: &str| Writer::named(writer).expect(writer).lost(&fabric).join("; ");
    assert_eq!(lost("toml"), "");
    assert!(lost("slurm").contains("domains: 16 are dropped") && lost("slurm").contains("cables"));
    assert!(lost("slurm-block").contains("which switches there are"));
    assert!(
        lost("kubernetes").contains("how many cables") && !lost("kubernetes").contains("inside")
    );
    let outside = Writer::named("slurm-block").expect("a writer").lost(&odd()).join("; ");
    assert!(outside.contains("the nodes of domains only: 1 are dropped"), "{outside}");
    let plain = again("SwitchName=a Nodes=n[1-2]", Format::SlurmTopology, None);
    for writer in WRITERS.iter().filter(|writer| writer.name != "slurm-block") {
        assert!(writer.lost(&plain).is_empty(), "{}: {:?}", writer.name, writer.lost(&plain));
    }
}

proptest! {
    /// The groups of any machine stay. Several sites get a root above them.
    #[test]
    fn any_tree_stays(machine in machine()) {
        let fabric = Fabric::build(&machine).unwrap();
        for (writer, format) in [("slurm-yaml", Format::SlurmYaml), ("kubernetes", Format::Kubernetes),
                ("topograph", Format::Topograph)] {
            let back = again(&written(&fabric, writer), format, None);
            prop_assert_eq!(groups(&back), groups(&fabric), "{}", writer);
        }
    }
}

/// A machine of three leaves whose nodes, switches and domains have these names.
fn named(names: &[String]) -> Fabric {
    let mut taken = BTreeSet::new();
    let mut unique = names.iter().enumerate().map(|(number, name)| {
        let free = taken.insert(name.clone());
        if free { name.clone() } else { format!("{name}{number}") }
    });
    let mut next = || unique.next().unwrap_or_default();
    let mut machine = pgft("any", &[2, 3], &[1, 1], &[1, 1]);
    let Children::Groups(leaves) = &mut machine.sites[0].root.children else { unreachable!() };
    for leaf in leaves {
        leaf.name = next();
        let Children::Nodes(nodes) = &mut leaf.children else { unreachable!() };
        for node in &mut *nodes {
            node.name = next();
        }
        let nodes = nodes.iter().map(|node| node.name.clone()).collect();
        machine.domains.push(DomainDescription { name: next(), nodes, bandwidth: 1e9 });
    }
    Fabric::build(&machine).expect("a fabric")
}

/// Names of letters that formats treat specially, ordinary names, long names, and numbers of many digits.
fn any_name() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{1,4}[0-9]{1,25}",
        "[0-9]{1,24}",
        "[-A-Za-z0-9_. ,=#\"'{}()%\\[\\]\\\\é/:*&!|>@`~^$+;?-]{0,12}",
        "[a-zé]{50,300}",
        "[a-z][0-9]{60,70}",
        Just("all".to_owned()),
        Just("ALL".to_owned()),
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("n1 HCA-1".to_owned()),
    ]
}

proptest! {
    /// Whatever the names of a machine, our reader accepts what a writer makes of it, and finds the same leaves with as
    /// many nodes. Renamed items are reported, and a machine that was read keeps its names when it is written again.
    #[test]
    fn any_names_are_written_so_that_they_are_read(names in prop::collection::vec(any_name(), 12)) {
        let fabric = named(&names);
        for (writer, format, topology) in [
            ("toml", Format::Toml, None),
            ("slurm", Format::SlurmTopology, None),
            ("slurm-block", Format::SlurmTopology, None),
            ("slurm-yaml", Format::SlurmYaml, Some("tree")),
            ("slurm-yaml", Format::SlurmYaml, Some("blocks")),
            ("ibnetdiscover", Format::Ibnetdiscover, None),
            ("kubernetes", Format::Kubernetes, None),
            ("topograph", Format::Topograph, None),
        ] {
            let text = written(&fabric, writer);
            let back = again(&text, format, topology);
            let sizes = |fabric: &Fabric| -> Vec<usize> {
                (0..fabric.groups(1)).map(|leaf| fabric.node_range(1, leaf).len()).collect()
            };
            prop_assert_eq!(sizes(&back), sizes(&fabric), "{}\n{}", writer, &text);
            let renames = |fabric: &Fabric| {
                let lost = Writer::named(writer).expect("a writer").lost(fabric);
                lost.into_iter().filter(|note| note.contains("is written as")).count()
            };
            prop_assert_eq!(renames(&back), 0, "{}\n{}", writer, &text);
            let all: BTreeSet<&str> = (0..fabric.nodes()).map(|n| fabric.node_name(n)).collect();
            let read: BTreeSet<&str> = (0..back.nodes()).map(|n| back.node_name(n)).collect();
            if renames(&fabric) == 0 {
                prop_assert_eq!(read, all, "{}", writer);
            }
        }
    }
}
