//! The engine for programs in C, for what runs inside another process: slurmctld, kube-scheduler.
//!
//! docs/reference/c-api.md is the manual. Its rules hold for every function here:
//!
//! - No panic crosses the border. A call that would panic answers [`Status::Failed`]; a state that was being changed answers
//!   so from then on, and its owner frees it and makes a new one.
//! - What a function hands out is freed by its own `_free` function, and by nothing else. Freeing NULL does nothing.
//! - Pointers into an object are valid as long as the object lives and is not changed.
//! - NULL for an object, and any number that is out of range, is [`Status::BadInput`], never undefined behaviour. A pointer that
//!   does not point to what its type says cannot be detected.
//! - Machines and policies may be used by several threads at once; a state by one thread at a time.

mod areas;
mod decision;
mod guard;
mod link_use;
mod machine;
mod policy;
mod refusal;
mod request;
mod room;
mod state;

pub use areas::*;
pub use decision::*;
pub use guard::{Status, topolane_text_free};
pub use link_use::*;
pub use machine::*;
pub use policy::*;
pub use refusal::*;
pub use request::*;
pub use room::*;
pub use state::*;

/// The version of this interface. A library serves programs that were compiled for the same version or a lower one: functions
/// and members of structs are added, never changed or taken away, or else this number jumps to the next multiple of 1000.
pub const TOPOLANE_API_VERSION: u32 = 8;

/// The version of the interface that this library has: `TOPOLANE_API_VERSION` when it was built.
#[unsafe(no_mangle)]
pub extern "C" fn topolane_api_version() -> u32 {
    TOPOLANE_API_VERSION
}

/// Panics inside the engine, for the tests: answers what every other function would answer then.
#[cfg(feature = "test-panic")]
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_test_panic(
    state: *mut State,
    error: *mut *mut std::ffi::c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        state::with_state(state, error, |_| -> Result<Status, guard::Problem> {
            #[allow(clippy::panic)]
            {
                panic!("asked for by a test")
            }
        })
    }
}
