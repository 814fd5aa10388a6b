use super::place_all::{descending, place_all, quickest};
use crate::arrangement::Arrangement;
use crate::policy::SitePolicy;
use crate::worth::Worth;

/// Considers processors only: programs that compute most get the fastest hosts on any site.
#[derive(Debug, Clone, Copy, Default)]
pub struct Processors;

impl SitePolicy for Processors {
    fn name(&self) -> &'static str {
        "processors"
    }

    fn choose(&self, arrangement: &mut Arrangement<'_>, worth: &Worth<'_>) {
        let programs = arrangement.programs();
        let order = descending(programs.len(), |program| programs[program].compute);
        place_all(arrangement, worth, &order, quickest);
    }
}
