//! Reads traffic as `from,to,bytes[,messages]`.

use topolane_fabric::{InputError, shown};

use super::refuse;
use crate::matrix::{Traffic, TrafficEntry};

/// Reads `from,to,bytes[,messages]` with a header line. Without a column for messages, each entry is one message. The
/// number of ranks is given by a line `# ranks: N` before the header, otherwise by the highest rank. A line `# entries:
/// N` gives the number of following lines, so that a truncated file is noticed.
///
/// # Errors
/// By line: a line of another form, and whatever [`Traffic::new`] refuses.
pub fn csv(text: &str) -> Result<Traffic, InputError> {
    let (mut ranks, mut expected) = (None, None);
    let mut columns: Option<TrafficColumns> = None;
    let mut entries = Vec::new();
    for (index, line) in text.lines().enumerate() {
        // A byte order mark is not part of the first line.
        let line = line.trim_start_matches('\u{feff}').trim();
        let here = |error: InputError| InputError::at(index + 1, error.message);
        if let Some(remark) = line.strip_prefix('#') {
            for (name, said) in [("ranks:", &mut ranks), ("entries:", &mut expected)] {
                if let Some(value) = remark.trim().strip_prefix(name) {
                    let count = count(name, value.trim()).map_err(here)?;
                    if columns.is_some() || said.replace(count).is_some() {
                        return Err(here(refuse(format!("{name} stands once, before the header"))));
                    }
                }
            }
        } else if let Some(columns) = columns.as_ref().filter(|_| !line.is_empty()) {
            let entry = columns.entry(line).map_err(here)?;
            entry.check(ranks.unwrap_or(Traffic::MOST as u32)).map_err(here)?;
            entries.push(entry);
        } else if !line.is_empty() {
            columns = Some(TrafficColumns::named(line).map_err(here)?);
        }
    }
    if columns.is_none() {
        return Err(refuse("no header: a traffic file begins with from,to,bytes"));
    }
    if let Some(count) = expected.filter(|&count| count as usize != entries.len()) {
        let found = entries.len();
        let why = format!("{found} entries where 'entries:' says {count}: this is no whole file");
        return Err(InputError::at(text.lines().count(), why));
    }
    let highest = entries.iter().map(|entry| entry.from.max(entry.to)).max();
    Traffic::new(ranks.unwrap_or(highest.map_or(0, |rank| rank + 1)), entries)
}

fn count(name: &str, text: &str) -> Result<u32, InputError> {
    let most = if name == "ranks:" { Traffic::MOST } else { u32::MAX as usize };
    let count = text.parse().ok().filter(|&count: &u32| count as usize <= most);
    count
        .ok_or_else(|| refuse(format!("{name} {} is not a whole number up to {most}", shown(text))))
}

/// The positions of the columns in a line.
struct TrafficColumns {
    count: usize,
    from: usize,
    to: usize,
    bytes: usize,
    messages: Option<usize>,
}

impl TrafficColumns {
    fn named(header: &str) -> Result<TrafficColumns, InputError> {
        let names: Vec<&str> = header.split(',').map(str::trim).collect();
        let place = |wanted: &str| names.iter().position(|name| *name == wanted);
        let needed = |wanted: &str| {
            place(wanted).ok_or_else(|| {
                refuse(format!("the header {} names no column {wanted}", shown(header)))
            })
        };
        if let Some(name) = names.iter().enumerate().find(|(at, name)| place(name) != Some(*at)) {
            return Err(refuse(format!("the header names column {} twice", shown(name.1))));
        }
        Ok(TrafficColumns {
            count: names.len(),
            from: needed("from")?,
            to: needed("to")?,
            bytes: needed("bytes")?,
            messages: place("messages"),
        })
    }

    fn entry(&self, line: &str) -> Result<TrafficEntry, InputError> {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        if cells.len() != self.count {
            let (found, count) = (cells.len(), self.count);
            return Err(refuse(format!(
                "{} has {found} cells, the header {count} columns",
                shown(line)
            )));
        }
        let rank = |name: &str, text: &str| {
            text.parse::<u32>().map_err(|_| {
                refuse(format!("{name} {} is not a rank, counted from 0", shown(text)))
            })
        };
        let figure = |name: &str, text: &str| {
            text.parse::<f64>()
                .map_err(|_| refuse(format!("{name} {} is not a number", shown(text))))
        };
        Ok(TrafficEntry {
            from: rank("from", cells[self.from])?,
            to: rank("to", cells[self.to])?,
            bytes: figure("bytes", cells[self.bytes])?,
            messages: self.messages.map_or(Ok(1.0), |at| figure("messages", cells[at]))?,
        })
    }
}
