//! Where the caller may choose nodes itself.

use std::ffi::c_char;
use std::ptr;

use topolane_fabric::NodeIndex;
use topolane_placement::{KeepOff, areas};

use crate::decision::Numbers;
use crate::guard::{Status, give, or_else, take_back, writable};
use crate::link_use::{
    TOPOLANE_LINKS_ISOLATED, TOPOLANE_LINKS_ISOLATED_GLOBAL, TOPOLANE_LINKS_SHARED,
};
use crate::request::Request;
use crate::state::{State, with_state};

/// Sets of free nodes. A job on any nodes of one set keeps off the links of others.
pub struct Areas {
    sets: Vec<Vec<NodeIndex>>,
}

/// The sets of free nodes from which a caller may choose for a request by itself. A job on any nodes of one set keeps off the links
/// of isolated jobs if `link_use` is `TOPOLANE_LINKS_SHARED`, of all jobs if it is `TOPOLANE_LINKS_ISOLATED`, and of all jobs
/// between groups if it is `TOPOLANE_LINKS_ISOLATED_GLOBAL`. Every set has
/// as many nodes as the request has slots; those inside lower groups come first, of one level the smaller ones. Since version 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_state_areas(
    state: *mut State,
    request: *const Request,
    link_use: u32,
    found: *mut *mut Areas,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        with_state(state, error, |holdings| {
            let to = writable(found, "found")?;
            *to = ptr::null_mut();
            let keep_off = match link_use {
                TOPOLANE_LINKS_SHARED => KeepOff::Isolated,
                TOPOLANE_LINKS_ISOLATED => KeepOff::All,
                TOPOLANE_LINKS_ISOLATED_GLOBAL => KeepOff::AllBetweenGroups,
                other => return Err(format!("link_use is {other}, not shared or isolated").into()),
            };
            let request = Request::read(request)?.on(holdings.occupancy.fabric())?;
            give(to, Areas { sets: areas(&request, &holdings.occupancy, keep_off) });
            Ok(Status::Ok)
        })
    }
}

/// How many sets there are; 0 for NULL. Since version 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_areas_count(areas: *const Areas) -> usize {
    // SAFETY: the caller gives NULL or areas of this library.
    or_else(0, || unsafe { areas.as_ref() }.map_or(0, |areas| areas.sets.len()))
}

/// The nodes of one set, ascending; none if there is no such one. Since version 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_areas_nodes(areas: *const Areas, index: usize) -> Numbers {
    or_else(Numbers::of(&[]), || {
        // SAFETY: the caller gives NULL or areas of this library.
        let areas = unsafe { areas.as_ref() };
        let set = areas.and_then(|areas| areas.sets.get(index));
        Numbers::of(set.map_or(&[], Vec::as_slice))
    })
}

/// Frees areas. Since version 2.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_areas_free(areas: *mut Areas) {
    // SAFETY: the caller gives NULL or areas of this library.
    unsafe { take_back(areas) };
}
