//! Counted resources of nodes in a machine file.
#![allow(clippy::unwrap_used)]

use topolane_fabric::resources::{CORES, MEMORY, ResourceCounts};
use topolane_fabric::{Fabric, NodeKind, read, scramble, write};

fn machine(node: &str, other: &str) -> String {
    format!(
        "name = \"m\"\n[node]\n{node}\n[[node-kind]]\nnodes = \"m[1-2]\"\n{other}\n[[site]]\nname = \"s\"\n\
         children = [2, 2]\n"
    )
}

fn build(text: &str) -> Fabric {
    Fabric::build(&read::machine_toml(text).unwrap()).unwrap()
}

/// Names are numbered over all kinds of node, with cores and memory first. Every node has a count for each name.
#[test]
fn every_node_has_a_count_of_every_resource() {
    let fabric =
        build(&machine("resources = { gpu = 4, nic = 2 }", "resources = { \"gpu:h100\" = 8 }"));
    assert_eq!(fabric.resources().names(), ["cores", "memory", "gpu", "nic", "gpu:h100"]);
    let kind = NodeKind::default();
    assert_eq!(fabric.counts(0), [16, kind.memory, 8, 0, 8], "a typed resource is one without");
    assert_eq!(fabric.counts(3), [16, kind.memory, 4, 2, 0]);
    assert_eq!(fabric.most_of_a_node(), [16, kind.memory, 8, 2, 8]);
    assert_eq!((CORES, MEMORY), (0, 1));
}

/// A kind has what [node] gives unless it says otherwise. A resources table of its own replaces the whole table of
/// [node].
#[test]
fn a_kind_without_resources_has_those_of_node() {
    let fabric = build(&machine("resources = { gpu = 4 }", "memory = 5"));
    assert_eq!(fabric.counts(0), [16, 5, 4]);
    let fabric = build(&machine("resources = { gpu = 4 }", "resources = {}"));
    assert_eq!(fabric.counts(0)[2..], [0]);
    assert_eq!(fabric.counts(2)[2..], [4]);
}

/// A machine that is written is read back with the same counts, whether a kind has its own table or none.
#[test]
fn resources_are_read_back_as_they_were_written() {
    for (node, other) in [
        ("resources = { gpu = 4 }", "resources = {}"),
        ("", "resources = { \"gpu:h100\" = 8, gpu = 9, \"nvidia.com/mig-1g.5gb\" = 7 }"),
        ("[node.resources]\nnic = 4294967295\n\"gpu:a-1\" = 2", "resources = { nic = 0 }"),
    ] {
        let fabric = build(&machine(node, other));
        let again = build(&write::machine_toml(&fabric));
        assert_eq!(again.kinds(), fabric.kinds());
        assert_eq!(again.resources(), fabric.resources());
    }
}

/// The printed tree names the resources of nodes.
#[test]
fn the_tree_names_resources() {
    let fabric = build(&machine("resources = { gpu = 4, \"gpu:h100\" = 4 }", "resources = {}"));
    let shown = write::tree(&fabric, 100);
    assert!(shown.contains("GB/s, 4 gpu, 4 gpu:h100\n"), "{shown}");
}

