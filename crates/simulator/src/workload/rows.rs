//! Reads rows of comma-separated files with a header line.

use std::io::BufRead;

use csv::StringRecord;
use topolane_fabric::InputError;

use super::parse::{Records, shown, unreadable};

/// Passes the header to `begin`, then every row to `each`, together with the result of `begin`.
///
/// # Errors
/// Any error of `begin` or `each`, with the line; a row with the wrong number of fields, a record of more than a
/// mebibyte, an input without rows.
pub(super) fn rows<C>(
    input: impl BufRead,
    begin: impl FnOnce(&StringRecord) -> Result<C, String>,
    mut each: impl FnMut(&mut C, &StringRecord) -> Result<(), String>,
) -> Result<C, InputError> {
    let mut reader =
        csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(Records::new(input));
    let header = reader.headers().map_err(|error| broken(1, &error))?;
    let mut columns =
        begin(header).map_err(|message| InputError::at(1, without_header(header, message)))?;
    let mut row = StringRecord::new();
    let mut any = false;
    loop {
        reader.get_mut().begin();
        let line = reader.position().line() as usize;
        if !reader.read_record(&mut row).map_err(|error| broken(line, &error))? {
            break;
        }
        any = true;
        each(&mut columns, &row).map_err(|message| {
            InputError::at(row.position().map_or(0, |at| at.line() as usize), message)
        })?;
    }
    if any { Ok(columns) } else { Err(InputError::whole("a header line and no jobs")) }
}

/// The error for a bad header line, or for a first line that is not a header.
fn without_header(header: &StringRecord, message: String) -> String {
    let is_row = header.get(0).is_some_and(|cell| cell.parse::<f64>().is_ok());
    if is_row {
        let first = shown(header.get(0).unwrap_or_default().as_bytes());
        return format!(
            "no header line: the first line begins with {first}, where names of columns are expected"
        );
    }
    message
}

/// Rewords an error of the csv crate. `line` is where the record begins.
fn broken(line: usize, error: &csv::Error) -> InputError {
    let line = error.position().map_or(line, |at| at.line() as usize);
    match error.kind() {
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            InputError::at(line, format!("{len} fields, where the header has {expected_len}"))
        }
        csv::ErrorKind::Utf8 { .. } => InputError::at(line, "not UTF-8 text"),
        csv::ErrorKind::Io(error) => unreadable(line, error),
        _ => InputError::at(line, error.to_string()),
    }
}

/// The position of a column with one of these names; `None` if there is none.
///
/// # Errors
/// There are two such columns.
pub(super) fn find(header: &StringRecord, names: &[&str]) -> Result<Option<usize>, String> {
    let mut places =
        header.iter().enumerate().filter(|(_, name)| names.contains(name)).map(|(at, _)| at);
    match (places.next(), places.next()) {
        (first, None) => Ok(first),
        _ => Err(format!("two columns {}", names.join(" or "))),
    }
}

/// The position of a column with one of these names.
///
/// # Errors
/// There is no such column, or there are two.
pub(super) fn need(header: &StringRecord, names: &[&str]) -> Result<usize, String> {
    find(header, names)?.ok_or_else(|| format!("no column {}", names.join(" or ")))
}
