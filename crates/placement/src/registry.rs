//! The list of built-in policies, by name.

use crate::policies::{
    BestFit, Bunch, Dedicated, DedicatedSegments, FirstFit, Gradient, HopBytes, HopBytesExact,
    Isolated, IsolatedGlobal, IsolatedSegments, Jigsaw, KueueProfile, KueueTas, Laas,
    LeastSlowdown, LevelSpread, QuietNeighborhoods, Random, Recorded, Scattered, Segments,
    SlurmBlock, SlurmConsTres, SlurmTree, Spread,
};
use crate::policy::Policy;

/// What a policy gives to jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gives {
    /// Nodes only.
    Nodes,
    /// Nodes, and links that no other job uses.
    Links,
    /// Nodes, and links for the share of full bandwidth that a request asks for ([`crate::Request::min_bandwidth`]).
    LinksByShare,
}

/// A built-in policy.
pub struct PolicyInfo {
    /// The name of the policy.
    pub name: &'static str,
    /// What the policy does, in one line.
    pub summary: &'static str,
    /// What the policy gives to jobs.
    pub gives: Gives,
    /// Builds the policy; only policies that draw at random use the seed.
    pub build: fn(seed: u64) -> Box<dyn Policy>,
}

/// All built-in policies.
pub const POLICIES: &[PolicyInfo] = &[
    PolicyInfo {
        name: "first-fit",
        summary: "the free nodes with the lowest indices; ignores the network",
        gives: Gives::Nodes,
        build: |_| Box::new(FirstFit),
    },
    PolicyInfo {
        name: "random",
        summary: "free nodes drawn at random from a seed",
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
        summary: "Slurm's topology/tree: the lowest switch that holds the job, best fit on leaves",
        gives: Gives::Nodes,
        build: |_| Box::new(SlurmTree),
    },
    PolicyInfo {
        name: "slurm-cons-tres",
        summary: "Slurm's topology/tree with select/cons_tres: the leaves of a switch that holds the job, then the nearest ones",
        gives: Gives::Nodes,
        build: |_| Box::new(SlurmConsTres),
    },
    PolicyInfo {
        name: "slurm-block",
        summary: "Slurm's topology/block: the fullest block that holds the job, each segment in one base block",
        gives: Gives::Nodes,
        build: |_| Box::new(SlurmBlock),
    },
    PolicyInfo {
        name: "kueue-tas",
        summary: "Kueue's topology-aware scheduling: the lowest group that holds the job, best fit; slices if jobs have segments",
        gives: Gives::Nodes,
        build: |_| Box::new(KueueTas { profile: KueueProfile::Mixed }),
    },
    PolicyInfo {
        name: "kueue-tas-best-fit",
        summary: "as kueue-tas, but best fit also for jobs that name no level (TASProfileMixed=false)",
        gives: Gives::Nodes,
        build: |_| Box::new(KueueTas { profile: KueueProfile::BestFit }),
    },
    PolicyInfo {
        name: "kueue-tas-least-free",
        summary: "as kueue-tas, but the groups with least room first (TASProfileLeastFreeCapacity=true)",
        gives: Gives::Nodes,
        build: |_| Box::new(KueueTas { profile: KueueProfile::LeastFree }),
    },
    PolicyInfo {
        name: "hop-bytes",
        summary: "few hops by the VM-group heuristic, at every level of the tree",
        gives: Gives::Nodes,
        build: |_| Box::new(HopBytes),
    },
    PolicyInfo {
        name: "hop-bytes-exact",
        summary: "fewest hops for uniform traffic, exactly; the tightest fit among equals",
        gives: Gives::Nodes,
        build: |_| Box::new(HopBytesExact { isolated: false }),
    },
    PolicyInfo {
        name: "least-slowdown",
        summary: "the fewest node-seconds that jobs lose to each other on shared links, as their traffic predicts; refuses nothing for links",
        gives: Gives::Nodes,
        build: |_| Box::new(LeastSlowdown),
    },
    PolicyInfo {
        name: "bunch",
        summary: "the VM-group heuristic as its paper lists it: two levels, ties by index",
        gives: Gives::Nodes,
        build: |_| Box::new(Bunch),
    },
    PolicyInfo {
        name: "spread",
        summary: "evenly over as many leaves and pods as possible: for groups that must survive the loss of one",
        gives: Gives::Nodes,
        build: |_| Box::new(Spread),
    },
    PolicyInfo {
        name: "level-spread",
        summary: "the smallest of router, group and machine that holds the job, evenly over the routers there (IPDPS'18, rebuilt)",
        gives: Gives::Nodes,
        build: |_| Box::new(LevelSpread),
    },
    PolicyInfo {
        name: "isolated-global",
        summary: "dragonflies: no cable between groups shared by two jobs",
        gives: Gives::Nodes,
        build: |_| Box::new(IsolatedGlobal),
    },
    PolicyInfo {
        name: "isolated",
        summary: "no link shared by two jobs: on trees, classes T1, T2, T3 (SC'18); on dragonflies, by the links of minimal routes",
        gives: Gives::Nodes,
        build: |_| Box::new(Isolated),
    },
    PolicyInfo {
        name: "isolated-hop-bytes",
        summary: "no link shared by two jobs, then fewest hops; finds a placement wherever one exists",
        gives: Gives::Nodes,
        build: |_| Box::new(HopBytesExact { isolated: true }),
    },
    PolicyInfo {
        name: "dedicated",
        summary: "dedicated links for every job on leaves and pods that jobs share; finds a placement wherever one exists",
        gives: Gives::LinksByShare,
        build: |_| Box::new(Dedicated::new()),
    },
    PolicyInfo {
        name: "jigsaw",
        summary: "dedicated links in equal parts; whole leaves for jobs in several pods (HPDC'21, rebuilt)",
        gives: Gives::Links,
        build: |_| Box::new(Jigsaw { relaxed: false }),
    },
    PolicyInfo {
        name: "jigsaw-relaxed",
        summary: "as jigsaw, but jobs in several pods may use parts of leaves",
        gives: Gives::Links,
        build: |_| Box::new(Jigsaw { relaxed: true }),
    },
    PolicyInfo {
        name: "laas",
        summary: "links as a service: equal parts in one pod; whole leaves, rounded up, in several (rebuilt)",
        gives: Gives::Links,
        build: |_| Box::new(Laas),
    },
    PolicyInfo {
        name: "quiet-neighborhoods",
        summary: "no link shared: blocks of 1, 2, 4, ... leaves or pods (IPDPS'15, rebuilt)",
        gives: Gives::Links,
        build: |_| Box::new(QuietNeighborhoods),
    },
    PolicyInfo {
        name: "best-fit",
        summary: "the node with the least left: for jobs that share nodes",
        gives: Gives::Nodes,
        build: |_| Box::new(BestFit),
    },
    PolicyInfo {
        name: "fgd",
        summary: "the node and GPU with the least new fragmentation for the jobs seen so far (USENIX ATC'23, rebuilt)",
        gives: Gives::Nodes,
        build: |_| Box::new(Gradient::fragmentation()),
    },
    PolicyInfo {
        name: "gpu-packing",
        summary: "as fgd, and fewer GPUs whose node lacks cores or memory",
        gives: Gives::Nodes,
        build: |_| Box::new(Gradient::packing()),
    },
    PolicyInfo {
        name: "segments",
        summary: "segments of jobs in one domain each; small jobs stay out of empty domains while others have room",
        gives: Gives::Nodes,
        build: |_| Box::new(Segments),
    },
    PolicyInfo {
        name: "segments-isolated",
        summary: "as segments, and no link shared by two jobs",
        gives: Gives::Nodes,
        build: |_| Box::new(IsolatedSegments),
    },
    PolicyInfo {
        name: "segments-dedicated",
        summary: "as segments, with dedicated links for every job",
        gives: Gives::LinksByShare,
        build: |_| Box::new(DedicatedSegments::default()),
    },
    PolicyInfo {
        name: "recorded",
        summary: "the nodes and start times in the log",
        gives: Gives::Nodes,
        build: |_| Box::new(Recorded),
    },
];

/// Returns the policy of this name; `None` if there is none.
pub fn policy(name: &str, seed: u64) -> Option<Box<dyn Policy>> {
    POLICIES.iter().find(|info| info.name == name).map(|info| (info.build)(seed))
}
