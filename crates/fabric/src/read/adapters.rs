//! Which host an adapter is of, and its place among the host's adapters.
//!
//! An adapter is described as `host mlx5_5` or `host HCA-6`. Adapters whose host set no description are described by their
//! model alone. They are told by where they hang: hosts that share leaf switches hang on the same port of each, or at least
//! in the same order of ports.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::levels::Union;
use super::natural::natural_order;
use super::subnet::{Device, Role, host_name, switch_names};
use crate::error::InputError;

/// The host of an adapter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Adapter {
    pub host: String,
    /// Number among the host's adapters, from 0. Hosts that lack an adapter leave its number out.
    pub number: u32,
}

/// The host of every device that is an adapter with a cable.
pub(super) fn adapters(devices: &[Device]) -> Result<Vec<Option<Adapter>>, InputError> {
    let is_adapter = |device: &Device| device.role == Role::Host && !device.ports.is_empty();
    let (nameless, named): (Vec<usize>, Vec<usize>) = (0..devices.len())
        .filter(|&index| is_adapter(&devices[index]))
        .partition(|&index| is_model(devices[index].description));
    let mut of = vec![None; devices.len()];
    for (index, adapter) in number_named(devices, &named) {
        of[index] = Some(adapter);
    }
    if !nameless.is_empty() {
        let found = Nameless::of(devices, &of, &nameless).hosts()?;
        of.iter_mut().zip(found).for_each(|(of, found)| *of = of.take().or(found));
    }
    Ok(of)
}

/// Whether a description has the model of an adapter and no host: `MT4129 ConnectX7   Mellanox Technologies`.
fn is_model(description: &str) -> bool {
    let mut words = description.split_ascii_whitespace();
    let model = words.next().and_then(|word| word.strip_prefix("MT"));
    model.is_some_and(|model| !model.is_empty() && model.bytes().all(|b| b.is_ascii_digit()))
        && words.any(|word| word.eq_ignore_ascii_case("mellanox"))
}

/// What precedes the number of an adapter, and the number: `mlx5_` and 5.
fn label<'a>(device: &Device<'a>) -> Option<(&'a str, u32)> {
    let label = device.description.split_ascii_whitespace().nth(1)?;
    let stem = label.trim_end_matches(|letter: char| letter.is_ascii_digit());
    Some((stem, label[stem.len()..].parse().ok()?))
}

/// Adapters of a host in the order of their descriptions. If labels of one kind have numbers, an adapter counts by the rank of
/// its number among all hosts' numbers: `HCA-6` is the last of `HCA-1`, `HCA-2`, `HCA-5` and `HCA-6` on a host without
/// `HCA-5` too.
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

/// Adapters without the name of a host, by the leaf switches on which they hang.
struct Nameless<'a> {
    devices: &'a [Device<'a>],
    /// Names of the switches.
    names: HashMap<usize, &'a str>,
    /// `(port of the switch, adapter)` of every switch with one, ascending, by the number of the switch.
    on: BTreeMap<usize, Vec<(u32, usize)>>,
    /// The number that most named adapters on each switch have.
    rail: HashMap<usize, u32>,
    /// Switches that named hosts join.
    joined: Union,
}

/// Nameless adapters that are of one host: by switch, the port there and the adapter.
type Cluster = BTreeMap<usize, (u32, usize)>;

impl<'a> Nameless<'a> {
    fn of(devices: &'a [Device<'a>], named: &[Option<Adapter>], nameless: &[usize]) -> Self {
        let by_id: HashMap<&str, usize> =
            devices.iter().enumerate().map(|(index, device)| (device.id, index)).collect();
        // The switch on which an adapter hangs by its first port, and the port there.
        let place = |index: usize| {
            let port = devices[index].ports.first()?;
            let switch = *by_id.get(port.peer)?;
            Some((switch, port.back))
        };
        let mut joined = Union::new(devices.len());
        let mut first_of: HashMap<&str, usize> = HashMap::new();
        let mut votes: HashMap<usize, BTreeMap<u32, usize>> = HashMap::new();
        for (index, adapter) in named.iter().enumerate() {
            let (Some(adapter), Some((switch, _))) = (adapter, place(index)) else { continue };
            let first = *first_of.entry(&adapter.host).or_insert(switch);
            joined.join(first, switch);
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
        Nameless { devices, names: switch_names, on, rail, joined }
    }

    /// The host of every nameless adapter by device, named by its first switch and the port there.
    fn hosts(mut self) -> Result<Vec<Option<Adapter>>, InputError> {
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for &switch in self.on.keys() {
            groups.entry(self.joined.find(switch)).or_default().push(switch);
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

    /// The hosts below switches that share hosts: those on one port of several switches, then what is left in the order of
    /// ports.
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

    /// Refuses leftovers of which one switch has more than another.
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
                 be told apart",
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
