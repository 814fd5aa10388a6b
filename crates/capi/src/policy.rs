//! Policies.

use std::ffi::c_char;
use std::ptr;

use topolane_placement::{BetweenGroups, POLICIES, policy};

use crate::guard::{Status, give, guarded, object, take_back, text, writable};
use crate::link_use::{
    TOPOLANE_LINKS_ISOLATED, TOPOLANE_LINKS_ISOLATED_GLOBAL, TOPOLANE_LINKS_SHARED,
};
use crate::machine::Machine;

/// A rule that chooses nodes. It never changes.
pub struct Policy {
    pub(crate) rule: Box<dyn topolane_placement::Policy>,
}

/// The policy of a name, such as `isolated` or `dedicated`; `seed` matters to those that draw at random.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_policy_new(
    name: *const c_char,
    seed: u64,
    made: *mut *mut Policy,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        guarded(error, || {
            let to = writable(made, "made")?;
            *to = ptr::null_mut();
            let name = text(name, "name")?;
            let rule = policy(name, seed).ok_or_else(|| {
                let names: Vec<&str> = POLICIES.iter().map(|info| info.name).collect();
                format!("unknown policy {name:?}; there are {}", names.join(", "))
            })?;
            give(to, Policy { rule });
            Ok(Status::Ok)
        })
    }
}

/// Whether a live system can keep what the policy promises on the wiring of a machine. `BadInput`: it cannot; `error` says why.
/// Since version 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_policy_check(
    policy: *const Policy,
    machine: *const Machine,
    error: *mut *mut c_char,
) -> Status {
    // SAFETY: the caller gives NULL or pointers that the manual describes.
    unsafe {
        guarded(error, || {
            let (policy, machine) = (object(policy, "policy")?, object(machine, "machine")?);
            let checked = policy.rule.check_live(&machine.fabric);
            checked.map_err(|why| format!("{}: {why}", policy.rule.name()))?;
            Ok(Status::Ok)
        })
    }
}

/// 1 if the policy promises isolation: no link carries the traffic of two of its jobs. 0 if not, and for NULL. Since version 6.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_policy_isolates(policy: *const Policy) -> u32 {
    // SAFETY: the caller gives NULL or a policy of this library.
    let policy = unsafe { policy.as_ref() };
    u32::from(policy.is_some_and(|policy| policy.rule.traits().isolates))
}

/// Which use of links the policy promises its jobs: `TOPOLANE_LINKS_SHARED` if none, and for NULL. Since version 8.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_policy_link_use(policy: *const Policy) -> u32 {
    // SAFETY: the caller gives NULL or a policy of this library.
    let policy = unsafe { policy.as_ref() };
    match policy.map(|policy| policy.rule.traits()) {
        Some(traits) if traits.isolates => TOPOLANE_LINKS_ISOLATED,
        Some(traits) if traits.between_groups == BetweenGroups::Apart => {
            TOPOLANE_LINKS_ISOLATED_GLOBAL
        }
        _ => TOPOLANE_LINKS_SHARED,
    }
}

/// Frees a policy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_policy_free(policy: *mut Policy) {
    // SAFETY: the caller gives NULL or a policy of this library.
    unsafe { take_back(policy) };
}
