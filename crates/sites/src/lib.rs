//! Sites for all programs together: what running over a WAN costs each, and who should stay on one site.
//!
//! The machine is a [`Fabric`](topolane_fabric::Fabric) whose nodes are the hosts and whose sites are joined by
//! WAN links; a program is a group of guests of equal size. A [`SitePolicy`] answers for all programs at once,
//! those that run and those that arrive: a node for every guest. Programs, the cut and the first policy follow
//! "MPI on dynamically scheduled virtual clusters over several sites" (2007).

mod arrangement;
mod copying;
mod policies;
mod policy;
mod predict;
mod standing;
mod wan;
mod worth;

pub use arrangement::{Arrangement, Seats};
pub use policies::{InterSiteTraffic, MakeRoom, PredictedLoss, Stay};
pub use policy::{Moved, SITE_POLICIES, SitePolicy, SitePolicyInfo, choose_sites, site_policy};
pub use predict::{Cut, Pair, Path};
pub use wan::Wan;
pub use worth::{Judgement, Terms, Worth};

use topolane_fabric::NodeIndex;

use topolane_placement::Amounts;

/// A program, as a choice of sites sees it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// Guests it consists of.
    pub guests: u32,
    /// What each takes of its host, at least a core.
    pub guest: Amounts,
    /// The nodes on which they run, one per guest; empty for a program that arrives.
    pub nodes: Vec<NodeIndex>,
    /// Sites it may use, by index; empty for all.
    pub sites: Vec<u32>,
    /// What crosses the middle of it where its guests are divided best.
    pub cut: Cut,
    /// The same of 1, 2, ... guests and the others, as far as known.
    pub apart: Vec<Cut>,
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

impl Program {
    /// What crosses between so many of its guests and the others where they are divided best. Where that is not
    /// known traffic is taken for uniform: of n guests, a and b of them send each other 4 a b / n^2 of what crosses
    /// the middle.
    fn apart(&self, guests: u32) -> Cut {
        let fewer = guests.min(self.guests - guests.min(self.guests));
        if let Some(known) = (fewer as usize).checked_sub(1).and_then(|at| self.apart.get(at)) {
            return *known;
        }
        let (a, n) = (f64::from(fewer), f64::from(self.guests));
        Cut { bytes: self.cut.bytes * 4.0 * a * (n - a) / (n * n), ..self.cut }
    }

    /// With the rates of a run on one site, from those of one that loses so much of every second.
    fn undisturbed(&self, lost: f64) -> Program {
        Program {
            cut: self.cut.undisturbed(lost),
            apart: self.apart.iter().map(|cut| cut.undisturbed(lost)).collect(),
            here: self.here.map(|cut| cut.undisturbed(lost)),
            ..self.clone()
        }
    }
}
