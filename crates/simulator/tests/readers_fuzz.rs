//! Every reader answers damaged inputs with a result or with one sentence, never with a panic. Among the inputs are
//! those that once broke a reader. An input that breaks a reader is kept in a file, to be added to
//! `tests/security/corpus`. The inputs are always the same, unless `PROPTEST_RNG_SEED` is set to another number.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::env;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use topolane_fabric::read::{Format, NamedText, lfts, machine};
use topolane_fabric::{Fabric, InputError, compress, expand, write};
use topolane_simulator::workload::{ReadOptions, csv, sacct, swf};
use topolane_traffic::read::traffic;
use topolane_traffic::{pattern, traffic_csv};

/// The number of inputs for each of the eleven readers.
const INPUTS: usize = 20_000;
/// The longest time for a reader: on a slow machine fewer inputs will do.
const TIME: Duration = Duration::from_secs(5);
const CORPUS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/security/corpus");
const NET: &str = include_str!("../../fabric/tests/data/two-leaves.ibnetdiscover");

/// Words and marks of the formats.
const WORDS: [&str; 44] = [
    "\n",
    "\r\n",
    "\t",
    " ",
    ",",
    ";",
    "|",
    "=",
    "\"",
    "'",
    "#",
    "[",
    "]",
    "[[",
    "]]",
    "{",
    "}",
    "-",
    "\\\n",
    "\u{1b}[31m",
    "\u{202e}",
    "\u{feff}",
    "é",
    "\0",
    "0",
    "1",
    "-1",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "9223372036854775808",
    "1e308",
    "-0.0",
    "nan",
    "inf",
    "0x0001",
    "[1-1000000]",
    "[0-9]",
    "parents = ",
    "missing = [[1, 0, 0, 0, 0]]\n",
    "SwitchName=a ",
    "# ranks: ",
    "Switch\t4 \"S-1\"",
    "lid 65535",
];

/// Damages a text by some edits. Each puts in a word, takes a part out, doubles a part, or puts in a part of another
/// text.
fn damaged(seeds: &[Vec<u8>], random: &mut impl RngExt) -> Vec<u8> {
    let mut bytes = seeds[random.random_range(0..seeds.len())].clone();
    for _ in 0..random.random_range(0..8) {
        let at = random.random_range(0..=bytes.len());
        let end = (at + random.random_range(0..64)).min(bytes.len());
        match random.random_range(0..7) {
            0 => {
                bytes.splice(at..at, WORDS[random.random_range(0..WORDS.len())].bytes());
            }
            1 => {
                bytes.splice(at..end, WORDS[random.random_range(0..WORDS.len())].bytes());
            }
            2 => {
                bytes.drain(at..end);
            }
            3 => {
                let part = bytes[at..end].repeat(random.random_range(1..20));
                bytes.splice(at..at, part);
            }
            4 => {
                let other = &seeds[random.random_range(0..seeds.len())];
                let from = random.random_range(0..=other.len());
                let upto = (from + random.random_range(0..256)).min(other.len());
                bytes.splice(at..end, other[from..upto].iter().copied());
            }
            5 if at < bytes.len() => bytes[at] = random.random(),
            6 if at < bytes.len() => bytes[at] = b'0' + bytes[at] % 10,
            _ => {}
        }
    }
    bytes
}

/// The good texts and the small files of the corpus.
fn seeds(good: &[&str]) -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = good.iter().map(|text| text.as_bytes().to_vec()).collect();
    let mut paths: Vec<_> =
        fs::read_dir(CORPUS).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort(); // a directory has them in any order
    let files = paths.iter().map(|path| fs::read(path).unwrap());
    seeds.extend(files.filter(|content| content.len() < 8192));
    // Good texts are drawn as often as files of the corpus.
    let corpus = seeds.len() - good.len();
    seeds.extend((0..corpus).map(|index| good[index % good.len()].as_bytes().to_vec()));
    seeds
}

fn fuzz(reader: &str, good: &[&str], read: impl Fn(&[u8]) -> Result<(), InputError>) {
    let seeds = seeds(good);
    let seed = env::var("PROPTEST_RNG_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let began = Instant::now();
    for _ in 0..INPUTS {
        if began.elapsed() > TIME {
            break;
        }
        let bytes = damaged(&seeds, &mut random);
        let answer = catch_unwind(AssertUnwindSafe(|| read(&bytes)));
        let fault = match answer {
            Ok(Ok(())) => None,
            Ok(Err(error)) => fault_of(&error.to_string()),
            Err(_) => Some("it panics".to_owned()),
        };
        if let Some(fault) = fault {
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("breaks-{reader}"));
            fs::write(&kept, &bytes).unwrap();
            panic!("{reader}: {fault}; the input is kept in {}", kept.display());
        }
    }
}

