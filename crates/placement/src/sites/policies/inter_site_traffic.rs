use std::cmp::Reverse;

use crate::sites::board::Board;
use crate::sites::policy::SitePolicy;
use crate::sites::worth::Worth;

/// The rule of 2007: programs in the order of the bytes a second across their middle; each goes on a
/// single site, of those that hold it the one with most of it already; what fits on none is spread, as it is now if
/// that still fits. All are placed anew, whatever moving costs. Where the spread ones then have no place, nobody moves.
#[derive(Debug, Clone, Copy, Default)]
pub struct InterSiteTraffic;

impl SitePolicy for InterSiteTraffic {
    fn name(&self) -> &'static str {
        "inter-site-traffic"
    }

    fn choose(&self, board: &mut Board<'_>, worth: &Worth<'_>) {
        let programs = board.programs();
        let bytes = |program: usize| programs[program].cut.bytes;
        let mut order: Vec<usize> = (0..programs.len()).collect();
        order.sort_by(|&a, &b| bytes(b).total_cmp(&bytes(a)));
        let before = board.clone();
        for &program in &order {
            board.lift(program);
        }
        for &program in &order {
            let here = board.spread(board.now(program));
            let mut sites = board.allowed(program);
            sites.sort_by_key(|&site| Reverse(here[site]));
            let whole = sites.iter().find_map(|&site| board.whole(program, site));
            let spread = || board.again(program).or_else(|| board.filled(program, &sites));
            let seats = whole.or_else(spread).unwrap_or_default();
            if seats.is_empty() && !board.now(program).is_empty() {
                *board = before;
                return super::Stay.choose(board, worth);
            }
            board.put(program, seats);
        }
    }
}
