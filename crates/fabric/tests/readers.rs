//! What each reader makes of its format, and which notes it makes about things that it cannot use.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::BTreeMap;
use std::fmt::Write;

use topolane_fabric::read::{Format, ibnetdiscover, machine, machine_toml, slurm_topology};
use topolane_fabric::{Description, Fabric, InputError, NodeKind, preset};

/// A subnet of four hosts, as `ibnetdiscover` recorded it after a sweep of `opensm`.
const RECORDED: &str = include_str!("data/two-leaves.ibnetdiscover");

fn slurm(text: &str) -> Result<Description, InputError> {
    slurm_topology(text, NodeKind::default())
}

fn refusals(read: fn(&str) -> Result<Description, InputError>, cases: &[(&str, usize, &str)]) {
    for (text, line, words) in cases {
        let error = match read(text) {
            Err(error) => error,
            Ok(description) => Fabric::build(&description).expect_err(text),
        };
        assert!(error.message.contains(words), "{error} should say {words:?}");
        assert_eq!(error.line, *line, "{error}\n{text}");
    }
}

const MACHINE: &str = r#"
name = "cab"
[node]
memory = 34359738368
[[node-kind]]
nodes = "cab[1-4]"
memory = 137438953472
[[site]]
name = "core"
children = [18, 18, 4]
parents = [1, 18, 2]
cables = [1, 1, 9]
bandwidth = 4e9
missing = [[1, 0, 0, 5, 0]]
[[site]]
name = "east"
  [[site.switch]]
  name = "leaf0"
  nodes = "e[1-16]"
  [[site.switch]]
  name = "leaf1"
  nodes = "f[1-2]"
  [[site.switch]]
  name = "top"
  switches = "leaf[0-1]"
[[wan]]
between = ["core", "east"]
latency = 0.005
bandwidth = 1.25e8
"#;

#[test]
fn toml_regular_and_explicit_sites() {
    let machine = machine_toml(MACHINE).unwrap();
    let fabric = Fabric::build(&machine).unwrap();
    assert_eq!((fabric.name(), fabric.nodes(), fabric.sites()), ("cab", 1296 + 18, 2));
    assert_eq!(fabric.kind(3).memory, 128 << 30, "the kind of cab[1-4]");
    assert_eq!(fabric.kind(4).memory, 32 << 30, "what [node] says");
    assert_eq!(fabric.kind(3).sockets, 2, "absent fields come from [node]");
    assert_eq!(fabric.node_name(1296), "e1");
    assert_eq!(fabric.group_name(3, 1), "east", "the site's name is its root's");
    assert_eq!(fabric.missing_cables().len(), 1);
    assert_eq!(fabric.site_hops(0, 1), Some(1));
    assert_eq!((fabric.site_depth(0), fabric.site_depth(1)), (3, 2));
    let mut cab = machine.sites[0].clone();
    cab.missing.clear();
    let preset = preset("cab").unwrap().unwrap();
    assert_eq!(cab.cabling, preset.sites[0].cabling);
}

