//! Formats of racks: Slurm's blocks and topology.yaml, labels of Kubernetes, topograph, Lingjun. What they give, and
//! what is refused with its line.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::path::PathBuf;

use topolane_fabric::read::{Format, MachineOptions, Read, read};
use topolane_fabric::{Fabric, InputError};

fn get(
    format: Format,
    text: &str,
    topology: Option<&str>,
) -> Result<(Fabric, Vec<String>), InputError> {
    let options =
        MachineOptions { topology: topology.map(str::to_owned), ..MachineOptions::default() };
    let Read { description, notes, .. } = read(text, format, &options)?;
    Ok((Fabric::build(&description)?, notes))
}

fn nodes_of(fabric: &Fabric, domain: u32) -> Vec<&str> {
    fabric.domain_nodes(domain).iter().map(|&node| fabric.node_name(node)).collect()
}

const BLOCKS: &str =
    "# racks\nBlockSizes=2,4\nBlockName=b2 Nodes=n[3-4]\nBlockName=b1 Nodes=n[1-2],n5\n";

/// A block is a domain and a leaf. The order of the file stays, because Slurm joins blocks in this order.
#[test]
fn blocks_are_domains() {
    let (fabric, notes) = get(Format::SlurmTopology, BLOCKS, None).unwrap();
    assert_eq!((fabric.domains(), fabric.block_sizes(), fabric.depth()), (2, &[2, 4][..], 2));
    assert_eq!([fabric.domain_name(0), fabric.domain_name(1)], ["b2", "b1"]);
    assert_eq!(nodes_of(&fabric, 1), ["n1", "n2", "n5"]);
    assert!(notes.is_empty(), "{notes:?}");
    let (fabric, _) = get(Format::SlurmTopology, "BlockName=b Nodes=n[1-2]", None).unwrap();
    assert!(fabric.block_sizes().is_empty(), "none were chosen");
    let short = "BlockSizes=4\nBlockName=a Nodes=n[1-4]\nBlockName=b Nodes=n[5-7]";
    let (_, notes) = get(Format::SlurmTopology, short, None).unwrap();
    assert!(notes[0].contains("block \"b\" has 3 nodes, fewer than the base block of 4 of line 1"));
}

/// Bad blocks give one sentence with the line and the value.
#[test]
fn bad_blocks_are_refused() {
    for (text, line, words) in [
        ("BlockName=a Nodes=n1\nBlockName=a Nodes=n2", 2, "\"a\" stands on line 1 already"),
        ("BlockName=a", 1, "block \"a\" has no nodes, and no other has"),
        ("BlockName=a Nodes=n[1-", 1, "bracket"),
        ("BlockName=a Nodes=n1\nBlockSizes=2,3", 2, "3 is not the base block of 2 nodes"),
        ("BlockName=a Nodes=n1\nBlockSizes=4,2", 2, "2 is smaller than the base block of 4"),
        ("BlockName=a Nodes=n1\nBlockSizes=x", 2, "block size \"x\" is not a number"),
        ("BlockName=a Switches=b", 1, "unknown key Switches"),
        ("BlockSizes=2", 0, "there is no block"),
        ("SwitchName=s Nodes=n1\nBlockName=a Nodes=n1", 2, "blocks and switches in one file"),
    ] {
        let error = get(Format::SlurmTopology, text, None).map(|_| ()).expect_err(text);
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(words), "{error} should say {words}");
    }
}

const YAML: &str = "---
- topology: racks
  cluster_default: false
  block:
    block_sizes:
      - 2
      - 4
    blocks:
      - block: b1
        nodes: n[1-2]
      - block: b2
        nodes: n[3-4]
- topology: wires
  cluster_default: true
  tree:
    switches:
      - switch: top
        children: s[1-2]
      - switch: s1
        nodes: n[1-2]
      - switch: s2
        nodes: n[3-5]
- topology: none
  flat: true
";

