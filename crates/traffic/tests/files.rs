//! A traffic file gives what its matrix holds, and a bad one is refused with its line and value.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use topolane_traffic::{Traffic, TrafficEntry, read, traffic_csv};

fn entries() -> impl Strategy<Value = Vec<TrafficEntry>> {
    let entry = (0u32..50, 0u32..50, 0.0..1e15f64, 0.0..1e6f64);
    let entry =
        entry.prop_map(|(from, to, bytes, messages)| TrafficEntry { from, to, bytes, messages });
    prop::collection::vec(entry, 0..100)
}

proptest! {
    /// Traffic that is written is read back bit for bit, and written again the same.
    #[test]
    fn csv_to_traffic_to_csv(entries in entries(), more in 0u32..3) {
        let traffic = Traffic::new(50 + more, entries).unwrap();
        let text = traffic_csv(&traffic);
        let back = read::csv(&text).unwrap();
        prop_assert_eq!(&back, &traffic);
        prop_assert_eq!(traffic_csv(&back), text);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "(#|ranks: |from,to,bytes\n|[0-9,.eNa\\-]{0,8}|\n|\\PC){0,30}") {
        let _ = read::csv(&text);
    }
}

#[test]
fn columns_may_stand_in_any_order_and_entries_add_up() {
    let text = "\u{feff}# a remark\r\nnote, bytes,to,from\r\n\r\na,1.5,1,0\nb,2,1,0\nc,9,2,2\n";
    let traffic = read::csv(text).unwrap();
    let sum = TrafficEntry { from: 0, to: 1, bytes: 3.5, messages: 2.0 };
    assert_eq!((traffic.ranks(), traffic.entries()), (3, &[sum][..]));
}

#[test]
fn bad_lines_are_named() {
    let header = "# ranks: 4\nfrom,to,bytes,messages\n0,1,2,3\n";
    for (line, says) in [
        ("4,0,1,1", "rank 4 is not among the 4 ranks"),
        ("0,9,1,1", "rank 9 is not among the 4 ranks"),
        ("-1,0,1,1", "from \"-1\" is not a rank"),
        ("0,1.5,1,1", "to \"1.5\" is not a rank"),
        ("0,4294967296,1,1", "to \"4294967296\" is not a rank"),
        ("0,1,-8,1", "bytes from rank 0 to rank 1 must be 0 or from 1e-30 to 1e30, not -8"),
        ("0,1,NaN,1", "not NaN"),
        ("0,1,inf,1", "not inf"),
        ("0,1,8,-1", "messages from rank 0 to rank 1"),
        ("0,1,many,1", "bytes \"many\" is not a number"),
        ("0,1,,1", "bytes \"\" is not a number"),
        ("0,1,8", "\"0,1,8\" has 3 cells, the header 4 columns"),
        ("0,1,8,1,", "has 5 cells"),
        ("# ranks: 5", "ranks: stands once, before the header"),
        ("# entries: 1", "entries: stands once, before the header"),
    ] {
        let error = read::csv(&format!("{header}{line}\n")).unwrap_err().in_file("t.csv");
        let message = error.to_string();
        assert!(message.starts_with("t.csv:4: ") && message.contains(says), "{message}");
    }
    for (text, at, says) in [
        ("", 0, "no header"),
        ("0,1,8\n", 1, "the header \"0,1,8\" names no column from"),
        ("from,to,size\n", 1, "names no column bytes"),
        ("from,to,to,bytes\n", 1, "names column \"to\" twice"),
        ("# ranks: many\nfrom,to,bytes\n", 1, "ranks: \"many\" is not a whole number"),
        ("# ranks: 4294967295\nfrom,to,bytes\n", 1, "is not a whole number up to 16777216"),
        ("# entries: -1\nfrom,to,bytes\n", 1, "entries: \"-1\" is not a whole number"),
        (
            "# entries: 2\nfrom,to,bytes\n0,1,8\n",
            3,
            "1 entries where 'entries:' says 2: this is no whole file",
        ),
        ("# entries: 0\nfrom,to,bytes\n0,1,8\n", 3, "1 entries where 'entries:' says 0"),
        ("from,to,bytes\n0,4294967295,1\n", 2, "rank 4294967295 is not among the 16777216"),
        ("from,to,bytes\n0,1,1e308\n", 2, "0 or from 1e-30 to 1e30, not 1e308"),
        ("from,to,bytes\n0,1,1e-320\n", 2, "0 or from 1e-30 to 1e30, not 1e-320"),
    ] {
        let error = read::csv(text).unwrap_err();
        assert!(error.line == at && error.message.contains(says), "{error:?}");
    }
}

