//! Cables as `NetBox` and LLDP record them give the same machine as `ibnetdiscover` does for the same cables.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;

use proptest::prelude::*;
use topolane_fabric::read::{Format, MachineOptions, Read, ibnetdiscover, read};
use topolane_fabric::write::Writer;
use topolane_fabric::{Children, Description, Fabric, preset};

const MACHINES: [&str; 4] =
    ["fat-tree(radix=4)", "fat-tree(radix=8,pods=3)", "nvl72(units=1)", "fat-tree(radix=6,pods=2)"];

/// A cable between two ports; each is a device and a port.
type Cable = [(String, String); 2];

/// The cables of a subnet and its hosts.
fn cables(subnet: &str) -> (Vec<Cable>, Vec<String>) {
    let words = |line: &str| -> Vec<String> {
        line.split('"').skip(1).step_by(2).map(str::to_owned).collect()
    };
    let mut names: HashMap<String, (String, String)> = HashMap::new();
    let mut hosts = Vec::new();
    for line in subnet.lines().filter(|line| line.starts_with("Switch") || line.starts_with("Ca")) {
        let [id, description] = &words(line)[..] else { panic!("{line}") };
        let (name, adapter) = description.split_once(' ').unwrap_or((description, ""));
        if line.starts_with("Ca") && !hosts.contains(&name.to_owned()) {
            hosts.push(name.to_owned());
        }
        names.insert(id.clone(), (name.to_owned(), adapter.to_owned()));
    }
    let number = |text: &str| text.split_once('[').unwrap().1.split_once(']').unwrap().0.to_owned();
    let mut found: Vec<Cable> = Vec::new();
    let mut own = String::new();
    for line in subnet.lines() {
        if line.starts_with("Switch") || line.starts_with("Ca") {
            own.clone_from(&words(line)[0]);
        } else if line.starts_with('[') {
            let far = &words(line)[0];
            let behind = line.split('"').nth(2).unwrap();
            let end = |id: &str, port: String| {
                let (name, adapter) = &names[id];
                (name.clone(), format!("{adapter}p{port}"))
            };
            if own < *far {
                found.push([end(&own, number(line)), end(far, number(behind))]);
            }
        }
    }
    (found, hosts)
}

fn exported(cables: &[Cable]) -> String {
    let mut text =
        "ID,Label,Device A,Termination A,Device B,Termination B,Status,Type\n".to_owned();
    for (number, [a, b]) in cables.iter().enumerate() {
        writeln!(
            text,
            "{number},\"no. {number}, red\",{},{},{},{},Connected,DAC",
            a.0, a.1, b.0, b.1
        )
        .unwrap();
    }
    text
}

fn answered(cables: &[Cable]) -> String {
    let end = |(device, port): &(String, String)| {
        format!(
            "[{{\"object_type\": \"dcim.interface\", \"object_id\": 1, \"object\": {{\"device\": {{\"name\": \"{device}\"}}, \
             \"name\": \"{port}\"}}}}]"
        )
    };
    let rows = cables.iter().map(|[a, b]| {
        format!(
            "{{\"a_terminations\": {}, \"b_terminations\": {}, \"status\": {{\"value\": \"connected\"}}, \"type\": null}}",
            end(a),
            end(b)
        )
    });
    let rows: Vec<String> = rows.collect();
    format!("{{\"count\": 1, \"next\": null, \"results\": [\n{}]}}", rows.join(",\n"))
}

