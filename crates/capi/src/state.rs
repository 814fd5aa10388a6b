//! Which job holds what, and requests placed on it.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::{CStr, c_char};
use std::mem::offset_of;
use std::ptr;
use std::sync::Arc;

use topolane_placement::{
    Holder, Occupancy, Placement, Refusal as Reason, place_near, place_within,
};

use crate::decision::Decision;
use crate::guard::{
    Problem, Status, array, give, guarded, object, or_else, sized, take_back, writable,
};
use crate::link_use::{
    TOPOLANE_LINKS_ISOLATED, TOPOLANE_LINKS_ISOLATED_GLOBAL, TOPOLANE_LINKS_NONE,
};
use crate::machine::Machine;
use crate::policy::Policy;
use crate::refusal::Refusal;
use crate::request::{Amount, Request, nodes_on, nothing, share_of};

/// Which job holds what on a machine. One thread at a time may use it.
pub struct State {
    holdings: Holdings,
    /// Whether a call failed while it changed the state.
    is_broken: bool,
}

/// The part of a state that calls work on.
#[derive(Clone)]
pub(crate) struct Holdings {
    pub(crate) occupancy: Occupancy,
    pub(crate) jobs: BTreeMap<u64, Arc<Placement>>,
    /// The kind of the last refusal.
    refused: Option<&'static CStr>,
}

/// What a job holds that runs already.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Held {
    /// The size of this struct where it was compiled: set it to `sizeof(topolane_held)`.
    pub size: usize,
    /// Identity of the job.
    pub id: u64,
    /// Its nodes in rank order, once per slot.
    pub nodes: *const u32,
    /// The number of entries in `nodes`.
    pub node_count: usize,
    /// What each slot takes from its node; none: the whole node.
    pub amounts: *const Amount,
    /// How many amounts.
    pub amount_count: usize,
    /// The cables that only this job may use.
    pub links: *const u32,
    /// The number of entries in `links`.
    pub link_count: usize,
    /// The share of full bandwidth on them.
    pub bandwidth_share: f64,
    /// Which use of links it counts as: `TOPOLANE_LINKS_SHARED` and so on. Since version 2.
    pub link_use: u32,
    /// Whether it takes nothing of what is counted of its nodes, so that any number of jobs may be on them. `amounts` are
    /// then not looked at. For a caller that knows itself which nodes have room. Since version 2.
    pub shares_nodes: bool,
}

/// Runs `body` on a state; after a panic the state is of no use any more.
///
/// # Safety
/// `state` is NULL or a state of this library that no other call uses; `error` is NULL or may be written.
pub(crate) unsafe fn with_state(
    state: *mut State,
    error: *mut *mut c_char,
    body: impl FnOnce(&mut Holdings) -> Result<Status, Problem>,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        let status = guarded(error, || {
            let state = state.as_mut().ok_or("state is NULL")?;
            if state.is_broken {
                return Err("the state is of no use since a call failed".into());
            }
            body(&mut state.holdings)
        });
        if status == Status::Failed
            && let Some(state) = state.as_mut()
        {
            state.is_broken = true;
        }
        status
    }
}

/// A state of a machine: empty, every node and cable in service. It keeps what it needs of the machine.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_new(
    machine: *const Machine,
    state: *mut *mut State,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        guarded(error, || {
            let to = writable(state, "state")?;
            *to = ptr::null_mut();
            let machine = object(machine, "machine")?;
            let occupancy = Occupancy::new(Arc::clone(&machine.fabric));
            let holdings = Holdings { occupancy, jobs: BTreeMap::new(), refused: None };
            give(to, State { holdings, is_broken: false });
            Ok(Status::Ok)
        })
    }
}

/// A copy of a state, to try things on.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_copy(
    state: *mut State,
    copy: *mut *mut State,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        with_state(state, error, |holdings| {
            let to = writable(copy, "copy")?;
            *to = ptr::null_mut();
            give(to, State { holdings: holdings.clone(), is_broken: false });
            Ok(Status::Ok)
        })
    }
}

/// A copy of a state without some of its jobs, to ask what would be if they were gone. Since version 7.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_without(
    state: *mut State,
    jobs: *const u64,
    job_count: usize,
    copy: *mut *mut State,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        with_state(state, error, |holdings| {
            let to = writable(copy, "copy")?;
            *to = ptr::null_mut();
            let mut holdings = holdings.clone();
            for &id in array(jobs, job_count, "jobs")? {
                holdings.let_go(id)?;
            }
            give(to, State { holdings, is_broken: false });
            Ok(Status::Ok)
        })
    }
}

