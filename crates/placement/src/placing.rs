//! Asks a policy for a placement: everything that is the same for all policies.

use std::sync::Arc;

use topolane_fabric::Fabric;

use crate::choice::Choice;
use crate::dedicated::limit_for;
use crate::free_slots::FreeSlots;
use crate::occupancy::Occupancy;
use crate::placement::Placement;
use crate::planned::{LinkPlan, Planned, PlannedPlace};
use crate::policy::{BetweenGroups, PlansFirst, Policy, QueueRule};
use crate::refusal::Refusal;
use crate::request::{Request, Share};

impl dyn Policy + '_ {
    /// Checks that the policy works on a machine of this kind.
    ///
    /// # Errors
    /// [`Refusal::WrongWiring`] if it does not.
    pub fn check_wiring(&self, fabric: &Fabric) -> Result<(), Refusal> {
        let (needs, wiring) = (self.traits().wirings, fabric.wiring());
        if !needs.has(wiring) {
            return Err(Refusal::WrongWiring { needs, has: wiring.name() });
        }
        // Messages on detours do not keep to the cables of their job.
        let has_detours = wiring.dragonfly().is_some_and(|it| it.detours().is_some());
        if has_detours && self.dedicates_links().is_some() {
            return Err(Refusal::WrongWiring { needs, has: "dragonfly with detours" });
        }
        Ok(())
    }

    /// Checks that the policy works on a machine of this kind whose routes Topolane can set.
    ///
    /// # Errors
    /// In a sentence: it does not, or jobs would not keep to the cables that it gives them.
    pub fn check_live(&self, fabric: &Fabric) -> Result<(), String> {
        self.check_wiring(fabric).map_err(|refusal| refusal.to_string())?;
        if self.dedicates_links().is_some() && !fabric.wiring().is_tree() {
            let wiring = fabric.wiring().name();
            return Err(format!(
                "Topolane writes no routes for a {wiring}, so jobs would not keep to their own cables"
            ));
        }
        Ok(())
    }

    /// Places a request.
    ///
    /// # Errors
    /// The policy refuses, or there are too few slots, now or even on the empty machine.
    pub fn place(&self, request: &Request, occupancy: &Occupancy) -> Result<Placement, Refusal> {
        let ask = |free: &FreeSlots<'_>| self.choose(request, free, occupancy);
        self.check_wiring(occupancy.fabric())?;
        in_regions(request, occupancy, ask).map(|choice| self.placed(request, choice, occupancy))
    }

    /// Returns where [`place`](#method.place) would place a request, and the waste ([`QueueRule::waste`]).
    ///
    /// # Errors
    /// As `place`.
    pub fn plan(&self, request: &Request, occupancy: &Occupancy) -> Result<Planned, Refusal> {
        let rule = self.queue_rule().and_then(QueueRule::plans_first);
        let plans = occupancy.is_joined() && occupancy.fabric().wiring().is_tree();
        let Some(rule) = rule.filter(|_| plans) else {
            let placement = self.place(request, occupancy)?;
            let waste = self.waste(request, &placement, occupancy);
            return Ok(Planned { waste, place: PlannedPlace::Chosen(Arc::new(placement)) });
        };
        self.check_wiring(occupancy.fabric())?;
        let plan = in_regions(request, occupancy, |free| planned(rule, request, free, occupancy))?;
        let waste = rule.waste_of_plan(request, &plan, occupancy);
        Ok(Planned { waste, place: PlannedPlace::Planned(plan) })
    }

    /// Returns the placement of a plan. The request must be the planned one, or differ from it only in id and times.
    /// The occupancy must be in the state in which the request was planned.
    pub fn carry_out(
        &self,
        planned: &Planned,
        request: &Request,
        occupancy: &Occupancy,
    ) -> Arc<Placement> {
        match &planned.place {
            PlannedPlace::Chosen(placement) => Arc::clone(placement),
            PlannedPlace::Planned(plan) => {
                let free = occupancy.free_slots(request);
                let choice = plan.choice(&free.unshared(request, occupancy), occupancy);
                Arc::new(self.placed(request, choice, occupancy))
            }
        }
    }

    /// Returns a placement of the policy with the isolation that the policy promises.
    pub fn isolate(&self, placement: Placement, fabric: &Fabric) -> Placement {
        let traits = self.traits();
        let placement = placement.isolated(traits.isolates);
        match traits.between_groups {
            BetweenGroups::Apart => placement.isolated_between_groups(fabric),
            BetweenGroups::Shared => placement,
        }
    }

    /// Returns the placement for a policy's choice.
    fn placed(&self, request: &Request, choice: Choice, occupancy: &Occupancy) -> Placement {
        let Choice { nodes, links, bandwidth_share, spare, gpus } = choice;
        let placement = Placement::new(occupancy.fabric(), nodes, request.share.clone());
        let placement = self
            .isolate(placement, occupancy.fabric())
            .with_links(occupancy.fabric(), links, bandwidth_share)
            .with_spare(spare)
            .with_gpus(gpus);
        let placement = occupancy.name_gpus(placement);
        let traffic = occupancy.lay(request, &placement);
        placement.with_traffic(traffic)
    }

    /// Returns the refusal if the request can never be placed, even on the empty machine with everything in service;
    /// `None` if it can.
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
            refusal @ (Refusal::CannotIsolate { .. }
            | Refusal::Lacks { .. }
            | Refusal::WrongWiring { .. }) => refusal,
        })
    }

    /// Returns the cost of giving each node the next slot; infinite if a node has none. See [`SlotCosts`]. If the
    /// policy has no costs, it is asked for a choice: 0 for the nodes it chooses, 1 for other free nodes.
    ///
    /// # Errors
    /// The policy refuses, or there are too few slots, now or even on the empty machine.
    pub fn weigh(&self, request: &Request, occupancy: &Occupancy) -> Result<Vec<f64>, Refusal> {
        self.check_wiring(occupancy.fabric())?;
        in_regions(request, occupancy, |free| match self.slot_costs() {
            Some(rule) => rule.costs(request, free, occupancy),
            None => Ok(chosen_or_not(free, &self.choose(request, free, occupancy)?)),
        })
    }

    /// Whether [`place`](#method.place) would succeed. Does not choose nodes if counts suffice.
    ///
    /// # Errors
    /// The refusal that `place` would return.
    pub fn can_place(&self, request: &Request, occupancy: &Occupancy) -> Result<(), Refusal> {
        self.check_wiring(occupancy.fabric())?;
        in_regions(request, occupancy, |free| {
            if self.counts_only(request) {
                Ok(())
            } else {
                self.has_place(request, free, occupancy)
            }
        })
    }
}

