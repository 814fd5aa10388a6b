//! Whatever the bytes, a reader returns jobs that keep the promises of `Job`, or an error.

use std::io::{BufReader, Write};

use flate2::{Compression, bufread::MultiGzDecoder, write::GzEncoder};
use proptest::prelude::*;
use topolane_simulator::Scenario;
use topolane_simulator::workload::{ReadOptions, csv, preset, sacct, swf};

const GOOD: [&str; 3] = [
    "; Version: 2.2\n; UnixStartTime: 1163199901\n; StartTime: Fri Nov 10 15:05:01 PST 2006\n\
     ; MaxNodes: 4\n; MaxProcs: 32\n; Partition: 1 pbatch\n\
     1 0 5 60 8 -1 -1 8 120 -1 1 -1 -1 -1 -1 1 -1 -1\n\
     2 9.5 5 60 16 -1 -1 16 120 -1 1 -1 -1 -1 -1 1 -1 -1\n",
    "JobID|Submit|Start|End|Elapsed|Timelimit|NNodes|NCPUS|ReqMem|State|Partition|NodeList\n\
     1_2|2026-11-21T19:12:48|2026-11-21T19:12:48|2026-11-21T19:13:00|00:00:12|1-00:00:00|4|64|4Gc|\
     COMPLETED|pbatch|cab[7-10]\n2|5|Unknown|Unknown|0|10|4|0|4G|PENDING|pbatch|\n",
    "id,submit,run,walltime,nodes,cores,memory,start,hosts\n1,0,60,120,1,4,1024,7,\"n[1,3]\"\n\
     2,9,60,,2,,,,\n",
];

/// Reads the bytes with every reader and checks the jobs.
fn read(bytes: &[u8], options: &ReadOptions) {
    for workload in [swf(bytes, options), sacct(bytes, options), csv(bytes)].into_iter().flatten() {
        assert!(workload.jobs.is_sorted_by(|a, b| a.submit <= b.submit));
        for job in &workload.jobs {
            assert!(job.nodes >= 1 && job.submit >= 0.0 && job.run >= 0.0);
            assert!(job.run.is_finite() && job.submit.is_finite());
            assert!(job.walltime.is_none_or(|walltime| walltime > 0.0));
        }
    }
}

fn options() -> impl Strategy<Value = ReadOptions> {
    let partition = prop_oneof![Just(None), Just(Some("pbatch".to_string()))];
    (prop::option::of(0..9_u32), partition, any::<bool>()).prop_map(
        |(cores_per_node, partition, shared)| ReadOptions {
            cores_per_node,
            partition,
            shared,
            gpus_per_node: cores_per_node,
        },
    )
}

proptest! {
    #[test]
    fn garbage(bytes in prop::collection::vec(any::<u8>(), 0..300), options in options()) {
        read(&bytes, &options);
    }

    #[test]
    fn text_of_the_characters_of_logs(
        text in "[-0-9;:|,.eET_+\n \"a-z]{0,200}", good in 0..3_usize, options in options(),
    ) {
        read(text.as_bytes(), &options);
        let header = GOOD[good].lines().next().unwrap_or_default();
        read(format!("{header}\n{text}").as_bytes(), &options);
    }

    #[test]
    fn logs_cut_off(good in 0..3_usize, at in 0..300_usize, options in options()) {
        let bytes = GOOD[good].as_bytes();
        read(&bytes[..at.min(bytes.len())], &options);
    }

    #[test]
    fn logs_with_bytes_changed(
        good in 0..3_usize,
        changes in prop::collection::vec((0..500_usize, any::<u8>()), 1..8),
        options in options(),
    ) {
        let mut bytes = GOOD[good].as_bytes().to_vec();
        for (at, byte) in changes {
            let length = bytes.len();
            bytes[at % length] = byte;
        }
        read(&bytes, &options);
    }

    #[test]
    fn values_of_any_size(good in 0..3_usize, word in 0..60_usize, value in any::<f64>(), whole in any::<i64>()) {
        for value in [value.to_string(), format!("{value:e}"), whole.to_string()] {
            let is_separator = |c: char| " |,\n".contains(c);
            let old = GOOD[good].split(is_separator).filter(|w| !w.is_empty()).nth(word);
            let text = GOOD[good].replacen(old.unwrap_or("60"), &value, 2);
            read(text.as_bytes(), &ReadOptions::default());
        }
    }

    #[test]
    fn gzip_cut_or_changed(at in 0..200_usize, byte in any::<u8>(), cut in any::<bool>()) {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(GOOD[0].as_bytes()).unwrap();
        let mut bytes = encoder.finish().unwrap();
        let at = at % bytes.len();
        if cut { bytes.truncate(at) } else { bytes[at] = byte }
        let plain = BufReader::new(MultiGzDecoder::new(bytes.as_slice()));
        let _ = swf(plain, &ReadOptions::default());
    }

    #[test]
    fn names(text in ".{0,12}", suffix in "(cab-(aug|sep)|exp)-?[-0-9.enxNaif]{0,6}") {
        let _ = text.parse::<Scenario>();
        let _ = suffix.parse::<Scenario>();
        // A mix of millions of nodes would only be slow; here the name alone must not panic.
        let _ = preset(&text, 1);
        let _ = preset(&suffix, 1);
    }
}

/// A negative word of digits that wraps around to the least number, which has no positive twin. It is refused like any
/// other word that is too long.
#[test]
fn a_word_that_wraps_to_the_least_number() {
    let word = (-6.310_994_059_082_72e73_f64).to_string();
    let text = GOOD[0].replacen("60", &word, 2);
    assert!(swf(text.as_bytes(), &ReadOptions::default()).is_err());
}
