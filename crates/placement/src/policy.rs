//! What a policy is.

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

/// What holds for all answers of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traits {
    /// Enough slots are all that it needs, wherever they are. Reservations are then arithmetic.
    pub count_only: bool,
    /// Requests that differ only in identity and times get the same answer up to the choice among equals. A queue then asks
    /// once for all jobs of one size.
    pub depends_only_on_size: bool,
    /// No link carries two jobs' traffic.
    pub isolates: bool,
    /// Whether more room is never in the way.
    pub room_helps: RoomHelps,
}

/// Whether a rule that finds a place for a request also finds one when less is held on the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomHelps {
    /// It does, if no search of it ends before it has seen everything. A queue may then remember what it asked.
    Always,
    /// It mostly does. A queue may then ask for the time of a reservation by halves.
    Mostly,
    /// Nothing is promised.
    Unknown,
}

impl Traits {
    /// Nothing is promised.
    pub const NONE: Traits = Traits {
        count_only: false,
        depends_only_on_size: false,
        isolates: false,
        room_helps: RoomHelps::Unknown,
    };
    /// Enough slots are all that it needs.
    pub const COUNT_ONLY: Traits = Traits {
        count_only: true,
        depends_only_on_size: true,
        room_helps: RoomHelps::Always,
        ..Traits::NONE
    };
    /// It isolates jobs, all jobs of one size get the same answer, and more room is never in the way.
    pub const ISOLATES: Traits = Traits {
        isolates: true,
        depends_only_on_size: true,
        room_helps: RoomHelps::Always,
        ..Traits::NONE
    };
}

/// A rule that chooses nodes. Pure: the same request in the same state gets the same answer.
///
/// A rule implements `name`, `traits` and `choose`. Everything else is for rules that can do more. Callers use `place` and
/// `can_place` of `dyn Policy`, which settle what is the same for all rules: too few slots, and sites that no link joins.
pub trait Policy: Send + Sync {
    /// The name under which it is registered.
    fn name(&self) -> &str;

    /// What holds for all its answers; the same at every call.
    fn traits(&self) -> Traits;

    /// The nodes for the request, once per slot, in rank order, and the uplinks that come with them. There are at least
    /// `request.nodes` free slots, all joined by links.
    ///
    /// # Errors
    /// A refusal if the rule finds no place among the free slots.
    fn choose(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal>;

    /// Whether [`Policy::choose`] would find a place, for rules that can tell without choosing.
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

    /// Whether enough slots are all that this request needs, wherever they are: for rules that need more for some requests
    /// only.
    fn counts_only(&self, _request: &Request) -> bool {
        self.traits().count_only
    }

    /// Whether more room is never in the way of this request: for rules of which that holds for some requests only.
    fn room_helps(&self, _request: &Request) -> RoomHelps {
        self.traits().room_helps
    }

    /// Whether the choice among equals depends on the identity of a request: then one that differs in nothing else may get other
    /// nodes.
    fn draws_by_identity(&self) -> bool {
        false
    }

    /// What stands in the way of a request that the rule refuses for its links, and the level of the groups one of
    /// which must hold it. By default these are uplinks of other jobs if the rule dedicates links; otherwise the groups
    /// that isolated jobs cross.
    fn obstacles(&self, looking: &Looking<'_>) -> (usize, Vec<Obstacle>) {
        let top = looking.occupancy.fabric().depth();
        if self.dedicates_links().is_some() {
            return (top, looking.dedicated_uplinks());
        }
        (top, looking.crossed(top, self.traits().isolates))
    }

    /// In which sets of nodes every placement of the request lies, for rules that keep requests together; `None` if any nodes
    /// may be given, or if the rule does not say.
    fn homes(&self, _request: &Request, _occupancy: &Occupancy) -> Option<Homes> {
        None
    }

    /// What it costs to give each node the next slot, for rules that can tell.
    fn slot_costs(&self) -> Option<&dyn SlotCosts> {
        None
    }

    /// Where a rule that dedicates links cannot do so.
    fn dedicates_links(&self) -> Option<&dyn DedicatesLinks> {
        None
    }

    /// Whether it looks at what jobs send ([`Occupancy::network`]): whoever keeps the state then keeps count of that.
    fn reads_traffic(&self) -> bool {
        false
    }

    /// Whether it reads [`Request::within`] itself: see [`place_within`](crate::place_within).
    fn reads_within(&self) -> bool {
        false
    }

    /// What the rule decides for a queue, if anything.
    fn queue_rule(&self) -> Option<&dyn QueueRule> {
        None
    }
}

/// A rule that can tell what each node costs: for systems that ask for one slot after another, such as Nova.
pub trait SlotCosts {
    /// What it costs to give each node the next slot of the request and to go on as well as can be. The least is what the
    /// rule would choose, infinite what it would never choose. The slots given so far are among the request's members.
    ///
    /// # Errors
    /// A refusal if the rule finds no place among the free slots.
    fn costs(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Result<Vec<f64>, Refusal>;
}

/// A rule that dedicates links to jobs.
pub trait DedicatesLinks {
    /// Where on a machine it cannot do so, or not fully.
    fn limits(&self, fabric: &Fabric) -> Vec<Limit> {
        limits(fabric)
    }

