//! The interface of policies.

use topolane_fabric::Fabric;

use crate::choice::Choice;
use crate::dedicated::{Limit, limits};
use crate::free_slots::FreeSlots;
use crate::homes::Homes;
use crate::obstacles::{Looking, Obstacle};
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::planned::LinkPlan;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::wirings::Wirings;

/// Properties that hold for all answers of a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// Any sufficient number of free slots is enough, wherever they are. A queue can then compute reservations by
    /// counting.
    pub count_only: bool,
    /// Requests that differ only in id and times get the same answer, up to the choice among equals. A queue then asks
    /// once for all jobs of one size.
    pub depends_only_on_size: bool,
    /// No link carries traffic of two jobs.
    pub isolates: bool,
    /// Whether the policy keeps jobs apart on the links between the groups of a dragonfly, if it does not isolate them.
    pub between_groups: BetweenGroups,
    /// The wirings on which the policy works.
    pub wirings: Wirings,
    /// Whether freeing capacity can make the policy refuse a request that it would place.
    pub room_helps: RoomHelps,
}

/// Who may use the links between the groups of a dragonfly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BetweenGroups {
    /// Any jobs.
    Shared,
    /// No link carries traffic of two jobs.
    Apart,
}

/// Whether a policy that can place a request can still do so when jobs have released capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomHelps {
    /// Yes, unless a search reaches its bound. A queue may remember refusals.
    Always,
    /// Nearly always. A queue may find the time of a reservation by binary search.
    Mostly,
    /// Not known.
    Unknown,
}

impl Traits {
    /// No property holds.
    pub const NONE: Traits = Traits {
        count_only: false,
        depends_only_on_size: false,
        isolates: false,
        between_groups: BetweenGroups::Shared,
        wirings: Wirings::ANY,
        room_helps: RoomHelps::Unknown,
    };
    /// Any sufficient number of free slots is enough.
    pub const COUNT_ONLY: Traits = Traits {
        count_only: true,
        depends_only_on_size: true,
        room_helps: RoomHelps::Always,
        ..Traits::NONE
    };
    /// The policy isolates jobs on trees, gives jobs of one size the same answer, and never refuses because of more free
    /// capacity.
    pub const ISOLATES: Traits = Traits {
        isolates: true,
        wirings: Wirings::TREE,
        depends_only_on_size: true,
        room_helps: RoomHelps::Always,
        ..Traits::NONE
    };
}

/// A policy chooses nodes. It is pure: the same request in the same state gets the same answer.
///
/// A policy implements `name`, `traits` and `choose`. Everything else is optional. Callers use `place` and `can_place`
/// of `dyn Policy`, which handle what is the same for all policies: too few slots, and sites without links between
/// them.
pub trait Policy: Send + Sync {
    /// The name under which it is registered.
    fn name(&self) -> &str;

    /// The properties that hold for all answers of the policy; the same at every call.
    fn traits(&self) -> Traits;

    /// Chooses the nodes for the request, once per slot, in rank order, and the uplinks that the job owns. There are at
    /// least `request.nodes` free slots, all joined by links.
    ///
    /// # Errors
    /// A refusal if the policy finds no placement in the free slots.
    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal>;

    /// Whether [`Policy::choose`] would succeed, for policies with a cheaper way to find out.
    ///
    /// # Errors
    /// The refusal that [`Policy::choose`] would give.
    fn has_place(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        self.choose(request, free, occupancy).map(drop)
    }

    /// Whether any sufficient number of free slots is enough for this request, for policies where it depends on the
    /// request.
    fn counts_only(&self, _request: &Request) -> bool {
        self.traits().count_only
    }

    /// Whether freeing capacity can make the policy refuse this request, for policies where it depends on the request.
    fn room_helps(&self, _request: &Request) -> RoomHelps {
        self.traits().room_helps
    }

    /// Whether the choice among equals depends on the id of the request, so that two otherwise equal requests may get
    /// different nodes.
    fn draws_by_identity(&self) -> bool {
        false
    }

    /// The obstacles of a request that the policy refuses for its links, and the level of which one group must hold the
    /// request. By default these are uplinks of other jobs if the policy dedicates links, otherwise the groups that
    /// isolated jobs cross.
    fn obstacles(&self, looking: &Looking<'_>) -> (usize, Vec<Obstacle>) {
        let top = looking.occupancy.fabric().depth();
        if self.dedicates_links().is_some() {
            return (top, looking.dedicated_uplinks());
        }
        (top, looking.crossed(top, self.traits().isolates))
    }

    /// The sets of nodes in which every placement of the request lies, for policies that keep requests together; `None`
    /// if any nodes are possible, or if the policy does not say.
    fn homes(&self, _request: &Request, _occupancy: &Occupancy) -> Option<Homes> {
        None
    }

    /// The policy as [`SlotCosts`], if it can rate single nodes.
    fn slot_costs(&self) -> Option<&dyn SlotCosts> {
        None
    }