/// All topologies are read as one machine, unless one is named: blocks become domains of the tree's nodes. A note says
/// which. A flat topology has the nodes of the others.
#[test]
fn several_topologies_are_one_machine() {
    let (fabric, notes) = get(Format::SlurmYaml, YAML, None).unwrap();
    assert_eq!((fabric.nodes(), fabric.groups(1), fabric.domains()), (5, 2, 2));
    assert_eq!(fabric.block_sizes(), [2, 4]);
    assert!(notes[0].contains("topologies wires and racks are read as one machine"), "{notes:?}");
    assert!(notes[1].contains("topology \"none\" is not read: it is flat"), "{notes:?}");
    let others = YAML.replace("n[1-2]\n      - block: b2\n        nodes: n[3-4]", "m[1-2]");
    let (fabric, notes) = get(Format::SlurmYaml, &others, None).unwrap();
    assert_eq!((fabric.nodes(), fabric.sites(), fabric.domains()), (7, 2, 1), "{notes:?}");
    let both = YAML.replace("n[1-2]\n      - block: b2", "n[2-3],m1\n      - block: b2");
    let (fabric, notes) = get(Format::SlurmYaml, &both, None).unwrap();
    assert_eq!((fabric.nodes(), fabric.domains()), (5, 0));
    assert!(
        notes[1]
            .contains("topology \"racks\" is not read: node \"n2\" is in topology \"wires\" too"),
        "{notes:?}"
    );
    let (fabric, notes) = get(Format::SlurmYaml, YAML, Some("racks")).unwrap();
    assert_eq!((fabric.nodes(), fabric.domains(), fabric.block_sizes()), (4, 2, &[2, 4][..]));
    assert!(notes.is_empty());
    let (fabric, notes) = get(Format::SlurmYaml, YAML, Some("none")).unwrap();
    assert_eq!((fabric.nodes(), fabric.depth()), (5, 1));
    assert!(notes[0].contains("flat and names no nodes: the 5 nodes"), "{notes:?}");
}

#[test]
fn bad_topology_yaml_is_refused() {
    let one = |inner: &str| format!("- topology: t\n{inner}");
    for (text, line, words) in [
        (
            YAML.replace("topology: wires", "topology: racks"),
            13,
            "\"racks\" stands on line 2 already",
        ),
        (one("  flat: true\n  tree: {switches: []}"), 3, "it has tree and flat"),
        (one("  cluster_default: true"), 1, "needs one of tree, block and flat"),
        (one("  cluster_default: maybe\n  flat: true"), 2, "\"maybe\", not true or false"),
        (one("  ring: {rings: []}"), 1, "is a ring; only tree, block and flat"),
        (one("  tree: {switches: []}"), 1, "has no switches"),
        (one("  tree: {switches: [{switch: a}]}"), 2, "switch a has no nodes, and no other has"),
        (
            one("  tree: {switches: [{switch: a, children: b}]}"),
            2,
            "names b, which is not described",
        ),
        (one("  block: {blocks: [{block: a}]}"), 2, "block \"a\" has no nodes"),
        (one("  block: {blocks: [{nodes: a}]}"), 2, "a block has no name"),
        (
            one("  block:\n    block_sizes: [2, 3]\n    blocks: [{block: a, nodes: n1}]"),
            3,
            "size 3",
        ),
        (
            "- {topology: t, cluster_default: true, flat: true}\n- {topology: u, cluster_default: true, flat: true}"
                .to_owned(),
            2,
            "topology \"u\" is a second default: \"t\" of line 1",
        ),
        (one("  torus: 1"), 2, "unknown key \"torus\""),
        (one("  flat: true"), 1, "no other topology of the file names nodes"),
        ("- block: x".to_owned(), 1, "has no key topology"),
        ("a: [b".to_owned(), 0, "neither YAML nor JSON"),
        ("- &a topology: t\n- *a".to_owned(), 2, "aliases are not read"),
        ("topology: t".to_owned(), 1, "topology.yaml is a map, not a list"),
        (one("  flat: true\n  flat: true"), 3, "\"flat\" stands on line 2 already"),
    ] {
        let error = get(Format::SlurmYaml, &text, None).map(|_| ()).expect_err(&text);
        assert!(line == 0 || error.line == line, "{error}: line {line}");
        assert!(error.to_string().contains(words), "{error} should say {words}");
    }
    let error = get(Format::SlurmYaml, YAML, Some("wire")).map(|_| ()).unwrap_err();
    assert!(error.message.contains("no topology \"wire\"; there are racks, wires, none"));
    let error = get(Format::SlurmTopology, BLOCKS, Some("x")).map(|_| ()).unwrap_err();
    assert!(error.message.contains("cannot be chosen"), "{error}");
}

fn node(name: &str, labels: &str) -> String {
    format!("- kind: Node\n  metadata: {{name: {name}, labels: {{{labels}}}}}\n")
}

fn list(nodes: &[String]) -> String {
    format!("kind: List\nitems:\n{}", nodes.concat())
}