/// Frees a state.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_free(state: *mut State) {
    // SAFETY: the caller gives NULL or a state of this library.
    unsafe { take_back(state) };
}

/// Lets a job that runs already hold nodes and cables, also those that are out of service.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_hold(
    state: *mut State,
    held: *const Held,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        with_state(state, error, |holdings| {
            let wrong = "the member size of held is not sizeof(topolane_held)";
            let held: Held = sized(held, "held", offset_of!(Held, link_use), wrong)?;
            if held.link_use > TOPOLANE_LINKS_ISOLATED_GLOBAL {
                return Err(format!("there is no use of links {}", held.link_use).into());
            }
            let nodes = array(held.nodes, held.node_count, "nodes")?;
            let links = array(held.links, held.link_count, "links")?;
            let amounts = array(held.amounts, held.amount_count, "amounts")?;
            let fabric = Arc::clone(holdings.occupancy.fabric());
            if nodes.is_empty() {
                return Err(format!("job {} holds no node", held.id).into());
            }
            let nodes = nodes_on(&fabric, nodes, "node")?;
            if let Some(link) = links.iter().find(|&&link| link >= fabric.links()) {
                return Err(format!("there is no cable {link}").into());
            }
            let share = held.bandwidth_share;
            if !(share > 0.0 && share <= 1.0) {
                return Err(format!("bandwidth_share is over 0 and up to 1, not {share}").into());
            }
            let taken = if held.shares_nodes { nothing() } else { share_of(amounts, &fabric)? };
            let placement = Placement::new(&fabric, nodes, taken)
                .with_links(&fabric, links.to_vec(), share)
                .isolated(held.link_use == TOPOLANE_LINKS_ISOLATED);
            let placement = match held.link_use {
                TOPOLANE_LINKS_NONE => placement.without_links(),
                TOPOLANE_LINKS_ISOLATED_GLOBAL => placement.isolated_between_groups(&fabric),
                _ => placement,
            };
            let placement = holdings.occupancy.name_gpus(placement);
            holdings.add(held.id, Arc::new(placement), true)
        })
    }
}

/// Lets a job hold what a decision gives it, under the identity of its request. The decision must come from a state of the same
/// machine object.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_claim(
    state: *mut State,
    decision: *const Decision,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        with_state(state, error, |holdings| {
            let decision = object(decision, "decision")?;
            if !Arc::ptr_eq(&decision.fabric, holdings.occupancy.fabric()) {
                return Err("the decision is of another machine".into());
            }
            holdings.add(decision.id, Arc::clone(&decision.placement), false)
        })
    }
}

/// Takes from a job all that it holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_release(
    state: *mut State,
    id: u64,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        with_state(state, error, |holdings| {
            holdings.let_go(id)?;
            Ok(Status::Ok)
        })
    }
}

/// Takes a node out of service, or puts it back. Jobs on it keep it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_set_node(
    state: *mut State,
    node: u32,
    in_service: bool,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        with_state(state, error, |holdings| {
            nodes_on(holdings.occupancy.fabric(), &[node], "node")?;
            holdings.occupancy.set_in_service(node, in_service);
            Ok(Status::Ok)
        })
    }
}

/// Takes a cable between switches out of service, or puts it back. A job that owns it keeps it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_set_link(
    state: *mut State,
    link: u32,
    in_service: bool,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        with_state(state, error, |holdings| {
            if link >= holdings.occupancy.fabric().links() {
                return Err(format!("there is no cable {link}").into());
            }
            holdings.occupancy.set_link_in_service(link, in_service);
            Ok(Status::Ok)
        })
    }
}

/// Asks a policy for nodes; the state stays as it is. `Ok` sets `decision`, `Refused` sets `refusal` unless that is NULL.
/// A refusal names what stands in the way: that takes longer than to refuse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_place(
    state: *mut State,
    policy: *const Policy,
    request: *const Request,
    decision: *mut *mut Decision,
    refusal: *mut *mut Refusal,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe { asked(state, policy, request, decision, refusal, error, false) }
}