    /// The policy as [`DedicatesLinks`], if it dedicates links.
    fn dedicates_links(&self) -> Option<&dyn DedicatesLinks> {
        None
    }

    /// Whether the policy reads what jobs send ([`Occupancy::network`]); if so, the driver must track traffic in the
    /// occupancy.
    fn reads_traffic(&self) -> bool {
        false
    }

    /// Whether the policy reads [`Request::within`] itself; if not, see [`place_within`](crate::place_within).
    fn reads_within(&self) -> bool {
        false
    }

    /// The policy as [`QueueRule`], if it advises the queue.
    fn queue_rule(&self) -> Option<&dyn QueueRule> {
        None
    }
}

/// A policy that can rate each node, for systems that ask for one slot after another, such as Nova.
pub trait SlotCosts {
    /// The cost of giving each node the next slot of the request and continuing as well as possible. The policy would
    /// choose a node of least cost and never one of infinite cost. The slots given so far are among the request's
    /// members.
    ///
    /// # Errors
    /// A refusal if the policy finds no placement in the free slots.
    fn costs(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Vec<f64>, Refusal>;
}

/// A policy that dedicates links to jobs.
pub trait DedicatesLinks {
    /// The parts of a machine where it cannot dedicate links, or only some.
    fn limits(&self, fabric: &Fabric) -> Vec<Limit> {
        limits(fabric)
    }

    /// The number of searches so far, and how many of them reached a bound.
    fn searches(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// A policy that gives a queue more than placements.
pub trait QueueRule {
    /// What a placement takes from later jobs in addition to its nodes; 0 for nothing. If jobs may overtake others, the
    /// queue starts those with the least waste first.
    fn waste(&self, request: &Request, placement: &Placement, occupancy: &Occupancy) -> f64;

    /// The policy as [`PlansFirst`], if it plans before it chooses nodes and links.
    fn plans_first(&self) -> Option<&dyn PlansFirst> {
        None
    }

    /// The policy that the head of a queue waits for, if it differs: see [`HeadRule`].
    fn for_head(&self) -> Option<HeadRule<'_>> {
        None
    }

    /// The policy to use when `waiting` jobs are queued; `None` if it does not depend on the queue length.
    fn for_queue_length(&self, _waiting: usize) -> Option<&dyn Policy> {
        None
    }
}

/// A policy that plans before it chooses nodes and links. A queue that looks for the least waste among many jobs drops
/// most of the answers, and a plan is cheaper.
pub trait PlansFirst {
    /// The plan behind the answer of [`Policy::choose`]; `None` if it would refuse the request for its links.
    fn plan(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Option<LinkPlan>;

    /// The waste of a placement by this plan ([`QueueRule::waste`]).
    fn waste_of_plan(&self, request: &Request, plan: &LinkPlan, occupancy: &Occupancy) -> f64;
}

/// A policy with fewer shapes, which leave more capacity to later jobs. Wherever it can place a job, so can the policy
/// that names it.
///
/// The head of a queue has a reservation, so it could take any shape that becomes free. It waits for one of these
/// shapes instead, if that does not take much longer.
#[derive(Clone, Copy)]
pub struct HeadRule<'a> {
    /// The policy with fewer shapes.
    pub policy: &'a dyn Policy,
    /// How much later than with any shape the head may start, as a share of its walltime.
    pub patience: f64,
}

impl dyn Policy + '_ {
    /// The policy that the head of a queue waits for, if it differs: see [`HeadRule`].
    pub fn for_head(&self) -> Option<HeadRule<'_>> {
        self.queue_rule().and_then(QueueRule::for_head)
    }

    /// The policy to use when `waiting` jobs are queued. A queue uses it for all placements and reservations of a pass.
    pub fn for_queue_length(&self, waiting: usize) -> &dyn Policy {
        let other = self.queue_rule().and_then(|rule| rule.for_queue_length(waiting));
        other.unwrap_or(self)
    }

    /// What a placement takes from later jobs in addition to its nodes: see [`QueueRule::waste`].
    pub fn waste(&self, request: &Request, placement: &Placement, occupancy: &Occupancy) -> f64 {
        self.queue_rule().map_or(0.0, |rule| rule.waste(request, placement, occupancy))
    }

    /// The parts of a machine where the policy cannot isolate jobs, or only some: see [`DedicatesLinks::limits`].
    pub fn limits(&self, fabric: &Fabric) -> Vec<Limit> {
        let rule = self.dedicates_links().filter(|_| fabric.wiring().is_tree());
        rule.map_or_else(Vec::new, |links| links.limits(fabric))
    }

    /// The number of searches so far, and how many of them reached a bound: see [`DedicatesLinks::searches`].
    pub fn searches(&self) -> (u64, u64) {
        self.dedicates_links().map_or((0, 0), DedicatesLinks::searches)
    }
}
