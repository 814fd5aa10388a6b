//! Which adapters belong to one host: by the first word of their description, or by the ports that they hang on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fmt::Write;

use topolane_fabric::{Fabric, InputError, read};

const MODEL: &str = "MT4129 ConnectX7   Mellanox Technologies";

/// A subnet of leaves under two spines, each leaf cabled to both. Each adapter is `(leaf, port, description)`.
fn subnet(adapters: &[(&str, u32, &str)]) -> String {
    let mut leaves: BTreeMap<&str, Vec<(u32, String)>> = BTreeMap::new();
    let mut hosts = String::new();
    for (index, &(leaf, port, description)) in adapters.iter().enumerate() {
        let ports = leaves.entry(leaf).or_default();
        ports.push((port, format!("\"H-{index}\"[1] # \"{description}\" lid 1 4xNDR")));
        let _ = write!(
            hosts,
            "Ca 1 \"H-{index}\" # \"{description}\"\n[1] \"S-{leaf}\"[{port}] # lid 1 lmc 0 \"{leaf}\" lid 2 4xNDR\n"
        );
    }
    let mut text = String::new();
    for (leaf, ports) in &leaves {
        let _ = writeln!(text, "Switch 64 \"S-{leaf}\" # \"{leaf}\" base port 0 lid 2 lmc 0");
        for (port, cable) in ports {
            let _ = writeln!(text, "[{port}] {cable}");
        }
        for spine in 0..2 {
            let back = leaves.keys().position(|other| other == leaf).unwrap() + 1;
            let _ = writeln!(
                text,
                "[{}] \"S-spine{spine}\"[{back}] # \"spine{spine}\" lid 3 4xNDR",
                60 + spine
            );
        }
    }
    for spine in 0..2 {
        let _ = writeln!(
            text,
            "Switch 64 \"S-spine{spine}\" # \"spine{spine}\" base port 0 lid 3 lmc 0"
        );
        for (back, leaf) in leaves.keys().enumerate() {
            let _ = writeln!(
                text,
                "[{}] \"S-{leaf}\"[{}] # \"{leaf}\" lid 2 4xNDR",
                back + 1,
                60 + spine
            );
        }
    }
    text + &hosts
}

fn machine(adapters: &[(&str, u32, &str)]) -> Result<Fabric, InputError> {
    read::ibnetdiscover(&subnet(adapters)).and_then(|machine| Fabric::build(&machine))
}

fn names(fabric: &Fabric) -> Vec<&str> {
    (0..fabric.nodes()).map(|node| fabric.node_name(node)).collect()
}

/// The rails on which the node of that name has a cable.
fn rails_of(fabric: &Fabric, name: &str) -> Vec<u32> {
    let node = fabric.node_named(name).unwrap();
    let there = fabric.uplinks(0, node).filter(|&cable| fabric.has_cable(cable));
    there.map(|cable| fabric.cable_place(cable).unwrap().3).collect()
}

#[test]
fn a_host_without_one_adapter_keeps_its_others_on_their_rails() {
    // The leaf of rail 1 of the second group is off. HCA-6 is on rail 2 nevertheless.
    let fabric = machine(&[
        ("leaf-1-1", 1, "a HCA-1"),
        ("leaf-2-1", 1, "a HCA-5"),
        ("leaf-3-1", 1, "a HCA-6"),
        ("leaf-1-2", 1, "b HCA-1"),
        ("leaf-3-2", 1, "b HCA-6"),
    ])
    .unwrap();
    assert_eq!(names(&fabric), ["a", "b"]);
    assert_eq!((fabric.rails(0), fabric.rails_meet(0)), (3, true));
    assert_eq!(rails_of(&fabric, "a"), [0, 1, 2]);
    assert_eq!(rails_of(&fabric, "b"), [0, 2]);
    assert_eq!(
        fabric.group_name(1, 0),
        "leaf-1",
        "what the names of the switches of a group share"
    );
    assert!(fabric.route(0, 1).is_some());
}