#[test]
fn toml_refusals_name_the_line() {
    let site = "name = 'm'\n[[site]]\nname = 's'\n";
    let with = |rest: &str| format!("{site}{rest}");
    let leaf = "[[site.switch]]\nname = 'a'\nnodes = 'n1'\n";
    let cases = [
        ("name = 'm'\ncolour = 1\n".to_owned(), 2, "colour"),
        (with("children = [2]\ncabels = [1]\n"), 5, "cabels"),
        (with("children = [2, 2]\nparents = [1]\n"), 5, "parents has 1 numbers"),
        (with("children = [2, 2]\nparents = [1, 0]\n"), 5, "parents must be at least 1"),
        (with("children = [2, 2]\nbandwidth = [1.0]\n"), 5, "bandwidth has 1 numbers"),
        (with("children = [2, 2]\nbandwidth = 'fast'\n"), 5, "a number, or a list"),
        (with("children = [0, 2]\n"), 4, "make 0 nodes"),
        (with("children = [3]\nnodes = 'n[1-2],n1'\n"), 5, "nodes names \"n1\" twice"),
        (with("children = [4000000000, 4000000000]\n"), 4, "not 1 to 1000000"),
        (with("children = []\n"), 4, "1 to 16 levels"),
        (with("children = [3]\nnodes = 'n[1-2]'\n"), 5, "names 2 nodes"),
        (with("children = [3]\nnodes = 'n[1'\n"), 5, "does not close"),
        (with("missing = []\n"), 2, "needs either children"),
        (with(&format!("children = [2]\n{leaf}")), 2, "needs either children"),
        (with("[[site.switch]]\nname = 'a'\n"), 4, "needs nodes or switches"),
        (with(&format!("{leaf}[[site.switch]]\nname = 'b'\nnodes = 'n2'\n")), 7, "second root"),
        (with(&format!("{leaf}[[site.switch]]\nname = 'b'\nswitches = 'c'\n")), 7, "names c"),
        (with("children = [2]\n[[node-kind]]\nnodes = 'x1'\n"), 6, "no node x1"),
        (with("children = [2]\nmissing = [[1, 0, 0, 0, 0]]\n"), 5, "missing cable"),
        (
            with("children = [2]\n[[wan]]\nbetween = ['s', 't']\nlatency = 1\nbandwidth = 1\n"),
            5,
            "site \"t\"",
        ),
        ("name = 'm'\n[node]\npenalty = { model = 'token-ring' }\n".to_owned(), 3, "token-ring"),
        ("name = 'm'\n[node]\npenalty = { model = 'fair', beta = 1.0 }\n".to_owned(), 3, "beta"),
        (
            with("children = [2]\n[node]\ncopy-bandwidth = 0.0\n"),
            6,
            "copy-bandwidth of a node must be a number above 0, not 0",
        ),
        (
            with("children = [2]\n[node]\npenalty = { model = 'ethernet', beta = -1.0 }\n"),
            6,
            "penalty must be a number from 0, not -1",
        ),
        ("name = \n".to_owned(), 1, ""),
    ];
    for (text, line, words) in &cases {
        refusals(machine_toml, &[(text, *line, words)]);
    }
}

#[test]
fn slurm_reads_any_case_comments_and_continuations() {
    let text = "# a tree\nSWITCHNAME=s0 nodes=n[1-2] LinkSpeed=900\nSwitchName=s1 \\\n  Nodes=n[3-4] # two\n\n\
                SwitchName=top Switches=s[0-1]\nSwitchName=other Nodes=\"x1\"\n";
    let fabric = Fabric::build(&slurm(text).unwrap()).unwrap();
    assert_eq!((fabric.nodes(), fabric.sites(), fabric.depth()), (5, 2, 2));
    let n = |name: &str| fabric.node_named(name).unwrap();
    assert_eq!(fabric.hops(n("n1"), n("n2")), Some(0));
    assert_eq!(fabric.hops(n("n1"), n("n4")), Some(2));
    assert_eq!(fabric.hops(n("n1"), n("x1")), None, "no WAN joins the roots");
    assert_eq!(fabric.group_name(2, 0), "top");
}

