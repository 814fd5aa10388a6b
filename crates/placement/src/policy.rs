//! What a policy is, and how it is asked.

use std::sync::Arc;

use topolane_fabric::{CableId, Fabric, NodeIndex};

use crate::dedicated::{Limit, limit_for, limits};
use crate::explain::{Looking, Obstacle};
use crate::free_slots::FreeSlots;
use crate::gpus::GpuSet;
use crate::homes::Homes;
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::planned::{LinkPlan, Place, Planned, planned};
use crate::refusal::Refusal;
use crate::request::{Request, Share};

/// The nodes that a policy chooses, and the uplinks that come with them.
#[derive(Debug, Clone, PartialEq)]
pub struct Choice {
    /// The nodes, once per slot and in rank order.
    pub nodes: Vec<NodeIndex>,
    /// Uplinks that only this request may use; none from a rule that dedicates none.
    pub links: Vec<CableId>,
    /// The share of full bandwidth on them; 1 where there is nothing to share.
    pub bandwidth_share: f64,
    /// Nodes that are held with those and not used, from a rule that gives more than was asked for.
    pub spare: Vec<NodeIndex>,
    /// The GPUs of each slot; empty for those of the state's own rule ([`Occupancy::name_gpus`]).
    pub gpus: Vec<GpuSet>,
}

impl Choice {
    /// Nodes without links of their own.
    pub fn nodes(nodes: Vec<NodeIndex>) -> Self {
        Choice {
            nodes,
            links: Vec::new(),
            bandwidth_share: 1.0,
            spare: Vec::new(),
            gpus: Vec::new(),
        }
    }
}

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
    /// may be given, or if that is not told.
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

    /// What a rule tells the queue that asks it.
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

/// A rule that tells a queue more than where a job goes.
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

    /// The rule to use while so many jobs wait, if it is another one then.
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

    /// The rule to use while so many jobs wait. A queue asks it for all that it places and promises in a pass.
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

    /// Places a request.
    ///
    /// # Errors
    /// The policy's refusal, or that there are too few slots now or at all.
    pub fn place(&self, request: &Request, occupancy: &Occupancy) -> Result<Placement, Refusal> {
        let ask = |free: &FreeSlots<'_>| self.choose(request, free, occupancy);
        in_regions(request, occupancy, ask).map(|choice| self.placed(request, choice, occupancy))
    }

    /// Tells where [`place`](#method.place) would place a request and what that wastes ([`QueueRule::waste`]).
    ///
    /// # Errors
    /// As `place`.
    pub fn plan(&self, request: &Request, occupancy: &Occupancy) -> Result<Planned, Refusal> {
        let rule = self.queue_rule().and_then(QueueRule::plans_first);
        let Some(rule) = rule.filter(|_| occupancy.is_joined()) else {
            let placement = self.place(request, occupancy)?;
            let waste = self.waste(request, &placement, occupancy);
            return Ok(Planned { waste, place: Place::Chosen(Arc::new(placement)) });
        };
        let plan = in_regions(request, occupancy, |free| planned(rule, request, free, occupancy))?;
        let waste = rule.waste_of_plan(request, &plan, occupancy);
        Ok(Planned { waste, place: Place::Planned(plan) })
    }

    /// The placement of a request, or of one that differs in identity and times only, by its plan. The state is the one that it was
    /// planned in.
    pub fn carry_out(
        &self,
        planned: &Planned,
        request: &Request,
        occupancy: &Occupancy,
    ) -> Arc<Placement> {
        match &planned.place {
            Place::Chosen(placement) => Arc::clone(placement),
            Place::Planned(plan) => {
                let free = occupancy.free_slots(request);
                let choice = plan.choice(&free.unshared(request, occupancy), occupancy);
                Arc::new(self.placed(request, choice, occupancy))
            }
        }
    }

    /// The placement of what it chose.
    fn placed(&self, request: &Request, choice: Choice, occupancy: &Occupancy) -> Placement {
        let Choice { nodes, links, bandwidth_share, spare, gpus } = choice;
        let placement = Placement::new(occupancy.fabric(), nodes, request.share.clone());
        let placement = placement
            .isolated(self.traits().isolates)
            .with_links(links, bandwidth_share)
            .with_spare(spare)
            .with_gpus(gpus);
        let placement = occupancy.name_gpus(placement);
        let traffic = occupancy.lay(request, &placement);
        placement.with_traffic(traffic)
    }

    /// Why the request will never be placed, whoever leaves and whatever comes back into service; `None` if it may be.
    pub fn never(&self, request: &Request, occupancy: &Occupancy) -> Option<Refusal> {
        let wanted = request.nodes;
        Some(match self.can_place(request, occupancy.empty()).err()? {
            Refusal::WouldShareLinks { free: most, .. } if self.traits().isolates => {
                let fabric = occupancy.fabric();
                let why = limit_for(fabric, &self.limits(fabric), wanted);
                Refusal::CannotIsolate { wanted, most, why }
            }
            Refusal::NotNow { free, .. } | Refusal::WouldShareLinks { free, .. } => {
                Refusal::Never { wanted, most: free }
            }
            Refusal::Never { most, .. } => Refusal::Never { wanted, most },
            refusal @ (Refusal::CannotIsolate { .. } | Refusal::Lacks { .. }) => refusal,
        })
    }

    /// What it costs to give each node the next slot; infinite for a node without one. See [`SlotCosts`]. A rule that cannot
    /// tell costs is asked for a choice: 0 for what it chooses, 1 for other free slots.
    ///
    /// # Errors
    /// The policy's refusal, or that there are too few slots now or at all.
    pub fn weigh(&self, request: &Request, occupancy: &Occupancy) -> Result<Vec<f64>, Refusal> {
        in_regions(request, occupancy, |free| match self.slot_costs() {
            Some(rule) => rule.costs(request, free, occupancy),
            None => Ok(chosen_or_not(free, &self.choose(request, free, occupancy)?)),
        })
    }

    /// Whether [`place`](#method.place) would succeed, told without choosing nodes where it can be.
    ///
    /// # Errors
    /// The refusal that `place` would give.
    pub fn can_place(&self, request: &Request, occupancy: &Occupancy) -> Result<(), Refusal> {
        in_regions(request, occupancy, |free| {
            if self.counts_only(request) {
                Ok(())
            } else {
                self.has_place(request, free, occupancy)
            }
        })
    }
}

