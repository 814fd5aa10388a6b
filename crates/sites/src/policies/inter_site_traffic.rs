use super::place_all::{descending, gathered, place_all};
use crate::arrangement::Arrangement;
use crate::policy::SitePolicy;
use crate::worth::Worth;

/// The policy of 2007 for programs that communicate. In the order of the traffic between their halves, each program
/// goes to a single site. A program that fits on no site is spread, as it is now if that still fits.
#[derive(Debug, Clone, Copy, Default)]
pub struct InterSiteTraffic;

impl SitePolicy for InterSiteTraffic {
    fn name(&self) -> &'static str {
        "inter-site-traffic"
    }

    fn choose(&self, arrangement: &mut Arrangement<'_>, worth: &Worth<'_>) {
        let programs = arrangement.programs();
        let order = descending(programs.len(), |program| programs[program].cut.bytes);
        place_all(arrangement, worth, &order, gathered);
    }
}