const T0: &str = "fabric.topograph.run/tier-0";
const T1: &str = "fabric.topograph.run/tier-1";
const DOMAIN: &str = "accelerator.topograph.run/domain";
const OLD: &str = "network.topology.nvidia.com";

/// Tiers give the tree and the accelerator label the domain. A node without labels is skipped, with a note.
#[test]
fn labels_are_tree_and_domains() {
    let text = list(&[
        node("a1", &format!("{T0}: l1, {T1}: top, {DOMAIN}: r1")),
        node("a2", &format!("{T0}: l2, {T1}: top, {DOMAIN}: r1")),
        node("b1", &format!("{OLD}/block: l2, {OLD}/spine: top, {OLD}/accelerator: r2")),
        node("b2", &format!("{T0}: l2, {T1}: top, nvidia.com/gpu.clique: uuid.1")),
        node("login", "role: x"),
        node("b3", &format!("{T0}: l2, {T1}: top")),
    ]);
    let (fabric, notes) = get(Format::Kubernetes, &text, None).unwrap();
    assert_eq!((fabric.nodes(), fabric.groups(1), fabric.depth(), fabric.sites()), (5, 2, 2, 1));
    assert_eq!(fabric.domains(), 3);
    assert_eq!(nodes_of(&fabric, 0), ["a1", "a2"], "a domain need not nest in a leaf");
    assert_eq!(fabric.domain_name(2), "uuid.1");
    assert!(notes[0].contains("node \"login\" has no label of a switch: skipped"), "{notes:?}");
    assert!(notes[1].contains("node \"b3\" has no domain"), "{notes:?}");
}

/// A node has the resources that it can allocate, in JSON as kubectl prints it.
#[test]
fn nodes_have_what_they_can_allocate() {
    let text = r#"{"kind": "NodeList", "items": [{"metadata": {"name": "n1", "labels": {
        "accelerator.topograph.run/domain": "d", "nvidia.com/gpu.product": "NVIDIA-GB200"},
        "annotations": {"x": "\u0007"}},
        "status": {"allocatable": {"cpu": "143500m", "memory": "1Gi", "nvidia.com/gpu": "4"}}}]}"#;
    let (fabric, _) = get(Format::Kubernetes, text, None).unwrap();
    assert_eq!((fabric.kind(0).cores(), fabric.kind(0).memory), (143, 1 << 30));
    let has = |name: &str| fabric.counts(0)[fabric.resources().index(name).unwrap()];
    assert_eq!((has("gpu"), has("gpu:nvidia-gb200")), (4, 4));
    assert_eq!(fabric.domains(), 1);
}

/// A node has the amounts that it can allocate, however small or large. They are never replaced by those of another
/// machine.
#[test]
fn amounts_of_nodes_are_what_they_are() {
    let of = |cpu: &str, memory: &str| {
        let text = format!(
            "kind: Node\nmetadata: {{name: a, labels: {{{DOMAIN}: d}}}}\n\
             status: {{allocatable: {{cpu: \"{cpu}\",\n memory: \"{memory}\"}}}}"
        );
        get(Format::Kubernetes, &text, None)
            .map(|(fabric, notes)| (fabric.kind(0).cores(), fabric.kind(0).memory, notes))
    };
    let large = i64::MAX as u64;
    for (cpu, memory, cores, bytes) in [
        ("940m", "2768Mi", 0, 2768 << 20),
        ("1", "0", 1, 0),
        ("1900m", "1", 1, 1),
        ("0", "1k", 0, 1000),
        ("1n", "900m", 0, 0),
        ("2e0", "1E3", 2, 1000),
        ("1.5e1", ".5Ki", 15, 512),
        ("64", "1Ei", 64, 1 << 60),
        ("1e400", "1e400", u32::MAX, large),
        ("9E", "9999E", u32::MAX, large),
    ] {
        let (found, memory, notes) = of(cpu, memory).unwrap();
        assert_eq!((found, memory.min(large)), (cores, bytes), "{cpu} {memory}");
        let said = "without a whole core to give";
        assert_eq!(notes.iter().any(|note| note.contains(said)), cores == 0, "{notes:?}");
    }
    for (cpu, memory, line) in [
        ("x", "1", 3),
        ("-1", "1", 3),
        ("NaN", "1", 3),
        ("1", "inf", 4),
        ("1", "1ki", 4),
        ("1e", "1", 3),
    ] {
        let error = of(cpu, memory).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains("not a quantity"), "{error}");
    }
}

