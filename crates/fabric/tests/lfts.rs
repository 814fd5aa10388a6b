//! Forwarding tables made by hand: the routes that they give, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::fmt::Write;
use std::sync::Arc;

use topolane_fabric::read::{NamedText, ibnetdiscover, lfts};
use topolane_fabric::write::{ibnetdiscover as ibnetdiscover_of, link_names, machine_toml};
use topolane_fabric::{Fabric, Routing, Tables, pgft};

/// Two leaves of two hosts, each leaf with two cables to one spine. LIDs: n1 1, n2 5, n3 6, n4 7; leaf0 2, leaf1 3,
/// spine 4.
const NET: &str = include_str!("data/two-leaves.ibnetdiscover");
const LEAF0: (&str, &str) = ("0000000000200000", "leaf0");
const LEAF1: (&str, &str) = ("0000000000200001", "leaf1");
const SPINE: (&str, &str) = ("0000000000200002", "spine");

type Table = ((&'static str, &'static str), Vec<(u16, u8)>);

/// Tables that lead everywhere. Each destination has a cable of its own.
fn whole() -> Vec<Table> {
    vec![
        (LEAF0, vec![(1, 1), (2, 0), (3, 3), (4, 3), (5, 2), (6, 3), (7, 4)]),
        (LEAF1, vec![(1, 4), (2, 3), (3, 0), (4, 3), (5, 3), (6, 1), (7, 2)]),
        (SPINE, vec![(1, 2), (2, 1), (3, 3), (4, 0), (5, 1), (6, 4), (7, 3)]),
    ]
}

/// The tables as `opensm` writes them.
fn opensm(tables: &[Table]) -> String {
    let mut text = String::new();
    for ((guid, name), entries) in tables {
        let _ = writeln!(text, "Unicast lids [0-7] of switch Lid 2 guid 0x{guid} ('{name}'):");
        for (lid, port) in entries {
            let _ = writeln!(text, "0x{lid:04x} {port:03} # Channel Adapter portguid 0x1: 'x'");
        }
        let _ = writeln!(text, "7 lids dumped");
    }
    text
}

/// The tables as `dump_fts` prints them.
fn dump_fts(tables: &[Table]) -> String {
    let mut text = String::new();
    for ((guid, name), entries) in tables {
        let _ = write!(
            text,
            "Unicast lids [0x0-0x7] of switch DR path slid 0; dlid 0; 0,1 guid 0x{guid} ({name}):\n  \
             Lid  Out   Destination\n       Port     Info \n"
        );
        for (lid, port) in entries {
            let _ = writeln!(text, "0x{lid:04x} {port:03} : (Switch portguid 0x2: 'x')");
        }
        let _ = writeln!(text, "{} valid lids dumped \n", entries.len());
    }
    text
}

fn fabric(net: &str) -> Arc<Fabric> {
    Arc::new(Fabric::build(&ibnetdiscover(net).unwrap()).unwrap())
}

fn read_with(dump: &str, net: &str) -> Result<Tables, String> {
    let source = |text, name| NamedText { text, name };
    let read = lfts(&fabric(net), source(dump, "tables"), source(net, "net"));
    read.map_err(|error| error.to_string())
}

fn read(dump: &str) -> Result<Tables, String> {
    read_with(dump, NET)
}

/// The route, with every link as `from->to#cable`.
fn way(tables: &Tables, from: &str, to: &str) -> Vec<String> {
    let names = link_names(tables.fabric());
    let node = |name| tables.fabric().node_named(name).unwrap();
    let mut path = Vec::new();
    tables.path(node(from), node(to), &mut path).unwrap();
    let step = |&channel: &u32| {
        let link = &names[channel as usize / 2];
        let (a, b) = (&link.lower.name, &link.upper.name);
        let number = link.number.map_or(String::new(), |number| format!("#{number}"));
        if channel % 2 == 0 { format!("{a}->{b}{number}") } else { format!("{b}->{a}{number}") }
    };
    path.iter().map(step).collect()
}

/// The dump of the whole tables with one change: another port for a LID at one table, or no entry for it.
fn changed(table: usize, lid: u16, port: Option<u8>) -> String {
    let mut tables = whole();
    let entries = &mut tables[table].1;
    entries.retain(|entry| entry.0 != lid);
    entries.extend(port.map(|port| (lid, port)));
    entries.sort_unstable();
    opensm(&tables)
}