/// What devices report of the cables. Each cable is reported by its first end, its other end, or both, as `by` says.
fn reported(cables: &[Cable], by: &[u8]) -> String {
    let mut devices: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (index, [a, b]) in cables.iter().enumerate() {
        let reporter = by[index % by.len()] % 3;
        for (near, far, reports) in [(a, b, reporter != 1), (b, a, reporter != 0)] {
            if reports {
                devices.entry(&near.0).or_default().push(format!(
                    "{{\"{}\": {{\"via\": \"LLDP\", \"chassis\": {{\"{}.cluster.example\": {{\"id\": {{\"type\": \"mac\"}}}}}}, \
                     \"port\": {{\"id\": {{\"type\": \"ifname\", \"value\": \"{}\"}}}}}}}}",
                    near.1, far.0, far.1
                ));
            }
        }
    }
    let rows = devices.iter().map(|(device, ports)| {
        format!("\"{device}\": {{\"lldp\": {{\"interface\": [{}]}}}}", ports.join(",\n"))
    });
    format!("{{{}}}", rows.collect::<Vec<_>>().join(",\n"))
}

fn options(hosts: &[String]) -> MachineOptions {
    MachineOptions { hosts: Some(hosts.join(",")), ..MachineOptions::default() }
}

fn guessed(text: &str, format: Format, hosts: &[String]) -> Read {
    assert_eq!(Format::guess("cables", text), Some(format), "{text}");
    read(text, format, &options(hosts)).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The part of a description that a list of cables gives: all but bandwidths.
fn cabling(mut description: Description) -> Description {
    let bandwidth = 1.0;
    description.kinds[0].nic_bandwidth = bandwidth;
    for site in &mut description.sites {
        site.cabling.iter_mut().for_each(|level| level.bandwidth = bandwidth);
    }
    description
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// This holds also if cables are missing and stand in another order.
    #[test]
    fn cables_make_the_machine_that_ibnetdiscover_makes(
        machine in prop::sample::select(&MACHINES[..]),
        cut in prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        by in prop::collection::vec(any::<u8>(), 1..50),
        turn in any::<prop::sample::Index>(),
    ) {
        let fabric = Fabric::build(&preset(machine).unwrap().unwrap()).unwrap();
        let whole = (Writer::named("ibnetdiscover").unwrap().write)(&fabric);
        let mut lines: Vec<&str> = whole.lines().collect();
        for index in cut {
            cut_between_switches(&mut lines, index);
        }
        let subnet = lines.join("\n");
        let Ok(expected) = ibnetdiscover(&subnet) else { return Ok(()) };
        let expected = cabling(expected);
        let (mut list, hosts) = cables(&subnet);
        let at = turn.index(list.len());
        list.rotate_left(at);
        for (text, format) in [
            (exported(&list), Format::Netbox),
            (answered(&list), Format::Netbox),
            (reported(&list, &by), Format::Lldp),
        ] {
            let found = guessed(&text, format, &hosts);
            prop_assert_eq!(cabling(found.description), expected.clone());
        }
    }
}

/// Removes both ends of a cable between switches from the text of a subnet.
fn cut_between_switches(lines: &mut Vec<&str>, index: prop::sample::Index) {
    let ends: Vec<usize> = (0..lines.len())
        .filter(|&line| lines[line].starts_with('[') && lines[line].contains("\"S-"))
        .filter(|&line| {
            let device = (0..line).rev().find(|&at| !lines[at].starts_with('[')).unwrap();
            lines[device].starts_with("Switch")
        })
        .collect();
    if ends.is_empty() {
        return;
    }
    let one = ends[index.index(ends.len())];
    let device = |line: usize| {
        let device = (0..line).rev().find(|&at| !lines[at].starts_with('[')).unwrap();
        lines[device].split('"').nth(1).unwrap().to_owned()
    };
    let port = |text: &str| text.split_once('[').unwrap().1.split_once(']').unwrap().0.to_owned();
    let far = lines[one].split('"').nth(1).unwrap();
    let back = port(lines[one].split('"').nth(2).unwrap());
    let other = ends.iter().copied().find(|&line| device(line) == far && port(lines[line]) == back);
    let mut both = vec![one, other.unwrap()];
    both.sort_unstable();
    both.into_iter().rev().for_each(|line| {
        lines.remove(line);
    });
}

#[test]
fn what_is_no_cable_of_the_network_is_skipped_and_counted() {
    let text = "side_a_device,side_a_type,side_a_name,side_b_device,side_b_type,side_b_name,type,status\n\
                n1,dcim.interface,eth0,leaf,dcim.interface,swp1,cat6,connected\n\
                n2,dcim.interface,eth0,leaf,dcim.interface,swp2,cat6,connected\n\
                n3,dcim.interface,eth0,leaf,dcim.interface,swp3,cat6,planned\n\
                n1,dcim.powerport,PSU1,pdu,dcim.poweroutlet,1,power,connected\n\
                n1,dcim.consoleport,con,console,dcim.consoleserverport,1,,connected\n";
    let hosts: Vec<String> = ["n1", "n2", "n3", "n4"].map(str::to_owned).to_vec();
    let found = guessed(text, Format::Netbox, &hosts);
    let fabric = Fabric::build(&found.description).unwrap();
    assert_eq!((fabric.nodes(), fabric.depth()), (2, 1));
    let notes = found.notes.join("; ");
    for words in [
        "1 cable is skipped: it carries power",
        "1 cable is skipped: it is not connected",
        "1 cable is skipped: an end is no interface",
        "2 nodes of --hosts, such as \"n3\", have no cable",
        "4 GB/s of each cable is assumed",
    ] {
        assert!(notes.contains(words), "{words}: {notes}");
    }
}

#[test]
fn hosts_are_known_by_their_interface_also_if_its_id_is_an_address() {
    let text = r#"{"leaf": {"lldp": {"interface": {"swp1": {"chassis": {"n1": {"id": {"type": "mac"}}},
        "port": {"id": {"type": "mac", "value": "00:00:5e:00:53:01"}, "descr": "eth0"}}}}},
        "n1": {"lldp": {"interface": {"eth0": {"chassis": {"leaf": {"id": {"type": "mac"}}},
        "port": {"id": {"type": "ifname", "value": "swp1"}}}}}}}"#;
    let found = guessed(text, Format::Lldp, &["n1".to_owned()]);
    let fabric = Fabric::build(&found.description).unwrap();
    assert_eq!((fabric.nodes(), fabric.links()), (1, 1));
}

