//! Reads the `[[network]]` tables of a machine file: other networks over the same nodes.

use std::collections::HashMap;
use std::fmt::Write;

use serde::Deserialize;
use toml::Spanned;

use super::assemble::at_line;
use super::toml_lines::TomlLines;
use crate::error::{InputError, shown};
use crate::hostlist::{compress, expand, plain};

/// The most servers of one network. It is limited because every node has a route to each of them.
const MOST_SERVERS: usize = 1024;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NetworkTable {
    name: Spanned<String>,
    file: Spanned<String>,
    servers: Option<Spanned<String>>,
}

/// Another network over the nodes of a machine, such as the storage network. Its file is not read yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkEntry {
    /// The name of the network, unique in the machine.
    pub name: String,
    /// The file that describes it, relative to the machine file.
    pub file: String,
    /// Names of the hosts with which all jobs exchange data; empty if jobs send between their own nodes.
    pub servers: Vec<String>,
    /// The lines of the name and of the servers, for error messages.
    pub lines: (usize, usize),
}

impl NetworkEntry {
    /// Returns the entry as text of a machine file.
    pub fn toml(&self) -> String {
        let quoted = |text: &str| toml::Value::from(text).to_string();
        let (name, file) = (quoted(&self.name), quoted(&self.file));
        let mut text = format!("\n[[network]]\nname = {name}\nfile = {file}\n");
        if !self.servers.is_empty() {
            let names: Vec<String> = self.servers.iter().map(|name| plain(name)).collect();
            let servers = compress(names.iter().map(String::as_str));
            let _ = writeln!(text, "servers = {}", quoted(&servers));
        }
        text
    }
}

/// Checks the networks of a machine file.
pub(super) fn entries(
    lines: &TomlLines,
    tables: Vec<NetworkTable>,
) -> Result<Vec<NetworkEntry>, InputError> {
    let mut line_of: HashMap<String, usize> = HashMap::new();
    let mut entries = Vec::with_capacity(tables.len());
    for NetworkTable { name, file, servers } in tables {
        let line = lines.at(name.span().start);
        let name = lines.name(name)?;
        let refuse = |line: usize, what: String| {
            InputError::at(line, format!("network {} {what}", shown(&name)))
        };
        if name.is_empty() {
            return Err(refuse(line, "has no name".to_owned()));
        }
        if let Some(first) = line_of.insert(name.clone(), line) {
            return Err(refuse(line, format!("stands on line {first} already")));
        }
        let file_line = lines.at(file.span().start);
        let file = file.into_inner();
        if file.is_empty() {
            return Err(refuse(file_line, "names no file".to_owned()));
        }
        let servers_line = servers.as_ref().map_or(line, |servers| lines.at(servers.span().start));
        let servers = match servers {
            Some(list) => {
                let hosts = expand(list.get_ref()).map_err(|error| at_line(error, servers_line))?;
                check_servers(&hosts).map_err(|what| refuse(servers_line, what))?;
                hosts
            }
            None => Vec::new(),
        };
        entries.push(NetworkEntry { name, file, servers, lines: (line, servers_line) });
    }
    Ok(entries)
}

fn check_servers(servers: &[String]) -> Result<(), String> {
    if servers.is_empty() {
        return Err("has no servers in 'servers'".to_owned());
    }
    if servers.len() > MOST_SERVERS {
        return Err(format!("has {} servers, more than {MOST_SERVERS}", servers.len()));
    }
    let mut sorted: Vec<&String> = servers.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("names server {} twice", shown(pair[0]))),
        None => Ok(()),
    }
}