#[track_caller]
fn refused(read: Result<Tables, String>, says: &str) {
    assert_eq!(read.map(|_| ()).unwrap_err(), says);
}

/// At every switch the route takes the port that the table gives, over the cable that hangs there. leaf0 sends n3 by
/// port 3, the first of its two cables to the spine, and n4 by port 4, the second.
#[test]
fn ways_follow_the_tables_over_parallel_cables() {
    for dump in [opensm(&whole()), dump_fts(&whole())] {
        let tables = read(&dump).unwrap();
        let says = |from, to, links: &[&str]| assert_eq!(way(&tables, from, to), links);
        says("n1", "n1", &[]);
        says("n1", "n2", &["n1->leaf0", "leaf0->n2"]);
        says("n1", "n3", &["n1->leaf0", "leaf0->spine#0", "spine->leaf1#1", "leaf1->n3"]);
        says("n2", "n4", &["n2->leaf0", "leaf0->spine#1", "spine->leaf1#0", "leaf1->n4"]);
        says("n3", "n1", &["n3->leaf1", "leaf1->spine#1", "spine->leaf0#1", "leaf0->n1"]);
    }
}

/// A route need not be a shortest one, nor go up and then down. It is followed as long as it arrives.
#[test]
fn ways_need_not_be_shortest() {
    // Three leaves of two nodes under two spines; every spine has leaf i at port i + 1.
    let net = ibnetdiscover_of(&Fabric::build(&pgft("t", &[2, 3], &[1, 2], &[1, 1])).unwrap());
    let first_node = 6;
    let mut tables: Vec<Table> = Vec::new();
    for switch in 0..5u8 {
        let port = |node: u8| match switch {
            leaf @ 0..3 if leaf == node / 2 => node % 2 + 1,
            0..3 => 3,
            _ => node / 2 + 1,
        };
        let entries = (0..6).map(|node| (first_node + u16::from(node), port(node))).collect();
        let guid = format!("{:016x}", (1u64 << 52) + u64::from(switch));
        tables.push(((guid.leak(), "x"), entries));
    }
    // To t3 of leaf 1, the first spine sends by leaf 2, and leaf 2 sends by the second spine.
    tables[3].1[2].1 = 3;
    tables[2].1[2].1 = 4;
    let read = read_with(&opensm(&tables), &net).unwrap();
    assert_eq!(way(&read, "t1", "t4").len(), 4);
    let detour = way(&read, "t1", "t3");
    let stops: Vec<&str> = detour.iter().map(|link| link.split("->").next().unwrap()).collect();
    assert_eq!(stops, ["t1", "leaf0", "core-s0", "leaf2", "core-s1", "leaf1"]);
}

#[test]
fn a_table_that_loops() {
    // The spine sends n3 back to leaf0, which sends it up again.
    refused(
        read(&changed(2, 6, Some(1))),
        "tables:25: destination n3 (LID 0x0006): switch spine sends it round: \
         spine -> leaf0 -> spine",
    );
}

#[test]
fn a_table_that_does_not_reach() {
    let line = "destination n4 (LID 0x0007): switch";
    // Without an entry, the error names the line of the table.
    refused(read(&changed(2, 7, None)), &format!("tables:19: {line} spine has no port for it"));
    refused(
        read(&changed(2, 7, Some(255))),
        &format!("tables:26: {line} spine has no port for it"),
    );
    refused(
        read(&changed(2, 7, Some(8))),
        &format!("tables:26: {line} spine sends it out of port 8, which has no cable"),
    );
    refused(
        read(&changed(1, 7, Some(0))),
        &format!("tables:17: {line} leaf1 takes it for itself (port 0)"),
    );
    refused(
        read(&changed(1, 7, Some(1))),
        &format!("tables:17: {line} leaf1 sends it out of port 1 to host n3"),
    );
}

#[test]
fn switches_and_lids_that_the_subnet_lacks() {
    let mut tables = whole();
    tables[1].0 = ("00000000002000ff", "leaf9");
    refused(read(&opensm(&tables)), "tables:10: switch 0x00000000002000ff (leaf9) is not in net");
    refused(read(&opensm(&whole()[..2])), "tables: no table of switch spine, which is in net");
    tables[1].0 = LEAF0;
    refused(read(&opensm(&tables)), "tables:10: switch leaf0 has a table on line 1 already");
    refused(read(&changed(0, 9, Some(1))), "tables:9: LID 0x0009 belongs to no port of net");
    // A LID for which opensm itself knows no port gets no traffic.
    let stale = changed(0, 9, Some(1)).replace(
        "0x0009 001 # Channel Adapter portguid 0x1: 'x'",
        "0x0009 001 # unknown node and type",
    );
    read(&stale).unwrap();
}

