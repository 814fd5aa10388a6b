//! Chooses sites for all programs together: predicts the cost of a WAN and of slow processors for each program, and
//! which hosts each should have.
//!
//! The machine is a [`Fabric`](topolane_fabric::Fabric) whose nodes are the hosts and whose sites are connected by WAN
//! links. A program is a group of guests of equal size. A [`SitePolicy`] chooses a node for every guest of all
//! programs, running and new. Programs, the cut and the first policy follow "MPI on dynamically scheduled virtual
//! clusters over several sites" (2007).

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
pub use policy::{MovedProgram, SitePolicy, choose_sites};
pub use predict::{Cut, Pair, Path};
pub use registry::{SITE_POLICIES, SitePolicyInfo, site_policy};
pub use wan::WanRoutes;
pub use worth::{Judgement, Terms, Worth};

use topolane_fabric::NodeIndex;

use topolane_placement::Amounts;

/// A program, for the choice of sites.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Program {
    /// The number of its guests.
    pub guests: u32,
    /// What each guest takes on its host; at least one core.
    pub guest: Amounts,
    /// The nodes on which its guests run, one per guest; empty for a new program.
    pub nodes: Vec<NodeIndex>,
    /// The sites that it may use, by index; empty for all.
    pub sites: Vec<u32>,
    /// The traffic between its two halves, if its guests are divided in the best way.
    pub cut: Cut,
    /// The traffic between 1, 2, ... guests and all others, as far as known.
    pub apart: Vec<Cut>,
    /// The traffic between its sites with the current division of its guests; `None` if that is the best one.
    pub here: Option<Cut>,
    /// The number of guests that must exchange places for the best division over its current sites.
    pub exchange: u32,
    /// Bytes of a guest's memory that are rewritten per second.
    pub dirty: f64,
    /// Seconds that it is expected to run on, if undisturbed.
    pub remaining: f64,
    /// Seconds since one of its guests was last moved; infinite if none was.
    pub settled: f64,
    /// Seconds of computing on a reference core per second of its run, for the rank with the most; 0 if unknown.
    pub compute: f64,
    /// The share of time spent in MPI by the rank with the smallest share; `None` if not measured.
    pub in_mpi: Option<f64>,
    /// The measured loss to the WAN divided by the predicted one, if known from before.
    pub correction: Option<f64>,
    /// Bytes per second between each guest and its storage or database, in the busier direction.
    pub outside: f64,
    /// The site of its storage or database.
    pub home: Option<u32>,
    /// Nodes whose processors lack a required feature, ascending.
    pub barred: Vec<NodeIndex>,
}

impl Program {
    /// The traffic between `guests` of its guests and the others, with the best division. If unknown, traffic is
    /// assumed to be uniform: between a and b of n guests it is 4 a b / n^2 of the traffic between the halves.
    fn apart(&self, guests: u32) -> Cut {
        let fewer = guests.min(self.guests - guests.min(self.guests));
        if let Some(known) = (fewer as usize).checked_sub(1).and_then(|at| self.apart.get(at)) {
            return *known;
        }
        let (a, n) = (f64::from(fewer), f64::from(self.guests));
        Cut { bytes: self.cut.bytes * 4.0 * a * (n - a) / (n * n), ..self.cut }
    }

    /// Returns the program in terms of a run alone on one site on reference cores. It was measured while it lost `lost`
    /// seconds per second to the WAN, as predicted, and its slowest core had this speed. `docs/explanation/sites.md`
    /// has the algebra.
    fn undisturbed(&self, lost: f64, speed: f64) -> Program {
        // Computing is at most what the core can do, and the loss at most the time spent in MPI.
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

    /// How much longer a second of its run takes on cores of this speed, in seconds; negative on fast cores.
    fn slower(&self, speed: f64) -> f64 {
        self.compute / speed - self.compute
    }
}

/// At least this share of a measured second is assumed to be the undisturbed run.
const LEAST_UNDISTURBED: f64 = 0.05;
