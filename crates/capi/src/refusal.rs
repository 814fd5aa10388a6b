//! Why a request is not placed.

use std::ffi::{CString, c_char};
use std::ptr;

use topolane_placement::{Explanation, Missing, Refusal as Reason};

use crate::guard::{or_else, take_back, to_c};

/// A refusal, and the groups that stand in the way.
pub struct Refusal {
    name: CString,
    text: CString,
    obstacles: Vec<(CString, topolane_placement::Obstacle)>,
}

impl Refusal {
    pub(crate) fn new(reason: &Reason, explanation: Option<Explanation>) -> Self {
        let obstacles = explanation.map_or_else(Vec::new, |found| found.obstacles);
        Refusal {
            name: to_c(reason.name()),
            text: to_c(&reason.to_string()),
            obstacles: obstacles.into_iter().map(|one| (to_c(&one.name), one)).collect(),
        }
    }
}

/// A group that stands in the way. Its pointers live as long as the refusal.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Obstacle {
    /// Its name.
    pub name: *const c_char,
    /// Its level: 1 is a leaf.
    pub level: u32,
    /// Its index in the level.
    pub group: u32,
    /// Slots in it that the request could use if slots were all it needs.
    pub free: u32,
    /// How many are missing: of its uplinks if `uplinks` is not 0, else slots.
    pub missing: u32,
    /// How many uplinks the group has; 0 where slots are missing.
    pub uplinks: u32,
    /// The jobs that hold what is missing, ascending.
    pub jobs: *const u64,
    /// The number of entries in `jobs`.
    pub job_count: usize,
}

/// The kind: `not-now`, `never`, `would-share-links` or `cannot-isolate`; NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_refusal_name(refusal: *const Refusal) -> *const c_char {
    or_else(ptr::null(), || {
        // SAFETY: the caller gives NULL or a refusal of this library.
        let refusal = unsafe { refusal.as_ref() };
        refusal.map_or(ptr::null(), |refusal| refusal.name.as_ptr())
    })
}

/// The reason in a sentence; NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_refusal_text(refusal: *const Refusal) -> *const c_char {
    or_else(ptr::null(), || {
        // SAFETY: the caller gives NULL or a refusal of this library.
        let refusal = unsafe { refusal.as_ref() };
        refusal.map_or(ptr::null(), |refusal| refusal.text.as_ptr())
    })
}

/// How many groups stand in the way; 0 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_refusal_obstacles(refusal: *const Refusal) -> usize {
    // SAFETY: the caller gives NULL or a refusal of this library.
    or_else(0, || unsafe { refusal.as_ref() }.map_or(0, |refusal| refusal.obstacles.len()))
}

/// One of the groups that stand in the way, those with most free slots first; false if there is no such one.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_refusal_obstacle(
    refusal: *const Refusal,
    index: usize,
    obstacle: *mut Obstacle,
) -> bool {
    or_else(false, || {
        // SAFETY: the caller gives NULL or a refusal of this library.
        let refusal = unsafe { refusal.as_ref() };
        let Some((name, found)) = refusal.and_then(|refusal| refusal.obstacles.get(index)) else {
            return false;
        };
        if obstacle.is_null() {
            return false;
        }
        let (missing, uplinks) = match found.missing {
            Missing::Slots(missing) => (missing, 0),
            Missing::Uplinks { missing, of } => (missing, of),
        };
        let row = Obstacle {
            name: name.as_ptr(),
            level: found.level as u32,
            group: found.group,
            free: found.free,
            missing,
            uplinks,
            jobs: if found.jobs.is_empty() { ptr::null() } else { found.jobs.as_ptr() },
            job_count: found.jobs.len(),
        };
        // SAFETY: not NULL; the caller gives a struct that may be written.
        unsafe { obstacle.write(row) };
        true
    })
}

/// Frees a refusal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_refusal_free(refusal: *mut Refusal) {
    // SAFETY: the caller gives NULL or a refusal of this library.
    unsafe { take_back(refusal) };
}