#[test]
fn lines_that_no_dump_has() {
    let good = opensm(&whole());
    refused(read(""), "tables: no forwarding table: no line begins with 'Unicast lids'");
    refused(read("hello"), "tables:1: not a line of a dump of forwarding tables: \"hello\"");
    refused(
        read("0x0001 001 # x"),
        "tables:1: an entry stands outside of a table: \"0x0001 001 # x\"",
    );
    refused(
        read(&good.replace("guid 0x0000000000200000", "")),
        "tables:1: a heading should name its switch as in 'guid 0x... (leaf0):', not: \
         \"Unicast lids [0-7] of switch Lid 2  ('leaf0'):\"",
    );
    let entry = "an entry should read like '0x0001 005 # ...' or '0x0001 005 : ...', not";
    for bad in ["0x0006 3 # x", "0x6 003 # x", "0xc001 003 # x", "0x0006 256 # x", "0x0006 003"] {
        let dump = good.replacen("0x0006 003 # Channel Adapter portguid 0x1: 'x'", bad, 1);
        refused(read(&dump), &format!("tables:7: {entry}: \"{bad}\""));
    }
    refused(
        read(&dump_fts(&whole()).replacen("7 valid", "8 valid", 1)),
        "tables:11: the table has 7 entries, not as it says: \"8 valid lids dumped\"",
    );
    let twice = good.replacen("0x0002", "0x0001", 1);
    refused(read(&twice), "tables:3: the table of switch leaf0 has LID 0x0001 on line 2 already");
}

/// A dump that is cut anywhere is refused: a table without its end does not count, nor does a subnet with a missing
/// switch. Only the end of the last line may be cut.
#[test]
fn a_dump_cut_short() {
    for good in [opensm(&whole()), dump_fts(&whole())] {
        for end in (0..good.trim_end().len()).step_by(7) {
            assert!(read(&good[..end]).is_err(), "cut at {end}");
        }
        read(good.trim_end()).unwrap();
    }
    let good = opensm(&whole());
    refused(
        read(&good[..good.len() - 20]),
        "tables:19: the table of switch spine breaks off: no line '... lids dumped' ends it \
         (a file cut short?)",
    );
}

#[test]
fn lids_of_the_subnet() {
    let dump = opensm(&whole());
    let without = NET.replace("# lid 5 lmc 0", "# lid 0 lmc 0");
    refused(
        read_with(&dump, &without),
        "net: no LID of host n2: has a subnet manager swept the subnet?",
    );
    let twice = NET.replace("# lid 5 lmc 0", "# lid 6 lmc 0");
    refused(read_with(&dump, &twice), "net:55: LID 6 is given twice");
    // With two LIDs for each port, the table is followed for the base LID.
    let two = NET.replace("# lid 7 lmc 0", "# lid 8 lmc 1");
    let tables: Vec<Table> = whole()
        .into_iter()
        .map(|(name, entries)| {
            let moved = |(lid, port)| if lid == 7 { (8, port) } else { (lid, port) };
            let mut entries: Vec<(u16, u8)> = entries.into_iter().map(moved).collect();
            entries.push((9, 3));
            (name, entries)
        })
        .collect();
    let read = read_with(&opensm(&tables), &two).unwrap();
    assert_eq!(way(&read, "n1", "n4")[1], "leaf0->spine#1");
}

/// The machine may be described in another file, with other speeds, but must have the same cables as the subnet.
#[test]
fn the_machine_is_the_subnet() {
    let source = |text, name| NamedText { text, name };
    let dump = opensm(&whole());
    let faster = machine_toml(&fabric(NET)).replace("bandwidth = 1", "bandwidth = 2");
    let read = |toml: &str| {
        let description = topolane_fabric::read::machine_toml(toml).unwrap();
        let fabric = Arc::new(Fabric::build(&description).unwrap());
        lfts(&fabric, source(&dump, "tables"), source(NET, "net"))
    };
    assert_eq!(way(&read(&faster).unwrap(), "n1", "n2").len(), 2);
    let other = faster.replace("n[1-4]", "m[1-4]");
    let refusal = read(&other).unwrap_err().to_string();
    assert_eq!(refusal, "net: machine machine was not read from this subnet");
}
