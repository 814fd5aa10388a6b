//! Conditions (1) to (3) of docs/explanation/dedicated-links.md, checked by trying everything.
#![allow(dead_code)]

use std::collections::BTreeSet;

use topolane_fabric::{CableId, Fabric, NodeIndex};

use crate::routing::Job;

/// Whether a job meets (1) to (3), if a flow takes the share `leaf` of a leaf's cable and `pod` of a pod's cable.
pub fn meets(job: &Job, leaf: f64, pod: f64) -> bool {
    let total: u32 = job.nodes.iter().sum();
    let flows = |nodes: u32| nodes.min(total - nodes);
    let cables = |flows: u32, each: f64| (f64::from(flows) * each - 1e-9).ceil() as u32;
    if job.leaves() < 2 {
        return true;
    }
    if job.core.len() == 1 {
        return subsets(job.leaves()).any(|rest| {
            let d = |is_rest: bool| {
                (0..job.leaves())
                    .filter(move |&l| rest >> l & 1 == u32::from(is_rest))
                    .map(|l| flows(job.nodes[l]))
            };
            let set =
                in_common((0..job.leaves()).filter(|l| rest >> l & 1 == 0).map(|l| &job.up[l]));
            let part = in_common(job.up.iter());
            count(&set) >= cables(d(false).max().unwrap_or(0), leaf)
                && count(&part) >= cables(d(true).sum(), leaf)
        });
    }
    let nodes_in = |p: usize| {
        (0..job.leaves()).filter(|&l| job.pod[l] == p).map(|l| job.nodes[l]).sum::<u32>()
    };
    let pods: Vec<u32> = (0..job.core.len()).map(|p| flows(nodes_in(p))).collect();
    let widest = job.nodes.iter().map(|&nodes| flows(nodes)).max().unwrap_or(0);
    let sets = parts(&in_common(job.up.iter()));
    let wide_enough = |set: &&Vec<u32>| count(set) >= cables(widest, leaf);
    sets.iter().filter(wide_enough).any(|set| {
        let needed = |d: u32| cables(d, pod / f64::from(count(set)));
        let planes = || (0..set.len()).filter(|&plane| set[plane] > 0);
        // The pod that may own a part; one past the last pod for none.
        (0..=pods.len()).any(|rest| {
            planes().all(|plane| {
                let cores: Vec<&Vec<u32>> = job.core.iter().map(|pod| &pod[plane]).collect();
                let needed: Vec<u32> = pods.iter().map(|&d| set[plane] * needed(d)).collect();
                plane_meets(&cores, &needed, rest)
            })
        })
    })
}

/// Whether all pods except `rest` own enough in a plane, and `rest` owns enough of what they have in common.
fn plane_meets(cores: &[&Vec<u32>], needed: &[u32], rest: usize) -> bool {
    let others = || (0..cores.len()).filter(move |&pod| pod != rest);
    let set = in_common(others().map(|pod| cores[pod]));
    let enough = count(&set) >= others().map(|pod| needed[pod]).max().unwrap_or(0);
    enough
        && (rest == cores.len()
            || count(&in_common([&set, cores[rest]].into_iter())) >= needed[rest])
}

fn subsets(of: usize) -> impl Iterator<Item = u32> {
    0..1 << of
}

/// All subsets of these cables; parallel cables are equivalent.
fn parts(of: &[u32]) -> Vec<Vec<u32>> {
    of.iter().fold(vec![Vec::new()], |all, &most| {
        all.into_iter()
            .flat_map(|part| (0..=most).map(move |count| [part.clone(), vec![count]].concat()))
            .collect()
    })
}

fn count(cables: &[u32]) -> u32 {
    cables.iter().sum()
}

/// What all owners own; empty if there are no owners.
fn in_common<'a>(owned: impl Iterator<Item = &'a Vec<u32>>) -> Vec<u32> {
    let both =
        |one: Vec<u32>, other: &Vec<u32>| one.iter().zip(other).map(|(&a, &b)| a.min(b)).collect();
    let mut owned = owned;
    let Some(first) = owned.next() else { return Vec::new() };
    owned.fold(first.clone(), both)
}

/// Whether the wanted number of free nodes can form a partition with the free cables. The job may own all free cables,
/// because extra ones do no harm.
pub fn exists(
    fabric: &Fabric,
    free: &[NodeIndex],
    links: &BTreeSet<CableId>,
    wanted: u32,
    leaf: f64,
    pod: f64,
) -> bool {
    let links: Vec<CableId> = links.iter().copied().collect();
    let on_leaf = |leaf: u32| free.iter().filter(move |&&node| fabric.group(1, node) == leaf);
    let mut choices: Vec<Vec<NodeIndex>> = vec![Vec::new()];
    for leaf in 0..fabric.groups(1) {
        let idle: Vec<NodeIndex> = on_leaf(leaf).copied().collect();
        choices = choices
            .into_iter()
            .flat_map(|chosen| {
                (0..=idle.len())
                    .map(|count| [chosen.clone(), idle[..count].to_vec()].concat())
                    .collect::<Vec<_>>()
            })
            .filter(|chosen| chosen.len() <= wanted as usize)
            .collect();
    }
    choices
        .iter()
        .filter(|chosen| chosen.len() == wanted as usize)
        .any(|chosen| meets(&Job::of(fabric, chosen, &links), leaf, pod))
}
