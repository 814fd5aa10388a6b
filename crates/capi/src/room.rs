//! Which jobs must go so that a request has a place.

use std::ffi::c_char;
use std::ptr;
use std::sync::Arc;

use topolane_fabric::Fabric;
use topolane_placement::{
    CountedAmounts, Disruption, FreedAmounts, Placement, PresentJob, Request as Asked, RoomEffort,
    RoomPlan as Found, make_counted_room, make_room,
};

use crate::decision::{Decision, Numbers};
use crate::guard::{Problem, Status, array, give, object, or_else, sized, take_back, writable};
use crate::policy::Policy;
use crate::request::{Request, nodes_on, nothing};
use crate::state::{Holdings, State, with_state};

/// The place of a candidate that no budget limits.
pub const TOPOLANE_NO_BUDGET: u32 = u32::MAX;

/// A job that may go, alone or as a whole group. Since version 7.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Candidate {
    /// Identity of the job. It gives back what the state holds for it, if it holds anything.
    pub id: u64,
    /// What it costs that it goes, at least 0.
    pub cost: f64,
    /// Candidates of a higher rank go only if those of lower ranks are not enough.
    pub rank: u32,
    /// Its place in the budgets; `TOPOLANE_NO_BUDGET` for none.
    pub budget: u32,
    /// How much of that budget it uses up.
    pub uses: u32,
    /// Nodes on which it leaves something, where the caller counts slots.
    pub nodes: *const u32,
    /// The number of entries in `nodes`.
    pub node_count: usize,
    /// The amounts of each kind that it leaves, node after node: `node_count` times `kinds`.
    pub amounts: *const i64,
}

/// What may be done to make room. Set it to zero, then `size` to `sizeof(topolane_room)`. The arrays belong to the caller and need
/// live only during the call. Since version 7.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RoomLimits {
    /// The size of this struct where it was compiled.
    pub size: usize,
    /// The jobs that may go. Of sets that cost the same, one of earlier candidates is named.
    pub candidates: *const Candidate,
    /// The number of entries in `candidates`.
    pub candidate_count: usize,
    /// How much of each budget may be used up.
    pub budgets: *const u32,
    /// The number of entries in `budgets`.
    pub budget_count: usize,
    /// How many kinds of amounts slots follow from, for a caller that counts slots itself; 0: the state counts.
    pub kinds: usize,
    /// What a slot takes of each kind.
    pub takes: *const i64,
    /// What is free of each kind now, node after node for all nodes of the machine; below 0 where more is held than there is.
    /// `free_slots` of the request is then not looked at, and `all_slots` limits the slots of each node.
    pub free: *const i64,
    /// How often the policy is asked at most; 0: a number that fits the machine.
    pub questions: u32,
}

/// The jobs that must go. Since version 7.
pub struct RoomPlan {
    candidates: Vec<u32>,
    cost: f64,
    least: f64,
}

/// Looks for jobs that must end so that the policy can place a request. The state does not change.
///
/// `plan` gets the candidates that must go, `decision` the place of the request once they are gone. Of the sets that the search
/// finds it takes the cheapest. It names no candidate that need not go, none of a higher rank if those of lower ranks are enough, and
/// never more than the budgets allow. `Refused`: it finds no set. Since version 7.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_make_room(
    state: *mut State,
    policy: *const Policy,
    request: *const Request,
    room: *const RoomLimits,
    plan: *mut *mut RoomPlan,
    decision: *mut *mut Decision,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        with_state(state, error, |holdings| {
            let (to, place) = (writable(plan, "plan")?, writable(decision, "decision")?);
            (*to, *place) = (ptr::null_mut(), ptr::null_mut());
            let rule = &*object(policy, "policy")?.rule;
            let fabric = Arc::clone(holdings.occupancy.fabric());
            let request = Request::read(request)?.on(&fabric)?;
            let wrong = "the member size of room is not sizeof(topolane_room)";
            let room: RoomLimits = sized(room, "room", size_of::<RoomLimits>(), wrong)?;
            let Some(found) = room.search(holdings, rule, &request)? else {
                return Ok(Status::Refused);
            };
            let Found { requeued, cost, least, placement, .. } = found;
            let candidates = requeued.into_iter().map(|row| row as u32).collect();
            give(to, RoomPlan { candidates, cost, least });
            give(place, Decision { id: request.id, fabric, placement });
            Ok(Status::Ok)
        })
    }
}

