//! Sites for all programs together: what running over a WAN or on slow processors costs each, and which hosts
//! each should have.
//!
//! The machine is a [`Fabric`](topolane_fabric::Fabric) whose nodes are the hosts and whose sites are joined by
//! WAN links; a program is a group of guests of equal size. A [`SitePolicy`] answers for all programs at once,
//! those that run and those that arrive: a node for every guest. Programs, the cut and the first policy follow
//! "MPI on dynamically scheduled virtual clusters over several sites" (2007).

mod arrangement;
mod copying;
mod core_speed;
mod policies;
mod policy;
mod predict;
mod registry;
mod standing;
mod wan;
mod worth;

pub use arrangement::{Arrangement, Seats};
pub use core_speed::smooth;
pub use policies::{InterSiteTraffic, MakeRoom, Paper, PredictedTime, Processors, Stay};
pub use policy::{Moved, SitePolicy, choose_sites};
pub use predict::{Cut, Pair, Path};
pub use registry::{SITE_POLICIES, SitePolicyInfo, site_policy};
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
    /// Seconds of computing on a reference core in a second of its run, of the rank with the most; 0 if not known.
    pub compute: f64,
    /// The share of its time that the rank with the least of it spends in MPI; `None` if not measured.
    pub in_mpi: Option<f64>,
    /// What it loses to the WAN over what is predicted, if that is known from before.
    pub correction: Option<f64>,
    /// Bytes a second between each guest and its storage or database, in the busier direction,
    pub outside: f64,
    /// which is at this site.
    pub home: Option<u32>,
    /// Nodes whose processors lack a feature that it needs, ascending.
    pub barred: Vec<NodeIndex>,
}

impl Program {
    /// What crosses between `guests` of its guests and the others where they are divided best. Where that is not
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

    /// In seconds of a run alone on one site on reference cores, from one that loses `lost` seconds of each second
    /// to the WAN, as predicted, and whose slowest core has this speed. `docs/explanation/sites.md` has the algebra.
    fn undisturbed(&self, lost: f64, speed: f64) -> Program {
        // No more than the core can do, and no more lost than is spent in MPI.
        let compute = self.compute.min(speed);
        let before = self.correction.unwrap_or(1.0);
        let share = (before * lost).min(self.in_mpi.unwrap_or(f64::INFINITY));
        let known = lost > 0.0 && lost.is_finite();
        let unit = 1.0 / (1.0 + (compute - compute / speed) - share).max(LEAST_UNDISTURBED);
        Program {
            cut: self.cut.times(unit),
            apart: self.apart.iter().map(|cut| cut.times(unit)).collect(),
            here: self.here.map(|cut| cut.times(unit)),
            compute: compute * unit,
            correction: Some(if known { share / lost } else { before }),
            outside: self.outside * unit,
            ..self.clone()
        }
    }

    /// Seconds by which a second of its run takes longer on cores of this speed; negative on fast ones.
    fn slower(&self, speed: f64) -> f64 {
        self.compute / speed - self.compute
    }
}

/// Of a measured second at least this much is taken for its undisturbed run.
const LEAST_UNDISTURBED: f64 = 0.05;
