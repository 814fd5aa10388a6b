//! Sites for all programs together: what running over a WAN costs each, and who should stay on one site.
//!
//! The machine is a [`Fabric`](topolane_fabric::Fabric) whose nodes are the hosts and whose sites are joined by
//! WAN links; a program is a group of guests of equal size. A [`SitePolicy`] answers for all programs at once,
//! those that run and those that arrive: a node for every guest. Programs, the cut and the first policy follow
//! "MPI on dynamically scheduled virtual clusters over several sites" (2007).

mod board;
mod copying;
mod policies;
mod policy;
mod predict;
mod standing;
mod wan;
mod worth;

pub use board::{Board, Seats};
pub use policies::{InterSiteTraffic, PredictedLoss, Stay};
pub use policy::{Moved, SITE_POLICIES, SitePolicy, SitePolicyInfo, choose_sites, site_policy};
pub use predict::{Cut, Pair, Path};
pub use wan::Wan;
pub use worth::{Judgement, Terms, Worth};

use topolane_fabric::NodeIndex;

/// A program, as a choice of sites sees it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Guests it consists of.
    pub guests: u32,
    /// Cores each takes of its host; at least 1.
    pub cores: u32,
    /// Memory each takes of its host, bytes.
    pub memory: u64,
    /// The nodes on which they run, one per guest; empty for a program that arrives.
    pub nodes: Vec<NodeIndex>,
    /// Sites it may use, by index; empty for all.
    pub sites: Vec<u32>,
    /// What crosses the middle of it where its guests are divided best.
    pub cut: Cut,
    /// What crosses between its sites as its guests are divided now; `None` if they are divided best.
    pub here: Option<Cut>,
    /// Guests that change places to divide it best over the sites it is on now.
    pub exchange: u32,
    /// Bytes of a guest's memory rewritten a second.
    pub dirty: f64,
    /// Seconds it is expected to run on, undisturbed.
    pub remaining: f64,
    /// Seconds since one of its guests was moved; infinite if none was.
    pub settled: f64,
}
