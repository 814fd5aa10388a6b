//! What LLDP tells devices of their neighbours: `lldpctl -f json` of each, under the name of the device.

use std::collections::HashMap;

use super::cable_list::{ListedCable, Port, machine_of};
use super::yaml::{Kind, Value, documents};
use super::{Options, Read};
use crate::error::{InputError, shown};

/// Reads `{"leaf1": {"lldp": {"interface": ...}}, ...}`. A cable may be told by one of its ends or by both. The domain of a
/// device's name does not count.
///
/// # Errors
/// With its line: another form, a neighbour without a name or a port, a port with two neighbours; and what [`machine_of`]
/// refuses.
pub fn lldp(text: &str, options: &Options) -> Result<Read, InputError> {
    let mut seen: HashMap<(Port, Port), usize> = HashMap::new();
    let mut cables: Vec<ListedCable> = Vec::new();
    for document in &documents(text, &[])? {
        if document.get("lldp").is_some() {
            let message = "whose neighbours these are is not said: write {\"NAME\": {\"lldp\": ...}} of every device";
            return Err(document.refuse(message.to_owned()));
        }
        for (device, told) in document.map("the file")? {
            for (port, neighbour) in interfaces(device, told)? {
                let own = Port::of(host_part(device), port, neighbour.line)?;
                let far = far_end(&own, neighbour)?;
                if seen.contains_key(&(far.clone(), own.clone())) {
                    continue; // told by the other end
                }
                if seen.insert((own.clone(), far.clone()), neighbour.line).is_none() {
                    cables.push(ListedCable { ends: [own, far], line: neighbour.line });
                }
            }
        }
    }
    machine_of(&cables, Vec::new(), options)
}

/// The name without its domain.
fn host_part(name: &str) -> &str {
    name.split('.').next().unwrap_or(name)
}

/// The interfaces of a device with what each of its neighbours told: a list of maps, or one map if there are few.
fn interfaces<'a>(device: &str, told: &'a Value) -> Result<Vec<(&'a str, &'a Value)>, InputError> {
    let refuse =
        || told.refuse(format!("{} has no lldp: this is not `lldpctl -f json`", shown(device)));
    let told = told.get("lldp").ok_or_else(refuse)?;
    let Some(interfaces) = told.get("interface") else { return Ok(Vec::new()) };
    let maps = match &interfaces.kind {
        Kind::List(maps) => maps.iter().collect(),
        _ => vec![interfaces],
    };
    let mut found = Vec::new();
    for map in maps {
        for (port, neighbour) in map.map("interface")? {
            found.push((port.as_str(), neighbour));
        }
    }
    Ok(found)
}

fn far_end(own: &Port, neighbour: &Value) -> Result<Port, InputError> {
    let lacks = |what: &str| {
        let (port, device) = (shown(&own.name), shown(&own.device));
        neighbour.refuse(format!("the neighbour on port {port} of {device} tells no {what}"))
    };
    let chassis = neighbour.get("chassis").ok_or_else(|| lacks("chassis"))?.map("chassis")?;
    let name = match chassis {
        // Without a name the chassis itself stands here, whose identifier is a map too.
        [(name, Value { kind: Kind::Map(_), .. })] if name != "id" => host_part(name),
        _ => return Err(lacks("name")),
    };
    let port = neighbour.get("port").ok_or_else(|| lacks("port"))?;
    let text = |value: Option<&Value>, what: &str| {
        value.map(|value| value.text(what).map(str::to_owned)).transpose()
    };
    let id = port.get("id");
    let kind = text(id.and_then(|id| id.get("type")), "the type of a port")?;
    let value = text(id.and_then(|id| id.get("value")), "the id of a port")?;
    // Linux hosts give the address of the interface as its id, and its name as the description.
    let named =
        value.filter(|_| kind.as_deref() == Some("ifname") || kind.as_deref() == Some("local"));
    let described = text(port.get("descr"), "the description of a port")?;
    let port = named.or(described).ok_or_else(|| lacks("name of a port"))?;
    Port::of(name, &port, neighbour.line)
}