/// Nodes that take no pods or not all pods are nodes, and a note names them: cordoned, not Ready, tainted.
#[test]
fn nodes_out_of_service_are_named() {
    let node = |name: &str, spec: &str, ready: &str| {
        format!(
            "- kind: Node\n  metadata: {{name: {name}, labels: {{{DOMAIN}: d}}}}\n  spec: {{{spec}}}\n  \
             status: {{conditions: [{{type: Ready, status: \"{ready}\"}}]}}\n"
        )
    };
    let own = "taints: [{key: node.kubernetes.io/unschedulable, effect: NoSchedule}]";
    let text = list(&[
        node("a", &format!("unschedulable: true, {own}"), "True"),
        node("b", "", "Unknown"),
        node("c", "taints: [{key: only/some, effect: NoExecute}]", "True"),
        node("d", "taints: [{key: only/some, effect: PreferNoSchedule}]", "True"),
        node("e", "unschedulable: false, taints: null", "True"),
        node("f", "", "False"),
    ]);
    let (fabric, notes) = get(Format::Kubernetes, &text, None).unwrap();
    assert_eq!(fabric.nodes(), 6);
    assert_eq!(
        notes,
        [
            "node \"a\" is cordoned, and counted",
            "2 nodes, such as \"b\", are not Ready, and counted",
            "node \"c\" is tainted so that only pods that tolerate it come, and counted",
        ]
    );
}

/// A node that names one switch at two levels contradicts itself. The message does not compare the line with itself.
#[test]
fn one_switch_at_two_levels_of_a_node() {
    let text = list(&[
        node("n1", &format!("{T0}: s1, {T1}: s1")),
        node("n2", &format!("{T0}: s2, {T1}: s1")),
    ]);
    let error = get(Format::Kubernetes, &text, None).unwrap_err().to_string();
    assert!(error.contains("node \"n1\" has switch \"s1\" above itself"), "{error}");
}

fn topology(name: &str, levels: &[&str]) -> String {
    let levels: Vec<String> =
        levels.iter().map(|level| format!("{{nodeLabel: {level}}}")).collect();
    let levels = levels.join(", ");
    format!("- kind: Topology\n  metadata: {{name: {name}}}\n  spec: {{levels: [{levels}]}}\n")
}

/// A Topology of Kueue names the labels of its levels. Racks of the same name in two blocks are two racks. A node that
/// lacks a label is skipped.
#[test]
fn a_topology_of_kueue_is_the_tree() {
    let mut objects = vec![
        node("n1", "block: b1, rack: r1"),
        node("n2", "block: b2, rack: r1"),
        node("n3", "block: b2"),
        topology("gpu", &["block", "rack", "kubernetes.io/hostname"]),
    ];
    let (fabric, notes) = get(Format::Kubernetes, &list(&objects), None).unwrap();
    assert_eq!((fabric.nodes(), fabric.groups(1), fabric.groups(2), fabric.depth()), (2, 2, 2, 3));
    assert!(notes[0].contains("Topology \"gpu\": block, rack"), "{notes:?}");
    assert!(notes[1].contains("\"n3\" has not all labels of the levels"), "{notes:?}");
    objects.push(topology("flat", &["kubernetes.io/hostname"]));
    let error = get(Format::Kubernetes, &list(&objects), None).map(|_| ()).unwrap_err();
    assert!(error.message.contains("several topologies (gpu, flat)"), "{error}");
    let (fabric, _) = get(Format::Kubernetes, &list(&objects), Some("flat")).unwrap();
    assert_eq!((fabric.nodes(), fabric.depth()), (3, 1));
}

