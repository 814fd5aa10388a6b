//! Readers of traffic matrices.

use topolane_fabric::InputError;

use crate::matrix::{Entry, Traffic};

/// Reads `from,to,bytes[,messages]` with a header line; `# ranks: N` before it, or else the highest
/// rank, says how many ranks there are.
///
/// # Errors
/// A line that does not read so, and what [`Traffic::new`] refuses, by line.
pub fn csv(text: &str) -> Result<Traffic, InputError> {
    let mut ranks = None;
    let mut columns: Option<Vec<&str>> = None;
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        let refuse = |what: String| InputError::at(number, what);
        if let Some(remark) = line.strip_prefix('#') {
            if let Some(value) = remark.trim().strip_prefix("ranks:") {
                let count: u32 = value.trim().parse().map_err(|_| {
                    refuse(format!("ranks: {:?} is not a whole number", value.trim()))
                })?;
                ranks = Some(count);
            }
            continue;
        }
        if line.is_empty() {
            continue;
        }
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        let Some(names) = &columns else {
            for wanted in ["from", "to", "bytes"] {
                if !cells.contains(&wanted) {
                    return Err(refuse(format!("the header {line:?} names no column {wanted}")));
                }
            }
            columns = Some(cells);
            continue;
        };
        let cell = |name: &str| {
            let index = names.iter().position(|column| *column == name)?;
            cells.get(index).copied()
        };
        let rank = |name: &str| {
            let text = cell(name).unwrap_or_default();
            text.parse::<u32>()
                .map_err(|_| refuse(format!("{name} {text:?} is not a rank, counted from 0")))
        };
        let figure = |name: &str, text: &str| {
            text.parse::<f64>().map_err(|_| refuse(format!("{name} {text:?} is not a number")))
        };
        let entry = Entry {
            from: rank("from")?,
            to: rank("to")?,
            bytes: figure("bytes", cell("bytes").unwrap_or_default())?,
            messages: cell("messages").map_or(Ok(1.0), |text| figure("messages", text))?,
        };
        entry.check(ranks.unwrap_or(u32::MAX)).map_err(|error| refuse(error.message))?;
        entries.push(entry);
    }
    if columns.is_none() {
        return Err(InputError::whole("no header: a traffic file begins with from,to,bytes"));
    }
    let highest = entries.iter().map(|entry| entry.from.max(entry.to)).max();
    let ranks = ranks.unwrap_or(highest.map_or(0, |rank| rank + 1));
    Traffic::new(ranks, entries)
}
