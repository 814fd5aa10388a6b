use super::place_all::{descending, gathered, place_all};
use crate::arrangement::Arrangement;
use crate::policy::SitePolicy;
use crate::worth::Worth;

/// The rule of 2007 for programs that communicate: in the order of the bytes a second across their middle each goes on
/// a single site; what fits on none is spread, as it is now if that still fits.
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
