//! Writes traffic matrices.

use std::fmt::Write;

use crate::matrix::Traffic;

/// Returns the matrix as CSV, in the form that [`crate::read::csv`] reads.
pub fn traffic_csv(traffic: &Traffic) -> String {
    let mut text = format!("# ranks: {}\nfrom,to,bytes,messages\n", traffic.ranks());
    for entry in traffic.entries() {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{},{},{},{}", entry.from, entry.to, entry.bytes, entry.messages);
    }
    text
}
