//! Policies.

use std::ffi::c_char;
use std::ptr;

use topolane_placement::{POLICIES, policy};

use crate::guard::{Status, give, guarded, take_back, text, writable};

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

/// 1 if the policy promises isolation: no link carries the traffic of two of its jobs. 0 if not, and for NULL. Since version 6.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_policy_isolates(policy: *const Policy) -> u32 {
    // SAFETY: the caller gives NULL or a policy of this library.
    let policy = unsafe { policy.as_ref() };
    u32::from(policy.is_some_and(|policy| policy.rule.traits().isolates))
}

/// Frees a policy.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn topolane_policy_free(policy: *mut Policy) {
    // SAFETY: the caller gives NULL or a policy of this library.
    unsafe { take_back(policy) };
}
