//! Two descriptions of one machine are joined: cables from the wiring, nodes from the tree.

#![allow(clippy::expect_used)]

use topolane_fabric::{Fabric, join, read};

const WIRING: &str = "\
name = \"wired\"
[[site]]
name = \"core\"
children = [3, 2, 2]
parents = [1, 2, 2]
cables = [1, 2, 1]
nodes = \"n[1-12]\"
";

fn wiring(text: &str) -> topolane_fabric::Description {
    read::machine_toml(text).expect("a machine")
}

fn tree(text: &str) -> topolane_fabric::Description {
    read::slurm_topology(text, topolane_fabric::NodeKind::default()).expect("a tree")
}

/// Nodes that the wiring does not know hang where their neighbours in the tree do. The cables and the other nodes stay.
#[test]
fn nodes_of_the_tree_join_their_neighbours() {
    let named = tree(
        "SwitchName=a Nodes=n[1-3],new1\nSwitchName=b Nodes=n[4-6]\nSwitchName=c Nodes=new2,n[7-8]\n\
         SwitchName=d Nodes=lost[1-2]\nSwitchName=top Switches=a,b,c,d\n",
    );
    let joined = join(&wiring(WIRING), &named).expect("they agree");
    assert_eq!(joined.added, ["new1", "new2"]);
    assert_eq!(joined.skipped, ["lost1", "lost2"]);
    let fabric = Fabric::build(&joined.description).expect("a fabric");
    assert_eq!(fabric.nodes(), 14);
    let leaf = |name: &str| fabric.group(1, fabric.node_named(name).expect("a node"));
    assert_eq!(leaf("new1"), leaf("n1"));
    assert_eq!(leaf("new2"), leaf("n7"));
    assert_eq!(leaf("n9"), leaf("n7"), "a node that only the wiring names stays");
    let alone = Fabric::build(&wiring(WIRING)).expect("a fabric");
    let uplinks = |fabric: &Fabric, name: &str| {
        let leaf = fabric.group(1, fabric.node_named(name).expect("a node"));
        fabric.uplinks(1, leaf).len()
    };
    assert_eq!(uplinks(&fabric, "n5"), uplinks(&alone, "n5"));
    assert_eq!(joined.sentences().len(), 2);
    assert!(joined.sentences()[0].contains("2 nodes, such as new1"));
}

/// A missing cable of a node stays that node's, wherever the node is moved.
#[test]
fn missing_cables_follow_their_nodes() {
    let mut wired = wiring(WIRING);
    wired.sites[0].missing.push(topolane_fabric::MissingCable {
        level: 0,
        group: 4,
        switch: 0,
        parent: 0,
        cable: 0,
    });
    let named = tree(
        "SwitchName=a Nodes=first,n[1-3]\nSwitchName=b Nodes=n[4-6]\nSwitchName=top Switches=a,b\n",
    );
    let joined = join(&wired, &named).expect("they agree");
    assert_eq!(joined.description.sites[0].missing[0].group, 5, "n5 is the sixth node now");
}

/// A tree that puts nodes elsewhere than the wiring does is refused, and the error names the switches and nodes.
#[test]
fn contradictions_are_refused() {
    let apart = tree(
        "SwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-12]\nSwitchName=top Switches=a,b\n",
    );
    let why = join(&wiring(WIRING), &apart).expect_err("n4 hangs elsewhere").to_string();
    assert!(why.contains("switch \"a\" has the nodes \"n1\" and \"n4\""), "{why}");
    let twice = tree("SwitchName=a Nodes=n1\nSwitchName=b Nodes=n2\nSwitchName=top Switches=a,b\n");
    let why = join(&wiring(WIRING), &twice).expect_err("one leaf, two switches").to_string();
    assert!(why.contains("\"a\" and \"b\" hang on one switch"), "{why}");
}

fn blocks(text: &str) -> topolane_fabric::Description {
    read::machine(text, read::Format::SlurmTopology).expect("blocks")
}

/// Domains are joined by the names of nodes, wherever the cables put these. A note names what only one machine knows.
#[test]
fn domains_join_cables() {
    let racks = blocks(
        "BlockSizes=2\nBlockName=r1 Nodes=n[1-4]\nBlockName=r2 Nodes=n5,x1\nBlockName=r3 Nodes=x2\n",
    );
    let joined = join(&wiring(WIRING), &racks).expect("they agree");
    let fabric = Fabric::build(&joined.description).expect("a fabric");
    assert_eq!((fabric.nodes(), fabric.domains(), fabric.block_sizes()), (12, 2, &[2][..]));
    assert_eq!(fabric.domain_nodes(0), [0, 1, 2, 3], "n4 hangs on another leaf than n1");
    assert_eq!(fabric.links(), Fabric::build(&wiring(WIRING)).expect("a fabric").links());
    assert_eq!(
        joined.sentences(),
        [
            "2 nodes, such as \"x1\", are not in the machine: skipped in domains",
            "domain \"r3\" is without a node of the machine: skipped",
            "7 nodes, such as \"n6\", are in no domain",
        ]
    );
}

/// Two machines without a node in common, and two with domains, are refused.
#[test]
fn domains_that_cannot_join_are_refused() {
    let why = join(&wiring(WIRING), &blocks("BlockName=r Nodes=x1")).expect_err("no node");
    assert_eq!(why.message, "no node is in both machines: one has \"n1\", the other \"x1\"");
    let racks = blocks("BlockName=r Nodes=n1");
    let why = join(&racks, &racks).expect_err("domains twice");
    assert_eq!(why.message, "both machines have domains, such as \"r\" and \"r\"");
}

/// GPUs come with the domains if the machine with the cables has no data about the inside of nodes.
#[test]
fn the_inside_of_nodes_joins_cables() {
    let labels = r#"{"kind": "Node", "metadata": {"name": "n2", "labels": {"accelerator.topograph.run/domain": "d"}},
        "status": {"allocatable": {"nvidia.com/gpu": "8"}}}"#;
    let labels = read::machine(labels, read::Format::Kubernetes).expect("a node");
    let joined = join(&wiring(WIRING), &labels).expect("they agree");
    let fabric = Fabric::build(&joined.description).expect("a fabric");
    let gpu = fabric.resources().index("gpu").expect("GPUs");
    assert_eq!((fabric.counts(0)[gpu], fabric.counts(1)[gpu]), (0, 8));
}
