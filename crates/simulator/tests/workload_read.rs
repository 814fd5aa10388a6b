//! Files are recognised by name and content, and a bad one is an error that names it.

#![allow(clippy::unwrap_used, clippy::print_stdout)] // Helpers may fail, and say what they skip.

use std::io::Write;
use std::path::PathBuf;

use flate2::{Compression, write::GzEncoder};
use topolane_simulator::workload::{ReadOptions, Workload, csv, read, sacct, swf};

const SWF: &str = "; MaxNodes: 4\n; MaxProcs: 32\n\
                   1 0 5 60 8 -1 -1 8 120 -1 1 -1 -1 -1 -1 -1 -1 -1\n\
                   2 9 5 60 16 -1 -1 16 120 -1 1 -1 -1 -1 -1 -1 -1 -1\n";
const CSV: &str = "id,submit,run,nodes\n1,0,60,1\n2,9,60,2\n";
const SACCT: &str = "JobID|Submit|Start|ElapsedRaw|NNodes\n1|50|55|60|1\n2|59|64|60|2\n";

/// A temporary file for each test, removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, content: &[u8]) -> Self {
        let folder = std::env::temp_dir().join(format!("topolane-read-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(name);
        std::fs::write(&path, content).unwrap();
        Scratch(path)
    }

    fn read(&self) -> Result<Workload, String> {
        read(&self.0, &ReadOptions::default()).map_err(|error| {
            assert_eq!(error.source, self.0.display().to_string(), "names the file");
            error.message
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn each_format_is_known_by_its_name_or_its_first_line() {
    let bare = SWF.lines().last().unwrap();
    let cases = [
        ("a.swf", SWF),
        ("b.log", SWF),
        ("c", bare),
        ("d.SWF", bare),
        ("e.csv", CSV),
        ("f.txt", CSV),
        ("g.sacct", SACCT),
        ("h.txt", SACCT),
    ];
    for (name, text) in cases {
        for (name, bytes) in [(name.to_string(), text.into()), (format!("{name}.gz"), gzip(text))] {
            let workload = Scratch::new(&name, &bytes).read().unwrap();
            assert_eq!(workload.jobs.last().unwrap().id, 2, "{name}");
            assert_eq!(Some(workload.name.as_str()), name.split('.').next(), "{name}");
        }
    }
}

#[test]
fn several_gzip_members_are_one_file() {
    let (head, tail) = SWF.split_at(40);
    let file = Scratch::new("members.swf.gz", &[gzip(head), gzip(tail)].concat());
    assert_eq!(file.read().unwrap().jobs.len(), 2);
}

#[test]
fn a_bad_file_is_an_error_that_names_it() {
    let whole = gzip(SWF);
    let mut damaged = whole.clone();
    damaged[20] ^= 0xff;
    let cases: [(&str, &[u8], &str); 6] = [
        ("empty.swf", b"", "the file is empty"),
        ("blank.csv", b" \n\n", "the file is empty"),
        ("empty.swf.gz", &gzip(""), "the file is empty"),
        ("cut.swf.gz", &whole[..whole.len() / 2], "the compressed data ends too early"),
        ("damaged.swf.gz", &damaged, "the data is damaged"),
        ("picture.png", b"\x89PNG\r\n", "not a log known here"),
    ];
    for (name, content, message) in cases {
        let error = Scratch::new(name, content).read().unwrap_err();
        assert!(error.starts_with(message), "{name}: {error}");
    }
    let folder = std::env::temp_dir();
    for missing in [folder.join("topolane-no-such-file.swf"), folder] {
        let error = read(&missing, &ReadOptions::default()).unwrap_err();
        assert_eq!(error.source, missing.display().to_string());
    }
}

/// The path of a log of the Parallel Workloads Archive, if it is in `shared/traces` next to the repository.
fn trace(name: &str) -> Option<PathBuf> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared/traces");
    let path = PathBuf::from(folder).join(name);
    if path.exists() {
        return Some(path);
    }
    println!("skipped: {name} is not there");
    None
}

/// LLNL Atlas has 43,778 records. 8,233 of them have no start and no walltime, of which 6,294 ran.
#[test]
fn llnl_atlas() {
    let Some(path) = trace("LLNL-Atlas-2006-2.1-cln.swf.gz") else { return };
    let workload = read(&path, &ReadOptions::default()).unwrap();
    let skipped: u64 = workload.left_out.values().sum();
    assert_eq!(workload.jobs.len() as u64 + skipped, 43_778);
    assert_eq!((workload.left_out["never ran"], workload.without_walltime()), (4_571, 6_294));
    assert_eq!((workload.cores_per_node, workload.utc_offset), (8, -28_800.0));
    assert_eq!(workload.jobs.iter().map(|job| job.nodes).max(), Some(1_140));

    let batch = ReadOptions { partition: Some("pbatch".into()), ..ReadOptions::default() };
    let batch = read(&path, &batch).unwrap();
    assert_eq!(batch.jobs.len(), 22_397);
}

/// KTH SP2 has 28,489 records, each of a job that ran and had asked for a time.
#[test]
fn kth_sp2() {
    let Some(path) = trace("KTH-SP2-1996.swf.gz") else { return };
    let workload = read(&path, &ReadOptions::default()).unwrap();
    assert_eq!((workload.jobs.len(), workload.left_out.len()), (28_489, 0));
    assert_eq!(workload.without_walltime(), 0);
    assert!(workload.jobs.iter().all(|job| job.recorded.is_some()));
    assert_eq!((workload.cores_per_node, workload.utc_offset), (1, 7_200.0));
}

#[test]
fn lines_and_records_are_bounded() {
    let options = ReadOptions::default();
    let long = "1 ".repeat(1 << 20);
    for error in [swf(long.as_bytes(), &options), sacct(long.as_bytes(), &options)] {
        assert_eq!(error.unwrap_err().message, "the line is longer than 1048576 bytes");
    }
    // A quote that nothing closes, in lines of eight bytes, after as many good records.
    let sound: Vec<String> = (0..200_000).map(|id| format!("{id},0,1,1\n")).collect();
    let sound = sound.concat();
    let open = format!("id,submit,run,nodes\n{sound}7,0,1,\"{}", "1,0,1,1\n".repeat(1 << 18));
    let error = csv(open.as_bytes()).unwrap_err();
    assert_eq!((error.line, &*error.message), (200_002, "the line is longer than 1048576 bytes"));
    assert_eq!(csv(&open.as_bytes()[..20 + sound.len()]).unwrap().jobs.len(), 200_000);
}
