//! Assigns network adapters to hosts, and numbers the adapters of each host.
//!
//! An adapter is described as `host mlx5_5` or `host HCA-6`. If the host has set no description, it has only the
//! adapter model. Several hosts may also share a name, such as `localhost`; then adapters on different cards have the
//! same description. Both kinds are assigned by their position: hosts on the same leaf switches use the same port on
//! each, or at least the same order of ports.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::devices::{Device, Role, host_name, switch_names};
use super::homes::leaf_groups;
use super::natural::natural_order;
use crate::error::{InputError, shown};

/// The host and number of an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Adapter {
    pub host: String,
    /// The number among the host's adapters, from 0. If a host lacks an adapter, its number is not used.
    pub number: u32,
}

/// For each device that is a connected adapter, its host; and the assumptions made, a sentence each.
pub(super) fn adapters(
    devices: &[Device],
) -> Result<(Vec<Option<Adapter>>, Vec<String>), InputError> {
    let is_adapter = |device: &Device| device.role == Role::Host && !device.ports.is_empty();
    let (mut nameless, mut named): (Vec<usize>, Vec<usize>) = (0..devices.len())
        .filter(|&index| is_adapter(&devices[index]))
        .partition(|&index| is_model(devices[index].description));
    let shared = shared_names(devices, &named);
    let (ambiguous, alone): (Vec<usize>, Vec<usize>) =
        named.into_iter().partition(|&index| shared.contains(host_name(&devices[index])));
    named = alone;
    // Further adapters on a card belong to the host of the first one.
    let mut cards: HashMap<(&str, u64), usize> = HashMap::new();
    let mut others = Vec::new();
    for &index in &ambiguous {
        let card = devices[index].image.map(|image| (host_name(&devices[index]), image));
        match card.map(|card| *cards.entry(card).or_insert(index)) {
            Some(first) if first != index => others.push((index, first)),
            _ => nameless.push(index),
        }
    }
    let mut of = vec![None; devices.len()];
    for (index, adapter) in number_named(devices, &named) {
        of[index] = Some(adapter);
    }
    if !nameless.is_empty() {
        let found = Nameless::of(devices, &of, &nameless).hosts()?;
        of.iter_mut().zip(found).for_each(|(of, found)| *of = of.take().or(found));
    }
    for (index, first) in others {
        let rank = others_before(&of, of[first].as_ref());
        of[index] = of[first].clone().map(|adapter| Adapter { number: rank, ..adapter });
    }
    let mut notes = Vec::new();
    if let Some(&first) = ambiguous.first() {
        notes.push(format!(
            "{} adapters have names that several hosts share, such as {}: these hosts are named by leaf switch and port",
            ambiguous.len(),
            shown(host_name(&devices[first]))
        ));
    }
    Ok((of, notes))
}

/// The first free adapter number of a host.
fn others_before(of: &[Option<Adapter>], host: Option<&Adapter>) -> u32 {
    let numbers =
        of.iter().flatten().filter(|adapter| host.is_some_and(|h| h.host == adapter.host));
    numbers.map(|adapter| adapter.number + 1).max().unwrap_or_default()
}

/// Names that several hosts share: adapters on different cards have the same description. If this holds for more than
/// half of the names, descriptions do not distinguish adapters and no name is returned.
fn shared_names<'a>(devices: &[Device<'a>], named: &[usize]) -> HashSet<&'a str> {
    let mut cards: HashMap<&str, BTreeSet<(bool, u64)>> = HashMap::new();
    let mut names = BTreeSet::new();
    for &index in named {
        let device = &devices[index];
        names.insert(host_name(device));
        let card = device.image.map_or((false, index as u64), |image| (true, image));
        cards.entry(device.description).or_default().insert(card);
    }
    let is_shared = |&&index: &&usize| cards[devices[index].description].len() > 1;
    let shared: HashSet<&str> =
        named.iter().filter(is_shared).map(|&index| host_name(&devices[index])).collect();
    if shared.len() > 1 && 2 * shared.len() > names.len() { HashSet::new() } else { shared }
}

/// Whether a description has only the model of an adapter and no host: `MT4129 ConnectX7   Mellanox Technologies`.
fn is_model(description: &str) -> bool {
    let mut words = description.split_ascii_whitespace();
    let model = words.next().and_then(|word| word.strip_prefix("MT"));
    model.is_some_and(|model| !model.is_empty() && model.bytes().all(|b| b.is_ascii_digit()))
        && words.any(|word| word.eq_ignore_ascii_case("mellanox"))
}