/// A bad resource is refused with its line, its name and its value.
#[test]
fn a_bad_resource_is_refused_where_it_stands() {
    let name = |shown: &str| format!("{shown} is no name of a resource");
    let long = "g".repeat(65);
    for (table, wanted) in [
        ("gpu = -1", "resource gpu: -1 is not a count from 0 to 4294967295".to_owned()),
        ("gpu = 4294967296", "resource gpu: 4294967296 is not a count".to_owned()),
        ("gpu = 1.5", "floating point `1.5`, expected the count of resource gpu".to_owned()),
        ("gpu = \"8\"", "string \"8\", expected the count of resource gpu".to_owned()),
        ("gpu = [8]", "sequence, expected the count of resource gpu".to_owned()),
        ("gpu = 99999999999999999999", "gpu".to_owned()),
        ("\"\" = 1", name("\"\"")),
        ("\"a b\" = 1", name("\"a b\"")),
        ("\"a\\u001b[31m\" = 1", name("\"a\\u{1b}[31m\"")),
        ("\"gpu:\" = 1", name("\"gpu:\"")),
        ("\":h100\" = 1", name("\":h100\"")),
        ("\"gpu:h100:1\" = 1", name("\"gpu:h100:1\"")),
        ("\"gpu=1,nic\" = 1", name("\"gpu=1,nic\"")),
        ("cores = 4", "resource cores: cores are counted by sockets".to_owned()),
        ("memory = 4", "resource memory: memory is counted by".to_owned()),
        ("gpu = 1, gpu = 2", "duplicate key".to_owned()),
        (
            "gpu = 1, \"gpu:a\" = 1, \"gpu:b\" = 1",
            "resource gpu: 1 are fewer than the 2".to_owned(),
        ),
        ("gpu = 0, \"gpu:a\" = 1", "resource gpu: 0 are fewer than the 1".to_owned()),
        (&format!("{long} = 1"), format!("\"{}...\" (65 characters) is no name", &long[..60])),
    ] {
        for (place, line) in [(0, 3), (1, 6)] {
            let inline = format!("resources = {{ {table} }}");
            let text =
                if place == 0 { machine(&inline, "") } else { machine("sockets = 1", &inline) };
            let error = read::machine_toml(&text).unwrap_err();
            // TOML has no counts beyond 64 bits.
            let shown = error.to_string();
            assert!(shown.contains(&wanted) || table.contains("9999999"), "{table}: {shown}");
            assert_eq!(error.line, line, "{table}: {shown}");
            assert_eq!(shown.lines().count(), 1, "{shown:?}");
        }
    }
    let text = machine("[node.resources]\nnic = 1\ngpu = -7", "");
    assert_eq!(read::machine_toml(&text).unwrap_err().line, 5, "each entry has its line");
}

/// A description that no reader made is checked as well.
#[test]
fn a_built_machine_is_checked() {
    let mut machine = read::machine_toml(&machine("", "")).unwrap();
    machine.kinds[0].resources = ResourceCounts::from([("a b", 1)]);
    assert!(Fabric::build(&machine).unwrap_err().message.contains("\"a b\" is no name"));
    machine.kinds[0].resources = (0..100).map(|i| (format!("r{i}"), 1)).collect();
    let error = Fabric::build(&machine).unwrap_err().message;
    assert!(error.contains("one too many: at most 64"), "{error}");
}

/// For any table of resources, the reader returns a machine that can be read back, or an error on one line.
#[test]
fn no_table_of_resources_breaks_the_reader() {
    const PARTS: [&str; 26] = [
        "gpu",
        "\"gpu:h100\"",
        "\"gpu:\"",
        "nic",
        "=",
        "=",
        " = ",
        "8",
        "-1",
        "0",
        "1e3",
        "4294967295",
        "4294967296",
        "18446744073709551616",
        ",",
        ",",
        "{",
        "}",
        "\"\"",
        "\"\\u0000\"",
        "'a b'",
        ".",
        "[1]",
        "\n",
        "true",
        "resources = { gpu = 1 }",
    ];
    let (mut read_well, mut draw) = (0, 7);
    for _ in 0..2_000 {
        let mut table = String::from("resources = { ");
        draw = scramble(draw);
        for _ in 0..draw % 9 {
            draw = scramble(draw);
            table.push_str(PARTS[(draw % PARTS.len() as u64) as usize]);
        }
        table.push_str(" }");
        match read::machine_toml(&machine(&table, "")) {
            Ok(machine) => {
                let fabric = Fabric::build(&machine).unwrap();
                assert_eq!(
                    build(&write::machine_toml(&fabric)).kinds(),
                    fabric.kinds(),
                    "{table:?}"
                );
                read_well += 1;
            }
            Err(error) => assert_eq!(error.to_string().lines().count(), 1, "{table:?}"),
        }
    }
    assert!(read_well > 10, "{read_well}");
}