#[test]
fn matrix_market_is_read_as_scipy_writes_it() {
    let entry = |from, to, bytes| TrafficEntry { from, to, bytes, messages: 1.0 };
    let general = "%%MatrixMarket matrix coordinate real general\n% remark\n\n3 3 3\n1 2 1.5e3\n3 1 2\n2 2 9\n";
    let both = [entry(0, 1, 1500.0), entry(2, 0, 2.0)];
    let symmetric = "%%MatrixMarket matrix coordinate integer symmetric\n3 3 1\n3 1 7\n";
    let mirrored = [entry(0, 2, 7.0), entry(2, 0, 7.0)];
    // The entries go column by column. A zero is no message.
    let array = "%%MatrixMarket matrix array real general\n2 2\n0\n5\n0\n0\n";
    let half = "%%MatrixMarket matrix array integer symmetric\n2 2\n0\n4\n0\n";
    let pattern = "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n";
    for (text, ranks, entries) in [
        (general, 3, &both[..]),
        (symmetric, 3, &mirrored),
        (array, 2, &[entry(1, 0, 5.0)]),
        (half, 2, &[entry(0, 1, 4.0), entry(1, 0, 4.0)]),
        (pattern, 2, &[entry(0, 1, 1.0)]),
    ] {
        let traffic = read::traffic(text).unwrap();
        assert_eq!((traffic.ranks(), traffic.entries()), (ranks, entries), "{text}");
    }
    // Text that is not Matrix Market is read as CSV.
    assert_eq!(read::traffic("from,to,bytes\n0,1,8\n").unwrap().ranks(), 2);
}

#[test]
fn bad_matrix_market_is_named() {
    let real = "%%MatrixMarket matrix coordinate real general\n";
    for (text, says) in [
        ("%%MatrixMarket matrix\n1 1 0\n".to_owned(), "line 1: "),
        (
            "%%MatrixMarket matrix coordinate complex general\n1 1 0\n".to_owned(),
            "line 1: a coordinate complex",
        ),
        (real.to_owned(), "the line with the size is missing"),
        (format!("{real}2 3 1\n"), "line 2: 2 x 3: a traffic matrix is square"),
        (format!("{real}99999999 99999999 1\n"), "line 2: 99999999 x 99999999"),
        (format!("{real}2 2\n"), "line 2: \"2 2\" is not the size"),
        (format!("{real}2 2 1\n3 1 5\n"), "line 3: rank 2 is not among the 2 ranks"),
        (format!("{real}2 2 1\n0 1 5\n"), "line 3: \"0\" is not a row or column, counted from 1"),
        (format!("{real}2 2 1\n1 2 -5\n"), "line 3: bytes from rank 0 to rank 1 must be 0 or"),
        (format!("{real}2 2 1\n1 2 nan\n"), "line 3: bytes from rank 0 to rank 1 must be 0 or"),
        (format!("{real}2 2 1\n1 2 x\n"), "line 3: \"x\" is not a number"),
        (format!("{real}2 2 1\n1 2\n"), "line 3: \"1 2\" is not an entry"),
        (format!("{real}2 2 2\n1 2 5\n"), "1 entries, but 2 announced"),
        (format!("{real}2 2 1\n1 2 5\n2 1 5\n"), "line 4: more entries than the 1 announced"),
    ] {
        let message = read::traffic(&text).unwrap_err().to_string();
        assert!(message.contains(says), "{text}: {message}");
    }
}

proptest! {
    #[test]
    fn any_matrix_market_is_read_or_refused(
        text in "%%MatrixMarket matrix (coordinate|array) (real|pattern) (general|symmetric)\n([0-9 .e\\-]{0,8}\n){0,8}",
    ) {
        let _ = read::traffic(&text);
    }
}
