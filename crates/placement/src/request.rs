//! What a job or a group of virtual machines asks for.

use std::sync::Arc;

use topolane_fabric::{NodeIndex, NodeSet};

use crate::amounts::Amounts;
use crate::attributes::Attributes;
use crate::job_traffic::JobTraffic;
use crate::level::{Level, Within};

/// What one slot takes from its node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Share {
    /// The whole node; no other job may be there.
    #[default]
    Whole,
    /// An amount of each resource of a node that other jobs may share.
    Part(Amounts),
}

impl Share {
    /// Some cores and some memory (bytes) of a node that others may share.
    pub fn part(cores: u32, memory: u64) -> Self {
        Share::Part(Amounts::new(cores, memory))
    }

    /// Whether it is the whole node.
    #[inline]
    pub fn is_whole(&self) -> bool {
        matches!(self, Share::Whole)
    }
}

/// A request for slots: a job's nodes, or the virtual machines of a group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// Identity, unique among the requests of one scheduler. Seeded policies draw from it.
    pub id: u64,
    /// Slots wanted; at least 1.
    pub nodes: u32,
    /// The most it can use; below `nodes` for a request that takes neither more nor fewer.
    pub most: u32,
    /// What each slot takes.
    pub share: Share,
    /// Whether several slots may lie on one node (virtual machines); else each has its own.
    pub stacked: bool,
    /// Longest time it will run, seconds; infinite for what never ends by itself.
    pub walltime: f64,
    /// Not to be started before this time, seconds.
    pub begin: f64,
    /// Among requests of one priority the lower goes first, and those of one order as they came.
    pub order: u64,
    /// Nodes of each part of it that must lie in one domain of the machine ([`Fabric::domain`](topolane_fabric::Fabric::domain)),
    /// the last part being what is left; `None` for no such parts. Rules that know no domains ignore it.
    pub segment: Option<u32>,
    /// What such a part must lie in; `None` for a domain or, on a machine without, a leaf. Only rules that can part
    /// requests at every level read it.
    pub segment_level: Option<Level>,
    /// Which group it is to lie in, for rules that read it.
    pub within: Within,
    /// Nodes that already run members of the same group, once per member; a request that names one
    /// that is not on the machine is never placed.
    pub members: Vec<NodeIndex>,
    /// Members that run where the machine does not reach: every group with members parts them.
    pub beyond: u32,
    /// The least share of full bandwidth that it accepts on links of its own, over 0 and up to 1; `None` for all of it.
    pub min_bandwidth: Option<f64>,
    /// Nodes it may use; `None` for all.
    pub eligible: Option<Arc<NodeSet>>,
    /// The free slots of every node where another system keeps count of them; `None` where the
    /// occupancy does. Never more than one on a node unless `stacked`.
    pub slots: Option<Arc<[u32]>>,
    /// The slots of every node if nothing ran on it, where `slots` gives the free ones; `None` for the same.
    pub room: Option<Arc<[u32]>>,
    /// What it sends; `None` if that is not known.
    pub traffic: Option<JobTraffic>,
    /// The nodes a log says it ran on.
    pub recorded: Option<Arc<[NodeIndex]>>,
    /// Whose it is, for queues that ask.
    pub attributes: Option<Arc<Attributes>>,
}

impl Request {
    /// A request for `nodes` whole nodes anywhere.
    pub fn whole_nodes(id: u64, nodes: u32, walltime: f64) -> Self {
        Request { id, nodes, walltime, ..Request::default() }
    }

    /// Whether a rule that looks at nothing else about two requests of one size must answer both alike.
    pub fn is_like(&self, other: &Request) -> bool {
        self.min_bandwidth == other.min_bandwidth
            && self.segment == other.segment
            && self.segment_level == other.segment_level
            && self.within == other.within
    }

    /// Whether it takes whole nodes and any node will do: then only their number matters.
    pub fn is_plain(&self) -> bool {
        self.share.is_whole()
            && !self.stacked
            && self.eligible.is_none()
            && self.slots.is_none()
            && self.members.is_empty()
    }
}