/// Asks a policy for more slots of a job that has some: those of `members`, which the state must not hold. The decision is for
/// the whole job: the members in their order, then the new slots, with the links of all. New slots go where the hops to the others
/// are fewest and the policy lets the job lie. Only for callers that count slots (`shares_nodes`, `free_slots`). Since version 5.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_place_near(
    state: *mut State,
    policy: *const Policy,
    request: *const Request,
    decision: *mut *mut Decision,
    refusal: *mut *mut Refusal,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe { asked(state, policy, request, decision, refusal, error, true) }
}

/// # Safety
/// The pointers are NULL or as the manual describes them.
unsafe fn asked(
    state: *mut State,
    policy: *const Policy,
    request: *const Request,
    decision: *mut *mut Decision,
    refusal: *mut *mut Refusal,
    error: *mut *mut c_char,
    is_near: bool,
) -> Status {
    // SAFETY: the caller's promise.
    unsafe {
        with_state(state, error, |holdings| {
            let to = writable(decision, "decision")?;
            *to = ptr::null_mut();
            if !refusal.is_null() {
                *refusal = ptr::null_mut();
            }
            let rule = &*object(policy, "policy")?.rule;
            let request = Request::read(request)?.on(holdings.occupancy.fabric())?;
            if is_near && (request.members.is_empty() || request.slots.is_none()) {
                return Err("slots near a job need its members, and free_slots".into());
            }
            let place = if is_near { place_near } else { place_within };
            match place(rule, &request, &holdings.occupancy) {
                Ok(placement) => {
                    let fabric = Arc::clone(holdings.occupancy.fabric());
                    give(to, Decision { id: request.id, fabric, placement: Arc::new(placement) });
                    Ok(Status::Ok)
                }
                Err(reason) => {
                    holdings.refused = Some(kind_of(&reason));
                    if !refusal.is_null() {
                        give(refusal, holdings.explained(rule, &request, &reason));
                    }
                    Ok(Status::Refused)
                }
            }
        })
    }
}

/// The kind of the last refusal of a state, as `topolane_refusal_name` says it; NULL if it has not refused anything. It costs
/// nothing, unlike a refusal. Since version 3.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_refused(state: *const State) -> *const c_char {
    or_else(ptr::null(), || {
        // SAFETY: the caller gives NULL or a state of this library.
        let refused = unsafe { state.as_ref() }.and_then(|state| state.holdings.refused);
        refused.map_or(ptr::null(), CStr::as_ptr)
    })
}

fn kind_of(reason: &Reason) -> &'static CStr {
    match reason {
        Reason::NotNow { .. } => c"not-now",
        Reason::Never { .. } | Reason::Lacks { .. } | Reason::WrongWiring { .. } => c"never",
        Reason::WouldShareLinks { .. } => c"would-share-links",
        Reason::CannotIsolate { .. } => c"cannot-isolate",
    }
}

impl Holdings {
    /// Lets a job hold a placement; `adopt` one that runs, whatever is out of service.
    fn add(&mut self, id: u64, placement: Arc<Placement>, adopt: bool) -> Result<Status, Problem> {
        let Entry::Vacant(place) = self.jobs.entry(id) else {
            return Err(format!("job {id} holds something already").into());
        };
        let held =
            if adopt { self.occupancy.adopt(&placement) } else { self.occupancy.claim(&placement) };
        held.map_err(|error| {
            let name = self.occupancy.fabric().node_name(error.node);
            format!("node {name}, or a link above it, has not enough left for job {id}")
        })?;
        place.insert(placement);
        Ok(Status::Ok)
    }

    /// Takes from a job all that it holds.
    fn let_go(&mut self, id: u64) -> Result<(), Problem> {
        let placement = self.jobs.remove(&id).ok_or_else(|| format!("job {id} holds nothing"))?;
        self.occupancy.release(&placement);
        Ok(())
    }

    fn explained(
        &self,
        rule: &dyn topolane_placement::Policy,
        request: &topolane_placement::Request,
        reason: &Reason,
    ) -> Refusal {
        let is_blocked = matches!(reason, Reason::WouldShareLinks { .. });
        if let Some(never) = is_blocked.then(|| rule.never(request, &self.occupancy)).flatten() {
            return Refusal::new(&never, None);
        }
        let jobs: Vec<Holder<'_>> =
            self.jobs.iter().map(|(&id, placement)| (id, &**placement)).collect();
        Refusal::new(reason, rule.explain(request, &self.occupancy, &jobs))
    }
}
