//! The list of site policies, by name.

use crate::policies::{InterSiteTraffic, MakeRoom, Paper, PredictedTime, Processors, Stay};
use crate::policy::SitePolicy;

/// A registered site policy.
pub struct SitePolicyInfo {
    /// The name of the policy.
    pub name: &'static str,
    /// What the policy does, in one line.
    pub summary: &'static str,
    /// The policy itself.
    pub rule: &'static dyn SitePolicy,
}

/// All built-in site policies.
pub const SITE_POLICIES: &[SitePolicyInfo] = &[
    SitePolicyInfo {
        name: "stay",
        summary: "no program moves; one that arrives fills the sites in their order",
        rule: &Stay,
    },
    SitePolicyInfo {
        name: "inter-site-traffic",
        summary: "most bytes across the middle first onto a single site, the rest spread (2007)",
        rule: &InterSiteTraffic,
    },
    SitePolicyInfo {
        name: "processors",
        summary: "most computing first onto the fastest hosts, whatever their site",
        rule: &Processors,
    },
    SitePolicyInfo {
        name: "paper",
        summary: "programs that communicate much onto a single site, those that compute much onto the fastest hosts (2007)",
        rule: &Paper,
    },
    SitePolicyInfo {
        name: "predicted-time",
        summary: "least predicted time over all programs, lost to the WAN and to slow processors, moves included",
        rule: &PredictedTime,
    },
    SitePolicyInfo {
        name: "predicted-loss",
        summary: "another name of predicted-time",
        rule: &PredictedTime,
    },
    SitePolicyInfo {
        name: "make-room",
        summary: "a program that arrives goes onto one site, and up to three others move out of its way; else none moves",
        rule: &MakeRoom,
    },
];

/// Returns the site policy of this name; `None` if there is none.
pub fn site_policy(name: &str) -> Option<&'static dyn SitePolicy> {
    SITE_POLICIES.iter().find(|info| info.name == name).map(|info| info.rule)
}