/// 0 for the nodes chosen, 1 for other free nodes, infinite for the rest.
fn chosen_or_not(free: &FreeSlots<'_>, choice: &Choice) -> Vec<f64> {
    let mut costs = vec![f64::INFINITY; free.fabric().nodes() as usize];
    for node in free.nodes() {
        costs[node as usize] = 1.0;
    }
    for &node in &choice.nodes {
        costs[node as usize] = 0.0;
    }
    costs
}

/// Asks `answer` for all free slots or, if some sites are not joined, for the free slots of each set of joined sites in
/// turn: a placement stays within one.
fn in_regions<T>(
    request: &Request,
    occupancy: &Occupancy,
    answer: impl Fn(&FreeSlots<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let fabric = occupancy.fabric();
    if request.members.iter().any(|&member| member >= fabric.nodes()) {
        return Err(Refusal::Never { wanted: request.nodes, most: 0 });
    }
    if let Some(total) = total_if_counted(request, occupancy).filter(|&total| total < request.nodes)
    {
        return Err(shortage(request, occupancy, total));
    }
    let free = occupancy.free_slots(request);
    let total = free.total();
    if total < request.nodes {
        return Err(shortage(request, occupancy, total));
    }
    if occupancy.is_joined() {
        return answer(&free);
    }
    let at_home =
        |of: &Occupancy, region| request.members.iter().all(|&member| of.is_in(member, region));
    let mut refusal = Refusal::NotNow { wanted: request.nodes, free: 0 };
    for region in occupancy.regions() {
        if !at_home(occupancy, region) {
            continue;
        }
        let part = free.only(|node| occupancy.is_in(node, region));
        let free = part.total();
        let answered = if free < request.nodes {
            Err(Refusal::NotNow { wanted: request.nodes, free })
        } else {
            answer(&part)
        };
        match (answered, &refusal) {
            (Ok(found), _) => return Ok(found),
            (Err(Refusal::NotNow { free, .. }), Refusal::NotNow { free: most, .. })
                if free <= *most => {}
            (Err(Refusal::NotNow { .. }), Refusal::WouldShareLinks { .. }) => {}
            (Err(reason), _) => refusal = reason,
        }
    }
    // With all links in service again.
    let empty = occupancy.empty();
    let at_best = empty.free_slots(request);
    let regions = empty.regions().into_iter().filter(|&region| at_home(empty, region));
    let most = regions
        .map(|region| at_best.only(|node| empty.is_in(node, region)).total())
        .max()
        .unwrap_or(0);
    if request.nodes > most {
        return Err(Refusal::Never { wanted: request.nodes, most });
    }
    Err(refusal)
}

/// The free slots of a request whose slots need not be counted anew.
fn total_if_counted(request: &Request, occupancy: &Occupancy) -> Option<u32> {
    let is_counted = !request.stacked && request.eligible.is_none() && request.slots.is_none();
    match &request.share {
        Share::Part(amounts) if is_counted => Some(occupancy.part_total(amounts)),
        _ => None,
    }
}

/// Too few slots: now, or even on the empty machine.
fn shortage(request: &Request, occupancy: &Occupancy, free: u32) -> Refusal {
    let wanted = request.nodes;
    if wanted <= occupancy.fabric().nodes() && request.is_plain() {
        return Refusal::NotNow { wanted, free };
    }
    let empty = occupancy.empty();
    let most = total_if_counted(request, empty);
    let most = most.unwrap_or_else(|| empty.free_slots(request).total());
    if let (0, Share::Part(amounts), None) = (most, &request.share, &request.slots)
        && let Some(lacking) = amounts.lacking(occupancy.fabric())
    {
        return lacking;
    }
    if wanted > most { Refusal::Never { wanted, most } } else { Refusal::NotNow { wanted, free } }
}
