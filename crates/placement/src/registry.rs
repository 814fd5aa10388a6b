//! Policies by name: one line each.

use crate::policies::{
    Bunch, FirstFit, HopBytes, HopBytesExact, Isolated, Jigsaw, Laas, Owned, Quiet, Random,
    Recorded, Scattered, SlurmTree, Spread,
};
use crate::policy::Policy;

/// What a policy gives jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// Nodes alone.
    Nodes,
    /// Links of their own, too.
    Links,
    /// Links for as much of full bandwidth as a request wants ([`crate::Request::phi`]).
    LinksByPhi,
}

/// A policy that can be asked for by name.
pub struct PolicyInfo {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// What it gives jobs.
    pub gives: Gives,
    /// Builds it; the seed matters to those that draw at random.
    pub build: fn(seed: u64) -> Box<dyn Policy>,
}

/// All policies built in.
pub const POLICIES: &[PolicyInfo] = &[
    PolicyInfo {
        name: "first-fit",
        summary: "the free nodes of lowest index, blind to the network",
        gives: Gives::Nodes,
        build: |_| Box::new(FirstFit),
    },
    PolicyInfo {
        name: "random",
        summary: "free nodes drawn at random, seeded",
        gives: Gives::Nodes,
        build: |seed| Box::new(Random { seed }),
    },
    PolicyInfo {
        name: "scattered",
        summary: "one node from each leaf in turn: the worst case",
        gives: Gives::Nodes,
        build: |_| Box::new(Scattered),
    },
    PolicyInfo {
        name: "slurm-tree",
        summary: "Slurm's topology/tree: lowest switch that holds it, best fit on leaves",
        gives: Gives::Nodes,
        build: |_| Box::new(SlurmTree),
    },
    PolicyInfo {
        name: "hop-bytes",
        summary: "fewest hops by the VM-group rule, at every level of the tree",
        gives: Gives::Nodes,
        build: |_| Box::new(HopBytes),
    },
    PolicyInfo {
        name: "hop-bytes-exact",
        summary: "least hops for uniform traffic, exactly, then the tightest",
        gives: Gives::Nodes,
        build: |_| Box::new(HopBytesExact { isolated: false }),
    },
    PolicyInfo {
        name: "bunch",
        summary: "the VM-group rule as its paper lists it: two levels, ties by index",
        gives: Gives::Nodes,
        build: |_| Box::new(Bunch),
    },
    PolicyInfo {
        name: "spread",
        summary: "as many leaves and pods as possible, evenly: for groups that must survive one",
        gives: Gives::Nodes,
        build: |_| Box::new(Spread),
    },
    PolicyInfo {
        name: "isolated",
        summary: "no link shared by two jobs: classes T1, T2, T3 (SC'18)",
        gives: Gives::Nodes,
        build: |_| Box::new(Isolated),
    },
    PolicyInfo {
        name: "isolated-hop-bytes",
        summary: "no link shared by two jobs, wherever that can be, and then least hops",
        gives: Gives::Nodes,
        build: |_| Box::new(HopBytesExact { isolated: true }),
    },
    PolicyInfo {
        name: "owned",
        summary: "links of its own for every job on leaves and pods that jobs share, wherever that can be",
        gives: Gives::LinksByPhi,
        build: |_| Box::new(Owned::new()),
    },
    PolicyInfo {
        name: "jigsaw",
        summary: "links of its own by equal parts, whole leaves over several pods (HPDC'21, rebuilt)",
        gives: Gives::Links,
        build: |_| Box::new(Jigsaw { relaxed: false }),
    },
    PolicyInfo {
        name: "jigsaw-relaxed",
        summary: "the same with parts of leaves over several pods",
        gives: Gives::Links,
        build: |_| Box::new(Jigsaw { relaxed: true }),
    },
    PolicyInfo {
        name: "laas",
        summary: "links as a service: equal parts in a pod, rounded up to whole leaves above (rebuilt)",
        gives: Gives::Links,
        build: |_| Box::new(Laas),
    },
    PolicyInfo {
        name: "quiet",
        summary: "no link shared: blocks of a power of two of leaves or pods (IPDPS'15, rebuilt)",
        gives: Gives::Links,
        build: |_| Box::new(Quiet),
    },
    PolicyInfo {
        name: "recorded",
        summary: "the nodes and start times that the log names",
        gives: Gives::Nodes,
        build: |_| Box::new(Recorded),
    },
];

/// The policy of that name; `None` where there is none.
pub fn policy(name: &str, seed: u64) -> Option<Box<dyn Policy>> {
    POLICIES.iter().find(|info| info.name == name).map(|info| (info.build)(seed))
}