impl RoomLimits {
    /// # Safety
    /// The arrays are as long as their counts say.
    unsafe fn search(
        &self,
        holdings: &Holdings,
        rule: &dyn topolane_placement::Policy,
        request: &Asked,
    ) -> Result<Option<Found>, Problem> {
        // SAFETY: the caller's promise.
        let (rows, budgets) = unsafe {
            (
                array(self.candidates, self.candidate_count, "candidates")?,
                array(self.budgets, self.budget_count, "budgets")?,
            )
        };
        let mut occupancy = holdings.occupancy.clone();
        let fabric = Arc::clone(occupancy.fabric());
        // SAFETY: the caller's promise.
        let counts = unsafe { self.counts(rows, request, &fabric)? };
        let mut jobs = Vec::with_capacity(rows.len());
        for (place, row) in (0u64..).zip(rows) {
            row.check(budgets)?;
            let placement = if let Some(held) = holdings.jobs.get(&row.id) {
                Arc::clone(held)
            } else {
                let nodes = counts.as_ref().and_then(|counts| counts.left.get(place as usize));
                let nodes = nodes.map_or_else(Vec::new, |left| left.nodes.clone());
                let placement = Placement::new(&fabric, nodes, nothing()).without_links();
                let placement = Arc::new(placement);
                occupancy.adopt(&placement).map_err(|error| error.to_string())?;
                placement
            };
            // Candidates are known by their place: so the order of the caller decides among equals.
            jobs.push((Asked { id: place, ..Asked::default() }, placement));
        }
        let mut held: Vec<u64> = rows.iter().map(|row| row.id).collect();
        held.sort_unstable();
        if let Some([twice, ..]) = held.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(format!("two candidates have the identity {twice}").into());
        }
        let present: Vec<PresentJob<'_>> = jobs.iter().zip(rows).map(Candidate::present).collect();
        let effort = RoomEffort::on(&fabric);
        let questions = if self.questions == 0 { effort.questions } else { self.questions };
        let effort = RoomEffort { budgets: budgets.to_vec(), questions, ..effort };
        let found = match &counts {
            Some(counts) => {
                make_counted_room(rule, request, &mut occupancy, &present, counts, &effort)
            }
            None => make_room(rule, request, &mut occupancy, &present, &effort),
        };
        Ok(found.ok())
    }

    /// What the caller counts; none if it does not.
    ///
    /// # Safety
    /// The arrays are as long as their counts say.
    unsafe fn counts(
        &self,
        rows: &[Candidate],
        request: &Asked,
        fabric: &Fabric,
    ) -> Result<Option<CountedAmounts>, Problem> {
        if self.kinds == 0 {
            return Ok(None);
        }
        let Some(most) = &request.room else {
            return Err("room for counted slots needs all_slots of the request".into());
        };
        let wanted = product(self.kinds, fabric.nodes() as usize)?;
        // SAFETY: the caller's promise.
        let (takes, free) =
            unsafe { (array(self.takes, self.kinds, "takes")?, array(self.free, wanted, "free")?) };
        let mut left = Vec::with_capacity(rows.len());
        for row in rows {
            // SAFETY: the caller's promise.
            let (nodes, amounts) = unsafe {
                let count = product(self.kinds, row.node_count)?;
                (
                    array(row.nodes, row.node_count, "nodes of a candidate")?,
                    array(row.amounts, count, "amounts of a candidate")?,
                )
            };
            if let Some(amount) = amounts.iter().find(|&&amount| amount < 0) {
                return Err(format!("candidate {} leaves {amount}, below 0", row.id).into());
            }
            let nodes = nodes_on(fabric, nodes, "node of a candidate")?;
            left.push(FreedAmounts { nodes, amounts: amounts.to_vec() });
        }
        let (takes, free) = (takes.to_vec(), free.to_vec());
        let mut most = most.to_vec();
        most.resize(fabric.nodes() as usize, 0);
        Ok(Some(CountedAmounts { takes, free, most, left }))
    }
}

fn product(one: usize, other: usize) -> Result<usize, Problem> {
    one.checked_mul(other).ok_or_else(|| format!("{one} kinds are too many").into())
}

impl Candidate {
    fn check(&self, budgets: &[u32]) -> Result<(), Problem> {
        let Candidate { id, cost, budget, .. } = self;
        if !(cost.is_finite() && *cost >= 0.0) {
            return Err(format!("candidate {id}: a cost is 0 or more, not {cost}").into());
        }
        if *budget != TOPOLANE_NO_BUDGET && *budget as usize >= budgets.len() {
            return Err(format!("candidate {id}: there is no budget {budget}").into());
        }
        Ok(())
    }

    fn present<'a>((job, row): (&'a (Asked, Arc<Placement>), &Candidate)) -> PresentJob<'a> {
        let group = (row.budget != TOPOLANE_NO_BUDGET).then_some(row.budget as usize);
        let disruption = Disruption::Requeue(row.cost);
        let Candidate { uses, rank, .. } = *row;
        PresentJob { request: &job.0, placement: &job.1, disruption, group, uses, rank }
    }
}

/// The places of the candidates that must go, ascending; none for NULL. Since version 7.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_room_plan_candidates(plan: *const RoomPlan) -> Numbers {
    or_else(Numbers::of(&[]), || {
        // SAFETY: the caller gives NULL or a plan of this library.
        let plan = unsafe { plan.as_ref() };
        Numbers::of(plan.map_or(&[], |plan| &plan.candidates))
    })
}

/// What the plan costs; 0 for NULL. Since version 7.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_room_plan_cost(plan: *const RoomPlan) -> f64 {
    // SAFETY: the caller gives NULL or a plan of this library.
    or_else(0.0, || unsafe { plan.as_ref() }.map_or(0.0, |plan| plan.cost))
}

/// What any plan of candidates of these ranks costs at least: the plan is the cheapest if this is its cost; 0 for NULL. Since
/// version 7.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_room_plan_least(plan: *const RoomPlan) -> f64 {
    // SAFETY: the caller gives NULL or a plan of this library.
    or_else(0.0, || unsafe { plan.as_ref() }.map_or(0.0, |plan| plan.least))
}

/// Frees a plan. Since version 7.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_room_plan_free(plan: *mut RoomPlan) {
    // SAFETY: the caller gives NULL or a plan of this library.
    unsafe { take_back(plan) };
}
