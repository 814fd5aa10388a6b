//! The list of gang policies, by name.

use crate::policies::{Adaptive, Batch, Free, Gang};
use crate::policy::GangPolicy;

/// A registered gang policy.
pub struct GangPolicyInfo {
    /// The name of the policy.
    pub name: &'static str,
    /// What the policy does, in one line.
    pub summary: &'static str,
    /// Builds the policy.
    pub build: fn() -> Box<dyn GangPolicy>,
}

/// All built-in gang policies.
pub const GANG_POLICIES: &[GangPolicyInfo] = &[
    GangPolicyInfo {
        name: "batch",
        summary: "jobs in the order they came, each until it ends, as many at once as have cores of their own",
        build: || Box::new(Batch::default()),
    },
    GangPolicyInfo {
        name: "free",
        summary: "everybody at once: the operating system alone, or the hypervisor's own scheduler",
        build: || Box::new(Free),
    },
    GangPolicyInfo {
        name: "gang",
        summary: "all threads of a job in the same slice, jobs in turns",
        build: || Box::new(Gang::default()),
    },
    GangPolicyInfo {
        name: "adaptive",
        summary: "gangs, others on the cores of blocked threads, and no gang for a job that gains nothing by it",
        build: || Box::new(Adaptive::default()),
    },
];

/// Returns the gang policy of this name; `None` if there is none.
pub fn gang_policy(name: &str) -> Option<Box<dyn GangPolicy>> {
    GANG_POLICIES.iter().find(|info| info.name == name).map(|info| (info.build)())
}