/// What is wrong with a sentence; `None` if nothing is.
fn fault_of(sentence: &str) -> Option<String> {
    let sound = !sentence.is_empty()
        && sentence.chars().count() < 1200
        && sentence.chars().all(topolane_fabric::is_printable);
    (!sound).then(|| format!("not one printable sentence: {sentence:?}"))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn fuzz_machine(reader: &str, format: Format, good: &str) {
    fuzz(reader, &[good], |bytes| {
        let fabric = machine(&text(bytes), format).and_then(|read| Fabric::build(&read))?;
        if fabric.links() < 10_000 {
            // A machine that was read can be printed and read again, whatever names it has.
            assert!(write::tree(&fabric, 40).chars().all(|c| c == '\n' || !c.is_control()));
            let again = machine(&write::machine_toml(&fabric), Format::Toml)?;
            assert_eq!(Fabric::build(&again)?.nodes(), fabric.nodes());
        }
        Ok(())
    });
}

const TOML: &str = "name = \"toy\"\n[node]\nsockets = 2\n[[node-kind]]\nnodes = \"toy[1-4]\"\nmemory = 5\n[[site]]\n\
    name = \"core\"\nchildren = [4, 2, 2]\nparents = [1, 2, 2]\ncables = [1, 1, 2]\nbandwidth = [1, 2e9, 3]\n\
    missing = [[1, 0, 0, 1, 0]]\n[[site]]\nname = \"east\"\n[[site.switch]]\nname = \"leaf\"\nnodes = \"e[1-4]\"\n\
    [[site.switch]]\nname = \"top\"\nswitches = \"leaf\"\nswitch-names = [\"spine\"]\n[[wan]]\n\
    between = [\"core\", \"east\"]\nlatency = 0.1\nbandwidth = 1e9\n";
const CONF: &str = "# a comment\nSwitchName=a Nodes=n[1-4]\nSwitchName=b Nodes=n[5-6],n7 LinkSpeed=1\n\
    SwitchName=c \\\n Switches=a,b\n";
const BLOCKS: &str = "BlockSizes=2,4\nBlockName=a Nodes=n[1-2]\nBlockName=b Nodes=n[3-4],n7\n";
const YAML: &str = "---\n- topology: t\n  cluster_default: true\n  tree:\n    switches:\n      - switch: top\n        \
    children: s[1-2]\n      - switch: s1\n        nodes: n1\n      - {switch: s2, nodes: \"n[2-3]\"}\n- topology: b\n  block:\n    \
    block_sizes: [1, 2]\n    blocks:\n      - {block: x, nodes: \"n[1-3]\"}\n";
const NODES: &str = r#"{"kind": "List", "items": [{"kind": "Node", "metadata": {"name": "a", "labels": {
    "fabric.topograph.run/tier-0": "l", "fabric.topograph.run/tier-1": "t", "accelerator.topograph.run/domain": "d"}},
    "status": {"allocatable": {"cpu": "95500m", "memory": "1Gi", "nvidia.com/gpu": "8"}}},
    {"kind": "Topology", "metadata": {"name": "x"}, "spec": {"levels": [{"nodeLabel": "fabric.topograph.run/tier-0"}]}}]}"#;
const GRAPH: &str = r#"{"instances": [{"id": "a", "network_layers": ["l", "t"], "labels": {}}, {"id": "b",
    "network_layers": ["m", "t"]}]}"#;
const DUMP: &str = "Unicast lids [0-53] of switch Lid 2 guid 0x0000000000200000 ('leaf0'):\n\
    0x0001 001 # Channel Adapter portguid 0x0000000000100001: 'toy1'\n53 lids dumped\n";

#[test]
fn machine_toml() {
    fuzz_machine("machine.toml", Format::Toml, TOML);
}

#[test]
fn topology_conf() {
    fuzz_machine("topology.conf", Format::SlurmTopology, CONF);
}

#[test]
fn topology_conf_of_blocks() {
    fuzz_machine("blocks", Format::SlurmTopology, BLOCKS);
}

#[test]
fn topology_yaml() {
    fuzz_machine("topology.yaml", Format::SlurmYaml, YAML);
}