#[test]
fn slurm_refusals_name_the_line() {
    let deep: String = (1..40)
        .map(|i| format!("SwitchName=s{i} Switches=s{}\n", i - 1))
        .chain(["SwitchName=s0 Nodes=n1\n".to_owned()])
        .collect();
    refusals(
        slurm,
        &[
            ("", 0, "no SwitchName"),
            ("SwitchName=a Nodes=n1 Speed=1", 1, "unknown key Speed"),
            ("SwitchName=a Nodes=n1\nSwitchName=a Nodes=n2", 2, "switch a stands on line 1"),
            ("SwitchName=a Switches=b", 1, "names b, which is not described"),
            (
                "SwitchName=a Switches=b\nSwitchName=b Switches=c\nSwitchName=c Switches=a",
                1,
                "cycle: a -> b -> c -> a",
            ),
            ("SwitchName=a Switches=a", 1, "cycle: a -> a"),
            ("SwitchName=a Nodes=n1 Switches=b", 1, "both Nodes and Switches"),
            ("SwitchName=a", 1, "switch a has no nodes, and no other has"),
            ("SwitchName=a Nodes=", 1, "Nodes has no value"),
            ("SwitchName=a Nodes=,", 1, "switch a has no nodes"),
            ("SwitchName=a Nodes= Switches=b", 1, "Nodes has no value before \"Switches=b\""),
            ("SwitchName=a Nodes=\"n1", 1, "Nodes has a quote inside its value"),
            ("SwitchName=\"\" Nodes=n1", 1, "SwitchName is empty"),
            ("SwitchName=a Nodes=n1 n2", 1, "\"n2\" is not of the form key=value"),
            ("Include more.conf", 1, "Include \"more.conf\": the file is not known here"),
            ("Include *.conf", 1, "only the name of one file is read"),
            ("\nSwitchName", 2, "not of the form key=value"),
            ("Nodes=n1 SwitchName=a", 1, "does not begin with SwitchName but with Nodes"),
            ("SwitchName=a SwitchName=b Nodes=n1", 1, "given twice"),
            ("SwitchName=a Nodes=n[1-", 1, "does not close"),
            (&deep, 23, "more than 16 levels deep"),
        ],
    );
}

#[test]
fn the_recorded_subnet_is_read() {
    let machine = ibnetdiscover(RECORDED).unwrap();
    let fabric = Fabric::build(&machine).unwrap();
    let names: Vec<&str> = (0..fabric.nodes()).map(|node| fabric.node_name(node)).collect();
    assert_eq!(names, ["n1", "n2", "n3", "n4"], "by leaf, then port, whatever the file's order");
    assert_eq!(fabric.depth(), 2);
    assert_eq!((fabric.group_name(1, 0), fabric.group_name(2, 0)), ("leaf0", "spine"));
    let up = fabric.cabling(0, 1);
    assert_eq!((up.parents, up.cables, up.bandwidth), (1, 2, 1e9), "two parallel cables of 4xSDR");
    assert!(fabric.missing_cables().is_empty());
}

#[test]
fn damaged_subnets_name_the_line() {
    let replaced = |from: &str, to: &str| RECORDED.replace(from, to);
    let line_of = |words: &str| RECORDED.lines().position(|l| l.contains(words)).unwrap() + 1;
    let host = RECORDED.find("caguid=0x100000").unwrap();
    let cases = [
        (RECORDED[..host].to_owned(), line_of("\"n1\" lid 1 "), "does not describe"),
        (
            replaced("[1](100001) \t\"S", "[1](100001) \tS"),
            RECORDED.lines().count(),
            "a port should read",
        ),
        (
            replaced("# \"n1\" lid 1 4xSDR", "# \"n1\" lid 1 4xWARP"),
            line_of("\"n1\" lid 1 "),
            "the speed \"4xWARP\" is unknown",
        ),
        (
            replaced("[3]\t\"S-0000000000200002\"[1]", "[3]\t\"S-0000000000200002\"[7]"),
            0,
            "does not lead back",
        ),
        ("[1] \"H-1\"[1] # 4xSDR".to_owned(), 1, "before the first switch"),
        ("Switch\t36".to_owned(), 1, "no quoted identifier"),
        ("SwitchName=a Nodes=n1".to_owned(), 0, "no host"),
        ("hello".to_owned(), 1, "not a line of ibnetdiscover"),
    ];
    for (text, line, words) in cases {
        let error = ibnetdiscover(&text).unwrap_err();
        assert!(error.message.contains(words), "{error} should say {words:?}");
        assert!(line == 0 || error.line == line, "{error}: line {line}");
    }
}