    /// How often it has searched, and how often it gave up before it had seen everything.
    fn searches(&self) -> (u64, u64) {
        (0, 0)
    }
}

/// A rule that gives a queue more than the place of a job.
pub trait QueueRule {
    /// What a placement takes from later jobs beyond its nodes; 0 for nothing. A queue that lets jobs overtake others
    /// starts those first that waste least.
    fn waste(&self, request: &Request, placement: &Placement, occupancy: &Occupancy) -> f64;

    /// The rule that plans before it chooses nodes and links, if it does.
    fn plans_first(&self) -> Option<&dyn PlansFirst> {
        None
    }

    /// The rule by which the head of a queue waits, if it is another one: see [`HeadRule`].
    fn for_head(&self) -> Option<HeadRule<'_>> {
        None
    }

    /// The rule to use while `waiting` jobs are queued; `None` if it does not depend on the queue length.
    fn for_queue_length(&self, _waiting: usize) -> Option<&dyn Policy> {
        None
    }
}

/// A rule that plans before it chooses nodes and links. A queue that seeks the least waste among many jobs asks for most of them in
/// vain, and a plan costs less.
pub trait PlansFirst {
    /// The plan of what [`Policy::choose`] would answer; `None` if it would refuse the request for its links.
    fn plan(
        &self,
        request: &Request,
        free: &FreeSlots<'_>,
        occupancy: &Occupancy,
    ) -> Option<LinkPlan>;

    /// What a placement by this plan wastes ([`QueueRule::waste`]).
    fn waste_of_plan(&self, request: &Request, plan: &LinkPlan, occupancy: &Occupancy) -> f64;
}

/// A rule of fewer shapes, which leave more to later jobs. Wherever it places a job, the rule that names it does so too.
///
/// The head of a queue has the reservation, so it could take any shape that is to be had at once. It waits for one of
/// these instead, if that is not much later.
#[derive(Clone, Copy)]
pub struct HeadRule<'a> {
    /// The rule.
    pub policy: &'a dyn Policy,
    /// How much later than by any shape the head may start for it, as a part of its walltime.
    pub patience: f64,
}

impl dyn Policy + '_ {
    /// The rule by which the head of a queue waits, if it is another one: see [`HeadRule`].
    pub fn for_head(&self) -> Option<HeadRule<'_>> {
        self.queue_rule().and_then(QueueRule::for_head)
    }

    /// The rule to use while `waiting` jobs are queued. A queue asks it for all that it places and promises in a pass.
    pub fn for_queue_length(&self, waiting: usize) -> &dyn Policy {
        let other = self.queue_rule().and_then(|rule| rule.for_queue_length(waiting));
        other.unwrap_or(self)
    }

    /// What a placement takes from later jobs beyond its nodes: see [`QueueRule::waste`].
    pub fn waste(&self, request: &Request, placement: &Placement, occupancy: &Occupancy) -> f64 {
        self.queue_rule().map_or(0.0, |rule| rule.waste(request, placement, occupancy))
    }

    /// Where on a machine it cannot isolate jobs, or not fully: see [`DedicatesLinks::limits`].
    pub fn limits(&self, fabric: &Fabric) -> Vec<Limit> {
        self.dedicates_links().map_or_else(Vec::new, |links| links.limits(fabric))
    }

    /// How often it has searched, and how often it gave up: see [`DedicatesLinks::searches`].
    pub fn searches(&self) -> (u64, u64) {
        self.dedicates_links().map_or((0, 0), DedicatesLinks::searches)
    }
}
