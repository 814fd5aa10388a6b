//! Requests: what a job or a group of virtual machines asks for.

use std::sync::Arc;

use topolane_fabric::{NodeIndex, NodeSet};

use crate::amounts::Amounts;
use crate::attributes::Attributes;
use crate::job_traffic::JobTraffic;
use crate::level::{Level, Within};

/// What one slot takes from its node.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub enum Share {
    /// The whole node; no other job may use it.
    #[default]
    Whole,
    /// An amount of each resource, on a node that other jobs may share.
    Part(Amounts),
}

impl Share {
    /// Returns a share of some cores and some memory (in bytes).
    pub fn part(cores: u32, memory: u64) -> Self {
        Share::Part(Amounts::new(cores, memory))
    }

    /// Whether the share is a whole node.
    #[inline]
    pub fn is_whole(&self) -> bool {
        matches!(self, Share::Whole)
    }
}

/// A request for slots: a job's nodes, or the virtual machines of a group.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Request {
    /// The id, unique among the requests of one scheduler. Policies that draw at random use it as a seed.
    pub id: u64,
    /// Slots wanted; at least 1.
    pub nodes: u32,
    /// The most slots that the job can use; below `nodes` if it takes exactly `nodes`.
    pub most: u32,
    /// What each slot takes from its node.
    pub share: Share,
    /// Whether several slots may lie on one node, as for virtual machines; otherwise every slot is on a node of its
    /// own.
    pub stacked: bool,
    /// The longest time that the job runs, in seconds; infinite if it never ends by itself.
    pub walltime: f64,
    /// The earliest time at which the job may start, in seconds.
    pub begin: f64,
    /// Orders requests of the same priority: the lowest goes first, equal ones go in order of arrival.
    pub order: u64,
    /// Nodes of each segment: a part of the job that must lie in one domain
    /// ([`Fabric::domain`](topolane_fabric::Fabric::domain)). The last segment may be smaller. `None` for no segments.
    /// Policies that do not use domains ignore it.
    pub segment: Option<u32>,
    /// The level of which one group must hold each segment; `None` for a domain or, on a machine without domains, a
    /// leaf. Only policies that support segments at every level read it.
    pub segment_level: Option<Level>,
    /// The group in which the request is to lie, for policies that read it.
    pub within: Within,
    /// Nodes that already run members of the same group, once per member. A request that names a node outside the
    /// machine is never placed.
    pub members: Vec<NodeIndex>,
    /// The number of members that run outside this machine: every group with members inside also has members outside.
    pub beyond: u32,
    /// The least share of full bandwidth that the job accepts on links of its own, over 0 and up to 1; `None` for all
    /// of it.
    pub min_bandwidth: Option<f64>,
    /// Nodes that the request may use; `None` for all.
    pub eligible: Option<Arc<NodeSet>>,
    /// The free slots of every node, if another system counts them; `None` if the occupancy does. At most one per node
    /// unless `stacked`.
    pub slots: Option<Arc<[u32]>>,
    /// With `slots`: the slots that every node would have if no job ran; `None` if they equal `slots`.
    pub room: Option<Arc<[u32]>>,
    /// What the job sends; `None` if unknown.
    pub traffic: Option<JobTraffic>,
    /// The nodes on which the job ran according to a log.
    pub recorded: Option<Arc<[NodeIndex]>>,
    /// Facts about the job, for queues that read them.
    pub attributes: Option<Arc<Attributes>>,
}

impl Request {
    /// Returns a request for `nodes` whole nodes anywhere.
    pub fn whole_nodes(id: u64, nodes: u32, walltime: f64) -> Self {
        Request { id, nodes, walltime, ..Request::default() }
    }

    /// Whether a policy that [depends only on size](crate::Traits::depends_only_on_size) must answer both requests
    /// alike.
    pub fn is_like(&self, other: &Request) -> bool {
        self.min_bandwidth == other.min_bandwidth
            && self.segment == other.segment
            && self.segment_level == other.segment_level
            && self.within == other.within
    }

    /// Whether the request takes any whole nodes, so that only their number matters.
    pub fn is_plain(&self) -> bool {
        self.share.is_whole()
            && !self.stacked
            && self.eligible.is_none()
            && self.slots.is_none()
            && self.members.is_empty()
    }
}