/// A subnet of these cables, one a line as `a[1] b[2]`. Devices whose name starts with n are hosts.
fn subnet(cables: &str) -> String {
    let mut devices = BTreeMap::<&str, Vec<String>>::new();
    for cable in cables.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let ends: Vec<(&str, &str)> = cable
            .split_whitespace()
            .filter_map(|end| end.strip_suffix(']')?.split_once('['))
            .collect();
        for (own, peer) in [(0, 1), (1, 0)] {
            let (peer, port) = ends[peer];
            let line = format!("[{}]\t\"{peer}\"[{port}]\t# \"{peer}\" lid 1 4xQDR\n", ends[own].1);
            devices.entry(ends[own].0).or_default().push(line);
        }
    }
    let mut text = String::new();
    for (name, ports) in devices {
        let role = if name.starts_with('n') { "Ca" } else { "Switch" };
        let description = name.split('/').next().unwrap();
        let _ =
            write!(text, "{role}\t36 \"{name}\"\t# \"{description} mlx5_0\"\n{}\n", ports.concat());
    }
    text
}

#[test]
fn what_is_no_fat_tree_is_refused_by_name() {
    for (cables, words) in [
        ("n1[1] n2[1]", "cabled to host"),
        ("n1[1] a[1]\nn2[1] b[1]\na[2] b[2]", "both are 1 links above"),
        // A leaf is cabled to a pod switch, and also to the switch above this pod switch.
        (
            "n1[1] a[1]\nn2[1] b[1]\na[2] p[1]\nb[2] p[2]\np[3] q[1]\na[3] q[2]",
            "both are 2 links above",
        ),
        ("n1[1] a[1]\nx[1] y[1]", "no cable leads from switch"),
        (
            "n1[1] a[1]\nn2[1] b[1]\nn3[1] c[1]\nn4[1] d[1]\na[2] s[1]\na[3] t[1]\na[4] u[1]\na[5] v[1]\n\
          b[2] s[2]\nc[2] s[3]\nd[2] s[4]",
            "more than half",
        ),
    ] {
        let error = ibnetdiscover(&subnet(cables)).unwrap_err();
        assert!(error.message.contains(words), "{error} should say {words:?}");
        assert!(error.line > 0, "{error}");
    }
}

#[test]
fn two_adapters_on_two_leaves_are_two_rails() {
    let cables = "n1/a[1] l0[1]\nn1/b[1] l1[1]\nn2/a[1] l0[2]\nn2/b[1] l1[2]\n\
                  n3/a[1] l2[1]\nn3/b[1] l3[1]\nl0[3] s0[1]\nl2[3] s0[2]\nl1[3] s1[1]\nl3[3] s1[2]";
    let machine = ibnetdiscover(&subnet(cables)).unwrap();
    let fabric = Fabric::build(&machine).unwrap();
    assert_eq!((fabric.nodes(), fabric.groups(1)), (3, 2));
    assert_eq!(fabric.cabling(0, 0).parents, 2);
    assert_eq!(fabric.cabling(0, 1).parents, 1, "each rail has its own spine");
    assert_eq!(fabric.kind(0).nics, 2);
    assert!(fabric.missing_cables().is_empty());
}

#[test]
fn formats_are_distinguished() {
    for (name, text, format) in [
        ("cab.toml", "", Some(Format::Toml)),
        ("topology.conf", "", Some(Format::SlurmTopology)),
        ("net.txt", RECORDED, Some(Format::Ibnetdiscover)),
        ("x", MACHINE, Some(Format::Toml)),
        ("x", "#\n switchname=a Nodes=b", Some(Format::SlurmTopology)),
        ("x", "- block:\n    blocks:\n  topology: racks", Some(Format::SlurmYaml)),
        ("x", "- {topology: a, tree: {switches: []}}", Some(Format::SlurmYaml)),
        ("x", r#"[{"topology": "a", "flat": true}]"#, Some(Format::SlurmYaml)),
        ("x", "é", None),
    ] {
        assert_eq!(Format::guess(name, text), format);
    }
    assert_eq!(machine(RECORDED, Format::Ibnetdiscover), ibnetdiscover(RECORDED));
    assert_eq!(machine(MACHINE, Format::Toml), machine_toml(MACHINE));
}