/// Splits the label of an adapter into the part before its number, and the number: `mlx5_` and 5.
fn label<'a>(device: &Device<'a>) -> Option<(&'a str, u32)> {
    let label = device.description.split_ascii_whitespace().nth(1)?;
    let stem = label.trim_end_matches(|letter: char| letter.is_ascii_digit());
    Some((stem, label[stem.len()..].parse().ok()?))
}

/// Numbers the adapters of each host in the order of their descriptions. If labels of one kind have numbers, an
/// adapter's number is the rank of its label among the labels of all hosts. So `HCA-6` is the last of `HCA-1`, `HCA-2`,
/// `HCA-5` and `HCA-6` even on a host without `HCA-5`.
fn number_named(devices: &[Device], named: &[usize]) -> Vec<(usize, Adapter)> {
    let mut of_host: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let mut numbers: HashMap<&str, BTreeSet<u32>> = HashMap::new();
    for &index in named {
        of_host.entry(host_name(&devices[index])).or_default().push(index);
    }
    for members in of_host.values_mut() {
        members.sort_by_key(|&index| (devices[index].description, devices[index].id));
        if members.len() > 1 {
            for (stem, number) in members.iter().filter_map(|&index| label(&devices[index])) {
                numbers.entry(stem).or_default().insert(number);
            }
        }
    }
    let rank = |index: usize| {
        let (stem, number) = label(&devices[index])?;
        Some(numbers.get(stem)?.range(..number).count() as u32)
    };
    let mut all = Vec::with_capacity(named.len());
    for (host, members) in of_host {
        let ranks: Option<Vec<u32>> = members.iter().map(|&index| rank(index)).collect();
        let distinct =
            |ranks: &Vec<u32>| ranks.iter().collect::<BTreeSet<_>>().len() == ranks.len();
        let alone = members.len() == 1;
        let ranks = ranks.filter(|ranks| !alone && distinct(ranks));
        let ranks = ranks.unwrap_or_else(|| (0..members.len() as u32).collect());
        all.extend(
            members
                .into_iter()
                .zip(ranks)
                .map(|(index, number)| (index, Adapter { host: host.to_owned(), number })),
        );
    }
    all
}

/// Adapters without a host name, by leaf switch.
struct Nameless<'a> {
    devices: &'a [Device<'a>],
    /// Names of the switches.
    names: HashMap<usize, &'a str>,
    /// For each switch with such adapters: `(port of the switch, adapter)`, ascending.
    on: BTreeMap<usize, Vec<(u32, usize)>>,
    /// For each switch, the most frequent number of named adapters there.
    rail: HashMap<usize, u32>,
    /// For each switch with named hosts, its group of rails.
    group: HashMap<usize, usize>,
}

/// The nameless adapters of one host: for each switch, the port and the adapter.
type Cluster = BTreeMap<usize, (u32, usize)>;