/// The machine of these rows of `(device, port, neighbour, port as the neighbour names it)`, and the notes about it.
fn neighbours(rows: &[(&str, &str, &str, &str)], hosts: &str) -> (Fabric, String) {
    let mut devices: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for (device, port, far, name) in rows {
        devices.entry(device).or_default().push(format!(
            "{{\"{port}\": {{\"chassis\": {{\"{far}\": {{}}}}, \"port\": {{\"descr\": \"{name}\"}}}}}}"
        ));
    }
    let rows = devices.iter().map(|(device, ports)| {
        format!("\"{device}\": {{\"lldp\": {{\"interface\": [{}]}}}}", ports.join(",\n"))
    });
    let text = format!("{{{}}}", rows.collect::<Vec<_>>().join(",\n"));
    let options = MachineOptions { hosts: Some(hosts.to_owned()), ..MachineOptions::default() };
    let found =
        read(&text, Format::Lldp, &options).unwrap_or_else(|error| panic!("{error}\n{text}"));
    (Fabric::build(&found.description).unwrap(), found.notes.join("; "))
}

/// Rows of a leaf with one node and two cables to the spine, and of the spine.
const ALIASES: [(&str, &str, &str, &str); 5] = [
    ("leaf", "Ethernet0", "n1", "eth0"),
    ("leaf", "Ethernet48", "spine", "fortyGigE0/0"),
    ("leaf", "Ethernet52", "spine", "fortyGigE0/4"),
    ("spine", "Ethernet0", "leaf", "hundredGigE1/49"),
    ("spine", "Ethernet4", "leaf", "hundredGigE1/53"),
];

