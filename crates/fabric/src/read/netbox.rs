//! Reads the cables of `NetBox`: the table that its web interface exports, the one that it imports, or the answer of
//! its REST API.

use std::collections::{BTreeMap, HashMap, HashSet};

use super::cable_list::{ListedCable, NamedPort, machine_of, skipped};
use super::yaml::{Value, documents};
use super::{MachineOptions, Read};
use crate::error::{InputError, shown};

/// The columns of each side (device, port, port type), and of the cable (type, status).
const EXPORTED: NetboxColumns = NetboxColumns {
    sides: [["Device A", "Termination A", ""], ["Device B", "Termination B", ""]],
    cable: ["Type", "Status"],
};
const IMPORTED: NetboxColumns = NetboxColumns {
    sides: [
        ["side_a_device", "side_a_name", "side_a_type"],
        ["side_b_device", "side_b_name", "side_b_type"],
    ],
    cable: ["type", "status"],
};
/// The columns of an export that identifies the ends of a cable only by database ids.
const NUMBERED: [&str; 2] = ["termination_a_id", "termination_b_id"];
const INTERFACE: &str = "dcim.interface";

struct NetboxColumns {
    sides: [[&'static str; 3]; 2],
    cable: [&'static str; 2],
}

/// Whether a line shows that a text is a list of `NetBox` cables.
pub(super) fn is_netbox(line: &str) -> bool {
    let has = |columns: &NetboxColumns| {
        columns.sides.iter().all(|[device, port, _]| line.contains(device) && line.contains(port))
    };
    line.contains("\"a_terminations\"")
        || has(&EXPORTED)
        || has(&IMPORTED)
        || NUMBERED.iter().all(|column| line.contains(column))
}

/// Reads cables. Cables that do not join interfaces, are not connected, or are repeated are skipped and counted.
///
/// # Errors
/// With its line: a table without a required column, a row with the wrong number of fields, an end without a device or
/// with several, a single page of several; and whatever [`machine_of`] refuses.
pub fn netbox(text: &str, options: &MachineOptions) -> Result<Read, InputError> {
    let mut list = List::default();
    if text.trim_start().starts_with(['[', '{']) {
        for document in &documents(text, &[])? {
            list.add_answer(document)?;
        }
    } else {
        list.add_table(text)?;
    }
    list.skip_repeated();
    let notes = skipped(["cable", "cables"], &list.skipped);
    machine_of(&list.cables, &HashMap::new(), notes, options)
}

#[derive(Default)]
struct List {
    cables: Vec<ListedCable>,
    skipped: BTreeMap<&'static str, usize>,
}

impl List {
    fn skip(&mut self, why: &'static str) {
        *self.skipped.entry(why).or_default() += 1;
    }

    /// Drops repetitions of cables that are listed once from each end.
    fn skip_repeated(&mut self) {
        let mut seen = HashSet::new();
        let before = self.cables.len();
        self.cables.retain(|cable| {
            let [a, b] = cable.ends.clone();
            seen.insert(if a <= b { [a, b] } else { [b, a] })
        });
        (self.cables.len()..before).for_each(|_| self.skip("it is listed already"));
    }

    /// Whether a cable with this type and status belongs to the network; if not, counts it as skipped.
    fn is_connected(&mut self, kind: &str, status: &str) -> bool {
        if kind.eq_ignore_ascii_case("power") {
            self.skip("it carries power");
        } else if !status.is_empty() && !status.eq_ignore_ascii_case("connected") {
            self.skip("it is not connected");
        } else {
            return true;
        }
        false
    }

    fn add_table(&mut self, text: &str) -> Result<(), InputError> {
        let mut lines = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
        let Some((header, line)) = lines.next() else {
            return Err(InputError::whole("there is no cable"));
        };
        let header = fields(header.trim_start_matches('\u{feff}'), line)?;
        let of = |name: &str| header.iter().position(|column| column == name);
        if NUMBERED.iter().all(|column| of(column).is_some()) {
            let message = "this export of NetBox has numbers for the ends of its cables and lacks the names of devices and ports: \
                           export the table of cables with the columns Device A, Termination A, Device B and Termination B";
            return Err(InputError::at(line, message));
        }
        let columns = if of(IMPORTED.sides[0][0]).is_some() { IMPORTED } else { EXPORTED };
        let needed = |name: &'static str| {
            of(name)
                .ok_or_else(|| InputError::at(line, format!("there is no column {}", shown(name))))
        };
        let mut sides = Vec::new();
        for [device, port, kind] in columns.sides {
            sides.push((needed(device)?, needed(port)?, of(kind)));
        }
        let [kind, status] = columns.cable.map(of);
        for (row, line) in lines {
            let row = fields(row, line)?;
            if row.len() != header.len() {
                let message =
                    format!("{} fields, not the {} of the header", row.len(), header.len());
                return Err(InputError::at(line, message));
            }
            let value = |column: Option<usize>| column.map_or("", |column| row[column].as_str());
            if !self.is_connected(value(kind), value(status)) {
                continue;
            }
            if sides.iter().any(|&(_, _, kind)| !["", INTERFACE].contains(&value(kind))) {
                self.skip("an end is no interface");
                continue;
            }
            let end = |(device, port, _): (usize, usize, Option<usize>)| {
                let (device, port) = (&row[device], &row[port]);
                let ends = device.split(',').count().max(port.split(',').count());
                if ends > 1 {
                    let what = format!("{} of {}", shown(port), shown(device));
                    return Err(InputError::at(line, several_ends(&what, ends)));
                }
                NamedPort::of(device, port, line)
            };
            self.cables.push(ListedCable { ends: [end(sides[0])?, end(sides[1])?], line });
        }
        Ok(())
    }

    fn add_answer(&mut self, answer: &Value) -> Result<(), InputError> {
        let cables = answer.get("results").unwrap_or(answer);
        if let Some(next) = answer.get("next") {
            let message = "the answer is one page of several: ask NetBox with ?limit=0";
            return Err(next.refuse(message.to_owned()));
        }
        for cable in cables.list("results")? {
            let kind = choice(cable, "type")?;
            let status = choice(cable, "status")?;
            if !self.is_connected(kind, status) {
                continue;
            }
            let ends = [end(cable, "a_terminations")?, end(cable, "b_terminations")?];
            match ends {
                [Some(one), Some(other)] => {
                    self.cables.push(ListedCable { ends: [one, other], line: cable.line });
                }
                _ => self.skip("an end is no interface"),
            }
        }
        Ok(())
    }
}

/// The error message for a breakout cable.
fn several_ends(what: &str, ends: usize) -> String {
    format!(
        "{what}: one side of this cable has {ends} ends (a breakout cable): give a cable for each of them, between ports of their \
         own"
    )
}

/// A value of a cable: a text, or a map with the text under `value`.
fn choice<'a>(cable: &'a Value, key: &str) -> Result<&'a str, InputError> {
    match cable.get(key) {
        Some(found) => found.get("value").unwrap_or(found).text(key),
        None => Ok(""),
    }
}