#[test]
fn one_cable_on_another_rail_does_not_change_the_order_of_rails() {
    // The adapters of host c are swapped.
    let fabric = machine(&[
        ("x-1", 1, "a mlx5_0"),
        ("y-1", 1, "a mlx5_1"),
        ("x-1", 2, "b mlx5_0"),
        ("y-1", 2, "b mlx5_1"),
        ("x-1", 3, "c mlx5_1"),
        ("y-1", 3, "c mlx5_0"),
        ("x-2", 1, "d mlx5_0"),
        ("y-2", 1, "d mlx5_1"),
    ])
    .unwrap();
    assert_eq!(fabric.switch_names(1, 0), ["x-1", "y-1"]);
    assert!(fabric.missing_cables().is_empty());
}

#[test]
fn adapters_without_names_are_distinguished_by_their_ports() {
    // The adapters on port 2 belong to one host. Ports 3 and 4 are crossed on the second rail, so the order of ports
    // decides.
    let fabric = machine(&[
        ("leaf-1-1", 1, "a mlx5_0"),
        ("leaf-2-1", 1, "a mlx5_1"),
        ("leaf-1-1", 2, MODEL),
        ("leaf-2-1", 2, MODEL),
        ("leaf-1-1", 3, MODEL),
        ("leaf-2-1", 4, MODEL),
        ("leaf-1-2", 1, "b mlx5_0"),
        ("leaf-2-2", 1, "b mlx5_1"),
    ])
    .unwrap();
    assert_eq!(names(&fabric), ["a", "leaf-1-1-port2", "leaf-1-1-port3", "b"]);
    assert!(fabric.missing_cables().is_empty());
}

#[test]
fn a_host_without_a_name_may_lack_a_rail() {
    let fabric = machine(&[
        ("leaf-1-1", 1, "a mlx5_0"),
        ("leaf-2-1", 1, "a mlx5_1"),
        ("leaf-1-1", 2, MODEL),
        ("leaf-2-1", 2, MODEL),
        ("leaf-2-1", 3, MODEL),
        ("leaf-1-2", 1, "b mlx5_0"),
        ("leaf-2-2", 1, "b mlx5_1"),
    ])
    .unwrap();
    assert_eq!(names(&fabric), ["a", "leaf-1-1-port2", "leaf-2-1-port3", "b"]);
    assert_eq!(rails_of(&fabric, "leaf-2-1-port3"), [1]);
}

#[test]
fn adapters_that_cannot_be_distinguished_are_refused() {
    let text = subnet(&[
        ("leaf-1-1", 1, "a mlx5_0"),
        ("leaf-2-1", 1, "a mlx5_1"),
        ("leaf-1-1", 2, MODEL),
        ("leaf-1-1", 3, MODEL),
        ("leaf-2-1", 4, MODEL),
    ]);
    let error = read::ibnetdiscover(&text).unwrap_err();
    let says = "adapters without the name of a host: those on ports 2, 3 of switch leaf-1-1 and 4 of switch leaf-2-1 \
                cannot be distinguished";
    assert_eq!(error.message, says);
    let line = text.lines().position(|line| line.contains("Ca 1 \"H-4\"")).unwrap() + 1;
    assert_eq!(error.line, line);
}

#[test]
fn rails_that_nothing_distinguishes_are_refused() {
    // Hosts a and b have different labels, and the second group has one switch where the first has two.
    let error = machine(&[
        ("x", 1, "a left"),
        ("y", 1, "a right"),
        ("x", 2, "b right"),
        ("y", 2, "b left"),
        ("z", 1, "c only"),
    ])
    .unwrap_err();
    assert!(error.message.contains("which rail each is of"), "{error}");
    assert!(error.line > 0);
}

#[test]
fn an_aggregation_node_is_no_host() {
    let mut adapters = vec![("leaf", 1, "a mlx5_0"), ("leaf", 2, "b mlx5_0")];
    adapters.push(("leaf", 41, "Mellanox Technologies Aggregation Node"));
    let fabric = machine(&adapters).unwrap();
    assert_eq!(names(&fabric), ["a", "b"]);
}

#[test]
fn a_subnet_of_adapters_without_names_has_a_host_for_each() {
    let fabric =
        machine(&[("leaf-1", 1, MODEL), ("leaf-1", 2, MODEL), ("leaf-2", 1, MODEL)]).unwrap();
    assert_eq!(names(&fabric), ["leaf-1-port1", "leaf-1-port2", "leaf-2-port1"]);
}
