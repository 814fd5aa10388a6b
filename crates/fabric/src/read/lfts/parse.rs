//! Parses the lines of a dump of forwarding tables.

use crate::error::{InputError, shown};

use super::super::lids::HIGHEST;

/// The forwarding table of one switch.
pub(super) struct ForwardingTable {
    pub guid: u64,
    pub name: String,
    /// The line of the table's heading.
    pub line: usize,
    pub entries: Vec<ForwardingEntry>,
}

/// An entry: the port by which a switch sends to a LID.
pub(super) struct ForwardingEntry {
    pub lid: u16,
    pub port: u8,
    /// Whether the dump says that it knows no port with this LID.
    pub unknown: bool,
    pub line: usize,
}

/// Parses a dump of `opensm` or of `dump_fts`. They differ in the heading and in the text after an entry's port:
///
/// ```text
/// Unicast lids [0-53] of switch Lid 2 guid 0x0000000000200000 ('leaf0'):
/// 0x0001 001 # Channel Adapter portguid 0x0000000000100001: 'toy1'
/// 53 lids dumped
///
/// Unicast lids [0x0-0x35] of switch DR path slid 0; dlid 0; 0,1 guid 0x0000000000200000 (leaf0):
///   Lid  Out   Destination
///        Port     Info
/// 0x0001 001 : (Channel Adapter portguid 0x0000000000100001: 'toy1')
/// 53 valid lids dumped
/// ```
///
/// In the last line, `opensm` gives the highest LID, `dump_fts` the number of entries.
pub(super) fn tables(text: &str) -> Result<Vec<ForwardingTable>, InputError> {
    let mut tables: Vec<ForwardingTable> = Vec::new();
    let mut open = false;
    for (index, line) in text.lines().enumerate() {
        let (number, line) = (index + 1, line.trim());
        let refuse = |what: &str| InputError::at(number, format!("{what}: {}", shown(line)));
        if line.starts_with("Unicast lids") {
            if let Some(table) = tables.last().filter(|_| open) {
                return Err(breaks_off(table));
            }
            tables.push(heading(line, number).ok_or_else(|| {
                refuse("a heading should name its switch as in 'guid 0x... (leaf0):', not")
            })?);
            open = true;
        } else if line.starts_with("0x") {
            let table = tables.last_mut().filter(|_| open);
            let table = table.ok_or_else(|| refuse("an entry stands outside of a table"))?;
            table.entries.push(entry(line, number).ok_or_else(|| {
                refuse("an entry should read like '0x0001 005 # ...' or '0x0001 005 : ...', not")
            })?);
        } else if let Some(count) = line.strip_suffix("lids dumped") {
            let table = tables.last_mut().filter(|_| open);
            let table = table.ok_or_else(|| refuse("the end of a table that did not begin"))?;
            let entries = table.entries.len();
            if let Some(count) = count.trim_end().strip_suffix("valid")
                && count.trim_end().parse() != Ok(entries)
            {
                return Err(refuse(&format!("the table has {entries} entries, not as it says")));
            }
            check_twice(table)?;
            open = false;
        } else if !(line.is_empty() || line.starts_with("Lid ") || line.starts_with("Port ")) {
            return Err(refuse("not a line of a dump of forwarding tables"));
        }
    }
    match tables.last() {
        None => Err(InputError::whole("no forwarding table: no line begins with 'Unicast lids'")),
        Some(table) if open => Err(breaks_off(table)),
        Some(_) => Ok(tables),
    }
}

fn breaks_off(table: &ForwardingTable) -> InputError {
    let message = format!(
        "the table of switch {} breaks off: no line '... lids dumped' ends it (a file cut short?)",
        table.name
    );
    InputError::at(table.line, message)
}

fn heading(line: &str, number: usize) -> Option<ForwardingTable> {
    let (_, switch) = line.split_once(" of switch ")?;
    let (_, switch) = switch.split_once(" guid 0x")?;
    let (guid, name) = switch.split_once(' ')?;
    let name = name.strip_prefix('(')?.strip_suffix("):")?;
    let name = name.strip_prefix('\'').and_then(|n| n.strip_suffix('\'')).unwrap_or(name);
    let guid = u64::from_str_radix(guid, 16).ok()?;
    Some(ForwardingTable { guid, name: name.to_owned(), line: number, entries: Vec::new() })
}

/// Parses `0x0001 005 # Switch ...`. It requires four digits of LID and three of port, so that truncated lines are
/// noticed.
fn entry(line: &str, number: usize) -> Option<ForwardingEntry> {
    let (lid, rest) = line.strip_prefix("0x")?.split_once(' ')?;
    let (port, remark) = rest.split_once(' ')?;
    let remark = remark.strip_prefix(['#', ':'])?;
    let digits = |text: &str, count: usize, radix: u32| {
        text.len() == count && text.chars().all(|digit| digit.is_digit(radix))
    };
    if !digits(lid, 4, 16) || !digits(port, 3, 10) {
        return None;
    }
    let lid = u16::from_str_radix(lid, 16).ok().filter(|lid| (1..=HIGHEST).contains(lid))?;
    let unknown = remark.trim_start_matches([' ', '(']).starts_with("unknown");
    Some(ForwardingEntry { lid, port: port.parse().ok()?, unknown, line: number })
}

fn check_twice(table: &mut ForwardingTable) -> Result<(), InputError> {
    table.entries.sort_by_key(|entry| entry.lid);
    let twice = table.entries.windows(2).find(|pair| pair[0].lid == pair[1].lid);
    let Some([first, second]) = twice else { return Ok(()) };
    let message = format!(
        "the table of switch {} has LID 0x{:04x} on line {} already",
        table.name, second.lid, first.line
    );
    Err(InputError::at(second.line, message))
}