#[test]
fn kubernetes() {
    fuzz_machine("kubernetes", Format::Kubernetes, NODES);
}

#[test]
fn topograph() {
    fuzz_machine("topograph", Format::Topograph, GRAPH);
}

#[test]
fn ibnetdiscover() {
    fuzz_machine("ibnetdiscover", Format::Ibnetdiscover, NET);
}

#[test]
fn forwarding_tables() {
    let fabric = machine(NET, Format::Ibnetdiscover).and_then(|read| Fabric::build(&read));
    let fabric = Arc::new(fabric.unwrap());
    fuzz("forwarding-tables", &[DUMP], |bytes| {
        let dump = NamedText { text: &text(bytes), name: "dump" };
        lfts(&fabric, dump, NamedText { text: NET, name: "net" }).map(|_| ())
    });
}

#[test]
fn hostlists() {
    fuzz("hostlists", &["cab[1-18,20],login", "rack[0-1]n[01-16] x"], |bytes| {
        let names = expand(&text(bytes))?;
        if names.len() < 10_000 {
            assert_eq!(expand(&compress(names.iter().map(String::as_str)))?, names);
        }
        Ok(())
    });
}

#[test]
fn traffic_matrices() {
    let good = [
        "# ranks: 4\n# entries: 2\nfrom,to,bytes,messages\n0,1,1e6,2\n3,2,5,1\n",
        "%%MatrixMarket matrix coordinate real general\n% a remark\n4 4 2\n1 2 5\n4 3 1e6\n",
        "%%MatrixMarket matrix array integer symmetric\n2 2\n0\n5\n0\n",
    ];
    fuzz("traffic", &good, |bytes| {
        let matrix = traffic(&text(bytes))?;
        if matrix.entries().len() < 10_000 {
            assert_eq!(traffic(&traffic_csv(&matrix))?, matrix);
        }
        Ok(())
    });
}

#[test]
fn patterns() {
    fuzz(
        "patterns",
        &["stencil4d(bytes=65536)", "alltoall", "unstructured3d(least=1, most=5)"],
        |bytes| pattern(&text(bytes)).and_then(|pattern| pattern.traffic(16, 0)).map(|_| ()),
    );
}

#[test]
fn links() {
    let fabric = machine(NET, Format::Ibnetdiscover).and_then(|read| Fabric::build(&read)).unwrap();
    let names = write::link_names(&fabric);
    let first = names[0].lower.name.clone();
    fuzz("links", &["leaf0->pod0-s1#1", &first, "3"], |bytes| {
        write::cables_named(&fabric, &names, &text(bytes)).map(|_| ())
    });
}

#[test]
fn logs() {
    const SWF: &str = "; Version: 2.2\n; UnixStartTime: 1163199901\n; StartTime: Fri Nov 10 15:05:01 PST 2006\n\
        ; MaxNodes: 4\n; MaxProcs: 32\n; Partition: 1 pbatch\n1 0 5 60 8 -1 -1 8 120 -1 1 -1 -1 -1 -1 1 -1 -1\n";
    const SACCT: &str = "JobID|Submit|Start|End|Elapsed|Timelimit|NNodes|NCPUS|ReqMem|State|Partition|NodeList\n\
        1_2|2026-11-21T19:12:48|2026-11-21T19:12:48|2026-11-21T19:13:00|00:00:12|1-00:00:00|4|64|4Gc|COMPLETED|pbatch|\
        cab[7-10]\n";
    const CSV: &str =
        "id,submit,run,walltime,nodes,cores,memory,start,hosts\n1,0,60,120,1,4,1024,7,\"n[1,3]\"\n";
    type Reader =
        fn(&[u8], &ReadOptions) -> Result<topolane_simulator::workload::Workload, InputError>;
    let readers: [(&str, &str, Reader); 3] = [
        ("swf", SWF, |bytes, options| swf(bytes, options)),
        ("sacct", SACCT, |bytes, options| sacct(bytes, options)),
        ("csv", CSV, |bytes, _| csv(bytes)),
    ];
    for (name, good, read) in readers {
        fuzz(name, &[good], |bytes| {
            for partition in [None, Some("pbatch".to_owned())] {
                let shared = bytes.len() % 2 == 0;
                let options = ReadOptions { partition, shared, ..ReadOptions::default() };
                for job in read(bytes, &options)?.jobs {
                    assert!(job.nodes >= 1 && job.submit >= 0.0 && job.run >= 0.0);
                }
            }
            Ok(())
        });
    }
}