#[test]
fn bad_labels_are_refused() {
    let pair = |a: &str, b: &str| list(&[node("a", a), node("b", b)]);
    let sub = "accelerator.topograph.run/sub-domain";
    for (text, line, words) in [
        (
            pair(&format!("{T0}: l, {T1}: s1"), &format!("{T0}: l, {T1}: s2")),
            5,
            "node \"b\" says that switch \"l\" hangs on \"s2\", node \"a\" of line 3 says that it hangs on \"s1\"",
        ),
        (pair(&format!("{T0}: l, {T1}: s1"), &format!("{T0}: l")), 5, "\"l\" hangs on no other"),
        (
            pair(&format!("{sub}: r, {DOMAIN}: d1"), &format!("{sub}: r, {DOMAIN}: d2")),
            5,
            "sub-domain \"r\" is in domain \"d2\", node \"a\" of line 3 says in \"d1\"",
        ),
        (
            pair(
                &format!("nvidia.com/gpu.clique: u.1, {DOMAIN}: d1"),
                &format!("nvidia.com/gpu.clique: u.1, {DOMAIN}: d2"),
            ),
            5,
            "clique \"u.1\" is in domain \"d2\"",
        ),
        (
            pair(&format!("{DOMAIN}: d1, {OLD}/accelerator: d2"), ""),
            3,
            "labels of node \"a\" contradict each other: accelerator.topograph.run/domain is \"d1\"",
        ),
        (
            pair(&format!("{T0}: x, {OLD}/leaf: y"), ""),
            3,
            "network.topology.nvidia.com/leaf is \"y\"",
        ),
        (pair(&format!("{OLD}/leaf: x, {OLD}/block: y"), ""), 3, "contradict each other"),
        (
            list(&[node("a", T0), node("a", T0)]).replace(T0, &format!("{T0}: l")),
            5,
            "\"a\" stands on line 3",
        ),
        (list(&[node("a", "fabric.topograph.run/tier-x: l")]), 4, "no tier \"x\""),
        (list(&[node("a", "role: x")]), 0, "no node has a label"),
        (list(&[topology("t", &["x"])]), 3, "there is no node"),
        (list(&[node("a", "x: y"), topology("t", &["x", "x"])]), 7, "level \"x\" twice"),
        (list(&[node("a", "x: y"), topology("t", &["z"])]), 0, "no node has the label \"z\""),
        ("kind: List\nitems: 5".to_owned(), 2, "items is a text, not a list"),
    ] {
        let error = get(Format::Kubernetes, &text, None).map(|_| ()).expect_err(&text);
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(words), "{error} should say {words}");
    }
}

/// Nodes have whole GPUs, no more than can be counted. GPUs of both makers are added.
#[test]
fn parts_of_gpus_are_no_gpus_of_a_node() {
    let of = |nvidia: &str, amd: &str| {
        let text = format!(
            "kind: Node\nmetadata: {{name: a, labels: {{{DOMAIN}: d}}}}\n\
             status: {{allocatable: {{nvidia.com/gpu: \"{nvidia}\",\n amd.com/gpu: \"{amd}\"}}}}"
        );
        get(Format::Kubernetes, &text, None)
            .map(|(fabric, _)| fabric.counts(0)[fabric.resources().index("gpu").unwrap()])
    };
    assert_eq!(of("4", "0").unwrap(), 4);
    assert_eq!(of("4294967290", "5").unwrap(), 4_294_967_295);
    for (nvidia, amd, line, value) in [
        ("0.5", "0", 3, "\"0.5\""),
        ("500m", "0", 3, "\"500m\""),
        ("4294967296", "0", 3, "\"4294967296\""),
        ("4294967290", "6", 4, "\"6\""),
    ] {
        let error = of(nvidia, amd).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        let says = format!("gpu of a node is {value}, not a number of GPUs");
        assert!(error.to_string().contains(&says), "{error}");
    }
}

/// The JSON of topograph's graph engine: layers from the node up.
#[test]
fn a_graph_of_topograph_is_read() {
    let text = r#"{"instances": [
        {"id": "I21", "network_layers": ["leaf-a", "top"], "labels": {"accelerator.topograph.run/domain": "nvl-1"}},
        {"id": "I22", "network_layers": ["leaf-b", "top"], "labels": {"accelerator.topograph.run/domain": "nvl-1"}}]}"#;
    let (fabric, notes) = get(Format::Topograph, text, None).unwrap();
    assert_eq!((fabric.nodes(), fabric.groups(1), fabric.domains()), (2, 2, 1));
    assert_eq!((fabric.group_name(2, 0), notes.len()), ("top", 0));
    for (text, line, words) in [
        ("{\"instances\": [{}]}", 1, "has no id"),
        (
            "blocks: [{nodes: [], annotations: {accelerator.topology.test/domain: d}}]",
            1,
            "of domain \"d\" has no nodes",
        ),
        ("blocks:\n- {switch: s, nodes: [a]}", 2, "switch \"s\" is not described"),
        (
            "switches: {a: {switches: [b]}, b: {switches: [a]}}\nblocks:\n- {switch: a, nodes: [n]}",
            1,
            "cycle",
        ),
        (
            "switches: {a: {switches: [c]}, b: {switches: [c]}}\nblocks: []",
            1,
            "\"c\" hangs on \"b\" and on \"a\"",
        ),
        (
            "switches: {a: {switches: []}}\nblocks:\n- {switch: a, nodes: [n]}\n- {switch: a, nodes: [n]}",
            4,
            "\"n\" stands on line 3",
        ),
        ("x: 1", 1, "neither instances nor blocks"),
    ] {
        let error = get(Format::Topograph, text, None).map(|_| ()).expect_err(text);
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(words), "{error} should say {words}");
    }
}