#[test]
fn a_cable_that_both_ends_describe_counts_once_also_under_other_names_of_ports() {
    for rows in [&ALIASES[..], &ALIASES[..4], &ALIASES[..3]] {
        let (fabric, _) = neighbours(rows, "n1");
        assert_eq!((fabric.depth(), fabric.links(), fabric.cabling(0, 1).cables), (2, 3, 2));
    }
    // The node names the port of the leaf as the leaf's other neighbours do. The leaf names the node's port.
    let with_node = [&ALIASES[..], &[("n1", "eth0", "leaf", "fortyGigE0/60")]].concat();
    assert_eq!(neighbours(&with_node, "n1").0.links(), 3);
    // Each end describes a different cable, by its own names, so there are two.
    let halves = [
        ALIASES[0],
        ("leaf", "Ethernet48", "spine", "Ethernet0"),
        ("spine", "Ethernet4", "leaf", "Ethernet52"),
    ];
    assert_eq!(neighbours(&halves, "n1").0.links(), 3);
}

#[test]
fn a_server_that_is_not_named_is_no_switch() {
    let rows = |port: &'static str| {
        [
            ("leaf1", "swp1", "n1", "eth0"),
            ("leaf2", "swp1", "n2", "eth0"),
            ("leaf1", "swp2", "s1", port),
            ("leaf2", "swp2", "s1", "eth1"),
            ("leaf1", "swp9", "spine", "swp1"),
            ("leaf2", "swp9", "spine", "swp2"),
        ]
    };
    let (fabric, notes) = neighbours(&rows("eth0"), "n[1-2]");
    assert_eq!((fabric.depth(), fabric.cabling(0, 1).parents), (2, 1));
    assert!(
        notes.contains(
            "1 device that --hosts does not name and that looks like a server is skipped: \"s1\""
        ),
        "{notes}"
    );
    let (fabric, notes) = neighbours(&rows("eth0"), "n[1-2],s1");
    assert_eq!(
        (fabric.depth(), fabric.groups(1), fabric.hops(0, fabric.nodes() - 1)),
        (2, 2, Some(2))
    );
    assert!(
        notes.contains("host s1 hangs on several leaf switches and counts on leaf1"),
        "{notes}"
    );
    let (fabric, _) = neighbours(&rows("swp0"), "n[1-2]");
    assert_eq!(fabric.cabling(0, 1).parents, 2, "a port of the kind that switches have");
}

#[test]
fn capabilities_say_which_devices_are_switches() {
    let neighbour = |port: &str, name: &str, bridge: bool| {
        format!(
            "{{\"{port}\": {{\"chassis\": {{\"{name}\": {{\"capability\": [{{\"type\": \"Bridge\", \"enabled\": {bridge}}}, \
             {{\"type\": \"Station\", \"enabled\": true}}]}}}}, \"port\": {{\"descr\": \"{}{port}\"}}}}}}",
            if bridge { "swp" } else { "eth" }
        )
    };
    let leaf = |number: u32| {
        let rows = [
            neighbour("eth1", &format!("n{number}"), false),
            neighbour(&format!("eth2{number}"), "s1", false),
            neighbour(&format!("eth3{number}"), "spine", true),
        ];
        format!("\"leaf{number}\": {{\"lldp\": {{\"interface\": [{}]}}}}", rows.join(","))
    };
    let text = format!("{{{}, {}}}", leaf(1), leaf(2));
    let found = guessed(&text, Format::Lldp, &["n1".to_owned(), "n2".to_owned()]);
    assert_eq!(found.description.sites[0].cabling[1].parents, 1);
    assert!(
        found.notes.join("; ").contains("looks like a server is skipped: \"s1\""),
        "{:?}",
        found.notes
    );
}

