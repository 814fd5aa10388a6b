//! Hostlist expressions give the names that `scontrol show hostnames` prints for them.

use proptest::prelude::*;
use topolane_fabric::{compress, expand};

#[test]
fn expands_as_slurm_does() {
    let cases = [
        ("", ""),
        ("login", "login"),
        ("n1]x", "error"),
        ("cab[1-3,5]", "cab1 cab2 cab3 cab5"),
        ("n[001-003,5]", "n001 n002 n003 n5"),
        ("n[09-11]", "n09 n10 n11"),
        ("n[1-03]", "n1 n2 n3"),
        ("n[001-3]", "n001 n002 n003"),
        ("rack[0-1]n[1-2]", "rack0n1 rack0n2 rack1n1 rack1n2"),
        ("n[1-2][3-4]", "n13 n14 n23 n24"),
        ("a,b[1-2],,c d,", "a b1 b2 c d"),
        ("[1-2]", "1 2"),
    ];
    for (text, names) in cases {
        match expand(text) {
            Ok(found) => assert_eq!(found.join(" "), names, "{text}"),
            Err(_) => assert_eq!(names, "error", "{text}"),
        }
    }
}

#[test]
fn refuses_what_is_not_a_hostlist() {
    for text in [
        "n[3-1]",
        "n[]",
        "n[1,]",
        "n[a]",
        "n[1-2-3]",
        "n[1",
        "n1]",
        "n[[1]]",
        "unit[0-3]rack",
        "n[-1]",
        "n[1-]",
        "n[+1-2]",
        "n[ 1]",
        "n[1-99999999999999999999]",
        "n[0-1000000]",
        "n[0-999]m[0-999],x",
        "n[0-999]m[0-999]p[0-999]q[0-999]r[0-999]s[0-999]t[0-999]",
    ] {
        let error = expand(text).expect_err(text);
        assert!(error.message.starts_with("hostlist"), "{error}");
    }
    assert!(expand(&format!("{}[1-9]", "n".repeat(256))).is_err());
    assert_eq!(expand("n[0-999]m[0-999]").map(|names| names.len()), Ok(1_000_000));
}

#[test]
fn compresses_runs_and_keeps_order_and_width() {
    for (names, text) in [
        ("n1 n2 n3", "n[1-3]"),
        ("n9 n10", "n[9-10]"),
        ("n09 n10", "n[09-10]"),
        ("n099 n100 n101", "n[099-101]"),
        ("n9 n010", "n[9,010]"),
        ("a1 b1 a2", "a1,b1,a2"),
        ("n3 n1 n2", "n[3,1-2]"),
        ("r0n1 r0n2 r1n1 r1n2", "r0n[1-2],r1n[1-2]"),
        ("n1 n1", "n[1,1]"),
        ("login", "login"),
        ("x x1 x", "x,x1,x"),
        ("n99999999999999999999 n1", "n99999999999999999999,n1"),
        ("", ""),
    ] {
        assert_eq!(compress(names.split_whitespace()), text);
    }
}

proptest! {
    /// Whatever the names, writing and reading a hostlist gives them back in their order.
    #[test]
    fn compress_then_expand_gives_the_names(
        names in prop::collection::vec("[a-z.é-]{0,2}(0{0,2}[0-9]{1,2}|9999999999999999[0-9]{0,5})?", 0..40),
    ) {
        let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        let text = compress(names.iter().map(String::as_str));
        prop_assert_eq!(expand(&text), Ok(names), "{}", text);
    }

    /// No text makes the reader panic.
    #[test]
    fn any_text_is_read_or_refused(text in "[n0-9\\[\\],\\- é]{0,24}") {
        let _ = expand(&text);
    }
}

#[test]
fn names_are_bounded_and_printable() {
    let most = |text: &str| expand(text).map(|names| names.len()).map_err(|error| error.message);
    assert_eq!(most("n[1-1000000]"), Ok(1_000_000));
    let long = "n".repeat(200);
    for (text, says) in [
        (format!("{long}[1-1000000]"), "makes names of more than 33554432 letters"),
        (format!("{long}x{long}"), "has a name of more than 255 letters"),
        ("n[1-1]".repeat(1000), "has a name of more than 255 letters"),
        ("n\u{1b}c".to_owned(), "holds a control character"),
        ("a,n\u{202e}1".to_owned(), "holds a control character"),
    ] {
        let message = most(&text).unwrap_err();
        assert!(message.contains(says) && message.len() < 300, "{message}");
    }
}