#[test]
fn bad_tables_of_lingjun_are_refused() {
    for (text, line, words) in [
        ("a,b", 1, "the header is"),
        ("ip,DSW,PSW,ASW\nx,G6,P1", 2, "3 fields"),
        ("ip,DSW,PSW,ASW\nx,G6,P1,", 2, "\"\" is not a name"),
        ("ip,DSW,PSW,ASW\nx,G6,P1,S\nx,G6,P1,S", 3, "\"x\" stands on line 2 already"),
        ("ip,DSW,PSW,ASW\n", 0, "no host"),
    ] {
        let error = get(Format::Lingjun, text, None).map(|_| ()).expect_err(text);
        assert_eq!(error.line, line, "{error}");
        assert!(error.to_string().contains(words), "{error} should say {words}");
    }
    let text = "ip,DSW,PSW,ASW\nx,G6,P1,S\ny,G6,P2,S\n";
    let (fabric, _) = get(Format::Lingjun, text, None).unwrap();
    assert_eq!((fabric.groups(1), fabric.groups(2)), (2, 2), "S of P1 is not S of P2");
}

/// The models of topograph's tests, if they are there, have the nodes, leaves and domains that their comments name.
#[test]
fn models_of_topograph_are_read() {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/machines");
    if !directory.is_dir() {
        println!("skipped: {} is not there", directory.display());
        return;
    }
    for (name, nodes, leaves, domains) in [
        ("nvl72", 72, 4, 4),
        ("small-tree", 6, 2, 2),
        ("medium", 8, 4, 4),
        ("large", 96, 12, 12),
        ("dual-xclr-regular", 96, 12, 2),
        ("dual-xclr-irregular", 255, 29, 2),
    ] {
        let text = std::fs::read_to_string(directory.join(format!("{name}.yaml"))).unwrap();
        assert_eq!(Format::guess(&format!("{name}.yaml"), &text), Some(Format::Topograph));
        let (fabric, _) = get(Format::Topograph, &text, None).unwrap();
        let found = (fabric.nodes(), fabric.groups(1), fabric.domains());
        assert_eq!(found, (nodes, leaves, domains), "{name}");
    }
}

/// Nodes of openb hang on one switch and have kinds by cores, memory, GPUs and GPU type. A value that cannot be read is
/// refused with its line.
#[test]
fn nodes_of_openb_are_read() {
    const HEADER: &str = "sn,cpu_milli,memory_mib,gpu,model\n";
    let text = format!("{HEADER}a,32000,2,0,\nb,96000,4,8,G2\nc,96000,4,8,G2\n");
    let (fabric, _) = get(Format::Openb, &text, None).unwrap();
    let resources = fabric.resources();
    let of = |node, name| fabric.counts(node)[resources.index(name).unwrap()];
    assert_eq!(["cores", "memory", "gpu", "gpu:G2"].map(|name| of(0, name)), [32, 2 << 20, 0, 0]);
    assert_eq!(["cores", "memory", "gpu", "gpu:G2"].map(|name| of(2, name)), [96, 4 << 20, 8, 8]);
    let twice = get(Format::Openb, &format!("{HEADER}a,1000,1,0,\na,1000,1,0,\n"), None);
    assert_eq!(twice.unwrap_err().to_string(), "line 3: node \"a\" stands on line 2 already");
    for (row, why) in [
        ("a,x,1,0,", "cpu_milli \"x\" is not a number"),
        ("a,100,1,0,", "cpu_milli 100 is less than a core"),
        ("a,1000,1,-1,", "gpu \"-1\" is not a number"),
        ("a,1000,1,1,a b", "\"gpu:a b\" is no name of a resource"),
        ("a,1000,1,1", "4 fields, not the 5"),
        (",1000,1,1,", "\"\" is not a name"),
    ] {
        let error = get(Format::Openb, &format!("{HEADER}{row}\n"), None).unwrap_err().to_string();
        assert!(error.starts_with(&format!("line 2: {why}")), "{error}");
    }
}
