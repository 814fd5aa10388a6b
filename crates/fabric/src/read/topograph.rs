//! Reads the files of NVIDIA's topograph: the JSON of its graph engine, and its machine models.

use std::collections::HashMap;

use super::labels::{Labelled, SwitchNames, machine_of};
use super::yaml::{Value, documents};
use super::{MachineOptions, Read};
use crate::check::DEEPEST;
use crate::error::{InputError, shown};
use crate::hostlist::expand;
use crate::node_kind::NodeKind;

use super::assemble::at_line;

/// The annotations of a model and the labels that mean the same.
const ANNOTATED: [&str; 2] =
    ["accelerator.topology.test/domain", "accelerator.topology.test/sub-domain"];

/// Reads the output of topograph's graph engine (`{"instances": [{"id", "network_layers", "labels"}]}`, layers from the
/// node up), or one of its models (`switches`, and `blocks` of nodes annotated with their domain).
///
/// # Errors
/// With its line: another form; a node that occurs twice; layers that put a switch in two positions; a switch under two
/// parents; a block without nodes, or on a switch that is not described; and labels that contradict each other.
pub fn topograph(text: &str, options: &MachineOptions) -> Result<Read, InputError> {
    let documents = documents(text, &[])?;
    let mut nodes = Vec::new();
    for document in &documents {
        match (document.get("instances"), document.get("blocks")) {
            (Some(instances), None) => {
                for instance in instances.list("instances")? {
                    nodes.push(of_instance(instance)?);
                }
            }
            (None, Some(blocks)) => of_model(document, blocks, &mut nodes)?,
            _ => return Err(document.refuse("neither instances nor blocks are named".to_owned())),
        }
    }
    machine_of(&nodes, vec![NodeKind::default()], SwitchNames::Unique, options)
}

fn of_instance(instance: &Value) -> Result<Labelled, InputError> {
    let id = instance
        .get("id")
        .ok_or_else(|| instance.refuse("an instance has no id".to_owned()))?
        .text("id")?;
    let mut node = Labelled::of(id, instance.line, instance.get("labels"))?;
    if let Some(layers) = instance.get("network_layers") {
        let layers = layers.list("network_layers")?.iter();
        let layers = layers.map(|layer| layer.text("a network layer").map(str::to_owned));
        node.way = layers.rev().collect::<Result<_, _>>()?;
    }
    Ok(node)
}

fn of_model(model: &Value, blocks: &Value, nodes: &mut Vec<Labelled>) -> Result<(), InputError> {
    let mut parents: HashMap<&str, (Option<&str>, usize)> = HashMap::new();
    let switches = model.get("switches").map_or(Ok(&[][..]), |map| map.map("switches"))?;
    for (name, switch) in switches {
        parents.entry(name).or_insert((None, switch.line));
        for child in switch.get("switches").map_or(Ok(&[][..]), |list| list.list("switches"))? {
            let child_name = child.text("a switch")?;
            let place = parents.entry(child_name).or_insert((None, child.line));
            if let Some(other) = place.0.replace(name) {
                return Err(child.refuse(format!(
                    "switch {} hangs on {} and on {}",
                    shown(child_name),
                    shown(name),
                    shown(other)
                )));
            }
        }
    }
    for block in blocks.list("blocks")? {
        let way = match block.get("switch") {
            Some(switch) => way_to(switch, &parents)?,
            None => Vec::new(),
        };
        let annotations = block.get("annotations");
        let annotation = |key| -> Result<Option<String>, InputError> {
            let value = annotations.and_then(|all| all.get(key));
            Ok(value.map(|value| value.text(key)).transpose()?.map(str::to_owned))
        };
        let [domain, sub_domain] = ANNOTATED.map(annotation);
        let (domain, sub_domain) = (domain?, sub_domain?);
        let mut any = false;
        for hosts in block.get("nodes").map_or(Ok(&[][..]), |list| list.list("nodes"))? {
            let names = expand(hosts.text("nodes")?).map_err(|error| at_line(error, hosts.line))?;
            for name in names {
                any = true;
                nodes.push(Labelled {
                    node: name,
                    line: hosts.line,
                    way: way.clone(),
                    domain: domain.clone(),
                    sub_domain: sub_domain.clone(),
                    ..Labelled::default()
                });
            }
        }
        if !any {
            let of =
                domain.as_deref().map_or_else(String::new, |d| format!(" of domain {}", shown(d)));
            return Err(block.refuse(format!("a block{of} has no nodes")));
        }
    }
    Ok(())
}

/// The switches from the top down to this one.
fn way_to(
    switch: &Value,
    parents: &HashMap<&str, (Option<&str>, usize)>,
) -> Result<Vec<String>, InputError> {
    let mut at = switch.text("switch")?;
    let mut way = vec![at.to_owned()];
    loop {
        let Some(&(parent, line)) = parents.get(at) else {
            return Err(switch.refuse(format!("switch {} is not described", shown(at))));
        };
        let Some(parent) = parent else { break };
        if way.len() > DEEPEST {
            let message = format!("switch {} lies in a cycle or too deep", shown(at));
            return Err(InputError::at(line, message));
        }
        way.push(parent.to_owned());
        at = parent;
    }
    way.reverse();
    Ok(way)
}