/// Costs of 0 for the chosen nodes, 1 for other free nodes, and infinite for the rest.
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

/// Calls `answer` with all free slots. If some sites are not connected, calls it for each set of connected sites in
/// turn, because a placement must stay within one set.
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
    // Ask again as if all links were in service.
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

/// The number of free slots for a request, if the occupancy already has it.
fn total_if_counted(request: &Request, occupancy: &Occupancy) -> Option<u32> {
    let is_counted = !request.stacked && request.eligible.is_none() && request.slots.is_none();
    match &request.share {
        Share::Part(amounts) if is_counted => Some(occupancy.part_total(amounts)),
        _ => None,
    }
}

/// The refusal for too few slots: now, or even on the empty machine.
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
        return lacking.into();
    }
    if wanted > most { Refusal::Never { wanted, most } } else { Refusal::NotNow { wanted, free } }
}

/// Plans a request with a policy that plans first, from the slots that a job may use without sharing links.
pub(crate) fn planned(
    rule: &dyn PlansFirst,
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
) -> Result<LinkPlan, Refusal> {
    let free = &free.unshared(request, occupancy);
    rule.plan(request, free, occupancy).ok_or_else(|| free.would_share_links(request))
}

/// Returns the choice of a policy that plans first.
pub(crate) fn chosen(
    rule: &dyn PlansFirst,
    request: &Request,
    free: &FreeSlots<'_>,
    occupancy: &Occupancy,
) -> Result<Choice, Refusal> {
    let plan = planned(rule, request, free, occupancy)?;
    Ok(plan.choice(&free.unshared(request, occupancy), occupancy))
}
