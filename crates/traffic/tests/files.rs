//! A traffic file says what its matrix holds, and a bad one is refused by line and value.
#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use topolane_traffic::{Entry, Traffic, read, traffic_csv};

fn entries() -> impl Strategy<Value = Vec<Entry>> {
    let entry = (0u32..50, 0u32..50, 0.0..1e15f64, 0.0..1e6f64);
    let entry = entry.prop_map(|(from, to, bytes, messages)| Entry { from, to, bytes, messages });
    prop::collection::vec(entry, 0..100)
}

proptest! {
    /// What is written is read back bit for bit, and written again the same.
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
    let sum = Entry { from: 0, to: 1, bytes: 3.5, messages: 2.0 };
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
        ("0,1,-8,1", "bytes from rank 0 to rank 1 must be a finite number from 0, not -8"),
        ("0,1,NaN,1", "not NaN"),
        ("0,1,inf,1", "not inf"),
        ("0,1,8,-1", "messages from rank 0 to rank 1"),
        ("0,1,many,1", "bytes \"many\" is not a number"),
        ("0,1,,1", "bytes \"\" is not a number"),
        ("0,1,8", "\"0,1,8\" has 3 cells, the header 4 columns"),
        ("0,1,8,1,", "has 5 cells"),
        ("# ranks: 5", "ranks: stands once, before the header"),
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
        ("from,to,bytes\n0,4294967295,1\n", 2, "rank 4294967295 is not among the 16777216"),
        ("from,to,bytes\n0,1,1e308\n0,1,1e308\n", 0, "not inf"),
    ] {
        let error = read::csv(text).unwrap_err();
        assert!(error.line == at && error.message.contains(says), "{error:?}");
    }
}
