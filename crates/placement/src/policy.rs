//! What a policy is, and how it is asked.

use topolane_fabric::{CableId, Fabric, NodeIndex};

use crate::explain::{Looking, Obstacle};
use crate::occupancy::Occupancy;
use crate::owned::{Limit, limit_for};
use crate::placement::Placement;
use crate::refusal::Refusal;
use crate::request::Request;
use crate::room::Room;

/// Nodes, once per slot and in rank order, and the uplinks that come with them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// The nodes.
    pub nodes: Vec<NodeIndex>,
    /// Uplinks that nobody else may use; none for a rule that gives none.
    pub links: Vec<CableId>,
    /// The share of full bandwidth on them; 1 where there is nothing to share.
    pub phi: f64,
    /// Nodes that are held beside those and not used, for a rule that gives more than was asked for.
    pub spare: Vec<NodeIndex>,
}

/// A rule that chooses nodes. Pure: the same request in the same state gets the same answer.
///
/// A policy implements [`Policy::choose`]; everybody else calls `place` and `admits` (on
/// `dyn Policy`), which settle what is the same for all rules: too few slots, sites that no
/// link joins, and slots that are not there.
pub trait Policy: Send + Sync {
    /// The name it is registered under.
    fn name(&self) -> &str;

    /// The nodes for the request, once per slot, in rank order. The room has at least
    /// `request.nodes` slots, all joined by links.
    ///
    /// # Errors
    /// A refusal where the rule finds no place in this room.
    fn choose(
        &self,
        request: &Request,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> Result<Vec<NodeIndex>, Refusal>;

    /// The same with uplinks, for rules that give them.
    ///
    /// # Errors
    /// As [`Policy::choose`].
    fn choose_links(
        &self,
        request: &Request,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> Result<Choice, Refusal> {
        let nodes = self.choose(request, room, occupancy)?;
        Ok(Choice { nodes, phi: 1.0, ..Choice::default() })
    }

    /// The rule as it is where so many jobs wait, if it is another one then. A queue asks that one for all that it places
    /// and promises in a pass.
    fn among_waiting(&self, _waiting: usize) -> Option<&dyn Policy> {
        None
    }

    /// What a placement of this rule's takes from those who come, beyond its nodes; 0 for nothing. A queue that lets
    /// jobs overtake others starts those first that waste least.
    fn waste(&self, _request: &Request, _placement: &Placement, _occupancy: &Occupancy) -> f64 {
        0.0
    }

    /// Whether [`Policy::choose`] would find a place; for rules that can tell without choosing.
    ///
    /// # Errors
    /// The refusal that [`Policy::choose`] would give.
    fn finds(
        &self,
        request: &Request,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> Result<(), Refusal> {
        self.choose(request, room, occupancy).map(drop)
    }

    /// What stands in the way of a request that the rule refuses for its links, and the level of the groups one of
    /// which must hold it. The rule as it is where nobody may cross what an isolated job crosses.
    fn obstacles(&self, looking: &Looking<'_>) -> (usize, Vec<Obstacle>) {
        let top = looking.occupancy.fabric().depth();
        (top, looking.crossed(top, self.isolates()))
    }

    /// What it costs to give each node the next slot of the request and to go on as well as can
    /// be: the least is what the rule would do, infinite what it would never do. For a system that
    /// asks for one slot after another, with the slots given so far among the members.
    ///
    /// # Errors
    /// A refusal where the rule finds no place in this room.
    fn costs(
        &self,
        request: &Request,
        room: &Room<'_>,
        occupancy: &Occupancy,
    ) -> Result<Vec<f64>, Refusal> {
        let chosen = self.choose(request, room, occupancy)?;
        let mut costs = vec![f64::INFINITY; room.fabric().nodes() as usize];
        for node in room.nodes() {
            costs[node as usize] = 1.0;
        }
        for node in chosen {
            costs[node as usize] = 0.0;
        }
        Ok(costs)
    }

    /// Whether enough slots are all it needs, wherever they are. Reservations are then arithmetic.
    fn count_only(&self) -> bool {
        false
    }

    /// Whether requests that differ only in identity and times get the same answer up to the
    /// choice among equals. A queue then asks once for all jobs of one size.
    fn by_shape(&self) -> bool {
        self.count_only()
    }

    /// How often it has searched, and how often it gave up before it had seen all: for rules with a limit.
    fn searches(&self) -> (u64, u64) {
        (0, 0)
    }

    /// Whether it promises that no link carries two jobs' traffic.
    fn isolates(&self) -> bool {
        false
    }

    /// Where on a machine it cannot do so, or not fully.
    fn limits(&self, _: &Fabric) -> Vec<Limit> {
        Vec::new()
    }
}

impl dyn Policy + '_ {
    /// The rule to be asked where so many wait: see [`Policy::among_waiting`].
    pub fn where_wait(&self, waiting: usize) -> &dyn Policy {
        self.among_waiting(waiting).unwrap_or(self)
    }

    /// Places a request.
    ///
    /// # Errors
    /// The policy's refusal, or that there are too few slots now or at all.
    pub fn place(&self, request: &Request, occupancy: &Occupancy) -> Result<Placement, Refusal> {
        let ask = |room: &Room<'_>| self.choose_links(request, room, occupancy);
        let Choice { nodes, links, phi, spare } = in_regions(request, occupancy, ask)?;
        let placement = Placement::new(occupancy.fabric(), nodes, request.share);
        Ok(placement.owning(self.isolates()).with_links(links, phi).with_spare(spare))
    }

    /// Why the request will never be placed, whoever leaves and whatever comes back into service; `None` if it may be.
    pub fn never(&self, request: &Request, occupancy: &Occupancy) -> Option<Refusal> {
        let wanted = request.nodes;
        Some(match self.admits(request, occupancy.empty()).err()? {
            Refusal::WouldShareLinks { free: most, .. } if self.isolates() => {
                let fabric = occupancy.fabric();
                let why = limit_for(fabric, &self.limits(fabric), wanted);
                Refusal::CannotIsolate { wanted, most, why }
            }
            Refusal::NotNow { free, .. } | Refusal::WouldShareLinks { free, .. } => {
                Refusal::Never { wanted, most: free }
            }
            Refusal::Never { most, .. } => Refusal::Never { wanted, most },
            refusal @ Refusal::CannotIsolate { .. } => refusal,
        })
    }

    /// What it costs to give each node the next slot; infinite for a node without one. See
    /// [`Policy::costs`].
    ///
    /// # Errors
    /// The policy's refusal, or that there are too few slots now or at all.
    pub fn weigh(&self, request: &Request, occupancy: &Occupancy) -> Result<Vec<f64>, Refusal> {
        in_regions(request, occupancy, |room| self.costs(request, room, occupancy))
    }

    /// Whether [`place`](#method.place) would succeed, told without choosing nodes where it can be.
    ///
    /// # Errors
    /// The refusal that `place` would give.
    pub fn admits(&self, request: &Request, occupancy: &Occupancy) -> Result<(), Refusal> {
        in_regions(request, occupancy, |room| {
            if self.count_only() { Ok(()) } else { self.finds(request, room, occupancy) }
        })
    }
}

/// Asks `answer` for the room as a whole, or, where some sites are not joined, for the room of
/// each set of joined sites in turn: a placement stays within one.
fn in_regions<T>(
    request: &Request,
    occupancy: &Occupancy,
    answer: impl Fn(&Room<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let fabric = occupancy.fabric();
    if request.members.iter().any(|&member| member >= fabric.nodes()) {
        return Err(Refusal::Never { wanted: request.nodes, most: 0 });
    }
    let room = occupancy.room(request);
    let total = room.total();
    if total < request.nodes {
        return Err(shortage(request, occupancy, total));
    }
    if occupancy.is_joined() {
        return answer(&room);
    }
    let at_home =
        |of: &Occupancy, region| request.members.iter().all(|&member| of.is_in(member, region));
    let mut refusal = Refusal::NotNow { wanted: request.nodes, free: 0 };
    for region in occupancy.regions() {
        if !at_home(occupancy, region) {
            continue;
        }
        let part = room.only(|node| occupancy.is_in(node, region));
        let free = part.total();
        let answered = if free < request.nodes {
            Err(Refusal::NotNow { wanted: request.nodes, free })
        } else {
            answer(&part)
        };
        match (answered, refusal) {
            (Ok(found), _) => return Ok(found),
            (Err(Refusal::NotNow { free, .. }), Refusal::NotNow { free: most, .. })
                if free <= most => {}
            (Err(Refusal::NotNow { .. }), Refusal::WouldShareLinks { .. }) => {}
            (Err(reason), _) => refusal = reason,
        }
    }
    // With all links in service again.
    let empty = occupancy.empty();
    let at_best = empty.room(request);
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

/// Too few slots: now, or even on the empty machine.
fn shortage(request: &Request, occupancy: &Occupancy, free: u32) -> Refusal {
    let wanted = request.nodes;
    if wanted <= occupancy.fabric().nodes() && request.is_plain() {
        return Refusal::NotNow { wanted, free };
    }
    let most = occupancy.empty().room(request).total();
    if wanted > most { Refusal::Never { wanted, most } } else { Refusal::NotNow { wanted, free } }
}