#[test]
fn what_netbox_lists_from_each_end_counts_once() {
    let text =
        "Device A,Termination A,Device B,Termination B\nn1,eth0,leaf,swp1\nleaf,swp1,n1,eth0\n";
    let found = guessed(text, Format::Netbox, &["n1".to_owned()]);
    let Children::Nodes(nodes) = &found.description.sites[0].root.children else {
        panic!("one leaf")
    };
    assert_eq!(nodes.len(), 1);
    assert!(
        found.notes.contains(&"1 cable is skipped: it is listed already".to_owned()),
        "{:?}",
        found.notes
    );
}

/// Refusals name the line, and say what is wrong there.
#[test]
fn refusals_name_the_line() {
    let table = "Device A,Termination A,Device B,Termination B\n";
    let rows = |rows: &str| format!("{table}{rows}");
    let neighbour = |port: &str, rest: &str| {
        format!("{{\"leaf\": {{\"lldp\": {{\"interface\": [\n{{\"{port}\": {{{rest}}}}}]}}}}}}")
    };
    let cases = [
        (rows("n1,eth0,leaf\n"), 2, "3 fields, not the 4 of the header"),
        (rows("n1,eth0,leaf,\n"), 2, "\"\" is not the name of a port"),
        (rows("n1,\"eth0,leaf,swp1\n"), 2, "a quote is not closed"),
        (rows("n1,eth0,n1,eth1\n"), 2, "a cable leads from \"n1\" to itself"),
        (
            rows("n1,eth0,leaf,swp1\nn2,eth0,leaf,swp1\n"),
            3,
            "port \"swp1\" of \"leaf\" has a cable on line 2 already",
        ),
        (rows("n1,eth0,leaf,swp1\nx,1,y,1\n"), 3, "no cable leads from switch x to a host"),
        (rows("n1,eth0,n2,eth0\n"), 2, "host n1 is cabled to host n2"),
        (table.to_owned(), 0, "there is no cable"),
        (
            "Device A,Termination A,Device B,Termination\n".to_owned(),
            1,
            "no column \"Termination B\"",
        ),
        (
            "{\"next\": \"https://netbox.example\",\n\"results\": []}".to_owned(),
            1,
            "one page of several",
        ),
        ("[\n{\"a_terminations\": []}]".to_owned(), 2, "has 0 entries, not 1"),
        ("{\"lldp\": {}}".to_owned(), 1, "whose neighbours these are is not said"),
        ("{\"leaf\": {\"lldpd\": {}}}".to_owned(), 1, "\"leaf\" has no lldp"),
        (neighbour("swp1", ""), 2, "on port \"swp1\" of \"leaf\" has no chassis"),
        (neighbour("swp1", "\"chassis\": {\"id\": {\"type\": \"mac\"}}"), 0, "there is no cable"),
        ("{\"leaf\": {\"lldp\": [{}]}}".to_owned(), 1, "this is `lldpctl -f json0`"),
        (
            rows("leaf,swp1,\"n1, n2\",\"eth0, eth0\"\n"),
            2,
            "one side of this cable has 2 ends (a breakout cable)",
        ),
        (
            "termination_a_type,termination_a_id,termination_b_type,termination_b_id\n".to_owned(),
            1,
            "lacks the names of devices and ports",
        ),
        (neighbour("swp1", "\"chassis\": {\"n1\": {\"id\": {}}}"), 2, "has no port"),
    ];
    let hosts = options(&["n1".to_owned(), "n2".to_owned()]);
    for (text, line, words) in cases {
        let format = if text.contains("lldp") { Format::Lldp } else { Format::Netbox };
        let error = read(&text, format, &hosts).expect_err(&text);
        assert!(error.message.contains(words), "{words}: {error}");
        assert_eq!(error.line, line, "{error}");
    }
    let text = rows("n1,eth0,leaf,swp1\n");
    let error = read(&text, Format::Netbox, &MachineOptions::default()).unwrap_err();
    assert!(error.message.contains("--hosts"), "{error}");
    let error = read("name = \"m\"", Format::Toml, &hosts).unwrap_err();
    assert!(error.message.contains("--hosts"), "{error}");
}