impl<'a> Nameless<'a> {
    fn of(devices: &'a [Device<'a>], named: &[Option<Adapter>], nameless: &[usize]) -> Self {
        let by_id: HashMap<&str, usize> =
            devices.iter().enumerate().map(|(index, device)| (device.id, index)).collect();
        let switch_of = |peer: &str| {
            by_id.get(peer).copied().filter(|&index| devices[index].role == Role::Switch)
        };
        // The switch to which an adapter's first port leads, and the port there.
        let place = |index: usize| {
            let port = devices[index].ports.first()?;
            Some((switch_of(port.peer)?, port.back))
        };
        let mut leaves: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        let mut votes: HashMap<usize, BTreeMap<u32, usize>> = HashMap::new();
        for (index, adapter) in named.iter().enumerate() {
            let (Some(adapter), Some((switch, _))) = (adapter, place(index)) else { continue };
            let own = devices[index].ports.iter().filter_map(|port| switch_of(port.peer));
            leaves.entry(&adapter.host).or_default().extend(own);
            *votes.entry(switch).or_default().entry(adapter.number).or_default() += 1;
        }
        let most = |votes: BTreeMap<u32, usize>| votes.into_iter().max_by_key(|&(_, count)| count);
        let rail = votes.into_iter().filter_map(|(s, votes)| Some((s, most(votes)?.0))).collect();
        let mut on: BTreeMap<usize, Vec<(u32, usize)>> = BTreeMap::new();
        for &index in nameless {
            if let Some((switch, port)) = place(index) {
                on.entry(switch).or_default().push((port, index));
            }
        }
        for adapters in on.values_mut() {
            adapters.sort_unstable();
        }
        let switches = (0..devices.len()).filter(|&index| devices[index].role == Role::Switch);
        let switch_names = switches.zip(switch_names(devices)).collect();
        let group = leaf_groups(&leaves.into_values().collect::<Vec<_>>());
        Nameless { devices, names: switch_names, on, rail, group }
    }

    /// Assigns a host to every nameless adapter. The host is named by its first switch and the port there.
    fn hosts(self) -> Result<Vec<Option<Adapter>>, InputError> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &switch in self.on.keys() {
            let group = self.group.get(&switch).copied().unwrap_or(switch);
            groups.entry(group).or_default().push(switch);
        }
        let mut of = vec![None; self.devices.len()];
        for mut switches in groups.into_values() {
            switches.sort_by(|&a, &b| natural_order(self.name(a), self.name(b)));
            for cluster in self.clusters(&switches)? {
                self.name_cluster(&switches, &cluster, &mut of);
            }
        }
        Ok(of)
    }

    fn name(&self, switch: usize) -> &'a str {
        self.names.get(&switch).copied().unwrap_or_default()
    }

    /// Groups adapters below switches that share hosts: first those on the same port of several switches, then the rest
    /// by the order of ports.
    fn clusters(&self, switches: &[usize]) -> Result<Vec<Cluster>, InputError> {
        let mut by_port: BTreeMap<u32, Cluster> = BTreeMap::new();
        for &switch in switches {
            for &(port, adapter) in &self.on[&switch] {
                by_port.entry(port).or_default().insert(switch, (port, adapter));
            }
        }
        let (mut whole, parts): (Vec<Cluster>, Vec<Cluster>) =
            by_port.into_values().partition(|cluster| cluster.len() == switches.len());
        let apart = |a: &Cluster, b: &Cluster| a.keys().all(|switch| !b.contains_key(switch));
        let may_join =
            |(place, a): (usize, &Cluster)| parts[place + 1..].iter().any(|b| apart(a, b));
        if parts.iter().enumerate().any(may_join) {
            self.check_equal(switches, &parts)?;
        }
        let mut open: Vec<Cluster> = Vec::new();
        for part in parts {
            match open.iter_mut().find(|host| apart(host, &part)) {
                Some(host) => host.extend(part),
                None => open.push(part),
            }
        }
        whole.append(&mut open);
        Ok(whole)
    }

    /// Refuses a rest in which one switch has more adapters than another.
    fn check_equal(&self, switches: &[usize], parts: &[Cluster]) -> Result<(), InputError> {
        let on = |switch: usize| parts.iter().filter_map(move |part| part.get(&switch));
        let count = |&switch: &usize| on(switch).count();
        let left = || switches.iter().copied().filter(|switch| count(switch) > 0);
        let (Some(most), Some(least)) = (left().max_by_key(count), left().min_by_key(count)) else {
            return Ok(());
        };
        if count(&most) == count(&least) {
            return Ok(());
        }
        let listed = |switch| {
            let numbers: Vec<String> = on(switch).map(|(port, _)| port.to_string()).collect();
            numbers.join(", ")
        };
        let line = on(least).next().map_or(0, |&(_, adapter)| self.devices[adapter].line);
        let (many, few) = (self.name(most), self.name(least));
        Err(InputError::at(
            line,
            format!(
                "adapters without the name of a host: those on ports {} of switch {many} and {} of switch {few} cannot \
                 be distinguished",
                listed(most),
                listed(least)
            ),
        ))
    }

    fn name_cluster(&self, switches: &[usize], cluster: &Cluster, of: &mut [Option<Adapter>]) {
        let first = switches.iter().find_map(|switch| Some((*switch, cluster.get(switch)?.0)));
        let Some((first, port)) = first else { return };
        let host = format!("{}-port{port}", self.name(first));
        let on_rails: BTreeSet<u32> =
            cluster.keys().filter_map(|switch| self.rail.get(switch).copied()).collect();
        let by_rail = on_rails.len() == cluster.len();
        let members = switches.iter().filter_map(|switch| Some((switch, cluster.get(switch)?.1)));
        for (place, (switch, adapter)) in (0..).zip(members) {
            let rail = if by_rail { self.rail.get(switch).copied() } else { None };
            of[adapter] = Some(Adapter { host: host.clone(), number: rail.unwrap_or(place) });
        }
    }
}