/// The interface at an end of a cable; `None` if the end is not an interface.
fn end(cable: &Value, key: &str) -> Result<Option<NamedPort>, InputError> {
    let needed =
        |value: &Value, what: &str| value.refuse(format!("{key} of a cable says no {what}"));
    let ends = cable.get(key).ok_or_else(|| needed(cable, "interface"))?.list(key)?;
    let [end] = ends else {
        let message = match ends.len() {
            0 => format!("{key} of a cable has 0 entries, not 1"),
            count => several_ends(&format!("{key} of a cable"), count),
        };
        return Err(cable.refuse(message));
    };
    if choice(end, "object_type")? != INTERFACE {
        return Ok(None);
    }
    let port = end.get("object").ok_or_else(|| needed(end, "object"))?;
    let device = port.get("device").ok_or_else(|| needed(port, "device"))?;
    let name = |value: &Value, what: &str| {
        value.get("name").ok_or_else(|| needed(value, what))?.text("name").map(str::to_owned)
    };
    NamedPort::of(
        &name(device, "name of a device")?,
        &name(port, "name of an interface")?,
        port.line,
    )
    .map(Some)
}

/// Splits a line of CSV into fields. A field may be in quotes; two quotes inside it stand for one.
fn fields(row: &str, line: usize) -> Result<Vec<String>, InputError> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut letters = row.trim_end().chars().peekable();
    while let Some(letter) = letters.next() {
        let field = fields.len() - 1;
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                fields[field].push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            _ => fields[field].push(letter),
        }
    }
    if quoted {
        let message = format!("a quote is not closed: {}", shown(row.trim_end()));
        return Err(InputError::at(line, message));
    }
    Ok(fields.into_iter().map(|field| field.trim().to_owned()).collect())
}
