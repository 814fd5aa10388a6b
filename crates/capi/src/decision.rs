//! What a request is given.

use std::ptr;
use std::sync::Arc;

use topolane_fabric::Fabric;
use topolane_placement::Placement;

use crate::guard::{or_else, take_back};
use crate::link_use::{
    TOPOLANE_LINKS_ISOLATED, TOPOLANE_LINKS_ISOLATED_GLOBAL, TOPOLANE_LINKS_SHARED,
};

/// The nodes and links for a request. It changes nothing until a state claims it.
pub struct Decision {
    pub(crate) id: u64,
    /// The machine whose nodes it names.
    pub(crate) fabric: Arc<Fabric>,
    pub(crate) placement: Arc<Placement>,
}

/// Numbers that belong to an object.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Numbers {
    /// The first; NULL if there are none.
    pub first: *const u32,
    /// How many numbers there are.
    pub count: usize,
}

impl Numbers {
    const NONE: Numbers = Numbers { first: ptr::null(), count: 0 };

    pub(crate) fn of(numbers: &[u32]) -> Self {
        if numbers.is_empty() {
            return Numbers::NONE;
        }
        Numbers { first: numbers.as_ptr(), count: numbers.len() }
    }
}

/// # Safety
/// `decision` is NULL or a decision of this library.
unsafe fn numbers_of(
    decision: *const Decision,
    numbers: impl FnOnce(&Placement) -> &[u32],
) -> Numbers {
    or_else(Numbers::NONE, || {
        // SAFETY: the caller's promise.
        let decision = unsafe { decision.as_ref() };
        decision.map_or(Numbers::NONE, |decision| Numbers::of(numbers(&decision.placement)))
    })
}

/// The nodes in rank order, once per slot; none for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_decision_nodes(decision: *const Decision) -> Numbers {
    // SAFETY: the caller gives NULL or a decision of this library.
    unsafe { numbers_of(decision, Placement::nodes) }
}

/// The cables between switches that only this job may use, ascending; none from a policy that dedicates none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_decision_links(decision: *const Decision) -> Numbers {
    // SAFETY: the caller gives NULL or a decision of this library.
    unsafe { numbers_of(decision, Placement::links) }
}

/// Nodes that the job holds and does not use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_decision_spare(decision: *const Decision) -> Numbers {
    // SAFETY: the caller gives NULL or a decision of this library.
    unsafe { numbers_of(decision, Placement::spare) }
}

/// The share of full bandwidth on its links; 1 where there is nothing to share, and for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_decision_bandwidth_share(decision: *const Decision) -> f64 {
    // SAFETY: the caller gives NULL or a decision of this library.
    or_else(1.0, || unsafe { decision.as_ref() }.map_or(1.0, |one| one.placement.bandwidth_share()))
}

/// Which use of links the job counts as, for `link_use` of `topolane_held`; `TOPOLANE_LINKS_SHARED` for NULL. Since version 4.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_decision_link_use(decision: *const Decision) -> u32 {
    or_else(TOPOLANE_LINKS_SHARED, || {
        // SAFETY: the caller gives NULL or a decision of this library.
        let decision = unsafe { decision.as_ref() };
        match decision.map(|decision| &decision.placement) {
            Some(place) if place.is_isolated() => TOPOLANE_LINKS_ISOLATED,
            Some(place) if place.is_isolated_between_groups() => TOPOLANE_LINKS_ISOLATED_GLOBAL,
            _ => TOPOLANE_LINKS_SHARED,
        }
    })
}

/// Frees a decision. A state that claimed it keeps what it needs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_decision_free(decision: *mut Decision) {
    // SAFETY: the caller gives NULL or a decision of this library.
    unsafe { take_back(decision) };
}
