//! Readers of arbitrary and of damaged text return a machine or one error, and never panic.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use common::damage::{apply, damage};
use common::machine;
use proptest::prelude::*;
use topolane_fabric::read::{FORMATS, Format, machine as read_machine};
use topolane_fabric::write::WRITERS;
use topolane_fabric::{Fabric, write};

fn read_all(text: &str) {
    for row in FORMATS {
        match read_machine(text, row.format) {
            Ok(description) => {
                if let Ok(fabric) = Fabric::build(&description) {
                    // A machine that was read can be written in every format.
                    for writer in WRITERS {
                        (writer.write)(&fabric);
                        writer.lost(&fabric);
                    }
                    write::tree(&fabric, 40);
                }
            }
            Err(error) => assert!(!error.message.is_empty()),
        }
        Format::guess("machine", text);
    }
}

proptest! {
    #[test]
    fn any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_all(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn words_of_the_formats(words in prop::collection::vec(prop::sample::select(vec![
        "SwitchName=a ", "SwitchName=b ", "Nodes=n[1-3]", "Nodes=", "Switches=a", "Switches=b,a ", "\n",
        "\\\n", "#", "LinkSpeed=1 ", "name = 'm'\n", "[node]\n", "[[site]]\n", "children = [2, 3]\n",
        "nodes = 'n[1-6]'\n", "parents = [1, 4000000000]\n", "cables = [4294967295, 1]\n",
        "bandwidth = 1\n", "missing = [[1, 0, 3, 1, 4294967295]]\n", "[[node-kind]]\n",
        "[[site.switch]]\n", "switches = 'm'\n", "Switch\t4 \"S-1\"\t# \"a\"\n",
        "Ca\t1 \"H-1\"\t# \"n1\"\n", "[1]\t\"H-1\"[1](1) \t# \"n1\" lid 1 4xQDR\n",
        "[1](1)\t\"S-1\"[1]\t# \"a\" lid 1 4xQDR\n", "[2]\t\"S-1\"[2]\t# 4xQDR\n",
        "BlockName=a ", "BlockSizes=1,2\n", "- topology: a\n", "  flat: true\n", "  tree: {switches: [{switch: a, nodes: n1}]}\n",
        "  block: {block_sizes: [1], blocks: [{block: b, nodes: n[1-2]}]}\n", "kind: Node\n", "kind: List\nitems:\n", "- kind: Node\n",
        "  metadata: {name: n1, labels: {fabric.topograph.run/tier-0: a}}\n", "metadata: {name: t}\n", "kind: Topology\n",
        "spec: {levels: [{nodeLabel: a}]}\n", "---\n", "{\"instances\": [", "{\"id\": \"a\", \"network_layers\": [\"s\"]},", "]}",
        "switches: {a: {switches: [b]}}\n", "blocks: [{switch: a, nodes: [n1]}]\n", "ip,DSW,PSW,ASW\n", "h,a,b,c\n", "&a ", "*a ",
    ]), 0..24)) {
        read_all(&words.concat());
    }

    #[test]
    fn damaged_files(
        machine in machine(),
        writer in 0..WRITERS.len(),
        damages in prop::collection::vec(damage(), 1..6),
    ) {
        let fabric = Fabric::build(&machine).unwrap();
        let mut text = (WRITERS[writer].write)(&fabric);
        for damage in &damages {
            text = apply(&text, damage);
        }
        read_all(&text);
    }
}
