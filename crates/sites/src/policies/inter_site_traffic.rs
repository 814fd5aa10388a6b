use std::cmp::Reverse;

use crate::arrangement::Arrangement;
use crate::policy::SitePolicy;
use crate::worth::Worth;

/// The rule of 2007: programs in the order of the bytes a second across their middle; each goes on a
/// single site, of those that hold it the one with most of it already; what fits on none is spread, as it is now if
/// that still fits. All are placed anew, whatever moving costs. Where the spread ones then have no place, nobody moves.
#[derive(Debug, Clone, Copy, Default)]
pub struct InterSiteTraffic;

impl SitePolicy for InterSiteTraffic {
    fn name(&self) -> &'static str {
        "inter-site-traffic"
    }

    fn choose(&self, arrangement: &mut Arrangement<'_>, worth: &Worth<'_>) {
        let programs = arrangement.programs();
        let bytes = |program: usize| programs[program].cut.bytes;
        let mut order: Vec<usize> = (0..programs.len()).collect();
        order.sort_by(|&a, &b| bytes(b).total_cmp(&bytes(a)));
        let before = arrangement.clone();
        for &program in &order {
            arrangement.lift(program);
        }
        for &program in &order {
            let here = arrangement.spread(arrangement.now(program));
            let mut sites = arrangement.allowed(program);
            sites.sort_by_key(|&site| Reverse(here[site]));
            let whole = sites.iter().find_map(|&site| arrangement.whole(program, site));
            let spread =
                || arrangement.again(program).or_else(|| arrangement.filled(program, &sites));
            let seats = whole.or_else(spread).unwrap_or_default();
            if seats.is_empty() && !arrangement.now(program).is_empty() {
                *arrangement = before;
                return super::Stay.choose(arrangement, worth);
            }
            arrangement.put(program, seats);
        }
    }
}
